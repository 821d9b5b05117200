"""How time and memory grow with size: jobs, hosts, servers, shards, scenarios, environments side by side.

    python benchmarks/growth.py [QUANTITY ...] [--quick] [--out FILE.json]

Each point is taken in a process of its own, which first does the same with a smaller size that is not counted, so
that imports and compiled code are there: CPU seconds of the work (inputs excluded), and the peak of memory above
that of the small size (inputs included). docs/generate/growth_pictures.py fits and draws them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# This module alone is small: a child's peak of memory is never below that of the process that started it.
ROOT = Path(__file__).resolve().parent.parent
Work = Callable[[], float]  # does the work and returns its size


@dataclass(frozen=True)
class Quantity:
    """What grows: its name on the axis, what is done, sizes from small to large, the size done first, and what makes
    the work.
    """

    label: str
    what: str
    sizes: tuple[int, ...]
    first: int
    prepare: Callable[[int, Path], Work]


def rule_jobs(size: int, _: Path) -> Work:
    """Return an EASY run of the batch study's compiled simulator over drawn jobs."""
    import batch_env

    jobs, machine = batch_env.workload(None, size)
    return batch_env.rule_over(jobs, machine, "fcfs", "easy")


def simulator_jobs(size: int, folder: Path) -> Work:
    """Return a first-come first-served run of delay jobs on 128 hosts through the embedded Batsim, without PyBatsim."""
    return _simulation(size, 128, folder, size)


def simulator_hosts(size: int, folder: Path) -> Work:
    """Return the same of 5,000 jobs on other numbers of hosts."""
    return _simulation(5_000, size, folder, size)


def _simulation(jobs: int, hosts: int, folder: Path, size: int) -> Work:
    import simulator

    from schedlab.batsim.running import Inputs, open_backend

    simulator.write_platform(folder / "p.xml", hosts)
    simulator.write_workload(folder / "w.json", jobs, hosts, "delay")

    def run() -> float:
        with open_backend("embedded", Inputs(folder / "p.xml", (folder / "w.json",), f"{folder}/out")) as simulation:
            simulator.schedule(simulation, hosts, None)
        return size

    return run


def ramp_servers(size: int, _: Path) -> Work:
    """Return the search of all blocks of up to 16 servers in a RAMP of as equal sides as its number of servers
    allows.
    """
    import ramp

    from schedlab.studies.ramp.network.topology import Ramp

    third, rest = divmod(size.bit_length() - 1, 3)
    groups, racks, servers = (2 ** (third + (side < rest)) for side in range(3))

    def build() -> float:
        ramp.find_blocks(Ramp(groups, racks, servers))
        return size

    return build


