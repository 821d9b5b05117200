"""The data of the figures: scores and episodes of a scenario by policy and preference."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.contract import FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.selection import policy_of, select

PREFERENCES = ("balanced", "cost", "time", "resource")
NOT_LEARNED = "no policy is learned at this scale"


def preference_colour(preference: str, place: int) -> str:
    """Return the colour of a preference: a fixed one if it has a name, else by its position among those shown."""
    return theme.colour(PREFERENCES.index(preference) if preference in PREFERENCES else len(PREFERENCES) + 1 + place)


def preference_scores(tables: StudyTables, scenario: str, policy: str, metric: str) -> pd.DataFrame:
    """Return a metric on test units, (seeds, preferences). policy: recipe or name."""
    name = policy_of(tables.scores, policy, scenario)
    rows = select(tables.scores, scenario=scenario, policy=name or "", split="test", metric=metric)
    return rows.pivot_table(index="policy_seed", columns="preference", values="value", aggfunc="mean")


def scored_in(tables: StudyTables, spec: FigureSpec, policy: str) -> str | None:
    """Return the first scenario of the figure in which a policy was scored; None if there is none."""
    return next((name for name in spec.scenarios if len(preference_scores(tables, name, policy, "time"))), None)


def left_out(tables: StudyTables, spec: FigureSpec, shown: Container[str], *needed: str) -> dict[str, str]:
    """Return the scenarios that a figure leaves out, each with the needed policies that have no scores there."""
    found = {}
    for name in spec.scenarios:
        if name not in shown:
            lacking = [policy for policy in needed if not policy_of(tables.scores, policy, name)]
            found[name] = f"no {' nor '.join(lacking) or 'such episode'}"
    return found


def episode(tables: StudyTables, table: str, scenario: str, policy: str, preference: str) -> pd.DataFrame:
    """Return the rows of a detail table for one test episode, of the first seed, by step. policy: recipe or name."""
    rows, scores = tables.details.get(table), tables.scores
    if rows is None or not len(rows):
        return pd.DataFrame()
    units = select(scores, preference=preference, number=0, scenario=scenario)["unit"]
    name = policy_of(scores, policy, scenario) or ""
    rows = select(rows, scenario=scenario, split="test", unit=units.unique(), policy=name)
    return rows[rows["policy_seed"] == rows["policy_seed"].min()].sort_values("step")


def oracle_of(tables: StudyTables, scenario: str) -> dict[str, Any]:
    """Return the results of the oracle for a scenario: references, objectives by preference, fronts."""
    return json.loads(tables.inputs[scenario]["oracle"].read_text(encoding="utf-8"))


def mean_and_range(values: Sequence[float] | np.ndarray, least: float = 0.0) -> dict[str, float | None]:
    """Return the mean and the smallest and largest value; the mean alone if these two differ by at most `least`."""
    low, high = float(np.min(values)), float(np.max(values))
    wide = high - low > least
    return {"mean": float(np.mean(values)), "low": low if wide else None, "high": high if wide else None}
