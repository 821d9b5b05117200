"""The Gymnasium environment of the ramp study: one step decides how far a waiting job is split, or rejects it.

See docs/reference/ramp_model.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.schema import settings_given
from schedlab.studies.ramp.env.encoder import ObservationEncoder
from schedlab.studies.ramp.env.observation import GraphFeatures
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.graphs.statistics import throughput
from schedlab.studies.ramp.scenario import ON_SHIPPED, SHIPPED, published_scenario
from schedlab.studies.ramp.simulator.cluster import RunningJob
from schedlab.studies.ramp.simulator.compiled_kernel import Tables
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.simulator.simulation import Simulation

ENVIRONMENT = "schedlab/Ramp-v0"
THROUGHPUTS = {
    "compute_throughput": "mean_compute_throughput",
    "cluster_throughput": "mean_cluster_throughput",
    "demand_throughput": "mean_demand_total_throughput",
}


class RampEnv(gym.Env[Any, int]):
    """Decisions on the waiting job: action k splits its ops into at most k shards, action 0 rejects the job;
    `action_masks` returns the valid actions.

    The observation is a float32 vector of 17 features and the mask, or a dictionary (`EnvironmentSettings.observation`)
    with this vector (`features`) and the number of the graph in `graphs` (`graph`), or, as published, with the padded
    graph itself (encoder.py). An episode is terminated if no job waits and none will arrive; the last observation is
    then repeated. `info` contains the time (s), the index of the job, and whether it was `accepted`: it is placed and
    meets its limit, and, with `legacy.running_jobs_blocked`, the end of the episode does not cut it off before the next
    decision.

    fixed_episode  seed of the only episode; None: every reset draws a new episode
    tables         durations for the observation `durations`, as in ObservationEncoder
    blocks         an action is not a degree: action k stands for `actions[k]`, a degree and the number of a legal block
                   (`Simulation.act`)
    Raises UserError for wrong settings, for an episode that starts without a waiting job, and, with `invalid: raise`,
    for an invalid action.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(
        self,
        simulation: Simulation,
        settings: EnvironmentSettings | Mapping[str, Any] | None = None,
        seed: int | None = None,
        fixed_episode: int | None = None,
        render_mode: str | None = None,
        tables: Tables | None = None,
        blocks: bool = False,
    ) -> None:
        self.simulation, self.render_mode = simulation, render_mode
        self.settings = settings_given(EnvironmentSettings, settings)
        self._seed, self._fixed = seed, fixed_episode
        self.encoder = ObservationEncoder(simulation, self.settings, tables)
        self.graphs: tuple[GraphFeatures, ...] = self.encoder.graphs
        self.observation_space = self.encoder.space
        self.actions: list[tuple[int, int | None]] = [
            (degree, None) for degree in range(simulation.scenario.management.most + 1)
        ]
        if blocks:
            places = ((degree, range(len(simulation.rules.blocks(degree)))) for degree in simulation.degrees)
            self.actions = [(0, None), *((degree, place) for degree, some in places for place in some)]
        self._blocks = blocks
        self.action_space: Any = gym.spaces.Discrete(len(self.actions))
        self._rewards = Rewards(self.settings, simulation)
        self._look()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. If the first reset has no seed, it uses that of the constructor."""
        del options
        super().reset(seed=self._seed if seed is None else seed)
        self._seed = None
        self.simulation.reset(int(self.np_random.integers(2**62)) if self._fixed is None else self._fixed)
        self._look()
        return self._observation(), self._info(None)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decide on the waiting job and advance to the next one, or to the end of the episode."""
        simulation, action = self.simulation, int(action)
        job = simulation.waiting
        if job is None:
            raise UserError("no job waits; the episode is over", where="step", remedy="call reset")
        if not 0 <= action < len(self._mask) or not self._mask[action]:
            if self.settings.invalid == "raise":
                valid = ", ".join(map(str, np.flatnonzero(self._mask).tolist()))
                what = f"the action {action} is not valid"
                raise UserError(what, where=f"job {job.index}", expected=f"one of {valid}")
            action = 0
        record = simulation.cluster.record
        steps, blocked = len(record.steps), len(record.blocked)
        degree, block = self.actions[action]
        simulation.act(degree, block=block)
        outcome = simulation.cluster.outcome
        cut_off = any(one.job is job for one in record.blocked[blocked:])
        duration = outcome.duration if isinstance(outcome, RunningJob) and not cut_off else None
        reward = self._rewards.of(job, duration, record.steps[steps:])
        ended = simulation.waiting is None
        if not ended:
            self._look()
        return self._observation(), reward, ended, False, self._info(job) | {"accepted": duration is not None}

    def action_masks(self) -> np.ndarray:
        """Return bool[actions], True for each action that is valid now."""
        return self._mask.astype(bool)

    def render(self) -> str:
        """Return the time and the jobs as a line of text."""
        cluster = self.simulation.cluster
        record = cluster.record
        blocked, ended = len(record.blocked), len(record.completed)
        return f"{cluster.time:g} s: {cluster.mounted_workers} workers busy, {ended} jobs completed, {blocked} blocked"

    def _look(self) -> None:
        if self.simulation.waiting is None:
            what = "no job waits when the episode begins, so there is no decision to take"
            raise UserError(what, where="episodes.queue_capacity", expected="at least 1")
        self._degrees = self.encoder.mask()
        self._mask = self._of_blocks(self._degrees) if self._blocks else self._degrees
        self._features, self._graph = self.encoder.features(self._degrees), self.encoder.number()

    def _of_blocks(self, degrees: np.ndarray) -> np.ndarray:
        """Return int16[actions], 1 for rejecting and for the free blocks of valid degrees.

        degrees  int16[most + 1], 1 for valid degrees
        """
        valid = (np.flatnonzero(degrees[1:]) + 1).tolist()
        free = {degree: set(self.simulation.free_blocks(degree)) for degree in valid}
        chosen = [degree == 0 or (degree in free and block in free[degree]) for degree, block in self.actions]
        return np.array(chosen, dtype=np.int16)

    def _observation(self) -> Any:
        return self.encoder.observation(self._features, self._degrees, self._graph)

    def _info(self, job: Job | None) -> dict[str, Any]:
        return {"time": self.simulation.cluster.time} | ({} if job is None else {"job": job.index})


