"""Every course of a job of three intervals, against which plans are held."""

import itertools
from collections.abc import Iterator

from schedlab.studies.cloud.model.allocation import ACTIONS
from schedlab.studies.cloud.replay.env import CloudReplayEnv


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
