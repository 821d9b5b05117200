"""Converts a trace to a workload of Batsim with memory and memory bandwidth, for the study of heterogeneous clusters.

Source: HDeepRM's generator (docs/reference/workloads.md). Its defects are repaired by default; REFERENCE contains the
values for the published behaviour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import field_validator

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting
from schedlab.config.seeds import generator
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.workloads.batsim_file import BatsimWorkload
from schedlab.workloads.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

# Fraction of its requested time that a job takes on a core of mean speed, and the probability of each: most users
# request too much time, some too little.
FACTORS = tuple(round(0.05 * number, 2) for number in range(1, 26))
PROBABILITIES = (0.15, 0.09, 0.07, *[0.04] * 5, *[0.03] * 5, *[0.02] * 10, 0.06, 0.08)
MEMORY_BANDWIDTHS = (4, 8, 12, 16, 20, 24)
MEMORY_REMEDY = (
    "say what memory per core they have, in MB: --missing-memory 1000,2000, in a scenario "
    "workload.batsim.missing_memory"
)
KB_PER_MB, FLOPS_PER_GFLOP = 1000, 1e9
ROUNDING = 1e-6  # s, the resolution of the simulator's dates
REFERENCE: dict[str, Any] = {
    "infeasible": "keep",
    "legacy_draws": True,
    "legacy_profile_sharing": True,
    "legacy_submit_shift": True,
    "legacy_zero_limits": True,
}


class BatsimSettings(Settings):
    """How the jobs of a trace become jobs of Batsim."""

    jobs: int | None = setting(None, doc="maximum number of jobs; null: all", unit="jobs", ge=1)
    nb_res: int | None = setting(
        None, doc="number of resources in the file; null: the cores of the platform", unit="cores", ge=1
    )
    first_submit: float = setting(
        0.0,
        doc="submit time of the first job; schedulers on PyBatsim's high-level API need a value above 0",
        unit="s",
        ge=0,
        le=1e9,
    )
    runtime: Literal["drawn", "requested", "trace"] = setting(
        "drawn",
        doc="run time on a core of mean speed: a random share of the requested time (`drawn`), the "
        "requested time, or the run time in the trace",
    )
    walltime: Literal["none", "requested", "slowest_core"] = setting(
        "none",
        doc="time limit of a job; `none`: no limit; `requested`: requested time; `slowest_core`: time "
        "of the requested work on the slowest core, rounded up",
    )
    memory_bandwidth: tuple[float, ...] = setting(
        MEMORY_BANDWIDTHS, doc="memory bandwidth per core of a job, drawn from this list", unit="GB/s", min_length=1
    )
    missing_memory: tuple[int, ...] = setting(
        (), doc="memory per core of jobs without a value, drawn from this list; empty: such jobs are skipped", unit="MB"
    )
    infeasible: Literal["skip", "clip", "refuse", "keep"] = setting(
        "skip",
        doc="jobs that cannot run on the empty platform; `keep` (published): such a job blocks the queue",
    )
    legacy_draws: bool = setting(False, doc="published: one global random generator for all quantities")
    legacy_profile_sharing: bool = setting(
        False, doc="published: jobs with the same request share the first one's run time"
    )
    legacy_submit_shift: bool = setting(False, doc="published: a first submit time of 0 is treated as missing")
    legacy_zero_limits: bool = setting(False, doc="published: job limits, by which observations are divided, may be 0")

    @field_validator("memory_bandwidth", "missing_memory")
    @classmethod
    def _demands(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if min(value, default=0) < 0:
            raise ValueError("values of 0 or more")
        return value


@dataclass(frozen=True)
class ConversionReport:
    """The numbers of jobs read, of jobs written, and, by reason, of jobs left out or changed."""

    read: int
    written: int
    reasons: dict[str, int]

    def values(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return {"read": self.read, "written": self.written, "reasons": self.reasons}


def to_batsim(
    trace: Trace, hierarchy: Hierarchy, settings: BatsimSettings, seed: int
) -> tuple[BatsimWorkload, ConversionReport]:
    """Return the workload, and the report on the conversion of the trace's jobs. The same arguments give the same
    workload.

    The columns of requested values are used: first clean a trace that has only allocated processors or run times.
    Raises UserError if no job is left, if `infeasible` is refuse and a job does not fit, and if a run time of the trace
    is needed but missing.
    """
    if settings.nb_res and settings.nb_res > hierarchy.cores and settings.infeasible != "keep":
        expected = f"at most {hierarchy.cores}, the cores of platform {hierarchy.name}"
        raise UserError(f"nb_res is {settings.nb_res}", where="workload for Batsim", expected=expected)
    jobs, report = _chosen(trace, hierarchy, settings, seed)
    if not len(jobs):
        reasons = ", ".join(f"{reason} {count}" for reason, count in report.reasons.items() if count)
        remedy = (
            MEMORY_REMEDY
            if report.reasons["no_memory"]
            else "see the cleaning, and what becomes of jobs that do not fit (infeasible)"
        )
        raise UserError(f"no job can be taken ({reasons or 'the trace is empty'})", where=trace.source, remedy=remedy)
    factors, bandwidths = _draws(len(jobs), settings, seed)
    speed = hierarchy.reference_speed
    slowdown = {"requested": 1.0, "slowest_core": speed / hierarchy.slowest_gflops}.get(settings.walltime)
    written: list[dict[str, Any]] = []
    profiles: dict[str, dict[str, Any]] = {}
    shifts = _shifts(jobs["submit"].to_numpy(), settings.legacy_submit_shift) + settings.first_submit
    columns = (shifts, jobs["res"], jobs["time_requested"], jobs["memory"], jobs["run"], factors, bandwidths)
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    for number, (submit, res, requested, memory, run, factor, bandwidth) in enumerate(rows):
        work = {"drawn": speed * factor * requested, "requested": speed * requested, "trace": speed * run}[
            settings.runtime
        ]
        cpu = int(work * FLOPS_PER_GFLOP)
        name = f"{_short(requested)}_{memory}_{_short(bandwidth)}"
        if not settings.legacy_profile_sharing:
            name += f"_{cpu}"
        profile = {"type": "parallel_homogeneous", "cpu": cpu, "com": 0, "req_time": _plain(requested)}
        profile |= {"req_ops": int(speed * requested * FLOPS_PER_GFLOP), "mem": memory, "mem_bw": _plain(bandwidth)}
        profiles.setdefault(name, profile)
        job = {"id": number, "subtime": _plain(submit), "res": res, "profile": name}
        written.append(job if slowdown is None else job | {"walltime": _walltime(requested, slowdown)})
    return BatsimWorkload(settings.nb_res or hierarchy.cores, written, profiles), report


def _chosen(
    trace: Trace, hierarchy: Hierarchy, settings: BatsimSettings, seed: int
) -> tuple[pd.DataFrame, ConversionReport]:
    """Return the selected jobs, with columns res and memory (MB), and the report."""
    jobs = trace.jobs.assign(res=trace.jobs["procs_requested"])
    kilobytes = jobs["memory_requested"].where(jobs["memory_requested"] >= 0, jobs["memory_used"])
    no_memory = (kilobytes < 0).to_numpy()
    memory = (kilobytes.clip(lower=0) // KB_PER_MB).astype(np.int64).to_numpy()
    if settings.missing_memory:
        drawn = generator(seed, "batsim", "missing memory").choice(settings.missing_memory, len(jobs))
        memory = np.where(no_memory, drawn, memory)
    jobs = jobs.assign(memory=memory)
    reasons = {
        "negative_submit": (jobs["submit"] < 0).to_numpy(),
        "no_processors": _below(jobs["res"], settings),
        "no_requested_time": _below(jobs["time_requested"], settings),
        "no_memory": no_memory & (not settings.missing_memory),
        "no_run_time": (jobs["run"] < 0).to_numpy() & (settings.runtime == "trace"),
    }
    left_out = np.any(list(reasons.values()), axis=0)
    jobs, too_large = _feasible(jobs, ~left_out, hierarchy, settings)
    reasons["too_large"] = too_large
    taken = ~left_out & (~too_large if settings.infeasible == "skip" else True)
    places = np.flatnonzero(taken)[: settings.jobs]
    read = int(places[-1]) + 1 if settings.jobs and len(places) == settings.jobs else len(jobs)
    if settings.infeasible == "refuse" and too_large[places].any():
        _refuse(jobs.iloc[places[too_large[places]][0]], hierarchy, settings, trace.source)
    counts = {reason: int(met[:read].sum()) for reason, met in reasons.items()}
    return jobs.iloc[places], ConversionReport(read, len(places), counts)


def _room(hierarchy: Hierarchy, memory: float, settings: BatsimSettings) -> int:
    """Return how many cores a job can have at once if each needs `memory` (MB), at most as many as the workload's file
    names.
    """
    return min(hierarchy.room_for(memory), settings.nb_res or hierarchy.cores)


def _refuse(job: pd.Series, hierarchy: Hierarchy, settings: BatsimSettings, where: str) -> None:
    raise UserError(
        f"job {int(job['job_id'])} asks for {int(job['res'])} cores with {int(job['memory'])} MB each",
        where=where,
        expected=f"at most {_room(hierarchy, job['memory'], settings)} such cores, which platform {hierarchy.name} has",
        remedy="skip or clip such jobs (infeasible)",
    )


def _below(values: pd.Series, settings: BatsimSettings) -> np.ndarray:
    """Return which values are missing; 0 also counts as missing, except in the published behaviour."""
    return (values < 0 if settings.infeasible == "keep" else values <= 0).to_numpy()


def _feasible(
    jobs: pd.DataFrame, asked: np.ndarray, hierarchy: Hierarchy, settings: BatsimSettings
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the jobs, clipped if the settings require it, and which of the `asked` ones cannot run on the empty
    platform.
    """
    room = {memory: _room(hierarchy, memory, settings) for memory in jobs["memory"][asked].unique().tolist()}
    largest = max(node.memory for node in hierarchy.nodes())
    too_large = asked & (jobs["res"].to_numpy() > jobs["memory"].map(room).fillna(0).to_numpy())
    if settings.infeasible != "clip":
        return jobs, too_large
    memory = np.where(too_large, np.minimum(jobs["memory"], int(largest)), jobs["memory"])
    fits = np.array([_room(hierarchy, value, settings) for value in memory[too_large].tolist()], dtype=np.int64)
    res = jobs["res"].to_numpy().copy()
    res[too_large] = np.minimum(res[too_large], fits)
    return jobs.assign(memory=memory, res=res), too_large


