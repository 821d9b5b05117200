"""Schedulers upon the resource model: bandwidth, memory and energy count for them as for policy pairs."""

from __future__ import annotations

import pandas as pd
import pytest
from small_clusters import workload
from small_hetero import first, managed_scenario, prepared, scenario

from schedlab.batsim.errors import ProtocolError
from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.stages.policies import make_rule
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.study import STUDY
from schedlab.workloads.batsim_file import write_batsim

pytest.importorskip("batsim")

PREAMBLE = "from batsim.batsim import BatsimScheduler\nfrom procset import ProcSet\n"
GREEDY = (
    PREAMBLE
    + '''

class Greedy(BatsimScheduler):
    """Puts each job on the cores that `where` names, at once."""

    def onJobSubmission(self, job):
        job.allocation = ProcSet(*self.options["where"][int(job.id.rpartition("!")[2])])
        self.bs.execute_job(job)

    def onJobCompletion(self, job):
        assert list(job.allocation) == self.options["where"][int(job.id.rpartition("!")[2])]
'''
)
PSTATES = (
    PREAMBLE
    + '''

class Pstates(BatsimScheduler):
    """Sets a pstate."""

    def onJobSubmission(self, job):
        self.bs.set_resource_state(ProcSet(0), 0)
'''
)
TWICE = GREEDY.replace("        self.bs.execute_job(job)\n", "        self.bs.execute_jobs([job, job])\n")


def rollout(problem: HeteroProblem, target: str, seed: int = 0, **params):
    return problem.rollout(make_rule(STUDY, PolicySpec("rule", "rule", target, params), problem, seed), first(problem))


def by_hand(tmp_path, jobs: list[dict], **changes) -> HeteroProblem:
    """Jobs on `learning`: cores 0 and 1 at 4.0 Gflop/s, the others at 4.4; 32 GB/s a processor, 32 GB in all."""
    tmp_path.mkdir(exist_ok=True)
    write_batsim(tmp_path / "jobs.json", workload(jobs))
    settings = scenario(
        platform={"name": "learning", "file": "learning"},
        workload={"name": "by hand", "source": "batsim", "file": str(tmp_path / "jobs.json")},
        **changes,
    )
    return prepared(settings, tmp_path)


def test_contention_slows_the_jobs_of_a_scheduler_that_does_not_know_it(tmp_path):
    jobs = by_hand(tmp_path / "over", [{}, {}])  # 24 + 24 GB/s on the 32 of processor 0
    slow = rollout(jobs, "fcfs")
    assert slow.scores["makespan"] == pytest.approx(7.0, abs=1e-5)  # 21 Gflop at 3 Gflop/s
    assert slow.details["overuse"].to_numpy().tolist() == [pytest.approx([0, 0, 7.0], abs=1e-5)]
    assert slow.scores["oversubscription"] == pytest.approx(0.5)
    assert rollout(jobs, "fcfs", cores="high_mem_bw").scores["makespan"] == pytest.approx(5.25, abs=1e-5)
    assert rollout(by_hand(tmp_path / "mild", [{"bw": 8}, {"bw": 8}]), "fcfs").scores["makespan"] == pytest.approx(
        5.25, abs=1e-5
    )


def test_energy_of_a_scheduler_is_that_of_the_same_placement_by_a_pair(tmp_path):
    problem = by_hand(tmp_path, [{}, {}])
    for cores, joules in (("high_mem_bw", 563.182), ("low_power", 595.0)):
        scheduled, paired = rollout(problem, "fcfs", cores=cores), rollout(problem, f"first-{cores}")
        assert scheduled.scores["energy"] == pytest.approx(joules, abs=1e-3)
        assert scheduled.scores == paired.scores


@pytest.mark.parametrize("scheduler", ["fcfs", "sjf"])
@pytest.mark.parametrize("cores", [name for name in ALL_CORE_POLICIES if name != "random"])
def test_first_come_and_shortest_first_are_pairs(tmp_path, scheduler, cores):
    """Both hold the queue at the first job that does not fit; memory is ample, so that it never decides."""
    platform = managed_scenario().platform.model_dump(mode="json")
    platform["synthetic"]["memory"] = [64.0]
    problem = prepared(managed_scenario(platform=platform), tmp_path)
    scheduled = rollout(problem, scheduler, cores=cores)
    paired = rollout(problem, f"{'first' if scheduler == 'fcfs' else 'shortest'}-{cores}")
    assert scheduled.scores["oversubscription"] > 0
    assert scheduled.scores == pytest.approx(paired.scores, rel=1e-9)
    for name in ("jobs", "overuse"):
        pd.testing.assert_frame_equal(scheduled.details[name], paired.details[name])


