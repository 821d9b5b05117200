"""A learning job: its phases and updates, the budget used, the points of its curves, and the file from which an
interrupted job resumes.

All random draws of a learner depend only on its seed and on counters (phase, update, episode). A job that is killed at
any update and started again therefore ends with the same bytes, the same curves and the same budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np

from schedlab.config.contract import Budget, Curve, CurvePlace, LearnPaths, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash
from schedlab.learning.checkpoints import Arrays, Checkpoint, read_checkpoint, read_progress, write_checkpoint


class Pace(NamedTuple):
    """The number of updates of a phase, and the number of updates between two saved states."""

    updates: int
    save_every: int


class Learning(Protocol):
    """Interface of a learner whose job can be resumed: its state between two updates, and the methods that change
    it.
    """

    def begin(self, phase: int) -> Pace:
        """Prepare a phase (optimisers, memories), and return the number of its updates."""

    def step(self, phase: int, update: int) -> bool | None:
        """Make one update. `update` starts at 0 in each phase. True: the phase ends early, with this update."""

    def end(self, phase: int) -> None:
        """Finish a phase after its last update; by default there is nothing to do."""
        del phase

    def state(self) -> tuple[Mapping[str, Any], Arrays]:
        """Return (JSON values, arrays by name) of everything that changes from update to update."""

    def load(self, kept: Checkpoint) -> None:
        """Restore a state that `state` returned; `begin` has been called for the phase."""


class LearningJob:
    """The learning job of one policy and seed.

    kind    kind of the learned policy, which is also part of the kind of its saved states
    values  JSON values of the settings that determine the result; scenarios, steps, seed and parent are added here. A
            saved state with other values is not resumed (the stage checks units and inputs)
    """

    def __init__(self, kind: str, values: Any, spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve) -> None:
        self.kind, self.spec, self.seed, self.paths, self.curve = kind, spec, seed, paths, curve
        phases = [[list(phase.scenarios), phase.steps] for phase in spec.train_on]
        self.digest = content_hash([kind, values, phases, seed, file_hash(paths.start) if paths.start else ""])
        self.progress = paths.progress / "learning.zip"
        self.phase = self.update = 0
        self.budget = Budget()

    def parent(self) -> Checkpoint | None:
        """Return the policy from which learning starts. Raises UserError if it is missing or of another kind."""
        return read_checkpoint(self.paths.start, self.kind) if self.paths.start is not None else None

    def run(self, learning: Learning, phases: int | None = None) -> None:
        """Run all phases (by default those of the policy), from the point where an interrupted job stopped."""
        kept, count = self.resume(), len(self.spec.train_on) if phases is None else phases
        while self.phase < count:
            pace = learning.begin(self.phase)
            if kept is not None:
                learning.load(kept)
                self._set_budget(kept)  # without the budget that `begin` has counted a second time
                kept = None
            elif self.phase:
                self.save(*learning.state())
            while self.update < pace.updates:
                over = learning.step(self.phase, self.update)
                self.update = pace.updates if over else self.update + 1
                if self.update % pace.save_every == 0:
                    self.save(*learning.state())
            learning.end(self.phase)
            self.phase, self.update = self.phase + 1, 0

    def point(self, metric: str, value: float, **place: Unpack[CurvePlace]) -> None:
        """Add a point to the curves, with the current phase and the budget used so far."""
        whole: Any = {"phase": self.phase, **place, **asdict(self.budget)}
        self.curve(metric, float(value), **whole)

    def record(self, values: Mapping[str, float], **place: Unpack[CurvePlace]) -> None:
        """Add a point for each of several metrics at one place."""
        for metric, value in values.items():
            self.point(metric, value, **place)

    def require_finite(self, total: float, what: str, steps: int) -> None:
        """Raise UserError if `total`, a sum over `what`, is not finite after so many steps."""
        if not math.isfinite(total):
            raise UserError(
                f"{what} are not finite after {steps} steps",
                where=f"{self.spec.name}.yaml: learner.learning_rate",
                expected="learning that does not diverge",
                remedy="lower the learning rate or scale the rewards down",
            )

    def resume(self) -> Checkpoint | None:
        """Return the last state that an interrupted job with the same values saved, and continue with its phase, update
        and budget. Return None if there is no such state or if it is damaged.
        """
        kept = read_progress(self.progress, f"{self.kind}-progress", self.digest)
        if kept is not None:
            self.phase, self.update = kept.meta["job"]
            self._set_budget(kept)
        return kept

    def save(self, meta: Mapping[str, Any], arrays: Arrays) -> None:
        """Write the state from which an interrupted job resumes."""
        about = {"kind": f"{self.kind}-progress", "digest": self.digest, "budget": asdict(self.budget)}
        write_checkpoint(self.progress, {**meta, **about, "job": [self.phase, self.update]}, arrays)

    def once(self, random: np.random.Generator, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the result of `make`, or the one that an interrupted job has stored in the step's file.

        random: the generator from which steps draw; its state is stored and restored with the step
        """
        file, kind = self.paths.progress / "steps" / f"{name}.zip", f"{self.kind}-step"
        kept = read_progress(file, kind, self.digest)
        if kept is not None:
            random.bit_generator.state = kept.meta["random"]
            self._set_budget(kept)
            return kept.arrays
        arrays = make()
        meta = {"kind": kind, "digest": self.digest, "budget": asdict(self.budget)}
        write_checkpoint(file, {**meta, "random": random.bit_generator.state}, arrays)
        return arrays

    def _set_budget(self, kept: Checkpoint) -> None:
        """Continue with a stored budget. The object stays the same, because other objects also count in it."""
        for name, used in kept.meta["budget"].items():
            setattr(self.budget, name, used)
