"""What the figures of this study share: names of policies and scenarios, and the looks of lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from schedlab.config.contract import Metric
from schedlab.figures import theme
from schedlab.figures.units import Scaled, scaled
from schedlab.studies.ramp.scenario import METRICS

BLOCKING = "blocking_rate"
BY_NAME = {metric.name: metric for metric in METRICS}
NOT_RUN = "no such scenario is run at this scale"
NOT_SCORED = "scores none of these policies"  # why a scenario is left out
SHORT = {"jct": "completion time", "speedup": "speed-up"}  # of completed jobs; a panel's title has room for no more


def family(policy: str, scenario: str) -> str:
    """Return a policy's name without the scenario that it was learned on, so that panels share names."""
    return policy.removesuffix("-" + scenario.replace("_", "-"))


def learned_name(policy: str, scenario: str) -> str:
    """Return the name of a policy that was learned on a scenario."""
    return f"{policy}-{scenario.replace('_', '-')}"


def with_families(rows: pd.DataFrame, split: str = "test") -> pd.DataFrame:
    """Return the rows of a split, with policies called without the scenario that they were learned on."""
    rows = rows[rows["split"] == split]
    return rows.assign(policy=[family(*pair) for pair in zip(rows["policy"], rows["scenario"], strict=True)])


def line_look(number: int) -> dict[str, Any]:
    """Return the keywords of a panel's line by its number: colour and marker."""
    return {"color": theme.colour(number), "marker": "osD^vPX"[number % 7]}


def short_unit(metric: Metric, largest: float, labels: Mapping[str, str] = SHORT) -> Scaled:
    """Return the unit to show a measure in, labelled as a panel's title has room for."""
    return scaled(replace(metric, label=labels.get(metric.name, metric.label)), largest)
