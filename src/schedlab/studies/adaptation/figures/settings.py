"""Typed values of the figures (`params` of conf/figure/adaptation/*.yaml), by drawing; checked without pandas."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import NoSettings, Settings, setting
from schedlab.config.settings import LONGEST, MOST, PolicyName, ScenarioName

Column = Literal["train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "test_loss", "test_accuracy"]
Score = Literal[
    "train_log_loss", "train_accuracy", "validation_log_loss", "validation_accuracy", "test_log_loss", "test_accuracy"
]
CurveName = Literal["objective", "reward", "accuracy", "probability_best", "regret"]


class VersusSettings(Settings):
    """The figure `versus`."""

    baseline: PolicyName = setting("best-constant", doc="policy that the others are compared with")


class FinalSettings(Settings):
    """The figure `final`."""

    metrics: tuple[Score, ...] = setting(("test_accuracy",), doc="scores, one panel each", min_length=1)


class ColumnsSettings(Settings):
    """The figures `ranking` and `trunk`."""

    columns: tuple[Column, ...] = setting((), doc="columns of the tables, one panel each; empty: the rewarded metric")


class ReliabilitySettings(Settings):
    """The figure `reliability`."""

    columns: tuple[Column, ...] = setting(
        ("validation_loss", "validation_accuracy"), doc="columns of the simulation table", min_length=1
    )
    replicates: int = setting(10, doc="largest number of replicates on the axis", unit="replicates", ge=1, le=MOST)


class GroupSettings(Settings):
    """A panel of the figure `learning`: runs on one scenario."""

    title: str = setting("", doc="heading; empty: the scenario's name")
    scenario: ScenarioName = setting(doc="training scenario")
    policies: tuple[PolicyName, ...] = setting(doc="policies drawn, out of the figure's policies", min_length=1)
    jumpstart: tuple[PolicyName, ...] = setting(
        (), doc="pair of policies, without and with transfer; an arrow marks the difference"
    )


class LearningSettings(Settings):
    """The figure `learning`."""

    metrics: tuple[CurveName, ...] = setting(("objective",), doc="curves, one panel each in every group", min_length=1)
    window: int = setting(75, doc="window of the running mean", unit="episodes", ge=1, le=LONGEST)
    first: int = setting(0, doc="episodes shown of runs in groups; 0: all", unit="episodes", ge=0, le=LONGEST)
    groups: tuple[GroupSettings, ...] = setting((), doc="panels; empty: one for each run, with each of its seeds")


class MovesSettings(Settings):
    """The figure `moves`."""

    widen: ScenarioName = setting("widen", doc="scenario with two decisions whose actions include widening")
    down: ScenarioName = setting(doc="scenario in which resources are taken away")
    stay: ScenarioName = setting(doc="scenario with the same start that keeps its resources")


FIGURES: dict[str, tuple[str, type[Settings]]] = {  # kind -> the module that draws it, and its values
    "versus": ("outcomes", VersusSettings),
    "regret": ("outcomes", NoSettings),
    "final": ("outcomes", FinalSettings),
    "sequences": ("tables", NoSettings),
    "ranking": ("tables", ColumnsSettings),
    "reliability": ("tables", ReliabilitySettings),
    "learning": ("learning", LearningSettings),
    "decisions": ("course", NoSettings),
    "trunk": ("course", ColumnsSettings),
    "moves": ("course", MovesSettings),
}
