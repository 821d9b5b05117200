"""Nodes that fail: the jobs on them begin again, by hand and for every kind of policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import episode, workload
from small_hetero import first, managed_scenario, prepared, scenario

from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.platforms.settings import PlatformSettings
from schedlab.stages.policies import make_rule
from schedlab.studies.hetero.env.settings import ALL_PAIRS
from schedlab.studies.hetero.outcomes import whole_jobs
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.simulator import failures
from schedlab.studies.hetero.simulator.episode import Cluster, make_cluster
from schedlab.studies.hetero.study import STUDY
from schedlab.workloads.batsim_file import write_batsim

TWO_NODES = {  # each with two cores of 4.2 Gflop/s, on which jobs take what they request
    "seed": 0, "nodes": [2, 2], "processors": [1, 1], "cores": [2, 2], "clock_rate": [1.05, 1.05],
    "flops_per_cycle": [4], "mem_bw": [1000.0, 1000.0], "power": [10.0, 10.0], "memory": [100.0],
}  # fmt: skip
OFTEN = {"mean_time_to_failure": 30.0, "mean_time_to_repair": 10.0}
NEVER = 1e8


class Listed:
    """Draws what is listed, whatever the mean, and then never again."""

    def __init__(self, draws: list[float]) -> None:
        self._draws = iter(draws)

    def exponential(self, mean: float) -> float:
        del mean
        return next(self._draws, NEVER)


@pytest.fixture
def failing(monkeypatch):
    """Sets the times of each node: until it fails, until it is repaired, until it fails again, and so on."""

    def of(times: dict[int, list[float]]) -> None:
        monkeypatch.setattr(failures, "generator", lambda *names: Listed(times.get(names[-1], [])))

    return of


def two_nodes() -> Cluster:
    return make_cluster(PlatformSettings(name="two", synthetic=TWO_NODES))


def by_hand(folder: Path, jobs: list[dict]) -> HeteroProblem:
    write_batsim(folder / "jobs.json", workload(jobs))
    source = {"name": "by hand", "source": "batsim", "file": str(folder / "jobs.json")}
    platform = {"name": "two", "synthetic": TWO_NODES}
    return prepared(scenario(platform=platform, workload=source, physics=OFTEN), folder)


def rollout(problem: HeteroProblem, target: str, **params):
    return problem.rollout(make_rule(STUDY, PolicySpec("rule", "rule", target, params), problem, 0), first(problem))


WIDE = {"res": 2, "time": 10, "mem": 0, "bw": 0}
JOBS = [WIDE, WIDE, {"res": 1, "time": 4, "mem": 0, "bw": 0, "subtime": 1}]


@pytest.mark.parametrize("rule", ["first-lowest", "fcfs"])
def test_a_job_on_a_node_that_fails_begins_again_behind_those_that_wait(tmp_path, failing, rule):
    """Node 0 fails at 3 s, when job 0 has done 3 of its 10 s, and works again at 5 s. Job 2, which waits since 1 s,
    then takes a core until 9 s; job 0 needs both and runs from 9 to 19 s.
    """
    failing({0: [3.0, 2.0]})
    outcome = rollout(by_hand(tmp_path, JOBS), rule)
    jobs = outcome.details["jobs"].set_index("job")
    assert jobs.loc["0", ["start", "finish", "state"]].tolist() == [0, 3, "COMPLETED_KILLED"]
    assert jobs.loc["0#1", ["submit", "start", "finish", "allocation"]].tolist() == [3, 9, 19, "0-1"]
    assert jobs.loc["2", ["start", "finish"]].tolist() == [5, 9] and jobs.loc["1", "finish"] == 10
    scores = {
        "makespan": 19.0,
        "mean_wait": (9 + 0 + 4) / 3,
        "mean_turnaround": (19 + 10 + 8) / 3,
        "mean_bounded_slowdown": (1.9 + 1 + 1) / 3,
        "utilisation": (2 * 3 + 2 * 10 + 2 * 10 + 4) / (4 * 19),
        "lost": 2 * 3 / (4 * 19),
        "unsuccessful": 0.0,
    }
    assert {name: outcome.scores[name] for name in scores} == pytest.approx(scores)


def test_a_failure_of_a_free_node_ends_no_job_but_takes_its_cores(tmp_path, failing):
    """Node 1 fails at 0.5 s, so job 1 takes both cores of node 0 after job 0; node 1 works again only at 40 s."""
    failing({1: [0.5, 39.5]})
    jobs = rollout(by_hand(tmp_path, [WIDE, WIDE | {"subtime": 1}]), "first-lowest").details["jobs"]
    assert jobs["start"].tolist() == [0, 10] and jobs["allocation"].tolist() == ["0-1", "0-1"]


def test_a_job_that_ends_when_its_node_fails_has_ended(tmp_path, failing):
    failing({0: [10.0, 5.0]})
    assert rollout(by_hand(tmp_path, [WIDE]), "fcfs").details["jobs"]["state"].tolist() == ["COMPLETED_SUCCESSFULLY"]


def test_a_job_on_two_nodes_ends_with_either_and_frees_the_other(tmp_path, failing):
    """Job 0 has all four cores; node 1 fails at 3 s for long, and job 1, of two cores, starts on node 0 at once."""
    failing({1: [3.0, 50.0]})
    jobs = rollout(by_hand(tmp_path, [WIDE | {"res": 4}, WIDE | {"subtime": 1}]), "fcfs").details["jobs"]
    jobs = jobs.set_index("job")
    assert jobs.loc["1", ["start", "allocation"]].tolist() == [3, "0-1"]
    assert jobs.loc["0#1", ["start", "finish"]].tolist() == [53, 63]


def test_a_job_is_given_up_after_all_its_attempts(tmp_path, failing, monkeypatch):
    monkeypatch.setattr(failures, "MOST_ATTEMPTS", 3)
    failing({0: [1.0] * 50, 1: [NEVER]})
    outcome = rollout(by_hand(tmp_path, [WIDE, WIDE]), "first-lowest")
    assert outcome.details["jobs"]["job"].tolist() == ["0", "1", "0#1", "0#2"]
    assert outcome.scores["unsuccessful"] == 0.5


def test_jobs_that_nodes_never_let_end_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(failures, "MOST_CHANGES", 20)
    with pytest.raises(UserError, match=r"physics\.mean_time_to_failure"):
        rollout(by_hand(tmp_path, [WIDE | {"time": 100_000}]), "first-lowest")


def test_failures_have_the_same_dates_under_every_policy_and_others_with_another_seed():
    def dates(pair: str, seed: int) -> dict[float, list]:
        jobs = [{"res": 1 + number % 4, "time": 20, "subtime": number} for number in range(12)]
        run, found = episode(jobs, two_nodes(), seed, OFTEN, selection=(pair,), void=False), {}
        take = run.system.take

        def noting(message):
            take(message)
            found.update({message["now"]: run.system.failures.changes} if run.system.failures.changes else {})

        run.system.take = noting
        while run.advance():
            run.decide(0)
        return found

    one, other = dates("first-lowest", 1), dates("shortest-random", 1)
    last = min(max(one), max(other))
    assert len(one) > 5 and {at: one[at] for at in one if at <= last} == {at: other[at] for at in other if at <= last}
    assert one != dates("first-lowest", 2)
    first_failure = round(generator(1, "hetero", "failures", 0).exponential(30.0), 6)
    assert (0, False) in one[first_failure]


listed = st.lists(
    st.fixed_dictionaries(
        {"subtime": st.integers(0, 60), "res": st.integers(1, 4), "time": st.integers(1, 12), "bw": st.integers(0, 24)}
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(listed, st.integers(0, 3), st.booleans())
def test_every_job_ends_once_and_no_job_has_a_core_of_a_failed_node(jobs, seed, void):
    weighted = {"objective": "energy_consumption", "time_weighted": True, "void": void}
    run = episode([job | {"mem": 100} for job in jobs], two_nodes(), seed, OFTEN, **weighted)
    rng, model, ended = np.random.default_rng(seed), run.system.model, []
    run.simulation.records.job_listener = ended.append
    while run.advance():
        run.decide(int(rng.integers(len(ALL_PAIRS) + void)))
        assert not model.down[model.served > 0].any()
        assert model.busy_cores == (model.served > 0).sum()
    done = [job.job.id.partition("#")[0] for job in ended if job.state == "COMPLETED_SUCCESSFULLY"]
    assert sorted(done) == sorted(f"w0!{number}" for number in range(len(jobs)))
    assert {job.state for job in ended} <= {"COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"}
    assert -sum(run.history.rewards) == pytest.approx(run.scores()["consumed_joules"], rel=1e-6)


HOURLY = {"mean_time_to_failure": 40_000.0, "mean_time_to_repair": 5_000.0}


def test_schedulers_learn_of_the_cores_that_are_left(tmp_path):
    """First come, first served starts what its pair starts, when it starts it: its view of the cores is right."""
    pytest.importorskip("batsim")
    problem = prepared(managed_scenario(40, physics=HOURLY), tmp_path)
    found = {name: rollout(problem, name) for name in ("fcfs", "sjf", "easy", "conservative", "first-lowest")}
    jobs = {name: outcome.details["jobs"] for name, outcome in found.items()}
    assert jobs["fcfs"]["state"].eq("COMPLETED_KILLED").sum() > 3
    assert jobs["fcfs"].equals(jobs["first-lowest"])
    for name, table in jobs.items():
        assert len(whole_jobs(table)) == 40 and found[name].scores["unsuccessful"] == 0.0
    env = problem.env(first(problem), 0)
    env.reset(seed=0)
    over = False
    while not over:
        *_, over, _, info = env.step(0)
    assert info["scores"]["nb_jobs_killed"] > 0
