"""Orders of policies by their scores; informed policies, oracles and bounds are never the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from schedlab.config.contract import Metric

if TYPE_CHECKING:
    import pandas as pd

Better = Literal["lower", "higher"]
FITTED = frozenset({"learned", "search", "published"})  # kinds whose policies are drawn in colours
APART = frozenset({"informed", "oracle", "bound"})  # kinds that are compared, but are never the best policy


def kinds_of(table: pd.DataFrame) -> dict[str, str]:
    """Return policy -> kind (settings.Kind) of a table of scores or a summary."""
    return dict(zip(table["policy"], table["kind"], strict=True))


def trained(table: pd.DataFrame) -> frozenset[str]:
    """Return the policies of a table that were trained, whatever their kind."""
    return frozenset(table.loc[table["trained_on"] != "", "policy"])


def policy_order(summary: pd.DataFrame, metric: Metric) -> list[str]:
    """Return the policies of a summary from best to worst in a metric, by their median rank over the scenarios; ties by
    name. Informed policies, oracles and bounds come after all others.
    """
    rows = summary[summary["metric"] == metric.name]
    ranks = rows.groupby(["scenario", "split", "mode"])["value"].rank(ascending=metric.better == "lower")
    medians = ranks.groupby(rows["policy"]).median()
    kinds = kinds_of(rows)
    return sorted(medians.index, key=lambda name: (kinds[name] in APART, medians[name], name))


def ranked(values: Mapping[str, float], better: Better, kinds: Mapping[str, str] | None = None) -> list[str]:
    """Return names from the best value to the worst one, ties by name.

    kinds: policy -> kind; if given, informed policies, oracles and bounds are left out, unless there are no others
    """
    names = [name for name in values if (kinds or {}).get(name) not in APART] or list(values)
    sign = 1 if better == "lower" else -1
    return sorted(names, key=lambda name: (sign * values[name], name))
