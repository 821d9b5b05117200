"""Rankings of the sequences of a simulation table, by experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError, did_you_mean
from schedlab.studies.adaptation.reliability import noise_from_tail, reliability
from schedlab.studies.adaptation.table import METRICS, TableView, view

if TYPE_CHECKING:
    import pandas as pd


def ranking(table: pd.DataFrame, metric: str = "test_accuracy", where: str = "table") -> dict[str, dict[str, Any]]:
    """Return experiment -> its ranking by a metric's mean over units (jobs and replicates).

    Keys: best, best_sequence, mean, worst, worst_sequence, none_sequence, none and none_rank (no adaptation: the highest digit
    throughout), sequences, units, noise (standard deviation of one result), reliability (variance due to the sequence) and metric.
    An experiment is what the column `experiment` names, else a scenario.
    Equal results share the better rank. Raises UserError for tables that are not complete.
    """
    if metric not in METRICS:
        raise UserError(f"unknown metric '{metric}'", where="--metric", remedy=did_you_mean(metric, METRICS))
    by = next((name for name in ("experiment", "scenario") if name in table), None)
    groups = [("table", table)] if by is None else table.groupby(by, sort=False)
    return {str(name): _ranking(rows, metric, f"{where}, {name}") for name, rows in groups}


def _ranking(rows: pd.DataFrame, metric: str, where: str) -> dict[str, Any]:
    seen = view(rows, metric, where, timed=False)
    reward = seen.reward.mean(0)
    value = seen.metrics[metric].mean(0)
    none = seen.tree.index(seen.tree.nothing)
    best, worst = int(reward.argmax()), int(reward.argmin())
    noise, share = _noise(rows, seen, metric)
    return {
        "metric": metric,
        "best": float(value[best]),
        "best_sequence": seen.tree.sequences[best],
        "mean": float(value.mean()),
        "worst": float(value[worst]),
        "worst_sequence": seen.tree.sequences[worst],
        "none_sequence": seen.tree.nothing,
        "none": float(value[none]),
        "none_rank": int(seen.ranks(reward)[none]),
        "sequences": len(value),
        "units": len(seen.units),
        "noise": noise,
        "reliability": share,
    }


def _noise(rows: pd.DataFrame, seen: TableView, metric: str) -> tuple[float | None, float | None]:
    """Noise of one result and share of the variance due to the sequence; None where a single replicate leaves them open."""
    jobs = sorted({job for job, _ in seen.units})
    parts = []
    for job in jobs:
        own = seen.reward[[row for row, unit in enumerate(seen.units) if unit[0] == job]]
        if len(own) > 1:
            parts.append(reliability(own))
    if parts:
        residual = sum(part.sd_residual**2 for part in parts) / len(parts)
        between = sum(part.sd_sequence**2 for part in parts) / len(parts)
        return residual**0.5, between / (between + residual) if between + residual else 0.0
    if metric == "test_accuracy" and "test_accuracy_last3" in rows:
        return noise_from_tail(rows["test_accuracy"].to_numpy(), rows["test_accuracy_last3"].to_numpy()), None
    return None, None
