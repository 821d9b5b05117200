"""Full and partial trainings of a job on constant allocations, and what they cost: the ledger of a search."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.replay import Replay, towards

WITHIN = 0.05  # above the best allocation that keeps the limits, up to which an allocation counts as found


@dataclass(frozen=True)
class Course:
    """Going straight to each of n allocations and staying there: time (s), cost ($) and waste up to the end of each of
    E intervals, (E, n); infinite where the allocation does not hold the job.
    """

    time: np.ndarray
    cost: np.ndarray
    waste: np.ndarray


def course_of(replay: Replay) -> Course:
    """Return the courses to all allocations."""
    target = np.arange(len(replay.lattice))
    here, shape = np.full(len(target), replay.lattice.start), (replay.intervals, len(target))
    seconds, dollars, waste = np.empty(shape), np.empty(shape), np.empty(shape)
    for interval in range(replay.intervals):
        there = replay.cut_to_slots(interval, replay.lattice.following[here, towards(replay, here, target)])
        seconds[interval] = replay.seconds[interval, there] + np.where(there != here, replay.restart, 0.0)
        dollars[interval] = seconds[interval] * replay.price[there] / 3600.0
        waste[interval] = (1.0 - replay.busy[there]) / replay.intervals
        here = there
    whole = np.where(replay.fits & (here == target), 1.0, np.inf)
    return Course(*(values.cumsum(axis=0) * whole for values in (seconds, dollars, waste)))


@dataclass
class Trials:
    """The search for an allocation of one job.

    used      full trainings that it took so far; a part of a training counts as its share
    numbers   allocations that were trained to the end, and values the objectives that were seen there, the excess over
              the limits included
    points    (trainings used, share by which the allocation recommended then is above the best one; infinite where it
              breaks a limit), a point where that changes
    """

    problem: CloudProblem
    preference: str
    most: float
    used: float = 0.0
    numbers: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    points: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        replay = self.replay = self.problem.replay
        self.course, self.weights = course_of(replay), weights_of(self.preference)
        self.objective = replay.objective(
            self.weights, self.course.time[-1], self.course.cost[-1], self.course.waste[-1]
        )
        finite = np.isfinite(self.objective)
        over = np.zeros(len(finite))
        excess = replay.constraints.excess(self.course.time[-1][finite], self.course.cost[-1][finite])
        over[finite] = (excess + replay.constraints.steady[finite]).sum(axis=1)
        self.kept = finite & (over <= 1e-9)
        self.best = float(self.objective[self.kept].min())
        self.penalised = self.objective + replay.constraints.settings.multiplier * over
        self.fits = np.flatnonzero(finite)
        self.recommended: int | None = None

    @property
    def left(self) -> float:
        """Trainings that may still be used."""
        return self.most - self.used

    def train(self, number: int) -> float:
        """Train the job on an allocation to the end; recommend the best of all that were trained. Returns what was
        seen.
        """
        self.used += 1.0
        self.numbers.append(int(number))
        self.values.append(float(self.penalised[number]))
        self.recommend(self.numbers[int(np.argmin(self.values))])
        return self.values[-1]

    def part(self, number: int, begin: int, end: int) -> float:
        """Train the job on an allocation from one interval to another, and return the objective that this lets expect,
        the excess over the limits included: the rest goes like the last interval.
        """
        self.used += (end - begin) / self.replay.intervals
        left = self.replay.intervals - end
        expected = []
        for values in (self.course.time, self.course.cost, self.course.waste):
            last = values[end - 1, number] - (values[end - 2, number] if end > 1 else 0.0)
            expected.append(float(values[end - 1, number] + left * last))
        time, cost, waste = expected
        excess = self.replay.constraints.excess(np.array([time]), np.array([cost])).sum()
        penalty = self.replay.constraints.settings.multiplier * float(excess)
        return float(self.replay.objective(self.weights, time, cost, waste)) + penalty

    def recommend(self, number: int) -> None:
        """Note which allocation would be taken now."""
        self.recommended = int(number)
        value = float(self.objective[number]) / self.best - 1.0 if self.kept[number] else np.inf
        self.note(value)

    def note(self, above: float) -> None:
        """Note by what share the present recommendation is above the best allocation."""
        if not self.points or self.points[-1][1] != above:
            self.points.append((self.used, float(above)))

    def needed(self) -> tuple[float, bool]:
        """Return the trainings until a recommendation was WITHIN the best for the first time, and whether one was; all
        that were used otherwise.
        """
        found = [used for used, above in self.points if above <= WITHIN + 1e-9]
        return (found[0], True) if found else (self.used, False)