def test_a_start_waits_for_memory_and_holds_those_behind_it(tmp_path):
    problem = by_hand(tmp_path, [{"mem": 20_000, "bw": 0}, {"mem": 20_000, "bw": 0}, {"mem": 1_000, "bw": 0}])
    filled = rollout(problem, "filler").details
    jobs = filled["jobs"]
    assert jobs["start"].tolist() == [0.0, jobs["finish"][0], jobs["finish"][0]]
    assert set(filled["refusals"].itertuples(index=False, name=None)) == {(0.0, "memory")}
    assert jobs["start"].tolist() == rollout(problem, "first-lowest").details["jobs"]["start"].tolist()


def test_jobs_that_never_fit_are_counted_and_the_scheduler_does_not_hear_of_them(tmp_path):
    problem = by_hand(tmp_path, [{}, {"res": 5}, {"res": 2, "mem": 20_000}])
    for rule in ("filler", "first-low_power"):
        outcome = rollout(problem, rule)
        assert outcome.scores["infeasible"] == 2
        assert outcome.scores["unsuccessful"] == pytest.approx(2 / 3)
        assert outcome.details["jobs"]["start"].notna().tolist() == [True, False, False]


def test_backfilling_has_walltimes_that_contention_cannot_break(tmp_path):
    problem = prepared(managed_scenario(jobs=60), tmp_path)
    for name in ("easy", "conservative", "filler"):
        outcome = rollout(problem, name)
        assert outcome.scores["oversubscription"] > 0 and outcome.scores["unsuccessful"] == 0


def test_a_users_scheduler_names_its_cores(tmp_path):
    (tmp_path / "mine.py").write_text(GREEDY)
    problem = by_hand(tmp_path, [{}, {}])
    outcome = rollout(problem, f"{tmp_path}/mine.py:Greedy", where=[[2], [3]])
    assert outcome.details["jobs"]["allocation"].tolist() == ["2", "3"]
    assert outcome.scores["makespan"] == pytest.approx(6.363636, abs=1e-5)


def test_host_numbers_are_mapped_to_cores_by_name(tmp_path):
    (tmp_path / "mine.py").write_text(GREEDY)
    write_batsim(tmp_path / "jobs.json", workload([{"mem": 100}, {"mem": 100}], 144))
    settings = scenario(
        platform={"name": "das2", "file": "das2", "names": "bare"},
        workload={"name": "by hand", "source": "batsim", "file": str(tmp_path / "jobs.json")},
    )
    problem = prepared(settings, tmp_path)
    jobs = rollout(problem, f"{tmp_path}/mine.py:Greedy", where=[[1], [2]]).details[
        "jobs"
    ]  # hosts 1 and 2 are cor_1 and cor_10
    assert jobs["allocation"].tolist() == ["1", "2"]
    assert rollout(problem, "fcfs").details["jobs"]["allocation"].tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "name", "kind", "what"),
    [(PSTATES, "Pstates", UserError, r"platform\.pstates\.managed"), (TWICE, "Twice", ProtocolError, "EXECUTE_JOB")],
)
def test_schedulers_that_cannot_be_managed_are_refused(tmp_path, text, name, kind, what):
    (tmp_path / "mine.py").write_text(text.replace("class Greedy", "class Twice"))
    with pytest.raises(kind, match=what):
        rollout(by_hand(tmp_path, [{}, {}]), f"{tmp_path}/mine.py:{name}", where=[[0], [1]])


def test_a_job_put_where_its_memory_can_never_be_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text(GREEDY)
    with pytest.raises(UserError, match=r"20000 MB.*2 cores of node 0"):
        problem = by_hand(tmp_path, [{"res": 2, "mem": 20_000}], decisions={"legacy": {"keep_infeasible": True}})
        rollout(problem, f"{tmp_path}/mine.py:Greedy", where=[[0, 1]])
