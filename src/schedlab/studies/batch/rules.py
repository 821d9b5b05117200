"""Priority rules: the job with the lowest score comes first; ties by submit time, then by job number.

Sources: Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation and machine learning",
SC17 (F1 to F4); Tang et al., "Fault-aware, utility-based job scheduling on Blue Gene/P systems", CLUSTER 2009 (WFP3,
UNICEP); Srinivasan, Kettimuthu, Subramani, Sadayappan, "Characterization of backfilling strategies for parallel job
scheduling", ICPP Workshops 2002 (LXF: the largest expansion factor first).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schedlab.batsim.schedulers.priorities import PRIORITIES
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.schema import Settings, setting
from schedlab.studies.batch.jobs import UNKNOWN_REQUEST, Jobs
from schedlab.studies.batch.legacy import LEGACY_RULES

PREDICTED = ("f1", "shortest", "smallest_area", "costly_per_area")  # bases of rollouts that are rules, too
ORACLES = ("smallest_area", "planner")  # rules that are also run with the true run times in place of requests


@dataclass(frozen=True)
class Priority:
    """The scores (n,): `score`, or, if they depend on the clock t, -((t - submit) / scale) ** power * weight."""

    submit: np.ndarray
    score: np.ndarray | None
    scale: np.ndarray
    weight: np.ndarray
    power: int

    def at(self, job: int, clock: float) -> float:
        """Return the score of one job at a time: the formula that the kernels compute."""
        if self.score is not None:
            return float(self.score[job])
        ratio = (clock - self.submit[job]) / self.scale[job]
        return float(-(ratio * ratio * ratio if self.power == 3 else ratio) * self.weight[job])

    def ranks(self, first: np.ndarray | None = None) -> np.ndarray:
        """Return the place of each job (n,) int64 by a constant score; ties by submit time, then place.

        first (n,): what is compared before the score, lowest first
        """
        rank, submitted = np.empty(len(self.submit), dtype=np.int64), np.argsort(self.submit, kind="stable")
        order = submitted[np.argsort(np.asarray(self.score)[submitted], kind="stable")]
        if first is not None:
            order = order[np.argsort(first[order], kind="stable")]
        rank[order] = np.arange(len(rank))
        return rank


def priority(rule: str, jobs: Jobs) -> Priority:
    """Return the scores that a rule gives to jobs. Raises UserError for a name that is none."""
    require_rule(rule)
    with np.errstate(divide="ignore", over="ignore"):
        return RULES[rule](jobs)


def require_rule(rule: str, where: str = "policy") -> None:
    """Raise UserError for a name that is no rule's."""
    if rule not in RULES:
        raise UserError(f"there is no rule '{rule}'", where=where, remedy=did_you_mean(rule, RULES))


def require_fixed_rule(rule: str, where: str) -> None:
    """Raise UserError for a name that is no rule's, and for a rule whose scores change while a job waits."""
    require_rule(rule, where)
    if rule in CHANGING:
        what = f"the scores of '{rule}' change while a job waits"
        raise UserError(what, where=where, expected=", ".join(name for name in RULES if name not in CHANGING))


def _fixed(score: Callable[[Jobs], np.ndarray]) -> Callable[[Jobs], Priority]:
    return lambda jobs: Priority(jobs.submit, np.asarray(score(jobs), dtype=float), _ones(jobs), _ones(jobs), 0)


def _ones(jobs: Jobs) -> np.ndarray:
    return np.ones(len(jobs))


def positive(values: np.ndarray) -> np.ndarray:
    """Return values (n,), UNKNOWN_REQUEST where one is 0 or less."""
    return np.where(values > 0, values, UNKNOWN_REQUEST)


def positive_request(jobs: Jobs) -> np.ndarray:
    """Return the requested times (n,) s, UNKNOWN_REQUEST for jobs without one."""
    return positive(jobs.requested)


def area(jobs: Jobs) -> np.ndarray:
    """Return requested time times nodes (n,)."""
    return positive_request(jobs) * jobs.nodes


def backfill_keys(order: str, jobs: Jobs) -> np.ndarray:
    """Return the keys (n,) of an order of backfilling that has some: requested time (sjf), times nodes (area)."""
    return area(jobs) if order == "area" else positive_request(jobs)


def _request(jobs: Jobs) -> np.ndarray:
    return np.maximum(jobs.requested, 0.0)


def _log_submit(jobs: Jobs) -> np.ndarray:
    return np.log10(np.maximum(jobs.submit, 0.0))  # minus infinity at 0: such a job comes first


def f1(requested: np.ndarray, procs: np.ndarray, submit: np.ndarray) -> np.ndarray:
    """Return the scores (n,) of F1, where times of 0 or less count as UNKNOWN_REQUEST."""
    return np.asarray(PRIORITIES["f1"].score(procs, positive(requested), submit, 0.0))


