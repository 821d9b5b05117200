"""Core policies, which choose a job's cores: free cores on nodes with enough memory, taken one by one by a key that
each choice changes.

All cores of a processor have the same key, ties go to the lowest number, and the cores of a processor have consecutive
numbers. So the policies work on processors or nodes instead of cores.
See docs/reference/hetero_model.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from schedlab.studies.hetero.simulator.resources import JobRequest, ResourceModel

Numbers = Sequence[int]
Choice = Callable[[ResourceModel, JobRequest, np.random.Generator], list[int]]


def random(model: ResourceModel, job: JobRequest, rng: np.random.Generator) -> list[int]:
    """Return cores drawn with equal probability."""
    room, taken = _Room(model, job), list[int]()
    free = np.flatnonzero((model.served == 0) & ~model.down)
    for core in rng.permutation(free).tolist():
        if room.take(model.node_of[model.processor_of[core]], 1):
            taken.append(core)
            if len(taken) == job.cores:
                break
    return taken


def high_gflops(model: ResourceModel, job: JobRequest, _: np.random.Generator) -> list[int]:
    """Return the fastest cores first, whatever the free memory bandwidth."""
    return _in_order(model, job, np.argsort(-model.gflops_per_core, kind="stable").tolist())


def low_power(model: ResourceModel, job: JobRequest, _: np.random.Generator) -> list[int]:
    """Return the cores of the lowest power first."""
    return _in_order(model, job, np.argsort(model.power_per_core, kind="stable").tolist())


def pack_cores(model: ResourceModel, job: JobRequest, _: np.random.Generator) -> list[int]:
    """Return cores of the processors with the most busy cores first (as HDeepRM's high_cores does)."""
    return _in_order(model, job, sorted(range(len(model.busy)), key=lambda number: -model.busy[number]))


def lowest(model: ResourceModel, job: JobRequest, _: np.random.Generator) -> list[int]:
    """Return the cores of the lowest numbers, as schedulers do that do not distinguish cores."""
    return _in_order(model, job, range(len(model.busy)))


def high_cores(model: ResourceModel, job: JobRequest, _: np.random.Generator) -> list[int]:
    """Return cores of the processors with the most free cores first."""
    return _by_level(model, job, model.free_cores, model.node_of, [len(cores) for cores in model.free_cores], 1)


def high_mem_bw(model: ResourceModel, job: JobRequest, _: np.random.Generator) -> list[int]:
    """Return cores of the processors with the most free memory bandwidth first."""
    return _by_level(model, job, model.free_cores, model.node_of, model.free_bandwidth, job.bandwidth)


def high_mem(model: ResourceModel, job: JobRequest, _: np.random.Generator) -> list[int]:
    """Return cores of the nodes with the most free memory first."""
    free = [[core for number in inside for core in model.free_cores[number]] for inside in model.processors_of]
    return _by_level(model, job, free, range(len(free)), model.free_memory, job.memory)


CORE_POLICIES: dict[str, Choice] = {
    "random": random,
    "high_gflops": high_gflops,
    "high_cores": high_cores,
    "high_mem": high_mem,
    "high_mem_bw": high_mem_bw,
    "low_power": low_power,
}
MORE_CORE_POLICIES: dict[str, Choice] = {"pack_cores": pack_cores, "lowest": lowest}
ALL_CORE_POLICIES = {**CORE_POLICIES, **MORE_CORE_POLICIES}


class _Room:
    """The number of cores that the memory of each node still allows for a job."""

    def __init__(self, model: ResourceModel, job: JobRequest) -> None:
        self._memory, self._each, self._left = model.free_memory, job.memory, dict[int, int]()

    def take(self, node: int, wanted: int) -> int:
        """Take the memory of up to `wanted` cores of a node; return the number of cores for which it sufficed."""
        if not self._each:
            return wanted
        left = self._left.get(node)
        if left is None:
            left = self._memory[node] // self._each
        granted = min(wanted, left)
        self._left[node] = left - granted
        return granted


def _in_order(model: ResourceModel, job: JobRequest, processors: Iterable[int]) -> list[int]:
    """Take all free cores that fit of one processor after another: taking cores does not worsen a processor's key."""
    room, taken, missing = _Room(model, job), list[int](), job.cores
    for processor in processors:
        free = model.free_cores[processor]
        if free:
            granted = room.take(model.node_of[processor], min(len(free), missing))
            taken += free[:granted]
            missing -= granted
            if not missing:
                break
    return taken


def _by_level(
    model: ResourceModel, job: JobRequest, free: Sequence[Numbers], nodes: Numbers, levels: Numbers, step: int
) -> list[int]:
    """Take a core of the group (processor or node) with the highest level, and reduce the level by `step`, until the
    job has its cores.
    """
    room = _Room(model, job)
    heap = [(-levels[group], group, 0) for group, cores in enumerate(free) if cores]
    heapq.heapify(heap)
    taken: list[int] = []
    while len(taken) < job.cores:
        level, group, used = heap[0]
        fits = room.take(nodes[group], 1)
        if fits:
            taken.append(free[group][used])
        if fits and used + 1 < len(free[group]):
            heapq.heapreplace(heap, (level + step, group, used + 1))
        else:
            heapq.heappop(heap)
    return taken
