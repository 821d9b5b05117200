"""Typed settings of the learners that search without a network."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import Settings, setting
from schedlab.studies.batch.rules import RULES

CORRECT_RULES = tuple(rule for rule in RULES if not rule.endswith("_legacy"))
Start = Literal["linear", "zero", "planner"]


class CandidateSettings(Settings):
    """How candidates are judged: on windows of the validation part, which may overlap, and on as many of the training part."""

    stride: int = setting(64, doc="jobs from the start of one validation window to the next", unit="jobs", ge=1)
    most_windows: int = setting(80, doc="most windows of each part, evenly spread", unit="windows", ge=1)


class EvolutionSettings(CandidateSettings):
    """Evolution strategy over the weights of a linear priority; a phase's steps are the generations of each of its searches."""

    population: int = setting(14, doc="points of a generation", ge=4, le=1000)
    windows: int = setting(32, doc="training windows of a generation, the same for all points", unit="windows", ge=1, le=10_000)
    starts: tuple[Start, ...] = setting(
        ("linear", "planner"),
        doc="where searches begin: linear, zero: all weights 0, without and with plan features; planner: the untrained planner; zero takes "
        "many times longer than the others, because weights that plan badly make long queues to plan",
        min_length=1,
    )
    restarts: int = setting(1, doc="searches from each start", ge=1, le=100)
    longer_without_plans: int = setting(
        4, doc="factor on the generations of searches without plan features, which cost that much less", ge=1
    )
    step_zero: float = setting(0.5, doc="step size at weights 0", gt=0)
    step_planner: float = setting(0.15, doc="step size at the planner", gt=0)
    fitness: Literal["mean", "log", "ratio", "both"] = setting(
        "both",
        doc="of mean bounded slowdowns over those of the chosen rule: ratio of the means, mean logarithm, mean ratio; both: the first two",
    )
    check_every: int = setting(5, doc="generations between two candidates of a search", unit="generations", ge=1)
    candidates: tuple[Literal["rules", "planner"], ...] = setting(("rules", "planner"), doc="what is kept where no search beats it")


class ChosenRuleSettings(CandidateSettings):
    """The rule that is best on validation; a phase's steps mean nothing."""

    criterion: Literal["mean", "log"] = setting("mean", doc="mean bounded slowdown of the windows, or mean of its logarithm")
