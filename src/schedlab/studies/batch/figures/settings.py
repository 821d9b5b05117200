"""Typed values of the figures (`params` of conf/figure/batch/*.yaml), by drawing."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import NoSettings, Settings, setting
from schedlab.config.settings import LONGEST, PolicyName, ScenarioName

Score = Literal[
    "avg_bsld",
    "log_bsld",
    "median_bsld",
    "p90_bsld",
    "p99_bsld",
    "max_bsld",
    "avg_wait",
    "max_wait",
    "avg_turnaround",
    "util_to_last_start",
    "util_makespan",
    "user_bsld_max",
    "jain_users",
]


class DeviceSpeedSettings(Settings):
    """The figure `device_speed`."""

    published: dict[str, float] = setting({}, doc="device -> its published rate", unit="steps/s")
    records: tuple[str, ...] = setting(
        (), doc="what `schedlab batch speed --out` recorded, from the checkout or the working directory on"
    )


class DecisionLatencySettings(Settings):
    """The figure `decision_latency`."""

    records: tuple[str, ...] = setting(
        doc="what `schedlab batch latency --out` recorded, from the checkout or the working directory on"
    )


class WindowsSettings(Settings):
    """The figure `windows`."""

    metric: Score = setting("avg_bsld", doc="score of a window")
    titles: dict[ScenarioName, str] = setting(
        {}, doc="scenario -> heading of its panel; where none is given, the scenario's name"
    )
    learned: dict[ScenarioName, tuple[float, ...]] = setting(
        {}, doc="scenario -> published means of learned policies on its windows, in the unit of the score; a line each"
    )


class TraceSettings(Settings):
    """The figure `trace`."""

    rule: PolicyName = setting(
        "fcfs", doc="rule whose waits on the test windows stand for those that a log does not hold"
    )
    window: int = setting(
        500, doc="of the moving averages; at most a tenth of the trace", unit="jobs", ge=1, le=LONGEST
    )


class CurveShown(Settings):
    """A panel of the figure `learning`: a curve that learners record."""

    metric: str = setting(doc="name of the curve", min_length=1)
    split: Literal["train", "validation", "test"] = setting("validation", doc="part that it was measured on")
    title: str = setting(doc="heading", min_length=1)
    log: bool = setting(False, doc="a logarithmic axis")
    line: float | None = setting(None, doc="value of a dashed line across; null: none")
    line_label: str = setting("", doc="what the dashed line is, for the legend", max_length=60)
    smoothing: float | None = setting(
        None,
        doc="of an exponential mean: the weight of a point over that of the next; null: the running mean",
        ge=0,
        lt=1,
    )


class LearningSettings(Settings):
    """The figure `learning`."""

    curves: tuple[CurveShown, ...] = setting(doc="what is shown, a panel each", min_length=1)
    counted: str = setting("step", doc="what a learner's steps are")
    window: int = setting(1, doc="of the running mean", unit="points", ge=1, le=LONGEST)
    shared: bool = setting(False, doc="one vertical axis for all panels")


class SweepSettings(Settings):
    """The figure `sweep`."""

    x: str = setting("load", doc="fact of the scenarios, a number, that they differ in")
    label: str = setting(doc="what is swept", min_length=1)
    metric: Score = setting("avg_bsld", doc="score of a window")


class PublishedPanel(Settings):
    """A panel of the figure `published`: one trace of a published table."""

    title: str = setting(doc="heading", min_length=1)
    scenario: ScenarioName = setting(doc="scenario of the published windows")
    published: dict[str, float] = setting({}, doc="rule -> its published value")
    learned: float | None = setting(None, doc="that of the published learned policy; null: none")


class PublishedSettings(Settings):
    """The figure `published`."""

    panels: tuple[PublishedPanel, ...] = setting(doc="traces", min_length=1)
    order: tuple[PolicyName, ...] = setting((), doc="rules from top to bottom; those not named follow by name")
    metric: Score = setting("avg_bsld", doc="score of a window; the table shows the means")
    decimals: int = setting(2, doc="decimals of the published values", ge=0, le=6)


FIGURES: dict[str, tuple[str, type[Settings]]] = {  # kind -> the module that draws it, and its values
    "device_speed": ("speed", DeviceSpeedSettings),
    "decision_latency": ("speed", DecisionLatencySettings),
    "windows": ("windows", WindowsSettings),
    "ratios": ("ratios", NoSettings),
    "trace": ("trace", TraceSettings),
    "learning": ("learning", LearningSettings),
    "published": ("published", PublishedSettings),
    "sweep": ("across", SweepSettings),
    "matrix": ("across", NoSettings),
}


def figure_files(settings: Settings) -> list[str]:
    """Return the files that a drawing reads beside the tables."""
    return list(settings.records) if isinstance(settings, (DeviceSpeedSettings, DecisionLatencySettings)) else []
