"""The course of a run without its weights: its epochs, its decisions, the changes of resources, and their effects.

A course depends only on architectures and pinned epoch seconds, so all runs of a scenario are known before any of them
is trained. Times are whole microseconds, so that charges add up without rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.decisions import GrowthAction
from schedlab.studies.adaptation.network.architecture import Architecture
from schedlab.studies.adaptation.scenario import AdaptationScenario, GrowthSettings
from schedlab.studies.adaptation.simulator.table import DIGITS
from schedlab.studies.adaptation.simulator.timing import MICROSECONDS, EpochSeconds, Timing, microseconds

# (architecture, number of the decision, seconds left, actions so far) -> action
Choose = Callable[[Architecture, int, float, tuple[int, ...]], int]


@dataclass(frozen=True)
class Node:
    """A state of training, which together with a shuffle stream determines the weights.

    epoch    number of trained epochs
    history  the events so far, each as (epoch before which it took place, growth action or change of resources)

    Doing nothing is not part of the history, because it has no effect by itself.
    """

    epoch: int
    history: tuple[tuple[int, str], ...] = ()

    @property
    def key(self) -> str:
        """The node's name in a store, such as `0008 6:deepen-0`."""
        return " ".join([f"{self.epoch:04d}", *(f"{epoch}:{event}" for epoch, event in self.history)])


@dataclass(frozen=True)
class Step:
    """One epoch of a run, which leads from `parent` to `node`.

    architecture  the network in this epoch
    seconds       charge of the epoch
    time_left_us  microseconds of the budget left before the epoch
    events        `down`, `up` and the growth action before the epoch, in order
    action        action taken before the epoch; None: no decision was due
    restart       whether the optimizer is reset, as the growth settings specify
    plenty        whether the epoch has the added resources, with which growth is possible
    returns_to    node to whose network a `down` in `events` returns
    teacher       node whose network gives soft targets after a `down`
    epochs_down   number of epochs already trained with this teacher
    """

    node: Node
    parent: Node
    architecture: Architecture
    seconds: EpochSeconds
    time_left_us: int
    events: tuple[str, ...] = ()
    action: int | None = None
    restart: bool = False
    plenty: bool = True
    returns_to: Node | None = None
    teacher: Node | None = None
    epochs_down: int = 0

    @property
    def time_left(self) -> float:
        """Seconds of the budget left before the epoch."""
        return self.time_left_us / MICROSECONDS


@dataclass(frozen=True)
class Run:
    """One sequence of decisions, written with one character for each, and its epochs."""

    sequence: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Stretch:
    """A span of time with constant resources.

    plenty  whether it has the added resources, with which growth is possible
    end_us  its end, microseconds since the start of training
    """

    plenty: bool
    end_us: int


@dataclass(frozen=True)
class Position:
    """The state of a run between two epochs.

    node, architecture    after the last epoch
    clock_us              microseconds since the start of training
    before_growth         node and architecture at the last `up`
    stretch               number of the current span
    plenty                whether the last epoch had the added resources
    grown                 number of epochs that were begun with the added resources
    actions               actions taken so far
    pending               action that takes effect with the next epoch; None: no decision was taken
    teacher, epochs_down  as in Step
    """

    node: Node
    architecture: Architecture
    clock_us: int
    before_growth: tuple[Node, Architecture]
    stretch: int = 0
    plenty: bool = True
    grown: int = 0
    actions: tuple[int, ...] = ()
    pending: int | None = None
    teacher: Node | None = None
    epochs_down: int = 0


# position -> (the next epoch, or None if it does not fit; the position after it)
Advance = Callable[[Position], tuple[Step | None, Position]]


