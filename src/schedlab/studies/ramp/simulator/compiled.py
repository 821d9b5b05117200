"""Tables and episodes for the compiled cluster, computed by the exact cluster. Learning on the compiled one is much
faster.

See docs/reference/ramp_model.md.
"""

from __future__ import annotations

import math

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.simulator.cluster import DUE, JobPlan
from schedlab.studies.ramp.simulator.compiled_kernel import NO_DEGREES, REJECT, Arrivals, Futures, Tables
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.simulator.simulation import Simulation

MOST_SERVERS = 64


def compiled_tables(simulation: Simulation) -> Tables:
    """Return the tables of a scenario. It resets the simulation, so pass one that is not in use.

    Durations are those on an empty cluster. Where other jobs run, the first free block may have another shape, and
    durations of the exact cluster differ by some hundredths of a percent (published setting) to half a percent (traced
    graphs; test_ramp_compiled.py). Raises UserError for a scenario that the compiled cluster does not support: another
    network, several workers per server, more than 64 servers, unequal servers, random or users' partitions and
    placements, and limits of memory that change placements.
    """
    scenario, rules = simulation.scenario, simulation.rules
    _require_playable(simulation)
    simulation.reset(0)
    cluster = simulation.cluster
    actions = simulation.degrees
    graphs = simulation.pool.graphs
    durations = np.full((len(graphs), len(actions)), math.inf)
    degrees: list[list[tuple[int, ...]]] = []
    anywhere = scenario.management.placer == "any_servers"
    alone = anywhere or simulation.manager.inner is not None  # only the largest degree looks for servers
    for number, graph in enumerate(graphs):
        job = Job(0, 0, graph, scenario.jobs.steps, 1.0)
        degrees.append([])
        for place, action in enumerate(actions):
            plan = simulation.manager.plan(cluster, job, action)
            degrees[-1].append(())
            if isinstance(plan, JobPlan):
                _require(
                    plan.split.most_memory_of_a_server <= scenario.cluster.memory,
                    "cluster.memory",
                    "room for every job's shards",
                )
                durations[number, place] = job.steps * cluster.times.lookahead(plan.split, plan.placement)[1].time
                degrees[-1][-1] = (plan.split.max_degree,) if alone else tuple(sorted(plan.split.distinct_degrees))
    known = sorted({degree for row in degrees for found in row for degree in found} | set(actions))
    blocks = [[block.mask for block in rules.blocks(degree)] for degree in known]
    parts = np.full(
        (len(graphs), len(actions), max(len(found) for row in degrees for found in row) + 1), -1, dtype=np.int64
    )
    for number, row in enumerate(degrees):
        for place, found in enumerate(row):
            parts[number, place, : len(found)] = [known.index(degree) for degree in found]
    return Tables(
        np.array(actions, dtype=np.int64),
        durations,
        np.array([graph.step_time * scenario.jobs.steps for graph in graphs]),
        parts,
        np.array([known.index(action) for action in actions], dtype=np.int64),
        np.cumsum([0, *map(len, blocks)]).astype(np.int64),
        np.array([mask for found in blocks for mask in found], dtype=np.uint64),
        simulation.topology.num_servers,
        cluster.blocks_running,
        np.array(known, dtype=np.int64) if anywhere else NO_DEGREES,
    )


def _require_playable(simulation: Simulation) -> None:
    """Raise UserError for a scenario that tables cannot represent; limits of memory are checked elsewhere."""
    cluster, management = simulation.scenario.cluster, simulation.scenario.management
    known = management.placer in ("first_fit", "any_servers") and management.shaper == "none"
    _require(known, "management.placer", "first_fit or any_servers, without a shaper")
    _require(management.partitioner == "quantum", "management.partitioner", "quantum")
    _require(management.op_scheduler == "srpt", "management.op_scheduler", "srpt")
    _require(management.dep_scheduler == "srpt", "management.dep_scheduler", "srpt")
    _require(not cluster.speeds, "cluster.speeds", "servers that are alike")
    _require(not cluster.memories, "cluster.memories", "servers that are alike")
    _require(isinstance(simulation.topology, Ramp), "cluster.topology", "ramp, whose jobs share no links")
    _require(cluster.workers == 1, "cluster.workers", "one worker a server, so that jobs share none")
    _require(simulation.topology.num_servers <= MOST_SERVERS, "cluster", f"at most {MOST_SERVERS} servers")


def _require(holds: bool, where: str, expected: str) -> None:
    if not holds:
        raise UserError("learning with tables of durations cannot play this scenario", where=where, expected=expected)


def meeting(tables: Tables, graphs: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """Return int64[n], in which bit a is set where action a meets the limit of a job with this graph (int64[n]) and
    beta (float64[n]).
    """
    limits = tables.sequential[graphs] * betas
    meets = (tables.durations[graphs] <= limits[:, None]).astype(np.int64)
    return (meets << np.arange(len(tables.actions))).sum(axis=1)


def episode_arrivals(simulation: Simulation, tables: Tables, seed: int) -> Arrivals:
    """Return the jobs that an episode decides on, as the exact cluster draws them."""
    source = simulation.pool.episode(seed)
    end = simulation.scenario.episodes.end
    times, graphs, betas, now = list[float](), list[int](), list[float](), 0.0
    while now < end - DUE:
        job = source.draw(len(times))
        times.append(now)
        graphs.append(simulation.pool.place(job.graph))
        betas.append(job.beta)
        now = source.next_arrival(now)
    found = np.array(graphs, dtype=np.int64)
    return Arrivals(np.array(times), found, meeting(tables, found, np.array(betas)), int(now <= end + DUE))


def draw_futures(simulation: Simulation, tables: Tables, random: np.random.Generator, count: int) -> Futures:
    """Return `count` drawn jobs on which rollouts are simulated."""
    graphs, betas, gaps = simulation.pool.draw(random, count)
    return Futures(gaps, graphs, meeting(tables, graphs, betas))


def fixed_table(tables: Tables, degree: int) -> np.ndarray:
    """Return the table (int64[graphs, A + 1] of actions) that chooses one degree for every job, or the next lower
    degree that is an action. Jobs that need a higher degree to meet their limit are rejected.
    """
    action = int(np.searchsorted(tables.actions, degree, side="right")) - 1
    choice = np.full((len(tables.sequential), len(tables.actions) + 1), action, dtype=np.int64)
    choice[:, action + 1 :] = REJECT  # jobs that need a higher degree are rejected
    return choice
