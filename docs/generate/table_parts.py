"""What tables of the documentation are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pandas as pd

REPOSITORY = Path(__file__).resolve().parents[2]


def page(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """Return a table in Markdown; `align`: a letter a column, r for right, all others left."""
    align = align or "l" * len(header)
    rule = ["---:" if side == "r" else "---" for side in align]
    lines = ["|".join(["", *(f" {cell} " if cell else " " for cell in row), ""]) for row in [header, *rows]]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])


def share(value: float, digits: int = 3) -> str:
    """Return a number below 1 as the pages write it: .179, and .181 for a recorded .1805."""
    return str(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)).removeprefix("0")


def between(row: pd.Series, name: str = "ratio") -> str:
    """Return a ratio with its interval: 0.84 [0.76, 0.94]."""
    return f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"


def percent(value: float) -> str:
    """Return a share as '63 %'."""
    return f"{100 * value:.0f} %"


def seeds_of(text: str) -> list[float]:
    """Return the numbers of a column `by_seed`."""
    return [float(number) for number in str(text).split()]


def one(rows: pd.DataFrame, **values: object) -> pd.Series:
    """Return the one row that has some values."""
    for name, value in values.items():
        rows = rows[rows[name] == value]
    (row,) = (row for _, row in rows.iterrows())
    return row
