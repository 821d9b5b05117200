"""REINFORCE and actor-critic: returns by hand, the learning case, and the same bytes however a job is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from small_clusters import cluster, workload
from small_hetero import SELECTION

from schedlab.config.contract import LearnPaths, Phase, PolicySpec, Unit
from schedlab.config.errors import UserError
from schedlab.learning.policy_gradient import discounted, masked_log_probabilities, standardised
from schedlab.stages.learn import CurveRecorder
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.learners import policy_gradient as learner
from schedlab.studies.hetero.learners.networks import build_network
from schedlab.studies.hetero.simulator.episode import learning_case, make_jobs

THESIS = DecisionSettings(selection=SELECTION, void=False, objective="makespan", observation="minimal")
EPISODES = 480  # enough for the learning case at four times the shipped learning rate
JOBS = [{"res": 1 + number % 3, "subtime": number // 2, "bw": 4 * (number % 6), "mem": 1000} for number in range(10)]


class OneUnit:
    """A problem of one workload."""

    def __init__(self, place, jobs, settings: DecisionSettings) -> None:
        self.place, self.jobs, self.settings = place, jobs, settings

    def units(self, split):
        return [Unit("a", "workload", split, "a", 0)]

    def env(self, unit, seed):
        assert unit.id == "a"
        return HeteroEnv(self.place, (self.jobs,), self.settings, seed)


def thesis() -> OneUnit:
    return OneUnit(*learning_case(), THESIS)


def small(**settings) -> OneUnit:
    return OneUnit(cluster(), make_jobs(workload(JOBS)), DecisionSettings(observation="small", **settings))


def learn(problem, folder: Path, steps: int, seed: int = 0, start: Path | None = None, **params):
    """Learn; return the checkpoint and the points of the curves."""
    spec = PolicySpec("agent", "learned", "policy_gradient", params, train_on=(Phase(("one",), steps),))
    paths = LearnPaths(start, folder / "policy.zip", folder)
    folder.mkdir(exist_ok=True)
    with CurveRecorder(folder / "curve.jsonl") as curve:
        learner.PolicyGradientLearner().learn({"one": problem}, spec, seed, paths, curve)
    return paths.checkpoint, curve.points()


def test_returns_by_hand():
    assert discounted([1.0, 2.0, 4.0], 0.5).tolist() == [3.0, 4.0, 4.0]
    assert standardised(np.array([1.0, 3.0])) == pytest.approx([-(0.5**0.5), 0.5**0.5])
    assert standardised(np.array([7.0])).tolist() == [7.0]
    assert standardised(np.array([7.0, 7.0])).tolist() == [0.0, 0.0]


def test_returns_against_those_of_the_same_workload_by_hand():
    def record(times, rewards):
        return learner.EpisodeRecord(times=times, rewards=rewards)

    records = [record([0.0, 2.0], [1.0, 3.0]), record([0.0, 4.0], [2.0, 6.0])]
    returns = [discounted(one.rewards, 1.0) for one in records]  # 4, 3 and 8, 6
    against = learner.less_workload_mean(records, returns)
    # the second episode's return is 7 at the date 2, half way; the first has nothing left at 4
    assert [values.tolist() for values in against] == [[4 - 6, 3 - 5], [8 - 6, 6 - 3]]
    assert learner.less_workload_mean(records[:1], returns[:1])[0].tolist() == [0.0, 0.0]


def test_curves_hold_what_was_done_and_how_probable_it_is(tmp_path):
    _, points = learn(small(), tmp_path, 16, standardise="workload", gamma=1.0)
    assert [point["episodes"] for point in points] == [point["episode"] for point in points]
    assert all(point["decisions"] >= point["episodes"] for point in points)
    by_update = {}
    for point in points:
        by_update.setdefault(point["update"], {})[point["metric"], point["of"].get("action")] = point["value"]
    assert by_update.keys() == {1, 2}
    names = small().env(Unit("a", "workload", "train", "a", 0), 0).action_names
    for values in by_update.values():
        assert values.keys() == {
            ("return", None),
            ("loss", None),
            *((what, name) for what in ("probability", "share") for name in names),
        }
        for what in ("probability", "share"):
            assert sum(values[what, name] for name in names) == pytest.approx(1)


def test_network_has_the_published_layers():
    plain = [
        tuple(parameter.shape)
        for parameter in build_network(21, SELECTION, 16, False, 0).parameters()
        if parameter.ndim == 2
    ]
    assert plain == [(16, 21), (16, 16), (16, 16), (16, 16), (5, 16)]
    both = [
        tuple(parameter.shape)
        for parameter in build_network(21, SELECTION, 16, True, 0).parameters()
        if parameter.ndim == 2
    ]
    assert both == [*plain, (16, 16), (16, 16), (16, 16), (1, 16)]


def test_an_action_may_add_up_its_job_policy_and_its_core_policy():
    names = (*SELECTION, "void")
    network = build_network(21, names, 16, False, 0, "parts")
    seen = torch.rand(4, 21)
    logits, _ = network(seen)
    assert logits.shape == (4, 6) and network.actor[-1].out_features == 2 + 3 + 1  # job policies, core policies, void
    by_name = dict(zip(names, logits.T, strict=True))
    jobs = by_name["shortest-high_gflops"] - by_name["first-high_gflops"]
    assert torch.allclose(jobs, by_name["shortest-high_mem_bw"] - by_name["first-high_mem_bw"], atol=1e-6)
    assert "parts" not in network.state_dict()


@pytest.mark.parametrize("head", ["actions", "parts"])
def test_a_loaded_policy_acts_as_the_learned_one(head, tmp_path):
    checkpoint, _ = learn(small(), tmp_path, 8, head=head, critic=True)
    policies = [learner.PolicyGradientLearner().load(checkpoint, small()) for _ in range(2)]
    assert len(policies[0].network.actor[-1].bias) == (37 if head == "actions" else 6 + 6 + 1)
    seen, mask = np.linspace(0, 1, policies[0].network.first.in_features, dtype=np.float32), np.ones(37, bool)
    assert policies[0].probabilities(seen, mask).tolist() == policies[1].probabilities(seen, mask).tolist()
    assert policies[0].probabilities(seen, mask).sum() == pytest.approx(1)


def test_masked_actions_have_no_chance():
    logs = masked_log_probabilities(torch.zeros(1, 3), torch.tensor([[True, False, True]]))
    assert logs.exp().tolist() == [[0.5, 0.0, 0.5]]


@pytest.mark.parametrize("critic", [False, True])
def test_gradient_is_that_of_the_stated_loss(critic):
    settings = learner.PolicyGradientSettings(critic=critic, gamma=0.9, standardise="episode", entropy=0.1)
    network = build_network(3, SELECTION[:2], 4, critic, 0)
    rng = np.random.default_rng(0)
    records = []
    for length in (1, 3):
        rows = [rng.random(3).astype(np.float32) for _ in range(length)]
        times = [0.0, 1.0, 4.0][:length]
        records.append(
            learner.EpisodeRecord(
                rows, [np.array([True, True])] * length, [1, 0, 1][:length], times, [2.0, -1.0, 0.5][:length]
            )
        )
    expected = torch.zeros(())
    for record in records:
        returns = standardised(discounted(record.rewards, 0.9))
        for row, action, gain in zip(record.observations, record.actions, returns, strict=True):
            logits, value = network(torch.from_numpy(row)[None])
            logs = logits.log_softmax(-1)[0]
            advantage = gain - (value.item() if critic else 0.0)
            expected = expected - logs[action] * advantage + 0.1 * (logs.exp() * logs).sum()
            if critic:
                off = value[0] - gain
                expected = expected + (0.5 * off**2 if abs(off) < 1 else abs(off) - 0.5)
    parameters = list(network.parameters())
    wanted = torch.autograd.grad(expected / 2, parameters)
    found = torch.autograd.grad(learner.loss_of(network, records, settings), parameters)
    for mine, theirs in zip(found, wanted, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


@pytest.fixture(scope="module", params=[False, True], ids=["reinforce", "actor-critic"])
def learned(request, tmp_path_factory):
    """The learning case learned: checkpoint and points of the curves."""
    return learn(
        thesis(), tmp_path_factory.mktemp("learned"), EPISODES, critic=request.param, learning_rate=0.02
    ), request.param


def test_learning_case_is_learned(learned):
    (checkpoint, points), _ = learned
    policy = learner.PolicyGradientLearner().load(checkpoint, thesis())
    env = thesis().env(Unit("a", "workload", "test", "a", 0), 0)
    observation, _ = env.reset(seed=1)
    chances = dict(zip(env.action_names, policy.probabilities(observation, env.action_masks()), strict=True))
    assert sum(chance for name, chance in chances.items() if name.endswith("high_mem_bw")) > 0.95
    assert env.step(policy.act(observation, env.action_masks()))[4]["scores"]["makespan"] == pytest.approx(
        5.25, abs=1e-6
    )
    last = [point for point in points if point["metric"] == "return"][-1]
    assert last["value"] > 8.0 and last["episode"] == EPISODES


def test_same_seed_same_bytes_and_an_interrupted_job_goes_on(tmp_path, monkeypatch):
    params = {"episodes_per_update": 3, "save_every": 1, "critic": True, "average": 0.5}
    folders = [tmp_path / name for name in ("one", "two", "other")]
    whole, again, other = (
        learn(small(), folder, 12, seed, **params) for folder, seed in zip(folders, (1, 1, 2), strict=True)
    )
    assert whole[0].read_bytes() == again[0].read_bytes() != other[0].read_bytes()
    assert whole[1] == again[1]

    calls, really = [], learner.loss_of

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return really(*arguments)

    monkeypatch.setattr(learner, "loss_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(small(), tmp_path / "cut", 12, 1, **params)
    checkpoint, points = learn(small(), tmp_path / "cut", 12, 1, **params)
    assert len(calls) == 2 + 1 + 2
    assert checkpoint.read_bytes() == whole[0].read_bytes() and points == whole[1]


def test_the_last_parameters_are_averaged(tmp_path):
    """Two updates: the mean of both, and of the last one alone."""

    def parameters(name, steps, average):
        checkpoint, _ = learn(small(), tmp_path / name, steps, episodes_per_update=3, average=average)
        return learner.PolicyGradientLearner().load(checkpoint, small()).network.first.weight.detach().numpy()

    first, second = parameters("first", 3, 0.0), parameters("second", 6, 0.0)
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_allclose(parameters("both", 6, 1.0), (first + second) / 2, atol=1e-7)
    assert parameters("last", 6, 0.5).tolist() == second.tolist()


def test_compiled_episodes_teach_the_same(tmp_path):
    settings = {"observation": "heads", "time_weighted": True, "void": False}
    problem = OneUnit(cluster(), make_jobs(workload(JOBS)), DecisionSettings(**settings))
    params = {"standardise": "workload", "gamma": 1.0, "head": "parts"}
    (one, plain), (other, fast) = (
        learn(problem, tmp_path / str(how), 24, compiled=how, **params) for how in (False, True)
    )
    assert [point["value"] for point in fast] == pytest.approx([point["value"] for point in plain], rel=1e-3, abs=1e-4)
    weights = [
        learner.PolicyGradientLearner().load(path, problem).network.first.weight.detach().numpy()
        for path in (one, other)
    ]
    np.testing.assert_allclose(*weights, atol=1e-3)


def test_a_parent_is_where_learning_starts(learned, tmp_path):
    (parent, _), critic = learned
    child, points = learn(thesis(), tmp_path / "child", 8, start=parent, learning_rate=1e-9, critic=critic)
    at = ("probability", {"action": "shortest-high_gflops"})
    assert next(point["value"] for point in points if (point["metric"], point["of"]) == at) < 0.05
    assert child.exists()


def test_sampling_begins_anew_with_each_unit(tmp_path):
    checkpoint, _ = learn(thesis(), tmp_path, 8, acting="sample")
    policy = learner.PolicyGradientLearner().load(checkpoint, thesis())
    observation, mask = np.zeros(21, np.float32), np.ones(5, bool)
    drawn = []
    for seed in (0, 0, 1):
        policy.reset(Unit("a", "workload", "test", "a", seed))
        drawn.append([policy.act(observation, mask) for _ in range(30)])
    assert drawn[0] == drawn[1] != drawn[2]


def test_policies_of_other_sizes_are_refused(tmp_path):
    checkpoint, _ = learn(thesis(), tmp_path, 8)
    with pytest.raises(UserError, match="shape"):
        learner.PolicyGradientLearner().load(checkpoint, small())


def test_scenarios_of_different_sizes_are_not_learned_together(tmp_path):
    spec = PolicySpec("agent", "learned", "policy_gradient", train_on=(Phase(("one", "two"), 8),))
    paths = LearnPaths(None, tmp_path / "policy.zip", tmp_path)
    with pytest.raises(UserError, match=r"scenario two: .*21 .*scenario one"):
        learner.PolicyGradientLearner().learn(
            {"one": thesis(), "two": small()}, spec, 0, paths, lambda *point, **place: None
        )


def test_problems_without_training_units_are_refused(tmp_path):
    problem = thesis()
    problem.units = lambda split: []
    with pytest.raises(UserError, match="scenario one: "):
        learn(problem, tmp_path, 8)
