"""Stock learners on toy problems: each learns, the same seed gives the same bytes however a job is cut, and mistakes
are told.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from toy_problems import Balance, InDict, MaskedBandit, NoMask, Several, Target, learn, mean_return

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.learning.checkpoints import read_checkpoint
from schedlab.learning.episode_streams import EpisodeStream
from schedlab.learning.stock.learner import StableBaselinesLearner
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS, MaskablePPOSettings, PPOSettings

QUICK = {"learning_rate": 3e-3, "net_arch": [16]}
LEARNED = {  # algorithm -> environment, steps, values, return that a policy without learning stays far below
    "ppo": (Balance, 4096, {"n_steps": 128, "environments": 4, "batch_size": 128}, 18.0),
    "maskable_ppo": (MaskedBandit, 2048, {"n_steps": 128}, 4.9),
    "a2c": (MaskedBandit, 3000, {"n_steps": 16, "environments": 4}, 4.5),
    "dqn": (MaskedBandit, 2000, {"target_update_interval": 100, "exploration_fraction": 0.5, "gamma": 0.0}, 4.5),
    "ddpg": (Target, 1200, {"gamma": 0.0, "batch_size": 64}, -0.2),
}
SHORT = {  # algorithm -> environment and values of a job of some updates
    "ppo": (
        Balance,
        {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "environments": 2, "learning_rate_schedule": "linear"},
    ),
    "maskable_ppo": (MaskedBandit, {"n_steps": 32, "batch_size": 16, "n_epochs": 2, "target_kl": 0.05}),
    "a2c": (Target, {"n_steps": 4, "environments": 3, "record_every": 10}),
    "dqn": (
        partial(InDict, MaskedBandit()),
        {
            "environments": 2,
            "buffer_size": 60,
            "learning_starts": 20,
            "target_update_interval": 16,
            "exploration_fraction": 0.7,
            "record_every": 10,
        },
    ),
    "ddpg": (Target, {"buffer_size": 90, "learning_starts": 20, "batch_size": 8, "n_steps": 2, "record_every": 10}),
}


def make(environment) -> gym.Env:
    """A fresh environment of a class, or of a wrapper around one."""
    return environment() if isinstance(environment, type) else InDict(MaskedBandit())


def short(algorithm: str, folder, *phases, problem=None, **more):
    environment, values = SHORT[algorithm]
    problem = problem or Several(partial(make, environment))
    return learn(
        StableBaselinesLearner(algorithm),
        problem,
        folder,
        *(phases or (160,)),
        **{**QUICK, **values, "save_every": 1, **more},
    )


@pytest.mark.parametrize("algorithm", LEARNED)
def test_every_algorithm_learns(algorithm, tmp_path):
    environment, steps, values, wanted = LEARNED[algorithm]
    learner, problem = StableBaselinesLearner(algorithm), Several(environment, 20)
    untrained, _ = learn(learner, problem, tmp_path / "untrained", 1, **{**QUICK, **values, "learning_rate": 1e-9})
    checkpoint, points = learn(learner, problem, tmp_path, steps, **QUICK, **values)
    assert mean_return(learner.load(checkpoint, problem), problem) > wanted
    assert mean_return(learner.load(untrained, problem), problem) < wanted
    returns = [value for (metric, _), value in points.items() if metric == "return"]
    assert returns[-1] > returns[0]


def test_without_a_gpu_a_learner_that_asks_for_one_learns_on_the_processor_and_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    asked, _ = short("ppo", tmp_path / "asked", device="cuda")
    plain, _ = short("ppo", tmp_path / "plain", device="cpu")
    assert any("no CUDA device" in record.getMessage() for record in caplog.records)
    one, other = (read_checkpoint(path, "stable-baselines") for path in (asked, plain))
    assert one.arrays.keys() == other.arrays.keys() and all(
        (one.arrays[name] == other.arrays[name]).all() for name in one.arrays
    )
    assert (
        one.meta["settings"]["device"] == "cuda" and "device" not in other.meta["settings"]
    )  # whose hash is what it always was


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
@pytest.mark.parametrize("algorithm", SHORT)
def test_every_algorithm_learns_on_a_gpu_and_acts_on_the_processor(algorithm, tmp_path):
    checkpoint, points = short(algorithm, tmp_path, device="cuda", validate_every=40)
    learner, problem = StableBaselinesLearner(algorithm), Several(partial(make, SHORT[algorithm][0]))
    assert points and np.isfinite(mean_return(learner.load(checkpoint, problem), problem))


class Cut(gym.Wrapper):
    """Counts the decisions of all environments of a problem and stops the job at one of them."""

    def __init__(self, env: gym.Env, counter: list[int], at: int) -> None:
        super().__init__(env)
        self.counter, self.at = counter, at

    def step(self, action):
        self.counter[0] += 1
        if self.counter[0] == self.at:
            raise KeyboardInterrupt
        return super().step(action)


@pytest.mark.parametrize("algorithm", SHORT)
def test_same_seed_same_bytes_and_an_interrupted_job_goes_on(algorithm, tmp_path):
    validation = {"validate_every": 40, "validation_units": 2}
    phases = Phase(("one",), 100), Phase(("one",), 60, {"gamma": 0.5})

    def job(folder, seed, at=0):
        counter = [0]
        problem = Several(lambda: Cut(make(SHORT[algorithm][0]), counter, at))
        return *short(algorithm, tmp_path / folder, *phases, seed=seed, problem=problem, **validation), counter[0]

    whole, again, other = job("whole", 1), job("again", 1), job("other", 2)
    assert whole[0].read_bytes() == again[0].read_bytes() != other[0].read_bytes()
    assert whole[1] == again[1]
    for places in ((70,), (33, 90), (whole[2] - 5, 7)):
        folder, seen = f"cut-{places[0]}", {}
        for at in (*places, 0):
            checkpoint, points, decisions = job(folder, 1, at)
            assert (checkpoint is None) == bool(at)
            assert all(seen.get(place, value) == value for place, value in points.items())
            seen |= points
        assert decisions < whole[2]  # it did not begin anew
        assert checkpoint.read_bytes() == whole[0].read_bytes()
        assert seen == whole[1]


def test_all_phases_and_validation_count_in_the_budget(tmp_path):
    def spent(folder, **more):
        _, points = short("a2c", tmp_path / folder, 36, 24, **more)
        places = [dict(place) for (_, place) in points]
        return max(place["decisions"] for place in places), max(place["episodes"] for place in places)

    assert spent("plain") == (60, 3 * (4 + 2))  # three environments, episodes of three decisions
    assert spent("validated", validate_every=12, validation_units=2) == (60 + 5 * 2 * 3, 18)


def test_progress_of_another_job_or_damaged_is_not_taken_up(tmp_path):
    whole, _ = short("dqn", tmp_path / "whole", seed=1)
    short("dqn", tmp_path / "cut", seed=2)
    checkpoint, _ = short("dqn", tmp_path / "cut", seed=1)
    assert checkpoint.read_bytes() == whole.read_bytes()
    (tmp_path / "cut/progress/learning.zip").write_bytes(b"half a zi")
    checkpoint, _ = short("dqn", tmp_path / "cut", seed=1)
    assert checkpoint.read_bytes() == whole.read_bytes()


def test_global_streams_are_left_as_they_were(tmp_path):
    before = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    short("ddpg", tmp_path)
    after = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    assert np.array_equal(before[0][1], after[0][1]) and before[0][2:] == after[0][2:]
    assert torch.equal(before[1], after[1])


def test_nothing_is_written_beside_the_job_and_nothing_is_printed(tmp_path, monkeypatch, capfd):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for algorithm in SHORT:
            short(algorithm, tmp_path / "job" / algorithm)
    assert capfd.readouterr() == ("", "")
    assert {path.name for path in tmp_path.iterdir()} == {"temporary", "job"}
    left = [path for path in (tmp_path / "temporary").rglob("*") if not path.name.startswith("torchinductor_")]
    assert not left  # torch makes its compiler's folder, empty, in the first process that asks for an optimiser


def test_loading_a_policy_does_not_import_the_compiler_of_torch(tmp_path):
    learn(StableBaselinesLearner("ddpg"), Several(Target), tmp_path, 8)
    code = (
        "import sys; from toy_problems import Several, Target; from schedlab.learning.stock.learner import "
        "StableBaselinesLearner; "
        f"StableBaselinesLearner('ddpg').load({str(tmp_path / 'policy.zip')!r}, Several(Target)); "
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert done.stdout.strip() == "False"


def test_every_round_takes_each_unit_once_in_an_order_of_the_seed():
    problems = {name: Several(Target, 5) for name in ("a", "b")}
    streams = [EpisodeStream(problems, ("a", "b"), seed) for seed in (1, 1, 2)]
    orders = [[(scenario, unit.id) for scenario, unit in map(stream.unit_of, range(30))] for stream in streams]
    assert orders[0] == orders[1] != orders[2]
    for turn in range(3):
        assert len(set(orders[0][10 * turn : 10 * turn + 10])) == 10
    assert orders[0][:10] != orders[0][10:20]


def test_environments_are_made_once_a_unit_and_lie_in_training_units(tmp_path):
    problem = Several(MaskedBandit, 6)
    learn(StableBaselinesLearner("maskable_ppo"), problem, tmp_path, 256, **QUICK, n_steps=32, environments=2)
    made = [name for name, _ in problem.made]
    assert set(made) == {f"train-{number}" for number in range(6)}
    assert len(made) <= 1 + 6 + 2  # for the spaces; one a unit; where a round ends, two may run the same unit


def test_masked_learning_never_takes_a_forbidden_action_and_unmasked_does(tmp_path):
    for algorithm, forbidden in (("maskable_ppo", False), ("ppo", True)):
        problem = Several(MaskedBandit)
        learn(StableBaselinesLearner(algorithm), problem, tmp_path / algorithm, 256, **QUICK, n_steps=64)
        assert bool(sum(env.forbidden for _, env in problem.made)) is forbidden


@pytest.mark.parametrize("algorithm", ["ppo", "maskable_ppo", "a2c", "dqn"])
def test_learned_policies_keep_to_masks(algorithm, tmp_path):
    learner, problem = StableBaselinesLearner(algorithm), Several(MaskedBandit)
    checkpoint, _ = learn(
        learner, problem, tmp_path, 64, **({"n_steps": 32, "batch_size": 32} if "ppo" in algorithm else {})
    )
    policy = learner.load(checkpoint, problem)
    observation = np.array([0, 1, 0, 0], np.float32)
    best = policy.act(observation, np.ones(4, bool))
    mask = np.arange(4) != best
    assert policy.act(observation, mask) != best
    chances = policy.probabilities(observation, mask)
    assert chances[best] == 0 and chances.sum() == pytest.approx(1)


def test_sampling_begins_anew_with_each_unit(tmp_path):
    learner, problem = StableBaselinesLearner("maskable_ppo"), Several(MaskedBandit)
    checkpoint, _ = learn(learner, problem, tmp_path, 32, n_steps=32, batch_size=32, acting="sample")
    policy, units, drawn = learner.load(checkpoint, problem), problem.units("test"), []
    for unit in (units[0], units[0], units[1]):
        policy.reset(unit)
        drawn.append([policy.act(np.zeros(4, np.float32), np.ones(4, bool)) for _ in range(40)])
    assert drawn[0] == drawn[1] != drawn[2]
    assert policy.stochastic and len(set(drawn[0])) == 4


def test_sampled_vectors_scatter_around_the_greedy_one(tmp_path):
    actions = {}
    for acting in ("greedy", "sample"):
        learner, problem = StableBaselinesLearner("ppo"), Several(Target)
        checkpoint, _ = learn(learner, problem, tmp_path / acting, 1024, **QUICK, n_steps=256, acting=acting)
        policy = learner.load(checkpoint, problem)
        policy.reset(problem.units("test")[0])
        actions[acting] = np.array([policy.act(np.array([0.1], np.float32), None) for _ in range(200)])
    assert np.ptp(actions["greedy"]) == 0 < actions["sample"].std()
    assert actions["sample"].mean() == pytest.approx(actions["greedy"].mean(), abs=0.3)
    assert np.abs(actions["sample"]).max() <= 2.0


def test_a_parent_is_where_learning_starts(tmp_path):
    learner, problem = StableBaselinesLearner("dqn"), Several(MaskedBandit)
    values = {**QUICK, "target_update_interval": 100, "exploration_fraction": 0.5, "gamma": 0.0}
    parent, _ = learn(learner, problem, tmp_path / "parent", 2000, **values)
    child, _ = learn(learner, problem, tmp_path / "child", 40, start=parent, **values)
    orphan, _ = learn(learner, problem, tmp_path / "orphan", 40, **values)
    assert (
        mean_return(learner.load(child, problem), problem) == 5.0 > mean_return(learner.load(orphan, problem), problem)
    )


class Misleading(Several):
    """What is learned in training is wrong in validation."""

    def env(self, unit, seed):
        del seed
        return MaskedBandit(shift=int(unit.split == "train"))


def test_the_best_parameters_on_validation_units_are_kept(tmp_path):
    learner, problem = StableBaselinesLearner("maskable_ppo"), Misleading(MaskedBandit, 10)
    values = {"n_steps": 64, "net_arch": [16], "learning_rate": 0.01}
    parent, _ = learn(learner, Several(MaskedBandit, 10), tmp_path / "parent", 1024, **values)
    last, _ = learn(learner, problem, tmp_path / "last", 512, start=parent, **values)
    kept, points = learn(learner, problem, tmp_path / "kept", 512, start=parent, **values, validate_every=128)
    scores = {
        dict(place)["step"]: value
        for (metric, place), value in points.items()
        if dict(place).get("split") == "validation"
    }
    assert list(scores) == [128, 256, 384, 512]
    best = read_checkpoint(kept).meta["kept_step"]
    assert best == max(scores, key=scores.get) and scores[best] > scores[512]
    assert mean_return(learner.load(kept, problem), problem, "validation") == pytest.approx(scores[best])
    assert mean_return(learner.load(last, problem), problem, "validation") == pytest.approx(scores[512])


@pytest.mark.parametrize("algorithm", ["maskable_ppo", "dqn"])
@pytest.mark.parametrize("validations", [1, 3])
def test_a_phase_ends_after_validations_without_a_new_best(algorithm, validations, tmp_path):
    values = {
        "learning_rate": 1e-12,
        "validate_every": 32,
        "stop_after": validations,
    }  # the first validation stays the best
    phases = Phase(("one",), 400), Phase(("one",), 64, {"stop_after": None})

    def job(folder, at=0):
        counter = [0]
        problem = Several(lambda: Cut(make(SHORT[algorithm][0]), counter, at))
        return *short(algorithm, tmp_path / folder, *phases, problem=problem, **values), counter[0]

    checkpoint, points, decisions = job("whole")
    places = [dict(place) for metric, place in points if metric == "return"]
    scored = [(place["phase"], place["step"]) for place in places if place.get("split") == "validation"]
    assert scored == [(0, 32 * number) for number in range(1, 2 + validations)] + [(1, 32), (1, 64)]
    assert max(place["step"] for place in places if place["phase"] == 0) == 32 * (1 + validations)
    for at in (60, decisions - 70):
        assert job(f"cut-{at}", at)[0] is None
        again, _, more = job(f"cut-{at}")
        assert again.read_bytes() == checkpoint.read_bytes() and more < decisions


def test_phases_change_values_and_scenarios(tmp_path):
    problems = {"straight": Several(MaskedBandit), "shifted": Several(partial(MaskedBandit, 1))}
    learner = StableBaselinesLearner("maskable_ppo")
    phases = Phase(("straight",), 1024), Phase(("shifted",), 2048, {"learning_rate": 0.01})
    checkpoint, points = learn(learner, problems, tmp_path, *phases, **QUICK, n_steps=128)
    policy = learner.load(checkpoint, problems["shifted"])
    assert mean_return(policy, problems["shifted"]) > 4.5 > mean_return(policy, problems["straight"])
    rates = {
        (dict(place)["phase"], round(value, 6))
        for (metric, place), value in points.items()
        if metric == "learning_rate"
    }
    assert rates == {(0, 0.003), (1, 0.01)}
    seen = {
        (dict(place)["phase"], dict(place)["scenario"]) for (metric, place), _ in points.items() if metric == "return"
    }
    assert seen == {(0, "straight"), (1, "shifted")}


def test_rewards_are_scaled_while_learning_and_shown_as_they_are(tmp_path):
    points = [short("maskable_ppo", tmp_path / str(scale), reward_scale=scale)[1] for scale in (1.0, 1000.0)]
    first = [next(value for (metric, _), value in each.items() if metric == "return") for each in points]
    losses = [next(value for (metric, _), value in each.items() if metric == "value_loss") for each in points]
    assert first[0] == first[1] and losses[1] > 1e4 * losses[0]


class Named(MaskedBandit):
    """Its actions have names."""

    action_names = ("north", "east", "south", "west")


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_curves_show_the_first_decision_where_actions_have_names(algorithm, tmp_path):
    values = {"n_steps": 64} if algorithm == "ppo" else {"learning_starts": 10}
    learner, problem = StableBaselinesLearner(algorithm), Several(Named)
    checkpoint, points = learn(learner, problem, tmp_path, 128, **values, record_every=64)
    env = Named()
    observation, _ = env.reset(seed=problem.units("train")[0].seed)
    now = learner.load(checkpoint, problem).probabilities(observation, env.action_masks())
    last = [
        value for (metric, place), value in points.items() if metric == "probability" and dict(place)["step"] == 128
    ]
    assert last == pytest.approx(now, abs=1e-6) and sum(last) == pytest.approx(1)
    named = [dict(dict(place)["of"])["action"] for metric, place in points if metric == "probability"]
    assert named.count("north") == 2


ERRORS = [
    (
        "maskable_ppo",
        Several(lambda: NoMask(MaskedBandit())),
        r"toy.yaml: learner.name: .*'one'.*action_masks",
    ),
    (
        "dqn",
        Several(Target),
        r"toy.yaml: learner.name: dqn .*float32.*'one'",
    ),
    ("maskable_ppo", Several(Target), r"toy.yaml: learner.name: .*'one'.*action_masks"),
    (
        "ddpg",
        Several(Balance),
        r"toy.yaml: learner.name: ddpg .*\b2\b.*'one'",
    ),
    (
        "ppo",
        {"one": Several(Balance), "two": Several(MaskedBandit)},
        r"scenario two: observations: 4 .*\b2 ",
    ),
    ("ppo", Several(Balance, 0), r"scenario one: .*units.*train"),
    ("ppo", Several(lambda: None), r"scenario one: .*environment"),
]


@pytest.mark.parametrize(("algorithm", "problem", "message"), ERRORS)
def test_what_does_not_fit_is_told(algorithm, problem, message, tmp_path):
    with pytest.raises(UserError, match=message):
        learn(StableBaselinesLearner(algorithm), problem, tmp_path, 64)


@pytest.mark.parametrize("key", ["net_arch", "acting"])
def test_a_phase_does_not_change_the_policy_itself(key, tmp_path):
    values = {"net_arch": [4], "acting": "sample"}
    with pytest.raises(UserError, match=rf"toy.yaml: train_on.0.params.{key}: "):
        learn(StableBaselinesLearner("ppo"), Several(Balance), tmp_path, Phase(("one",), 64, {key: values[key]}))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of sums that overflow
@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_learning_that_diverges_is_told(algorithm, tmp_path):
    with pytest.raises(UserError, match=r"toy.yaml: learner.learning_rate: .*finite"):
        short(algorithm, tmp_path, problem=Several(Diverging), learning_rate=10.0, reward_scale=1e9, max_grad_norm=1e9)


class Diverging(Balance):
    """Rewards beyond what float32 can square."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 1e30, terminated, truncated, info


