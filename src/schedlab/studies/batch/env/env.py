"""The Gymnasium environment of the batch study: one episode is a window of jobs, one step chooses the next of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.studies.batch.env.settings import ROWS, EnvironmentSettings
from schedlab.studies.batch.example import example_task
from schedlab.studies.batch.simulator.stepper import Stepper, Task

ENVIRONMENT = "schedlab/Batch-v0"


class BatchEnv(gym.Env[np.ndarray, Any]):
    """Choose a waiting job, again and again, until every job of the window has started.

    Observation: float32 vector, 128 rows of jobs, then the machine (`layout` names the columns and splits it). Actions:
    the row; `action_masks`: which rows may be chosen. An episode is a window of the task, drawn at reset; it ends when
    every job has started. `info`: time (s), jobs waiting, running, started, replaced rows, and the measure ("score").
    Raises UserError for an impossible task, and, where the settings say so, for a row without a job.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(self, task: Task, seed: int | None = None, render_mode: str | None = None) -> None:
        self.task, self.layout, self.render_mode = task, task.layout, render_mode
        self.stepper = Stepper(task, 1)
        self._seed = seed
        self.observation_space = gym.spaces.Box(-1.0, self.layout.high, (self.layout.size,), np.float32)
        self.action_space = gym.spaces.Discrete(ROWS)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a window; the first reset uses the seed of the construction."""
        del options
        super().reset(seed=self._seed if seed is None else seed)
        self._seed = None
        drawn = self.task.draw(self.np_random)
        self.stepper.open(0, drawn)
        return self.stepper.observations[0].copy(), self.stepper.info(0) | {"start": drawn.start, "jobs": drawn.length}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Choose a row; go on to the next decision or the end of the window. Raises ValueError for what is no row."""
        stepper = self.stepper
        stepper.step(np.asarray([action]))
        return stepper.observations[0].copy(), float(stepper.rewards[0]), bool(stepper.ended[0]), False, stepper.info(0)

    @property
    def padding(self) -> np.ndarray:
        """What an observation (size,) is where it tells nothing, for learners that need not store it."""
        return self.layout.padding

    def action_masks(self) -> np.ndarray:
        """Return True for each row that may be chosen now (128,)."""
        return self.stepper.masks[0].copy()

    def render(self) -> str:
        """Return the time and the jobs as a line of text."""
        info = self.stepper.info(0)
        return f"{info['time']:g} s: {info['waiting']} jobs wait, {info['running']} run, {info['started']} have started"


def make(
    task: Task | None = None,
    seed: int | None = None,
    render_mode: str | None = None,
    settings: EnvironmentSettings | Mapping[str, Any] | None = None,
) -> BatchEnv:
    """Return the environment of a task; without one, of the example with these settings (`example.example_task`)."""
    return BatchEnv(task or example_task(settings), seed, render_mode)
