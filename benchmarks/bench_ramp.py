"""Rates of the ramp study on the shipped graphs: a large job's duration, episodes, decisions with observation,
topology.
"""

from __future__ import annotations

import numpy as np
import pytest
import ramp

from schedlab.studies.ramp.env.env import RampEnv
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import RampPlacement
from schedlab.studies.ramp.rules import RULES
from schedlab.studies.ramp.scenario import ON_SHIPPED, SHIPPED, published_scenario
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode
from schedlab.studies.ramp.simulator.timing import JobTimes

TOPOLOGY = Ramp(4, 4, 2)


@pytest.fixture
def simulation():
    return Simulation(published_scenario("A", compat=False, **ON_SHIPPED), read_graphs(ramp.ROOT / SHIPPED))


def bench_lookahead_cold(measure):
    """A job of 174 ops, split 16 ways (2,424 shards, 51,152 edges), placed and simulated for the first time."""
    rules = RampPlacement(TOPOLOGY)

    def place(times: JobTimes) -> int:
        ramp.place_large_job(times, rules)
        return 1

    measure(place, "s", rounds=11, setup=lambda: JobTimes(TOPOLOGY, LegacySettings()))


def bench_lookahead_warm(measure):
    """The same job, placed and simulated a second time."""
    rules, times = RampPlacement(TOPOLOGY), JobTimes(TOPOLOGY, LegacySettings())

    def place() -> int:
        for _ in range(20):
            ramp.place_large_job(times, rules)
        return 20

    measure(place, "s", rounds=11)


@pytest.mark.parametrize("rule", ["para_max", "para_min"])
def bench_episode(measure, simulation, rule):
    """An episode of 1,000 arrivals."""

    def play() -> int:
        run_episode(simulation, RULES[rule], 1)
        return 1

    measure(play, "s")


def bench_observed_decisions(measure, quick, simulation):
    """Decisions of `para_min`, each with an observation."""
    measure(lambda: ramp.step_with_observations(simulation, 1 if quick else 3), "steps")


def bench_environment_steps(measure, quick, simulation):
    """`schedlab/Ramp-v0`: steps with random valid actions, resets included."""
    step_at_random(measure, quick, RampEnv(simulation, seed=0))


def bench_graph_id_steps(measure, quick, simulation):
    """The same steps with the observation `graph_id` and the mask of free blocks."""
    step_at_random(
        measure, quick, RampEnv(simulation, EnvironmentSettings(observation="graph_id", mask="blocks"), seed=0)
    )


def step_at_random(measure, quick, env):
    draws, steps = np.random.default_rng(0), 1_000 if quick else 5_000
    env.reset()

    def step() -> int:
        for _ in range(steps):
            if env.step(int(draws.choice(np.flatnonzero(env.action_masks()))))[2]:
                env.reset()
        return steps

    measure(step, "steps")


def bench_topology_512(measure):
    """Search for all blocks of up to 16 of 512 servers."""

    def build() -> int:
        ramp.find_blocks(Ramp(8, 8, 8))
        return 1

    measure(build, "s")
