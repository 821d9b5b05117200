"""Learning without a network: an evolution strategy over a linear priority.

A search overfits to a few congested training windows easily, and a validation part may hold hardly any. So candidates,
the points that a search passed through, are judged on windows of the validation part and as many of the training part,
by the mean and the mean logarithm, against the rules and the untrained planner: one of those may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Split
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.learning.checkpoints import Checkpoint, grouped
from schedlab.learning.cma_es import CmaEs
from schedlab.learning.job import Learning, LearningJob, Pace
from schedlab.studies.batch.jobs import SHORT
from schedlab.studies.batch.learners.policy_files import load_priority, save_priority
from schedlab.studies.batch.learners.search_settings import (
    CORRECT_RULES,
    CandidateSettings,
    EvolutionSettings,
)
from schedlab.studies.batch.problem import BatchProblem, RulePolicy
from schedlab.studies.batch.rules import NAMES, PLAN, PLANNER, LinearPriority
from schedlab.studies.batch.simulator.simulate import Priorities

Candidate = Priorities


@dataclass(frozen=True)
class Windows:
    """Windows of one or several problems: (problem, first job) each. The budget counts what is simulated on them."""

    places: tuple[tuple[BatchProblem, int], ...]
    budget: Budget

    def bsld(self, policy: Candidate) -> np.ndarray:
        """Return the mean bounded slowdown of each window (windows,) under a policy."""
        self.budget.decisions += sum(problem.scenario.windows.length for problem, _ in self.places)
        return np.array([_window_bsld(problem, policy, start) for problem, start in self.places])


def drawn_windows(problems: Sequence[BatchProblem], count: int, rng: np.random.Generator, budget: Budget) -> Windows:
    """Return `count` windows of the training parts, with uniformly drawn starts, from each problem in turn."""
    places = []
    for number in range(count):
        problem = problems[number % len(problems)]
        first, last = _range(problem, "train")
        places.append((problem, int(rng.integers(first, last + 1))))
    return Windows(tuple(places), budget)


def spread_windows(problems: Sequence[BatchProblem], split: Split, stride: int, most: int, budget: Budget) -> Windows:
    """Return windows of a part, `stride` jobs apart, reduced evenly to at most `most` for each problem."""
    places = []
    for problem in problems:
        first, last = _range(problem, split)
        starts = np.arange(first, last + 1, stride)
        if len(starts) > most:
            starts = starts[np.linspace(0, len(starts) - 1, most).astype(int)]
        places += [(problem, int(start)) for start in starts]
    return Windows(tuple(places), budget)


def log_ratios(values: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return (log of the ratio of the means, mean of the log ratios) of the windows' mean bounded slowdowns."""
    return float(np.log(values.mean() / reference.mean())), float(np.log(values / reference).mean())


def best_rule(rules: Iterable[str], values: dict[str, np.ndarray], criterion: str) -> str:
    """Return the rule with the lowest mean bounded slowdown over windows (`mean`), or with the lowest mean of its
    logarithm (`log`).
    """
    return min(rules, key=lambda rule: float((values[rule] if criterion == "mean" else np.log(values[rule])).mean()))


def _range(problem: BatchProblem, split: Split) -> tuple[int, int]:
    """(first, last) start of a window within a part. Raises UserError where the part holds none."""
    first, end = problem.part(split)
    length = problem.scenario.windows.length
    if end - first < length:
        where = f"scenario {problem.scenario.name}: windows"
        raise UserError(
            f"the {split} part holds no window of {length} jobs", where=where, expected="a shorter window, or more jobs"
        )
    return first, end - length


def _window_bsld(problem: BatchProblem, policy: Candidate, start: int) -> float:
    schedule = problem.schedule(policy, start, derive_seed(problem.scenario.seed, "batch", "window", start))
    return float(
        bounded_slowdown(schedule.start - schedule.jobs.submit + schedule.jobs.run, schedule.jobs.run, SHORT).mean()
    )


class PriorityLearner:
    """The common part of learners whose file contains a priority."""

    def load(self, checkpoint: Path, problem: BatchProblem) -> RulePolicy:
        """Return the learned policy; it is the same for every problem."""
        del problem
        return RulePolicy(load_priority(checkpoint))


