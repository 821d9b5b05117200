"""Allocations that a few measurements of a job recommend: logs of earlier runs, or short probes.

A performance model (step time and core time per sample) is fitted to the measurements, and the best allocation by this
model is computed for each preference. The rule `fitted_constant` goes to this allocation and stays. A learner sends
half of its exploring episodes there and imitates good ones, so that observed rewards correct a wrong model. Source:
SLA-MORL's abstract.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.model.analyser import OfflineDataAnalyzer
from schedlab.studies.cloud.model.fit import fit
from schedlab.studies.cloud.model.step_time import CORE_EXPONENT, StepParameters
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.replay import SECONDS, Replay, affordable, make_replay
from schedlab.studies.cloud.rules.oracle import best_constant

if TYPE_CHECKING:
    import pandas as pd

    from schedlab.studies.cloud.problem import CloudProblem

Source = Literal["similar", "historical", "baseline"]
PROBES = (
    (1, 1),
    (1, 2),
    (1, 4),
    (2, 8),
)  # (nodes, GPUs); those that the limits exclude are left out


@dataclass(frozen=True)
class Guides:
    """The recommended allocations.

    targets    preference -> number of the allocation in the lattice
    intervals  intervals of training that this job spent on the measurements
    """

    targets: dict[str, int]
    intervals: int


@lru_cache(maxsize=8)
def guides(problem: CloudProblem, source: Source) -> Guides:
    """Return the allocations that measurements recommend.

    historical  logs of earlier runs of this job: on its start allocation, and on the smallest and the largest
                allocation whose memory suffices; they cost this run nothing
    similar     the same logs, but the published predictor derives one allocation for all preferences from them
    baseline    probes of one interval on PROBES, with the gradient noise of the beginning of the training
    """
    replay = problem.replay
    if source == "similar":
        return Guides(dict.fromkeys(problem.scenario.preferences, _similar(problem)), 0)
    numbers = _logged(replay) if source == "historical" else probed(replay)
    known = len(problem.scenario.job.gradient_noise) if source == "historical" else 1
    model = fitted_replay(replay, numbers, known)
    targets = {name: best_constant(model, weights_of(name)) for name in problem.scenario.preferences}
    return Guides(targets, 0 if source == "historical" else len(numbers))


def fitted_replay(replay: Replay, numbers: list[int], known: int) -> Replay:
    """Return the replay of a job by a model that is fitted to intervals on some allocations. The limits are the job's
    own.

    numbers  of these allocations in the lattice
    known    number of points of the gradient noise that were observed
    """
    scenario = replay.scenario
    parameters, core_seconds = _measured(replay, numbers)
    pipeline = scenario.job.pipeline.model_copy(update={"core_seconds": core_seconds})
    noise = scenario.job.gradient_noise[:known]
    job = scenario.job.model_copy(update={"pipeline": pipeline, "gradient_noise": noise})
    changed = {"job": job, "sla": replay.sla, "sla_from": "configuration"}
    return make_replay(scenario.model_copy(update=changed), parameters, checked=False)


def _logged(replay: Replay) -> list[int]:
    fits = np.flatnonzero(replay.fits)
    return sorted({replay.lattice.start, int(fits[0]), int(fits[-1])})


def _similar(problem: CloudProblem) -> int:
    """Return the allocation of the lattice that is nearest to the published predictor's for logs of earlier runs."""
    job, replay = problem.scenario.job, problem.replay
    facts = {"model_params": job.parameters, "model_layers": 1, "data_size_mb": job.pipeline.dataset_gb * 1000.0}
    analyser = OfflineDataAnalyzer()
    for number in _logged(replay):
        analyser.add(_log(replay, number, {"model_name": job.name, "batch_size": job.batch, **facts}), job.name)
    found = analyser.predict(facts)
    return affordable(replay, Allocation(found["gpu_count"], found["cpu_count"], found["memory_gb"]))


def _log(replay: Replay, number: int, facts: Mapping[str, Any]) -> pd.DataFrame:
    """Return the training log of a run on one allocation, with a row for each interval."""
    import pandas as pd

    seconds = replay.seconds[:, number].cumsum()
    money = {"time_so_far": seconds, "cost_so_far": seconds * replay.price[number] / SECONDS}
    return pd.DataFrame({**facts, **replay.tables.measured(number, True), **money})


def probed(replay: Replay) -> list[int]:
    """Return the allocations of the probes: the largest one with each number of GPUs, so that the GPUs are measured and
    not the cores; and for a single GPU also the smallest one, so that the cores are measured.
    """
    allocations, found = replay.lattice.allocations, []
    for nodes, gpus in PROBES:
        same = np.flatnonzero((allocations[:, 0] == gpus) & replay.fits)
        if len(same) and -(-gpus // replay.scenario.job.gpus_per_node) == nodes:
            found.append(int(same[-1]))
            if gpus == 1:
                found.append(int(same[0]))
    return found


def _measured(replay: Replay, numbers: list[int]) -> tuple[StepParameters, float]:
    """Return the parameters of the step time and the core seconds of a sample, fitted to throughput and utilisation."""
    import pandas as pd

    job, at = replay.scenario.job, replay.performance
    rows = []
    for number in numbers:
        gpus = float(replay.lattice.allocations[number, 0])
        on_gpu = job.batch if job.batching == "per_gpu" else job.batch / gpus
        iteration = gpus * on_gpu / at.throughput[number]
        nodes = int(np.ceil(gpus / job.gpus_per_node))
        rows.append({"nodes": nodes, "gpus": int(gpus), "batch": float(on_gpu), "step_time": iteration})
        rows[-1]["sync_time"] = iteration * (1.0 - at.gpu_util[number])
    cores, used = replay.lattice.allocations[numbers, 1], at.cpu_util[numbers]
    # core seconds per sample, derived from utilisation
    work = float(np.median(used * cores / at.throughput[numbers]))
    bound = [
        n
        for n, row in enumerate(rows)
        if row["step_time"] < 1.5 * rows[n]["batch"] * row["gpus"] * work / cores[n] ** CORE_EXPONENT
    ]
    # where cores were the bottleneck, the step time gives no information about the GPUs
    kept = [row for n, row in enumerate(rows) if n not in bound] or rows
    return fit(pd.DataFrame(kept)).parameters, work
