"""Typed settings of the decisions: actions, observation, objective, and the switches of reference mode."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from schedlab.config.errors import did_you_mean
from schedlab.config.schema import Settings, section, setting
from schedlab.studies.hetero.env.objectives import OBJECTIVES
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES, CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import JOB_POLICIES

PAIR_SEPARATOR = "-"
ALL_PAIRS = tuple(f"{job}{PAIR_SEPARATOR}{core}" for job in JOB_POLICIES for core in CORE_POLICIES)


class LegacySettings(Settings):
    """Defects of HDeepRM 0.3 that change numbers; all off by default, all on in mode reference.

    Three more lie elsewhere: the power of pstate 2 (platform, pstates), the drawn workload and limits of 0 (workload).
    """

    high_cores_packs: bool = setting(False, doc="high_cores takes the fullest processor first (our pack_cores)")
    hosts_by_creation: bool = setting(False, doc="the n-th core is taken for Batsim's host n, whatever its name")
    silent_begin: bool = setting(
        False, doc="pstates are not sent at the begin: Batsim counts full power for cores that no job ever comes near"
    )
    remaining_in_gigaflop: bool = setting(
        False, doc="done work is counted in Gflop and asked work in flop: the rest never moves"
    )
    late_reward: bool = setting(
        False, doc="an action is rewarded by the state at the next message, which later events have changed already"
    )
    last_action_is_void: bool = setting(
        False, doc="the last action counts as void in the flow of control though void is not offered"
    )
    void_asks_again: bool = setting(
        False, doc="after the last submission a void is followed by a decision at once, whatever still runs"
    )
    keep_infeasible: bool = setting(False, doc="jobs that never fit are not rejected: they block the queue for ever")
    unclipped_observation: bool = setting(False, doc="shares of waiting jobs above the 99th percentile exceed 1")


REFERENCE: dict[str, Any] = dict.fromkeys(LegacySettings.model_fields, True)


class DecisionSettings(Settings):
    """What is decided, what is seen, and what is rewarded."""

    selection: tuple[str, ...] = setting(
        ALL_PAIRS, doc="job policy - core policy of each action, by its number", min_length=1
    )
    void: bool = setting(True, doc="a last action that does nothing")
    observation: Literal["normal", "small", "minimal", "heads"] = setting(
        "normal",
        doc="cores, processors and nodes with the queue; without cores; the queue alone; "
        "the first job of each job policy",
    )
    queue_sensitivity: float = setting(
        0.05, doc="growth of the queue, as a share, at which its variation shows 0 or 1", gt=0
    )
    objective: Literal[tuple(OBJECTIVES)] = setting(  # type: ignore[valid-type]
        "avg_job_slowdown", doc="what the reward adds up to"
    )
    time_weighted: bool = setting(
        False, doc="the reward is the objective's integral until the next decision, not its value now"
    )
    void_limit: int = setting(
        100, doc="voids in a row where nothing else can happen; then the first action is taken", ge=1
    )
    legacy: LegacySettings = section(LegacySettings, doc="defects of the original, by name")

    @model_validator(mode="after")
    def _check(self) -> DecisionSettings:
        for number, pair in enumerate(self.selection):
            job, _, core = pair.partition(PAIR_SEPARATOR)
            for kind, name, known in (("job", job, JOB_POLICIES), ("core", core, ALL_CORE_POLICIES)):
                if name not in known:
                    remedy = did_you_mean(name, known)
                    raise ValueError(f"selection.{number}: '{pair}' has no {kind} policy; {remedy}")
        if len(set(self.selection)) < len(self.selection):
            raise ValueError("selection: each pair once")
        return self

    @property
    def actions(self) -> int:
        """Number of actions."""
        return len(self.selection) + self.void

    @property
    def names(self) -> tuple[str, ...]:
        """What each action is called."""
        return (*self.selection, "void") if self.void else self.selection
