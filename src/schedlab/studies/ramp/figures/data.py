"""Functions shared by the figures of this study: rows of test episodes, styles of lines, panels of measures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from schedlab.config.contract import Metric, StudyTables
from schedlab.figures import theme
from schedlab.figures.selection import by_recipe, select
from schedlab.figures.theme import Style
from schedlab.figures.units import divided, scaled
from schedlab.studies.ramp.scenario import METRICS

BLOCKING = "blocking_rate"
BY_NAME = {metric.name: metric for metric in METRICS}
NOT_RUN = "no such scenario is run at this scale"
NOT_SCORED = "scores none of these policies"  # why a scenario is left out
SHORT = {"jct": "completion time", "speedup": "speed-up"}  # of completed jobs; a panel's title has room for no more


def scored(tables: StudyTables, scenarios: Any, metric: Any = BLOCKING, **wanted: Any) -> pd.DataFrame:
    """Return the rows of the summary of one or several scenarios and metrics (see tested), selected as by `select`."""
    return select(tested(select(tables.summary, scenario=scenarios, metric=metric), tables), **wanted)


def tested(rows: pd.DataFrame, tables: StudyTables) -> pd.DataFrame:
    """Return the rows of test episodes; policies learned on the row's scenario are named by their recipe."""
    return by_recipe(select(rows, split="test"), tables.scores)


def looks(names: Iterable[str]) -> dict[str, Style]:
    """Return a style for each of a few lines by its place among them."""
    return {name: Style(theme.colour(number), "osD^vPX*"[number % 8]) for number, name in enumerate(names)}


def panel(summary: pd.DataFrame, metric: Metric) -> tuple[str, pd.DataFrame]:
    """Return the title of a measure's panel, and its rows of a summary in the unit of the title."""
    rows = select(summary, metric=metric.name)
    unit = scaled(replace(metric, label=SHORT.get(metric.name, metric.label)), float(rows["value"].max()))
    return unit.label, divided(rows, unit.size)
