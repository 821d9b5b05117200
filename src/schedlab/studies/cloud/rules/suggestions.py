"""Options: four allocations that published rules of thumb suggest after a record of a log, one for each preference.

See docs/reference/cloud_model.md. The estimate of an option without GPUs is based on its cores; the published program
divides by zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.replay.sla import gpu_utilisations, is_given

NAMES = {"time": "Time-Critical", "cost": "Cost-Critical", "resource": "Resource-Efficient", "balanced": "Balanced"}
DESCRIPTIONS = {
    "time": "trains as fast as it can, at a higher price",
    "cost": "costs less at a throughput that still suffices",
    "resource": "gives the GPUs what they use, and cores and memory in proportion",
    "balanced": "stays as it is",
}
MARKS = {"time": "estimated_speedup", "cost": "estimated_savings", "resource": "estimated_utilization_improvement"}
ADDING, REMOVING = 0.7, 0.9  # exponents of throughput over GPUs when GPUs are added, removed
MISSING = {
    "time": (0.6, 1.3, 1.4),
    "cost": (1.3, 0.7, 0.7),
    "balanced": (1.0, 1.0, 1.0),
}  # factors on time, cost and throughput if there is no option
UNKNOWN_BATCH = 64  # batch size on each GPU if no baseline states it
BATCH, LEAST_BATCH, KEPT_SHARE, IDLE = 128, 32, 0.75, 15.0


@dataclass(frozen=True)
class Option:
    """A suggested allocation with its price ($/h) and its expected benefit (`promise`), whose meaning depends on the
    priority (MARKS); None if there is none.
    """

    priority: str
    allocation: Allocation
    hourly_cost: float
    promise: float | None = None

    @property
    def description(self) -> str:
        """The purpose of the option in words."""
        return DESCRIPTIONS[self.priority]

    def values(self) -> dict[str, Any]:
        """Return the option under the published names."""
        found = {
            "priority": self.priority,
            "name": NAMES[self.priority],
            **self.allocation._asdict(),
            "hourly_cost": self.hourly_cost,
        }
        return found if self.promise is None else {**found, MARKS[self.priority]: self.promise}


def options(metrics: Mapping[str, Any], now: Allocation, limits: ResourceConfig, throughput_min: float) -> list[Option]:
    """Return the options after a record, in the order time, cost, resource, balanced.

    throughput_min  samples/s
    """
    found = gpu_utilisations(metrics)
    utilisation = sum(found) / max(1, len(found))
    throughput = metrics.get("throughput", 0)
    enough = is_given(throughput) and throughput > throughput_min * 1.5
    time = _for_time(utilisation, now, limits)
    cost = _for_cost(utilisation, enough, now, limits)
    price = limits.hourly_price(*now)
    savings = 1.0 - limits.hourly_price(*cost) / price if price > 0 else 0.0
    improvement = (90 - utilisation) / 100.0 if utilisation < 90 else 0
    suggested = [
        ("time", time, time.gpu_count / max(1, now.gpu_count) * 0.8),
        ("cost", cost, savings),
        ("resource", _for_resource(utilisation, now, limits), improvement),
        ("balanced", now, None),
    ]
    return [
        Option(name, allocation, limits.hourly_price(*allocation), promise) for name, allocation, promise in suggested
    ]


def _for_time(utilisation: float, now: Allocation, limits: ResourceConfig) -> Allocation:
    if utilisation > 70 and now.gpu_count < limits.gpu_count_max:
        aimed = zip(now, (2, 8, 16), limits.most, strict=True)
        return Allocation._make(min(have + more, most) for have, more, most in aimed)
    return now._replace(cpu_count=min(now.cpu_count + 4, limits.cpu_count_max))


def _for_cost(utilisation: float, enough: bool, now: Allocation, limits: ResourceConfig) -> Allocation:
    gpus = now.gpu_count
    if gpus > 1 and utilisation < 5:
        gpus = 0 if utilisation < 1 and limits.cpu_count_max >= 8 else 1
    elif gpus > 1 and utilisation < 50:
        gpus -= 1
    if not enough:
        return now._replace(gpu_count=gpus)
    least = limits.least
    return Allocation(gpus, max(now.cpu_count - 4, least.cpu_count), max(now.memory_gb - 8, least.memory_gb))


def _for_resource(utilisation: float, now: Allocation, limits: ResourceConfig) -> Allocation:
    gpus = now.gpu_count
    if gpus > 1 and utilisation < 5:
        gpus = 0 if utilisation < 1 else 1
    elif gpus > 1 and utilisation < 40:
        gpus -= 1
    elif utilisation > 90:
        gpus = min(gpus + 1, limits.gpu_count_max)
    return Allocation(gpus, max(gpus * 4, limits.cpu_count_min), max(gpus * 8, limits.least.memory_gb))


@dataclass(frozen=True)
class Estimate:
    """Estimates for an option: time (s), cost ($), throughput (samples/s)."""

    priority: str
    time: float
    cost: float
    throughput: float


def estimate(option: Option, baseline: Mapping[str, Any]) -> Estimate:
    """Return the estimate for an option. baseline: gpu_count, cpu_count, time (s), cost ($), throughput (samples/s)."""
    before, after = _size(baseline["gpu_count"], baseline["cpu_count"], option)
    ratio = after / before if before else 1.0
    factor = ratio ** (ADDING if ratio > 1 else REMOVING)
    time = baseline["time"] / factor
    return Estimate(option.priority, time, time / 3600.0 * option.hourly_cost, baseline["throughput"] * factor)


def _size(gpus: int, cores: int, option: Option) -> tuple[float, float]:
    """Return the two amounts by which throughput is scaled: the GPUs, or the cores if one of both sides has no GPUs."""
    if gpus and option.allocation.gpu_count:
        return gpus, option.allocation.gpu_count
    return cores, option.allocation.cpu_count


def estimates(options: list[Option], baseline: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the estimates by priority. For a priority without an option, the baseline is multiplied by published
    factors.
    """
    given = {option.priority: estimate(option, baseline) for option in options}
    found = {}
    for priority, (time, cost, throughput) in MISSING.items():
        usual = Estimate(
            priority, baseline["time"] * time, baseline["cost"] * cost, baseline["throughput"] * throughput
        )
        found[priority] = given.get(priority, usual)
    return found


