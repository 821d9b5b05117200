"""Learners of the ramp study: what they keep, that they repeat, and that the exact cluster does as the compiled one."""

import dataclasses

import numpy as np
import pytest

from checkpoint_changes import changes
from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec, Unit
from schedlab.config.errors import UserError
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.learners.afterstate.fitting import Fit, fit_network
from schedlab.studies.ramp.learners.afterstate.kernel import (
    afterstates,
    best_by_network,
    best_linear,
    count_bits,
    play_linear,
    summary_size,
)
from schedlab.studies.ramp.learners.afterstate.learner import AfterstateLearner, Training
from schedlab.studies.ramp.learners.afterstate.policy import AfterstatePolicy, Candidate
from schedlab.studies.ramp.learners.afterstate.rollout_kernel import rollout_returns
from schedlab.studies.ramp.learners.afterstate.values import Returns, collect, make_outlook
from schedlab.studies.ramp.learners.settings import AfterstateSettings
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.compiled import draw_futures, episode_arrivals, fixed_table
from schedlab.studies.ramp.simulator.compiled_kernel import REJECT, Rollouts, Situation, occupy
from schedlab.studies.ramp.study import STUDY

END = 1.5e5
TINY = {
    "degrees": [2, 16],
    "tuning_episodes": 1,
    "validation_episodes": 2,
    "trial_samples": 2,
    "samples": 4,
    "horizon": 12,
    "generations": 2,
    "population": 4,
    "episodes": 1,
    "check_every": 1,
    "hidden": 8,
    "epochs": 2,
}


def problem_of(**changes):
    values = {
        "name": "learned",
        "seed": 3,
        "graphs": {"source": "generated"},
        "management": {"illegal_degrees": "round_down"},
        "episodes": {"end": END, "test": 1},
    }
    return RampProblem(validate(RampScenario, values | changes), read_graphs(find_graphs("resources/graphs/a100")))


@pytest.fixture(scope="module")
def problem():
    return problem_of()


def spec_of(**params):
    return PolicySpec("afterstate-test", "learned", "afterstate", TINY | params, train_on=(Phase(("learned",), 1),))


def learned(problem, folder, **params):
    curve = []
    paths = LearnPaths(None, folder / "policy.zip", folder)
    AfterstateLearner().learn(
        {"learned": problem}, spec_of(**params), 5, paths, lambda *point, **place: curve.append((point, place))
    )
    return paths.checkpoint, curve


@pytest.mark.parametrize("form", ["fixed", "table", "linear", "network"])
def test_the_exact_cluster_accepts_what_the_compiled_one_does(problem, tmp_path, form):
    path, _ = learned(problem, tmp_path, candidates=[form])
    policy, unit = AfterstateLearner().load(path, problem), problem.units("test")[0]
    training = Training(problem, validate(AfterstateSettings, TINY), 5, lambda *_, **__: None, Budget())
    arrivals = episode_arrivals(problem.simulation, problem.compiled[0], unit.seed)
    exact = problem.rollout(policy, unit).scores["blocking_rate"]
    assert exact == pytest.approx(training._blocking(training._player(policy._kept), [arrivals]))
    assert 0 < exact < 1


UNEVEN = {
    "uniform": {"kind": "uniform", "low": 500.0, "high": 1500.0, "decimals": 0},
    "pmf": {"kind": "pmf", "probabilities": {600.0: 0.25, 1000.0: 0.5, 1400.0: 0.25}},
}


