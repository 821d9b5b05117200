"""Service levels as constraints: in rewards and masks, in rules and oracles, and limits that nothing can keep."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cloud_courses import TINY, all_courses
from small_problems import learn, problem

from schedlab.config.contract import LearnPaths, Phase, PolicySpec, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import merged
from schedlab.studies.cloud.example import example_replay, example_scenario
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.learners.search import ConstantSearch
from schedlab.studies.cloud.problem import preference_unit
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv
from schedlab.studies.cloud.rules.oracle import best_constant, best_kept_plan, best_plan, totals_of_staying
from schedlab.studies.cloud.rules.rules import RULES
from schedlab.studies.cloud.scenario import check

FREE = {"time_max": 1e6, "cost_max": 1e6, "throughput_min": 0, "memory_max": 1e6, "gpu_util_min": 0, "cpu_util_min": 0}


def limited(sla: dict[str, float], base: dict | None = None, **constraints) -> dict:
    """The example with limits that decisions must keep: all that are given."""
    names = {"time_max": "time", "cost_max": "cost", "throughput_min": "throughput", "gpu_util_min": "gpu_util"}
    keep = [names[name] for name in sla]
    values = {"sla_from": "configuration", "sla": FREE | sla, "constraints": {"keep": keep, **constraints}}
    return merged(base or {}, values)


def squeezed(base: dict | None = None, slack: float = 1.02) -> dict[str, float]:
    """Limits of time and cost near a constant allocation between the fastest and the cheapest, where both bind."""
    replay = example_replay(**(base or {}))
    time, cost = totals_of_staying(replay)
    middle = int((time / time.min() + cost / cost.min()).argmin())
    return {"time_max": slack * float(time[middle]), "cost_max": slack * float(cost[middle])}


def walk(policy, made, preference: str = "cost") -> CloudReplayEnv:
    """The environment after an episode of a rule."""
    env = CloudReplayEnv(made.replay, preference)
    policy.reset(Unit("unit", "preference", "test", "unit", 0, {"preference": preference}))
    env.reset(seed=0)
    while not any(env.step(env.actions.index(policy.choose(env)))[2:4]):
        pass
    return env


@pytest.mark.parametrize(("preference", "limit", "of"), [("1:0:0", "time_max", 0), ("0:1:0", "cost_max", 1)])
def test_the_constrained_plan_is_near_the_best_of_all_courses_that_keep_the_limit(preference, limit, of):
    base = merged(TINY, {"environment": {"restart": 1.0}})
    env = CloudReplayEnv(example_replay(**base), preference)
    courses = [(env.time, env.cost, env.objective()) for _ in all_courses(env)]
    unlimited = min(courses, key=lambda course: course[2])
    most = (unlimited[of] + min(course[of] for course in courses)) / 2.0
    best = min(course[2] for course in courses if course[of] <= most)
    assert unlimited[of] > most and best > unlimited[2], "the limit binds"
    found = best_kept_plan(example_replay(**limited({limit: most}, base)), weights_of(preference))
    reached = float(found.plan.values[0, env.replay.lattice.start])
    assert found.bound <= best + 1e-9 and best - 1e-9 <= reached <= 1.02 * best


def test_plans_promise_what_episodes_cost_and_keep_both_limits():
    replay = example_replay(**limited(squeezed()))
    for preference in ("balanced", "cost", "time"):
        env, plan = CloudReplayEnv(replay, preference), best_plan(replay, weights_of(preference))
        env.reset()
        while not any(env.step(plan.action(env.here, env.progress))[2:4]):
            pass
        assert env.objective() == pytest.approx(plan.values[0, replay.lattice.start], abs=1e-9)
        assert env.scores()["limits_kept"] == 1.0 and env.scores()["excess"] == 0.0


def test_the_best_constant_keeps_limits_that_the_unlimited_one_breaks():
    limits, weights = squeezed(), weights_of("time")
    time, cost = totals_of_staying(example_replay())
    free, kept = best_constant(example_replay(), weights), best_constant(example_replay(**limited(limits)), weights)
    assert cost[free] > limits["cost_max"] >= cost[kept] and time[kept] <= limits["time_max"]


@pytest.mark.parametrize(
    "limits", [squeezed(), {"gpu_util_min": 75.0}, squeezed(slack=1.1) | {"throughput_min": 900.0}]
)
def test_whatever_the_mask_allows_ends_within_the_limits(limits):
    replay = example_replay(**limited(limits))
    env, rng = CloudReplayEnv(replay, "time"), np.random.default_rng(0)
    for _ in range(20):
        env.reset()
        while True:
            valid = np.flatnonzero(env.action_masks())
            if any(env.step(int(rng.choice(valid)))[2:4]):
                break
        scores = env.scores()
        # of both sums the mask holds for weighted sums: one may be exceeded by what lies between two plans of the front
        assert scores["excess"] < 0.03 or scores["limits_kept"]
        if "cost_max" not in limits:
            assert scores["limits_kept"]


def test_one_limited_sum_is_kept_exactly_by_the_mask_and_by_chance_without_it():
    limit = {"cost_max": squeezed()["cost_max"]}
    for masked, share in ((True, 1.0), (False, 0.5)):
        env, rng, kept = (
            CloudReplayEnv(example_replay(**limited(limit, masked=masked)), "time"),
            np.random.default_rng(0),
            [],
        )
        for _ in range(20):
            env.reset()
            while not any(env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))[2:4]):
                pass
            kept.append(env.scores()["limits_kept"])
        assert np.mean(kept) == 1.0 if masked else np.mean(kept) < share


def test_rewards_sum_to_the_objective_and_the_excess_times_its_multiplier():
    replay = example_replay(**limited(squeezed(), masked=False))
    env, rng, total, over = CloudReplayEnv(replay, "time"), np.random.default_rng(1), 0.0, False
    env.multipliers = np.array([2.0, 3.0])
    env.reset()
    while not over:
        _, reward, done, cut, info = env.step(int(rng.integers(27)))
        total, over = total + reward, done or cut
    late, dear = max(0.0, env.time / replay.sla.time_max - 1.0), max(0.0, env.cost / replay.sla.cost_max - 1.0)
    assert late + dear > 0, "a limit is exceeded"
    assert -total == pytest.approx(env.objective() + 2.0 * late + 3.0 * dear, abs=1e-9)
    assert env.penalised() == pytest.approx(env.objective() + 10.0 * (late + dear), abs=1e-9)
    assert info["scores"]["limits_kept"] == 0.0


@pytest.mark.parametrize(
    "case", [limited(squeezed()), limited(squeezed(), {"environment": {"time_noise": 0.05, "price_walk": 0.1}})]
)
def test_each_place_does_what_a_single_environment_does(case):
    replay, places = example_replay(**case), 3
    many, single = CloudReplayVectorEnv(replay, places, "time"), [CloudReplayEnv(replay, "time") for _ in range(places)]
    many.reset(seed=7)
    for place, env in enumerate(single):
        env.reset(seed=7 + place)
    rng = np.random.default_rng(0)
    for _ in range(45):
        masks = many.action_masks()
        assert np.array_equal(masks, np.stack([env.action_masks() for env in single]))
        actions = rng.integers(27, size=places)
        _, rewards, ended, _, infos = many.step(actions)
        for place, env in enumerate(single):
            _, reward, over, _, info = env.step(int(actions[place]))
            assert rewards[place] == pytest.approx(reward, abs=1e-12) and ended[place] == over
            if over:
                told = {name: values[place] for name, values in infos["final_info"]["scores"].items() if name[0] != "_"}
                assert told == pytest.approx(info["scores"])
                env.reset()


def test_with_noise_the_mask_keeps_a_limit_with_the_stated_probability():
    noisy = {"environment": {"time_noise": 0.2}}
    limit = {"time_max": 1.04 * float(totals_of_staying(example_replay())[0].min())}
    kept = {}
    for probability in (0.5, 0.9):
        made = example_replay(**limited(limit, noisy, probability=probability))
        env, runs = CloudReplayEnv(made, "cost"), []
        for seed in range(60):
            env.reset(seed=seed)
            while not any(env.step(int(np.flatnonzero(env.action_masks())[0]))[2:4]):
                pass
            runs.append(env.scores()["limits_kept"])
        kept[probability] = np.mean(runs)
    assert kept[0.9] > kept[0.5]


@pytest.mark.parametrize(
    "name", ["threshold", "horizontal", "goodput_greedy", "options", "random", "oracle_static", "oracle_dynamic"]
)
def test_rules_that_decide_keep_a_limit_that_the_start_breaks(name):
    limits = {"time_max": 0.8 * float(totals_of_staying(example_replay())[0][example_replay().lattice.start])}
    made = problem(**limited(limits))
    assert walk(RULES["static_start"]({}, made, 0), made).scores()["limits_kept"] == 0.0
    assert walk(RULES[name]({}, made, 0), made).scores()["limits_kept"] == 1.0


def test_a_learned_policy_keeps_a_budget_by_its_multipliers_alone(tmp_path):
    base, kept = {"preferences": ["time"]}, {}
    limit = {"cost_max": squeezed(base, slack=1.05)["cost_max"]}
    ample = {"cost_max": 10.0 * limit["cost_max"]}
    for name, most in {"free": ample, "limited": limit}.items():
        made = problem(**limited(most, base, masked=False))
        policy = ReinforceLearner().load(learn(tmp_path / name, {"job": made}, 640, distilled=300), made)
        scores = made.rollout(policy, preference_unit(0, "time", "test", 0)).scores
        kept[name] = scores["cost"] <= limit["cost_max"], scores["time"] < made.start["time"]
    assert kept == {"free": (False, True), "limited": (True, True)}


def test_a_search_takes_the_best_allocation_that_keeps_the_limits(tmp_path):
    made = problem(**limited(squeezed(slack=1.1)))
    spec = PolicySpec("s", "learned", "constant_search", {}, train_on=(Phase(("job",), 600),))
    paths = LearnPaths(None, tmp_path / "policy.zip", tmp_path)
    budget = ConstantSearch().learn({"job": made}, spec, 0, paths, lambda *point, **place: None)
    policy = ConstantSearch().load(paths.checkpoint, made)
    scores = made.rollout(policy, preference_unit(0, "time", "test", 0)).scores
    assert scores["limits_kept"] == 1.0
    assert budget.trainings == budget.episodes > 0


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"time_max": 1.0}, r"1 s: the fastest takes \d+ s, the cheapest costs \$\d"),
        ({"time_max": 120.0, "cost_max": 0.01}, r"120 s and \$0\.01: the fastest takes \d+ s, the cheapest costs \$"),
        ({"throughput_min": 1e6}, r"1000000 samples/s \(the most is "),
        ({"gpu_util_min": 100.0}, r"100 % \(the most is "),
    ],
)
def test_limits_that_nothing_meets_are_named_with_the_best_that_can_be_reached(limits, expected):
    with pytest.raises(UserError) as error:
        example_replay(**limited(limits))
    assert re.search(expected, str(error.value)), str(error.value)


def test_constraints_need_decisions_by_shares_of_the_training():
    scenario = example_scenario(**limited({"time_max": 1e6}, {"environment": {"interval_seconds": 60.0}}))
    assert any("constraints.keep" in str(error) for error in check(scenario))
