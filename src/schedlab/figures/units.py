"""Quantities in suitable units, so that no axis shows hundreds of thousands of seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedlab.config.contract import Metric
from schedlab.figures.captions import number_text

if TYPE_CHECKING:
    import pandas as pd

UNCERTAIN = ("value", "ci_low", "ci_high", "range_low", "range_high")  # columns of a summary with the metric's unit

LARGER_UNITS = {
    "s": ((3600.0, "h"), (60.0, "min")),
    "J": ((1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")),
    "bytes/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")),
    "J s": ((1e15, "PJ s"), (1e12, "TJ s"), (1e9, "GJ s")),
}


@dataclass(frozen=True)
class Scaled:
    """A quantity in a suitable unit: values are divided by `size`."""

    size: float
    label: str
    unit: str

    def of(self, value: float) -> Amount:
        """Return a value (in the original unit) for a caption."""
        return Amount(float(value), self)

    def text(self, value: float) -> str:
        """Return a value (in the original unit) as text with the unit."""
        number = number_text(value / self.size, "{:.3g}" if abs(value / self.size) < 1000 else "{:.0f}")
        return f"{number} {self.unit}".rstrip(" -")


@dataclass(frozen=True)
class Amount:
    """A value in its original unit, formatted in a unit that suits its size."""

    value: float
    scale: Scaled

    def __str__(self) -> str:
        return self.scale.text(self.value)


def scaled(metric: Metric, largest: float) -> Scaled:
    """Return the unit for a metric whose largest value is `largest`: the first one in which it is at least 1."""
    found = next(
        ((size, unit) for size, unit in LARGER_UNITS.get(metric.unit, ()) if largest >= size), (1.0, metric.unit)
    )
    label = metric.label or metric.name.replace("_", " ")
    unit = "" if found[1] in ("-", "fraction") else found[1]
    return Scaled(found[0], f"{label} ({unit})" if unit else label, unit)


def divided(rows: pd.DataFrame, size: float) -> pd.DataFrame:
    """Return rows of a summary with their values, intervals and ranges divided by `size`."""
    return rows.assign(**{name: rows[name].astype(float) / size for name in UNCERTAIN})
