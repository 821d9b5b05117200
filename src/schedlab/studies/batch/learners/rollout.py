"""Learns a rollout policy: predictions and arrivals come from the training part, and a search adds a base
priority.

The search is CMA-ES over the coefficients of a base that decides alone. Candidates are judged as in search.py: each
base that was found; rollouts upon the given bases, with and without the best one, for each horizon; rules and planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from schedlab.config.seeds import generator
from schedlab.learning.checkpoints import Checkpoint, grouped
from schedlab.learning.cma_es import CmaEs
from schedlab.learning.job import Learning, LearningJob, Pace
from schedlab.studies.batch.jobs import Jobs
from schedlab.studies.batch.learners.search import (
    Candidate,
    Judge,
    SearchLearner,
    make_generation,
    merit,
    record_ratios,
)
from schedlab.studies.batch.learners.search_settings import CORRECT_RULES, RolloutSettings
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.rules import PLANNER
from schedlab.studies.batch.simulator.predictions import Prior
from schedlab.studies.batch.simulator.rollouts import BASE_FEATURES, Arrivals, RolloutPolicy, base_coefficients


class BaseSearch(Learning):
    """Searches for a base priority from each start, for a number of generations each; an update is a
    generation.

    found  the bases (6,) that the finished searches ended at
    best   the candidate that is kept, and its figures
    """

    def __init__(
        self, job: LearningJob, problems: Mapping[str, BatchProblem], settings: Sequence[RolloutSettings]
    ) -> None:
        ((phase,), (self.settings,)) = job.spec.train_on, settings
        self.job, self.problems = job, [problems[name] for name in phase.scenarios]
        parts = [problem.jobs.take(slice(0, problem.part("train")[1])) for problem in self.problems]
        columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Jobs)]
        self.prior = Prior.of(Jobs(*columns))
        self.present = self._arrivals(0)  # no job but those that wait
        self.found: list[np.ndarray] = []

    def begin(self, phase: int) -> Pace:
        """Judge the rules."""
        self.judge = Judge(self.problems, self.settings, self.job.budget)
        self.count = self.job.spec.train_on[phase].steps
        return Pace(len(self.settings.starts) * self.count, 1)

    def step(self, phase: int, update: int) -> None:
        """Make one generation."""
        del phase
        number, generation = divmod(update, self.count)
        if generation == 0:
            self.strategy = self._strategy(number)
        names = ("batch", "rollout", self.settings.starts[number], generation)
        make_generation(self.job, self.judge, self.settings.windows, self.strategy, names, update + 1, self._alone)
        if generation + 1 == self.count:
            self.found.append(self.strategy.mean)

    def end(self, phase: int) -> None:
        """Judge the candidates, record their ratios and select the best."""
        del phase
        judged = [(self.judge.figures(candidate), candidate) for candidate in self.candidates()]
        for number, (figures, _) in enumerate(judged):
            record_ratios(self.job, figures, number)
        self.figures, self.best = min(judged, key=lambda entry: merit(entry[0]))

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the current search, and the results of earlier ones."""
        found = np.array(self.found).reshape(len(self.found), len(BASE_FEATURES))
        return {}, {"found": found, **grouped({"search": self.strategy.state()})}

    def load(self, kept: Checkpoint) -> None:
        """Restore what `state` returned."""
        self.found = list(kept.arrays["found"])
        self.strategy = self._strategy((self.job.update - 1) // self.count)
        self.strategy.restore(kept.group("search"))

    def about(self) -> dict[str, Any]:
        """Return what the policy's file says of how it was found."""
        return {"against": self.judge.rule, "log_ratios": self.figures.tolist()}

    def _strategy(self, number: int) -> CmaEs:
        start = base_coefficients(self.settings.starts[number])
        return CmaEs(start, self.settings.step, self.settings.population)

    def _alone(self, base: np.ndarray) -> RolloutPolicy:
        """A base (6,) that decides without rollouts."""
        return RolloutPolicy(base[None], self.prior, self.present, samples=0)

    def candidates(self) -> Iterator[Candidate]:
        """Yield the candidates to be judged."""
        settings = self.settings
        alone = [self._alone(one) for one in self.found]
        yield from alone
        best = min(alone, key=lambda policy: merit(self.judge.figures(policy))).bases
        given = np.array([base_coefficients(name) for name in settings.bases])
        for horizon in settings.horizons:
            arrivals, samples = self._arrivals(horizon), settings.samples if horizon else 1
            for bases in (given, np.vstack([best, given])):
                yield RolloutPolicy(bases, self.prior, arrivals, samples)
        if "rules" in settings.candidates:
            yield from CORRECT_RULES
        if "planner" in settings.candidates:
            yield PLANNER

    def _arrivals(self, horizon: int) -> Arrivals:
        """Stretches drawn from the training part of each problem, as many of each."""
        count = -(-self.settings.stretches // len(self.problems)) if horizon else 1
        drawn = []
        for number, problem in enumerate(self.problems):
            rng = generator(self.job.seed, "batch", "rollout", "arrivals", number, horizon)
            end = problem.part("train")[1]
            shape = count, min(horizon, end - 1)
            drawn.append(Arrivals.drawn(problem.past, problem.machine, self.prior, end, shape, rng))
        return Arrivals(*(np.concatenate([getattr(one, field.name) for one in drawn]) for field in fields(Arrivals)))


class RolloutLearner(SearchLearner):
    """Learns on the scenarios of its only phase. Simulations within a rollout use predictions; they are no decisions in
    the environment and are not counted.
    """

    kind, settings, search = "batch-rollout", RolloutSettings, BaseSearch
