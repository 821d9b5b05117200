"""The observations, actions and rewards of a policy that decides job by job."""

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
Reward = Literal["episodic", "direct", "sigmoid", "difference", "improvement", "accrued"]
Measure = Literal["bsld", "log_bsld", "slowdown", "wait", "turnaround", "utilisation", "bsld_and_utilisation"]
Users = Literal["none", "mean", "max", "min"]
Several = Annotated[tuple[str, ...], Field(min_length=1)]


class EnvironmentSettings(Settings):
    """What a policy that decides job by job sees, may do, and is rewarded with."""

    layout: Literal["features", "rlscheduler", "dissertation", "shortlist"] = setting(
        "features",
        doc="observation of jobs and machine: `features` (ours), that of RLScheduler, that of the "
        "dissertation that builds on it, or `shortlist` (ours): the first `rows` jobs by the rule `order`",
    )
    rows: int = setting(
        8,
        doc="jobs that are observed, and actions (layout shortlist)",
        ge=1,
        le=ROWS,
        exclude_if=lambda rows: rows == 8,  # as `compare`
    )
    order: str = setting(
        "smallest_area",
        doc="rule, with scores that do not change while a job waits, that selects and sorts the jobs "
        "(layout shortlist)",
        exclude_if=lambda order: order == "smallest_area",  # as `compare`
    )
    fairness: bool = setting(
        False,
        doc="show the feature with which RLScheduler learned fairness: 1 - the mean measure of the user's started jobs "
        "/ the largest mean of a user (layout rlscheduler)",
        exclude_if=lambda fairness: not fairness,  # as `compare`
    )
    scales: Literal["training", "whole"] = setting(
        "training",
        doc="jobs whose largest values scale the published layouts; `whole`: the whole trace (published)",
    )
    oracle_runtime: bool = setting(
        False, doc="show true run times, which a scheduler cannot know (not in the layout rlscheduler)"
    )
    plan: bool = setting(
        False,
        doc="add the plan features that the planner and the linear priority use (layout features)",
    )
    quantiles: int = setting(
        5,
        doc="number of quantiles of the running jobs' expected ends; the layouts `features` and `shortlist` show each, "
        "with the share of nodes free by then",
        ge=1,
        le=MOST_QUANTILES,
    )
    visible: Literal["layout", "mixed", "rlscheduler", "dissertation"] = setting(
        "layout",
        doc="which jobs of a queue longer than the rows are observed; `layout`: the choice of the layout's "
        "authors, a mixture for `features`, and `order` for `shortlist`",
    )
    noop: bool | None = setting(
        None, doc="offer waiting as an action, in the row behind the last job; null: only in the layout dissertation"
    )
    noop_seconds: float | None = setting(
        None, doc="duration of waiting; null: 360 in the layout rlscheduler, else 60", unit="s", gt=0
    )
    noop_ends: bool = setting(
        False,
        doc="published defect: waiting while nothing runs or arrives ends the window, even if jobs wait",
    )
    empty_row: Literal["layout", "replace", "noop", "error"] = setting(
        "layout",
        doc="action on a row without a job: take the first valid row (counted), wait, or fail; "
        "`layout`: wait in the layout dissertation if waiting is offered, else take the first valid "
        "row",
    )
    reward: Reward = setting("episodic", doc="reward function (studies/batch/env/rewards.py)")
    measure: Measure = setting("bsld", doc="measure that is rewarded")
    users: Users = setting(
        "none", doc="aggregate the measure by user, then take the mean, maximum or minimum over users"
    )
    sigmoid_scale: float = setting(100.0, doc="k of the reward `sigmoid`", gt=0)
    baseline: str | Several = setting(
        "sjf", doc="rule that the reward `improvement` compares with; of several, the best on the window"
    )
    compare: bool = setting(
        False,
        doc="report the score of `baseline` on the window at the end of an episode (`score_<rule>` and "
        "`improvement` in `info`), for any reward; simulates each rule",
        exclude_if=lambda compare: (
            not compare
        ),  # so that the scenarios and policies that there are keep the hash of their configuration
    )
    track_nodes: bool = setting(False, doc="assign concrete nodes to each job (always in the layout dissertation)")

    @property
    def visible_rules(self) -> tuple[str, ...]:
        """Return the rules by which the visible jobs of a long queue are selected."""
        if self.layout == "shortlist" and self.visible == "layout":
            return (self.order,)
        return VISIBLE[
            ("mixed" if self.layout == "features" else self.layout) if self.visible == "layout" else self.visible
        ]

    @property
    def baselines(self) -> tuple[str, ...]:
        """Return the rules to be improved on; on each window the best of them counts."""
        return (self.baseline,) if isinstance(self.baseline, str) else self.baseline

    @property
    def waiting_seconds(self) -> float:
        """Return how long a no-op waits; 0: there is no such action."""
        offered = self.layout == "dissertation" if self.noop is None else self.noop
        return (self.noop_seconds or NOOP_SECONDS.get(self.layout, 60.0)) if offered else 0.0

    @property
    def on_empty_row(self) -> str:
        """Return the effect of choosing a row without a job: replace, noop or error."""
        waits = self.layout == "dissertation" and self.waiting_seconds > 0
        return ("noop" if waits else "replace") if self.empty_row == "layout" else self.empty_row

    @model_validator(mode="after")
    def _empty_rows_can_wait(self) -> EnvironmentSettings:
        if self.empty_row == "noop" and not self.waiting_seconds:
            raise ValueError(
                "empty_row: noop waits, and waiting is not offered: set noop: true, or empty_row to replace or error"
            )
        return self
