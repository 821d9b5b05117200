"""The oracle `clairvoyant` and the bound `alone`."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from small_hetero import managed_scenario, prepared

from schedlab.config.errors import UserError
from schedlab.studies.hetero.kernels.cluster_kernel import CORE_CODES
from schedlab.studies.hetero.kernels.run_kernel import slowdown
from schedlab.studies.hetero.kernels.scheduler_kernel import run_reserve
from schedlab.studies.hetero.learners.clairvoyant import clairvoyant, with_true_times
from schedlab.studies.hetero.learners.compiled_runs import CompiledRuns
from schedlab.studies.hetero.learners.jobs_alone import jobs_alone
from schedlab.studies.hetero.rules import PairRule, ReserveRule

GRID = {"longest": (100.0, 1000.0), "free": (0.1, 0.6), "cores": ("low_power", "high_mem_bw")}
METRIC, UNUSED = "mean_bounded_slowdown", np.random.default_rng(0)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    scenario = managed_scenario(40, replicates={"validation": 1, "test": 4}, simulator="compiled")
    return prepared(scenario, tmp_path_factory.mktemp("oracles"))


def test_the_oracle_is_no_worse_than_its_rule_in_hindsight_and_better_somewhere(problem):
    gains = []
    for unit in problem.units("test"):
        jobs = CompiledRuns(problem).jobs(unit)
        size, known = jobs.cluster.size.sum(), with_true_times(jobs.jobs)
        runs = [
            run_reserve(known, jobs.cluster, longest, round(free * size), CORE_CODES[cores], UNUSED)
            for longest, free, cores in product(*GRID.values())
        ]
        reached = problem.rollout(clairvoyant(GRID, problem, 0), unit).scores[METRIC]
        gains.append(min(slowdown(run, known, 10.0) for run in runs) - reached)
    assert min(gains) >= -1e-12
    assert max(gains) > 0.01


def test_jobs_with_true_times_take_what_they_took(problem):
    jobs = CompiledRuns(problem).jobs(problem.units("test")[0])
    known = with_true_times(jobs.jobs)
    assert (known.time <= jobs.jobs.time).all() and (known.time < jobs.jobs.time).any()
    whole = [made._replace(keys=np.zeros_like(made.keys)) for made in (jobs.jobs, known)]  # nobody looks at times
    runs = [run_reserve(made, jobs.cluster, 1e9, 0, CORE_CODES["low_power"], UNUSED) for made in whole]
    assert runs[1].ended == pytest.approx(runs[0].ended, rel=1e-12)


def test_no_policy_is_better_than_the_bound(problem):
    lower = ("mean_bounded_slowdown", "mean_wait", "mean_turnaround", "makespan")
    rules = [PairRule("saf-low_power"), ReserveRule(1000.0, 0.5), clairvoyant(GRID, problem, 0)]
    for unit in problem.units("test"):
        bound = problem.rollout(jobs_alone({}, problem, 0), unit).scores
        assert bound["mean_bounded_slowdown"] == 1.0 and bound["mean_wait"] == 0.0
        for rule in rules:
            scores = problem.rollout(rule, unit).scores
            assert all(scores[name] >= bound[name] * (1 - 1e-9) for name in lower)


def test_a_job_alone_runs_on_the_fastest_cores(problem):
    jobs = CompiledRuns(problem).jobs(problem.units("test")[0])
    each = jobs.jobs._replace(memory=np.zeros_like(jobs.jobs.memory))  # which keeps no core from a job
    jobs.jobs, fastest = each, np.sort(np.repeat(jobs.cluster.speed, jobs.cluster.size))[::-1]
    run = jobs_alone({}, problem, 0).run_compiled(jobs)
    assert run.ended - run.started == pytest.approx(each.flops / fastest[each.cores - 1])


@pytest.mark.parametrize("make", [clairvoyant, jobs_alone])
def test_another_simulator_is_refused(tmp_path, make):
    with pytest.raises(UserError) as caught:
        make({}, prepared(managed_scenario(5), tmp_path), 0)
    assert caught.value.expected == "simulator: compiled"
