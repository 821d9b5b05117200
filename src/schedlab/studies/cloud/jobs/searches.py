"""Searches for the allocation of a job that keeps its limits, each by full trainings of the job or by parts of them.

Sources: expected improvement under constraints: Gardner et al., ICML 2014; tree-structured Parzen estimator: Bergstra
et al., NIPS 2011; successive halving: Jamieson and Talwalkar, AISTATS 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import norm

from schedlab.config.contract import Budget, Unit
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.cloud.jobs.settings import SearchSettings
from schedlab.studies.cloud.jobs.trials import Trials
from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.rules.bayesian import expected_improvement, places_of, predict
from schedlab.studies.cloud.rules.guides import fitted_replay, probed
from schedlab.studies.cloud.rules.oracle import best_constant

FIRST = 5  # random trainings before the first model
GOOD = 0.25  # share of the trials that the Parzen estimator counts as good
CANDIDATES = 24  # drawn from the density of the good ones
WIDTH = 0.15  # of a kernel, as a share of a resource's range
BRACKET, FACTOR = 27, 3  # allocations that halving begins with; each rung keeps one in FACTOR
REFITS = 8  # maximum number of trainings on recommendations of the fitted model


class Search:
    """A policy that searches for the allocation of each unit's job by training it. It works only in scenarios of
    several jobs, whose problem calls `search`.
    """

    def __init__(self, method: Callable[[Trials, int], None], settings: SearchSettings, seed: int) -> None:
        self.method, self.settings, self.seed = method, settings, seed
        self.used: list[float] = []  # trainings, for each unit

    @property
    def budget(self) -> Budget:
        """The trainings used, as the mean over units: each unit has its own search."""
        return Budget(trainings=round(fmean(self.used)))

    def reset(self, unit: Unit) -> None:
        """Nothing is kept from one unit to the next."""
        self.unit = unit

    def search(self, problem: CloudProblem, preference: str) -> Trials:
        """Search for the allocation of a job and return the record of the search."""
        trials = Trials(problem, preference, float(self.settings.trainings))
        self.method(trials, derive_seed(self.seed, "search", self.unit.id))
        self.used.append(trials.used)
        return trials


def random_search(trials: Trials, seed: int) -> None:
    """Train on allocations in random order."""
    order = generator(seed, "order").permutation(trials.fits)
    for number in order[: int(trials.left)].tolist():
        trials.train(number)


def gaussian_process(trials: Trials, seed: int) -> None:
    """Search with Gaussian processes (Gardner et al. 2014). After FIRST random allocations, take the allocation with
    the largest expected improvement times the probability that time and cost keep their limits, each modelled by a
    Gaussian process. As long as no trained allocation keeps the limits, take the one that most probably does.
    """
    places, limits = places_of(trials.replay), trials.replay.constraints.limits
    order = generator(seed, "order").permutation(trials.fits).tolist()
    while trials.left >= 1 and len(trials.numbers) < len(order):
        if len(trials.numbers) < FIRST:
            trials.train(order[len(trials.numbers)])
            continue
        untried = np.setdiff1d(trials.fits, trials.numbers)
        at, tried = places[untried], places[trials.numbers]
        chance = np.ones(len(untried))
        sums = ((limits["time"], trials.course.time[-1]), (limits["cost"], trials.course.cost[-1]))
        for limit, values in sums:
            mean, spread = predict(tried, np.log(values[trials.numbers]), at, seed % 2**32)
            chance = chance * norm.cdf((np.log(limit) - mean) / np.maximum(spread, 1e-9))
        kept = trials.kept[trials.numbers]
        gain = np.ones(len(untried))
        if kept.any():
            mean, spread = predict(tried, trials.objective[trials.numbers], at, seed % 2**32)
            gain = expected_improvement(mean, spread, float(trials.objective[trials.numbers][kept].min()))
        trials.train(int(untried[(gain * chance).argmax()]))


def parzen(trials: Trials, seed: int) -> None:
    """Search with the tree-structured Parzen estimator (Bergstra et al. 2011). After FIRST random allocations, draw
    CANDIDATES from the density of the best trials, and take the candidate with the largest ratio of this density to
    that of the other trials. Trials are ranked by the objective including the excess over limits.
    """
    rng, places = generator(seed, "parzen"), places_of(trials.replay)
    order = rng.permutation(trials.fits).tolist()
    while trials.left >= 1 and len(trials.numbers) < len(order):
        if len(trials.numbers) < FIRST:
            trials.train(order[len(trials.numbers)])
            continue
        ranked = np.array(trials.numbers)[np.argsort(trials.values, kind="stable")]
        good = max(1, round(GOOD * len(ranked)))
        untried = np.setdiff1d(trials.fits, trials.numbers)
        of_good, of_others = (_density(places[untried], places[part]) for part in (ranked[:good], ranked[good:]))
        drawn = rng.choice(len(untried), size=CANDIDATES, p=of_good / of_good.sum())
        trials.train(int(untried[drawn[(of_good[drawn] / of_others[drawn]).argmax()]]))


def _density(at: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the product over resources of kernel densities, one of which is flat."""
    away = (at[:, None, :] - centres[None, :, :]) / WIDTH
    return np.prod((1.0 + np.exp(-0.5 * away**2).sum(axis=1)) / (1.0 + len(centres)), axis=1)