@dataclass(frozen=True)
class Course:
    """The rules for all runs of a scenario.

    An epoch is run if its full charge fits into its span. Otherwise the clock moves to the end of the span: a change of
    resources interrupts the epoch, and an interrupted epoch has no effect. A change takes effect with the first epoch
    after it. Decisions are due at the start of every `every`-th epoch with added resources, until there are `decisions`
    of them. A decision whose epoch does not fit has no effect.
    """

    stretches: tuple[Stretch, ...]
    actions: tuple[str, ...]
    decisions: int
    every: int
    growth: GrowthSettings
    timing: Timing

    def finished(self, position: Position) -> bool:
        """Return whether the budget is used up."""
        return position.stretch == len(self.stretches)

    def time_left_us(self, position: Position) -> int:
        """Return the microseconds of the budget that are left."""
        return self.stretches[-1].end_us - position.clock_us

    def due(self, position: Position) -> bool:
        """Return whether a decision must be taken before `advance`."""
        taken = len(position.actions)
        plenty = not self.finished(position) and self.stretches[position.stretch].plenty
        return plenty and taken < self.decisions and position.grown == taken * self.every

    def decide(self, position: Position, action: int) -> Position:
        """Return the position after a decision. Raises UserError for an unknown action.

        action: number of a growth action; the number after the last growth action means doing nothing
        """
        if not 0 <= action <= len(self.actions):
            what = f"action {action} is none of this scenario's"
            raise UserError(what, expected=f"a number from 0 to {len(self.actions)}")
        return replace(position, actions=(*position.actions, action), pending=action)

    def upcoming(self, position: Position) -> Step:
        """Return the next epoch, whether or not it fits."""
        return self._next(position)[0]

    def advance(self, position: Position, measured: EpochSeconds | None = None) -> tuple[Step | None, Position]:
        """Return the next epoch and the position after it. If it does not fit: None and the end of its span.

        measured: measured seconds of the epoch, which are charged instead of those of the timing
        """
        stretch = self.stretches[position.stretch]
        step, before_growth = self._next(position)
        if measured is not None:
            step = replace(step, seconds=measured)
        clock = position.clock_us + microseconds(step.seconds.total)
        if clock > stretch.end_us:
            begun = position.grown + stretch.plenty
            return None, replace(
                position, clock_us=stretch.end_us, stretch=position.stretch + 1, grown=begun, pending=None
            )
        return step, replace(
            position,
            node=step.node,
            architecture=step.architecture,
            clock_us=clock,
            before_growth=before_growth,
            stretch=position.stretch + (clock == stretch.end_us),
            plenty=stretch.plenty,
            grown=position.grown + stretch.plenty,
            pending=None,
            teacher=step.teacher,
            epochs_down=step.epochs_down + 1 if step.teacher else 0,
        )

    def _next(self, position: Position) -> tuple[Step, tuple[Node, Architecture]]:
        """Return the next epoch, whether or not it fits, and the `before_growth` of the position after it."""
        plenty = self.stretches[position.stretch].plenty
        architecture, before_growth, teacher = position.architecture, position.before_growth, position.teacher
        events: list[str] = []
        if position.plenty and not plenty:
            events.append("down")
            architecture, teacher = before_growth[1], (position.node if self.growth.soft_target_weight else None)
        if plenty and not position.plenty:
            events.append("up")
            before_growth, teacher = (position.node, architecture), None
        if position.pending is not None and position.pending < len(self.actions):
            events.append(self.actions[position.pending])
            architecture = growth_action(events[-1], self.growth).apply(architecture)
        epoch, history = position.node.epoch, position.node.history
        step = Step(
            node=Node(epoch + 1, (*history, *((epoch, event) for event in events))),
            parent=position.node,
            architecture=architecture,
            seconds=self.timing.epoch_seconds(architecture),
            time_left_us=self.time_left_us(position),
            events=tuple(events),
            action=position.pending,
            restart=self._restarts(events, position.pending, plenty),
            plenty=plenty,
            returns_to=before_growth[0] if "down" in events else None,
            teacher=teacher,
            epochs_down=position.epochs_down,
        )
        return step, before_growth

    def _restarts(self, events: list[str], action: int | None, plenty: bool) -> bool:
        """Return whether the optimizer is reset before an epoch.

        Growth and shrinking back reset it. In the published system, each epoch with added resources does so, whatever
        the decision.
        """
        if any(event != "up" for event in events):
            return True
        asked = action is not None or self.growth.optimizer == "fresh_every_decision"
        return self.growth.noop == "reset" and plenty and asked


def growth_action(name: str, growth: GrowthSettings) -> GrowthAction:
    """Return the growth action of a name (`deepen-1`, `widen-0`)."""
    kind, block = parse_action(name)
    bn = False if growth.bn_init == "none" else None
    return GrowthAction(block, "widen" if kind == "widen" else "deepen", bn, growth.widen_factor)


def parse_action(action: str) -> tuple[str, int]:
    """Return the kind (deepen or widen) and the block in the name of a growth action."""
    kind, _, block = action.partition("-")
    return kind, int(block)


