"""A training job on every allocation that it can reach: time, cost and utilisation of each interval of the training.

All numbers of an episode are computed before it begins, so that a step only looks up a row. The objective of an episode
is a sum over its intervals; the oracle depends on this (docs/reference/cloud_model.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.allocation import ACTIONS, PAPER_ACTIONS, STEPS, Allocation, ResourceConfig
from schedlab.studies.cloud.model.instances import kind_speeds, offers_of
from schedlab.studies.cloud.model.interruptions import MOST_RISK, expected_time
from schedlab.studies.cloud.model.lattice import Grid, Lattice, OfferGrid, lattice, offer_grid
from schedlab.studies.cloud.model.step_time import (
    Performance,
    Placement,
    StepModel,
    performance,
    statistical_efficiency,
)
from schedlab.studies.cloud.replay.constraints import Constraints
from schedlab.studies.cloud.replay.observe import Tables
from schedlab.studies.cloud.replay.sla import SLAConfig
from schedlab.studies.cloud.scenario import CloudScenario

SECONDS = 3600.0  # of an hour


@dataclass(frozen=True)
class Replay:
    """A scenario with n allocations and E intervals, as arrays.

    seconds             (E, n) of an interval, without restart; on spot instances the expected time, which is that of
                        repeating interrupted attempts on the same offer
    price               (n,) $/h
    busy                (n,) mean of the GPUs' and the cores' utilisation, fraction
    fits                (n,) False if the memory does not suffice
    allowed             (n, actions) whether each action leads to an allocation that fits
    cuts                (stretches, n) number of the allocation that remains if GPUs are taken away in a part of the
                        training; empty: GPUs are never taken away
    undisturbed         (E, n) s of an interval that is not interrupted
    hazard              (n,) interruptions per second
    time_ref, cost_ref  s and $ of the best constant allocations for time and for cost, without a restart and with all
                        GPUs
    """

    scenario: CloudScenario
    lattice: Grid
    performance: Performance
    seconds: np.ndarray
    price: np.ndarray
    busy: np.ndarray
    fits: np.ndarray
    allowed: np.ndarray
    time_ref: float
    cost_ref: float
    sla: SLAConfig
    cuts: np.ndarray
    undisturbed: np.ndarray
    hazard: np.ndarray

    def cut_to_slots(self, interval: int | np.ndarray, numbers: Any) -> Any:
        """Return the numbers of the allocations that remain when GPUs are taken away in an interval (or in one for
        each).
        """
        return self.cuts[interval * len(self.cuts) // self.intervals, numbers] if len(self.cuts) else numbers

    @cached_property
    def tables(self) -> Tables:
        """The replay prepared for the steps of an environment."""
        return Tables(self)

    @cached_property
    def constraints(self) -> Constraints:
        """The service levels that decisions must keep."""
        return Constraints(self)

    def best_ways(self, costs: np.ndarray, restarts: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the actions of the least sum of costs, (E, n) int64, and that sum from each interval and allocation to
        the end, (E + 1, n), by backward induction. Of equal actions, the lowest is taken.

        costs     (E, n) of an interval on each allocation
        restarts  (n,) additional cost if the allocation was changed to this one
        allowed   (n, actions)
        """
        following, n = self.lattice.following, len(self.lattice)
        values = np.zeros((self.intervals + 1, n))
        actions = np.zeros((self.intervals, n), dtype=np.int64)
        for interval in range(self.intervals - 1, -1, -1):
            there = self.cut_to_slots(interval, following)
            extra = np.where(there != np.arange(n)[:, None], restarts[there], 0.0)
            onward = np.where(allowed, (costs[interval] + values[interval + 1])[there] + extra, np.inf)
            actions[interval] = onward.argmin(axis=1)
            values[interval] = onward[np.arange(n), actions[interval]]
        return actions, values

    @property
    def intervals(self) -> int:
        """E, the number of intervals of the training; also the number of decisions, unless `interval_seconds` is
        set.
        """
        return len(self.seconds)

    @property
    def span(self) -> float | None:
        """Time between two decisions, s; None: decisions are made after equal shares of the training."""
        return self.scenario.environment.interval_seconds

    @cached_property
    def clock(self) -> np.ndarray:
        """Time from the start to the beginning of each interval and to the end, on each constant allocation, s, (E + 1,
        n).
        """
        return np.concatenate([np.zeros((1, len(self.lattice))), self.seconds.cumsum(axis=0)])

    def after(self, numbers: np.ndarray, progress: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the progress of the training on allocations after a time, and the time taken, which is less if the
        training ends before. All arrays have the shape (N,); progress in intervals, 0 to E; time in s, without
        restarts.
        """
        places, number = np.arange(len(numbers)), self.intervals
        clock, speeds = self.clock[:, numbers], self.seconds[:, numbers]
        first = np.minimum(progress.astype(np.int64), number - 1)
        begin = clock[first, places] + (progress - first) * speeds[first, places]
        taken = np.minimum(seconds, clock[-1] - begin)
        end = begin + taken
        last = np.minimum((clock[1:] <= end).sum(axis=0), number - 1)
        reached = last + (end - clock[last, places]) / speeds[last, places]
        return np.where(seconds >= clock[-1] - begin, float(number), np.minimum(reached, number)), taken

    @property
    def restart(self) -> float:
        """Time of a change of the allocation, which is paid, s."""
        return self.scenario.environment.restart

    @cached_property
    def moving(self) -> np.ndarray:
        """Expected time of a change to each allocation, during which a spot instance may be interrupted, s, (n,)."""
        return expected_time(self.restart, self.restart, self.hazard)

    def objective(self, weights: Mapping[str, float], time: Any, cost: Any, waste: Any) -> Any:
        """Return J, the weighted sum of waste and of time (s) and cost ($) over their references. Numbers or arrays."""
        of = {"time": time / self.time_ref, "cost": cost / self.cost_ref, "resource": waste}
        return sum(weight * of[name] for name, weight in weights.items())

    def rate(self, weights: Mapping[str, float]) -> np.ndarray:
        """Return the increase of the objective per second on each allocation, without waste, (n,)."""
        return weights["time"] / self.time_ref + weights["cost"] * (self.price / SECONDS) / self.cost_ref

    def step_costs(self, weights: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Return the increase of the objective: (E, n) in an interval on each allocation, and (n,) in addition if the
        allocation was changed to this one. weights: of time, cost and resource. Infinite if the memory does not
        suffice.
        """
        rate = self.rate(weights)
        waste = weights["resource"] * (1.0 - self.busy) / self.intervals
        costs = np.where(self.fits, self.seconds * rate + waste, np.inf)
        return costs, self.moving * rate

    def constant(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the time (s), cost ($) and waste of keeping each allocation throughout, (n,); infinite if memory is
        lacking.
        """
        time = self.seconds.sum(axis=0)
        cost, waste = time * self.price / SECONDS, 1.0 - self.busy
        return np.where(self.fits, time, np.inf), np.where(self.fits, cost, np.inf), np.where(self.fits, waste, np.inf)


def make_replay(scenario: CloudScenario, model: StepModel, checked: bool = True) -> Replay:
    """Return the replay of a scenario. Raises UserError if the start has too little memory and, unless `checked` is
    false, if no plan keeps the constraints.
    """
    grid, speed, price, hazard, scenario = _grid(scenario)
    gpus, cores, memory = grid.allocations.T
    job, settings = scenario.job, scenario.environment
    on_gpu = np.full(len(grid), float(job.batch)) if job.batching == "per_gpu" else job.batch / gpus
    nodes = np.ones(len(grid)) if isinstance(grid, OfferGrid) else np.ceil(gpus / job.gpus_per_node)
    at = Placement(nodes, gpus, cores, memory, on_gpu, speed)
    found = performance(model, job.pipeline, at, settings.interference)
    if not found.fits[grid.start]:
        what, where = "the start allocation lacks the memory that the job needs", "start.memory_gb"
        raise UserError(what, where="instances.start" if scenario.instances else where, expected="more memory")
    undisturbed = settings.interval * job.samples / (found.throughput * _efficiency(scenario, gpus * on_gpu))
    # a spot instance that hardly finishes an interval is as useless as one with too little memory
    found = replace(found, fits=found.fits & (hazard * (undisturbed.max(axis=0) + settings.restart) <= MOST_RISK))
    seconds, hazard = undisturbed, np.where(found.fits, hazard, 0.0)
    if hazard.any():
        expected = expected_time(undisturbed, undisturbed + settings.restart, hazard)
        seconds = np.where(hazard > 0, expected, undisturbed)
    allowed = found.fits[grid.following]
    if settings.space == "paper9":
        allowed = allowed & np.isin(np.arange(ACTIONS), PAPER_ACTIONS)
    time = seconds.sum(axis=0)
    time_ref = float(time[found.fits].min())
    # the cost of a free job adds nothing to the objective, whatever the reference
    cost_ref = float((time * price / SECONDS)[found.fits].min()) or 1.0
    busy = (found.gpu_util + found.cpu_util) / 2.0
    sla = _limits(scenario, grid.start, found, float(time[grid.start]), float(price[grid.start]))
    remaining = [_cut(grid, slots) for slots in settings.slots if isinstance(grid, Lattice)]
    cuts = np.array(remaining, dtype=np.int64).reshape(len(remaining), len(grid))
    made = Replay(
        *(scenario, grid, found, seconds, price, busy, found.fits, allowed, time_ref, cost_ref, sla, cuts),
        undisturbed=undisturbed,
        hazard=hazard,
    )
    if checked and scenario.constraints.keep:
        made.constraints.require_possible(scenario.name)
    return made


def _grid(scenario: CloudScenario) -> tuple[Grid, np.ndarray, np.ndarray, np.ndarray, CloudScenario]:
    """Return the allocations of a scenario, the speed of each one's GPU kind, the price ($/h) and the interruptions per
    second, (n,) each, and the scenario, whose resources are those of the instances, if it has any.
    """
    if (rented := scenario.instances) is None:
        start = Allocation(*scenario.start.model_dump().values())
        steps = STEPS if scenario.environment.space == "full27" else (*STEPS[:2], 0)
        grid = lattice(start, scenario.resource, steps)
        price = scenario.resource.hourly_price(*grid.allocations.T)
        return grid, np.ones(len(grid)), price, np.zeros(len(grid)), scenario
    speeds = kind_speeds(rented.types, rented.speeds, rented.gpu_kind, "instances.gpu_kind")
    known = [each for each in rented.types if each.gpu_kind in speeds]
    if not known:
        what, expected = "no instance has GPUs of known speed", "GPU kinds with a speed, or the kind of the step times"
        raise UserError(what, where="instances", expected=expected)
    offers, _ = offers_of(known, rented.interruption_rate)
    offered = offer_grid(offers, rented.start)
    factors = [speeds[offer.type.gpu_kind] for offer in offers]
    speed = np.array([rented.speeds.get(kind, 1.0) * factor for kind, factor in factors])
    gpus, cores, memory = offered.allocations.T
    limits = ResourceConfig(
        gpu_count_min=int(gpus.min()), gpu_count_max=int(gpus.max()),
        cpu_count_min=int(cores.min()), cpu_count_max=int(cores.max()),
        memory_min=float(memory.min()), memory_max=float(memory.max()),
    )  # fmt: skip
    price, hazard = (np.array([getattr(offer, name) for offer in offers]) for name in ("price", "hazard"))
    return offered, speed, price, hazard, scenario.model_copy(update={"resource": limits})


def _efficiency(scenario: CloudScenario, total: np.ndarray) -> np.ndarray:
    """Return the progress per sample in each interval on allocations with these total batch sizes (n,), as a share of
    that of the base batch, (E, n). It is 1 with a constant total batch (`fixed_global`): all allocations then need the
    same number of samples (docs/reference/cloud_model.md).
    """
    job = scenario.job
    if job.batching == "fixed_global":
        return np.ones((scenario.intervals, len(total)))
    noise = np.interp(
        np.linspace(0, 1, scenario.intervals), np.linspace(0, 1, len(job.gradient_noise)), job.gradient_noise
    )
    return statistical_efficiency(noise[:, None], total[None, :], job.base_batch)


def _cut(grid: Lattice, slots: int) -> np.ndarray:
    """Return the number of the allocation that remains of each one with at most `slots` GPUs, or with the fewest GPUs
    of the lattice.
    """
    block = len(grid) // len(grid.axes[0])  # GPUs are the first axis
    most = max(place for place, value in enumerate(grid.axes[0]) if value <= slots or place == 0)
    ranks, rest = np.divmod(np.arange(len(grid)), block)
    return np.minimum(ranks, most) * block + rest


def _limits(scenario: CloudScenario, start: int, found: Performance, time: float, price: float) -> SLAConfig:
    """Return the service levels, fixed before learning: those of the configuration, or a forecast from the start
    allocation.
    """
    if scenario.sla_from == "configuration":
        return scenario.sla
    record = {"time_so_far": time, "cost_so_far": time * price / SECONDS, "throughput": float(found.throughput[start])}
    return scenario.sla.updated([record])


def towards(replay: Replay, here: Any, target: Any) -> np.ndarray:
    """Return the actions that lead from allocations straight to others, int64 of the shape of `here`.

    If the direct step leads to too little memory, GPUs are given back and memory is taken first.
    """
    ways = replay.lattice.ways_to(here, target)
    straight, careful = ways[0], ways[-1]
    fits = replay.fits[replay.lattice.following[here, straight]]
    return np.where(fits, straight, careful)


def straight_courses(replay: Replay) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield, for each interval, the allocations on the straight ways to all allocations, on which jobs then stay, and
    whether each was just changed to, (n,). In the last interval, a job that does not hold its own allocation has not
    reached it.
    """
    target = np.arange(len(replay.lattice))
    here = np.full(len(target), replay.lattice.start)
    for interval in range(replay.intervals):
        there = replay.cut_to_slots(interval, replay.lattice.following[here, towards(replay, here, target)])
        yield interval, there, there != here
        here = there


def affordable(replay: Replay, allocation: Allocation) -> int:
    """Return the number of the nearest allocation, with more memory if the job needs it there."""
    grid, fits = replay.lattice, replay.fits
    number = grid.nearest(allocation)
    enough = [
        n
        for n in range(number, len(grid))
        if fits[n] and (grid.allocations[n, :2] == grid.allocations[number, :2]).all()
    ]
    return enough[0] if enough else grid.start