def successive_halving(trials: Trials, seed: int) -> None:
    """Train BRACKET random allocations for a short part of the job, the best third for longer, and so on to its end;
    then again with others, while the budget lasts.
    """
    order, whole = generator(seed, "order").permutation(trials.fits).tolist(), trials.replay.intervals
    ends = [max(1, whole // FACTOR**2), max(2, whole // FACTOR), whole]
    for first in range(0, len(order), BRACKET):
        alive, begin = order[first : first + BRACKET], 0
        for end in ends:
            if trials.left < len(alive) * (end - begin) / whole:
                return
            seen = {}
            for number in alive:
                seen[number] = trials.part(number, begin, end)
                if end == whole:
                    trials.numbers.append(number)
                    trials.values.append(float(trials.penalised[number]))
                    trials.recommend(trials.numbers[int(np.argmin(trials.values))])
            alive = sorted(alive, key=lambda number: seen[number])[: max(1, len(alive) // FACTOR)]
            if trials.recommended is None:
                trials.recommend(alive[0])
            begin = end


def fitted_model(trials: Trials, seed: int) -> None:
    """Fit the performance model to probes of one interval each, and train on the allocation that it recommends. Repeat
    the fit with the new measurements until it recommends an allocation that was already trained.
    """
    del seed
    replay, numbers = trials.replay, probed(trials.replay)
    trials.used += len(numbers) / replay.intervals
    known = 1  # number of points of the gradient noise that were observed
    for _ in range(REFITS):
        target = best_constant(fitted_replay(replay, numbers, known), trials.weights)
        if trials.recommended is None:
            trials.recommend(target)
        if target in trials.numbers or trials.left < 1:
            return
        trials.train(target)
        numbers, known = [*numbers, target], len(replay.scenario.job.gradient_noise)


def known_model(trials: Trials, seed: int) -> None:
    """Recommend the best allocation that keeps the limits by the true performance model: the oracle."""
    del seed
    trials.recommend(int(np.where(trials.kept, trials.objective, np.inf).argmin()))


def maker(method: Callable[[Trials, int], None]) -> Callable[[Mapping[str, Any], Any, int], Search]:
    """Return the constructor of the search by one method."""
    return lambda params, _, seed: Search(method, validate(SearchSettings, params), seed)


MAKERS = {
    "search_random": maker(random_search),
    "search_gaussian_process": maker(gaussian_process),
    "search_parzen": maker(parzen),
    "search_halving": maker(successive_halving),
    "search_fitted": maker(fitted_model),
    "search_known_model": maker(known_model),
}
