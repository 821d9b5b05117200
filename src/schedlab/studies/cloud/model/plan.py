"""The choice of an allocation for a training job: time and cost of all allocations, and their uncertainty, from the
job's logs.

The performance model is fitted to the logs, and fitted again to resamples of its residuals (residual bootstrap: Davison
and Hinkley, "Bootstrap Methods and their Application", 1997, section 6.3). Each resample also draws the error of its
forecast, so that the times of the resamples are those of a future whole run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.errors import UserError, shortened
from schedlab.config.seeds import generator
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.fit import Fit, fit, fit_again
from schedlab.studies.cloud.model.fit_cores import core_times, fit_cores, free_of_step, iteration_time
from schedlab.studies.cloud.model.logs import of_training, read_training_log, require_columns, require_numbers, warmed
from schedlab.studies.cloud.model.step_time import PipelineSettings, StepParameters, gradient_time, memory_needed

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 200
SPARE = 1.2  # requested memory relative to the largest measured use
# Largest number of cores up to which every number is tried; in a larger range, as many evenly spaced ones.
MOST_CORES = 256
HOUR = 3600.0


@dataclass(frozen=True)
class Job:
    """Facts about a training job from its logs.

    epochs         of the whole training
    samples        of an epoch
    start          seconds of a start beyond the job's warm epochs
    batch          samples, in total or (per_gpu) on each GPU
    memory         largest use, GB; None: the logs do not have it
    cores_per_gpu  if cores vary only together with GPUs in the logs, so that their effect is unknown; else None
    """

    model: str
    epochs: int
    samples: float
    start: float
    batch: float
    per_gpu: bool
    memory: float | None
    cores_per_gpu: float | None
    gpus_per_node: int


@dataclass(frozen=True)
class Measured:
    """A job, its settings (fit_cores.core_times), the step times of those on GPUs (logs.of_training), and the standard
    deviation `noise` of the logarithm of an epoch's time within a setting.
    """

    job: Job
    settings: pd.DataFrame
    steps: pd.DataFrame
    noise: float


@dataclass(frozen=True)
class Forecast:
    """The whole training on n allocations.

    allocations   (n, 3): GPUs, cores, GB
    batch         (n,) samples, in total
    time, cost    (n,) s and $; throughput: (n,) samples/s without the start
    gpu_util, cpu_util  (n,) fractions
    times         (B, n) s, of B resamples
    measured      (n,) whether the logs contain this setting
    determined    there are more settings than fitted parameters; otherwise the resamples vary only by the noise within
                  settings
    median_error  relative error of the fit
    """

    job: Job
    allocations: np.ndarray
    batch: np.ndarray
    time: np.ndarray
    cost: np.ndarray
    throughput: np.ndarray
    gpu_util: np.ndarray
    cpu_util: np.ndarray
    times: np.ndarray
    price: np.ndarray
    measured: np.ndarray
    determined: bool
    median_error: float


def read_job(logs: Sequence[Path], gpus_per_node: int, epochs: int | None = None, batch: int | None = None) -> Measured:
    """Return the job in the training logs of one model. Raises UserErrors.

    epochs  of the training; None: `total_epochs` of the logs, else the length of their longest run
    batch   in total, the same on any number of GPUs; None: as in the logs
    """
    import pandas as pd

    tables = []
    for number, path in enumerate(logs):
        table = read_training_log(path)
        require_columns(table, ("cpu_count",), path)
        tables.append(require_numbers(table, ("cpu_count",), path).assign(log=number))
    table = pd.concat(tables, ignore_index=True)
    table["run"] = table.groupby(["log", "run"]).ngroup()
    return job_of(table, ", ".join(str(path) for path in logs), gpus_per_node, epochs, batch)


def job_of(
    table: pd.DataFrame, where: str, gpus_per_node: int, epochs: int | None = None, batch: int | None = None
) -> Measured:
    """Return the job that a checked training log describes, as `read_job` does. where: place for errors."""
    names = sorted({str(name) for name in table["model_name"].dropna()}) if "model_name" in table.columns else []
    if len(names) > 1:
        raise UserError(
            f"the logs are of several models: {shortened(names)}",
            where=where,
            expected="logs of one training job",
            remedy="plan each model by itself",
        )
    if (table["gpu_count"] > 0).any():
        table = table[table["gpu_count"] > 0]
    settings, steps = core_times(table, gpus_per_node), of_training(table, gpus_per_node)
    totals, batches = table["batch_size"], table["batch_size"] / table["gpu_count"].clip(lower=1)
    per_gpu = batch is None and table["gpu_count"].nunique() > 1 and batches.nunique() == 1
    largest = table["gpu_count"].idxmax()
    # A log that does not know one of these leaves it out, or writes 0.
    given = [table[name] for name in ("total_epochs", "data_count", "memory_used_gb") if name in table.columns]
    found = {str(column.name): column[column > 0] for column in given if (column > 0).any()}
    lengths = table.groupby("run").size()
    job = Job(
        model=names[0] if names else "",
        epochs=epochs or math.ceil(found["total_epochs"].max() if "total_epochs" in found else lengths.max()),
        samples=float(found["data_count"].iloc[-1])
        if "data_count" in found
        else float((table["throughput"] * table["epoch_time"]).median()),
        start=_start(table),
        batch=float(batch or (batches if per_gpu else totals)[largest]),
        per_gpu=per_gpu,
        memory=float(found["memory_used_gb"].max()) if "memory_used_gb" in found else None,
        cores_per_gpu=_cores_per_gpu(settings),
        gpus_per_node=gpus_per_node,
    )
    warm = warmed(table)
    speed = np.log(warm["throughput"]).groupby([warm[name] for name in ("gpu_count", "cpu_count", "batch_size")])
    spread, free = np.log(warm["throughput"]) - speed.transform("mean"), len(warm) - speed.ngroups
    return Measured(job, settings, steps, math.sqrt(float((spread**2).sum()) / free) if free > 0 else 0.0)


def _start(table: pd.DataFrame) -> float:
    """Return the median over runs of the time before the first epoch plus the excess of the first epoch over the later
    ones, s.
    """
    found = []
    for _, run in table.groupby("run"):
        times = run["epoch_time"].to_numpy(float)
        before = 0.0
        if "time_so_far" in run.columns and np.isfinite(run["time_so_far"].iloc[-1]):
            before = max(0.0, float(run["time_so_far"].iloc[-1]) - float(times.sum()))
        found.append(before + (max(0.0, float(times[0] - times[1:].mean())) if len(times) > 1 else 0.0))
    return float(np.median(found))


def _cores_per_gpu(settings: pd.DataFrame) -> float | None:
    """Return the cores of each GPU in the largest setting, if no two settings differ only in their cores; else None."""
    alone = settings.groupby(["gpus", "batch"])["cores"].nunique()
    if not len(settings[settings["gpus"] > 0]) or (alone > 1).any():
        return None
    largest = settings.iloc[settings["gpus"].argmax()]
    return float(largest["cores"] / largest["gpus"])


@dataclass(frozen=True)
class _Model:
    """Fitted parameters; core_seconds is 0 where the effect of cores is unknown."""

    step: StepParameters
    core_seconds: float
    free: int
    fit: Fit | None

    def times(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the time of an iteration on each row of settings, s."""
        return iteration_time(self.step, self.core_seconds, rows)


