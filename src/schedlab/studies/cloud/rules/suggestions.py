"""Options: four allocations that rules of thumb suggest after a record, one for each preference.

Source: specification of the study cloud, A8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.replay.sla import gpu_utilisations, known

NAMES = {"time": "Time-Critical", "cost": "Cost-Critical", "resource": "Resource-Efficient", "balanced": "Balanced"}
DESCRIPTIONS = {
    "time": "trains as fast as it can, at a higher price",
    "cost": "costs less at a throughput that still suffices",
    "resource": "gives the GPUs what they use, and cores and memory in proportion",
    "balanced": "stays as it is",
}
MARKS = {"time": "estimated_speedup", "cost": "estimated_savings", "resource": "estimated_utilization_improvement"}


@dataclass(frozen=True)
class Option:
    """A suggested allocation with its hourly price ($/h), and what it promises (see MARKS; None for balanced)."""

    priority: str
    allocation: Allocation
    hourly_cost: float
    promise: float | None = None

    @property
    def description(self) -> str:
        """What the option is for, in words."""
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
    """Return the options after the latest record, in the order time, cost, resource, balanced. Throughput:
    samples/s.
    """
    found = gpu_utilisations(metrics)
    utilisation = sum(found) / max(1, len(found))
    throughput = metrics.get("throughput", 0)
    enough = known(throughput) and throughput > throughput_min * 1.5
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
        return Allocation(
            *(min(have + more, most) for have, more, most in zip(now, (2, 8, 16), limits.most, strict=True))
        )
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
