"""Learning without a network: an evolution strategy over a linear priority, and the rule that validation chooses.

A search overfits to a few congested training windows easily, and a validation part may hold hardly any. So candidates,
the points that a search passed through, are judged on windows of the validation part and as many of the training part,
by the mean and the mean logarithm, against the rules and the untrained planner: one of those may be kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import Curve, LearnPaths, PolicySpec, Split
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.learning.checkpoints import read_progress, write_checkpoint
from schedlab.learning.cma_es import CmaEs
from schedlab.studies.batch.jobs import SHORT
from schedlab.studies.batch.learners.policy_files import load_priority, save_priority
from schedlab.studies.batch.learners.search_settings import (
    CORRECT_RULES,
    CandidateSettings,
    ChosenRuleSettings,
    EvolutionSettings,
)
from schedlab.studies.batch.problem import BatchProblem, RulePolicy
from schedlab.studies.batch.rules import NAMES, PLAN, PLANNER, LinearPriority
from schedlab.studies.batch.simulator.simulate import Priorities

Candidate = Priorities
_PROGRESS = "batch-search-progress"


@dataclass(frozen=True)
class Windows:
    """Windows of one or several problems: (problem, first job) each."""

    places: tuple[tuple[BatchProblem, int], ...]

    def bsld(self, policy: Candidate) -> np.ndarray:
        """Return the mean bounded slowdown of each window (windows,) under a policy."""
        return np.array([_window_bsld(problem, policy, start) for problem, start in self.places])


def drawn_windows(problems: Sequence[BatchProblem], count: int, rng: np.random.Generator) -> Windows:
    """Return `count` windows of the training parts, their starts drawn uniformly, the problems taking turns."""
    places = []
    for number in range(count):
        problem = problems[number % len(problems)]
        first, last = _range(problem, "train")
        places.append((problem, int(rng.integers(first, last + 1))))
    return Windows(tuple(places))


def spread_windows(problems: Sequence[BatchProblem], split: Split, stride: int, most: int) -> Windows:
    """Return windows of a part, `stride` jobs apart, thinned evenly to at most `most` for each problem."""
    places = []
    for problem in problems:
        first, last = _range(problem, split)
        starts = np.arange(first, last + 1, stride)
        if len(starts) > most:
            starts = starts[np.linspace(0, len(starts) - 1, most).astype(int)]
        places += [(problem, int(start)) for start in starts]
    return Windows(tuple(places))


def log_ratios(values: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return (logarithm of the ratio of the means, mean logarithm of the ratios) of windows' mean bounded slowdowns."""
    return float(np.log(values.mean() / reference.mean())), float(np.log(values / reference).mean())


def best_rule(rules: Iterable[str], values: dict[str, np.ndarray], criterion: str) -> str:
    """Return the rule of the lowest mean bounded slowdown over windows (`mean`), or mean logarithm of it (`log`)."""
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
    """What learners have in common whose file holds a priority."""

    def load(self, checkpoint: Path, problem: BatchProblem) -> RulePolicy:
        """Return the learned policy; it is the same for every problem."""
        del problem
        return RulePolicy(load_priority(checkpoint))


