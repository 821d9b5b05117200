"""The drawings of the study and their typed values (`params` of conf/figure/cloud/*.yaml)."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting
from schedlab.config.settings import Names, PolicyName


class ShownSettings(Settings):
    """What every figure of the study may be told."""

    learned: str = setting("reinforce", doc="learned policy, without the scenario that ends its name")
    baseline: str = setting("static_start", doc="rule that stands for an allocation that nobody adapts")
    preferences: Names = setting(("balanced", "cost", "time", "resource"), doc="preferences shown", min_length=1)


class OutcomesSettings(ShownSettings):
    """The figure `outcomes` and the table `headline`."""

    published: dict[str, float] = setting({}, doc="what the paper claims, %: time, cost, sla")


class EpisodeSettings(ShownSettings):
    """The figures `objective_parts` and `service_levels`: one preference."""

    preference: str = setting("balanced", doc="preference shown")


class VariantsSettings(Settings):
    """The table `ablations` and the figures `weights` and `beginnings`: learned policies that differ in one thing."""

    variants: dict[str, PolicyName] = setting(
        doc="what stands in the figure -> the policy; the first is what others are compared with", min_length=1
    )
    preferences: Names = setting(("balanced", "cost", "time", "resource"), doc="preferences shown", min_length=1)


FIGURE_SETTINGS: dict[str, type[Settings]] = {
    "outcomes": OutcomesSettings,
    "headline": OutcomesSettings,
    "allocations": ShownSettings,
    "objective_parts": EpisodeSettings,
    "service_levels": EpisodeSettings,
    "pareto": ShownSettings,
    "ablations": VariantsSettings,
    "weights": VariantsSettings,
    "beginnings": VariantsSettings,
}
FIGURES = {
    "outcomes": "schedlab.studies.cloud.figures.outcomes:draw_outcomes",
    "headline": "schedlab.studies.cloud.figures.outcomes:draw_headline",
    "allocations": "schedlab.studies.cloud.figures.episodes:draw_allocations",
    "objective_parts": "schedlab.studies.cloud.figures.episodes:draw_objective_parts",
    "service_levels": "schedlab.studies.cloud.figures.episodes:draw_service_levels",
    "pareto": "schedlab.studies.cloud.figures.pareto:draw_pareto",
    "ablations": "schedlab.studies.cloud.figures.ablations:draw_ablations",
    "weights": "schedlab.studies.cloud.figures.ablations:draw_weights",
    "beginnings": "schedlab.studies.cloud.figures.ablations:draw_beginnings",
}