def test_validation_needs_units(tmp_path):
    problem = Several(Balance)
    problem.units = lambda split: Several.units(problem, split) if split == "train" else []
    with pytest.raises(UserError, match=r"toy.yaml: learner.validate_every: .*'one'"):
        short("ppo", tmp_path, problem=problem, validate_every=32)


def test_policies_of_other_algorithms_and_sizes_are_refused(tmp_path):
    learner = StableBaselinesLearner("ppo")
    checkpoint, _ = learn(learner, Several(Balance), tmp_path, 32, n_steps=32, batch_size=32)
    with pytest.raises(UserError, match=r"policy.zip: .*observations: 2 .*\b4 "):
        learner.load(checkpoint, Several(MaskedBandit))
    with pytest.raises(UserError, match=r"policy.zip: .*\bppo\b.*\bdqn\b"):
        StableBaselinesLearner("dqn").load(checkpoint, Several(Balance))
    with pytest.raises(UserError, match=r"policy.zip: .*shape"):
        learn(
            learner, Several(Balance), tmp_path / "child", 32, start=checkpoint, n_steps=32, batch_size=32, net_arch=[3]
        )


def test_an_environment_that_does_not_repeat_is_named(tmp_path):
    counter = [0]
    problem = Several(lambda: Cut(MaskedBandit(), counter, 50))
    assert short("dqn", tmp_path, problem=problem)[0] is None
    with pytest.raises(RuntimeError, match=r"scenario one, unit train-\d: the environment does not repeat"):
        short("dqn", tmp_path, problem=Several(Unrepeatable))


