"""Typed settings of the learners that search without a network."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schedlab.config.schema import Settings, setting
from schedlab.studies.batch.legacy import LEGACY_RULES
from schedlab.studies.batch.rules import RULES

CORRECT_RULES = tuple(rule for rule in RULES if rule not in LEGACY_RULES)
Start = Literal["linear", "zero", "planner"]
Base = Literal["shortest", "smallest", "smallest_area", "f1", "costly", "costly_per_area"]  # rollouts.BASES
Horizon = Annotated[int, Field(ge=0, le=1000)]


class CandidateSettings(Settings):
    """How candidates are judged: on windows of the validation part and as many of the training part."""

    stride: int = setting(64, doc="jobs from the start of one validation window to the next", unit="jobs", ge=1)
    most_windows: int = setting(80, doc="most windows of each part, evenly spread", unit="windows", ge=1)


class EvolutionSettings(CandidateSettings):
    """Evolution strategy over the weights of a linear priority; a phase's steps are the generations of each of its
    searches.
    """

    population: int = setting(14, doc="points of a generation", ge=4, le=1000)
    windows: int = setting(
        32, doc="training windows of a generation, the same for all points", unit="windows", ge=1, le=10_000
    )
    starts: tuple[Start, ...] = setting(
        ("linear", "planner"),
        doc="where searches begin: linear, zero: all weights 0, without and with plan features; planner: the "
        "untrained planner; zero takes many times longer than the others, because weights that plan badly make "
        "long queues to plan",
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
        doc="of mean bounded slowdowns over those of the chosen rule: ratio of the means, mean logarithm, mean "
        "ratio; both: the first two",
    )
    check_every: int = setting(5, doc="generations between two candidates of a search", unit="generations", ge=1)
    candidates: tuple[Literal["rules", "planner"], ...] = setting(
        ("rules", "planner"), doc="what is kept where no search beats it"
    )


class RolloutSettings(CandidateSettings):
    """Rollouts upon base priorities; a phase's steps are the generations of each search for a base."""

    most_windows: int = setting(40, doc="most windows of each part, evenly spread", unit="windows", ge=1)
    population: int = setting(12, doc="points of a generation", ge=4, le=1000)
    windows: int = setting(
        24, doc="training windows of a generation, the same for all points", unit="windows", ge=1, le=10_000
    )
    starts: tuple[Base, ...] = setting(("costly_per_area", "f1"), doc="bases that searches begin at", min_length=1)
    step: float = setting(0.3, doc="step size of a search at its begin", gt=0)
    bases: tuple[Base, ...] = setting(
        ("f1", "shortest", "smallest", "smallest_area", "costly_per_area"),
        doc="bases that rollouts are tried with",
        min_length=1,
    )
    horizons: tuple[Horizon, ...] = setting(
        (0, 16), doc="drawn jobs that arrive in a rollout; each is a candidate, 0 plans the present queue", unit="jobs"
    )
    samples: int = setting(8, doc="rollouts of each try with arrivals", ge=1, le=1000)
    stretches: int = setting(256, doc="stretches of jobs drawn from the training part", ge=1, le=100_000)
    candidates: tuple[Literal["rules", "planner"], ...] = setting(
        ("rules", "planner"), doc="what is kept where no rollouts beat it"
    )
