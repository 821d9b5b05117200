"""Courses of small jobs: every one of a job of three intervals, against which plans are held, and episodes of two."""

import itertools
from collections.abc import Iterator

import numpy as np

from schedlab.studies.cloud.learners.exploration import Episodes
from schedlab.studies.cloud.model.allocation import ACTIONS
from schedlab.studies.cloud.replay.env import CloudReplayEnv

TINY = {
    "resource": {"gpu_count_max": 3, "cpu_count_min": 4, "cpu_count_max": 12, "memory_min": 8, "memory_max": 24},
    "job": {"epochs": 3.0},
    "start": {"gpu_count": 2, "cpu_count": 8, "memory_gb": 16},
}


def all_courses(env: CloudReplayEnv) -> Iterator[tuple[int, ...]]:
    """Play each sequence of three actions, and yield those in which the job never ran out of memory, at their end."""
    for course in itertools.product(range(ACTIONS), repeat=3):
        env.reset()
        for action in course:
            env.step(action)
            if env.failures:
                break
        if not env.failures:
            yield course


def episodes(*courses: tuple[float, list[int]]) -> Episodes:
    """Episodes of two intervals with the given first returns and actions."""
    returns = np.array([[first, 0.0] for first, _ in courses]).T
    actions = np.array([course for _, course in courses]).T
    seen = np.repeat(returns[..., None], 3, axis=-1)
    return Episodes(seen, seen > 0, actions, returns, np.zeros((*returns.shape, 0)))
