"""The choice of an allocation from forecasts: the cheapest that meets the limits, or the fastest within a budget, each
with the probability of meeting the limits; the front of time and cost; the next allocation to measure; and all of it
as values and as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.cost import money
from schedlab.studies.cloud.model.plan import HOUR, Forecast, allocation, undominated
from schedlab.studies.cloud.optimize.settings import LimitSettings

INTERVAL = (0.05, 0.95)  # quantiles of the intervals that are printed
SURE = 0.02  # relative width of an interval below which a measurement would add no information
PROBE_EPOCHS = 2  # length of a proposed measurement, epochs
SHOWN = 8  # allocations of the front that a terminal shows
RIVAL = 0.05  # share of resamples in which an allocation must be the best to be worth measuring


@dataclass(frozen=True)
class Plan:
    """A forecast, the limits, and the choice.

    likely    probability that an allocation meets all limits, (n,); 0 if the model predicts that it breaks one
    chosen    number of the allocation to take; None: no allocation meets the limits (reason)
    front     numbers of the allocations that are not dominated in time and cost, fastest first
    next_one  number of the allocation to measure next; None: no measurement is likely to change the choice
    """

    forecast: Forecast
    limits: LimitSettings
    probability: float
    likely: np.ndarray
    chosen: int | None
    fastest: int
    cheapest: int
    front: list[int]
    next_one: int | None
    reason: str | None


def plan(found: Forecast, limits: LimitSettings, probability: float = 0.9) -> Plan:
    """Choose among the allocations that meet all limits with the given probability: the fastest if only the cost is
    limited, else the cheapest. Raises UserError for a limit that the forecast cannot be compared with.
    """
    costs, possible = found.times * found.price / HOUR, _possible(found, limits)
    time_max, cost_max = (math.inf if value is None else value for value in (limits.time_max, limits.cost_max))
    meets = (found.times <= time_max) & (costs <= cost_max) & possible
    likely = np.where((found.time <= time_max) & (found.cost <= cost_max), meets.mean(axis=0), 0.0)
    by_time = limits.cost_max is not None and limits.time_max is None
    sought, tie = (found.time, found.cost) if by_time else (found.cost, found.time)
    order = np.lexsort((tie, sought))
    allowed = [int(number) for number in order if likely[number] >= probability]
    chosen = allowed[0] if allowed else None
    return Plan(
        forecast=found,
        limits=limits,
        probability=probability,
        likely=likely,
        chosen=chosen,
        fastest=int(np.lexsort((found.cost, found.time))[0]),
        cheapest=int(np.lexsort((found.time, found.cost))[0]),
        front=undominated(found.time, found.cost),
        next_one=_next(found, meets, found.times if by_time else costs, chosen),
        reason=None if allowed else _reason(found, limits, possible, likely, probability),
    )


def _possible(found: Forecast, limits: LimitSettings) -> np.ndarray:
    """Return whether each allocation meets the limits on throughput, memory and utilisation by the fitted model,
    (n,).
    """
    if limits.cpu_util_min is not None and np.isnan(found.cpu_util).any():
        raise UserError(
            "the logs do not show what cores do, since no two settings differ in their cores alone",
            where="--limits: cpu_util_min",
            remedy="measure the same GPUs with other numbers of cores, or leave this limit out",
        )
    gpus, _, memory = found.allocations.T
    meets = memory <= (math.inf if limits.memory_max is None else limits.memory_max)
    for least, values in (
        (limits.throughput_min, found.throughput),
        (limits.gpu_util_min if gpus.any() else None, 100.0 * found.gpu_util),
        (limits.cpu_util_min, 100.0 * found.cpu_util),
    ):
        if least is not None:
            meets &= values >= least
    return meets


def _reason(
    found: Forecast, limits: LimitSettings, possible: np.ndarray, likely: np.ndarray, probability: float
) -> str:
    """Return why no allocation can be chosen."""
    asked = " and ".join(
        f"{name.rpartition('_')[0]} {'of at most' if name.endswith('max') else 'of at least'} {AMOUNTS[name](value)}"
        for name, value in limits.model_dump(exclude_none=True).items()
    )
    if likely.max() > 0:
        best = int(likely.argmax())
        return (
            f"no allocation meets {asked} with a probability of {probability:.0%}; the likeliest, "
            f"{words(found, best)}, does with {likely[best]:.0%}"
        )
    if not possible.any():
        return f"no allocation meets {asked}: none reaches the limits on throughput, memory and utilisation"
    inside = np.flatnonzero(possible)
    fastest, cheapest = inside[found.time[inside].argmin()], inside[found.cost[inside].argmin()]
    return (
        f"no allocation meets {asked}: the fastest takes {duration(found.time[fastest])}, "
        f"the cheapest costs {money(found.cost[cheapest])}"
    )


def _next(found: Forecast, meets: np.ndarray, sought: np.ndarray, chosen: int | None) -> int | None:
    """Return the unmeasured allocation with the most uncertain time among those that are the best in some resamples,
    or, if no resample meets the limits, among those of the front.
    """
    values = np.where(meets, sought, np.inf)
    some = np.isfinite(values).any(axis=1)
    if some.any():
        wins = np.bincount(values[some].argmin(axis=1), minlength=values.shape[1]) / some.sum()
        rivals = np.flatnonzero(wins >= RIVAL)
    else:
        rivals = np.array(undominated(found.time, found.cost))
    if chosen is not None:
        rivals = np.union1d(rivals, [chosen])
    low, high = np.quantile(found.times[:, rivals], INTERVAL, axis=0)
    width = np.where(found.measured[rivals], 0.0, (high - low) / found.time[rivals])
    return int(rivals[width.argmax()]) if len(rivals) and width.max() > SURE else None


def duration(seconds: float) -> str:
    """Return a time with a suitable unit."""
    for unit, length in (("d", 86400.0), ("h", HOUR), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"


AMOUNTS: dict[str, Callable[[float], str]] = {
    "time_max": duration,
    "cost_max": money,
    "throughput_min": "{:g} samples/s".format,
    "memory_max": "{:g} GB".format,
    "gpu_util_min": "{:g} %".format,
    "cpu_util_min": "{:g} %".format,
}


def words(found: Forecast, number: int) -> str:
    """Return the text of an allocation of a forecast."""
    if found.offers:
        return found.offers[number].name
    gpus, cores, memory = allocation(found, number)
    counts = [f"{count:g} {unit}{'' if count == 1 else 's'}" for count, unit in ((gpus, "GPU"), (cores, "core"))]
    return f"{', '.join(counts)}, {memory:g} GB"


def values(found: Plan, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return a plan as plain values. notes: further warnings."""
    job, following = found.forecast.job, found.next_one
    return {
        "feasible": found.chosen is not None,
        "plan": None if found.chosen is None else row_of(found, found.chosen),
        "fastest": row_of(found, found.fastest),
        "cheapest": row_of(found, found.cheapest),
        "front": [row_of(found, number) for number in found.front],
        "reason": found.reason,
        "limits": found.limits.model_dump(exclude_none=True),
        "probability": found.probability,
        "measure_next": None if following is None else {**row_of(found, following), "bill": _bill(found, following)},
        "job": {"model": job.model or None, "epochs": job.epochs, "samples": job.samples, "start_s": job.start},
        "median_relative_error": found.forecast.median_error,
        "warnings": [*warnings(found), *notes],
    }