def _fitted(measured: Measured, near: _Model | None = None) -> _Model:
    """Return the model fitted to settings; the search for resampled ones starts only from an earlier model."""
    settings, steps = measured.settings, measured.steps
    if not len(steps):
        found = fit_cores(settings) if near is None else fit_cores(settings, shares=(0.5,))
        return _Model(found.step, found.core_seconds, found.free, None)
    whole = near.fit if near is not None and near.fit is not None else fit(steps)
    step = whole.parameters if near is None else fit_again(steps, whole)
    if measured.job.cores_per_gpu is not None:
        return _Model(step, 0.0, free_of_step(steps), whole)
    found = fit_cores(settings, step) if near is None else fit_cores(settings, step, (0.5,))
    return _Model(step, found.core_seconds, free_of_step(steps) + 1, whole)


def forecast(measured: Measured, limits: ResourceConfig, seed: int = 0, resamples: int = RESAMPLES) -> Forecast:
    """Return the forecast of the job on every allocation within the limits. Raises UserError if no allocation has
    enough memory.
    """
    job = measured.job
    allocations = _allocations(job, limits)
    rows = _rows(job, allocations)
    model = _fitted(measured)
    fitted, actual = model.times(measured.settings), measured.settings["step_time"].to_numpy(float)
    residuals, n = np.log(actual / fitted), len(actual)
    determined = n > model.free
    rng = generator(seed, "cloud", "plan")
    # Standard deviation of the settings' medians.
    noise = measured.noise / np.sqrt(measured.settings["rows"].to_numpy(float))
    pool = (residuals - residuals.mean()) * math.sqrt(n / (n - min(model.free, n / 2))) if determined else None
    # Variance of the residuals beyond noise: errors of the model's form.
    form = 0.0 if pool is None else max(0.0, float((pool**2).mean() - (noise**2).mean()))
    iteration, times = model.times(rows), np.empty((resamples, len(rows)))
    # Fitted to data without errors: the bias by the fit's penalties.
    usual = _fitted(_resampled(measured, fitted), model).times(rows)
    for number in range(resamples):
        errors = rng.normal(0.0, noise) if pool is None else rng.choice(pool, n)
        again = _fitted(_resampled(measured, fitted * np.exp(errors)), model).times(rows) / usual * iteration
        ahead = rng.normal(0.0, math.sqrt(form + measured.noise**2 / job.epochs))
        times[number] = job.start + job.epochs * job.samples / rows["batch"] * again * math.exp(ahead)
    time = job.start + job.epochs * job.samples / rows["batch"].to_numpy(float) * iteration
    price = limits.hourly_price(*allocations.T)
    gpus = np.maximum(allocations[:, 0], 1)
    computing = gradient_time(model.step, rows["batch"].to_numpy(float) / gpus) / iteration
    working = model.core_seconds * rows["batch"].to_numpy(float) / iteration
    working += np.where(allocations[:, 0] > 0, 0.0, computing)
    known = set(zip(measured.settings["gpus"], measured.settings["cores"], strict=True))
    return Forecast(
        job=job,
        allocations=allocations,
        batch=rows["batch"].to_numpy(float),
        time=time,
        cost=time * price / HOUR,
        throughput=rows["batch"].to_numpy(float) / iteration,
        gpu_util=np.where(allocations[:, 0] > 0, computing, 0.0),
        cpu_util=np.clip(working / allocations[:, 1], 0.0, 1.0) if model.core_seconds else np.full(len(rows), np.nan),
        times=times,
        price=price,
        measured=np.array([(int(gpus), int(cores)) in known for gpus, cores, _ in allocations]),
        determined=determined,
        median_error=float(np.median(np.abs(np.exp(residuals) - 1.0))),
    )


