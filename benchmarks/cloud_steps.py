"""Steps a second of schedlab/CloudReplay-v0 under random actions, alone and side by side. OMP_NUM_THREADS=1 for one core."""

from __future__ import annotations

import time

import numpy as np

from schedlab.studies.cloud import env, env_vector

STEPS, PLACES = 100_000, 1024


def alone() -> float:
    """Return the rate of one environment, steps per second of CPU time."""
    one, actions = env.make(seed=0), np.random.default_rng(0).integers(27, size=STEPS).tolist()
    one.reset()
    begin = time.process_time()
    for action in actions:
        if any(one.step(action)[2:4]):
            one.reset()
    return STEPS / (time.process_time() - begin)


def side_by_side() -> float:
    """Return the rate of the vectorised environment."""
    many, actions = env_vector.make(num_envs=PLACES, seed=0), np.random.default_rng(0).integers(27, size=(STEPS // PLACES, PLACES))
    many.reset()
    begin = time.process_time()
    for row in actions:
        many.step(row)
    return actions.size / (time.process_time() - begin)


if __name__ == "__main__":
    print(f"alone {alone():,.0f} steps/s, {PLACES} places {side_by_side():,.0f} steps/s")
