"""EASY backfilling (Lifka 1995) for pairs: jobs overtake the first that does not fit if they do not delay its start.

A running job is expected to do its requested work at its current speed, a waiting job at the full speed of the slowest
core that it would get. Memory is reserved like cores; slowdowns by memory bandwidth are not considered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.studies.hetero.simulator.resources import GIGA, JobRequest, Placement, ResourceModel

ROUNDING = 1e-6  # s, the resolution of dates


@dataclass
class Reservation:
    """The expected start of the first job that does not fit.

    wait    time until this start, s
    cores   (nodes,): cores that are free then      memory  (nodes,): memory that is free then, kB
    """

    job: JobRequest
    wait: float
    cores: np.ndarray
    memory: np.ndarray

    def admits(self, model: ResourceModel, job: JobRequest, cores: Sequence[int]) -> bool:
        """Return whether a job may start now on these cores. If it may and lasts beyond the wait, its cores and memory
        are subtracted from those that are free then.
        """
        processors = [model.processor_of[core] for core in cores]
        slowest = min(model.gflops_per_core[processor] for processor in processors)
        if job.flops / (slowest * GIGA) <= self.wait + ROUNDING:
            return True
        taken = np.bincount([model.node_of[processor] for processor in processors], minlength=len(self.cores))
        left, memory = self.cores - taken, self.memory - taken * job.memory
        if not _fits(self.job, left, memory):
            return False
        self.cores, self.memory = left, memory
        return True


def reserve(model: ResourceModel, job: JobRequest) -> Reservation:
    """Return the reservation of a job that does not fit now; its wait is infinite if the ends of running jobs do not
    free enough.
    """
    cores, memory, wait = np.array(model.free_in_node), np.array(model.free_memory), float("inf")
    for end, placement in model.expected_ends():
        if end > wait:
            break
        _free(model, placement, cores, memory)
        if _fits(job, cores, memory):
            wait = end  # jobs that end at the same date still count
    return Reservation(job, wait, cores, memory)


def _free(model: ResourceModel, placement: Placement, cores: np.ndarray, memory: np.ndarray) -> None:
    for processor, taken in placement.by_processor.items():
        cores[model.node_of[processor]] += len(taken)
        memory[model.node_of[processor]] += len(taken) * placement.job.memory


def _fits(job: JobRequest, cores: np.ndarray, memory: np.ndarray) -> bool:
    room = np.minimum(cores, memory // job.memory) if job.memory else cores
    return bool(room.sum() >= job.cores)
