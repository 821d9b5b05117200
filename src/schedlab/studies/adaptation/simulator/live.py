"""Runs that are trained while they are decided, for policies that observe the training, and for wall-clock time.

The published system charges a job's budget with the elapsed seconds of the process. Simulations do not, because their
results would depend on the machine; a single run may.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.data.datasets import DataSet
from schedlab.studies.adaptation.network.architecture import Architecture
from schedlab.studies.adaptation.network.training import TrainState
from schedlab.studies.adaptation.scenario import AdaptationScenario
from schedlab.studies.adaptation.simulator.course import Course, Node, Position, Run, Step, Stretch, one_run
from schedlab.studies.adaptation.simulator.simulate import Job, TorchTrainer, Watch, rows_of
from schedlab.studies.adaptation.simulator.timing import EpochSeconds, microseconds
from schedlab.studies.adaptation.simulator.tree import Metrics

if TYPE_CHECKING:
    import pandas as pd

# (architecture, number of the decision, seconds left, actions so far, increase of the validation accuracy in the last
# epoch) -> action
ChooseLive = Callable[[Architecture, int, float, tuple[int, ...], float], int]


def run_live(
    scenario: AdaptationScenario,
    job: int,
    replicate: int,
    choose: ChooseLive,
    dataset: DataSet,
    watch: Watch | None = None,
    clock: Callable[[], float] | None = None,
) -> pd.DataFrame:
    """Train one run and ask for each decision when it is due; return rows as `simulate.run_sequence` does.

    clock: returns seconds. Each epoch is charged with its measured seconds, and an epoch that took longer than the time
    left is undone. Without a clock, the pinned seconds are charged, and the rows equal those of the same sequence in
    the simulation table, bit for bit. Raises UserError for values that do not fit together.
    """
    whole = Job(scenario, job, dataset)
    lead = (Stretch(False, microseconds(scenario.adapt_at)),) if scenario.adapt_at else ()
    course = replace(whole.course, stretches=(*lead, *whole.course.stretches))
    origin = Node(0)
    start = Position(origin, whole.start, 0, before_growth=(origin, whole.start), plenty=not lead)
    trainer = TorchTrainer(whole, replicate, switch=sys.maxsize if lead else 0)
    training = _Training(course, trainer, clock, watch, bool(lead))

    def decide(grown: Architecture, decision: int, seconds_left: float, taken: tuple[int, ...]) -> int:
        return choose(grown, decision, seconds_left, taken, training.slope)

    run = one_run(course, start, decide, training.advance)
    trunk, steps = run.steps[: training.trunk], run.steps[training.trunk :]
    if not steps:
        what = "not one epoch fitted behind the adaptation point"
        raise UserError(what, where="adapt_at", remedy="adapt earlier, or raise the budget")
    return rows_of(whole, replicate, [Run(run.sequence, steps)], training.metrics, lead=trunk)


@dataclass
class _Training:
    """The training of a run: its current network, the epochs so far and their metrics.

    in_lead: whether the adaptation point is still ahead; trunk: number of epochs before it
    """

    course: Course
    trainer: TorchTrainer
    clock: Callable[[], float] | None
    watch: Watch | None
    in_lead: bool
    trunk: int = 0
    steps: list[Step] = field(default_factory=list)
    metrics: dict[Node, Metrics] = field(default_factory=dict)
    _packed: dict[Node, tuple[bytes, Architecture]] = field(default_factory=dict)  # states to which a run may return

    def __post_init__(self) -> None:
        self.state: TrainState = self.trainer.initial()

    @property
    def slope(self) -> float:
        """Increase of the validation accuracy in the last epoch; 0 before two epochs or without validation images."""
        last = [self.metrics[step.node].get("validation_accuracy", 0.0) for step in self.steps[-2:]]
        return last[1] - last[0] if len(last) == 2 else 0.0

    def advance(self, position: Position) -> tuple[Step | None, Position]:
        """Run the next epoch if it fits; return it (else None) and the position after it."""
        if self.clock is None:
            step, after = self.course.advance(position)
            metrics = self._train(step) if step else {}
        else:
            step, after, metrics = self._timed(position)
        if step:
            self.steps.append(step)
            self.metrics[step.node] = metrics
            if self.watch:
                self.watch(step, metrics, self.state)
        if self.in_lead and after.stretch:
            self.in_lead, self.trunk, self.trainer.switch = False, len(self.steps), after.node.epoch
        if after.stretch != position.stretch:
            self._packed[after.node] = self.trainer.pack(self.state), after.architecture
        return step, after

    def _timed(self, position: Position) -> tuple[Step | None, Position, Metrics]:
        """Run the next epoch and charge its measured seconds; only afterwards is it known whether it fits."""
        clock, before = self.clock or time.perf_counter, self.trainer.pack(self.state)
        begin = clock()
        self.state, metrics = self.trainer.train(self.state, self.course.upcoming(position), self._recall)
        trained = clock()
        metrics |= self.trainer.evaluate(self.state)
        seconds = EpochSeconds(round(trained - begin, 6), round(clock() - trained, 6))
        step, after = self.course.advance(position, seconds)
        if step is None:
            self.state = self.trainer.unpack(before, position.architecture)
        return step, after, metrics

    def _train(self, step: Step) -> Metrics:
        self.state, metrics = self.trainer.train(self.state, step, self._recall)
        return metrics | self.trainer.evaluate(self.state)

    def _recall(self, node: Node) -> TrainState:
        return self.trainer.unpack(*self._packed[node]) if node.epoch else self.trainer.initial()
