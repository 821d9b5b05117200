"""Decisions and gradient steps a second of the ramp study's DQN, in the published setting with its defects.

    python benchmarks/ramp_dqn.py [--graphs DIR] [--beta A]

Values are those of conf/learner/ramp/dqn.yaml. CPU time of one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.readers import read_yaml
from schedlab.config.schema import validate
from schedlab.learning.prioritised_dqn.actors import Actor
from schedlab.learning.prioritised_dqn.learner import NStep, QNetwork, errors, vector_reader
from schedlab.learning.replay_memory import PrioritisedReplay
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.learners.settings import RampDQNSettings
from schedlab.studies.ramp.learners.stock import SeenProblem
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.scenario import published_scenario

VALUES = Path(__file__).resolve().parent.parent / "conf/learner/ramp/dqn.yaml"


def values_of_learner() -> dict[str, Any]:
    """Return the values of the learner's file."""
    return {name: value for name, value in read_yaml(VALUES).items() if name != "name"}


def per_second(count: int, work: Callable[[], object]) -> float:
    """Return how often a second a call does its work, of which it does `count`."""
    began = time.process_time()
    work()
    return count / (time.process_time() - began)


def print_speed(problem: RampProblem) -> None:
    """Print decisions a second, random and by the network, and gradient steps a second."""
    settings = validate(RampDQNSettings, values_of_learner())
    seen = SeenProblem(problem, settings.environment)
    env = seen.env(seen.units("train")[0], 0)
    online, target = (
        QNetwork(vector_reader(settings, env.observation_space), int(env.action_space.n), settings) for _ in range(2)
    )
    actor, rounds = (
        Actor(0, settings, partial(NStep, settings.n_steps, settings.gamma), {"a": seen}, ("a",), 0),
        4000 // settings.train_freq,
    )
    rows = [row for _ in range(rounds) for row in actor.play(online.values, 1.0).rows]
    for name, epsilon in (("random", 1.0), ("by the network", 0.0)):
        rate = per_second(
            rounds * settings.train_freq, lambda e=epsilon: [actor.play(online.values, e) for _ in range(rounds)]
        )
        print(f"decisions, {name}: {rate:,.0f}/s")
    replay = PrioritisedReplay(settings.buffer_size, settings.alpha, settings.eps)
    replay.add({name: np.stack([row[name] for row in rows]) for name in rows[0]}, np.ones(len(rows)))
    random, batch = np.random.default_rng(0), settings.batch_size

    def update() -> None:
        places, _, columns = replay.draw(random, batch, 0.4)
        _, wrong = errors(online, target, columns, settings.double)
        wrong.abs().mean().backward()
        replay.set_errors(places, wrong.detach().numpy())

    update()
    print(f"draws of {batch}: {per_second(500, lambda: [replay.draw(random, batch, 0.4) for _ in range(500)]):,.0f}/s")
    print(
        f"gradients on {batch}, without the optimiser: {per_second(300, lambda: [update() for _ in range(300)]):,.0f}/s"
    )


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", help="folder of graph files (default: PipeDream's in SCHEDLAB_DATA)")
    parser.add_argument("--beta", default="A", choices=("A", "B", "C", "D"))
    arguments = parser.parse_args()
    use_one_thread()
    scenario = published_scenario(arguments.beta, compat=True, episodes={"validation": 4, "test": 10})
    print_speed(RampProblem(scenario, read_graphs(arguments.graphs or find_graphs("graphs"))))


if __name__ == "__main__":
    main()
