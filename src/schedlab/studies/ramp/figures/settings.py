"""The drawings of the study and their typed values (`params` of conf/figure/ramp/*.yaml)."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import NoSettings, Settings, setting
from schedlab.config.settings import LONGEST, Names


class GraphTableSettings(Settings):
    """The figure `graph_table`."""

    training_steps: int = setting(1, doc="training steps of the sequential completion time", ge=1, le=LONGEST)


class BetasSettings(Settings):
    """The figure `betas`."""

    labels: dict[str, str] = setting({}, doc="scenario -> label in the figure; default: its name")


class ValidationSettings(BetasSettings):
    """The figure `validation`."""

    policy: str = setting("afterstate", doc="learned policy, by recipe or name")
    baselines: Names = setting(("para_max", "para_min"), doc="rules whose validation means are drawn as lines")


class ScoresSettings(BetasSettings):
    """The figure `scores`."""

    policies: Names = setting(doc="rules, and recipes of learned policies", min_length=1)
    metrics: Names = setting(
        ("blocking_rate", "demand_throughput"), doc="measures, one row of panels each", min_length=1
    )


class SweepSettings(Settings):
    """The figure `sweep`."""

    x: Literal["interarrival", "arrival_rate", "workers"] = setting(
        "interarrival", doc="fact in which the scenarios differ"
    )
    policies: Names = setting(doc="rules, and recipes of learned policies", min_length=1)
    metrics: Names = setting(
        ("demand_throughput", "blocking_rate", "jct"), doc="measures, one panel each", min_length=1
    )


class OverheadsSettings(Settings):
    """The figure `overheads`."""

    policy: str = setting("para_max", doc="rule that chooses the number of shards")


class CausesSettings(BetasSettings):
    """The figure `causes`."""

    policies: Names = setting(doc="rules, and recipes of learned policies", min_length=1)


class JobsSettings(Settings):
    """The figures `characteristics` and `attributes`, of the first scenario."""

    policies: Names = setting(doc="rules, and recipes of learned policies", min_length=1)


class PairsSettings(BetasSettings):
    """The figure `pairs`."""

    published: dict[str, dict[str, float]] = setting({}, doc="scenario -> policy -> published blocking rate")


class PlacementsSettings(Settings):
    """The figure `placements`."""

    panels: dict[str, dict[str, str]] = setting(doc="panel -> placement -> scenario", min_length=1)
    policies: Names = setting(doc="rules, and recipes of learned policies", min_length=1)


class TuningSettings(Settings):
    """The figure `tuning`."""

    record: str = setting(doc="recorded curves of a search, relative to the checkout or the working directory")
    named: int = setting(3, doc="number of best configurations with a colour and a label", ge=1, le=20)
    most: float = setting(1.0, doc="upper limit of the share axis", gt=0, le=1)


FIGURES: dict[str, tuple[str, type[Settings]]] = {  # kind -> the module that draws it, and its values
    "graphs": ("graphs", NoSettings),
    "op_histograms": ("graphs", NoSettings),
    "graph_table": ("graphs", GraphTableSettings),
    "betas": ("graphs", BetasSettings),
    "validation": ("policies", ValidationSettings),
    "scores": ("policies", ScoresSettings),
    "pairs": ("policies", PairsSettings),
    "placements": ("policies", PlacementsSettings),
    "tuning": ("policies", TuningSettings),
    "sweep": ("sweeps", SweepSettings),
    "overheads": ("sweeps", OverheadsSettings),
    "causes": ("jobs", CausesSettings),
    "characteristics": ("jobs", JobsSettings),
    "attributes": ("jobs", JobsSettings),
}


def figure_files(settings: Settings) -> list[str]:
    """Return the files that a drawing reads in addition to the tables."""
    return [settings.record] if isinstance(settings, TuningSettings) else []
