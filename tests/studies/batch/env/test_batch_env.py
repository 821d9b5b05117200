"""The environments: checks of Gymnasium and Stable-Baselines3, rewards, seeds, and one form against the others."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import log
from typing import get_args

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from small_jobs import jobs_from
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines

import schedlab.environments
from schedlab.config.contract import Split
from schedlab.config.errors import UserError
from schedlab.studies.batch.env import env
from schedlab.studies.batch.env import vector as env_vector
from schedlab.studies.batch.env.env import example_task, windows_task
from schedlab.studies.batch.env.layouts import Scales
from schedlab.studies.batch.env.observe import EMPTY
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import Machine
from schedlab.studies.batch.metrics import job_table, measures
from schedlab.studies.batch.scenario import STEPPED
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.simulator.stepper import Task, score_of
from schedlab.workloads.lublin import LublinSettings, lublin
from schedlab.workloads.swf import write_swf

LAYOUTS = {
    "features": {},
    "rlscheduler": {"layout": "rlscheduler", "noop": True},
    "dissertation": {"layout": "dissertation", "oracle_runtime": True},
    "shortlist": {"layout": "shortlist", "noop": True},
    "fairness": {"layout": "rlscheduler", "fairness": True},
}


def task(backfill="none", length=40, **values):
    return example_task(EnvironmentSettings(**values), backfill, length)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_passes_the_checks_of_gymnasium_and_stable_baselines(layout) -> None:
    made = env.make(settings=EnvironmentSettings(**LAYOUTS[layout]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("schedlab/Batch-v0", settings=made.task.settings).unwrapped)
        check_for_stable_baselines(made)
        if layout == "features":
            check_env(gym.make("schedlab/BatchWeights-v0").unwrapped)
            check_for_stable_baselines(env.make_weights())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_padding_is_what_a_row_holds_where_nothing_is(layout) -> None:
    made = env.make(settings=EnvironmentSettings(**LAYOUTS[layout]))
    observation, _ = made.reset(seed=1)
    (rows, _), (padding, machine) = made.layout.split(observation), made.layout.split(made.padding)
    empty = made.stepper.episodes.rows[0] == EMPTY
    assert 0 < empty.sum() < len(rows) and made.padding.dtype == np.float32 and not machine.any()
    np.testing.assert_array_equal(rows[empty], padding[empty])
    assert (rows[~empty] != padding[~empty]).any(axis=1).all()


def episode(made: gym.Env, seed: int, choose=lambda mask, rng: int(rng.choice(np.flatnonzero(mask)))):
    """(observations, rewards, last info) of one episode of random valid rows."""
    rng, (observation, info) = np.random.default_rng(seed), made.reset(seed=seed)
    observations, rewards, done = [observation], [], False
    while not done:
        assert made.observation_space.contains(observation)
        observation, reward, done, _, info = made.step(choose(made.action_masks(), rng))
        observations.append(observation)
        rewards.append(reward)
    return np.stack(observations), rewards, info


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("backfill", STEPPED)
def test_the_same_seed_gives_the_same_bytes(layout, backfill) -> None:
    found = [episode(env.BatchEnv(task(backfill, **LAYOUTS[layout])), seed) for seed in (1, 1, 2)]
    assert found[0][0].tobytes() == found[1][0].tobytes() != found[2][0].tobytes()
    assert found[0][1:] == found[1][1:]


@pytest.mark.parametrize(
    "measure", ["bsld", "log_bsld", "slowdown", "wait", "turnaround", "utilisation", "bsld_and_utilisation"]
)
@pytest.mark.parametrize("users", ["none", "max"])
def test_rewards_are_those_of_the_schedule(measure, users) -> None:
    made = env.BatchEnv(task(measure=measure, users=users))
    _, rewards, info = episode(made, 3)
    schedule = made.stepper.schedule(0)
    assert rewards[:-1] == [0.0] * (len(rewards) - 1)
    assert (
        rewards[-1]
        == -info["score"]
        == pytest.approx(-score_of(schedule, made.task.machine, made.task.settings), rel=1e-12)
    )
    found = measures(schedule, made.task.machine)
    named = {"bsld": found["avg_bsld"], "wait": found["avg_wait"], "utilisation": -found["util_to_last_start"]}
    if users == "none" and measure in named:
        assert info["score"] == pytest.approx(named[measure], rel=1e-12)
    if users == "max" and measure == "bsld":
        assert info["score"] == pytest.approx(found["user_bsld_max"], rel=1e-12)
    _, differences, _ = episode(env.BatchEnv(task(measure=measure, users=users, reward="difference")), 3)
    assert sum(differences) == pytest.approx(rewards[-1], rel=1e-9)


def test_rewards_at_each_step() -> None:
    _, direct, _ = episode(env.BatchEnv(task(reward="direct")), 3)
    made = env.BatchEnv(task(reward="sigmoid", sigmoid_scale=50.0))
    _, sigmoid, _ = episode(made, 3)
    table = job_table(made.stepper.schedule(0)).sort_values("start", kind="stable")
    averages = (table["bsld"].cumsum() / np.arange(1, len(table) + 1)).to_numpy()
    order = made.stepper.windows.begun[0, :40]
    averages = np.cumsum(table.loc[order, "bsld"].to_numpy()) / np.arange(1, 41)
    np.testing.assert_allclose(direct, [*-averages[:-1], 0.0], rtol=1e-12)
    np.testing.assert_allclose(sigmoid, [*(1 / (1 + np.exp(averages[:-1] / 50))), -1e-6], rtol=1e-12)


def test_improvement_is_over_the_rule_on_the_same_window() -> None:
    made = env.BatchEnv(task(reward="improvement", baseline="f1"))
    _, rewards, info = episode(made, 3)
    schedule = made.stepper.schedule(0)
    rule = simulate(schedule.jobs, made.task.machine, "f1")
    assert rewards[-1] == pytest.approx(job_table(rule)["bsld"].mean() - info["score"], rel=1e-12)


def test_improvement_over_several_rules_is_over_the_best_on_the_window() -> None:
    rules, best = ("sjf", "f1", "largest"), set()
    for seed in range(4):
        made = env.BatchEnv(task(reward="improvement", baseline=rules))
        _, rewards, info = episode(made, seed)
        jobs = made.stepper.schedule(0).jobs
        means = {rule: job_table(simulate(jobs, made.task.machine, rule))["bsld"].mean() for rule in rules}
        assert rewards[-1] == pytest.approx(min(means.values()) - info["score"], rel=1e-12)
        best.add(min(means, key=means.get))
    assert len(best) > 1  # not one rule alone


@pytest.mark.parametrize("warm_start", [False, True])
def test_the_end_of_an_episode_tells_what_rules_come_to_on_the_window(warm_start: bool) -> None:
    values = {"reward": "difference", "baseline": ("sjf", "f1"), "compare": True}
    made = env.BatchEnv(replace(task(**values), warm_start=warm_start))
    info = made.reset(seed=3)[1]
    while info["started"] < 40:
        assert "improvement" not in info
        info = made.step(int(made.action_masks().argmax()))[4]
    schedule, before = made.stepper.schedule(0), made.stepper.before[0]
    assert (before is not None) == warm_start
    means = {
        rule: job_table(simulate(schedule.jobs, made.task.machine, rule, prefill=before))["bsld"].mean()
        for rule in values["baseline"]
    }
    assert (info["score_sjf"], info["score_f1"]) == pytest.approx((means["sjf"], means["f1"]), rel=1e-12)
    assert info["improvement"] == pytest.approx(min(means.values()) - job_table(schedule)["bsld"].mean(), rel=1e-12)
    vector = env_vector.BatchVectorEnv(made.task, 1, seed=3)
    vector.reset()
    for _ in range(40):
        infos = vector.step(vector.action_masks().argmax(axis=1))[4]
    assert infos["final_info"]["improvement"][0] == info["improvement"]


@pytest.mark.parametrize("backfill", STEPPED)
@pytest.mark.parametrize("measure", ["bsld", "log_bsld", "wait"])
def test_accrued_waits_sum_to_what_waiting_adds_to_the_score(measure, backfill) -> None:
    made = env.BatchEnv(replace(task(backfill, measure=measure, reward="accrued"), warm_start=True))
    _, rewards, info = episode(made, 3)
    without = {"bsld": 1.0, "log_bsld": 0.0, "wait": 0.0}[measure]
    assert sum(rewards) == pytest.approx(without - info["score"], rel=1e-9) != 0
    assert max(rewards) < 1e-12  # rounding


def test_accrued_waits_are_paid_when_they_grow() -> None:
    made = env.BatchEnv(three_jobs(measure="bsld", reward="accrued"))
    made.reset()
    # Only the second job waits, from the third decision to the fourth: 100 s; it runs for 30 s.
    assert [made.step(row)[1] for row in (2, 1, 0, 0)] == pytest.approx([0.0, 0.0, -100 / 30 / 3, 0.0])


def three_jobs(**values) -> Task:
    """Jobs of 6, 4 and 2 processors, submitted together to 8, under EASY."""
    jobs = jobs_from([(0, 100, 100, 6), (0, 30, 40, 4), (0, 10, 20, 2)])
    settings = EnvironmentSettings(layout="shortlist", rows=4, quantiles=1, **values)
    return Task(jobs, Machine(8, 8), range(1), (3, 3), "easy", settings=settings)


def test_the_observation_of_three_jobs() -> None:
    made = env.BatchEnv(three_jobs())
    nothing, two_weeks = [0.0] * 8, 14.0
    row = {
        "wide": [log(101) / two_weeks, log(7) / log(9), 0.75, 0, 0, 1, 0, 1],
        "middle": [log(41) / two_weeks, log(5) / log(9), 0.5, 0, 0, 1, 0, 1],
        "narrow": [log(21) / two_weeks, log(3) / log(9), 0.25, 0, 0, 1, 0, 1],
    }
    seen, _ = made.reset()
    expected = [*row["narrow"], *row["middle"], *row["wide"], *nothing, 1, 0, 1, log(4) / 10]
    np.testing.assert_allclose(seen, expected, rtol=1e-6)  # sorted by area
    assert made.action_masks().tolist() == [True, True, True, False]
    seen, *_ = made.step(2)  # the wide one leaves 2 processors for 100 s
    row["middle"][5:7] = [0, log(101) / two_weeks]
    expected = [*row["narrow"], *row["middle"], *nothing, *nothing, 0.25, log(101) / two_weeks, 1, log(3) / 10]
    np.testing.assert_allclose(seen, expected, rtol=1e-6)
    assert made.action_masks().tolist() == [True, True, False, False]
    made.step(1)
    seen, *_ = made.step(0)  # the middle one waited for the wide one, and the narrow one was backfilled
    row["middle"][3:7] = [log(101) / two_weeks, log(1 + 100 / 40) / 10, 1, 0]
    np.testing.assert_allclose(seen, [*row["middle"], *nothing * 3, 1, 0, 1, log(2) / 10], rtol=1e-6)


def test_the_environments_of_a_trace(tmp_path) -> None:
    trace = lublin(LublinSettings(jobs=200, processors=64, load=0.9, users=3), seed=1)
    write_swf(tmp_path / "jobs.swf.gz", trace)
    made = gym.make("schedlab/Batch-v0", trace=tmp_path / "jobs.swf.gz", backfilling="easy", length=30).unwrapped
    drawn = gym.make("schedlab/Batch-v0", trace=trace, backfilling="easy", length=30).unwrapped
    np.testing.assert_array_equal(made.reset(seed=2)[0], drawn.reset(seed=2)[0])
    assert (made.task.backfill, made.task.machine.nodes, made.action_space.n) == ("easy", 64, 8)
    assert (made.task.settings.layout, made.task.settings.reward) == ("shortlist", "accrued")
    starts = {part: list(windows_task(trace=trace, part=part, length=20).starts) for part in get_args(Split)}
    assert starts == {"train": list(range(81)), "validation": [100], "test": [120, 140, 160, 180]}
    ordered = windows_task(trace=trace, backfilling="easy_area", length=20)
    assert (ordered.backfill, ordered.backfill_order) == ("easy", "area")
    published = windows_task({"layout": "rlscheduler", "fairness": True}, trace, part="test", length=20)
    assert published.layout.size == 128 * 9 and published.scales == Scales.of(published.jobs.take(slice(0, 100)))
    assert make_vec_sizes(trace) == (2, 8 * 8 + 12)


def make_vec_sizes(trace) -> tuple[int, ...]:
    many = gym.make_vec("schedlab/Batch-v0", 2, "vector_entry_point", trace=trace, length=20)
    return many.reset(seed=0)[0].shape


def test_a_window_may_be_chosen_at_reset() -> None:
    made = gym.make("schedlab/Batch-v0", part="test", length=40).unwrapped
    assert made.reset(seed=0, options={"start": 2440})[1]["start"] == 2440 == made.task.starts[1]
    with pytest.raises(UserError, match="job 2441"):
        made.reset(options={"start": 2441})


@pytest.mark.parametrize(
    ("keywords", "named"),
    [
        ({"trace": "nowhere.swf"}, r"nowhere\.swf"),
        ({"trace": 3}, "trace"),
        ({"backfilling": "eazy"}, "backfilling.*easy"),
        ({"backfilling": "easy_predicted"}, "backfilling.*conservative"),
        ({"part": "testing"}, "part.*validation"),
        ({"length": 0}, r"windows\.length"),
        ({"length": 2001}, "length.*2000 of 4000 jobs"),
        ({"settings": {"order": "wfp3"}}, r"environment\.order.*wfp3"),
        ({"settings": {"layout": "shortlist", "fairness": True}}, r"environment\.fairness"),
        ({"settings": {"oracle_runtime": True}}, r"environment\.oracle_runtime"),
        ({"task": example_task(length=5), "trace": "jobs.swf"}, "a task and trace"),
    ],
    ids=str,
)
def test_wrong_keywords_are_reported(keywords, named) -> None:
    with pytest.raises(UserError, match=named):
        gym.make("schedlab/Batch-v0", **keywords)


def test_a_row_without_a_job() -> None:
    made = env.BatchEnv(task())
    made.reset(seed=0)
    assert not made.action_masks()[127]
    assert made.step(127)[4]["replaced"] == 1
    strict = env.BatchEnv(task(empty_row="error"))
    strict.reset(seed=0)
    with pytest.raises(UserError, match="row 127"):
        strict.step(127)
    with pytest.raises(ValueError, match="row 128"):
        strict.step(128)
    waiting = env.BatchEnv(task(layout="dissertation"))
    waiting.reset(seed=0)
    before = waiting.stepper.windows.clock[0, 0]
    *_, info = waiting.step(127)
    assert (info["replaced"], info["started"]) == (0, 0)
    assert info["time"] > before
    never = env.BatchEnv(task(layout="dissertation", noop=False))
    never.reset(seed=0)
    assert never.step(127)[4]["replaced"] == 1
    with pytest.raises(ValueError, match="empty_row"):
        task(empty_row="noop")


def test_a_finished_episode_asks_for_a_reset() -> None:
    made = env.BatchEnv(task(length=2))
    episode(made, 0)
    with pytest.raises(RuntimeError, match="call reset"):
        made.step(0)


@pytest.mark.parametrize(
    ("layout", "backfill"), [("features", "easy"), ("rlscheduler", "none"), ("dissertation", "legacy")]
)
def test_the_vector_form_does_what_single_ones_do(layout, backfill) -> None:
    shared = task(backfill, length=30, reward="difference", **LAYOUTS[layout])
    vector, single = env_vector.BatchVectorEnv(shared, 3), [env.BatchEnv(shared) for _ in range(3)]
    observations, _ = vector.reset(seed=5)
    for place, one in enumerate(single):
        np.testing.assert_array_equal(observations[place], one.reset(seed=5 + place)[0])
    rng, ends = np.random.default_rng(0), 0
    for _ in range(150):
        masks = vector.action_masks()
        assert (masks == [one.action_masks() for one in single]).all()
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        observations, rewards, ended, truncated, infos = vector.step(actions)
        assert not truncated.any()
        for place, one in enumerate(single):
            observation, reward, done, _, info = one.step(actions[place])
            assert (rewards[place], ended[place]) == (reward, done)
            if done:
                ends += 1
                np.testing.assert_array_equal(infos["final_obs"][place], observation)
                assert {key: infos["final_info"][key][place] for key in info} == info
                observation, info = one.reset()
            np.testing.assert_array_equal(observations[place], observation)
            assert infos["time"][place] == info["time"]
    assert ends > 3


def test_other_ways_of_going_on_after_an_end() -> None:
    following = env_vector.BatchVectorEnv(task(length=2), 2, seed=1, autoreset_mode="NextStep")
    following.reset()
    for ended, rewarded in ((False, False), (True, True), (False, False), (False, False), (True, True)):
        _, rewards, over, _, infos = following.step(np.zeros(2, dtype=int))
        assert over.tolist() == [ended] * 2
        assert (rewards != 0).tolist() == [rewarded] * 2
    disabled = env_vector.BatchVectorEnv(task(length=2), 2, seed=1, autoreset_mode=AutoresetMode.DISABLED)
    disabled.reset()
    disabled.step(np.zeros(2, dtype=int))
    disabled.step(np.zeros(2, dtype=int))
    with pytest.raises(RuntimeError, match=r"\[0, 1\]"):
        disabled.step(np.zeros(2, dtype=int))
    _, infos = disabled.reset(options={"reset_mask": np.array([True, False])})
    assert disabled.stepper.ended.tolist() == [False, True]
    assert infos["_start"].tolist() == [True, False]


WINDOWS = 3  # of the vectorised environments below


@pytest.mark.parametrize(
    ("actions", "named"),
    [
        (np.zeros(2000, dtype=int), r"\(2000,\)"),
        (np.zeros(4, dtype=int), r"\(4,\)"),
        ([0], r"\(1,\)"),
        (0, r"\(\)"),
        ([[0], [0], [0]], r"\(3, 1\)"),
        ([0.7, 0.2, 1.0], "float64"),
        ([True, False, True], "bool"),
        (["0", "1", "2"], "<U1"),
        ([0, None, 0], "object"),
        ([0, 128, 0], "row 128"),
        ([-1, 0, 0], "row -1"),
        (np.array([0, 2**63, 0], dtype=np.uint64), "row 9223372036854775808"),
    ],
    ids=str,
)
def test_actions_that_are_not_one_row_a_window_change_nothing(actions, named) -> None:
    made = env_vector.BatchVectorEnv(task(), WINDOWS)
    made.reset(seed=0)
    before = made.step(np.zeros(WINDOWS, dtype=np.int32))[0]
    started = made.stepper.infos()["started"].tolist()
    with pytest.raises(ValueError, match=named):
        made.step(actions)
    np.testing.assert_array_equal(made.stepper.observations, before)
    assert made.stepper.infos()["started"].tolist() == started


@pytest.mark.parametrize("action", [1.7, np.float32(0), True, "0", None, np.array([0]), [0]], ids=repr)
def test_a_single_window_takes_nothing_but_the_number_of_a_row(action) -> None:
    made = env.BatchEnv(task())
    made.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions of (type|shape)"):
        made.step(action)
    assert made.stepper.info(0)["started"] == 0
    assert [made.step(row)[4]["started"] for row in (0, np.int64(0), np.array(0))] == [1, 2, 3]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_window_that_has_not_begun_asks_for_a_reset(mode) -> None:
    made = env_vector.BatchVectorEnv(task(), WINDOWS, autoreset_mode=mode)
    rows = np.zeros(WINDOWS, dtype=int)
    with pytest.raises(RuntimeError, match=r"\[0, 1, 2\]"):
        made.step(rows)
    made.reset(seed=0, options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(RuntimeError, match=r"\[1\]"):
        made.step(rows)
    made.reset(options={"reset_mask": [False, True, False]})
    assert made.step(rows)[4]["started"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "mask",
    [[True], [True, False, True, False], [[True], [True], [False]], [1, 0, 1], "all", None],
    ids=lambda mask: str(np.shape(mask)),
)
def test_a_mask_of_windows_has_one_truth_value_each(mask) -> None:
    made = env_vector.BatchVectorEnv(task(), WINDOWS)
    _, before = made.reset(seed=0)
    with pytest.raises(ValueError, match=r"reset_mask.* 3 windows"):
        made.reset(seed=1, options={"reset_mask": np.asarray(mask)})
    _, after = made.reset()
    fresh = env_vector.BatchVectorEnv(task(), WINDOWS)
    fresh.reset(seed=0)
    assert after["start"].tolist() == fresh.reset()[1]["start"].tolist() != before["start"].tolist()  # no draw was made


def test_it_is_made_by_name() -> None:
    assert schedlab.environments.ENVIRONMENTS.keys() >= {"schedlab/Batch-v0", "schedlab/BatchWeights-v0"}
    vector = gym.make_vec("schedlab/Batch-v0", num_envs=2, vectorization_mode="vector_entry_point", task=task(length=5))
    assert isinstance(vector.unwrapped, env_vector.BatchVectorEnv)
    assert vector.reset(seed=1)[0].shape == (2, vector.unwrapped.layout.size)


def test_weights_choose_the_row_of_the_highest_sum() -> None:
    made, plain = env.BatchWeightsEnv(task()), env.BatchEnv(task())
    weights = np.zeros(10, dtype=np.float32)
    weights[0] = -1.0  # shortest request first
    observation, _ = made.reset(seed=4)
    plain.reset(seed=4)
    done = False
    while not done:
        rows, _ = made.layout.split(observation)
        best = int(np.argmin(np.where(made.action_masks(), rows[:, 0], np.inf)))
        observation, reward, done, _, _ = made.step(weights)
        assert plain.step(best)[1] == reward
    expected = simulate(made.stepper.schedule(0).jobs, made.task.machine, "sjf")
    np.testing.assert_array_equal(made.stepper.schedule(0).start, expected.start)
    made.reset(seed=4)
    with pytest.raises(ValueError, match="10 finite weights"):
        made.step(np.full(10, np.nan))
    with pytest.raises(UserError, match=r"environment\.layout"):
        env.BatchWeightsEnv(task(layout="rlscheduler"))


def test_plans_have_weights_where_they_are_seen() -> None:
    made = env.BatchWeightsEnv(task(plan=True))
    made.reset(seed=4)
    weights = np.zeros(12, dtype=np.float32)
    weights[10] = -1.0  # the best plan first
    done = False
    while not done:
        _, _, done, _, _ = made.step(weights)
    planned = simulate(made.stepper.schedule(0).jobs, made.task.machine, "planner")
    np.testing.assert_array_equal(made.stepper.schedule(0).start, planned.start)


def test_jobs_that_no_window_holds_need_not_be_fit_to_run() -> None:
    good = task(length=3)
    procs = good.jobs.procs.copy()
    procs[[2, 6]] = 0
    jobs = replace(good.jobs, procs=procs)
    for starts in ((3,), range(7, 20), (3, 7), [7, 3]):
        assert episode(env.BatchEnv(replace(good, jobs=jobs, starts=starts)), 0)[2]["started"] == 3
    for starts in ((2,), range(3, 5), (3, 6)):
        with pytest.raises(UserError, match=f"job {good.jobs.job_id[2 if starts == (2,) else 6]} "):
            replace(good, jobs=jobs, starts=starts)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"starts": ()}, "start"),
        ({"lengths": (0, 5)}, "0 to 5"),
        ({"starts": (3990,)}, "3990"),
        ({"backfill": "eazy"}, "eazy"),
        ({"backfill_order": "area"}, "backfill_order"),
        ({"backfill": "legacy", "backfill_order": "rule"}, "backfill_order"),
        ({"settings": EnvironmentSettings(baseline="sfj")}, "'sjf'"),
    ],
    ids=str,
)
def test_impossible_tasks_are_refused(values, named) -> None:
    with pytest.raises(UserError, match=named):
        replace(task(), **values)


def test_no_environment_at_all_is_refused() -> None:
    with pytest.raises(UserError, match="num_envs"):
        env_vector.BatchVectorEnv(task(), 0)
