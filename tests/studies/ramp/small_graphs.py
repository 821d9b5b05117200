"""Graphs of the ramp study's tests (a chain, a diamond, random ones) and a cluster of one small job."""

import dataclasses
import math

import numpy as np

from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import RampPlacement
from schedlab.studies.ramp.simulator.cluster import Cluster, ClusterLimits
from schedlab.studies.ramp.simulator.jobs import Job, ListedJobs
from schedlab.studies.ramp.simulator.timing import JobTimes

TOPOLOGY = Ramp(2, 2, 2)


def graph(edges, forward, backward=None, activation=None, parameter=None, name="small", ids=None):
    """A forward graph whose other values stand at 1e6 bytes."""
    count = len(forward)
    return ForwardGraph(
        name=name,
        ids=ids or range(1, count + 1),
        kinds=("Op",) * count,
        forward_cost=forward,
        backward_cost=forward if backward is None else backward,
        activation=np.full(count, 1e6) if activation is None else activation,
        parameter=np.full(count, 1e6) if parameter is None else parameter,
        edges=edges,
    )


def chain(*costs, **values):
    """One op after the other."""
    return graph([(op, op + 1) for op in range(1, len(costs))], costs, **values)


def random_graph(seed, ops=8):
    """A connected graph of random edges and costs; some ops cost nothing, and small messages meet large ones."""
    draws = np.random.default_rng(seed)
    edges = [(int(draws.integers(1, op)), op) for op in range(2, ops + 1)]
    edges += [(first, last) for first in range(1, ops) for last in range(first + 1, ops + 1) if draws.random() < 0.2]
    costs = draws.choice([0.0, 0.003, 0.05, 1.0, 2.5], size=(2, ops)) * draws.uniform(0.5, 1.5, (2, ops))
    activation = 10 ** draws.uniform(5, 10, ops)
    parameter = draws.choice([0.0, 1e6, 3e9], ops)
    return graph(sorted(set(edges)), costs[0], costs[1], activation, parameter, name=f"random-{seed}")


def run_to_end(cluster, planner):
    """Step a cluster until it is done, planning each waiting job as `planner` says."""
    while not cluster.done:
        cluster.step({job.index: planner(cluster, job) for job in cluster.queue[:1]} if cluster.queue else {})


def cluster_of(
    times, forward=None, beta=1.0, legacy=None, memory=80e9, later=math.inf, contention=False, channels=1, **limits
):
    """A cluster of 8 servers at which one job of 10 s (alone, whole) arrives at each of the times."""
    step = training_graph(forward or chain(2.0, 3.0))
    jobs = [Job(number, number, step, 1, beta) for number in range(len(times))]
    source = ListedJobs(jobs, times, later)
    topology = dataclasses.replace(TOPOLOGY, channels=channels)
    return Cluster(
        JobTimes(topology, legacy or LegacySettings(), contention=contention),
        RampPlacement(topology),
        np.full(8, memory),
        source,
        ClusterLimits(**limits),
    )
