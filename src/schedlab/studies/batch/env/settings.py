"""What a policy that decides job by job sees, may do, and is rewarded with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from schedlab.config.schema import Settings, setting

ROWS = 128  # jobs that a policy sees, as published
MOST_QUANTILES = 64
NOOP_SECONDS = {"rlscheduler": 360.0, "dissertation": 60.0}  # what the published ones wait
VISIBLE = {
    "mixed": ("fcfs", "sjf", "smallest", "f1"),
    "rlscheduler": ("sjf", "smallest"),
    "dissertation": ("f1", "f2", "sjf", "smallest", "random"),
}  # of a queue of more jobs: the best of each of these rules in turn

# In the order of their numbers in compiled code (rewards.py).
Reward = Literal["episodic", "direct", "sigmoid", "difference", "improvement"]
Measure = Literal["bsld", "log_bsld", "slowdown", "wait", "turnaround", "utilisation", "bsld_and_utilisation"]
Users = Literal["none", "mean", "max", "min"]
Several = Annotated[tuple[str, ...], Field(min_length=1)]


class EnvironmentSettings(Settings):
    """What a policy that decides job by job sees, may do, and is rewarded with."""

    layout: Literal["features", "rlscheduler", "dissertation"] = setting(
        "features",
        doc="numbers of a job and of the machine: ours, RLScheduler's, or those of the dissertation that builds on it",
    )
    scales: Literal["training", "whole"] = setting(
        "training",
        doc="jobs whose largest values the published layouts divide by; whole: all of the trace as read (as published)",
    )
    oracle_runtime: bool = setting(
        False, doc="show real run times, which a scheduler does not know (not in the layout rlscheduler)"
    )
    plan: bool = setting(
        False,
        doc="show what planning the present queue says of each job, as the planner and the linear priority see it "
        "(layout features)",
    )
    quantiles: int = setting(
        5, doc="points in time at which the layout features tells the free nodes to come", ge=1, le=MOST_QUANTILES
    )
    visible: Literal["layout", "mixed", "rlscheduler", "dissertation"] = setting(
        "layout",
        doc="which jobs of a queue of more than 128 are seen; layout: those of the layout's author, mixed for the "
        "layout features",
    )
    noop: bool | None = setting(
        None, doc="offer to wait in the row behind the last job; null: in the layout dissertation"
    )
    noop_seconds: float | None = setting(
        None, doc="how long that is; null: 360 in the layout rlscheduler, else 60", unit="s", gt=0
    )
    noop_ends: bool = setting(
        False,
        doc="published defect: to wait where nothing runs or is to come ends the window, even with jobs still waiting",
    )
    empty_row: Literal["layout", "replace", "noop", "error"] = setting(
        "layout",
        doc="a chosen row that holds no job is replaced by the first that may be chosen (and counted), waits, or is "
        "an error; layout: waits in the layout dissertation where waiting is offered, else is replaced",
    )
    reward: Reward = setting("episodic", doc="reward, see studies/batch/env/rewards.py")
    measure: Measure = setting("bsld", doc="what is rewarded")
    users: Users = setting("none", doc="take the measure of each user, and the mean, max or min of the users")
    sigmoid_scale: float = setting(100.0, doc="k of the reward sigmoid", gt=0)
    baseline: str | Several = setting(
        "sjf", doc="rule to improve on, for the reward improvement; of several the one that is best on the window"
    )
    compare: bool = setting(
        False,
        doc="tell at the end of an episode what `baseline` comes to on its window (`score_<rule>`, `improvement` of "
        "`info`), whatever is rewarded; it takes simulating each rule",
        exclude_if=lambda compare: (
            not compare
        ),  # so that the scenarios and policies that there are keep the hash of their configuration
    )
    track_nodes: bool = setting(False, doc="give every job concrete nodes (always in the layout dissertation)")

    @property
    def visible_rules(self) -> tuple[str, ...]:
        """Return the rules that a long queue is cut by."""
        return VISIBLE[
            ("mixed" if self.layout == "features" else self.layout) if self.visible == "layout" else self.visible
        ]

    @property
    def baselines(self) -> tuple[str, ...]:
        """Return the rules to improve on, of which the best on a window counts."""
        return (self.baseline,) if isinstance(self.baseline, str) else self.baseline

    @property
    def waiting_seconds(self) -> float:
        """Return how long a no-op waits; 0: it is not offered."""
        offered = self.layout == "dissertation" if self.noop is None else self.noop
        return (self.noop_seconds or NOOP_SECONDS.get(self.layout, 60.0)) if offered else 0.0

    @property
    def on_empty_row(self) -> str:
        """Return what choosing a row without a job does: replace, noop or error."""
        waits = self.layout == "dissertation" and self.waiting_seconds > 0
        return ("noop" if waits else "replace") if self.empty_row == "layout" else self.empty_row

    @model_validator(mode="after")
    def _empty_rows_can_wait(self) -> EnvironmentSettings:
        if self.empty_row == "noop" and not self.waiting_seconds:
            raise ValueError(
                "empty_row: noop waits, and waiting is not offered: set noop: true, or empty_row to replace or error"
            )
        return self