def row_of(found: Plan, number: int) -> dict[str, Any]:
    """Return the forecast of an allocation as plain values: times in s, costs in $."""
    every = found.forecast
    held = allocation(every, number)
    low, high = np.quantile(every.times[:, number], INTERVAL)
    price = every.price[number] / HOUR
    return {
        **_offer(every, number),
        "gpus": held.gpu_count,
        "cpu_cores": held.cpu_count,
        "memory_gb": held.memory_gb,
        "batch_size": int(every.batch[number]),
        "time_s": float(every.time[number]),
        "cost": float(every.cost[number]),
        "probability": float(found.likely[number]),
        "time_interval_s": [float(low), float(high)],
        "cost_interval": [float(low * price), float(high * price)],
        "measured": bool(every.measured[number]),
    }


def _offer(every: Forecast, number: int) -> dict[str, Any]:
    """Return the instance of an allocation; nothing if it is no instance."""
    if not every.offers:
        return {}
    offer = every.offers[number]
    return {"instance": offer.type.type, "spot": offer.spot, "gpu_kind": offer.type.gpu_kind or None}


def _bill(found: Plan, number: int) -> float:
    """Return the cost of a measurement of PROBE_EPOCHS epochs, $."""
    job, time = found.forecast.job, found.forecast.time[number]
    seconds = job.start + PROBE_EPOCHS * (time - job.start) / job.epochs
    return float(found.forecast.cost[number] / time * seconds)


