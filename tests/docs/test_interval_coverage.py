"""The recorded coverage of intervals, and that the program still measures it."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from page_parts import RESULTS

import interval_coverage  # isort: skip

REPEATED = [
    interval_coverage.Case("value", "seeds dominate"),
    interval_coverage.Case("difference", "equal", rival_seeds=5),
    interval_coverage.Case("ratio", "equal", rivals="two that differ slightly", rival_seeds=5),
]


def recorded() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "interval_coverage.csv", keep_default_na=False)


def test_the_table_has_every_case():
    columns = [field.name for field in fields(interval_coverage.Case)]
    assert recorded()[columns].to_dict("records") == [vars(case) for case in interval_coverage.cases()]


def test_intervals_of_normal_effects_cover():
    rows = recorded()
    known = rows[(rows["law"] == "normal") & (rows["model"] != "interaction alone")]
    high = np.where(known["rivals"] == "five equal", 0.98, 0.97)  # a choice among equals widens what need not be wider
    outside = known[~known["coverage"].between(0.92, high)]
    assert outside.empty, outside


@pytest.mark.parametrize("case", REPEATED, ids=lambda case: case.quantity)
def test_the_program_measures_what_is_recorded(case):
    rows, repetitions = recorded(), 200
    for name, value in vars(case).items():
        rows = rows[rows[name] == value]
    found, expected = interval_coverage.coverage(case, repetitions), rows["coverage"].item()
    deviation = np.sqrt(expected * (1 - expected) / repetitions)
    assert found["coverage"] == pytest.approx(expected, abs=4 * deviation)
    assert found["width"] == pytest.approx(rows["width"].item(), rel=0.25)
