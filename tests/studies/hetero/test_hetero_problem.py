"""Simulated replicates: scores by hand, details, schedulers of all three origins, and the same result every time."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from small_hetero import first, managed_scenario, part, prepared, scenario

from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed
from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.runtime.job_log import job_log
from schedlab.stages.policies import make_rule
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.study import STUDY
from small_conf import OWN_SCHEDULER

GFLOP = 1e9


class FirstAction:
    """A policy that always takes the first action."""

    def reset(self, unit):
        self.unit = unit

    def act(self, observation, mask):
        assert observation.ndim == 1 and mask[0]
        return 0


def job(number: int, submit: float, cores: int, walltime: float, profile: str = "work") -> dict:
    return {"id": number, "subtime": submit, "res": cores, "walltime": walltime, "profile": profile}


@pytest.fixture
def by_hand(tmp_path) -> HeteroProblem:
    """The cores of `learning` (two at 4.0 Gflop/s, 40 W, two at 4.4, 50 W; 10 % when idle), four jobs of 44 Gflop.

    0: two cores. 1: all four. 2: one core. 3: five cores, which there are not.
    """
    jobs = [job(0, 5, 2, 14), job(1, 6, 4, 12), job(2, 7, 1, 12), job(3, 8, 5, 12)]
    workload = {
        "nb_res": 4,
        "jobs": jobs,
        "profiles": {"work": {"type": "parallel_homogeneous", "cpu": 44 * GFLOP, "com": 0}},
    }
    (tmp_path / "jobs.json").write_text(json.dumps(workload))
    settings = scenario(
        platform={"name": "learning", "file": "learning", "pstates": {"managed": False, "idle_power": 0.1}},
        workload={"name": "by hand", "source": "batsim", "file": str(tmp_path / "jobs.json")},
    )
    return prepared(settings, tmp_path)


def rollout(problem: HeteroProblem, target: str, **params):
    return problem.rollout(make_rule(STUDY, PolicySpec("rule", "rule", target, params), problem, 0), first(problem))


def test_first_come_first_served_by_hand(by_hand):
    outcome = rollout(by_hand, "fcfs")
    jobs = outcome.details["jobs"].set_index("job")
    # job 0 runs on the slow cores 0 and 1 for 11 s; job 1 on all four as long, by the slowest; then job 2
    assert jobs["start"].tolist()[:3] == [5, 16, 27] and jobs["finish"].tolist()[:3] == [16, 27, 38]
    assert jobs["allocation"].tolist() == ["0-1", "0-3", "0", ""]
    assert jobs["success"].tolist() == [True, True, True, False]
    busy = (
        11 * 2 * 40 + 11 * (2 * 40 + 2 * (5 + 45 * 4.0 / 4.4)) + 11 * 40
    )  # the fast cores wait for the slow: 10/11 of their load
    idle = 11 * 2 * 5 + 11 * (4 + 2 * 5)
    assert outcome.scores == pytest.approx(
        {
            "makespan": 33.0,
            "mean_wait": (0 + 10 + 20) / 3,
            "mean_turnaround": (11 + 21 + 31) / 3,
            "mean_bounded_slowdown": (1 + 21 / 11 + 31 / 11) / 3,
            "utilisation": (11 * 2 + 11 * 4 + 11) / (4 * 33),
            "unsuccessful": 0.25,
            "energy": busy + idle,
            "energy_delay_product": 33.0 * (busy + idle),
        },
        rel=1e-6,
    )
    assert outcome.details["load"].tail(1)["busy_hosts"].item() == 0
    energy = outcome.details["energy"]
    assert energy["energy"].iloc[-1] - energy["energy"].iloc[0] == pytest.approx(busy + idle, rel=1e-6)


def test_easy_fills_the_gap_that_cannot_delay_the_next_job(by_hand):
    outcome = rollout(by_hand, "easy")
    jobs = outcome.details["jobs"].set_index("job")
    # job 0 may run until 19, when job 1 can start at the latest, and job 2 has until 19 too
    assert jobs.loc["2", ["start", "finish", "allocation"]].tolist() == [7, 17, "2"]
    assert jobs.loc["1", "start"] == 17
    assert outcome.scores["mean_wait"] == pytest.approx((0 + 11 + 0) / 3)


def test_schedulers_of_pybatsims_package_run(by_hand, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    outcome = rollout(by_hand, "pybatsim", scheduler="schedFcfs")
    assert outcome.scores["makespan"] == pytest.approx(33.0)
    assert not list(Path.cwd().iterdir())  # its events go where the outputs go


def test_a_users_own_scheduler_runs_with_its_options(by_hand, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        OWN_SCHEDULER.replace(
            "self.queue.append(job)",
            "self.queue.append(job) if job.requested_resources < 5 else self.bs.reject_jobs([job])",
        )
    )
    jobs = rollout(by_hand, f"{file}:LastCoreFirst").details["jobs"]
    assert jobs["allocation"].tolist() == ["2-3", "0-3", "3", ""]
    assert jobs["finish"].iloc[0] == 15  # 10 s on the fast cores
    with pytest.raises(SchedulerFailed, match="LastCoreFirst"):
        rollout(by_hand, f"{file}:LastCoreFirst", spare=1)


@pytest.mark.parametrize("scheduler", ["fillerSched", "schedFcfs", "easyBackfill"])
def test_the_log_of_a_job_holds_no_conversation(by_hand, tmp_path, scheduler):
    with job_log(tmp_path / "job.log"):
        rollout(by_hand, "pybatsim", scheduler=scheduler)
    assert len((tmp_path / "job.log").read_text()) < 500


def test_a_scheduler_has_the_time_that_the_scenario_gives_it(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN_SCHEDULER.replace("        self.queue.append(job)", "        while True:\n            pass"))
    with pytest.raises(SchedulerFailed, match=r"0\.2 s"):
        rollout(prepared(scenario(scheduler_limit=0.2), tmp_path), f"{file}:LastCoreFirst")


def test_a_class_that_is_not_there_is_refused(by_hand, tmp_path):
    (tmp_path / "mine.py").write_text(OWN_SCHEDULER)
    with pytest.raises(UserError, match="LastCoreFirst"):
        rollout(by_hand, f"{tmp_path / 'mine.py'}:LastCore")


def test_without_energy_there_is_none(tmp_path):
    outcome = rollout(prepared(scenario(energy=False), tmp_path), "fcfs")
    assert not {"energy", "energy_delay_product"} & outcome.scores.keys()
    assert "energy" not in outcome.details


def test_the_same_run_gives_the_same_tables(tmp_path):
    problem = prepared(scenario(), tmp_path)
    outcomes = [rollout(problem, "easy", priority="f1") for _ in range(2)]
    assert outcomes[0].scores == outcomes[1].scores
    for name in ("jobs", "load", "energy"):
        pd.testing.assert_frame_equal(outcomes[0].details[name], outcomes[1].details[name])


def test_jobs_are_not_killed_for_running_on_a_slow_core(tmp_path):
    workload = {
        **part("workload/lublin.yaml"),
        "lublin": {"processors": 48, "jobs": 30, "load": 0.9},
    }  # requests are exact
    problem = prepared(scenario(workload=workload), tmp_path)
    for name in ("fcfs", "filler", "easy", "conservative"):
        assert rollout(problem, name).scores["unsuccessful"] == 0.0


def test_what_is_declared_is_what_is_given(tmp_path):
    problem = prepared(managed_scenario(), tmp_path)

    outcome = problem.rollout(FirstAction(), first(problem))
    assert outcome.scores.keys() == {metric.name for metric in STUDY.metrics} - {"lost"}  # where nodes fail
    assert outcome.details.keys() == STUDY.details.keys()
    without = rollout(prepared(scenario(), tmp_path / "plain"), "fcfs")
    assert outcome.scores.keys() - without.scores.keys() == {"oversubscription", "infeasible"}
    assert outcome.details.keys() - without.details.keys() == {"overuse", "refusals", "decisions"}


def test_a_real_batsim_that_is_missing_is_refused(tmp_path):
    problem = prepared(scenario(simulator="batsim", batsim="batsim-that-is-not-there"), tmp_path)
    with pytest.raises(UserError, match="batsim-that-is-not-there"):
        rollout(problem, "fcfs")
