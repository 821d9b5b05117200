"""The model of rigid jobs by Lublin and Feitelson: sizes, run times and arrivals of jobs of one or two types.

Source: U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", JPDC 63(11), 2003, and the authors' program. Gamma(a, b) has shape a and scale b.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log2
from typing import Literal

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, section, setting
from schedlab.config.seeds import generator
from schedlab.workloads.estimates import EstimateSettings, estimates
from schedlab.workloads.trace import COLUMNS, MISSING, Trace, whole_seconds

BUCKETS, BUCKET_SECONDS = 48, 1800  # a day in half hours
MAX_LOG_RUN, MAX_LOG_GAP = 12.0, 13.0  # larger draws are repeated
MAX_RUN = 162754  # floor(exp(12)), the value that the authors' program writes into the header
QUEUES = {"interactive": 0, "batch": 1}


@dataclass(frozen=True)
class JobType:
    """Parameters of one type of jobs.

    serial, power_of_two    probabilities of one processor, and of a size rounded to a power of two
    ulow, uprob             log2 of the smallest parallel size; probability of the first stage of the two-stage uniform
    umed_below, uhi_below   distance of the end of the first stage below that of the second, and of the second below
                            log2 of the machine
    run_short, run_long     (a, b) of the Gamma distributions of ln(run time / s)
    slope, intercept        line that gives the probability of run_short as a function of the size
    gap                     (a, b) of ln of the gap between arrivals in the rush hours, s
    day                     (a, b) of the time of the day, in half hours
    rush_to_day             factor on the shape of the gap
    """

    serial: float
    power_of_two: float
    ulow: float
    uprob: float
    umed_below: float
    uhi_below: float
    run_short: tuple[float, float]
    run_long: tuple[float, float]
    slope: float
    intercept: float
    gap: tuple[float, float]
    day: tuple[float, float]
    rush_to_day: float


TYPES = {
    "batch": JobType(
        serial=0.2927,
        power_of_two=0.6686,
        ulow=1.2,
        uprob=0.875,
        umed_below=2.0,
        uhi_below=0.0,
        run_short=(6.57, 0.823),
        run_long=(639.1, 0.0156),
        slope=-0.003,
        intercept=0.6986,
        gap=(6.0415, 0.8531),
        day=(6.1271, 5.2740),
        rush_to_day=1.0519,
    ),
    "interactive": JobType(
        serial=0.1541,
        power_of_two=0.625,
        ulow=1.0,
        uprob=0.705,
        umed_below=2.5,
        uhi_below=1.5,
        run_short=(3.8351, 0.6605),
        run_long=(7.073, 0.6856),
        slope=-0.0118,
        intercept=0.9156,
        gap=(6.5510, 0.6621),
        day=(8.9186, 3.6680),
        rush_to_day=0.9797,
    ),
    "typeless": JobType(
        serial=0.244,
        power_of_two=0.576,
        ulow=0.8,
        uprob=0.86,
        umed_below=2.5,
        uhi_below=0.0,
        run_short=(4.2, 0.94),
        run_long=(312.0, 0.03),
        slope=-0.0054,
        intercept=0.78,
        gap=(10.2303, 0.4871),
        day=(8.1737, 3.9631),
        rush_to_day=1.0225,
    ),
}


class LublinSettings(Settings):
    """A trace drawn from the model of Lublin and Feitelson."""

    jobs: int = setting(10_000, doc="number of jobs", unit="jobs", ge=1, le=50_000_000)
    processors: int = setting(128, doc="size of the machine, and of the largest job", unit="processors", ge=2, le=2**30)
    types: Literal["typeless", "typed"] = setting(
        "typeless", doc="job types: `typeless`, or batch and interactive jobs (queues 1 and 0)"
    )
    load: float | None = setting(
        None, doc="offered load, reached by scaling all arrival times; null: the model's load", gt=0
    )
    umed: float | None = setting(
        None, doc="log2 of the boundary between small and large sizes; null: 2.5 (batch: 2) below `uhi`", gt=0
    )
    uhi: float | None = setting(None, doc="log2 of the largest size; null: the machine (interactive: 1.5 below)", gt=0)
    estimates: EstimateSettings = section(EstimateSettings, doc="requested times, which the model does not define")
    users: int = setting(
        0, doc="users, of whom those with low numbers submit more jobs; 0: none, as in the model", ge=0, le=1_000_000
    )

    def bounds(self, kind: str) -> tuple[float, float]:
        """Return (umed, uhi) of a type of jobs. Raises UserError if no size lies between the bounds."""
        job_type = TYPES[kind]
        uhi = self.uhi if self.uhi is not None else max(log2(self.processors) - job_type.uhi_below, 1.0)
        umed = self.umed if self.umed is not None else max(uhi - job_type.umed_below, min(job_type.ulow, uhi))
        if not umed <= uhi <= log2(self.processors) + 1e-9:
            raise UserError(
                f"umed {umed:g}, uhi {uhi:g}",
                where="Lublin-Feitelson model",
                expected=f"umed <= uhi <= {log2(self.processors):g}, log2 of the machine",
            )
        return umed, uhi


def lublin(settings: LublinSettings, seed: int) -> Trace:
    """Draw a trace; the same settings and seed give the same trace. Raises UserError if a load cannot be reached.

    Source: model and order of draws of the authors' program, with two differences: sizes, run times and the arrivals of
    each type have separate random streams; and the rest of a gap is kept, which later ports of the program lose at each
    call.
    """
    import pandas as pd

    kinds, submit = _arrivals(settings, seed)
    size = np.empty(settings.jobs, dtype=np.int64)
    run = np.empty(settings.jobs)
    for kind in np.unique(kinds):
        here = kinds == kind
        size[here] = sizes(settings, kind, int(here.sum()), generator(seed, "lublin", "size", kind))
        run[here] = run_times(kind, size[here], generator(seed, "lublin", "run", kind))
    comments = [*_header(settings, seed)]
    if settings.load is not None:
        work, span = float(size @ run), float(submit[-1])
        if not work or not span:
            raise UserError(
                f"a load of {settings.load:g} cannot be reached",
                where="Lublin-Feitelson model",
                remedy="draw more jobs",
            )
        factor = work / (settings.processors * span * settings.load)
        submit = whole_seconds(submit * factor, "Lublin-Feitelson model")
        comments.append(f" Note: arrival times multiplied by {factor:.6g} for a load of {settings.load:g}")
    values = dict.fromkeys(COLUMNS, np.full(settings.jobs, MISSING))
    values |= {"job_id": np.arange(1, settings.jobs + 1), "submit": submit, "run": run, "procs_allocated": size}
    values |= {
        "status": np.ones(settings.jobs),
        "queue": np.where(kinds == "batch", QUEUES["batch"], QUEUES["interactive"]),
    }
    if settings.estimates.model != "none":
        values["time_requested"] = estimates(run, settings.estimates, generator(seed, "lublin", "estimate"))
    if settings.users:
        values["user"] = _users(settings, generator(seed, "lublin", "user"))
    jobs = pd.DataFrame({name: np.asarray(values[name]).astype(kind) for name, kind in COLUMNS.items()})
    return Trace(jobs, tuple(comments), "Lublin-Feitelson model")


def sizes(settings: LublinSettings, kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the processors (count,) int64 of jobs of one type: two-stage uniform in log2, with separate probabilities of
    serial jobs and powers of two.
    """
    job_type = TYPES[kind]
    umed, uhi = settings.bounds(kind)
    u, stage = rng.random(count), rng.random(count)
    low = min(job_type.ulow, umed)
    x = np.where(stage <= job_type.uprob, rng.uniform(low, umed, count), rng.uniform(umed, uhi, count))
    x = np.where(u <= job_type.serial + job_type.power_of_two, np.floor(x + 0.5), x)  # the same u, as in the program
    size = np.minimum(np.floor(2.0**x + 0.5), np.floor(2.0**uhi + 1e-9))
    return np.where(u <= job_type.serial, 1, size).astype(np.int64)


