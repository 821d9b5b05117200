"""Speed of the replay of a training job on one core: steps of schedlab/CloudReplay-v0 under random actions, alone and
side by side, and the best constant allocation of `cifar10` (oracle_static).

    OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/cloud_steps.py [--rounds 9]

CPU time; median of the rounds, smallest and largest in brackets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from schedlab.config import experiment
from schedlab.config.runtime import freeze
from schedlab.stages.studies import find_study
from schedlab.studies.cloud.prepare import scenario_of
from schedlab.studies.cloud.replay import env
from schedlab.studies.cloud.replay import vector as env_vector
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.replay import make_replay
from schedlab.studies.cloud.rules.oracle import best_constant

STEPS, PLACES, SEARCHES = 100_000, 1024, 20


def alone(steps: int = STEPS) -> Callable[[], None]:
    """Return what takes steps of one environment."""
    one, actions = env.make(seed=0), np.random.default_rng(0).integers(27, size=steps).tolist()
    one.reset()

    def step() -> None:
        for action in actions:
            if any(one.step(action)[2:4]):
                one.reset()

    return step


def side_by_side(steps: int = STEPS, places: int = PLACES) -> Callable[[], None]:
    """Return what takes steps of the vectorised environment, in whole rows of places."""
    many, actions = (
        env_vector.make(num_envs=places, seed=0),
        np.random.default_rng(0).integers(27, size=(steps // places, places)),
    )
    many.reset()

    def step() -> None:
        for row in actions:
            many.step(row)

    return step


def searching(cache: Path | None = None) -> tuple[Callable[[], None], int, int]:
    """Return what lays `cifar10` out and finds its best constant SEARCHES times, how many allocations there are, how
    many hold the job.
    """
    scenario = scenario_of(freeze.problem_part(experiment.load("conf", "small", find_study, cache), "cloud", "cifar10"))
    model, weights = scenario.job.step.parameters(), weights_of("balanced")
    replay = make_replay(scenario, model)

    def search() -> None:
        for _ in range(SEARCHES):
            best_constant(make_replay(scenario, model), weights)

    return search, len(replay.lattice), int(replay.fits.sum())


def seconds(work: Callable[[], None], rounds: int) -> list[float]:
    """Return the CPU seconds of each round, after one that is not counted, rising."""
    found = []
    for _ in range(rounds + 1):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return sorted(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    for name, work, steps in (
        ("alone", alone(), STEPS),
        (f"{PLACES} places", side_by_side(), STEPS // PLACES * PLACES),
    ):
        taken = seconds(work, rounds)
        print(f"{name}: {steps / median(taken):,.0f} steps/s ({steps / taken[-1]:,.0f} to {steps / taken[0]:,.0f})")
    search, allocations, fitting = searching()
    taken = [1e3 * each / SEARCHES for each in seconds(search, rounds)]
    what = f"oracle_static over {allocations:,} allocations, of which {fitting:,} hold the job"
    print(f"{what}: {median(taken):.1f} ms ({taken[0]:.1f} to {taken[-1]:.1f})")


if __name__ == "__main__":
    main()
