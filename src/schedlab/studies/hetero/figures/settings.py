"""Typed values of the figures (`params` of conf/figure/hetero/*.yaml), by drawing."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import NoSettings, Settings, setting
from schedlab.config.settings import PolicyName, ScenarioName

Score = Literal[
    "mean_bounded_slowdown", "mean_wait", "mean_turnaround", "makespan", "utilisation", "unsuccessful", "energy",
    "energy_delay_product", "oversubscription", "infeasible", "lost",
]  # fmt: skip


class MetricsSettings(Settings):
    """The figure `metrics`."""

    metrics: tuple[Score, ...] = setting((), doc="scores, one panel each; empty: all that are not 0 everywhere")
    against: PolicyName | None = setting(
        None,
        doc="scheduler to compare with: show differences on the same workloads in percent of its mean; "
        "null: show the scores",
    )
    beside: ScenarioName | None = setting(
        None,
        doc="scenario with the same jobs: show by how much the score of each scheduler differs from its score in that "
        "scenario, on the same workloads, in percent of its mean there; null: show the scores",
    )


class WorkloadShownSettings(Settings):
    """The figures `gantt`, `course`, `overuse` and `bubbles`."""

    unit: str = setting("", doc="workload shown; empty: the first of the test split")


class LearningSettings(Settings):
    """The figure `learning`."""

    window: int = setting(0, doc="window of the running mean; 0: a twentieth of all points", unit="points", ge=0)


class PreferencesSettings(Settings):
    """The figure `preferences`."""

    by: tuple[Literal["pair", "job", "core"], ...] = setting(
        ("job", "core"), doc="grouping of actions, one row each: none, by job policy, by core policy", min_length=1
    )


FIGURES: dict[str, tuple[str, type[Settings]]] = {  # kind -> the module that draws it, and its settings
    "metrics": ("metrics", MetricsSettings),
    "gantt": ("workload", WorkloadShownSettings),
    "course": ("workload", WorkloadShownSettings),
    "overuse": ("workload", WorkloadShownSettings),
    "bubbles": ("workload", WorkloadShownSettings),
    "pairs": ("pairs", NoSettings),
    "learning": ("learning", LearningSettings),
    "preferences": ("learning", PreferencesSettings),
}