class Unrepeatable(MaskedBandit):
    """Draws from a generator that no seed reaches."""

    def _deal(self) -> np.ndarray:
        return np.random.default_rng().random(4).astype(np.float32) + 0 * super()._deal()


@pytest.mark.parametrize(
    ("algorithm", "values", "message"),
    [
        ("ppo", {"stop_after": 3}, "stop_after: nothing is validated"),
        ("ppo", {"n_steps": 100}, "batch_size: 64 does not divide n_steps x environments = 100 x 1"),
        ("a2c", {"n_steps": 1, "normalize_advantage": True}, "a rollout of one decision has no deviation"),
        (
            "dqn",
            {"environments": 8, "target_update_interval": 4},
            "target_update_interval: 4 is less than the 8 environments",
        ),
        ("dqn", {"gradient_steps": 0}, "gradient_steps: 0 learns nothing"),
        ("ddpg", {"environments": 8, "buffer_size": 4}, "buffer_size: 4 is less than one decision"),
        ("ppo", {"net_arch": [0]}, r"entry 0 of 'net_arch' is 0"),
        ("ppo", {"learning_rate": 0.0}, "greater than 0"),
    ],
)
def test_values_that_cannot_be_are_refused(algorithm, values, message):
    with pytest.raises(UserError, match=message):
        validate(ALGORITHM_SETTINGS[algorithm], values)


def test_every_value_reaches_its_algorithm():
    """No setting without effect: each is a keyword of the algorithm, of the policy, or of the job."""
    from schedlab.learning.stock.run import KEYWORDS

    job = {
        "reward_scale",
        "environments",
        "validate_every",
        "validation_units",
        "stop_after",
        "record_every",
        "save_every",
    }
    job |= {"acting", "device"}
    other = {
        "learning_rate",
        "learning_rate_schedule",
        "net_arch",
        "activation",
        "critic_net_arch",
        "ortho_init",
        "action_noise",
    }
    other |= {"clip_range", "clip_range_schedule"}
    for algorithm, settings in ALGORITHM_SETTINGS.items():
        assert settings.model_fields.keys() - job - other == set(KEYWORDS[algorithm])
    assert PPOSettings().model_dump().keys() == MaskablePPOSettings().model_dump().keys()
