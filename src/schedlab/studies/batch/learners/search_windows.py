"""Windows that searches are scored on, and what is said of a candidate against a rule on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.config.contract import Split
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.studies.batch.jobs import SHORT
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.simulator.simulate import Priorities

Candidate = Priorities


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