def options_without_records(use: float, now: Allocation, limits: ResourceConfig) -> list[Option]:
    """Return the options if only the mean utilisation of the GPUs (percent) is known, in the order of `options`."""
    gpus, cores, memory = now
    least, most = limits.least, limits.most
    share = 0.75 if use < 30 else 0.5 if use < 50 else 0.25 if use < 70 else 0.1
    cheap = max(1, int(gpus * (1 - share)))
    fast = max(2, gpus // 2) if use < 20 and gpus > 4 else gpus + 1
    fitting = gpus - 1 if use < 40 else gpus + 1 if use > 90 else gpus
    even = int(0.75 * gpus) if use < 30 else int(0.9 * gpus) if use < 60 else gpus + 1 if use > 90 else gpus
    cheap, fast, fitting, even = (
        max(least.gpu_count, min(value, most.gpu_count)) for value in (cheap, fast, fitting, even)
    )
    wanted = {
        "time": Allocation(fast, cores + 4, memory),
        "cost": Allocation(cheap, max(8, min(8 * cheap, cores)), memory),
        "resource": Allocation(fitting, 6 * fitting, memory),
        "balanced": Allocation(even, 6 * even, memory),
    }
    found = []
    for priority, allocation in wanted.items():
        bounded = zip(least, allocation, most, strict=True)
        kept = Allocation._make(max(low, min(value, high)) for low, value, high in bounded)
        found.append(Option(priority, kept, limits.hourly_price(*kept)))
    return found


def batch_without_records(gpus: int, baseline_batch: int | None = None, baseline_gpus: int = 1) -> int:
    """Return the batch size of an option: as many samples on each GPU as in the baseline, or UNKNOWN_BATCH."""
    each = UNKNOWN_BATCH if baseline_batch is None else baseline_batch / max(1, baseline_gpus)
    return round(each * max(1, gpus))


def batch_size(
    preference: str, gpus: int, baseline_batch: int, baseline_gpus: int, gpu_use: float | None = None
) -> int:
    """Return the batch size for a number of GPUs: 128 on each for the preference time, else as many on each as in the
    baseline, but at least 32 in total. If the GPUs were used by less than 15 %, it is also at least three quarters of
    the baseline's, except for the preference time.
    """
    batch = (
        BATCH * max(1, gpus) if preference == "time" else round(baseline_batch / max(1, baseline_gpus) * max(1, gpus))
    )
    least = KEPT_SHARE * baseline_batch if preference != "time" and gpu_use is not None and gpu_use < IDLE else 0
    return max(LEAST_BATCH, batch, int(least))