@pytest.mark.parametrize("gaps", UNEVEN)
def test_each_episode_counts_its_own_arrivals(gaps):
    """Where gaps differ, episodes have more jobs or fewer, and only in some does one arrive just as they end."""
    problem = problem_of(jobs={"interarrival": UNEVEN[gaps]})
    training = Training(
        problem, validate(AfterstateSettings, TINY | {"validation_episodes": 12}), 5, lambda *_, **__: None, Budget()
    )
    table = Candidate("table", fixed_table(training.tables, 4))
    policy, arrived, rates = AfterstatePolicy(table, training.tables, training.outlook, 0), [], []
    for number, arrivals in enumerate(training._validation):
        unit = Unit("any", "episode", "test", "any", derive_seed(problem.scenario.seed, "ramp", "choosing", number))
        rates.append(problem.rollout(policy, unit).scores["blocking_rate"])
        arrived.append(problem.simulation.cluster.record.arrived)
        assert arrivals.arrived == arrived[-1]
        assert training._blocking(training._player(table), [arrivals]) == pytest.approx(rates[-1], rel=1e-12)
    assert len(set(arrived)) > 2 and len(set(rates)) > 2
    at_end = {arrivals.undecided for arrivals in training._validation}
    assert at_end == ({0} if gaps == "uniform" else {0, 1})
    assert training.validated(table) == pytest.approx(np.average(rates, weights=arrived), rel=1e-12)


def test_rollouts_decide_better_than_their_base(problem, tmp_path):
    path, _ = learned(problem, tmp_path, candidates=["rollouts"], degrees=[16], tables=False, samples=16)
    unit = problem.units("test")[0]
    policy = AfterstateLearner().load(path, problem)
    base = RULE_MAKERS["fixed"]({"degree": 16}, problem, 0)
    scores = [problem.rollout(one, unit).scores["blocking_rate"] for one in (policy, base)]
    assert scores[0] < scores[1]
    assert problem.rollout(policy, unit).scores["blocking_rate"] == scores[0]


def test_the_same_seed_learns_the_same_bytes(problem, tmp_path):
    first, curve = learned(problem, tmp_path / "a", bases=2)
    again, _ = learned(problem_of(), tmp_path / "b", bases=2)
    assert first.read_bytes() == again.read_bytes()
    points = [(metric, place["split"], place["step"]) for (metric, _), place in curve]
    # Two bases: an episode, the network, and four measures of the start and of two checks of the search each.
    assert len(set(points)) == len(points) == 2 * (1 + 1 + 4 * 3)
    assert {place["split"] for _, place in curve} == {"train", "validation"}


class Killed(BaseException):
    """Ends a job at a point of its curve."""


EVERYTHING = {
    "candidates": ["table", "rollouts", "linear", "network", "linear_rollouts"],
    "bases": 2,
    "second_episodes": 2,
}


def interrupted(problem, folder, after):
    """Learn until so many points of the curve are recorded, and return these."""
    curve = []

    def record(metric, value, **place):
        if len(curve) == after:
            raise Killed
        curve.append(((metric, value), place))

    with pytest.raises(Killed):
        AfterstateLearner().learn(
            {"learned": problem}, spec_of(**EVERYTHING), 5, LearnPaths(None, folder / "policy.zip", folder), record
        )
    return curve


@pytest.fixture(scope="module")
def everything(problem, tmp_path_factory):
    """The policy and curve of a job with all candidates."""
    return learned(problem, tmp_path_factory.mktemp("whole"), **EVERYTHING)


@pytest.mark.parametrize("after", [1, 9])
def test_an_interrupted_job_goes_on_and_ends_with_the_same_bytes(problem, everything, tmp_path, after):
    whole, curve = everything
    before = interrupted(problem, tmp_path / "cut", after)
    kept = {file: file.stat().st_ino for file in (tmp_path / "cut/steps").iterdir()}
    resumed, rest = learned(problem, tmp_path / "cut", **EVERYTHING)
    assert resumed.read_bytes() == whole.read_bytes()
    assert sorted(map(repr, [*before, *rest])) == sorted(
        map(repr, curve + [point for point in before if point in rest])
    )
    assert len(rest) < len(curve)  # the decisions of finished episodes are not made again
    assert kept and {file: file.stat().st_ino for file in kept} == kept


def test_what_another_job_left_is_not_taken_up(problem, everything, tmp_path):
    whole, curve = everything
    learned(problem, tmp_path / "other", **EVERYTHING, samples=5)
    (tmp_path / "other/policy.zip").unlink()
    again, repeated = learned(problem, tmp_path / "other", **EVERYTHING)
    assert again.read_bytes() == whole.read_bytes() and repeated == curve


