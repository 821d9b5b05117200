"""What the figures are drawn from: the rows of one workload, its platform, policies and their looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import FigureSpec, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.figures import helpers, theme
from schedlab.figures.theme import Style
from schedlab.studies.hetero.outcomes import METRICS

if TYPE_CHECKING:
    import pandas as pd

BY_NAME = {metric.name: metric for metric in METRICS}


def scenarios(tables: StudyTables, spec: FigureSpec) -> list[str]:
    """Return the scenarios that a figure shows, in its order; all where it names none."""
    return list(spec.scenarios or sorted(tables.scenarios))


def policies(tables: StudyTables, spec: FigureSpec, shown: Sequence[str]) -> list[str]:
    """Return the policies that a figure shows, in its order; where it names none, from best to worst."""
    rows = tables.summary[tables.summary["scenario"].isin(shown) & (tables.summary["split"] == "test")]
    ranked = helpers.policy_order(rows, next(metric for metric in METRICS if metric.headline))
    return [name for name in spec.policies if name in ranked] if spec.policies else ranked


def looks(tables: StudyTables, names: Sequence[str]) -> dict[str, Style]:
    """Return the styles of policies; rules alone get colours in their order in the figure."""
    styles = theme.styles_of(tables.scores)
    kinds = dict(zip(tables.scores["policy"], tables.scores["kind"], strict=True))
    if any(kinds[name] != "rule" for name in names):
        return styles
    numbered, dashes = enumerate(names), theme.DASHES
    return {name: Style(theme.colour(n), styles[name].marker, dashes[n % len(dashes)]) for n, name in numbered}


def unit_shown(tables: StudyTables, spec: FigureSpec, scenario: str, unit: str) -> str:
    """Return the workload that a figure shows: `unit`, or the first of the test split. Raises UserError."""
    rows = tables.scores[tables.scores["scenario"] == scenario]
    known = sorted(set(rows["unit"]))
    wanted = unit or min(rows.loc[rows["split"] == "test", "unit"])
    if wanted not in known:
        where, remedy = f"figure {spec.name}: params.unit", did_you_mean(wanted, known)
        raise UserError(f"there is no workload '{wanted}'", where=where, remedy=remedy)
    return wanted


def detail(tables: StudyTables, table: str, scenario: str, unit: str, policy: str) -> pd.DataFrame:
    """Return the rows of a detail table that one policy gave on one workload, its first seed's."""
    rows = tables.details[table]
    found = rows[(rows["scenario"] == scenario) & (rows["unit"] == unit) & (rows["policy"] == policy)]
    return found[found["policy_seed"] == found["policy_seed"].min()]


def means_within(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the mean of a step function in each interval between `edges` (n + 1,): (n,).

    times, values  (m,): each value holds from its time to the next; 0 before the first, the last one after it
    """
    lengths = np.diff(times, append=max(times[-1], edges[-1]))
    integral = np.concatenate([[0.0], np.cumsum(lengths * values)])
    at_edges = np.interp(edges, np.append(times, times[-1] + lengths[-1]), integral)
    return np.diff(at_edges) / np.diff(edges)


def split_means(summary: pd.DataFrame, metric: str, scenario: str) -> Mapping[str, float]:
    """Return policy -> value of a metric on the test workloads of a scenario."""
    rows = summary[(summary["metric"] == metric) & (summary["scenario"] == scenario) & (summary["split"] == "test")]
    return dict(zip(rows["policy"], rows["value"], strict=True))
