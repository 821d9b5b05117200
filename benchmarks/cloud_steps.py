"""Steps a second of schedlab/CloudReplay-v0 under random actions, on one core."""

from __future__ import annotations

import time

import numpy as np

from schedlab.studies.cloud.env import make

STEPS = 100_000


def main() -> None:
    """Print the rate."""
    env, actions = make(seed=0), np.random.default_rng(0).integers(27, size=STEPS).tolist()
    env.reset()
    begin = time.perf_counter()
    for action in actions:
        if any(env.step(action)[2:4]):
            env.reset()
    print(f"{STEPS / (time.perf_counter() - begin):,.0f} steps/s")


if __name__ == "__main__":
    main()
