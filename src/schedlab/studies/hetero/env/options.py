"""The options of a decision in plain Python: start one of the first waiting jobs on the cores of some core policy, or
wait. It states what `kernels/choice_kernel.py` computes, and serves the embedded simulator and a real Batsim.

Numbers of an option, logarithms of times as shares of LONG:

shared  free cores, memory and bandwidth (shares); jobs that wait, their area; expected time until the next end, core
        time that running jobs still have; mean gap between submissions so far, mean log of requested times so far, time
        since the last submission; shortest requested time that waits
own     waiting, starting (0 or 1); requested time, cores, area, bandwidth per core; time waited, slowdown if it starts
        now; time that it takes on these cores, the same over the requested time; share of its cores that are
        over-subscribed, busy cores that become so; cores that stay free; time over that until the next end; rank by
        area, and jobs before it that do not fit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p, log2
from typing import TYPE_CHECKING

import numpy as np

from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import GIGA, OVERSUBSCRIBED, JobRequest, ResourceModel

if TYPE_CHECKING:
    from schedlab.studies.hetero.simulator.decisions import DecisionSystem

LONG = 12.0  # log(1 + time in s) that counts as 1
SHORTEST_RUN = 10.0  # s, in the slowdown of an option


@dataclass(frozen=True)
class Option:
    """A job and the core policy that places it, or None for waiting; numbers (shared and own ones in a row)."""

    job: JobRequest | None
    cores: str
    numbers: tuple[float, ...]


def plain_options(system: DecisionSystem, window: int, core_policies: Sequence[str]) -> list[Option]:
    """Return the options of a decision, waiting first (left out where no job runs); none where no job of the window
    fits. Of core policies that choose alike, the first stands.
    """
    model, blocked, starts = system.model, 0, list[Option]()
    ends = model.expected_ends()
    next_end = ends[0][0] if ends else 0.0
    shared = _shared(system)
    for rank, job in enumerate(system.queue.in_order("saf", system.random)[:window]):
        if model.lacks(job):
            blocked += 1
            continue
        own = dict[tuple[float, ...], str]()
        for name in core_policies:
            cores = ALL_CORE_POLICIES[name](model, job, system.random)
            own.setdefault((*_own(model, job, cores, next_end), rank / window, blocked / window), name)
        starts += [Option(job, name, shared + numbers) for numbers, name in own.items()]
    waiting = [Option(None, "", (*shared, 1.0, *[0.0] * 15))] if model.running else []
    return [*waiting, *starts] if starts else []


def _shared(system: DecisionSystem) -> tuple[float, ...]:
    model, arrived, total = system.model, system.arrived, system.model.hierarchy.cores
    waiting, ends = system.queue.in_order("first", system.random), model.expected_ends()
    bandwidth = np.maximum(np.array(model.free_bandwidth), 0) / np.maximum(np.array(model.bandwidth), 1)
    return (
        model.free_in_all / total,
        sum(model.free_memory) / max(sum(model.memory), 1),
        float(bandwidth.mean()),
        log1p(len(waiting)) / 4.0,
        log1p(sum(job.area for job in waiting) / total) / LONG,
        log1p(ends[0][0]) / LONG if ends else 0.0,
        log1p(sum(end * len(placement.cores) for end, placement in ends) / total) / LONG,
        log1p((model.now - arrived[0].submitted) / len(arrived)) / LONG,
        sum(log1p(job.time) for job in arrived) / len(arrived) / LONG,
        log1p(model.now - arrived[-1].submitted) / LONG,
        log1p(min(job.time for job in waiting)) / LONG,
    )


def _own(model: ResourceModel, job: JobRequest, cores: Sequence[int], next_end: float) -> tuple[float, ...]:
    """Return the numbers of starting a job on cores, without the two ranks."""
    total, waited = model.hierarchy.cores, model.now - job.submitted
    processors, taken = np.unique([model.processor_of[core] for core in cores], return_counts=True)
    free = np.array(model.free_bandwidth)[processors]
    crowded = free < taken * job.bandwidth
    share = np.where(crowded, model.speed_share[OVERSUBSCRIBED], 1.0)
    run = job.flops / float((model.gflops_per_core[processors] * GIGA * share).min())
    slowed = np.array(model.busy)[processors][crowded & (free >= 0)].sum()
    least = max(run, SHORTEST_RUN)
    return (
        0.0,
        1.0,
        log1p(job.time) / LONG,
        log2(job.cores) / log2(total),
        log1p(job.area) / (LONG + 4.0),
        job.bandwidth / max(max(model.bandwidth) / int(model.size.max()), 1.0),
        log1p(waited) / LONG,
        log((waited + least) / least) / 4.0,
        log1p(run) / LONG,
        log(run / job.time) * 2.0,
        float(taken[crowded].sum()) / job.cores,
        float(slowed) / total,
        (model.free_in_all - job.cores) / total,
        log((run + 1.0) / (next_end + 1.0)) / 6.0 if model.running else 0.0,
    )
