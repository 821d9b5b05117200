"""The drawings of the study and the typed settings of each (`params` of conf/figure/cloud/*.yaml)."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting
from schedlab.config.settings import Names, PolicyName


class ShownSettings(Settings):
    """Policies and preferences that a figure shows."""

    learned: str = setting("reinforce", doc="learned policy, by recipe or name")
    baseline: str = setting("static_start", doc="rule that represents a fixed allocation")
    preferences: Names = setting(("balanced", "cost", "time", "resource"), doc="preferences shown", min_length=1)


class OutcomesSettings(ShownSettings):
    """The figure `outcomes` and the table `headline`."""

    published: dict[str, float] = setting({}, doc="claims of the paper in %: time, cost, sla")


class EpisodeSettings(ShownSettings):
    """The figures `objective_parts` and `service_levels`: one preference."""

    preference: str = setting("balanced", doc="preference shown")


class VariantsSettings(Settings):
    """The table `ablations` and the figures `weights` and `beginnings`: learned policies that differ in one setting."""

    variants: dict[str, PolicyName] = setting(
        doc="label in the figure -> policy; all others are compared with the first one", min_length=1
    )
    preferences: Names = setting(("balanced", "cost", "time", "resource"), doc="preferences shown", min_length=1)


class SearchesSettings(Settings):
    """The figure `trainings`: searches at equal budget."""

    searches: dict[str, PolicyName] = setting(doc="label in the figure -> policy", min_length=1)


FIGURES: dict[str, tuple[str, type[Settings]]] = {  # kind -> the function that draws it, and its settings
    "outcomes": ("outcomes", OutcomesSettings),
    "headline": ("outcomes", OutcomesSettings),
    "allocations": ("episodes", ShownSettings),
    "objective_parts": ("episodes", EpisodeSettings),
    "service_levels": ("episodes", EpisodeSettings),
    "pareto": ("pareto", ShownSettings),
    "ablations": ("comparisons", VariantsSettings),
    "weights": ("comparisons", VariantsSettings),
    "beginnings": ("comparisons", VariantsSettings),
    "trainings": ("comparisons", SearchesSettings),
}