def ramp_shards(size: int, _: Path) -> Work:
    """Return splitting (16 ways), placing and timing of the first ops of a chain of large graphs; its size is the
    number of shards.
    """
    import numpy as np
    import ramp

    from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
    from schedlab.studies.ramp.legacy import LegacySettings
    from schedlab.studies.ramp.network.topology import Ramp
    from schedlab.studies.ramp.placement.blocks import RampPlacement
    from schedlab.studies.ramp.placement.placers import Room, first_fit
    from schedlab.studies.ramp.simulator.timing import JobTimes

    one, topology = ramp.large_graph(), Ramp(4, 4, 2)
    ops, copies = len(one.ids), -(-size // len(one.ids))
    edges = np.concatenate(
        [one.edges + copy * ops for copy in range(copies)]
        + [[[copy * ops, copy * ops + 1]] for copy in range(1, copies)]
    )
    columns = [
        np.tile(column, copies)[:size]
        for column in (one.forward_cost, one.backward_cost, one.activation, one.parameter)
    ]
    ids, kinds = np.arange(1, size + 1), (one.kinds * copies)[:size]
    graph = training_graph(ForwardGraph("chain", ids, kinds, *columns, edges[(edges <= size).all(axis=1)]))
    rules = RampPlacement(topology)

    def place() -> float:
        times = JobTimes(topology, LegacySettings())
        split = times.split_by_quantum(graph, 16, 0.01)
        times.timing(split, first_fit(split, rules, Room(0, np.full(32, 8e12))))
        return split.num_shards

    return place


def scenarios(size: int, folder: Path) -> Work:
    """Return a dry run, with a warm cache, of generated scenarios with a policy of five seeds each."""
    import dry_run

    checkout = dry_run.checkout(folder / "generated", size)
    dry_run.dry_run(checkout)

    def run() -> float:
        dry_run.dry_run(checkout)
        return size

    return run


def batch_environments(size: int, _: Path) -> Work:
    """Return 200 steps of each of the batch study's environments side by side."""
    import batch_env

    step = batch_env.batched(batch_env.task_of(*batch_env.workload(None)), 200 * size, size)
    return lambda: step() / 200


def cloud_environments(size: int, _: Path) -> Work:
    """Return 1,000 steps of each of the cloud study's environments side by side."""
    import cloud_steps

    step = cloud_steps.side_by_side(1_000 * size, size)

    def run() -> float:
        step()
        return size

    return run


QUANTITIES = {
    "rule_jobs": Quantity(
        "jobs", "EASY, compiled", (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000), 500, rule_jobs
    ),
    "simulator_jobs": Quantity(
        "jobs", "embedded Batsim, 128 hosts", (1_000, 10_000, 100_000, 1_000_000), 100, simulator_jobs
    ),
    "simulator_hosts": Quantity(
        "hosts", "embedded Batsim, 5,000 jobs", (100, 300, 1_000, 3_000, 10_000), 50, simulator_hosts
    ),
    "ramp_servers": Quantity("servers", "blocks of RAMP", (8, 16, 32, 64, 128, 256, 512), 8, ramp_servers),
    "ramp_shards": Quantity("shards", "look-ahead, cold", (11, 22, 44, 87, 174, 348), 5, ramp_shards),
    "scenarios": Quantity("scenarios", "dry run, 5 seeds each", (10, 30, 100, 300, 1_000), 2, scenarios),
    "batch_environments": Quantity("environments", "batch, 200 steps each", (1, 4, 16, 64, 256), 1, batch_environments),
    "cloud_environments": Quantity(
        "environments", "cloud, 1,000 steps each", (1, 4, 16, 64, 256), 1, cloud_environments
    ),
}


def used() -> tuple[float, float]:
    """Return CPU seconds and peak of memory in MB of this process and of those that it started."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in each), max(one.ru_maxrss for one in each) / 1024


def measure(quantity: Quantity, size: int) -> dict[str, float]:
    """Take one point in this process."""
    with tempfile.TemporaryDirectory() as folder:
        for place, now in (("first", quantity.first), ("counted", size)):
            _, before = used()
            Path(folder, place).mkdir()
            work = quantity.prepare(now, Path(folder, place))
            begin, _ = used()
            done = work()
            end, peak = used()
    return {"size": done, "seconds": end - begin, "memory_mb": peak - before}


def grow(
    names: Iterable[str], quick: bool, quantities: Mapping[str, Quantity] = QUANTITIES, program: str = __file__
) -> dict[str, Any]:
    """Take all points of some quantities, each in a process of its own: `program` with the name and `--here SIZE`."""
    found: dict[str, Any] = {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in names:
        quantity, points = quantities[name], []
        for size in quantity.sizes[: 1 if quick else None]:
            command = [sys.executable, program, name, "--here", str(size)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, env=environment)
            point = json.loads(done.stdout)
            points.append({key: float(f"{value:.4g}") for key, value in point.items()})
            print(f"{name} {points[-1]}", file=sys.stderr, flush=True)
        found[name] = {"label": quantity.label, "what": quantity.what, "points": points}
    return found


def main() -> None:
    """Take the points of the quantities named on the command line, by default of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="quantities: " + ", ".join(QUANTITIES))
    parser.add_argument("names", nargs="*", metavar="QUANTITY", help="default: all")
    parser.add_argument("--quick", action="store_true", help="the smallest size of each")
    parser.add_argument("--here", type=int, metavar="SIZE", help="one point in this process")
    parser.add_argument("--out", type=Path, help="JSON (default: print)")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in QUANTITIES]:
        parser.error(f"no quantity '{unknown[0]}'; there are: {', '.join(QUANTITIES)}")
    if given.here:
        print(json.dumps(measure(QUANTITIES[given.names[0]], given.here)))
        return
    grown = grow(given.names or QUANTITIES, given.quick)
    text = json.dumps(grown, indent=1) + "\n"
    if given.out:
        from schedlab.config.files import write_text

        write_text(given.out, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
