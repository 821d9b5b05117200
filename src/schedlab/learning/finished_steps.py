"""What a deterministic job has finished so far, step by step, so that it goes on there after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from schedlab.learning.checkpoints import read_progress, write_checkpoint

_KIND = "finished-step"
Arrays = Mapping[str, np.ndarray]


class FinishedSteps:
    """Results of steps, each in a file of its own that is written once; what lies there is read and not made again.

    digest: hash of all that determines the job. random: the stream that steps draw from; it goes on as if a step that is read had drawn.
    """

    def __init__(self, folder: Path, digest: str, random: np.random.Generator) -> None:
        self.folder, self.digest, self._random = folder, digest, random

    def __call__(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of the step `name`, which stands for it within the job: those kept, or else those that `make` returns."""
        file = self.folder / f"{name}.zip"
        kept = read_progress(file, _KIND, self.digest)
        if kept is not None:
            self._random.bit_generator.state = kept.meta["random"]
            return kept.arrays
        arrays = make()
        write_checkpoint(file, {"kind": _KIND, "digest": self.digest, "random": self._random.bit_generator.state}, arrays)
        return arrays


def make_again(name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return what `make` does, for a job that keeps nothing."""
    del name
    return make()
