"""The choice of an allocation for a training job: time and cost of all allocations, and their uncertainty, from the
job's logs.

The performance model is fitted to the logs, and fitted again to resamples of its residuals (residual bootstrap: Davison
and Hinkley, "Bootstrap Methods and their Application", 1997, section 6.3). Each resample also draws the error of its
forecast, so that the times of the resamples are those of a future whole run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.errors import UserError, shortened
from schedlab.config.seeds import generator
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.fit import Fit, fit, fit_again, speed_of
from schedlab.studies.cloud.model.fit_cores import STARTS, core_times, fit_cores, free_of_step, iteration_time
from schedlab.studies.cloud.model.instances import UNNAMED, Offer, kind_speeds
from schedlab.studies.cloud.model.interruptions import HOUR, drawn_time, expected_time
from schedlab.studies.cloud.model.logs import (
    of_training,
    read_training_log,
    require_columns,
    require_kinds,
    require_numbers,
    warmed,
)
from schedlab.studies.cloud.model.step_time import PipelineSettings, StepParameters, gradient_time, memory_needed

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 200
SPARE = 1.2  # requested memory relative to the largest measured use
# Largest number of cores up to which every number is tried; in a larger range, as many evenly spaced ones.
MOST_CORES = 256


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
    offers        the offers of instance types whose allocations these are; empty: any GPUs, cores and GB
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
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True)
class Renting:
    """How instances are rented: the kind of GPU in logs that name none (None: the only one of the catalogue), the
    epochs between two checkpoints, and the seconds until another instance takes the place of an interrupted one.
    """

    kind: str | None = None
    checkpoint: int = 1
    restart: float = 120.0


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
    table, where = pd.concat(tables, ignore_index=True), ", ".join(str(path) for path in logs)
    if "gpu_kind" in table.columns:
        require_kinds(table["gpu_kind"], where)
    table["run"] = table.groupby(["log", "run"]).ngroup()
    return job_of(table, where, gpus_per_node, epochs, batch)


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
    alike = [name for name in ("gpu_kind", "gpu_count", "cpu_count", "batch_size") if name in warm.columns]
    speed = np.log(warm["throughput"]).groupby([warm[name] for name in alike])
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
    alone = settings.groupby([name for name in ("kind", "gpus", "batch") if name in settings.columns])[
        "cores"
    ].nunique()
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

    def speed(self, rows: pd.DataFrame) -> np.ndarray | float:
        """Return the speed of each row's GPU kind; a kind that no log names is `faster` than the one of its row."""
        found = speed_of(rows, self.fit.speeds if self.fit is not None else {})
        return found * rows["faster"].to_numpy(float) if "faster" in rows.columns else found

    def times(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the time of an iteration on each row of settings, s."""
        return iteration_time(self.step, self.core_seconds, rows, self.speed(rows))


def _fitted(measured: Measured, near: _Model | None = None) -> _Model:
    """Return the model fitted to settings; the search for resampled ones starts only from an earlier model."""
    settings, steps = measured.settings, measured.steps
    if not len(steps):
        found = fit_cores(settings) if near is None else fit_cores(settings, shares=(0.5,))
        return _Model(found.step, found.core_seconds, found.free, None)
    whole = near.fit if near is not None and near.fit is not None else fit(steps)
    here = whole if near is None else fit_again(steps, whole)
    if measured.job.cores_per_gpu is not None:
        return _Model(here.parameters, 0.0, free_of_step(steps), here)
    starts = STARTS if near is None else (0.5,)
    found = fit_cores(settings, here.parameters, starts, here.speeds)
    return _Model(here.parameters, found.core_seconds, free_of_step(steps) + 1, here)


def forecast(measured: Measured, limits: ResourceConfig, seed: int = 0, resamples: int = RESAMPLES) -> Forecast:
    """Return the forecast of the job on every allocation within the limits. Raises UserError if no allocation has
    enough memory.
    """
    allocations = _allocations(measured.job, limits)
    rows = _rows(measured.job, allocations)
    return _forecast(measured, allocations, rows, limits.hourly_price(*allocations.T), seed, resamples)


def forecast_offers(
    measured: Measured, offers: Sequence[Offer], renting: Renting, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[Forecast, list[str]]:
    """Return the forecast of the job on offers of instance types, and what is left out, with the reasons.

    The time on a spot instance is the expected time, interruptions included; each resample draws its interruptions at
    random. Left out are instances without GPUs for a job with GPUs (and vice versa), with too little memory, with
    GPUs of unknown speed, and spot instances that would hardly finish an epoch (interruptions.MOST_RISK). Raises
    UserError if none is left.
    """
    job, on_gpus = measured.job, len(measured.steps) > 0
    named = sorted(set(measured.steps["kind"])) if "kind" in measured.steps.columns else ()
    speeds = kind_speeds([each.type for each in offers], named, renting.kind, "--gpu-kind") if on_gpus else {}
    kept, reasons = list[Offer](), dict[str, list[str]]()
    for offer in offers:
        reason = _unsuitable(offer, job, on_gpus, speeds)
        reasons.setdefault(reason, []).append(offer.name)
        kept += [] if reason else [offer]
    found = None
    if kept:
        rows = _rows(job, np.array([each.allocation for each in kept], float)).assign(nodes=1)
        if on_gpus:
            kinds, faster = zip(*(speeds[each.type.gpu_kind] for each in kept), strict=True)
            rows = rows.assign(faster=faster) if UNNAMED in kinds else rows.assign(kind=kinds, faster=faster)
        price = np.array([each.price for each in kept])
        allocations = np.array([each.allocation for each in kept], float)
        found = _forecast(measured, allocations, rows, price, seed, resamples)
        found, hopeless = _interrupted(replace(found, offers=tuple(kept)), renting, seed)
        reasons["interrupted too often to finish an epoch"] = hopeless
    left_out = [f"{reason}: {shortened(names)}" for reason, names in reasons.items() if reason and names]
    if found is None or not len(found.time):
        raise UserError("no instance suits the job", where="--instances", remedy="; ".join(left_out))
    return found, left_out


def _unsuitable(offer: Offer, job: Job, on_gpus: bool, speeds: Mapping[str, tuple[str, float]]) -> str:
    """Return why an offer does not suit a job; empty if it does. speeds: instances.kind_speeds."""
    if on_gpus and not offer.type.gpus:
        return "without GPUs"
    if not on_gpus and offer.type.gpus:
        return "with GPUs, which the job does not use"
    if offer.type.memory_gb < _memory(job, np.array([offer.type.gpus]))[0]:
        return "with too little memory"
    return "with GPUs of unknown speed" if on_gpus and offer.type.gpu_kind not in speeds else ""


def _interrupted(found: Forecast, renting: Renting, seed: int) -> tuple[Forecast, list[str]]:
    """Return the forecast with the interruptions of spot instances, without those that would hardly finish an epoch,
    and the names of these.
    """
    job, time, times = found.job, found.time.copy(), found.times.copy()
    length = min(renting.checkpoint, job.epochs)
    whole, rest = divmod(job.epochs, length)
    again = job.start + renting.restart
    for number, offer in enumerate(found.offers):
        if not offer.spot or not offer.hazard:
            continue
        rng = generator(seed, "cloud", "interruptions", offer.name)
        drawn = (times[:, number] - job.start) / job.epochs * length
        mean = (time[number] - job.start) / job.epochs * length
        stretches = [(job.start, 1, 1.0), (0.0, whole - 1, 1.0), (0.0, int(rest > 0), rest / length)]
        time[number] = sum(
            count * float(expected_time(extra + share * mean, again + share * mean, offer.hazard))
            for extra, count, share in stretches
            if count
        )
        if np.isfinite(time[number]):
            parts = [
                drawn_time(extra + share * drawn, again + share * drawn, offer.hazard, count, rng)
                for extra, count, share in stretches
            ]
            times[:, number] = np.sum(parts, axis=0)
    kept = np.isfinite(time)
    columns = {
        name: getattr(found, name)[kept]
        for name in ("allocations", "batch", "throughput", "gpu_util", "cpu_util", "price", "measured")
    }
    offers = tuple(offer for offer, stays in zip(found.offers, kept, strict=True) if stays)
    hopeless = [offer.name for offer, stays in zip(found.offers, kept, strict=True) if not stays]
    cost = time[kept] * columns["price"] / HOUR
    return replace(found, **columns, offers=offers, time=time[kept], cost=cost, times=times[:, kept]), hopeless


def _forecast(
    measured: Measured, allocations: np.ndarray, rows: pd.DataFrame, price: np.ndarray, seed: int, resamples: int
) -> Forecast:
    """Return the forecast on allocations, (n, 3), at prices, (n,). rows: the same, for `iteration_time`."""
    job = measured.job
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
    gpus = np.maximum(allocations[:, 0], 1)
    computing = gradient_time(model.step, rows["batch"].to_numpy(float) / gpus, model.speed(rows)) / iteration
    working = model.core_seconds * rows["batch"].to_numpy(float) / iteration
    working += np.where(allocations[:, 0] > 0, 0.0, computing)
    names = [name for name in ("kind", "gpus", "cores") if name in rows.columns and name in measured.settings.columns]
    known = set(measured.settings[names].itertuples(index=False, name=None))
    held = rows[names].assign(gpus=allocations[:, 0]).itertuples(index=False, name=None)
    same = rows["faster"] == 1.0 if "faster" in rows.columns else [True] * len(rows)
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
        measured=np.array([alike and each in known for alike, each in zip(same, held, strict=True)]),
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
    memory = np.maximum(np.ceil(_memory(job, grid[:, 0])), limits.least.memory_gb)
    fits = memory <= limits.memory_max
    if not fits.any():
        least = f"needs {memory.min():g} GB" if len(memory) else f"has {job.cores_per_gpu:g} cores for each GPU"
        raise UserError(
            f"no allocation holds the job, which {least}", where="--max", expected="a machine that is large enough"
        )
    return np.column_stack([grid, memory])[fits]


def _memory(job: Job, gpus: np.ndarray) -> np.ndarray:
    """Return the memory to request for a job on these numbers of GPUs, (n,), GB."""
    if job.memory is not None:
        return np.full(len(gpus), job.memory * SPARE)
    return np.asarray(memory_needed(PipelineSettings(), gpus, job.batch), float)


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
        (getattr(row, "kind", ""), int(row.nodes), int(row.gpus), float(row.batch) / row.gpus): float(row.step_time)
        for row in on_gpus.itertuples()
    }
    old = measured.steps
    new = np.array([last[getattr(r, "kind", ""), int(r.nodes), int(r.gpus), float(r.batch)] for r in old.itertuples()])
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
