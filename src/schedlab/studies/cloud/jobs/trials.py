"""Full and partial trainings of a job on constant allocations, and the record that a search keeps of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.replay import Replay, straight_courses

WITHIN = 0.05  # an allocation counts as found up to this share above the best one that keeps the limits


@dataclass(frozen=True)
class Course:
    """Totals of going straight to each of n allocations and staying there: time (s), cost ($) and waste up to the end
    of each of E intervals, each (E, n); infinite if the memory of the allocation does not suffice for the job.
    """

    time: np.ndarray
    cost: np.ndarray
    waste: np.ndarray


def course_of(replay: Replay) -> Course:
    """Return the courses to all allocations."""
    shape, here = replay.seconds.shape, np.empty(0)
    seconds, dollars, waste = np.empty(shape), np.empty(shape), np.empty(shape)
    for interval, here, changed in straight_courses(replay):
        seconds[interval] = replay.seconds[interval, here] + np.where(changed, replay.restart, 0.0)
        dollars[interval] = seconds[interval] * replay.price[here] / 3600.0
        waste[interval] = (1.0 - replay.busy[here]) / replay.intervals
    whole = np.where(replay.fits & (here == np.arange(shape[1])), 1.0, np.inf)
    return Course(*(values.cumsum(axis=0) * whole for values in (seconds, dollars, waste)))


@dataclass
class Trials:
    """The record of a search for the allocation of one job.

    most      budget, in full trainings
    used      full trainings used so far; a partial training counts by its share
    numbers   allocations that were trained to the end
    values    their objectives, including the excess over limits
    points    (trainings used, share by which the recommended allocation is above the best one, infinite if it breaks a
              limit), whenever this share changes
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
        """The part of the budget that is left, in trainings."""
        return self.most - self.used

    def train(self, number: int) -> float:
        """Train the job on an allocation to the end, and recommend the best of all allocations trained so far. Return
        the objective of this training, including the excess over limits.
        """
        self.used += 1.0
        self.numbers.append(int(number))
        self.values.append(float(self.penalised[number]))
        self.recommend(self.numbers[int(np.argmin(self.values))])
        return self.values[-1]

    def part(self, number: int, begin: int, end: int) -> float:
        """Train the job on an allocation from one interval to another. Return the objective to be expected of a full
        training, including the excess over limits, if all further intervals are like the last one.
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
        """Recommend an allocation and record its distance from the best one."""
        self.recommended = int(number)
        value = float(self.objective[number]) / self.best - 1.0 if self.kept[number] else np.inf
        self.note(value)

    def note(self, above: float) -> None:
        """Record the share by which the present recommendation is above the best allocation, if it has changed."""
        if not self.points or self.points[-1][1] != above:
            self.points.append((self.used, float(above)))

    def needed(self) -> tuple[float, bool]:
        """Return the number of trainings until a recommendation was first WITHIN the best one and True; if there was
        none, the number of trainings used and False.
        """
        found = [used for used, above in self.points if above <= WITHIN + 1e-9]
        return (found[0], True) if found else (self.used, False)