def test_a_policy_of_another_cluster_is_refused(problem, tmp_path):
    path, _ = learned(problem, tmp_path, candidates=["fixed"])
    other = problem_of(management={"illegal_degrees": "round_down", "most": 8})
    with pytest.raises(UserError, match="5 graphs"):
        AfterstateLearner().load(path, other)
    wider = problem_of(cluster={"groups": 5})
    assert wider.compiled[0].actions.tolist() == problem.compiled[0].actions.tolist()  # nothing that is counted differs
    with pytest.raises(UserError, match=r"ramp 4 4 2.*ramp 5 4 2"):
        AfterstateLearner().load(path, wider)


@pytest.mark.parametrize("form", ["table", "linear"])
def test_a_policy_of_as_many_other_graphs_is_refused(problem, tmp_path, form):
    """Tables are by a graph's place: those of five others say nothing of these."""
    path, _ = learned(problem, tmp_path, candidates=[form])
    turned = RampProblem(problem.scenario, problem.graphs[::-1])
    with pytest.raises(UserError, match=f"{problem.graphs[0].name}, .*{problem.graphs[-1].name}, "):
        AfterstateLearner().load(path, turned)
    counted = problem_of(jobs={"time_unit": "ms"})
    with pytest.raises(UserError, match=str(path)):
        AfterstateLearner().load(path, counted)


def test_a_policy_that_does_not_say_what_it_was_learned_for_is_held_against_numbers(problem, tmp_path):
    """So were all before it was stored; they are to be of use."""
    path, _ = learned(problem, tmp_path, candidates=["fixed"])
    checkpoint = read_checkpoint(path)
    assert [name for name, _ in checkpoint.meta["learned_for"]["graphs"]] == [graph.name for graph in problem.graphs]
    unit = problem.units("test")[0]
    scores = problem.rollout(AfterstateLearner().load(path, problem), unit).scores
    write_checkpoint(
        path, {key: value for key, value in checkpoint.meta.items() if key != "learned_for"}, checkpoint.arrays
    )
    assert problem.rollout(AfterstateLearner().load(path, problem), unit).scores == scores
    with pytest.raises(UserError, match="5 graphs"):
        AfterstateLearner().load(path, problem_of(management={"illegal_degrees": "round_down", "most": 8}))


def test_one_scenario_is_learned_on_at_a_time(problem, tmp_path):
    spec = dataclasses.replace(spec_of(), train_on=(Phase(("learned", "other"), 1),))
    with pytest.raises(UserError, match="train_on"):
        AfterstateLearner().learn({"learned": problem}, spec, 0, LearnPaths(None, tmp_path / "p.zip", tmp_path), None)


def test_masked_ppo_learns_through_the_stock_glue(tmp_path):
    problem = problem_of(episodes={"end": END, "train": 1, "validation": 1, "test": 1})
    learner, points = load_object(STUDY.learners["maskable_ppo"])(), []
    params = {"n_steps": 64, "batch_size": 32, "n_epochs": 1, "environment": {"mask": "blocks"}, "validate_every": 64}
    paths = [LearnPaths(None, tmp_path / f"{name}.zip", tmp_path / name) for name in ("ppo", "drawn")]
    for place, more in zip(paths, ({}, {"learning_rate": 1e-9}), strict=True):
        spec = PolicySpec("ppo", "learned", "maskable_ppo", params | more, train_on=(Phase(("learned",), 128),))
        learner.learn(
            {"learned": problem}, spec, 0, place, lambda metric, value, **at: points.append((metric, value, at))
        )
    assert min(changes(*(place.checkpoint for place in paths)).values()) > 1e-4
    assert any(place.get("split") == "validation" for *_, place in points)
    outcome = problem.rollout(learner.load(paths[0].checkpoint, problem), problem.units("test")[0])
    assert 0 <= outcome.scores["blocking_rate"] < 1
    assert "op_placement" not in set(outcome.details["jobs"]["cause"])


