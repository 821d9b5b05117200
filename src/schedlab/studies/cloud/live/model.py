"""A real job as a replay: the performance model extends measurements on a few allocations to all allocations.

Unlike in the scenarios of the pipeline, memory need and start-up time are measured, there may be no GPUs, and samples
count equally in batches of any size, because the gradient noise of a live job is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.schema import validate
from schedlab.studies.cloud.live.baseline import Pace
from schedlab.studies.cloud.live.env import LiveJob
from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.model.fit_cores import CoreFit, core_times, iteration_time
from schedlab.studies.cloud.model.lattice import lattice
from schedlab.studies.cloud.model.plan import SPARE
from schedlab.studies.cloud.model.step_time import Performance, gradient_time
from schedlab.studies.cloud.replay.replay import SECONDS, Replay
from schedlab.studies.cloud.scenario import CloudScenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class JobFacts:
    """Measurements of a job.

    samples         samples of an epoch
    batch           batch size, on each GPU if `per_gpu`, else in total
    memory_used     largest resident memory, GB
    memory_private  largest private memory that one process requested, GB; it may use less, but the limit applies to
                    this
    overhead        s that a start takes in addition to its epochs
    cpu_share       measured utilisation of the cores, relative to the modelled one
    anchor          measured speed on the allocation of the baseline, relative to the modelled one; a factor on all
                    allocations
    core_ratios     (cores, measured speed relative to the fitted one), rising; they correct what the model cannot
                    express, for example that more cores are slower
    """

    samples: int
    batch: int
    per_gpu: bool
    memory_used: float
    overhead: float
    cpu_share: float = 1.0
    core_ratios: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    memory_private: float = 0.0
    anchor: float = 1.0

    @property
    def memory_needed(self) -> float:
        """Memory that an allocation should have, GB: the largest that was measured, with a reserve."""
        return max(self.memory_used, self.memory_private) * SPARE


def job_facts(table: pd.DataFrame, overheads: Sequence[float], per_gpu: bool, fit: CoreFit) -> JobFacts:
    """Return the facts in the log of a job. overheads: s that each of its runs took in addition to its epochs."""
    # its batch is the baseline's, which a script may keep on fewer GPUs
    largest = table.loc[table["gpu_count"].idxmax()]
    counts = table["data_count"].dropna().tolist() if "data_count" in table.columns else []
    samples = counts[-1] if counts else largest["throughput"] * largest["epoch_time"]
    gpus = max(1, int(largest["gpu_count"]))
    batch = round(float(largest["batch_size"]) / gpus) if per_gpu else int(largest["batch_size"])
    facts = JobFacts(
        samples=max(1, round(samples)),
        batch=max(1, batch),
        per_gpu=per_gpu,
        memory_used=float(table["memory_used_gb"].max()),
        overhead=float(np.median(overheads)),
        core_ratios=_core_ratios(table, fit),
        memory_private=float(table["memory_private_gb"].max()) if "memory_private_gb" in table.columns else 0.0,
    )
    gpu_counts, cores, memory = table[["gpu_count", "cpu_count", "memory_gb"]].to_numpy(float).T
    modelled = performance(fit, facts, gpu_counts, cores, memory, gpus_per_node=1_000_000)
    seen = modelled.cpu_util > 0
    ratios = table["cpu_percent"].to_numpy(float)[seen] / 100 / modelled.cpu_util[seen]
    return replace(facts, cpu_share=float(np.median(ratios)) if len(ratios) else 1.0)


def anchored(facts: JobFacts, fit: CoreFit, allocation: Allocation, found: Pace, gpus_per_node: int) -> JobFacts:
    """Return the facts with which the model gives the measured start and epoch time on one allocation, that of the
    baseline.

    Predictions for other allocations can then be compared with the measured baseline: the error of the model on the
    baseline does not enter the comparison.
    """
    gpus, cores, memory = np.array(allocation, float)[:, None]
    modelled = performance(fit, replace(facts, anchor=1.0), gpus, cores, memory, gpus_per_node)
    return replace(facts, overhead=found.start_up, anchor=facts.samples / float(modelled.throughput[0]) / found.epoch)


def _core_ratios(table: pd.DataFrame, fit: CoreFit) -> tuple[tuple[float, float], ...]:
    """Return (cores, measured speed relative to the fitted one) for each number of cores, the median of its
    measurements.
    """
    runs = (table["epoch"].diff().fillna(1) <= 0) | table["sample"].diff().fillna(0).ne(0)
    rows = core_times(table.assign(run=runs.cumsum()), gpus_per_node=1_000_000)
    ratios = iteration_time(fit.step, fit.core_seconds, rows) / rows["step_time"]
    medians = ratios.groupby(rows["cores"]).median()
    return tuple((float(cores), float(ratio)) for cores, ratio in medians.items())


def performance(
    fit: CoreFit, facts: JobFacts, gpus: np.ndarray, cores: np.ndarray, memory: np.ndarray, gpus_per_node: int
) -> Performance:
    """Return the performance of allocations by the model; all arrays have the shape (n,)."""
    import pandas as pd

    devices = np.maximum(gpus, 1)
    batch = facts.batch * (devices if facts.per_gpu else 1.0)
    rows = pd.DataFrame({"nodes": np.ceil(devices / gpus_per_node), "gpus": devices, "cores": cores, "batch": batch})
    iteration = iteration_time(fit.step, fit.core_seconds, rows)
    measured, ratios = np.array(facts.core_ratios).T
    iteration = iteration / np.interp(np.log(cores), np.log(measured), ratios) / facts.anchor
    throughput = batch / iteration
    gradient = gradient_time(fit.step, batch / devices) / iteration
    working = fit.core_seconds * throughput + np.where(gpus > 0, 0.0, gradient)
    used = np.minimum(memory, facts.memory_used)
    return Performance(
        throughput=throughput,
        gpu_util=np.where(gpus > 0, gradient, 0.0),
        cpu_util=np.clip(working / cores * facts.cpu_share, 0.0, 1.0),
        memory_util=used / memory,
        memory_used=used,
        fits=memory >= facts.memory_needed,
    )


def live_replay(fit: CoreFit, facts: JobFacts, plan: LiveJob, preference: str) -> Replay:
    """Return a job as a replay on all allocations that it can reach. If the start allocation has too little memory, the
    memory of all allocations is treated as sufficient.
    """
    grid = lattice(plan.first, plan.resource)
    gpus, cores, memory = grid.allocations.T
    found = performance(fit, facts, gpus, cores, memory, plan.gpus_per_node)
    fits = found.fits if found.fits[grid.start] else np.ones(len(grid), dtype=bool)
    lengths = np.full(plan.intervals, plan.interval)
    lengths[-1] = plan.epochs - plan.interval * (plan.intervals - 1)
    seconds = lengths[:, None] * facts.samples / found.throughput
    price = plan.resource.hourly_price(gpus, cores, memory)
    time = seconds.sum(axis=0) + facts.overhead
    cost = time * price / SECONDS
    # the first start; if the first action changes the allocation, that change pays for it
    seconds[0, grid.start] += facts.overhead
    busy = np.where(gpus > 0, (found.gpu_util + found.cpu_util) / 2.0, found.cpu_util)
    return Replay(
        scenario=_scenario(fit, facts, plan, preference),
        lattice=grid,
        performance=found,
        seconds=seconds,
        price=price,
        busy=busy,
        fits=fits,
        allowed=fits[grid.following],
        time_ref=float(time[fits].min()),
        cost_ref=float(cost[fits].min()) or 1.0,
        sla=plan.sla,
        cuts=np.empty((0, len(grid)), dtype=np.int64),
        undisturbed=seconds,
        hazard=np.zeros(len(grid)),
    )


def constant_totals(replay: Replay) -> tuple[np.ndarray, np.ndarray]:
    """Return time (s) and cost ($) of the whole job on each allocation; infinite if its memory does not suffice."""
    elsewhere = np.arange(len(replay.lattice)) != replay.lattice.start
    time = replay.seconds.sum(axis=0) + np.where(elsewhere, replay.restart, 0.0)
    return np.where(replay.fits, time, np.inf), np.where(replay.fits, time * replay.price / SECONDS, np.inf)


def constant_objectives(replay: Replay, weights: Mapping[str, float]) -> np.ndarray:
    """Return the job's objective on each allocation, (n,); infinite if its memory does not suffice."""
    time, cost = constant_totals(replay)
    return replay.objective(weights, time, cost, replay.constant()[2])


def _scenario(fit: CoreFit, facts: JobFacts, plan: LiveJob, preference: str) -> CloudScenario:
    """Return the job as a scenario, from which environment and learners read their settings."""
    start = {key: round(value) for key, value in plan.first._asdict().items()}
    values: dict[str, Any] = {
        "name": "live",
        "seed": plan.seed,
        "job": {
            "name": "live",
            "step": fit.step.values(),
            "epochs": plan.epochs,
            "samples": facts.samples,
            "base_batch": facts.batch,
            "batch": facts.batch,
            "batching": "per_gpu" if facts.per_gpu else "fixed_global",
        },
        "resource": plan.resource.model_dump(),
        "start": start,
        "sla": plan.sla.model_dump(),
        "sla_from": "configuration",
        "environment": {"interval": plan.interval, "restart": facts.overhead},
        "preferences": [preference],
        "replicates": {"train": 1, "validation": 0, "test": 1},
    }
    return validate(CloudScenario, values)
