"""What an epoch of PPO costs on the batch study: CPU seconds, memory, and the time of a decision. Speed alone: what is
learned is measured by the workflow.

    python benchmarks/batch_ppo.py conf/learner/batch/ppo_published.yaml [--passes 80]

An epoch is 25,600 decisions (100 windows of 256 jobs) of drawn jobs: rollout and all passes. One thread; time is CPU
time.
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.study import STUDY
from schedlab.workloads.prepare import make_trace

EPOCH = 25_600


def problem_of(jobs: int) -> BatchProblem:
    """Return drawn jobs in windows of 256."""
    lublin = {"jobs": jobs, "processors": 256, "load": 0.9, "users": 40, "estimates": {"model": "menu"}}
    workload = {"name": "lublin", "source": "lublin", "seed": 1, "lublin": lublin}
    scenario = validate(BatchScenario, {"name": "lublin", "seed": 1, "workload": workload, "windows": {"length": 256}})
    return BatchProblem(scenario, make_trace(scenario.workload)[0])


def learned(
    problem: BatchProblem, params: dict[str, Any], steps: int, seed: int
) -> tuple[Any, float, dict[str, float]]:
    """Return (policy, CPU seconds of learning it, last point of each of its curves)."""
    name, values = params["name"], {key: value for key, value in params.items() if key != "name"}
    spec = PolicySpec("measured", "learned", name, values, train_on=(Phase(("lublin",), steps),))
    learner, last = load_object(STUDY.learners[name])(), {}
    with tempfile.TemporaryDirectory() as folder:
        paths, began = LearnPaths(None, Path(folder, "policy.zip"), Path(folder, "progress")), time.process_time()

        def curve(metric: str, value: float, **_: Any) -> None:
            last[metric] = value

        learner.learn({"lublin": problem}, spec, seed, paths, curve)
        return learner.load(paths.checkpoint, problem), time.process_time() - began, last


def main() -> None:
    """Print what an epoch costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="values of a learner: conf/learner/batch/*.yaml")
    parser.add_argument("--passes", type=int, help="over the epoch, all of them taken (default: as the file says)")
    arguments = parser.parse_args()
    values = yaml.safe_load(arguments.file.read_text()) | {"environments": 100, "n_steps": 256}
    if arguments.passes:
        values |= {"n_epochs": arguments.passes, "target_kl": None}
    problem = problem_of(10_000)
    learned(problem, values | {"n_steps": 2, "batch_size": 100, "n_epochs": 1}, 200, 0)  # imports and compiles
    gc.collect()  # what that leaves is not the epoch's
    policy, seconds, last = learned(problem, values, EPOCH, 0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{seconds:.1f} CPU s, {memory:.2f} GiB at most, {last}")
    unit, began = problem.units("test")[0], time.process_time()
    problem.rollout(policy, unit)
    print(f"{(time.process_time() - began) / 256 * 1e6:.0f} us a decision, simulator included")


if __name__ == "__main__":
    main()