def _allocations(job: Job, limits: ResourceConfig) -> np.ndarray:
    """Return all GPUs and cores within the limits, each with the memory that it needs in whole GB, (n, 3)."""
    gpus = np.arange(max(limits.gpu_count_min, 0), limits.gpu_count_max + 1)
    span = np.arange(limits.cpu_count_min, limits.cpu_count_max + 1)
    cores = span if len(span) <= MOST_CORES else np.unique(np.linspace(span[0], span[-1], MOST_CORES).astype(int))
    if job.cores_per_gpu is not None:
        pairs = [(count, max(1, math.ceil(count * job.cores_per_gpu - 1e-9))) for count in gpus]
        grid = np.array([pair for pair in pairs if span[0] <= pair[1] <= span[-1]], float).reshape(-1, 2)
    else:
        grid = np.stack(np.meshgrid(gpus, cores, indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
    if job.memory is not None:
        memory = np.full(len(grid), job.memory * SPARE)
    else:
        memory = np.asarray(memory_needed(PipelineSettings(), grid[:, 0], job.batch), float)
    memory = np.maximum(np.ceil(memory), limits.least.memory_gb)
    fits = memory <= limits.memory_max
    if not fits.any():
        least = f"needs {memory.min():g} GB" if len(memory) else f"has {job.cores_per_gpu:g} cores for each GPU"
        raise UserError(
            f"no allocation holds the job, which {least}", where="--max", expected="a machine that is large enough"
        )
    return np.column_stack([grid, memory])[fits]


def _rows(job: Job, allocations: np.ndarray) -> pd.DataFrame:
    """Return allocations as rows of `iteration_time`. batch: in total."""
    import pandas as pd

    gpus = np.maximum(allocations[:, 0], 1)
    return pd.DataFrame(
        {
            "nodes": np.ceil(gpus / job.gpus_per_node).astype(int),
            "gpus": gpus.astype(int),
            "cores": allocations[:, 1],
            "batch": job.batch * (gpus if job.per_gpu else 1.0),
        }
    )


def _resampled(measured: Measured, times: np.ndarray) -> Measured:
    """Return the same settings with other step times; those on GPUs are taken from the setting with the most cores."""
    settings = measured.settings.assign(step_time=times)
    if not len(measured.steps):
        return replace(measured, settings=settings)
    on_gpus = settings[settings["gpus"] > 0].sort_values("cores")
    last = {
        (int(row.nodes), int(row.gpus), float(row.batch) / row.gpus): float(row.step_time)
        for row in on_gpus.itertuples()
    }
    old = measured.steps
    new = np.array([last[int(r.nodes), int(r.gpus), float(r.batch)] for r in old.itertuples()])
    steps = old.assign(step_time=new, sync_time=old["sync_time"] * new / old["step_time"])
    return replace(measured, settings=settings, steps=steps)


def allocation(found: Forecast, number: int) -> Allocation:
    """Return one of the allocations of a forecast."""
    gpus, cores, memory = found.allocations[number]
    return Allocation(int(gpus), int(cores), int(memory))


def undominated(time: np.ndarray, cost: np.ndarray) -> list[int]:
    """Return the numbers of the finite points that no other point dominates, fastest first."""
    found: list[int] = []
    least = np.inf
    for number in np.lexsort((cost, time)):
        if np.isfinite(time[number]) and cost[number] < least:
            least = cost[number]
            found.append(int(number))
    return found