def run_times(kind: str, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the run times (n,) in whole s of jobs with sizes (n,): hyper-Gamma in ln; the probability of each part
    depends on the size.
    """
    job_type = TYPES[kind]
    p = np.clip(job_type.slope * size + job_type.intercept, 0.0, 1.0)
    log_run = np.full(len(size), np.inf)
    while (again := np.flatnonzero(log_run > MAX_LOG_RUN)).size:
        short = rng.random(len(again)) <= p[again]
        drawn = np.where(short, rng.gamma(*job_type.run_short, len(again)), rng.gamma(*job_type.run_long, len(again)))
        log_run[again] = drawn
    return np.floor(np.exp(log_run))


def day_weights(kind: str) -> np.ndarray:
    """Return the weights (48,) of the half hours of a day from midnight: the share of a type's arrivals in each, scaled
    to mean 1.
    """
    from scipy.special import gammainc

    shape, scale = TYPES[kind].day
    halves = np.arange(11, 59)
    weights = np.empty(BUCKETS)
    weights[(halves - 1) % BUCKETS] = gammainc(shape, (halves + 0.5) / scale) - gammainc(shape, (halves - 0.5) / scale)
    return weights / weights.mean()


def arrival_times(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the first arrivals (count,) of one type, in whole s since a midnight.

    A gap is drawn in points; a half hour of the rush takes more points than one of the night. Remaining points and the
    place in the half hour are kept for the next gap.
    """
    job_type = TYPES[kind]
    shape, scale = job_type.gap[0] * job_type.rush_to_day, job_type.gap[1]
    log_gap = np.full(count, np.inf)
    while (again := np.flatnonzero(log_gap > MAX_LOG_GAP)).size:
        log_gap[again] = rng.gamma(shape, scale, len(again))
    weights = day_weights(kind).tolist()
    bucket, points, remainder, clock = 0, 0.0, 0.0, 0
    times = []
    for drawn in log_gap.tolist():
        points += exp(drawn) / BUCKET_SECONDS
        gap = 0.0
        while points > weights[bucket]:
            points -= weights[bucket]
            bucket = (bucket + 1) % BUCKETS
            gap += BUCKET_SECONDS
        place = points / weights[bucket]
        gap += BUCKET_SECONDS * (place - remainder)
        remainder = place
        clock = int(clock + gap)
        times.append(clock)
    return np.array(times, dtype=float)


def _arrivals(settings: LublinSettings, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the kinds (n,) and arrival times (n,) in s of all jobs: the merged streams of the types; at equal times,
    interactive jobs come first.
    """
    kinds = ("typeless",) if settings.types == "typeless" else ("interactive", "batch")
    streams = [arrival_times(kind, settings.jobs, generator(seed, "lublin", "arrival", kind)) for kind in kinds]
    order = np.argsort(np.concatenate(streams), kind="stable")[: settings.jobs]
    return np.repeat(kinds, settings.jobs)[order], np.concatenate(streams)[order]


def _users(settings: LublinSettings, rng: np.random.Generator) -> np.ndarray:
    """Draw users from 1; the probability of the k-th is proportional to 1 / k, like the activity of users in logs."""
    shares = 1.0 / np.arange(1, settings.users + 1)
    return rng.choice(settings.users, size=settings.jobs, p=shares / shares.sum()) + 1


def _header(settings: LublinSettings, seed: int) -> list[str]:
    bounds = [
        settings.bounds(kind)[1]
        for kind in (("typeless",) if settings.types == "typeless" else ("batch", "interactive"))
    ]
    return [
        " Version: 2.2",
        " Computer: synthetic",
        f" Conversion: schedlab, Lublin-Feitelson model, {settings.types}, seed {seed}",
        f" MaxJobs: {settings.jobs}",
        f" MaxRecords: {settings.jobs}",
        f" MaxNodes: {settings.processors}",
        f" MaxProcs: {settings.processors}",
        f" MaxRuntime: {MAX_RUN}",
        f" Note: largest size 2^{max(bounds):.6g}; requested times: {settings.estimates.model}",
    ]
