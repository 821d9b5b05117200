"""Learns the parameters of an order from history on several traces at once.

The search is CMA-ES from the untrained parameters. A point is judged by whole runs, each from an empty machine, of the
part of every trace that precedes its test part. Its fitness is the mean over traces of the logarithm of its mean
bounded slowdown over that of the untrained order, half of it of the whole run, half of it averaged over successive
blocks of jobs, so that one congested week does not decide alone. What the search ends at is the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.learning.checkpoints import Checkpoint, grouped
from schedlab.learning.cma_es import CmaEs
from schedlab.learning.job import Learning, LearningJob, Pace
from schedlab.studies.batch.jobs import SHORT
from schedlab.studies.batch.learners.policy_files import save_priority
from schedlab.studies.batch.learners.search import PriorityLearner
from schedlab.studies.batch.learners.search_settings import HistorySettings
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.simulator.history import LEVELS, PARAMETERS, START, HistoryPriority
from schedlab.studies.batch.simulator.simulate import simulate

_POSITIVE = len(LEVELS) + 3  # the first parameters are searched on a scale of factors
_KEEP = len(LEVELS)
_WARM_UP = 10  # the first of so many parts of a run is not scored


def parameters_at(point: np.ndarray) -> np.ndarray:
    """Return the parameters (16,) at a point of the search; 0 is START. `keep` stays between 0 and 1."""
    values = START.copy()
    values[:_POSITIVE] *= np.exp(np.clip(point[:_POSITIVE], -7.0, 7.0))
    odds = START[_KEEP] / (1.0 - START[_KEEP]) * np.exp(np.clip(point[_KEEP], -7.0, 7.0))
    values[_KEEP] = odds / (1.0 + odds)
    values[_POSITIVE:] += 0.4 * point[_POSITIVE:]
    return values


class HistorySearch(Learning):
    """Searches from the untrained parameters; an update is a generation."""

    def __init__(
        self, job: LearningJob, problems: Mapping[str, BatchProblem], settings: Sequence[HistorySettings]
    ) -> None:
        ((phase,), (self.settings,)) = job.spec.train_on, settings
        self.job, self.problems = job, [problems[name] for name in phase.scenarios]
        self.strategy = CmaEs(np.zeros(len(PARAMETERS)), self.settings.step, self.settings.population)
        self.untrained: dict[int, np.ndarray] = {}

    def begin(self, phase: int) -> Pace:
        """Plan the generations."""
        return Pace(self.job.spec.train_on[phase].steps, 1)

    def step(self, phase: int, update: int) -> None:
        """Make one generation, all of its points on the same jitter of submit times."""
        del phase
        jitter = update % self.settings.jitters
        points = self.strategy.ask(generator(self.job.seed, "batch", "history", "points", update))
        if jitter not in self.untrained:
            self.untrained[jitter] = self._logarithms(START, jitter)
        values = [float((self._logarithms(parameters_at(at), jitter) - self.untrained[jitter]).mean()) for at in points]
        self.strategy.tell(points, np.array(values))
        self.job.budget.episodes += len(points) * len(self.problems)
        found = {"fitness": float(np.mean(values)), "best_fitness": float(np.min(values))}
        self.job.record(found, step=update + 1, update=self.strategy.generation)

    def end(self, phase: int) -> None:
        """Take the mean of the search."""
        del phase
        self.best = HistoryPriority(parameters_at(self.strategy.mean))

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the search."""
        return {}, grouped({"search": self.strategy.state()})

    def load(self, kept: Checkpoint) -> None:
        """Restore what `state` returned."""
        self.strategy.restore(kept.group("search"))

    def _logarithms(self, values: np.ndarray, jitter: int) -> np.ndarray:
        """The logarithm of the mean bounded slowdown of each trace (problems,): that of all, and of the blocks."""
        policy = HistoryPriority(values)
        return np.array([self._of_problem(number, policy, jitter) for number in range(len(self.problems))])

    def _of_problem(self, number: int, policy: HistoryPriority, jitter: int) -> float:
        problem, settings = self.problems[number], self.settings
        end = problem.part("validation")[1]
        jobs = problem.jobs.take(slice(max(0, end - settings.most_jobs), end))
        later = generator(self.job.seed, "batch", "history", "jitter", number, jitter).uniform(0, 1, len(jobs))
        jobs = replace(jobs, submit=jobs.submit + settings.jitter * later)
        jobs = jobs.take(np.argsort(jobs.submit, kind="stable"))
        scenario = problem.scenario
        most_wait = np.inf if scenario.most_wait is None else 3600.0 * scenario.most_wait
        schedule = simulate(jobs, problem.machine, policy, scenario.backfill, kill=scenario.kill, most_wait=most_wait)
        self.job.budget.decisions += len(jobs)
        wait = schedule.start - schedule.jobs.submit
        slowdowns = bounded_slowdown(wait + schedule.jobs.run, schedule.jobs.run, SHORT)[len(jobs) // _WARM_UP :]
        blocks = [np.log(part.mean()) for part in np.array_split(slowdowns, min(settings.blocks, len(slowdowns)))]
        return 0.5 * float(np.log(slowdowns.mean())) + 0.5 * float(np.mean(blocks))


class HistoryLearner(PriorityLearner):
    """Learns on all scenarios of its only phase together."""

    def learn(
        self, problems: Mapping[str, BatchProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Search, write the policy, and return the budget used."""
        settings = [validate(HistorySettings, {**spec.params, **phase.params}) for phase in spec.train_on]
        written = [each.model_dump(mode="json") for each in settings]
        job = LearningJob("batch-history", written, spec, seed, paths, curve)
        search = HistorySearch(job, problems, settings)
        job.run(search)
        save_priority(paths.checkpoint, search.best)
        return job.budget
