"""The continuous variant of the environment: an action is the weights of a linear priority, for DDPG and for search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.env.env import BatchEnv
from schedlab.studies.batch.env.layouts import Layout
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.example import example_task
from schedlab.studies.batch.rules import NAMES
from schedlab.studies.batch.simulator.stepper import Task

ENVIRONMENT = "schedlab/BatchWeights-v0"


class BatchWeightsEnv(BatchEnv):
    """Give a weight to each feature of a job; the job of the highest weighted sum is chosen, the first of several.

    As BatchEnv in the layout features, but for the action: float32 vector of the weights of `weighted`, from -1 to 1.
    """

    def __init__(self, task: Task, seed: int | None = None, render_mode: str | None = None) -> None:
        if task.settings.layout != "features":
            raise UserError(
                f"the layout {task.settings.layout} has no features to weigh",
                where="environment.layout",
                expected="features",
            )
        super().__init__(task, seed, render_mode)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (len(weighted(self.layout)),), np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Choose the job that the weights prefer, and go on to the next decision or to the end of the window."""
        weights = np.asarray(action, dtype=np.float32)
        if weights.shape != self.action_space.shape or not np.isfinite(weights).all():
            raise ValueError(f"action {action} is not {len(weighted(self.layout))} finite weights")
        return super().step(best_row(self.layout, self.stepper.observations[0], self.stepper.masks[0], weights))


def weighted(layout: Layout) -> list[str]:
    """Return the columns that have a weight: the features of the linear priority, plans where they are shown."""
    return [name for name in layout.columns if name in NAMES]


def best_row(layout: Layout, observation: np.ndarray, mask: np.ndarray, weights: np.ndarray) -> int:
    """Return the row (128,) of the highest weighted sum among those that the mask allows, 0 where there is none.

    observation  (size,) in the layout features        weights  one for each of `weighted`
    """
    rows, _ = layout.split(observation)
    places = [layout.columns.index(name) for name in weighted(layout)]
    sums = np.where(mask & (layout.column(observation, "job") > 0), rows[:, places] @ weights, -np.inf)
    return int(np.argmax(sums))


def make(
    task: Task | None = None,
    seed: int | None = None,
    render_mode: str | None = None,
    settings: EnvironmentSettings | Mapping[str, Any] | None = None,
) -> BatchWeightsEnv:
    """Return the environment of a task; without one, of the example with these settings (`example.example_task`)."""
    return BatchWeightsEnv(task or example_task(settings), seed, render_mode)