def _wfp3(jobs: Jobs) -> Priority:
    return Priority(jobs.submit, None, positive(jobs.requested), jobs.procs.astype(float), 3)


def _unicep(jobs: Jobs) -> Priority:
    return Priority(jobs.submit, None, np.log2(np.maximum(jobs.procs, 2)) * positive(jobs.requested), _ones(jobs), 1)


def _lxf(jobs: Jobs) -> Priority:
    """The expansion factor is (wait + request) / request; leaving out its constant 1 changes no order."""
    return Priority(jobs.submit, None, positive(jobs.requested), _ones(jobs), 1)


RULES: dict[str, Callable[[Jobs], Priority]] = {
    "fcfs": _fixed(lambda jobs: jobs.submit),
    "sjf": _fixed(lambda jobs: jobs.requested),
    "ljf": _fixed(lambda jobs: -jobs.requested),
    "smallest": _fixed(lambda jobs: jobs.procs),
    "largest": _fixed(lambda jobs: -jobs.procs),
    "smallest_area": _fixed(lambda jobs: positive_request(jobs) * jobs.procs),
    "f1": _fixed(lambda jobs: f1(jobs.requested, jobs.procs, jobs.submit)),
    "f2": _fixed(lambda jobs: np.sqrt(_request(jobs)) * jobs.procs + 25600.0 * _log_submit(jobs)),
    "f3": _fixed(lambda jobs: _request(jobs) * jobs.procs + 6860000.0 * _log_submit(jobs)),
    "f4": _fixed(lambda jobs: _request(jobs) * np.sqrt(jobs.procs) + 530000.0 * _log_submit(jobs)),
    "wfp3": _wfp3,
    "unicep": _unicep,
    "lxf": _lxf,
    **{name: _fixed(score) for name, score in LEGACY_RULES.items()},
}


CHANGING = ("wfp3", "unicep", "lxf")  # rules whose scores depend on the clock


class SlurmSettings(Settings):
    """The rule `slurm`: Slurm's multifactor priority from age, size and fair share (simulator/fair_share.py)."""

    age_weight: float = setting(1000.0, doc="PriorityWeightAge", ge=0)
    size_weight: float = setting(1000.0, doc="PriorityWeightJobSize", ge=0)
    share_weight: float = setting(10_000.0, doc="PriorityWeightFairshare", ge=0)
    queue_weight: float = setting(
        0.0, doc="PriorityWeightPartition, for the scenario's `queue_priority` over the largest one", ge=0
    )
    max_age: float = setting(14.0, doc="PriorityMaxAge: wait at which the age factor is 1", unit="days", gt=0)
    half_life: float = setting(14.0, doc="PriorityDecayHalfLife: age at which usage counts half", unit="days", gt=0)
    favor_small: bool = setting(False, doc="PriorityFavorSmall: small jobs get a large size factor")


FEATURES = {
    "log_request": "ln(r) / 10",
    "log_procs": "ln(n) / 5",
    "share": "n / P",
    "share_log_request": "n / P ln(r) / 10",
    "share_root_request": "n / P sqrt(r) / 100",
    "log_wait": "ln(1 + w) / 10",
    "log_wait_ratio": "ln(1 + w / r) / 5",
    "wait_days": "w in days, at most 3",
    "fits": "1 where the job could start now, else 0",
    "log_delay": "ln(1 + d) / 10, d: estimated s until it could start if nothing else started",
    "plan_log": "log10(0.001 + x) / 3 + 1, x: excess of the best plan that begins with the job over the best plan",
    "plan": "x, at most 1",
}  # r requested time in s, n processors of P, w wait in s
NAMES = tuple(FEATURES)
FIXED = 5  # the first ones do not change while the job waits
PLAN = 10  # the last ones need a plan
DAY = 86400.0  # s
MOST_DAYS = 3.0  # of the feature wait_days


@dataclass(frozen=True)
class LinearPriority:
    """A policy: one weight for each of FEATURES, (12,) float64."""

    weights: np.ndarray

    def __post_init__(self) -> None:
        if np.shape(self.weights) != (len(NAMES),) or not np.isfinite(self.weights).all():
            expected = f"{len(NAMES)} finite numbers: {', '.join(NAMES)}"
            raise UserError(
                f"a linear priority cannot have the weights {self.weights}", where="weights", expected=expected
            )

    @property
    def plans(self) -> bool:
        """Return whether the policy reads a plan of the queue."""
        return bool(np.any(self.weights[PLAN:] != 0))


def linear_priority(**weights: float) -> LinearPriority:
    """Return the policy of weights by name, 0 for the others."""
    return LinearPriority(np.array([float(weights.get(name, 0.0)) for name in NAMES]))


# Simulates the queue with each candidate first and takes the best; nothing is learned.
PLANNER = linear_priority(plan_log=-1.0)