def _draws(count: int, settings: BatsimSettings, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw factors on the requested time and memory bandwidths (GB/s) of the jobs, each (count,)."""
    choices = np.array(settings.memory_bandwidth)
    if settings.legacy_draws:
        rng = np.random.RandomState(seed % 2**32)
        pairs = [(rng.choice(FACTORS, p=PROBABILITIES), rng.choice(choices)) for _ in range(count)]
        return np.array([factor for factor, _ in pairs]), np.array([bandwidth for _, bandwidth in pairs])
    factors = generator(seed, "batsim", "over-estimation").choice(FACTORS, count, p=PROBABILITIES)
    return factors, generator(seed, "batsim", "memory bandwidth").choice(choices, count)


def _shifts(submit: np.ndarray, legacy: bool) -> np.ndarray:
    """Return submit times (n,) counted from the first job."""
    if not legacy:
        return submit - submit.min()
    first, shifted = 0.0, []
    for time in submit.tolist():
        first = first or time  # in the published generator, 0 means "not set"
        shifted.append(time - first)
    return np.array(shifted)


def _walltime(requested: float, slowdown: float) -> int | float:
    return _plain(requested) if slowdown == 1.0 else math.ceil(requested * slowdown - ROUNDING)


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else float(value)


def _short(value: float) -> str:
    return str(_plain(value))