class SearchLearner(PriorityLearner):
    """Searches phase after phase and writes the selected candidate; resumes after the last finished generation."""

    kind: ClassVar[str]
    settings: ClassVar[type[CandidateSettings]]
    search: ClassVar[Any]

    def learn(
        self, problems: Mapping[str, BatchProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Search, write the selected candidate, and return the budget used."""
        settings = [validate(self.settings, {**spec.params, **phase.params}) for phase in spec.train_on]
        job = LearningJob(self.kind, [each.model_dump(mode="json") for each in settings], spec, seed, paths, curve)
        search = self.search(job, problems, settings)
        job.run(search)
        save_priority(paths.checkpoint, search.best, **search.about())
        return job.budget


class Judge:
    """Judges candidates on validation and training windows, against the rule with the best mean logarithm.

    rules: rule -> mean bounded slowdown of each validation window
    """

    def __init__(self, problems: Sequence[BatchProblem], settings: CandidateSettings, budget: Budget) -> None:
        self.problems = problems
        self.validation = spread_windows(problems, "validation", settings.stride, settings.most_windows, budget)
        self.training = spread_windows(problems, "train", settings.stride, settings.most_windows, budget)
        self.rules = {rule: self.validation.bsld(rule) for rule in CORRECT_RULES}
        self.rule = best_rule(CORRECT_RULES, self.rules, "log")
        self._reference = self.rules[self.rule], self.training.bsld(self.rule)

    def figures(self, candidate: Candidate) -> np.ndarray:
        """Return the logarithms of the (mean, log) ratios to the rule on validation windows, training windows and both,
        (6,).
        """
        own = [windows.bsld(candidate) for windows in (self.validation, self.training)]
        pairs = [*zip(own, self._reference, strict=True), (np.concatenate(own), np.concatenate(self._reference))]
        return np.array([number for values, reference in pairs for number in log_ratios(values, reference)])


def merit(figures: np.ndarray) -> float:
    """Return the sum of mean and logarithm over validation and training windows together; the candidate with the lowest
    is selected.
    """
    return float(figures[4:].sum())


def record_ratios(job: LearningJob, figures: np.ndarray, step: int) -> None:
    """Record a candidate's ratios to the rule on validation and training windows."""
    splits: tuple[tuple[Split, np.ndarray], ...] = (("validation", figures[:2]), ("train", figures[2:4]))
    for split, (mean, logarithm) in splits:
        values = {"ratio_to_rule": float(np.exp(mean)), "geometric_ratio_to_rule": float(np.exp(logarithm))}
        job.record(values, step=step, split=split)


def make_generation(
    job: LearningJob,
    judge: Judge,
    count: int,
    strategy: CmaEs,
    names: tuple[str | int, ...],
    step: int,
    candidate_of: Callable[[np.ndarray], Candidate],
    fitness: Callable[[np.ndarray, np.ndarray], float] = lambda values, reference: sum(log_ratios(values, reference)),
) -> None:
    """Make a generation of a search, with all points on the same `count` training windows; record the mean and the
    lowest value.

    names: of the generation's random streams. fitness: of a point, from its windows' mean bounded slowdowns and the
    rule's; lower is better.
    """
    rng = generator(job.seed, *names, "windows")
    windows = drawn_windows(judge.problems, count, rng, job.budget)
    points = strategy.ask(generator(job.seed, *names, "points"))
    reference = windows.bsld(judge.rule)
    values = np.array([fitness(windows.bsld(candidate_of(point)), reference) for point in points])
    job.budget.episodes += (1 + len(points)) * len(windows.places)
    strategy.tell(points, values)
    found = {"fitness": float(values.mean()), "best_fitness": float(values.min())}
    job.record(found, step=step, update=strategy.generation)


class Search(Learning):
    """Searches from several starts, for a number of generations each; an update is a generation.

    kept     what the last phase kept, or the parent; None: nothing yet
    best     the best candidate of the phase that ended last
    weights  (k, 12) of the candidates of this phase so far; figures: (k, 6) of each
    """

    def __init__(
        self, job: LearningJob, problems: Mapping[str, BatchProblem], settings: Sequence[EvolutionSettings]
    ) -> None:
        self.job, self.all_problems, self.of_phase = job, problems, settings
        self.kept = load_priority(job.paths.start) if job.paths.start else None

    def begin(self, phase: int) -> Pace:
        """Take the selection of the last phase, and plan the generations of each start."""
        if phase:
            self.kept = load_priority(self._kept_file(phase - 1))
        self.settings, of_phase = self.of_phase[phase], self.job.spec.train_on[phase]
        self.problems = [self.all_problems[name] for name in of_phase.scenarios]
        self.judge = Judge(self.problems, self.settings, self.job.budget)
        self.weights, self.figures = np.empty((0, len(NAMES))), np.empty((0, 6))
        steps, longer = of_phase.steps, self.settings.longer_without_plans
        self.generations = []  # (start, repetition, generation, step of its curve, whether it is the last of its start)
        starts = [(start, again) for start in self._starts() for again in range(self.settings.restarts)]
        for number, (start, again) in enumerate(starts):
            _, used, _ = self._strategy(start)
            count = steps if used.size == len(NAMES) else steps * longer
            for each in range(count):
                self.generations.append((start, again, each, number * steps * longer + each + 1, each + 1 == count))
        return Pace(len(self.generations), 1)

    def step(self, phase: int, update: int) -> None:
        """Make one generation; when it is time, judge the mean of the search."""
        start, again, generation, step, last = self.generations[update]
        if generation == 0:
            self.strategy, self.used, self.origin = self._strategy(start)
        names = ("batch", "evolution", phase, start, again, generation)
        count, weighed = self.settings.windows, self._weighed
        make_generation(self.job, self.judge, count, self.strategy, names, step, weighed, self._fitness)
        if (generation + 1) % self.settings.check_every == 0 or last:
            candidate = self._weighed(self.strategy.mean)
            figures = self.judge.figures(candidate)
            self.weights = np.vstack([self.weights, candidate.weights])
            self.figures = np.vstack([self.figures, figures])
            record_ratios(self.job, figures, step)

    def end(self, phase: int) -> None:
        """Select the best of the candidates found, the last phase's selection, and the candidates that need no
        search.
        """
        found: list[tuple[np.ndarray, Candidate]] = [
            (figures, LinearPriority(weights)) for weights, figures in zip(self.weights, self.figures, strict=True)
        ]
        found += [(self.judge.figures(candidate), candidate) for candidate in self._untrained()]
        self.figures_of_best, self.best = min(found, key=lambda entry: merit(entry[0]))
        save_priority(self._kept_file(phase), self.best)

    def _kept_file(self, phase: int) -> Path:
        return self.job.paths.progress / f"kept-{phase}.zip"

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the candidates so far, and the current search."""
        search = self.strategy.state() if self.job.update else {}
        return {}, {"weights": self.weights, "figures": self.figures, **grouped({"search": search})}

    def load(self, kept: Checkpoint) -> None:
        """Restore what `state` returned."""
        self.weights, self.figures = kept.arrays["weights"], kept.arrays["figures"]
        if self.job.update:
            self.strategy, self.used, self.origin = self._strategy(self.generations[self.job.update - 1][0])
            self.strategy.restore(kept.group("search"))

    def about(self) -> dict[str, Any]:
        """Return what the policy's file says of how it was found."""
        names = ("validation_mean", "validation_log", "training_mean", "training_log", "both_mean", "both_log")
        ratios = dict(zip(names, self.figures_of_best.tolist(), strict=True))
        return {"against": self.judge.rule, "log_ratios": ratios}

    def _starts(self) -> tuple[str, ...]:
        return ("kept",) if isinstance(self.kept, LinearPriority) else self.settings.starts

    def _strategy(self, start: str) -> tuple[CmaEs, np.ndarray, np.ndarray]:
        """(search, the features that it weighs, the weights that it begins at)."""
        settings, plans = self.settings, start in ("zero", "planner")
        origin = np.zeros(len(NAMES))
        if start == "planner":
            origin = PLANNER.weights
        elif isinstance(self.kept, LinearPriority):
            origin, plans = self.kept.weights, self.kept.plans
        used = np.arange(len(NAMES) if plans else PLAN)
        largest = max(1.0, float(np.abs(origin).max()))
        step = settings.step_zero if start in ("linear", "zero") else settings.step_planner * largest
        return CmaEs(origin[used], step, settings.population), used, origin

    def _fitness(self, values: np.ndarray, reference: np.ndarray) -> float:
        mean, logarithm = log_ratios(values, reference)
        kinds = {"mean": mean, "log": logarithm, "both": mean + logarithm, "ratio": float((values / reference).mean())}
        return kinds[self.settings.fitness]

    def _untrained(self) -> Iterator[Candidate]:
        if self.kept is not None:
            yield self.kept
        if "rules" in self.settings.candidates:
            yield from CORRECT_RULES
        if "planner" in self.settings.candidates:
            yield PLANNER

    def _weighed(self, point: np.ndarray) -> LinearPriority:
        """The priority of all weights, from those that the search weighs."""
        weights = np.array(self.origin)
        weights[self.used] = point
        return LinearPriority(weights)


class EvolutionLearner(SearchLearner):
    """Searches from each start in turn; a phase begins with the result of the one before."""

    kind, settings, search = "batch-search", EvolutionSettings, Search
