"""Tables of docs/errata.md that come from runs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table_parts import page, share

NAMES = {"none": "none: default mode", "all": "all: mode reference"}


def ramp_defects(results: Path) -> str:
    """Blocking rates with each defect of the published simulator alone, with none and with all."""
    rates = pd.read_csv(results / "ramp_rules.csv").drop_duplicates()
    rates = rates[rates["part"].str.startswith("defects, ")].set_index(["part", "setting", "rule"])["blocking_rate"]
    columns = [(rule, unit) for unit in ("s", "ms") for rule in ("para_max", "para_min")]
    rows = [
        [
            NAMES.get(setting, f"`{setting}`"),
            *(share(rates[f"defects, {unit}", setting, rule]) for rule, unit in columns),
        ]
        for setting in rates.index.unique("setting")
    ]
    return page(["switch", *(f"{rule}, {unit}" for rule, unit in columns)], rows, "lrrrr")


TABLES = (ramp_defects,)
