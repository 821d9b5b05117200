"""What the ramp study's simulator costs: a large job's duration, episodes under rules, decisions with observation, 512
servers.

    python benchmarks/ramp.py [--graphs DIR]

CPU time of one core, after a first job has loaded the compiled code. Without --graphs the shipped graphs are taken.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import RampPlacement
from schedlab.studies.ramp.placement.placers import Room, first_fit
from schedlab.studies.ramp.rules import RULES, Decision
from schedlab.studies.ramp.scenario import ON_SHIPPED, SHIPPED, published_scenario
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode
from schedlab.studies.ramp.simulator.timing import JobTimes

ROOT = Path(__file__).resolve().parent.parent
LARGE = ROOT / "tests/data/ramp/graph_resnet_like_12_blocks.json"


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def large_graph() -> ForwardGraph:
    """Return the forward pass of 87 ops, whose training step is split into 2,424 shards with 51,152 deps."""
    values = json.loads(LARGE.read_text())["resnet_like_12_blocks"]
    ids, kinds, *numbers = zip(*values["ops"], strict=True)
    return ForwardGraph("resnet_like", ids, kinds, *numbers, values["edges"])


def place_large_job(times: JobTimes, rules: RampPlacement) -> None:
    """Split the large job 16 ways, place it, and compute its duration."""
    split = times.split_by_quantum(training_graph(large_graph()), 16, 0.01)
    times.timing(split, first_fit(split, rules, Room(0, np.full(32, 80e9))))


def find_blocks(topology: Ramp) -> None:
    """Find all blocks of up to 16 servers."""
    rules = RampPlacement(topology)
    for degree in range(2, 17, 2):
        rules.blocks(degree)


def step_with_observations(simulation: Simulation, episodes: int) -> int:
    """Play episodes under para_min, observing each decision; return the number of decisions."""
    count, draws = 0, np.random.default_rng(0)
    for seed in range(100, 100 + episodes):
        simulation.reset(seed)
        while simulation.waiting is not None:
            observation = simulation.observation()
            simulation.act(RULES["para_min"](Decision(simulation.waiting, observation["action_mask"], draws)))
            count += 1
    return count


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=Path, default=ROOT / SHIPPED)
    folder = parser.parse_args().graphs
    topology = Ramp(4, 4, 2)
    rules = RampPlacement(topology)
    place_large_job(JobTimes(topology, LegacySettings()), rules)
    times = JobTimes(topology, LegacySettings())
    print(f"2,424 shards, 51,152 deps: {seconds(lambda: place_large_job(times, rules)):.3f} s cold", end="")
    print(f", {1e3 * seconds(lambda: place_large_job(times, rules)):.2f} ms warm (with mirroring)")
    changes = ON_SHIPPED if folder.resolve() == ROOT / SHIPPED else {}
    simulation = Simulation(published_scenario("A", compat=False, **changes), read_graphs(folder))
    for name in ("para_max", "para_min"):
        run_episode(simulation, RULES[name], 0)
        print(
            f"1,000 arrivals under {name}: {seconds(lambda name=name: run_episode(simulation, RULES[name], 1)):.2f} s"
        )
    decisions: list[int] = []
    step_with_observations(simulation, 3)
    spent = seconds(lambda: decisions.append(step_with_observations(simulation, 3)))
    print(f"decisions with observation: {decisions[0] / spent:,.0f}/s")
    print(f"512 servers with all blocks of up to 16: {seconds(lambda: find_blocks(Ramp(8, 8, 8))):.2f} s")


if __name__ == "__main__":
    main()
