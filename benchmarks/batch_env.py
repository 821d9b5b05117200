"""Steps per second of the batch environments, and jobs per second of rules, on one core: python benchmarks/batch_env.py [--swf TRACE]

CPU seconds of this process, compiled code loaded before; the best of five. The environments choose the first row that may be chosen, on
windows of 256 jobs of a workload drawn here; rules run the first 10,000 jobs of that workload or of a trace.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from schedlab.studies.batch.env import BatchEnv
from schedlab.studies.batch.env_vector import BatchVectorEnv
from schedlab.studies.batch.environment_settings import EnvironmentSettings
from schedlab.studies.batch.jobs import Jobs, Machine, jobs_of, machine_of
from schedlab.studies.batch.simulate import BACKFILLS, simulate
from schedlab.studies.batch.stepping import Task

SECONDS = 1.0  # of each of the five measurements of an environment
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
            starts = range(len(jobs) // 2 - LENGTH)
            task = Task(jobs, machine, starts, (LENGTH, LENGTH), backfill, settings=EnvironmentSettings(**values))
            print(f"{name:22} {backfill:13} {best(lambda: scalar(task)):10,.0f} {best(lambda: batched(task)):11,.0f}", flush=True)  # noqa: B023
    print(f"\n{'rule':8} " + " ".join(f"{name:>14}" for name in BACKFILLS) + "   (jobs /s)")
    first = jobs.take(slice(0, JOBS))
    for rule in ("fcfs", "sjf", "wfp3"):
        rates = [best(lambda: jobs_per_second(first, machine, rule, backfill), 3) for backfill in BACKFILLS]  # noqa: B023
        print(f"{rule:8} " + " ".join(f"{rate:14,.0f}" for rate in rates), flush=True)


def best(measure: Callable[[], float], times: int = 5) -> float:
    """Return the highest rate of several, after one that loads compiled code."""
    measure()
    return max(measure() for _ in range(times))


def scalar(task: Task) -> float:
    """Steps per second of the Gymnasium environment, resets included."""
    env, steps, begin = BatchEnv(task, seed=0), 0, time.process_time()
    env.reset()
    while (seconds := time.process_time() - begin) < SECONDS:
        for _ in range(100):
            _, _, ended, _, _ = env.step(int(env.action_masks().argmax()))
            steps += 1
            if ended:
                env.reset()
    return steps / seconds


def batched(task: Task) -> float:
    """Steps per second of the vectorised environment, resets included."""
    env, steps = BatchVectorEnv(task, COPIES, seed=0), 0
    env.reset()
    begin = time.process_time()
    while (seconds := time.process_time() - begin) < SECONDS:
        for _ in range(10):
            env.step(env.action_masks().argmax(axis=1))
            steps += COPIES
    return steps / seconds


def jobs_per_second(jobs: Jobs, machine: Machine, rule: str, backfill: str) -> float:
    """Jobs per second of a rule over all jobs as one window."""
    begin = time.process_time()
    simulate(jobs, machine, rule, backfill)
    return len(jobs) / (time.process_time() - begin)


def workload(file: str | None) -> tuple[Jobs, Machine]:
    """Return the jobs and the machine of a trace, or 20,000 drawn jobs on 256 processors."""
    if file:
        from schedlab.workloads.clean import CleaningSettings, clean
        from schedlab.workloads.swf import read_swf

        trace, _ = clean(read_swf(file), CleaningSettings())
    else:
        from schedlab.workloads.prepare import make_trace
        from schedlab.workloads.settings import WorkloadSettings

        lublin = {"jobs": 2 * JOBS, "processors": 256, "load": 0.9}
        trace, _ = make_trace(WorkloadSettings.model_validate({"name": "drawn", "source": "lublin", "lublin": lublin}))
    machine = machine_of(trace)
    return jobs_of(trace, machine), machine


if __name__ == "__main__":
    main()
