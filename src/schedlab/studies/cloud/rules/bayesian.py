"""The rule `bayesian`: Bayesian optimisation of the allocation by measurements while the job runs.

After Alipourfard et al., "CherryPick", NSDI 2017: a Gaussian process with a Matern 5/2 kernel and expected improvement;
the search ends when the expected improvement is a small share of the best objective. In CherryPick, each probe is a
separate run. Here it is an interval of the job, and the intervals on the way to it are measured too. The rule knows
prices and limits, but not the performance model.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from schedlab.config.contract import Budget
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.replay import Replay, towards

if TYPE_CHECKING:
    from schedlab.config.contract import Unit
    from schedlab.studies.cloud.problem import CloudProblem


class BayesianSettings(Settings):
    """The rule `bayesian`: Bayesian optimisation of a constant allocation (CherryPick, NSDI 2017)."""

    first: int = setting(
        3, doc="probes before the first model: the start allocation, then random ones", unit="probes", ge=1, le=100
    )
    probes: int = setting(
        6, doc="maximum number of probes; then the job moves to the best one", unit="probes", ge=1, le=1000
    )
    improvement: float = setting(
        0.1,
        doc="probing ends when the expected improvement is below this share of the best value",
        unit="fraction",
        ge=0,
        le=1,
    )
    share: float = setting(
        0.3,
        doc="maximum share of the job's intervals spent on probes and on moves to them",
        unit="fraction",
        gt=0,
        le=1,
    )


class _Before(NamedTuple):
    """The state of an episode before the decision whose effect is measured; progress in intervals."""

    here: int
    objective: float
    progress: float


class BayesianRule:
    """Probes allocations, then goes to the best one that was measured and stays. Its seed decides all random
    choices.
    """

    def __init__(self, problem: CloudProblem, settings: BayesianSettings, seed: int) -> None:
        self.problem, self.settings, self.seed = problem, settings, seed
        values = problem.replay.lattice.allocations
        self.places = places_of(problem.replay)
        self.ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in values.T], axis=1)
        self.probing = max(1, int(settings.share * problem.replay.intervals))
        self.budget = Budget()  # nothing: it probes within the training that is scored

    def reset(self, unit: Unit) -> None:
        """Forget the previous unit."""
        self.measured: dict[int, float] = {}
        self.tried = 0
        self.target: int | None = None
        self.settled = False
        self.before: _Before | None = None
        self.rng = generator(self.seed, "bayesian", unit.id)

    def choose(self, env: CloudReplayEnv) -> int:
        """Return the action (of 27) in an environment."""
        self._measure(env)
        if self.target is None:
            self.target = env.here
        elif not self.settled and (env.here == self.target or env.interval >= self.probing):
            self._next(env)
        self.before = _Before(env.here, env.objective(), env.progress)
        keep = env.replay.lattice.keep
        return keep if env.here == self.target else int(towards(env.replay, np.int64(env.here), np.int64(self.target)))

    def _measure(self, env: CloudReplayEnv) -> None:
        """Store the increase of the objective per interval on this allocation, without the known cost of a restart.

        With `interval_seconds`, the training between two decisions may be more or less than an interval; the increase
        is therefore divided by the progress.
        """
        if self.before is None:
            return
        _, restarts = self.problem.step_costs(env.preference)
        restart = float(restarts[env.here]) if env.here != self.before.here else 0.0
        added = env.objective() - self.before.objective - restart
        self.measured[env.here] = added / ((env.progress - self.before.progress) or 1)

    def _next(self, env: CloudReplayEnv) -> None:
        """Choose the next probe after one was measured; or, if the search ends, the best allocation."""
        self.tried += 1
        left = self._reachable(env)
        if self.tried < self.settings.probes and len(left):
            if self.tried < self.settings.first:
                self.target = int(self.rng.choice(left))
                return
            best = min(self.measured.values())
            mean, spread = predict(
                self._points(), np.array(list(self.measured.values())), self.places[left], self._seed()
            )
            gains = expected_improvement(mean, spread, best)
            if gains.max() >= self.settings.improvement * best:
                self.target = int(left[gains.argmax()])
                return
        self.settled = True
        self.target = min(self.measured, key=lambda number: (self.measured[number], number))

    def _reachable(self, env: CloudReplayEnv) -> np.ndarray:
        """Return the allocations that were not measured and can be reached in the intervals left for probing. An
        action changes each resource by at most one step. A decision is assumed to train as much as the mean of those
        before, which is one interval unless `interval_seconds` is set.
        """
        away = np.abs(self.ranks - self.ranks[env.here]).max(axis=1)
        near = env.replay.fits & (away * env.progress / env.decisions <= self.probing - env.progress)
        return np.array(
            [number for number in np.flatnonzero(near).tolist() if number not in self.measured], dtype=np.int64
        )

    def _points(self) -> np.ndarray:
        return self.places[list(self.measured)]

    def _seed(self) -> int:
        return derive_seed(self.seed, "gaussian process") % 2**32


def places_of(replay: Replay) -> np.ndarray:
    """Return all allocations as shares of each resource's range, (n, 3)."""
    values = replay.lattice.allocations
    return (values - values.min(axis=0)) / np.maximum(np.ptp(values, axis=0), 1e-12)


def expected_improvement(mean: np.ndarray, spread: np.ndarray, best: float) -> np.ndarray:
    """Return the expected improvement of normally distributed values below the best one; where the spread is 0, the
    difference itself.
    """
    from scipy.stats import norm

    below = best - mean
    scaled = np.divide(below, spread, out=np.zeros_like(below), where=spread > 0)
    return np.where(spread > 0, below * norm.cdf(scaled) + spread * norm.pdf(scaled), np.maximum(below, 0.0))


def predict(points: np.ndarray, values: np.ndarray, at: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation (n,) of a Gaussian process fitted at points (k, 3), for places (n, 3)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    kernel = Matern(length_scale=0.5, length_scale_bounds=(0.1, 5.0), nu=2.5) + WhiteKernel(1e-2, (1e-4, 1.0))
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a length at its bound: few points say nothing of it
        model.fit(points, values)
    return model.predict(at, return_std=True)


def make_bayesian(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> BayesianRule:
    """Return the rule. Raises UserError if scikit-learn is missing, or if `first` is larger than `probes`."""
    settings = validate(BayesianSettings, params)
    if settings.first > settings.probes:
        raise UserError(
            f"{settings.first} first probes of {settings.probes}",
            where="rule bayesian: first",
            expected="at most `probes`",
        )
    if importlib.util.find_spec("sklearn") is None:
        raise UserError(
            "it needs scikit-learn", where="rule bayesian", remedy="install schedlab[learn], or leave the rule out"
        )
    return BayesianRule(problem, settings, seed)