def growth_actions(scenario: AdaptationScenario, start: Architecture) -> tuple[str, ...]:
    """Return the names of the growth actions in order; doing nothing has the number after the last one.

    Raises UserError for an invalid block, and for a model without a block that may grow.
    """
    names = scenario.actions or tuple(f"deepen-{block}" for block in range(start.deepenable_blocks))
    for name in names:
        growth_action(name, scenario.growth).apply(start)
    if not names:
        what = f"model {scenario.model.name} has no block that may grow"
        raise UserError(what, where=f"scenario {scenario.name}: model")
    return names


def adaptation_course(scenario: AdaptationScenario, start: Architecture, timing: Timing) -> Course:
    """Return the course of a scenario's runs from its adaptation point on. Raises UserError for impossible actions."""
    names = growth_actions(scenario, start)
    if any(name.startswith("widen") for name in names) and not timing.prices_widening:
        what = f"the timing {timing.name} has no price for wider blocks"
        expected = "one that computes the price from the arithmetic"
        remedy = "choose gpu: flops, or remove the widen actions"
        raise UserError(what, where=f"scenario {scenario.name}: timing", expected=expected, remedy=remedy)
    if any(name.startswith("widen") for name in names) and scenario.changes:
        raise UserError(
            "a widened network has no way back to narrower layers",
            where=f"scenario {scenario.name}: changes",
            expected="no change of resources where an action widens",
            remedy="remove the changes or the widen actions",
        )
    changes = [(True, scenario.adapt_at), *((change.change == "up", change.time) for change in scenario.changes)]
    ends = [*(time for _, time in changes[1:]), scenario.budget]
    stretches = tuple(Stretch(plenty, microseconds(end)) for (plenty, _), end in zip(changes, ends, strict=True))
    return Course(stretches, names, scenario.decisions, scenario.decision_every, scenario.growth, timing)


def trunk_run(scenario: AdaptationScenario, start: Architecture, timing: Timing) -> Run:
    """Return the run without adaptation, from the first epoch to the end of the budget."""
    course = Course((Stretch(False, microseconds(scenario.budget)),), (), 0, 1, scenario.growth, timing)
    origin = Node(0)
    position = Position(origin, start, 0, before_growth=(origin, start), plenty=False)
    return next(_extend(course, position, "", ()))


def adaptation_start(scenario: AdaptationScenario, start: Architecture, timing: Timing) -> Position:
    """Return the adaptation point, after all trunk epochs that fit before it. The time of an unfinished one is lost."""
    charge = microseconds(timing.epoch_seconds(start).total)
    clock = microseconds(scenario.adapt_at)
    node = Node(clock // charge)
    return Position(node, start, clock, before_growth=(node, start))


def all_runs(course: Course, start: Position) -> list[Run]:
    """Return the runs of all sequences, in lexicographic order. Raises UserError if a run has no epoch."""
    found = list(_extend(course, start, "", ()))
    for run in found:
        if not run.steps:
            what = f"sequence {run.sequence} has no time for one epoch after the adaptation point"
            expected = f"{course.time_left_us(start) / MICROSECONDS:g} s to be enough for the slowest epoch"
            remedy = "adapt earlier, raise the budget, or choose a faster timing"
            raise UserError(what, where="adapt_at", expected=expected, remedy=remedy)
    return found


def one_run(course: Course, start: Position, choose: Choose, advance: Advance | None = None) -> Run:
    """Return the run in which `choose` takes the decisions. Decisions that never become due are written as doing
    nothing.

    advance: called instead of `course.advance`, for a run that is trained while it is decided
    """
    position, steps, advance = start, [], advance or course.advance
    while not course.finished(position):
        if course.due(position):
            seconds = course.time_left_us(position) / MICROSECONDS
            position = course.decide(
                position, choose(position.architecture, len(position.actions), seconds, position.actions)
            )
        step, position = advance(position)
        steps += [step] if step else []
    taken = "".join(DIGITS[action] for action in position.actions)
    return Run(taken.ljust(course.decisions, DIGITS[len(course.actions)]), tuple(steps))


def _extend(course: Course, position: Position, prefix: str, steps: tuple[Step, ...]) -> Iterator[Run]:
    choices = DIGITS[: len(course.actions) + 1]
    while not course.finished(position):
        if course.due(position):
            for action, digit in enumerate(choices):
                yield from _extend(course, course.decide(position, action), prefix + digit, steps)
            return
        step, position = course.advance(position)
        steps = (*steps, step) if step else steps
    for rest in product(choices, repeat=course.decisions - len(prefix)):
        yield Run(prefix + "".join(rest), steps)
