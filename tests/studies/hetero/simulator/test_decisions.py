"""When a decision is asked for, what it is rewarded with, and what happens to voids and to jobs that never fit."""

from __future__ import annotations

import numpy as np
import pytest
from small_clusters import cluster, episode

from schedlab.batsim.errors import SimulationDeadlock
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.studies.hetero.env.settings import ALL_PAIRS, REFERENCE, DecisionSettings, LegacySettings
from schedlab.studies.hetero.simulator.decisions import intervals
from schedlab.studies.hetero.simulator.episode import play

ONE = {"selection": ("first-high_gflops",)}
QUIET = {"bw": 4, "mem": 100}
OBJECTIVES_WITH_ONE_RUNNING = {  # one job of 5 s runs at 4.4 Gflop/s beside an idle processor, one waits
    "avg_job_slowdown": -2 / 5,
    "avg_job_completion": -2.0,
    "avg_utilization": 4.0,
    "makespan": 2 * 4.4 + 2 * 4.0,
    "energy_consumption": -180.0,
    "edp": -180.0 * 2,
}


def test_pairs_are_numbered_job_policy_by_job_policy():
    assert len(ALL_PAIRS) == 36
    assert ALL_PAIRS[6 * 2 + 4] == "shortest-high_mem_bw"
    assert DecisionSettings().actions == 37


@pytest.mark.parametrize(
    ("values", "key", "near"),
    [
        ({"selection": ["shortest-high_gflop"]}, "selection", "'high_gflops'"),
        ({"selection": ["smalest-random"]}, "selection", "'smallest'"),
        ({"selection": ["first-random", "first-random"]}, "selection", ""),
        ({"selection": []}, "selection", ""),
        ({"queue_sensitivity": 0}, "queue_sensitivity", ""),
        ({"objective": "makespn"}, "objective", "'makespan'"),
        ({"observation": "tiny"}, "observation", ""),
        ({"legacy": {"late_rewards": True}}, "legacy", "'late_reward'"),
    ],
)
def test_wrong_values_are_refused(values, key, near):
    with pytest.raises(UserErrors, match=f"{key}.*{near}"):
        validate(DecisionSettings, values)


@pytest.mark.parametrize("objective", OBJECTIVES_WITH_ONE_RUNNING)
def test_objectives_by_hand(objective):
    run = episode([QUIET | {"res": 4}, QUIET], objective=objective, **ONE)
    play(run)
    assert run.history.actions == [0, 0]  # at 0 and when the first job ends
    assert run.history.rewards[0] == pytest.approx(OBJECTIVES_WITH_ONE_RUNNING[objective])


@pytest.mark.parametrize("objective", OBJECTIVES_WITH_ONE_RUNNING)
def test_time_weighted_rewards_add_up_to_the_integral(objective):
    run = episode([QUIET | {"res": 4}, QUIET], objective=objective, time_weighted=True, **ONE)
    play(run)
    first, second = 2.1e10 / 4.0e9, 2.1e10 / 4.4e9
    after = {
        "avg_job_slowdown": -1 / 5,
        "avg_job_completion": -1.0,
        "avg_utilization": 1.0,
        "makespan": 4.4,
        "energy_consumption": -(50 + 12.5 + 80 * 0.05),
        "edp": -(50 + 12.5 + 80 * 0.05),
    }[objective]
    assert run.history.rewards == pytest.approx(
        [OBJECTIVES_WITH_ONE_RUNNING[objective] * first, after * second], rel=1e-6
    )


def test_decisions_fall_where_jobs_came_or_ended_and_others_wait():
    run = episode([QUIET | {"res": 4}, QUIET | {"subtime": 1}, QUIET | {"subtime": 2}], **ONE)
    play(run)
    assert run.history.times == pytest.approx([0, 1, 2, 5.25])
    assert run.history.waiting == [1, 1, 2, 2]
    assert run.overuse()["core"] == [1.0, 2.0]


def test_the_first_job_that_does_not_fit_blocks():
    run = episode([QUIET | {"res": 3}, QUIET | {"res": 2, "subtime": 1}, QUIET | {"subtime": 2}], **ONE)
    play(run)
    assert run.history.times[:3] == [0, 1, 2] and run.history.times[3] == pytest.approx(5.25)
    assert run.history.waiting == [1, 1, 2, 2]


def test_smallest_area_first():
    """Areas of 20, 18, 16 and 17 s: neither the order of requested times nor that of cores, on 4 cores."""
    jobs = [{"res": 4}, {"res": 2, "time": 9.0}, {"res": 4, "time": 4.0}, {"res": 1, "time": 17.0}]
    run = episode([QUIET | job for job in jobs], selection=("saf-high_gflops",), void=False)
    started = []
    while run.advance():
        run.decide(0)
        started.append([job.partition("!")[2] for job in run.system.model.running])
    assert started == [["2"], ["3", "1"], ["3"], ["0"]]


def test_memory_is_a_hard_limit():
    run = episode([QUIET | {"mem": 20_000}, QUIET | {"mem": 20_000}], **ONE)
    assert play(run)["makespan"] == pytest.approx(2 * 2.1e10 / 4.4e9, abs=1e-5)
    assert run.overuse()["mem"] == [0.0]