def warnings(found: Plan) -> list[str]:
    """Return warnings about the forecasts for readers of the plan."""
    job, notes = found.forecast.job, []
    if not found.forecast.determined:
        notes.append(
            "the model has as many parameters as the logs have settings: the probabilities hold the noise of "
            "measurements alone, not the error of the model; measure more allocations"
        )
    if job.cores_per_gpu is not None and found.forecast.offers:
        notes.append("the logs do not show what cores do: the cores of an instance change nothing in this forecast")
    elif job.cores_per_gpu is not None:
        notes.append(
            f"the logs do not show what cores do: every allocation has {job.cores_per_gpu:g} cores for each GPU, as in "
            "the logs"
        )
    if job.memory is None:
        notes.append("the logs have no column memory_used_gb: about 3 GB, and 1.5 GB for each GPU, are assumed")
    return notes


def text(found: Plan, notes: Sequence[str] = ()) -> str:
    """Return a plan as lines for a terminal. notes: further warnings."""
    every, job = found.forecast, found.forecast.job
    lines = [f"{job.model or 'the job'}: {job.epochs} epochs of {job.samples:.0f} samples"]
    lines[0] += f"; the model misses the measured settings by {every.median_error:.1%} (median)"
    lines += [found.reason] if found.reason else []
    named = [("plan", found.chosen), ("fastest", found.fastest), ("cheapest", found.cheapest)]
    rows = [(name, number) for name, number in named if number is not None]
    spread = np.unique(np.linspace(0, len(found.front) - 1, min(SHOWN, len(found.front))).astype(int))
    chosen = {number for _, number in rows}
    rows += [("front", found.front[place]) for place in spread if found.front[place] not in chosen]
    cells = [("time (90 % interval)", "cost (90 % interval)")]
    for _, number in rows:
        row = row_of(found, number)
        times = f"{duration(row['time_s'])} ({' to '.join(map(duration, row['time_interval_s']))})"
        cells.append((times, f"{money(row['cost'])} ({' to '.join(map(money, row['cost_interval']))})"))
    wide, high = (max(map(len, column)) for column in zip(*cells, strict=True))
    table = [f"{times:{wide}}  {costs:{high}}  " for times, costs in cells]
    names = [every.offers[number].name if every.offers else "" for _, number in rows]
    longest = max(map(len, names)) + 2 * bool(every.offers)
    lines += ["", f"{'':9}{'instance':{longest}.{longest}}{'GPUs':>5}{'cores':>6}{'GB':>5}  {table[0]}limits"]
    for (name, number), instance, shown in zip(rows, names, table[1:], strict=True):
        row = row_of(found, number)
        held = f"{instance:{longest}}{row['gpus']:>5}{row['cpu_cores']:>6}{row['memory_gb']:>5}"
        lines.append(f"{name:9}{held}  {shown}met with {row['probability']:.0%}")
    if found.next_one is not None:
        cost = money(_bill(found, found.next_one))
        lines += ["", f"to be surer, measure {words(every, found.next_one)} for {PROBE_EPOCHS} epochs ({cost})"]
    return "\n".join([*lines, *(f"WARNING: {note}" for note in [*warnings(found), *notes])]) + "\n"
