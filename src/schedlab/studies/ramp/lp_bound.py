"""An upper bound on the number of jobs that a policy can accept: a linear programme that knows all arrivals.

It may give fractions of a job to several actions, and place them on any free servers, whether or not these are a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.schema import NoSettings, validate
from schedlab.studies.ramp.simulator.cluster import DUE
from schedlab.studies.ramp.simulator.compiled import episode_arrivals

if TYPE_CHECKING:
    from schedlab.studies.ramp.problem import RampProblem
    from schedlab.studies.ramp.simulator.compiled_kernel import Arrivals, Tables


def least_servers(tables: Tables) -> np.ndarray:
    """Return int64[graphs, A], the smallest number of servers that a job can occupy: those of its largest degree."""
    sizes = np.array([int(mask).bit_count() for mask in tables.masks[tables.first[:-1]].tolist()])
    return np.where(tables.parts >= 0, sizes[np.maximum(tables.parts, 0)], 0).max(axis=2)


def most_accepted(tables: Tables, arrivals: Arrivals, stop: float) -> float:
    """Return the value of the programme: the largest number of jobs that an episode can accept.

    The variables are the shares of each job that are given to the actions that meet its limit (and, if running jobs
    count as blocked at the end, that end in time). The shares of a job sum to at most 1, and at each arrival the
    running jobs occupy at most all servers.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    times, servers = arrivals.times, least_servers(tables)
    until = times[:, None] + tables.durations[arrivals.graphs]
    meets = (arrivals.meets[:, None] >> np.arange(len(tables.actions)) & 1).astype(bool) & np.isfinite(until)
    if tables.cut_off:
        meets &= until <= stop + DUE
    jobs, actions = np.nonzero(meets)
    if not len(jobs):
        return 0.0
    last = np.searchsorted(times, until[jobs, actions] - DUE)  # the first arrival at which the servers are free again
    spans = last - jobs
    shares = np.repeat(np.arange(len(jobs)), spans)
    held_at = np.arange(len(shares)) - np.repeat(np.cumsum(spans) - spans, spans) + np.repeat(jobs, spans)
    held = np.repeat(servers[arrivals.graphs[jobs], actions], spans)
    rows = np.concatenate([jobs, held_at + len(times)])
    columns = np.concatenate([np.arange(len(jobs)), shares])
    limits = csr_array((np.concatenate([np.ones(len(jobs)), held]), (rows, columns)), shape=(2 * len(times), len(jobs)))
    most = np.repeat([1.0, float(tables.servers)], len(times))
    found = linprog(-np.ones(len(jobs)), A_ub=limits, b_ub=most, bounds=(0, None), method="highs")
    if not found.success:
        raise RuntimeError(f"the linear programme of an episode was not solved: {found.message}")
    return -float(found.fun)


@dataclass(frozen=True)
class LpBound:
    """A bound, which scenarios list among the rules. It takes no decisions; its only score is a blocking rate below
    which no policy can be.
    """

    problem: RampProblem

    def scores(self, unit: Unit) -> dict[str, float]:
        """Return a lower bound on the blocking rate of an episode. A job that arrives at the end is never blocked."""
        tables, _ = self.problem.compiled
        arrivals = episode_arrivals(self.problem.simulation, tables, unit.seed)
        accepted = most_accepted(tables, arrivals, self.problem.scenario.episodes.end)
        return {"blocking_rate": max(len(arrivals.times) - accepted, 0.0) / arrivals.arrived}


def make_bound(params: Mapping[str, Any], problem: RampProblem, seed: int) -> LpBound:
    """Return the rule `lp_bound` of a problem. It has no settings and draws no random numbers."""
    del seed
    validate(NoSettings, params)
    return LpBound(problem)
