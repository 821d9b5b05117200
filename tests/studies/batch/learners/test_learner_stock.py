"""Stock learners on the batch study: each learns and acts; two rates, selected windows, a start that repeats a rule."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from stock_learning import PPO, REWARD, WORKLOAD, learn, problem_of

from schedlab.cli.main import main
from schedlab.config.contract import Budget, Phase
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.config.settings import PolicySettings
from schedlab.learning.stock.buffers import BUFFERS
from schedlab.studies.batch.env.env import BatchEnv
from schedlab.studies.batch.learners.adversary import describe
from schedlab.studies.batch.learners.cloning import _first_row, choices
from schedlab.studies.batch.learners.stock_policy import QueueNetworks, TwoRates, queue_policy
from schedlab.studies.batch.learners.stock_settings import STOCK_SETTINGS, BatchMaskablePPOSettings
from schedlab.studies.batch.learners.training_windows import TrainingProblem, rule_values
from schedlab.studies.batch.metrics import measures
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.rules import priority
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.study import check_policy
from schedlab.studies.batch.windows import first_job
from schedlab.workloads.prepare import make_trace
from schedlab.workloads.swf import write_swf

POLICY = {"name": "toy", "learner": {"name": "ppo"}, "seeds": [0], "train_on": [{"scenarios": ["drawn"], "steps": 1}]}
SHORT = {
    "ppo": PPO,
    "maskable_ppo": PPO,
    "a2c": {"environments": 2, "n_steps": 32, "environment": REWARD},
    "dqn": {"learning_starts": 20, "net_arch": [16], "environment": REWARD},
    "ddpg": {"learning_starts": 20, "net_arch": [16], "environment": REWARD},
}


@pytest.fixture(scope="module")
def problem() -> BatchProblem:
    return problem_of()


@pytest.mark.parametrize("name", STOCK_SETTINGS)
def test_every_learner_gives_a_policy_that_runs_a_window_and_the_same_bytes_each_time(name, problem, tmp_path):
    learner, checkpoint, points = learn(name, problem, tmp_path / "one", **SHORT[name])
    again = learn(name, problem, tmp_path / "two", **SHORT[name])[1]
    assert checkpoint.read_bytes() == again.read_bytes()
    assert {metric for metric, _, _ in points} >= {"return", "learning_rate"} and points[0][2]["scenario"] == "drawn"
    policy, unit = learner.load(checkpoint, problem), problem.units("test")[0]
    outcome = problem.rollout(policy, unit)
    assert len(outcome.details["jobs"]) == 32 and outcome.scores == problem.rollout(policy, unit).scores


def test_rollouts_leave_padding_out_and_the_policy_is_the_same(problem, tmp_path, monkeypatch):
    values = PPO | {"environment": {"layout": "rlscheduler"}}
    held = []

    class Watched(BUFFERS["maskable_ppo"]):
        def get(self, *arguments):
            held.append(sum(part.size for part in self.observations._told) / (128 * len(self.values)))
            return super().get(*arguments)

    monkeypatch.setitem(BUFFERS, "maskable_ppo", Watched)
    without = learn("maskable_ppo", problem, tmp_path / "without", **values)[1]
    few = max(held)
    monkeypatch.delattr(BatchEnv, "padding")
    whole = learn("maskable_ppo", problem, tmp_path / "whole", **values)[1]
    assert without.read_bytes() == whole.read_bytes()
    assert 0 < few < max(held) / 2


@pytest.mark.parametrize("backfill", ["legacy", "easy", "conservative"])
def test_weights_and_masks_agree_under_backfilling(backfill, tmp_path):
    problem = problem_of(backfill=backfill)
    for name in ("maskable_ppo", "ddpg"):
        learner, checkpoint, _ = learn(name, problem, tmp_path / name, **SHORT[name])
        assert len(problem.rollout(learner.load(checkpoint, problem), problem.units("test")[0]).details["jobs"]) == 32


@pytest.mark.parametrize(
    ("network", "value", "environment"),
    [
        ("kernel", "rows", {"layout": "rlscheduler", "noop": True}),
        ("actor_kernel", "small", {"layout": "dissertation"}),
        ("attention", "pooled", {}),
        ("mlp_v2", "large", {"layout": "rlscheduler"}),
        ("layers", "pooled", {}),
    ],
)
def test_every_network_learns_whatever_the_scenario_shows(network, value, environment, problem, tmp_path):
    values = PPO | {"network": network, "value": value, "environment": REWARD | environment}
    learner, checkpoint, _ = learn("maskable_ppo", problem, tmp_path, **values)
    policy = learner.load(checkpoint, problem)
    assert policy.environment.layout == environment.get("layout", "features")
    problem.rollout(policy, problem.units("test")[0])


@pytest.mark.parametrize(
    ("name", "steps", "values"),
    [
        ("maskable_ppo", 512 * 9, {"n_steps": 64, "batch_size": 128, "n_epochs": 8}),
        pytest.param(
            "a2c",
            768 * 16,
            {"n_steps": 96, "normalize_advantage": True, "gae_lambda": 0.97, "learning_rate": 1e-2},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_learners_find_a_better_order_than_that_of_submission(name, steps, values, tmp_path):
    """On a busy machine, on windows that nothing was learned on."""
    workload = WORKLOAD | {"lublin": {"jobs": 900, "processors": 32, "load": 4.0}}
    problem = problem_of(workload=workload, windows={"length": 96})
    values = {"environments": 8, "learning_rate": 3e-3, "gamma": 1.0, "environment": REWARD, **values}
    learner, checkpoint, points = learn(name, problem, tmp_path, Phase(("drawn",), steps), **values)
    own, fcfs = (scores_of(problem, each).mean() for each in (learner.load(checkpoint, problem), rule(problem, "fcfs")))
    returns = [value for metric, value, _ in points if metric == "return"]
    assert np.mean(returns[-3:]) > np.mean(returns[:2])
    assert own < 0.9 * fcfs


def rule(problem, name):
    return RULE_MAKERS[name]({}, problem, 0)


def scores_of(problem, policy) -> np.ndarray:
    """The mean logarithm of the bounded slowdown of each test window."""
    return np.array([problem.rollout(policy, unit).scores["log_bsld"] for unit in problem.units("test")])


def settings(**values) -> BatchMaskablePPOSettings:
    return validate(BatchMaskablePPOSettings, values)


def starts(seen: TrainingProblem, draws: int = 12) -> set[int]:
    return {seen.env(unit, 0).reset(seed=seed)[1]["start"] for unit in seen.units("train") for seed in range(draws)}


def test_episodes_of_training_begin_anywhere_in_the_training_part(problem):
    found = starts(TrainingProblem(problem, settings()))
    assert len(found) > 30 and min(found) >= 0 and max(found) <= 200 - 32 and {start % 32 for start in found} != {0}
    assert starts(TrainingProblem(problem, settings(training_starts="apart"))) == {0, 32, 64, 96, 128, 160}
    seen = TrainingProblem(problem, settings(keep_windows="range", keep_range=(0.0, 1e9)))
    assert seen.units("validation") == problem.units("validation")
    for unit in seen.units("validation"):
        assert seen.env(unit, 0).reset(seed=3)[1]["start"] == 200


def test_windows_to_learn_on_may_have_any_length_up_to_a_longest(problem):
    seen, drawn = TrainingProblem(problem, settings(longest_window=40)), set()
    for unit in seen.units("train"):
        env = seen.env(unit, 0)
        env.reset(seed=1)
        for _ in range(60):
            info = env.reset()[1]
            drawn.add(info["jobs"])
            assert info["start"] + info["jobs"] <= 200  # the end of the training part
    assert drawn == set(range(32, 41))
    assert {start for unit in seen.units("train") for start in seen._starts(unit)} == set(range(200 - 40 + 1))
    for unit in seen.units("validation"):
        assert seen.env(unit, 0).reset(seed=3)[1]["jobs"] == 32
    with pytest.raises(UserError, match="32 to 20"):
        TrainingProblem(problem, settings(longest_window=20)).env(problem.units("train")[0], 0)
    with pytest.raises(UserError, match="longest_window"):
        settings(longest_window=40, training_starts="apart")
    assert "longest_window" not in settings().model_dump(mode="json")


@pytest.mark.parametrize(
    "keep", [{"keep_windows": "range", "keep_range": (5.0, 20.0)}, {"keep_windows": "median", "keep_rule": "f1"}]
)
def test_windows_are_kept_by_what_a_rule_makes_of_them(keep, problem):
    made = settings(**keep)
    values = rule_values(problem, made.keep_rule)
    window = problem.rollout(rule(problem, made.keep_rule), problem.units("train")[2])
    assert values[64] == pytest.approx(window.scores["avg_bsld"], rel=1e-9) and len(values) == 200 - 32 + 1
    low, high = made.keep_range if made.keep_windows == "range" else (np.median(values), 2 * values.mean())
    good = set(np.flatnonzero((values > low) & (values <= high)).tolist())
    seen = TrainingProblem(problem, made)
    assert 0 < len(good) < len(values)
    assert {start for unit in seen.units("train") for start in seen._starts(unit)} == good
    assert starts(seen) <= good
    with pytest.raises(UserError, match=r"learner\.keep_windows"):
        TrainingProblem(problem, settings(keep_windows="range", keep_range=(1e8, 1e9))).units("train")


@pytest.mark.parametrize("name", ["maskable_ppo", "ddpg"])
def test_the_command_runs_a_learned_policy_by_its_file(name, problem, tmp_path, capsys):
    learner, checkpoint, _ = learn(name, problem, tmp_path, **SHORT[name] | {"environment": REWARD | {"plan": True}})
    write_swf(tmp_path / "trace.swf", make_trace(problem.scenario.workload)[0])
    unit = problem.units("test")[1]
    window = ["--trace", str(tmp_path / "trace.swf"), "--start", str(first_job(unit)), "--jobs", "32"]
    assert (
        main(
            [
                "batch",
                "evaluate",
                *window,
                "--policy",
                f"learned:{checkpoint}",
                "--starts",
                str(tmp_path / "starts.csv"),
            ]
        )
        == 0
    )
    expected = problem.rollout(learner.load(checkpoint, problem), unit)
    assert json.loads(capsys.readouterr().out)["avg_bsld"] == expected.scores["avg_bsld"]
    starts = np.loadtxt(tmp_path / "starts.csv", delimiter=",", skiprows=1)
    assert starts[:, 1].tolist() == expected.details["jobs"]["start"].tolist()


def test_the_second_phase_of_a_curriculum_learns_on_all_windows(problem, tmp_path):
    phases = Phase(("drawn",), 128, {"keep_windows": "median"}), Phase(("drawn",), 256)
    _, checkpoint, points = learn("maskable_ppo", problem, tmp_path, *phases, **PPO)
    assert checkpoint.exists() and {place["phase"] for _, _, place in points} == {0, 1}
    given = POLICY | {"train_on": [{"scenarios": ["drawn"], "steps": 1, "params": dict(phases[0].params)}]}
    assert not list(check_policy(validate(PolicySettings, given), settings()))


@pytest.mark.parametrize("masked", [True, False])
def test_actions_are_weighed_as_by_the_distribution(masked, problem):
    made = (
        settings(environment={"layout": "rlscheduler"})
        if masked
        else validate(STOCK_SETTINGS["ppo"], {"value": "rows"})
    )
    seen = TrainingProblem(problem, made)
    observations, masks, chosen = (torch.from_numpy(each) for each in choices([seen], ("f1",), 4, 2, Budget()))
    env = seen.env(seen.units("train")[0], 0)
    kind, keywords = queue_policy(made, env.observation_space, env.action_space)
    policy = kind(env.observation_space, env.action_space, lambda _: 1e-3, **keywords)
    torch.manual_seed(0)
    for part in policy.action_net.parameters():
        torch.nn.init.normal_(part, std=0.3)
    given = {"action_masks": masks} if masked else {}
    ours = policy.evaluate_actions(observations, chosen, **given)
    theirs = super(QueueNetworks, policy).evaluate_actions(observations, chosen, **given)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    gradients = [
        torch.autograd.grad((each[1] * 2 + each[2]).mean(), list(policy.action_net.parameters()))
        for each in (ours, theirs)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


def test_two_rates_are_those_of_two_optimisers():
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(3)) for _ in range(2)]
    alone = [torch.nn.Parameter(each.detach().clone()) for each in weights]
    both = TwoRates([{"params": weights[:1]}, {"params": weights[1:], "factor": 10 / 3}], lr=3e-4)
    each = [torch.optim.Adam(alone[:1], lr=3e-4), torch.optim.Adam(alone[1:], lr=1e-3)]
    for _ in range(5):
        for optimizers, parameters in (((both,), weights), (each, alone)):
            for optimizer in optimizers:
                optimizer.zero_grad()
            sum((parameter**4).sum() for parameter in parameters).backward()
            for optimizer in optimizers:
                optimizer.step()
    torch.testing.assert_close(weights, alone)
    assert both.param_groups[1]["lr"] == 3e-4


def test_a_clone_chooses_as_its_rule_does(problem, tmp_path):
    values = {"clone_rule": "sjf", "clone_windows": 12, "clone_passes": 80, "clone_rate": 0.01, "learning_rate": 1e-9}
    learner, checkpoint, _ = learn("maskable_ppo", problem, tmp_path, **PPO, **values)
    policy = learner.load(checkpoint, problem)
    own, sjf, fcfs = (scores_of(problem, each) for each in (policy, rule(problem, "sjf"), rule(problem, "fcfs")))
    assert abs(own - sjf).mean() < 0.2 * abs(fcfs - sjf).mean()


def test_the_expert_of_a_window_is_the_best_rule_beside_what_runs_at_its_begin():
    """What is shown is what that rule, stepped through the windows that are drawn, ends with the lowest mean by."""
    problem = problem_of(
        workload=WORKLOAD | {"lublin": WORKLOAD["lublin"] | {"load": 3.0}}, windows={"length": 12}, warm_start=True
    )
    seen, rng, differs = TrainingProblem(problem, settings()), generator(5, "batch", "clone-windows"), 0
    expected = []
    for _ in range(8):
        units = seen.units("train")
        unit, found = units[int(rng.integers(len(units)))], {}
        seed = int(rng.integers(2**31))
        for name in ("sjf", "f1"):
            env = seen.env(unit, 0).unwrapped
            _, info = env.reset(seed=seed)
            jobs = problem.jobs.take(slice(info["start"], info["start"] + info["jobs"]))
            shown, over = [], False
            while not over:
                mask = env.action_masks()
                row = _first_row(env, priority(name, jobs), mask)
                if mask.sum() > 1:
                    shown.append(row)
                _, _, over, _, info = env.step(row)
            found[name] = info["score"], shown
        best = min(found, key=lambda name: found[name][0])
        expected += found[best][1]
        cold = min(found, key=lambda name: measures(simulate(jobs, problem.machine, name), problem.machine)["avg_bsld"])
        differs += cold != best
    assert differs  # an empty machine would name another expert
    assert choices([seen], ("sjf", "f1"), 8, 5, Budget())[2].tolist() == expected


def test_a_discriminator_pays_less_and_less_and_learns_whose_decisions_they_are():
    problem = problem_of(workload=WORKLOAD | {"lublin": WORKLOAD["lublin"] | {"load": 5.0}})
    made = settings(expert_share=0.5, expert_steps=2000, expert_windows=6, expert_rate=1e-2)
    seen = TrainingProblem(problem, made)
    pairs = [
        [each.env(unit, 3) for each in (seen, TrainingProblem(problem, settings()))] for unit in problem.units("train")
    ]
    assert not hasattr(seen.env(seen.units("validation")[0], 3), "adversary")
    own, paid, rng = [], [], np.random.default_rng(0)
    for episode in range(70):
        env, plain = pairs[episode % len(pairs)]
        env.reset(seed=episode)
        plain.reset(seed=episode)
        over = False
        while not over:
            mask, share = env.action_masks(), env.adversary.share
            row = int(rng.choice(np.flatnonzero(mask)))
            if mask.sum() > 1:
                own.append(describe(env.unwrapped.layout, *env._seen, row))
            _, reward, over, _, _ = env.step(row)
            paid.append((share, reward - (1 - share) * plain.step(row)[1]))
    shares, ours = np.array(paid).T
    assert shares[0] == 0.5 and shares[1000] == 0.25 and not shares[2000:].any() and not np.abs(ours[2000:]).any()
    assert (ours[:2000] >= 0).all() and 600 < (ours[:2000] > 0).sum() < 2000  # not where there was no choice
    assert ours[ours > 0][0] < 1.0 / problem.scenario.windows.length  # of the order of 1 in the sum over a window
    expert = [
        describe(env.unwrapped.layout, *each)
        for each in zip(*choices([seen], ("sjf", "f1"), 6, 1, Budget()), strict=True)
    ]
    with torch.no_grad():
        told = [env.adversary.network(torch.from_numpy(np.stack(each))).mean() for each in (expert, own)]
    assert told[0] > 0 > told[1]  # decisions of the expert in windows that were not shown, and those of chance


def test_learning_with_a_discriminator_gives_the_same_bytes_interrupted_or_not(problem, tmp_path, monkeypatch):
    values = PPO | {"expert_share": 0.5, "expert_steps": 256, "expert_windows": 3, "save_every": 128}
    phases = Phase(("drawn",), 256), Phase(("drawn",), 256)
    whole = learn("maskable_ppo", problem, tmp_path / "whole", *phases, **values)[1].read_bytes()
    alone = learn("maskable_ppo", problem, tmp_path / "alone", *phases, **PPO)[1].read_bytes()
    from schedlab.learning.stock import run as stable_baselines_run

    record, calls = stable_baselines_run.Watch._record, []

    def record_and_stop(self):
        record(self)
        calls.append(self.job.phase)
        if calls == [0, 0, 1]:
            raise KeyboardInterrupt

    monkeypatch.setattr(stable_baselines_run.Watch, "_record", record_and_stop)
    monkeypatch.setitem(PPO, "record_every", 1)
    with pytest.raises(KeyboardInterrupt):
        learn("maskable_ppo", problem, tmp_path / "cut", *phases, **values)
    monkeypatch.undo()
    assert learn("maskable_ppo", problem, tmp_path / "cut", *phases, **values)[1].read_bytes() == whole != alone


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"value_learning_rate": 1e-2, "clone_rule": "f1", "clone_passes": 1}, id="clone"),
        pytest.param({"expert_share": 0.5, "expert_steps": 300, "expert_windows": 3}, id="adversary"),
    ],
)
def test_an_interrupted_job_goes_on_to_the_same_bytes(values, problem, tmp_path, monkeypatch):
    from schedlab.studies.batch.learners import adversary

    monkeypatch.setattr(
        adversary, "EVERY", 50
    )  # so that the discriminator has learned, and holds decisions to learn from, at each save
    values = PPO | {"save_every": 128} | values
    whole = learn("maskable_ppo", problem, tmp_path / "whole", Phase(("drawn",), 384), **values)[1].read_bytes()
    from schedlab.learning.stock import run as stable_baselines_run

    save, saved = stable_baselines_run.Watch._save, []

    def save_and_stop(self):
        save(self)
        saved.append(self.step)
        raise KeyboardInterrupt

    monkeypatch.setattr(stable_baselines_run.Watch, "_save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        learn("maskable_ppo", problem, tmp_path / "cut", Phase(("drawn",), 384), **values)
    monkeypatch.setattr(stable_baselines_run.Watch, "_save", save)
    assert saved == [128]
    assert learn("maskable_ppo", problem, tmp_path / "cut", Phase(("drawn",), 384), **values)[1].read_bytes() == whole


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("maskable_ppo", {"clone_rule": "sjff"}, "learner.clone_rule"),
        ("maskable_ppo", {"expert_rules": ["f1", "f9"]}, "learner.expert_rules"),
        ("ppo", {"keep_rule": "best"}, "learner.keep_rule"),
        ("a2c", {"environment": {"baseline": "none"}}, "learner.environment.baseline"),
        (
            "dqn",
            {"environment": {"layout": "rlscheduler", "oracle_runtime": True}},
            "learner.environment.oracle_runtime",
        ),
        ("ddpg", {"environment": {"layout": "rlscheduler"}}, "learner.environment.layout"),
    ],
)
def test_mistakes_of_a_policy_are_told_before_a_run(name, values, told):
    found = list(check_policy(validate(PolicySettings, POLICY), validate(STOCK_SETTINGS[name], values)))
    assert [error.where for error in found] == [told]


@pytest.mark.parametrize(
    "values",
    [{"net_arch": [8]}, {"network": "layers", "clone_rule": "sjf"}, {"network": "layers", "value_learning_rate": 1e-3}],
)
def test_values_that_would_not_count_are_refused(values):
    with pytest.raises(UserErrors, match="layers"):
        settings(**values)


@pytest.mark.parametrize("reward", ["sigmoid", "direct"])
def test_validation_scores_what_counts_whatever_is_rewarded(problem, tmp_path, reward):
    environment = {"reward": reward}
    params = {**PPO, "environment": environment, "validate_every": 128}
    learner, checkpoint, points = learn("ppo", problem, tmp_path, Phase(("drawn",), 256), **params)
    scores = [value for metric, value, place in points if metric == "return" and place.get("split") == "validation"]
    policy, units = learner.load(checkpoint, problem), problem.units("validation")
    assert len(scores) == 2
    assert max(scores) == pytest.approx(
        -np.mean([problem.rollout(policy, unit).scores["avg_bsld"] for unit in units]), rel=1e-6
    )


def test_validation_by_rewards_adds_them_up(problem):
    settings = validate(BatchMaskablePPOSettings, {"environment": {"reward": "sigmoid"}, "validate_by": "reward"})
    unit = problem.units("validation")[0]
    env = TrainingProblem(problem, settings).env(unit, 0)
    env.reset(seed=0)
    assert 0 < env.step(0)[1] <= 0.5