def test_jobs_that_never_fit_are_rejected_and_counted():
    run = episode([QUIET | {"res": 5}, QUIET | {"mem": 40_000}, QUIET | {"res": 0}, QUIET], **ONE)
    scores = play(run)
    assert scores["infeasible_jobs"] == scores["nb_jobs_rejected"] == 3
    assert scores["nb_jobs_finished"] == 1


def test_as_published_a_job_that_never_fits_blocks_the_queue():
    run = episode([QUIET | {"res": 5}, QUIET], legacy=LegacySettings(keep_infeasible=True), **ONE)
    with pytest.raises(SimulationDeadlock):
        play(run)


def test_a_void_is_followed_by_a_decision_where_nothing_else_can_happen():
    run = episode([QUIET], void_limit=5, **ONE)
    while run.advance():
        run.decide(1)
    assert run.history.actions == [1] * 6  # the sixth in a row became action 0
    assert run.system.replaced == 1
    assert run.scores()["nb_jobs_finished"] == 1


def test_void_is_masked_only_where_nothing_else_can_happen():
    run = episode([QUIET | {"res": 4}, QUIET | {"res": 4, "subtime": 1}], **ONE)
    seen = []
    while run.advance():
        seen.append((run.now, run.system.masks().tolist()))
        run.decide(0)
    assert [mask for _, mask in seen] == [[True, True], [True, True], [True, False]]


def test_a_void_waits_for_the_next_event_while_jobs_run_and_not_as_published():
    jobs = [QUIET | {"res": 4}, QUIET | {"res": 4, "subtime": 1}]
    times = {}
    for name, legacy in (("default", {}), ("published", {"void_asks_again": True})):
        run = episode(jobs, void_limit=3, legacy=LegacySettings(**legacy), **ONE)
        while run.advance():
            run.decide(1 if run.now == 1 else 0)
        times[name] = run.history.times
    assert times["default"] == pytest.approx([0, 1, 5.25])
    assert times["published"] == pytest.approx([0, 1, 1, 1, 5.25])


def test_as_published_the_last_action_counts_as_void():
    jobs = [QUIET | {"res": 4}, QUIET | {"res": 4, "subtime": 1}]
    legacy = LegacySettings(last_action_is_void=True, void_asks_again=True)
    run = episode(jobs, void=False, void_limit=4, legacy=legacy, **ONE)
    play(run)
    assert run.history.times == pytest.approx([0, 1, 1, 1, 1, 5.25])


def test_as_published_rewards_are_read_at_the_next_message():
    jobs = [QUIET | {"res": 4}, QUIET | {"subtime": 1}, QUIET | {"subtime": 2}]
    rewards = []
    for late in (False, True):
        run = episode(jobs, objective="avg_job_completion", legacy=LegacySettings(late_reward=late), **ONE)
        play(run)
        rewards.append(run.history.rewards)
    assert rewards[0] == [-1.0, -2.0, -3.0, -2.0]
    assert rewards[1] == [-1.0, -3.0, -3.0, -2.0]  # the second action is blamed for the third job's arrival


def test_reference_mode_switches_every_defect_on():
    assert all(LegacySettings(**REFERENCE).model_dump().values())
    run = episode([{}, {}], legacy=LegacySettings(**REFERENCE), objective="makespan", void=False, **ONE)
    assert play(run)["makespan"] == pytest.approx(6.363636, abs=1e-6)


def test_as_published_hosts_are_confused_where_names_are_not_padded():
    where = cluster("pik", names="bare")
    hosts = {host.name: number for number, host in enumerate(where.platform.compute_hosts("master_host"))}
    assert hosts["cor_10"] == 2  # Batsim's order: cor_0, cor_1, cor_10, ...
    used = []
    for confused in (False, True):
        run = episode([QUIET | {"res": 3}], where, legacy=LegacySettings(hosts_by_creation=confused), **ONE)
        run.simulation.records.job_listener = lambda job: used.append(list(job.alloc))
        play(run)
    assert used == [sorted(hosts[f"cor_{core}"] for core in range(3)), [0, 1, 2]]
    assert used[0] != used[1]


def test_same_seed_same_run_and_another_seed_another_one():
    jobs = [QUIET | {"res": 1 + number % 3, "subtime": number // 4, "bw": 4 * (number % 5)} for number in range(24)]
    settings = {"selection": ("random-random",), "void": False, "objective": "edp"}
    runs = [episode(jobs, seed=seed, **settings) for seed in (1, 1, 2)]
    scores = [play(run) for run in runs]
    assert scores[0] == scores[1] and runs[0].history == runs[1].history
    assert scores[0] != scores[2]


def test_jobs_without_their_keys_are_refused():
    run = episode([QUIET | {"time": 0, "cpu": 1e9}], **ONE)
    with pytest.raises(UserError, match="req_time is 0"):
        play(run)


def test_actions_that_are_not_offered_are_refused():
    run = episode([QUIET], **ONE)
    assert run.advance()
    with pytest.raises(UserError, match="action 2"):
        run.decide(2)


def test_intervals():
    assert intervals([3]) == "3"
    assert intervals([0, 1, 2, 5, 7, 8]) == "0-2 5 7-8"
    assert intervals(np.arange(4).tolist()) == "0-3"
