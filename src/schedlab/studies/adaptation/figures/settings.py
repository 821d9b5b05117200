"""Typed values of the figures (`params` of conf/figure/adaptation/*.yaml), by drawing; checked without pandas."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from schedlab.config.schema import NoSettings, Settings, setting
from schedlab.config.settings import LONGEST, MOST, PolicyName, ScenarioName

Column = Literal["train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "test_loss", "test_accuracy"]
Score = Literal[
    "train_log_loss", "train_accuracy", "validation_log_loss", "validation_accuracy", "test_log_loss", "test_accuracy"
]
CurveName = Literal["objective", "reward", "accuracy", "probability_best", "regret"]


def _rising(values: tuple[float, ...]) -> tuple[float, ...]:
    if values and (len(values) != 2 or values[0] >= values[1]):
        raise ValueError("two limits, the lower one first")
    return values


Range = Annotated[tuple[float, ...], AfterValidator(_rising)]


class VersusSettings(Settings):
    """The figure `versus`."""

    baseline: PolicyName = setting("best-constant", doc="policy that the others are compared with")


class FinalSettings(Settings):
    """The figure `final`."""

    metrics: tuple[Score, ...] = setting(("test_accuracy",), doc="scores, a panel each", min_length=1)
    range: Range = setting((), doc="limits of the accuracy axes; empty: what is needed")


class RankingSettings(Settings):
    """The figure `ranking`."""

    columns: tuple[Column, ...] = setting(
        (), doc="columns of the simulation table, a panel each; empty: what is rewarded"
    )


class TrunkSettings(Settings):
    """The figure `trunk`."""

    columns: tuple[Column, ...] = setting((), doc="columns of the tables, a panel each; empty: what is rewarded")


class ReliabilitySettings(Settings):
    """The figure `reliability`."""

    columns: tuple[Column, ...] = setting(
        ("validation_loss", "validation_accuracy"), doc="columns of the simulation table", min_length=1
    )
    replicates: int = setting(10, doc="how far the lines go on", unit="replicates", ge=1, le=MOST)


class LearningSettings(Settings):
    """The figure `learning`."""

    metrics: tuple[CurveName, ...] = setting(("objective",), doc="curves, a row each", min_length=1)
    window: int = setting(75, doc="of the running mean", unit="episodes", ge=1, le=LONGEST)


class GroupSettings(Settings):
    """A panel of the figure `transfer`: runs on one scenario."""

    title: str = setting("", doc="heading; empty: the scenario")
    scenario: ScenarioName = setting(doc="scenario learned on")
    policies: tuple[PolicyName, ...] = setting(doc="what is drawn, among the figure's policies", min_length=1)
    jumpstart: tuple[PolicyName, ...] = setting(
        (), doc="from scratch and with transfer: an arrow from the first to the second"
    )


class TransferSettings(Settings):
    """The figure `transfer`."""

    metrics: tuple[CurveName, ...] = setting(("reward",), doc="curves, a panel each in every group", min_length=1)
    window: int = setting(50, doc="of the running mean", unit="episodes", ge=1, le=LONGEST)
    range: Range = setting((), doc="limits of the vertical axes; empty: what is needed")
    first: int = setting(0, doc="episodes shown; 0: all", unit="episodes", ge=0, le=LONGEST)
    groups: tuple[GroupSettings, ...] = setting(
        (), doc="panels; empty: all policies of the figure on its first scenario"
    )


class MovesSettings(Settings):
    """The figure `moves`."""

    widen: ScenarioName = setting("widen", doc="scenario of two moves that may widen")
    down: ScenarioName = setting(doc="scenario whose resources are taken away")
    stay: ScenarioName = setting(doc="scenario that starts like it and keeps them")


FIGURES: dict[str, tuple[str, type[Settings]]] = {  # kind -> the module that draws it, and its values
    "versus": ("outcomes", VersusSettings),
    "regret": ("outcomes", NoSettings),
    "final": ("outcomes", FinalSettings),
    "sequences": ("tables", NoSettings),
    "ranking": ("tables", RankingSettings),
    "reliability": ("tables", ReliabilitySettings),
    "learning": ("learning", LearningSettings),
    "transfer": ("learning", TransferSettings),
    "decisions": ("course", NoSettings),
    "trunk": ("course", TrunkSettings),
    "moves": ("course", MovesSettings),
}
