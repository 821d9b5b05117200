"""Allocations of a training job: how many GPUs, CPU cores and gigabytes, what they cost, and the actions that change
them.

Source: SLA-MORL (arXiv 2508.03509) and its published program; docs/reference/cloud_model.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, NamedTuple, SupportsIndex

from pydantic import model_validator

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting

STEPS = (1, 4, 8)  # amounts that one action adds or removes: GPUs, cores, GB
ACTIONS = 27
KEEP = 13  # the action that changes nothing
PAPER_ACTIONS = tuple(range(1, ACTIONS, 3))  # the 9 actions of the paper's text: the memory stays
WORDS = ("GPUs by {}", "CPUs by {}", "memory by {} GB")
UNCHANGED = ("GPUs", "CPUs", "memory")
# $/h: prices of clouds for a T4, a core and a gigabyte
PRICES = {"cost_per_gpu_hour": 2.5, "cost_per_cpu_hour": 0.1, "cost_per_gb_hour": 0.02}


class Allocation(NamedTuple):
    """The resources of a job: GPUs, CPU cores, memory (GB)."""

    gpu_count: int
    cpu_count: int
    memory_gb: float


class ResourceConfig(Settings):
    """Limits of allocations, and prices."""

    gpu_count_max: int = setting(8, doc="maximum number of GPUs", unit="GPUs", ge=0, le=4096)
    gpu_count_min: int = setting(1, doc="minimum number of GPUs", unit="GPUs", ge=0)
    cpu_count_max: int = setting(64, doc="maximum number of CPU cores", unit="cores", ge=1, le=65536)
    cpu_count_min: int = setting(1, doc="minimum number of CPU cores", unit="cores", ge=1)
    memory_max: float = setting(256, doc="maximum memory", unit="GB", gt=0, le=1e6)
    memory_min: float = setting(4, doc="minimum memory", unit="GB", gt=0)
    cost_per_gpu_hour: float = setting(PRICES["cost_per_gpu_hour"], doc="price of a GPU", unit="$/h", ge=0)
    cost_per_cpu_hour: float = setting(PRICES["cost_per_cpu_hour"], doc="price of a CPU core", unit="$/h", ge=0)
    cost_per_gb_hour: float = setting(PRICES["cost_per_gb_hour"], doc="price of a gigabyte of memory", unit="$/h", ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> ResourceConfig:
        for least, most in zip(self.least, self.most, strict=True):
            if least > most:
                raise ValueError(f"a least amount that is not above the most; {least:g} is above {most:g}")
        return self

    @property
    def least(self) -> Allocation:
        """The smallest allocation."""
        return Allocation(self.gpu_count_min, self.cpu_count_min, whole(self.memory_min))

    @property
    def most(self) -> Allocation:
        """The largest allocation."""
        return Allocation(self.gpu_count_max, self.cpu_count_max, whole(self.memory_max))

    def hourly_price(self, gpu_count: Any, cpu_count: Any, memory_gb: Any) -> Any:
        """Return the price of an allocation, $/h: a number, or an array where amounts are arrays."""
        return (
            gpu_count * self.cost_per_gpu_hour + cpu_count * self.cost_per_cpu_hour + memory_gb * self.cost_per_gb_hour
        )


def whole(value: float) -> float:
    """Return a number as an integer if it has no fraction, so that it prints as 64 instead of 64.0."""
    return int(value) if float(value).is_integer() else value


def action_at(actions: Sequence[int], place: SupportsIndex) -> int:
    """Return the action at a position of an action space. Raises UserError for an invalid position."""
    try:
        number = -1 if isinstance(place, bool) else index(place)
    except TypeError:  # a fraction, which would otherwise be truncated
        number = -1
    if not 0 <= number < len(actions):
        raise UserError(f"action {place!r}", expected=f"a whole number from 0 to {len(actions) - 1}")
    return actions[number]


def changes(action: int) -> tuple[int, int, int]:
    """Return the change of GPUs, cores and memory by an action: -1, 0 or 1 steps of STEPS."""
    return action // 9 - 1, action % 9 // 3 - 1, action % 3 - 1


def action_of(steps: tuple[int, int, int]) -> int:
    """Return the action that takes these steps (-1, 0 or 1 for each resource)."""
    return (steps[0] + 1) * 9 + (steps[1] + 1) * 3 + steps[2] + 1


def describe(action: int) -> str:
    """Return an action in words."""
    told = []
    for way, step, words, name in zip(changes(action), STEPS, WORDS, UNCHANGED, strict=True):
        told.append(f"{'Increase' if way > 0 else 'Decrease'} {words.format(step)}" if way else f"No change to {name}")
    return ", ".join(told)


def moved(allocation: Allocation, action: int, limits: ResourceConfig) -> Allocation:
    """Return the allocation after an action, kept within the limits."""
    aimed = (have + way * step for have, way, step in zip(allocation, changes(action), STEPS, strict=True))
    bounded = zip(limits.least, aimed, limits.most, strict=True)
    return Allocation._make(max(least, min(value, most)) for least, value, most in bounded)


def held_in(record: Mapping[str, Any]) -> Allocation:
    """Return the allocation in a record of a log."""
    return Allocation._make(record[name] for name in Allocation._fields)


def allocation_from(values: Mapping[str, float], where: str) -> Allocation:
    """Return the allocation in a mapping; missing keys count as 0. Raises UserError for invalid amounts."""
    found = []
    for key in Allocation._fields:
        value = values.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"'{key}' is {value!r}", where=where, expected="a number of 0 or more")
        found.append(value)
    return Allocation._make(found)