class EvolutionLearner(PriorityLearner):
    """Searches from each start in turn; goes on after an interruption from the last generation that was finished."""

    def learn(
        self, problems: Mapping[str, BatchProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Search phase after phase, each beginning where the one before ended, and write the candidate that is kept."""
        kept: Candidate | None = load_priority(paths.start) if paths.start else None
        settings = [validate(EvolutionSettings, {**spec.params, **phase.params}) for phase in spec.train_on]
        digest = progress_digest(spec, settings, seed, paths.start)
        for number, phase in enumerate(spec.train_on):
            own = [problems[name] for name in phase.scenarios]
            progress = paths.progress / f"search-{number}.zip"
            search = _Search(own, settings[number], seed, number, curve, progress, digest)
            kept = search.run(phase.steps, kept)
        assert kept is not None
        save_priority(paths.checkpoint, kept, **search.about(kept))


def progress_digest(spec: PolicySpec, settings: Sequence[CandidateSettings], seed: int, start: Path | None) -> str:
    """Return the hash of all that determines a search but its inputs, so that progress of another is not resumed.

    settings: values of each phase      start: the parent's file
    """
    phases = [
        [list(phase.scenarios), phase.steps, own.model_dump(mode="json")]
        for phase, own in zip(spec.train_on, settings, strict=True)
    ]
    return content_hash([phases, seed, file_hash(start) if start else ""])


class ChosenRuleLearner(PriorityLearner):
    """The rule that is best on validation: what a learned policy has to beat."""

    def learn(
        self, problems: Mapping[str, BatchProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> None:
        """Choose on the scenarios of the phase. Nothing is drawn."""
        del seed
        (phase,) = spec.train_on
        settings = validate(ChosenRuleSettings, {**spec.params, **phase.params})
        judge = Judge([problems[name] for name in phase.scenarios], settings)
        rule = best_rule(CORRECT_RULES, judge.rules, settings.criterion)
        for number, name in enumerate(CORRECT_RULES):
            curve("avg_bsld", float(judge.rules[name].mean()), step=number, split="validation")
            curve("log_avg_bsld", float(np.log(judge.rules[name]).mean()), step=number, split="validation")
        save_priority(paths.checkpoint, rule, criterion=settings.criterion)


class Judge:
    """Judges candidates on validation and training windows, against the rule of the best mean logarithm.

    rules: rule -> mean bounded slowdown of each validation window
    """

    def __init__(self, problems: Sequence[BatchProblem], settings: CandidateSettings) -> None:
        self.validation = spread_windows(problems, "validation", settings.stride, settings.most_windows)
        self.training = spread_windows(problems, "train", settings.stride, settings.most_windows)
        self.rules = {rule: self.validation.bsld(rule) for rule in CORRECT_RULES}
        self.rule = best_rule(CORRECT_RULES, self.rules, "log")
        self._reference = self.rules[self.rule], self.training.bsld(self.rule)

    def figures(self, candidate: Candidate) -> np.ndarray:
        """Return (mean, log) ratios to the rule, as logarithms, on validation, training and both windows, (6,)."""
        own = [windows.bsld(candidate) for windows in (self.validation, self.training)]
        pairs = [*zip(own, self._reference, strict=True), (np.concatenate(own), np.concatenate(self._reference))]
        return np.array([number for values, reference in pairs for number in log_ratios(values, reference)])


def merit(figures: np.ndarray) -> float:
    """Return the sum of mean and logarithm on validation and training windows together; the lowest is kept."""
    return float(figures[4:].sum())


def record_ratios(curve: Curve, figures: np.ndarray, **place: Any) -> None:
    """Add a candidate's ratios to the rule on validation and training windows to the curves."""
    splits: tuple[tuple[Split, np.ndarray], ...] = (("validation", figures[:2]), ("train", figures[2:4]))
    for split, (mean, logarithm) in splits:
        curve("ratio_to_rule", float(np.exp(mean)), split=split, **place)
        curve("geometric_ratio_to_rule", float(np.exp(logarithm)), split=split, **place)


def tell_generation(
    strategy: CmaEs, points: np.ndarray, values: np.ndarray, curve: Curve, step: int, **place: Any
) -> None:
    """Give a search the values of its points, and add their mean and the lowest to the curves."""
    strategy.tell(points, values)
    curve("fitness", float(values.mean()), step=step, update=strategy.generation, **place)
    curve("best_fitness", float(values.min()), step=step, update=strategy.generation, **place)


@dataclass
class _Tried:
    """The candidates so far: weights (k, 12) of searches, and the figures (k, 6) of each."""

    weights: np.ndarray
    figures: np.ndarray

    def add(self, weights: np.ndarray, figures: np.ndarray) -> None:
        self.weights, self.figures = np.vstack([self.weights, weights]), np.vstack([self.figures, figures])


class _Search:
    """One phase: searches from several starts, each a number of generations."""

    def __init__(
        self,
        problems: Sequence[BatchProblem],
        settings: EvolutionSettings,
        seed: int,
        phase: int,
        curve: Curve,
        progress: Path,
        digest: str,
    ) -> None:
        self.problems, self.settings, self.seed, self.phase, self.curve = problems, settings, seed, phase, curve
        self.progress, self.digest = progress, digest
        self.judge = Judge(problems, settings)

    def run(self, generations: int, kept: Candidate | None) -> Candidate:
        """Return the best of what was found, of `kept`, and of what needs no search."""
        starts = [(start, again) for start in self._starts(kept) for again in range(self.settings.restarts)]
        tried = _Tried(np.empty((0, len(NAMES))), np.empty((0, 6)))
        done, state = self._resume(tried)
        for number, (start, again) in enumerate(starts):
            if number < done:
                continue
            strategy, used, origin = self._strategy(start, kept)
            if state:
                strategy.restore(state)
                state = {}
            longer = self.settings.longer_without_plans
            count = generations if used.size == len(NAMES) else generations * longer
            for generation in range(strategy.generation, count):
                step, last = number * generations * longer + generation + 1, generation + 1 == count
                self._advance(strategy, used, origin, (start, again), step)
                if (generation + 1) % self.settings.check_every == 0 or last:
                    self._check(tried, _spread(strategy.mean, used, origin), step)
                self._save(tried, number + last, {} if last else strategy.state())
        return self._keep(tried, kept)

    def about(self, kept: Candidate) -> dict[str, Any]:
        """Return what the policy's file says of how it was found."""
        names = ("validation_mean", "validation_log", "training_mean", "training_log", "both_mean", "both_log")
        figures = self.judge.figures(kept)
        return {"against": self.judge.rule, "log_ratios": dict(zip(names, figures.tolist(), strict=True))}

    def _starts(self, kept: Candidate | None) -> tuple[str, ...]:
        return ("kept",) if isinstance(kept, LinearPriority) else self.settings.starts

    def _strategy(self, start: str, kept: Candidate | None) -> tuple[CmaEs, np.ndarray, np.ndarray]:
        """(search, the features that it weighs, the weights that it begins at)."""
        settings, plans = self.settings, start in ("zero", "planner")
        origin = np.zeros(len(NAMES))
        if start == "planner":
            origin = PLANNER.weights
        elif isinstance(kept, LinearPriority):
            origin, plans = kept.weights, kept.plans
        used = np.arange(len(NAMES) if plans else PLAN)
        largest = max(1.0, float(np.abs(origin).max()))
        step = settings.step_zero if start in ("linear", "zero") else settings.step_planner * largest
        return CmaEs(origin[used], step, settings.population), used, origin

    def _advance(
        self, strategy: CmaEs, used: np.ndarray, origin: np.ndarray, search: tuple[str, int], step: int
    ) -> None:
        """One generation: all points on the same windows, drawn anew."""
        names = ("batch", "evolution", self.phase, *search, strategy.generation)
        windows = drawn_windows(self.problems, self.settings.windows, generator(self.seed, *names, "windows"))
        points = strategy.ask(generator(self.seed, *names, "points"))
        reference = windows.bsld(self.judge.rule)
        values = np.array([self._fitness(windows, _spread(point, used, origin), reference) for point in points])
        tell_generation(strategy, points, values, self.curve, step, phase=self.phase)

    def _fitness(self, windows: Windows, weights: np.ndarray, reference: np.ndarray) -> float:
        values = windows.bsld(LinearPriority(weights))
        mean, logarithm = log_ratios(values, reference)
        kinds = {"mean": mean, "log": logarithm, "both": mean + logarithm, "ratio": float((values / reference).mean())}
        return kinds[self.settings.fitness]

    def _check(self, tried: _Tried, weights: np.ndarray, step: int) -> None:
        figures = self.judge.figures(LinearPriority(weights))
        tried.add(weights, figures)
        record_ratios(self.curve, figures, step=step, phase=self.phase)

    def _keep(self, tried: _Tried, kept: Candidate | None) -> Candidate:
        searched = zip(tried.weights, tried.figures, strict=True)
        best: list[tuple[float, Candidate]] = [(merit(each), LinearPriority(weights)) for weights, each in searched]
        best += [(merit(self.judge.figures(candidate)), candidate) for candidate in self._untrained(kept)]
        return min(best, key=lambda entry: entry[0])[1]

    def _untrained(self, kept: Candidate | None) -> Iterator[Candidate]:
        if kept is not None:
            yield kept
        if "rules" in self.settings.candidates:
            yield from CORRECT_RULES
        if "planner" in self.settings.candidates:
            yield PLANNER

    def _resume(self, tried: _Tried) -> tuple[int, dict[str, np.ndarray]]:
        """(searches that are finished, state of the interrupted one), where there is progress to resume."""
        saved = read_progress(self.progress, _PROGRESS, self.digest)
        if saved is None:
            return 0, {}
        tried.weights, tried.figures = saved.arrays["weights"], saved.arrays["figures"]
        return saved.meta["finished"], saved.group("search")

    def _save(self, tried: _Tried, finished: int, state: Mapping[str, np.ndarray]) -> None:
        arrays = {"weights": tried.weights, "figures": tried.figures}
        arrays |= {f"search/{name}": value for name, value in state.items()}
        write_checkpoint(self.progress, {"kind": _PROGRESS, "digest": self.digest, "finished": finished}, arrays)


def _spread(point: np.ndarray, used: np.ndarray, origin: np.ndarray) -> np.ndarray:
    weights = np.array(origin)
    weights[used] = point
    return weights
