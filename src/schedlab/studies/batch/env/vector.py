"""The vectorised environment of the batch study: many windows in one process, stepped by one call of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schedlab.config.errors import UserError
from schedlab.learning.vector_envs import gathered, place_generators
from schedlab.studies.batch.env.env import given_task
from schedlab.studies.batch.simulator.stepper import Drawn, Stepper, Task, rows_of


class BatchVectorEnv(VectorEnv):
    """Several BatchEnv in parallel. Environment i with seed s behaves like a BatchEnv with seed s + i.

    Observations (N, size) float32, actions (N,) rows, rewards (N,) float64; `action_masks` is (N, rows). A window that
    ends is replaced in the same step (SAME_STEP, the default, with `final_obs` and `final_info`), the next, or never.
    """

    def __init__(
        self,
        task: Task,
        num_envs: int = 1,
        seed: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    ) -> None:
        if num_envs < 1:
            raise UserError(f"{num_envs} environments", where="num_envs", expected="at least 1")
        self.num_envs, self.task, self.layout = num_envs, task, task.layout
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.stepper = Stepper(task, num_envs)
        self.single_observation_space = gym.spaces.Box(-1.0, self.layout.high, (self.layout.size,), np.float32)
        self.single_action_space = gym.spaces.Discrete(self.layout.rows)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seed = seed
        self._rngs: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | Sequence[int | None] | np.ndarray | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a window in each place, or where options["reset_mask"] (N,) is true; first with the seed given before.

        Raises ValueError for a mask that has not one truth value for each place, and seeds of another number.
        """
        which = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if which.shape != (self.num_envs,) or which.dtype != bool:
            what = f"reset_mask has the shape {which.shape} and the type {which.dtype}"
            raise ValueError(f"{what}: expected a truth value for each of {self.num_envs} windows")
        seed = self._seed if seed is None else seed
        self._seed = None
        self._rngs = place_generators(seed, self._rngs, self.num_envs)
        drawn = {int(place): self._open(int(place)) for place in np.flatnonzero(which)}
        infos = self._infos()
        for key, values in (
            ("start", [one.start for one in drawn.values()]),
            ("jobs", [one.length for one in drawn.values()]),
        ):
            infos[key], infos[f"_{key}"] = np.zeros(self.num_envs, dtype=np.int64), which.copy()
            infos[key][list(drawn)] = values
        return self.stepper.observations.copy(), infos

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Choose a row in every window.

        Raises RuntimeError for windows that have not begun or are over, and ValueError as `rows_of`.
        """
        stepper, over = self.stepper, self.stepper.ended.copy()
        actions = rows_of(actions, self.num_envs, self.layout.rows)
        if over.any() and (unopened := [place for place, drawn in enumerate(stepper.drawn) if drawn is None]):
            raise RuntimeError(f"the windows {unopened} have not begun: call reset")
        if self.autoreset_mode == AutoresetMode.DISABLED and over.any():
            raise RuntimeError(f"the windows {np.flatnonzero(over).tolist()} have ended: call reset with a reset_mask")
        if not over.all():
            stepper.step(actions)
        rewards, ended = stepper.rewards.copy(), stepper.ended & ~over
        final: dict[int, dict[str, Any]] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            for place in np.flatnonzero(ended).tolist():
                final[place] = {"final_obs": stepper.observations[place].copy(), "final_info": stepper.info(place)}
                self._open(place)
        elif self.autoreset_mode == AutoresetMode.NEXT_STEP:
            for place in np.flatnonzero(over).tolist():
                rewards[place] = 0.0
                self._open(place)
        infos = self._infos() | gathered(final, self.num_envs)
        return stepper.observations.copy(), rewards, ended, np.zeros(self.num_envs, dtype=bool), infos

    def action_masks(self) -> np.ndarray:
        """Return True for each row that may be chosen now (N, rows)."""
        return self.stepper.masks.copy()

    def _open(self, place: int) -> Drawn:
        drawn = self.task.draw(self._rngs[place])
        self.stepper.open(place, drawn)
        return drawn

    def _infos(self) -> dict[str, Any]:
        found, every = self.stepper.infos(), np.ones(self.num_envs, dtype=bool)
        return found | {f"_{key}": every for key in found}


def make(
    task: Task | None = None,
    num_envs: int = 1,
    seed: int | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    **windows: Any,
) -> BatchVectorEnv:
    """Return the vectorised environment of a task, or of the trace and settings that the keywords of `windows_task`
    name.
    """
    return BatchVectorEnv(given_task(task, windows), num_envs, seed, autoreset_mode)
