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
    """Windows on which candidates are compared: of the validation part, and equally many of the training part."""

    stride: int = setting(64, doc="distance between the starts of validation windows", unit="jobs", ge=1)
    most_windows: int = setting(80, doc="maximum number of windows of each part, evenly spaced", unit="windows", ge=1)


class EvolutionSettings(CandidateSettings):
    """Evolution strategy over the weights of a linear priority; a phase's steps are the generations of each of its
    searches.
    """

    population: int = setting(14, doc="population of a generation", ge=4, le=1000)
    windows: int = setting(
        32, doc="training windows per generation, the same for the whole population", unit="windows", ge=1, le=10_000
    )
    starts: tuple[Start, ...] = setting(
        ("linear", "planner"),
        doc="starting points: `linear` and `zero`: weights 0 without and with plan features; `planner`: "
        "the untrained planner. `zero` takes much longer, because bad plans make long queues",
        min_length=1,
    )
    restarts: int = setting(1, doc="number of searches from each starting point", ge=1, le=100)
    longer_without_plans: int = setting(
        4, doc="factor on the generations of searches without plan features, which are cheaper", ge=1
    )
    step_zero: float = setting(0.5, doc="initial step size at weights 0", gt=0)
    step_planner: float = setting(0.15, doc="initial step size at the planner", gt=0)
    fitness: Literal["mean", "log", "ratio", "both"] = setting(
        "both",
        doc="fitness, from the windows' bounded slowdowns and those of the chosen rule: `mean`: logarithm of "
        "the ratio of their means; `log`: mean logarithm of the windows' ratios; `ratio`: mean of these "
        "ratios; `both`: sum of `mean` and `log`",
    )
    check_every: int = setting(
        5, doc="generations of a search after which its present weights become a candidate", unit="generations", ge=1
    )
    candidates: tuple[Literal["rules", "planner"], ...] = setting(
        ("rules", "planner"),
        doc="further candidates, besides the results of the searches; the best one on validation becomes the policy",
    )


class HistorySettings(Settings):
    """Search for the parameters of an order from history on whole traces (their part up to the test part)."""

    population: int = setting(12, doc="population of a generation", ge=4, le=1000)
    step: float = setting(0.5, doc="initial step size of the search", gt=0)
    jitters: int = setting(3, doc="sets of random delays, one for each generation in turn", ge=1, le=100)
    jitter: float = setting(30.0, doc="largest random delay that is added to each submit time", unit="s", ge=0)
    most_jobs: int = setting(
        50_000, doc="jobs of each trace that are simulated, the last ones before its test part", unit="jobs", ge=10
    )
    blocks: int = setting(
        20, doc="successive parts of a run; the mean logarithm of their scores is half of the fitness", ge=1, le=1000
    )


class RolloutSettings(CandidateSettings):
    """Rollouts of base policies; a phase's steps are the generations of each search for a base policy."""

    most_windows: int = setting(40, doc="maximum number of windows of each part, evenly spaced", unit="windows", ge=1)
    population: int = setting(12, doc="population of a generation", ge=4, le=1000)
    windows: int = setting(
        24, doc="training windows per generation, the same for the whole population", unit="windows", ge=1, le=10_000
    )
    starts: tuple[Base, ...] = setting(
        ("costly_per_area", "f1"), doc="base policies from which searches start", min_length=1
    )
    step: float = setting(0.3, doc="initial step size of a search", gt=0)
    bases: tuple[Base, ...] = setting(
        ("f1", "shortest", "smallest", "smallest_area", "costly_per_area"),
        doc="base policies that rollouts are tried with",
        min_length=1,
    )
    horizons: tuple[Horizon, ...] = setting(
        (0, 16),
        doc="numbers of simulated arrivals in a rollout, each a candidate; 0: only the present queue",
        unit="jobs",
    )
    samples: int = setting(8, doc="rollouts per decision for horizons with arrivals", ge=1, le=1000)
    stretches: int = setting(256, doc="sequences of training jobs from which arrivals are drawn", ge=1, le=100_000)
    candidates: tuple[Literal["rules", "planner"], ...] = setting(
        ("rules", "planner"), doc="further candidates, besides rollouts; the best one on validation becomes the policy"
    )
