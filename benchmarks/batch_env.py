"""Steps per second of the batch environments, and jobs per second of rules, on one core: python benchmarks/batch_env.py
[--swf TRACE]

CPU seconds of this process, compiled code loaded before; the best of five. The environments choose the first row that
may be chosen, on windows of 256 jobs of a workload drawn here; rules run the first 10,000 jobs of that workload or of a
trace.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from schedlab.studies.batch.env.env import BatchEnv
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.env.vector import BatchVectorEnv
from schedlab.studies.batch.jobs import Jobs, Machine, jobs_of, machine_of
from schedlab.studies.batch.scenario import BACKFILLS
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.simulator.stepper import Task

STEPS = 25_000  # of each of the five measurements of an environment; four times as many batched
LENGTH, COPIES, JOBS = 256, 64, 10_000
CASES = {
    "features": {},
    "features, difference": {"reward": "difference", "measure": "log_bsld"},
    "rlscheduler": {"layout": "rlscheduler"},
    "dissertation": {"layout": "dissertation"},
}


def main() -> None:
    """Measure all and print two tables."""
    parser = argparse.ArgumentParser(description="measure the batch environments and rules")
    parser.add_argument("--swf", help="a trace in place of the drawn workload")
    jobs, machine = workload(parser.parse_args().swf)
    print(f"{'layout':22} {'backfill':13} {'scalar /s':>10} {'batched /s':>11}")
    for name, values in CASES.items():
        for backfill in BACKFILLS if name == "features" else ("none",):
            task = task_of(jobs, machine, backfill, **values)
            print(f"{name:22} {backfill:13} {best(scalar(task)):10,.0f} {best(batched(task)):11,.0f}", flush=True)
    print(f"\n{'rule':8} " + " ".join(f"{name:>14}" for name in BACKFILLS) + "   (jobs /s)")
    first = jobs.take(slice(0, JOBS))
    for rule in ("fcfs", "sjf", "wfp3"):
        rates = [best(rule_over(first, machine, rule, backfill), 3) for backfill in BACKFILLS]
        print(f"{rule:8} " + " ".join(f"{rate:14,.0f}" for rate in rates), flush=True)


def best(work: Callable[[], int], times: int = 5) -> float:
    """Return the highest rate of several, each with what the work counts, after one that loads compiled code."""
    work()
    return max(rate(work) for _ in range(times))


def rate(work: Callable[[], int]) -> float:
    """Return what the work counts, a CPU second."""
    begin = time.process_time()
    count = work()
    return count / (time.process_time() - begin)


def scalar(task: Task, steps: int = STEPS) -> Callable[[], int]:
    """Return what takes steps of the Gymnasium environment, resets included."""
    env = BatchEnv(task, seed=0)
    env.reset()

    def step() -> int:
        for _ in range(steps):
            if env.step(int(env.action_masks().argmax()))[2]:
                env.reset()
        return steps

    return step


def batched(task: Task, steps: int = 4 * STEPS, copies: int = COPIES) -> Callable[[], int]:
    """Return what takes steps of the vectorised environment, in whole rows of copies, resets included."""
    env, rows = BatchVectorEnv(task, copies, seed=0), -(-steps // copies)
    env.reset()

    def step() -> int:
        for _ in range(rows):
            env.step(env.action_masks().argmax(axis=1))
        return rows * copies

    return step


def rule_over(jobs: Jobs, machine: Machine, rule: str, backfill: str) -> Callable[[], int]:
    """Return what runs a rule over all jobs as one window."""

    def run() -> int:
        simulate(jobs, machine, rule, backfill)
        return len(jobs)

    return run


def task_of(jobs: Jobs, machine: Machine, backfill: str = "none", **values: object) -> Task:
    """Return the task of windows of LENGTH jobs that begin in the first half."""
    starts = range(len(jobs) // 2 - LENGTH)
    return Task(jobs, machine, starts, (LENGTH, LENGTH), backfill, settings=EnvironmentSettings(**values))


def workload(file: str | None, count: int = 2 * JOBS) -> tuple[Jobs, Machine]:
    """Return the jobs and the machine of a trace, or drawn jobs on 256 processors."""
    if file:
        from schedlab.workloads.clean import CleaningSettings, clean
        from schedlab.workloads.swf import read_swf

        trace, _ = clean(read_swf(file), CleaningSettings())
    else:
        from schedlab.workloads.prepare import make_trace
        from schedlab.workloads.settings import WorkloadSettings

        lublin = {"jobs": count, "processors": 256, "load": 0.9}
        trace, _ = make_trace(WorkloadSettings.model_validate({"name": "drawn", "source": "lublin", "lublin": lublin}))
    machine = machine_of(trace)
    return jobs_of(trace, machine), machine


if __name__ == "__main__":
    main()