class Rewards:
    """The reward of the settings, for the jobs and the cluster of a simulation."""

    def __init__(self, settings: EnvironmentSettings, simulation: Simulation) -> None:
        self.settings = settings
        pool, topology = simulation.pool, simulation.topology
        self._longest, self._shortest = pool.most_sequential_time, pool.least_sequential_time
        self._most = 1.0
        if settings.of_most:
            self._most = topology.num_workers * max(throughput(graph).max() for graph in pool.graphs)
            if settings.reward != "compute_throughput":
                self._most += topology.num_workers * topology.channel_bandwidth * topology.channels

    def of(self, job: Job, duration: float | None, steps: Sequence[Mapping[str, Any]]) -> float:
        """Return the reward of a decision.

        duration  s; None if the job was blocked
        steps     statistics of the steps of the cluster from this decision to the next one
        """
        settings = self.settings
        if settings.reward == "acceptance":
            return settings.success if duration is not None else settings.failure
        if settings.reward in THROUGHPUTS:
            value = sum(step[THROUGHPUTS[settings.reward]] for step in steps) / max(len(steps), 1) / self._most
        else:
            value = (
                self._completion_time(job, duration) if settings.reward == "jct" else self._objectives(job, duration)
            )
            value = settings.sign * (1 / value if settings.inverse and value else value)
        return math.copysign(math.log10(1 + abs(value)), value) if settings.logarithm else float(value)

    def _completion_time(self, job: Job, duration: float | None) -> float:
        settings, whole = self.settings, job.sequential_time
        failed = whole if settings.failure_time is None else settings.failure_time
        over = {"one": 1.0, "sequential": whole, "failure": whole * settings.failure_factor}[settings.jct_over]
        return (failed * settings.failure_factor if duration is None else duration) / over

    def _objectives(self, job: Job, duration: float | None) -> float:
        whole, span = job.sequential_time, self._longest - self._shortest
        if duration is not None:
            return duration / whole
        return self.settings.failure_factor * ((whole - self._shortest) / span + 1 if span > 0 else 1.0)


def make(
    simulation: Simulation | None = None,
    seed: int | None = None,
    render_mode: str | None = None,
    settings: EnvironmentSettings | Mapping[str, Any] | None = None,
    blocks: bool = False,
) -> RampEnv:
    """Return the environment of a simulation; without a simulation, that of the shipped graphs with uniform limits.

    blocks  as in RampEnv
    """
    if simulation is None:
        simulation = Simulation(published_scenario("A", compat=False, **ON_SHIPPED), read_graphs(find_graphs(SHIPPED)))
    return RampEnv(simulation, settings, seed, render_mode=render_mode, blocks=blocks)
