"""What the figures of this study share: names of policies, and the looks of lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from schedlab.config.contract import Metric, StudyTables
from schedlab.figures import theme
from schedlab.figures.selection import by_recipe
from schedlab.figures.units import Scaled, scaled
from schedlab.studies.ramp.scenario import METRICS

BLOCKING = "blocking_rate"
BY_NAME = {metric.name: metric for metric in METRICS}
NOT_RUN = "no such scenario is run at this scale"
NOT_SCORED = "scores none of these policies"  # why a scenario is left out
SHORT = {"jct": "completion time", "speedup": "speed-up"}  # of completed jobs; a panel's title has room for no more


def tested(rows: pd.DataFrame, tables: StudyTables) -> pd.DataFrame:
    """Return the rows of test episodes, with policies of the row's scenario called by their recipe."""
    return by_recipe(rows[rows["split"] == "test"], tables.scores)


def line_look(number: int) -> dict[str, Any]:
    """Return the keywords of a panel's line by its number: colour and marker."""
    return {"color": theme.colour(number), "marker": "osD^vPX"[number % 7]}


def short_unit(metric: Metric, largest: float, labels: Mapping[str, str] = SHORT) -> Scaled:
    """Return the unit to show a measure in, labelled as a panel's title has room for."""
    return scaled(replace(metric, label=labels.get(metric.name, metric.label)), largest)
