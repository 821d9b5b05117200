"""Learning to roll out: predictions and arrivals come from the training part, and a search adds a base.

The search is CMA-ES over the coefficients of a base that decides alone. Candidates are judged as in search.py: each
base that was found; rollouts upon the given bases, with and without the best one, for each horizon; rules and planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from schedlab.config.contract import Curve, LearnPaths, PolicySpec
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.learning.checkpoints import read_progress, write_checkpoint
from schedlab.learning.cma_es import CmaEs
from schedlab.studies.batch.jobs import Jobs
from schedlab.studies.batch.learners.policy_files import save_priority
from schedlab.studies.batch.learners.search import (
    Candidate,
    Judge,
    PriorityLearner,
    drawn_windows,
    log_ratios,
    merit,
    progress_digest,
    record_ratios,
    tell_generation,
)
from schedlab.studies.batch.learners.search_settings import CORRECT_RULES, RolloutSettings
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.rules import PLANNER
from schedlab.studies.batch.simulator.predictions import Prior
from schedlab.studies.batch.simulator.rollouts import BASE_FEATURES, Arrivals, RolloutPolicy, base_coefficients

_PROGRESS = "batch-rollout-progress"


class RolloutLearner(PriorityLearner):
    """Learns on the scenarios of its phase; resumes after the last generation that was finished."""

    def learn(
        self, problems: Mapping[str, BatchProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Search for bases, judge the candidates, and write the one that is kept."""
        (phase,) = spec.train_on
        settings = validate(RolloutSettings, {**spec.params, **phase.params})
        digest = progress_digest(spec, [settings], seed, paths.start)
        own, progress = [problems[name] for name in phase.scenarios], paths.progress / "rollout.zip"
        job = _Job(own, settings, seed, curve, progress, digest)
        judged = [(job.judge.figures(candidate), candidate) for candidate in job.candidates(job.search(phase.steps))]
        figures, kept = min(judged, key=lambda entry: merit(entry[0]))
        for number, (values, _) in enumerate(judged):
            record_ratios(curve, values, step=number)
        save_priority(paths.checkpoint, kept, against=job.judge.rule, log_ratios=figures.tolist())


class _Job:
    def __init__(
        self,
        problems: Sequence[BatchProblem],
        settings: RolloutSettings,
        seed: int,
        curve: Curve,
        progress: Path,
        digest: str,
    ) -> None:
        self.problems, self.settings, self.seed, self.curve = problems, settings, seed, curve
        self.progress, self.digest = progress, digest
        self.judge = Judge(problems, settings)
        parts = [problem.jobs.take(slice(0, problem.part("train")[1])) for problem in problems]
        columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Jobs)]
        self.prior = Prior.of(Jobs(*columns))

    def search(self, generations: int) -> list[np.ndarray]:
        """Return the base (6,) that the search from each start ends at."""
        found, state = self._resume()
        for start in self.settings.starts[len(found) :]:
            strategy = CmaEs(base_coefficients(start), self.settings.step, self.settings.population)
            if state:
                strategy.restore(state)
                state = {}
            while strategy.generation < generations:
                self._advance(strategy, start, len(found) * generations + strategy.generation + 1)
                self._save(found, strategy.state())
            found.append(strategy.mean)
            self._save(found, {})
        return found

    def candidates(self, found: Sequence[np.ndarray]) -> Iterator[Candidate]:
        """Yield what is judged."""
        settings = self.settings
        alone = [RolloutPolicy(one[None], self.prior, self._arrivals(0), samples=0) for one in found]
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
            rng = generator(self.seed, "batch", "rollout", "arrivals", number, horizon)
            end = problem.part("train")[1]
            shape = count, min(horizon, end - 1)
            drawn.append(Arrivals.drawn(problem.past, problem.machine, self.prior, end, shape, rng))
        return Arrivals(*(np.concatenate([getattr(one, field.name) for one in drawn]) for field in fields(Arrivals)))

    def _advance(self, strategy: CmaEs, start: str, step: int) -> None:
        """One generation: all points on the same windows, drawn anew."""
        names = ("batch", "rollout", start, strategy.generation)
        windows = drawn_windows(self.problems, self.settings.windows, generator(self.seed, *names, "windows"))
        points = strategy.ask(generator(self.seed, *names, "points"))
        reference, arrivals = windows.bsld(self.judge.rule), self._arrivals(0)
        policies = [RolloutPolicy(point[None], self.prior, arrivals, samples=0) for point in points]
        values = np.array([sum(log_ratios(windows.bsld(policy), reference)) for policy in policies])
        tell_generation(strategy, points, values, self.curve, step)

    def _resume(self) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """(bases of finished searches, state of the interrupted one), where there is progress to resume."""
        saved = read_progress(self.progress, _PROGRESS, self.digest)
        if saved is None:
            return [], {}
        return list(saved.arrays["found"]), saved.group("search")

    def _save(self, found: Sequence[np.ndarray], state: Mapping[str, np.ndarray]) -> None:
        arrays = {f"search/{name}": value for name, value in state.items()}
        arrays["found"] = np.array(found).reshape(len(found), len(BASE_FEATURES))
        write_checkpoint(self.progress, {"kind": _PROGRESS, "digest": self.digest}, arrays)
