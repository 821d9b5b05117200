"""Typed settings of the decisions: actions, observation, objective, and the switches of reference mode."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from schedlab.config.errors import did_you_mean
from schedlab.config.schema import Settings, section, setting
from schedlab.studies.hetero.env.objectives import OBJECTIVES
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES, CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import ALL_JOB_POLICIES, JOB_POLICIES

PAIR_SEPARATOR = "-"
ALL_PAIRS = tuple(f"{job}{PAIR_SEPARATOR}{core}" for job in JOB_POLICIES for core in CORE_POLICIES)


class LegacySettings(Settings):
    """Defects of HDeepRM 0.3 that change numbers; all off by default, all on in mode reference.

    Defects of the power of pstate 2, of the drawn workload, and of job limits of 0 have switches in the sections
    `platform.pstates` and `workload.batsim`.
    """

    high_cores_packs: bool = setting(False, doc="high_cores takes the fullest processor first (like our pack_cores)")
    hosts_by_creation: bool = setting(False, doc="the n-th core is taken for Batsim's host n, regardless of its name")
    silent_begin: bool = setting(
        False, doc="initial pstates are not sent, so Batsim counts full power for cores on processors that run no job"
    )
    remaining_in_gigaflop: bool = setting(
        False, doc="completed work is counted in Gflop and requested work in flop, so the remaining work never changes"
    )
    late_reward: bool = setting(
        False, doc="the reward of an action is computed at the next message, after later events"
    )
    last_action_is_void: bool = setting(False, doc="the last action is treated as void even if void is not offered")
    void_asks_again: bool = setting(
        False, doc="after the last submission, a void action is followed by another decision immediately"
    )
    keep_infeasible: bool = setting(False, doc="jobs that never fit are not rejected and block the queue")
    unclipped_observation: bool = setting(False, doc="features of waiting jobs above the 99th percentile exceed 1")


REFERENCE: dict[str, Any] = dict.fromkeys(LegacySettings.model_fields, True)


class DecisionSettings(Settings):
    """The actions, the observation and the reward of the decisions."""

    selection: tuple[str, ...] = setting(
        ALL_PAIRS, doc='pair "job policy - core policy" of each action, in the order of their numbers', min_length=1
    )
    void: bool = setting(True, doc="offer a last action that does nothing")
    observation: Literal["normal", "small", "minimal", "heads"] = setting(
        "normal",
        doc="`normal`: cores, processors, nodes and queue; `small`: without cores; `minimal`: only the "
        "queue; `heads`: the first job of each job policy",
    )
    queue_sensitivity: float = setting(
        0.05, doc="relative growth of the queue at which its variation saturates at 0 or 1", gt=0
    )
    objective: Literal[tuple(OBJECTIVES)] = setting(  # type: ignore[valid-type]
        "avg_job_slowdown", doc="objective from which the rewards are computed"
    )
    time_weighted: bool = setting(
        False, doc="the reward is the integral of the objective until the next decision, not its current value"
    )
    void_limit: int = setting(
        100, doc="consecutive voids while nothing else can happen, after which the first action is taken", ge=1
    )
    legacy: LegacySettings = section(LegacySettings, doc="switches for defects of the original")

    @model_validator(mode="after")
    def _check(self) -> DecisionSettings:
        for number, pair in enumerate(self.selection):
            job, _, core = pair.partition(PAIR_SEPARATOR)
            for kind, name, known in (("job", job, ALL_JOB_POLICIES), ("core", core, ALL_CORE_POLICIES)):
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
        """The name of each action."""
        return (*self.selection, "void") if self.void else self.selection
