"""Typed values of the figures (`params` of conf/figure/batch/*.yaml), by drawing."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import NoSettings, Settings, setting
from schedlab.config.settings import LONGEST, PolicyName, ScenarioName

Score = Literal[
    "avg_bsld", "log_bsld", "median_bsld", "p90_bsld", "p99_bsld", "max_bsld", "avg_wait", "max_wait",
    "avg_turnaround", "util_to_last_start", "util_makespan", "user_bsld_max", "jain_users",
]  # fmt: skip


class DeviceSpeedSettings(Settings):
    """The figure `device_speed`."""

    published: dict[str, float] = setting({}, doc="device -> published rate", unit="steps/s")
    records: tuple[str, ...] = setting(
        (), doc="records of `schedlab batch speed --out`, relative to the checkout or the working directory"
    )


class DecisionLatencySettings(Settings):
    """The figure `decision_latency`."""

    records: tuple[str, ...] = setting(
        doc="records of `schedlab batch latency --out`, relative to the checkout or the working directory"
    )


class WindowsSettings(Settings):
    """The figure `windows`."""

    metric: Score = setting("avg_bsld", doc="score of windows")
    titles: dict[ScenarioName, str] = setting({}, doc="scenario -> heading of its panel; default: the scenario's name")
    learned: dict[ScenarioName, tuple[float, ...]] = setting(
        {}, doc="scenario -> published means of learned policies on its windows, one line each"
    )


class TraceSettings(Settings):
    """The figure `trace`."""

    rule: PolicyName = setting(
        "fcfs", doc="rule whose waiting times on the test windows replace those missing from a log"
    )
    window: int = setting(
        500, doc="window of the moving averages; at most a tenth of the trace", unit="jobs", ge=1, le=LONGEST
    )


class CurveShown(Settings):
    """A panel of the figure `learning`: a curve that learners record."""

    metric: str = setting(doc="name of the curve", min_length=1)
    split: Literal["train", "validation", "test"] = setting("validation", doc="split on which the curve was measured")
    title: str = setting(doc="heading", min_length=1)
    log: bool = setting(False, doc="logarithmic axis")
    line: float | None = setting(None, doc="value of a horizontal dashed line; null: none")
    line_label: str = setting("", doc="legend entry of the dashed line", max_length=60)
    smoothing: float | None = setting(
        None,
        doc="decay of an exponential mean, the ratio of the weights of successive points; null: running mean",
        ge=0,
        lt=1,
    )


class LearningSettings(Settings):
    """The figure `learning`."""

    curves: tuple[CurveShown, ...] = setting(doc="curves, one panel each", min_length=1)
    counted: str = setting("step", doc="unit of the learner's steps, the label of the horizontal axis")
    window: int = setting(1, doc="window of the running mean", unit="points", ge=1, le=LONGEST)
    shared: bool = setting(False, doc="share the vertical axis among all panels")


class PredictionSettings(Settings):
    """The figure `predictions`."""

    titles: dict[ScenarioName, str] = setting({}, doc="scenario -> heading of its panel; default: the scenario's name")


class SweepSettings(Settings):
    """The figure `sweep`."""

    x: str = setting("load", doc="numeric fact in which the scenarios differ")
    label: str = setting(doc="name of the swept quantity", min_length=1)
    metric: Score = setting("avg_bsld", doc="score of windows")


class PublishedPanel(Settings):
    """A panel of the figure `published`: one trace of a published table."""

    title: str = setting(doc="heading", min_length=1)
    scenario: ScenarioName = setting(doc="scenario with the published windows")
    published: dict[str, float] = setting({}, doc="rule -> published value")
    learned: float | None = setting(None, doc="published value of the learned policy; null: none")


class PublishedSettings(Settings):
    """The figure `published`."""

    panels: tuple[PublishedPanel, ...] = setting(doc="traces, one panel each", min_length=1)
    order: tuple[PolicyName, ...] = setting((), doc="order of the rules; others follow by name")
    metric: Score = setting("avg_bsld", doc="score of windows, of which the table shows means")
    decimals: int = setting(2, doc="number of decimals of the published values", ge=0, le=6)


FIGURES: dict[str, tuple[str, type[Settings]]] = {  # kind -> the module that draws it, and its values
    "device_speed": ("speed", DeviceSpeedSettings),
    "decision_latency": ("speed", DecisionLatencySettings),
    "windows": ("windows", WindowsSettings),
    "ratios": ("ratios", NoSettings),
    "trace": ("trace", TraceSettings),
    "predictions": ("trace", PredictionSettings),
    "learning": ("learning", LearningSettings),
    "published": ("across", PublishedSettings),
    "sweep": ("across", SweepSettings),
    "matrix": ("across", NoSettings),
}


def figure_files(settings: Settings) -> list[str]:
    """Return the files that a drawing reads beside the tables."""
    return list(settings.records) if isinstance(settings, (DeviceSpeedSettings, DecisionLatencySettings)) else []
