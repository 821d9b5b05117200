"""Numbers that were measured once, by hand, and that no table of docs/results holds: each is listed beside the command
that measured it, or beside the word that it was not kept.

A row of docs/results/measurements_<area>.csv is one number (or range, or list) as its page writes it. A page whose
number changes without the list, or a list without its page, fails here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from page_sentences import REPOSITORY, text_of

LISTS = sorted((REPOSITORY / "docs/results").glob("measurements_*.csv"))
COLUMNS = ["page", "number", "unit", "what", "command"]


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def times_found(text: str, number: str, unit: str) -> int:
    """How often the number stands in the text with its unit; `14` is not found in `3.14`, `2,140` or `14.5`."""
    whole = re.escape(number) + r"(?!\d|[.,]\d)" + (rf" ?{re.escape(unit)}(?!\w)" if unit else "")
    return len(re.findall(rf"(?<![\d.])(?<!\d,){whole}", text))


def test_there_are_measurements():
    assert LISTS


@pytest.mark.parametrize(
    ("text", "number", "unit", "times"),
    [
        ("takes 14 s, then 14s", "14", "s", 2),
        ("3.14 s, 2,140 s, 114 s and 14.5 s", "14", "s", 0),
        ("14 seconds", "14", "s", 0),
        ("15.9, 7.1 and 8.3", "15.9, 7.1", "", 1),
        ("by 3 to 14 %.", "3 to 14", "%", 1),
        ("mean .7089 and 0.7089", ".7089", "", 1),
    ],
)
def test_only_the_whole_number_with_its_unit_is_found(text, number, unit, times):
    assert times_found(text, number, unit) == times


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_measurement_stands_in_its_page(path):
    rows = read(path)
    assert list(rows) == COLUMNS and len(rows)
    assert not rows.duplicated(["page", "number", "unit"]).any()
    wrong = []
    for row in rows.itertuples():
        assert re.search(r"\d", row.number) and row.what and row.command, row
        found = times_found(text_of(row.page), row.number, row.unit)
        if found == 0 or (found > 1 and not row.unit):
            wrong.append(
                f"{row.page}: {row.number} {row.unit} ({row.what}): found {found} times; without a unit it has to be "
                "once"
            )
    assert wrong == []
