"""The options of a decision in plain Python: start one of the first waiting jobs on the cores that a core policy
chooses, or wait. `kernels/choice_kernel.py` computes the same options; this module serves the embedded simulator and a
real Batsim.

An option is described by these numbers; times enter as logarithms, divided by LONG:

shared  free cores, memory and bandwidth (shares); number and area of the waiting jobs; expected time until the next
        end, remaining core time of the running jobs; mean gap between submissions so far, mean log of requested times
        so far, time since the last submission; shortest requested time of a waiting job
own     whether it waits, whether it starts a job (0 or 1); the job's requested time, cores, area, bandwidth per core;
        time waited, slowdown if it starts now; run time on these cores, and its ratio to the requested time; share of
        its cores that are over-subscribed, busy cores that become over-subscribed; cores that stay free; ratio of its
        run time to the time until the next end; rank by area, and number of jobs before it that do not fit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p, log2
from typing import TYPE_CHECKING

import numpy as np

from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import GIGA, JobRequest, ResourceModel

if TYPE_CHECKING:
    from schedlab.studies.hetero.simulator.decisions import DecisionSystem

LONG = 12.0  # log(1 + time in s) that counts as 1
SHORTEST_RUN = 10.0  # s, lower bound on run times in the slowdown of an option


@dataclass(frozen=True)
class Option:
    """An option of a decision.

    job      the job to start; None: wait
    cores    core policy that places the job; empty: wait
    numbers  the numbers that all options of the decision share, then those of this option
    """

    job: JobRequest | None
    cores: str
    numbers: tuple[float, ...]


def plain_options(system: DecisionSystem, window: int, core_policies: Sequence[str]) -> list[Option]:
    """Return the options of a decision, with waiting first unless no job runs; none if no job of the window fits. Of
    core policies that give a job the same numbers, only the first is an option.
    """
    model, blocked, starts = system.model, 0, list[Option]()
    ends = model.expected_ends()
    next_end = ends[0][0] if ends else 0.0
    shared = _shared(system)
    for rank, job in enumerate(system.queue.in_order("saf", system.random)[:window]):
        own = dict[tuple[float, ...], str]()
        for name in core_policies:
            cores, lacking = model.place(job, ALL_CORE_POLICIES[name], system.random)
            if not lacking:
                own.setdefault((*_own(model, job, cores, next_end), rank / window, blocked / window), name)
        blocked += not own
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
    """Return the numbers of starting a job on cores, without the last two (rank and jobs before it)."""
    total, waited = model.hierarchy.cores, model.now - job.submitted
    processors, taken = np.unique([model.processor_of[core] for core in cores], return_counts=True)
    free = np.array(model.free_bandwidth)[processors]
    crowded = free < taken * job.bandwidth
    share = model.shares_with(job, processors, taken)
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
