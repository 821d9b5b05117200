"""Gymnasium environment on the embedded simulator: an episode is a workload, a step a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.schema import settings_given
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.episode import Cluster, Episode, Jobs, learning_case
from schedlab.studies.hetero.simulator.physics import Physics, PhysicsSettings

ENVIRONMENT = "schedlab/Hetero-v0"


class HeteroEnv(gym.Env[np.ndarray, Any]):
    """An environment that asks for a job policy and a core policy whenever jobs have arrived or ended and jobs wait.

    Observation: float32 vector (`Observer` gives the order), within 0 and 1. Actions: the pairs of the selection, then
    void if it is offered. Reward: the objective's value after the action, or its integral until the next decision
    (`time_weighted`). An episode runs one workload, drawn at reset or given by `options={"workload": number}`; the last
    `info` holds Batsim's totals ("scores"). `physics` changes HDeepRM's model of the cluster. Raises UserError for
    unknown workloads and those without decisions.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        cluster: Cluster,
        workloads: Sequence[Jobs],
        settings: DecisionSettings | Mapping[str, Any] | None = None,
        seed: int | None = None,
        render_mode: str | None = None,
        physics: PhysicsSettings | Mapping[str, Any] | None = None,
    ) -> None:
        if not workloads:
            raise UserError("no workload", where=ENVIRONMENT, expected="at least one")
        self.cluster, self.workloads = cluster, tuple(workloads)
        self.settings = settings_given(DecisionSettings, settings)
        self.render_mode = render_mode
        self._seed, self.physics = seed, settings_given(PhysicsSettings, physics, "physics")
        self.episode = Episode(cluster, self.workloads[0], self.settings, 0, physics=Physics(self.physics))
        highest = np.inf if self.settings.legacy.unclipped_observation else 1.0
        self.observation_space: gym.spaces.Box = gym.spaces.Box(
            0.0, highest, (self.episode.system.observer.size,), np.float32
        )
        self.action_space: gym.spaces.Discrete = gym.spaces.Discrete(self.settings.actions)

    @property
    def action_names(self) -> tuple[str, ...]:
        """The name of each action."""
        return self.settings.names

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; the first reset uses the seed given at construction."""
        super().reset(seed=self._seed if seed is None else seed)
        self._seed = None
        drawn = int(self.np_random.integers(len(self.workloads)))
        number = (options or {}).get("workload", drawn)
        if number not in range(len(self.workloads)):
            expected = f"a number below {len(self.workloads)}"
            raise UserError(f"workload {number!r}", where="options of reset", expected=expected)
        seed = drawn_seed(self.np_random)
        physics = Physics(self.physics, seed)
        self.episode = Episode(self.cluster, self.workloads[number], self.settings, seed, physics=physics)
        if not self.episode.advance():
            raise UserError("asks for no decision", where=f"workload {number}", expected="a job that fits the platform")
        return self.episode.observe(), self._info() | {"workload": number}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take an action and continue to the next decision or to the end of the workload. Raises RuntimeError if no
        decision is due.
        """
        if not self.episode.system.due:
            raise RuntimeError("no decision is due: call reset")
        self.episode.decide(int(action))
        going_on = self.episode.advance()
        ending = {} if going_on else {"scores": self.episode.scores()}
        reward = cast(float, self.episode.system.reward)
        return self.episode.observe(), reward, not going_on, False, self._info() | ending

    def action_masks(self) -> np.ndarray:
        """Return True for each action that is valid now."""
        return self.episode.system.masks()

    def render(self) -> str:
        """Return the date, the jobs and the busy cores as a line of text."""
        info, model = self._info(), self.episode.system.model
        cores = f"{model.busy_cores} of {model.hierarchy.cores} cores busy"
        return f"{info['time']:g} s: {info['waiting']} jobs wait, {info['running']} run, {cores}, {model.power:g} W"

    def _info(self) -> dict[str, Any]:
        system, now = self.episode.system, self.episode.now
        jobs = {"waiting": len(system.queue), "running": len(system.model.running)}
        return {"time": now, **jobs, "replaced": system.replaced}


def drawn_seed(rng: np.random.Generator) -> int:
    """Return the seed of an episode, which a reset draws after the number of its workload."""
    return int(rng.integers(2**62))


def make(
    cluster: Cluster | None = None,
    workloads: Sequence[Jobs] | None = None,
    settings: DecisionSettings | Mapping[str, Any] | None = None,
    seed: int | None = None,
    render_mode: str | None = None,
    physics: PhysicsSettings | Mapping[str, Any] | None = None,
) -> HeteroEnv:
    """Return the environment; by default with the example of HDeepRM's thesis (`learning_case`)."""
    if cluster is None or workloads is None:
        cluster, jobs = learning_case()
        workloads = (jobs,)
    return HeteroEnv(cluster, workloads, settings, seed, render_mode, physics)
