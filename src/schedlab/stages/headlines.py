"""What a study's run comes to in a few lines: a learned policy chosen beforehand, the best rule beside it, and how the
two differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from schedlab.config.contract import Metric
from schedlab.evaluation.claims import HeadlineSettings, ResultSettings
from schedlab.stages.summarise import BEST_RULE, NAMED

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["better", "worse", "no clear difference", "too little to tell"]
FEWEST_SEEDS, FEWEST_UNITS = 3, 2  # of a comparison that says anything


@dataclass(frozen=True)
class Measured:
    """A value with its uncertainty: bounds of an interval, or without one the range over `over` (seeds or blocks)."""

    value: float
    low: float
    high: float
    interval: bool
    over: str
    seeds: int
    units: int


@dataclass(frozen=True)
class Against:
    """A policy against another one, pair by pair: the other's name and value, and the difference."""

    policy: str
    role: str
    value: float
    difference: Measured
    win_rate: float
    verdict: Verdict


@dataclass(frozen=True)
class Headline:
    """A learned policy on the test units of a scenario; `meant` is false where the run lacks what was chosen
    beforehand.
    """

    scenario: str
    policy: str
    trained_on: str
    measured: Measured
    against: Against | None
    meant: bool


def headline_metric(metrics: Sequence[Metric]) -> Metric:
    """Return the metric that a study leads with: the one that is marked, else its first."""
    return next((metric for metric in metrics if metric.headline), metrics[0])


def headlines(
    metric: Metric, chosen: HeadlineSettings | None, summary: pd.DataFrame, comparisons: pd.DataFrame
) -> list[Headline]:
    """Return the chosen results that a run has, or where it has none of them its first learned policy by name, if any.

    summary, comparisons: tables of the stage summarise.
    """
    tested = summary[(summary["metric"] == metric.name) & (summary["split"] == "test")]
    learned = tested[tested["kind"] == "learned"].sort_values(["scenario", "policy", "mode"])
    found = [(row, True) for result in (chosen.results if chosen else ()) for row in _chosen(learned, result)]
    if not found:
        found = [(row, chosen is None) for _, row in learned.head(1).iterrows()]
    return [_headline(metric, row, tested, comparisons, meant) for row, meant in found]


def measured(row: pd.Series, column: str = "value") -> Measured:
    """Return the value and uncertainty that a row of the summary, or of the comparisons (column `difference`),
    holds.
    """
    interval = not math.isnan(row["ci_low"])
    low, high = (row["ci_low"], row["ci_high"]) if interval else (row["range_low"], row["range_high"])
    return Measured(row[column], low, high, interval, row["range_over"], int(row["seeds"]), int(row["units"]))


def verdict(difference: Measured, better: Literal["lower", "higher"]) -> Verdict:
    """Return what a difference to another policy says: whether all its interval or range lies on one side of zero."""
    if difference.seeds < FEWEST_SEEDS or difference.units < FEWEST_UNITS:
        return "too little to tell"
    if difference.low <= 0.0 <= difference.high:
        return "no clear difference"
    return "better" if (difference.high < 0.0) == (better == "lower") else "worse"


def against(metric: Metric, row: pd.Series, tested: pd.DataFrame, comparisons: pd.DataFrame) -> Against | None:
    """Return a policy against the best rule of validation; where nothing was validated, against the study's baseline;
    else None.
    """
    same = ["scenario", "policy", "mode", "split", "metric"]
    own = comparisons[(comparisons[same] == row[same]).all(axis=1)]
    for role in (BEST_RULE, NAMED):
        for _, pair in own[own["role"] == role].iterrows():
            place = (
                (tested["scenario"] == row["scenario"])
                & (tested["mode"] == row["mode"])
                & (tested["policy"] == pair["baseline"])
            )
            difference = measured(pair, "difference")
            value = float(tested[place]["value"].iloc[0])
            return Against(
                pair["baseline"], role, value, difference, pair["win_rate"], verdict(difference, metric.better)
            )
    return None


def _chosen(learned: pd.DataFrame, result: ResultSettings) -> Iterator[pd.Series]:
    """Yield the row of the first of the chosen policies that is there."""
    for policy in result.policies:
        rows = learned[(learned["scenario"] == result.scenario) & (learned["policy"] == policy)]
        if len(rows):
            yield rows.iloc[0]
            return


def _headline(metric: Metric, row: pd.Series, tested: pd.DataFrame, comparisons: pd.DataFrame, meant: bool) -> Headline:
    other = against(metric, row, tested, comparisons)
    return Headline(row["scenario"], row["policy"], row["trained_on"], measured(row), other, meant)