def test_features_say_what_is_free_and_when(problem):
    tables, outlook = problem.compiled
    count, size = len(tables.actions), summary_size(outlook)
    rows, own = np.zeros((count + 1, size + tables.servers)), np.empty(count + 1)
    ends = np.zeros(tables.servers)
    ends[:16] = 2500.0  # half of the cluster, for two and a half arrivals
    afterstates(tables, outlook, Situation(ends, 0.0, END, 0, 0), rows, own, np.empty(count + 1, np.uint64))
    assert np.isnan(own[:-1]).all()
    assert own[-1] == 0
    free = rows[-1, : len(outlook.offsets)]
    assert free.tolist() == [0.5, 0.5] + [1.0] * (len(free) - 2)
    assert rows[-1, size - 5 : size].tolist() == [0.5, 0.5, 1.0, 1.0, 1.0]  # quarters, then time to the end
    assert rows[-1, size:].max() == pytest.approx(2.5 / 48)
    assert [count_bits(np.uint64(mask)) for mask in (0, 1, 2**32 - 1, 2**64 - 1)] == [0, 1, 32, 64]


def test_whole_episodes_of_linear_values_decide_as_single_decisions_do(problem):
    """play_linear adds up scores offset by offset; here each decision is made of the features of all its
    afterstates.
    """
    (tables, outlook), random = problem.compiled, np.random.default_rng(0)
    arrivals = episode_arrivals(problem.simulation, tables, 2)
    rows, own = np.zeros((len(tables.actions) + 1, summary_size(outlook))), np.empty(len(tables.actions) + 1)
    masks, found = np.empty(len(tables.actions) + 1, np.uint64), []
    for spread in (0.0, 0.1, 0.5, 2.0):
        weights, ends, accepted = spread * random.normal(size=summary_size(outlook)), np.zeros(tables.servers), 0.0
        for time, graph, meets in zip(*(each.tolist() for each in arrivals[:3]), strict=True):
            afterstates(tables, outlook, Situation(ends, time, END, graph, meets), rows, own, masks)
            action = best_linear(weights, rows, own)
            if action != REJECT:
                occupy(ends, masks[action], time + tables.durations[graph, action])
                accepted += own[action]
        assert play_linear(tables, outlook, arrivals, END, weights) == accepted
        found.append(accepted)
    assert len(set(found)) > 2


