"""Ways between allocations: which actions lead straight from one to another."""

from __future__ import annotations

import numpy as np

from schedlab.studies.cloud.model.allocation import action_of
from schedlab.studies.cloud.replay.replay import Replay


def towards(replay: Replay, here: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the actions that lead from allocations straight to others, int64 of the shape of `here`.

    Where the straight step runs out of memory, GPUs are given back and memory is taken first.
    """
    steps = replay.lattice.steps_to(here, target)
    straight = step_numbers(steps)
    gpus, cores, memory = np.moveaxis(steps, -1, 0)
    careful = step_numbers(np.stack([np.minimum(gpus, 0), cores, np.maximum(memory, 0)], axis=-1))
    fits = replay.fits[replay.lattice.following[here, straight]]
    return np.where(fits, straight, careful)


def step_numbers(steps: np.ndarray) -> np.ndarray:
    """Return the actions of steps (..., 3) of -1, 0 or 1."""
    return np.asarray(action_of(tuple(np.moveaxis(steps, -1, 0))))
