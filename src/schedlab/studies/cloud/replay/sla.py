"""Service levels: six limits on a training job, whether each is met, and the severity of violations.

See docs/reference/cloud_model.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import model_validator

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting

ITEMS = ("time", "cost", "throughput", "memory", "gpu_util", "cpu_util")
UPPER = frozenset({"time", "cost", "memory"})  # items that are met at or below the limit; the others at or above it
LIMIT_OF = {
    "time": "time_max",
    "cost": "cost_max",
    "throughput": "throughput_min",
    "memory": "memory_max",
    "gpu_util": "gpu_util_min",
    "cpu_util": "cpu_util_min",
}
COLUMN_OF = {
    "time": "time_so_far",
    "cost": "cost_so_far",
    "throughput": "throughput",
    "memory": "memory_used_gb",
    "gpu_util": "gpu_utilization",
    "cpu_util": "cpu_percent",
}
GPU_COLUMN = "gpu_utilization_"
MEASURED = frozenset(
    {
        *("epoch", "total_epochs", "epoch_time", "time_so_far", "cost_so_far", "throughput"),
        *("memory_used_gb", "gpu_memory_used_gb", "cpu_percent"),
    }
)
FALLBACK = {"time_so_far": 600.0, "cost_so_far": 0.30, "throughput": 1800.0}
MARGIN = {"time_so_far": 1.1, "cost_so_far": 1.1, "throughput": 0.9}
FORECAST = {"time_max": "time_so_far", "cost_max": "cost_so_far", "throughput_min": "throughput"}


class SLAConfig(Settings):
    """The limits of a job. A limit that cannot be met is allowed: its severity then shows how far away it is."""

    time_max: float = setting(600.0, doc="maximum training time", unit="s", ge=0)
    cost_max: float = setting(0.30, doc="maximum cost", unit="$", ge=0)
    throughput_min: float = setting(1800.0, doc="minimum throughput", unit="samples/s", ge=0)
    memory_max: float = setting(64.0, doc="maximum memory used", unit="GB", ge=0)
    gpu_util_min: float = setting(80.0, doc="minimum mean utilisation of the GPUs", unit="%", ge=0, le=100)
    cpu_util_min: float = setting(70.0, doc="minimum utilisation of the cores", unit="%", ge=0, le=100)

    @model_validator(mode="before")
    @classmethod
    def _without_none(cls, values: Any) -> Any:
        """Replace a limit of None by its default."""
        return (
            {key: value for key, value in values.items() if value is not None} if isinstance(values, dict) else values
        )

    def limit(self, item: str) -> float:
        """Return the limit of an item."""
        return float(getattr(self, LIMIT_OF[item]))

    def updated(self, history: Iterable[Mapping[str, float]]) -> SLAConfig:
        """Return the limits with time, cost and throughput forecast from a history (`forecast`); the others are
        kept.
        """
        return self.model_copy(update=forecast(history))


@dataclass(frozen=True)
class Verdict:
    """Whether an item is met, and its severity: 0 if it is met, else the relative distance to the limit, at most 1."""

    met: bool
    severity: float


def judge(item: str, value: float, limit: float) -> Verdict:
    """Return whether a value keeps a limit; if the limit is 0, any value above it has severity 1."""
    excess = value - limit if item in UPPER else limit - value
    if excess <= 0:
        return Verdict(True, 0.0)
    return Verdict(False, min(1.0, excess / limit) if limit > 0 else 1.0)


def is_given(value: Any) -> bool:
    """Return whether a value of a record is given: neither None nor NaN."""
    return value is not None and not (isinstance(value, float | np.floating) and value != value)


def require_record(record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a record of a log. Raises UserError for values of a wrong type, such as text instead of a number."""
    for key, value in record.items():
        measured = key in MEASURED or str(key).startswith(GPU_COLUMN)
        if isinstance(value, list | dict) or (measured and isinstance(value, str)):
            raise UserError(f"'{key}' is {str(value)[:60]!r}", where=where, expected="a number")
    return dict(record)


def gpu_utilisations(metrics: Mapping[str, Any]) -> list[float]:
    """Return the reported `gpu_utilization_<i>` of a record, percent."""
    return [float(value) for key, value in metrics.items() if key.startswith(GPU_COLUMN) and is_given(value)]


def forecast(history: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return limits for a job from records {time_so_far, cost_so_far, throughput}: 10 % beyond their means, or beyond
    fallback values without records. Raises UserError for a value that is not a number.
    """
    records = [require_record(record, "history") for record in history]
    limits = {}
    for limit, column in FORECAST.items():
        found = [float(record[column]) for record in records if is_given(record.get(column))]
        limits[limit] = float(np.mean(found) if found else FALLBACK[column]) * MARGIN[column]
    return limits