def test_rollouts_of_linear_values_go_on_as_these_decide(problem):
    """Each sample is played on decision by decision, from the features of all afterstates."""
    (tables, outlook), random = problem.compiled, np.random.default_rng(1)
    tables = tables._replace(cut_off=True)
    futures, starts = draw_futures(problem.simulation, tables, random, 100), np.arange(0, 60, 15)
    weights, count, jobs = 0.5 * random.normal(size=summary_size(outlook)), len(tables.actions), 30
    rows, own, masks = np.zeros((count + 1, summary_size(outlook))), np.empty(count + 1), np.empty(count + 1, np.uint64)
    ends, time, every = np.repeat([0.0, 3000.0, 9000.0, 0.0], tables.servers // 4), 2000.0, (1 << count) - 1
    now, found = Situation(ends, time, END, 0, every), np.empty(count + 1)
    rollouts = Rollouts(fixed_table(tables, 4), weights, futures, jobs)
    rollout_returns(tables, outlook, rollouts, now, starts, found)
    afterstates(tables, outlook, now, rows, own, masks)
    chosen, first = masks.copy(), own.copy()
    for action in np.flatnonzero(np.isfinite(found)).tolist():
        total = 0.0
        for start in starts.tolist():
            after, clock = ends.copy(), time
            if action < count:
                occupy(after, chosen[action], time + tables.durations[0, action])
            for job in range(start, start + jobs):
                clock += futures.gaps[job]
                graph = futures.graphs[job]
                afterstates(tables, outlook, Situation(after, clock, END, graph, futures.meets[job]), rows, own, masks)
                best = best_linear(weights, rows, own)
                if best != REJECT:
                    occupy(after, masks[best], clock + tables.durations[graph, best])
                    total += own[best]
        assert found[action] == pytest.approx(first[action] + total / len(starts))
    assert np.isfinite(found).sum() > 2
    assert len(set(found[np.isfinite(found)])) > 1


def test_a_second_round_is_fitted_to_rollouts_of_the_linear_values(problem, tmp_path):
    rounds = {"candidates": ["linear", "network"], "tables": False, "second_episodes": 1, "second_samples": 4}
    first, curve = learned(problem, tmp_path / "a", **rounds)
    again, _ = learned(problem_of(), tmp_path / "b", **rounds)
    assert first.read_bytes() == again.read_bytes()
    steps = [place["step"] for (name, _), place in curve if name == "network_blocking_rate"]
    assert steps == [0, 1, 2]  # the base's rollouts, those of the linear values, both
    with pytest.raises(UserError, match="second_episodes"):
        learned(problem, tmp_path / "c", candidates=["network"], second_episodes=1)


def test_rollouts_of_learned_values_decide_at_decision_time(problem, tmp_path):
    path, _ = learned(problem, tmp_path, candidates=["linear_rollouts"], tables=False)
    policy, unit = AfterstateLearner().load(path, problem), problem.units("test")[0]
    assert (policy._kept.form, policy._kept.samples, policy._kept.weights is None) == ("rollouts", 4, False)
    assert 0 < problem.rollout(policy, unit).scores["blocking_rate"] < 1


def test_returns_of_an_episode_are_those_of_decisions_with_a_choice(problem):
    tables, outlook = problem.compiled
    arrivals = episode_arrivals(problem.simulation, tables, 1)
    random = np.random.default_rng(0)
    futures = draw_futures(problem.simulation, tables, random, 500)
    found, accepted, imagined = collect(
        tables, outlook, Rollouts(fixed_table(tables, 4), np.empty(0), futures, 12), arrivals, END, random, 4
    )
    assert (np.isfinite(found.returns) == np.isfinite(found.own)).all()
    assert (np.isfinite(found.returns).sum(axis=1) > 1).all()
    assert 0 < accepted <= len(arrivals.times)
    played = int(np.isfinite(found.returns).sum()) * 4  # rollouts, of 12 jobs each but for those that the end cuts off
    assert 0.8 * 12 * played < imagined < 12 * played
    assert make_outlook(tables, 1000.0).quarters.tolist() == outlook.quarters.tolist()


def test_the_regret_of_choices_leaves_actions_that_nobody_takes():
    """One unit cannot fit both: among good actions a feature counts against, among hopeless ones, of larger errors,
    for.
    """
    random, decisions = np.random.default_rng(0), 600
    feature, hopeless = random.uniform(-1, 1, size=(decisions, 3)), np.broadcast_to([0.0, 0.0, 1.0], (decisions, 3))
    returns = np.where(hopeless > 0, 2.5 * feature - 4, -0.5 * feature)
    own = np.zeros((decisions, 3))
    found = Returns(np.stack([feature, hopeless], axis=2).astype(np.float32), own, returns)

    def right(regret):
        network = fit_network(found, Fit(1, 30, 32, rate=1e-2, regret=regret), 3)
        chosen = [
            best_by_network(network, rows, none) for rows, none in zip(found.rows.astype(float), own, strict=True)
        ]
        return np.mean(np.array(chosen) % 3 == returns.argmax(axis=1))  # the last action is rejecting, -1

    assert right(0.0) < 0.5
    assert right(0.9) > 0.95


def test_of_several_fits_validation_keeps_one(problem):
    """The first is that of a single fit, so that more of them block at most as much."""

    def rate(fits):
        points, settings = (
            [],
            validate(AfterstateSettings, TINY | {"candidates": ["network"], "tables": False, "fits": fits}),
        )
        training = Training(problem, settings, 5, lambda metric, value, **_: points.append((metric, value)), Budget())
        (kept,) = training.candidates(1)
        assert points[-1] == ("network_blocking_rate", training.validated(kept))
        return points[-1][1]

    rates = [rate(fits) for fits in (1, 2, 6)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < rates[0]
