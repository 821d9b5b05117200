"""The Gymnasium environments of the batch study: an episode is a window of jobs, and a step chooses the next of
them.

The action is the job's row, or the weights of a linear priority (for DDPG and for search).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.schema import settings_given
from schedlab.studies.batch.env.layouts import Layout
from schedlab.studies.batch.env.settings import ROWS, EnvironmentSettings
from schedlab.studies.batch.jobs import Jobs, Machine, jobs_of, machine_of
from schedlab.studies.batch.rules import NAMES
from schedlab.studies.batch.scenario import Backfill
from schedlab.studies.batch.simulator.stepper import Stepper, Task
from schedlab.workloads.prepare import make_trace
from schedlab.workloads.settings import WorkloadSettings

EXAMPLE_LENGTH = 256  # jobs of a window, as published


class BatchEnv(gym.Env[np.ndarray, Any]):
    """Choose one waiting job after another, until every job of the window has started.

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
        """Choose a row; continue to the next decision or to the end of the window. Raises ValueError for an invalid
        row.
        """
        stepper = self.stepper
        stepper.step(np.asarray([action]))
        return stepper.observations[0].copy(), float(stepper.rewards[0]), bool(stepper.ended[0]), False, stepper.info(0)

    @property
    def padding(self) -> np.ndarray:
        """The padding of an observation (size,), which learners need not store."""
        return self.layout.padding

    def action_masks(self) -> np.ndarray:
        """Return True for each row that may be chosen now (128,)."""
        return self.stepper.masks[0].copy()

    def render(self) -> str:
        """Return the time and the jobs as a line of text."""
        info = self.stepper.info(0)
        return f"{info['time']:g} s: {info['waiting']} jobs wait, {info['running']} run, {info['started']} have started"


class BatchWeightsEnv(BatchEnv):
    """Give a weight to each feature of a job; the job with the highest weighted sum is chosen, of equals the
    first.

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
    """Return the columns that have a weight: the features of the linear priority, with plans if they are observed."""
    return [name for name in layout.columns if name in NAMES]


def best_row(layout: Layout, observation: np.ndarray, mask: np.ndarray, weights: np.ndarray) -> int:
    """Return the allowed row (128,) with the highest weighted sum; 0 if none is allowed.

    observation  (size,) in the layout features        weights  one for each of `weighted`
    """
    rows, _ = layout.split(observation)
    places = [layout.columns.index(name) for name in weighted(layout)]
    sums = np.where(mask & (layout.column(observation, "job") > 0), rows[:, places] @ weights, -np.inf)
    return int(np.argmax(sums))


def example_task(
    settings: EnvironmentSettings | Mapping[str, Any] | None = None,
    backfill: Backfill = "none",
    length: int = EXAMPLE_LENGTH,
) -> Task:
    """Return windows of the first half of 4000 drawn jobs, 128 processors. Raises UserError for wrong settings."""
    settings = settings_given(EnvironmentSettings, settings)
    jobs, machine = _workload()
    half = jobs.take(slice(0, len(jobs) // 2))
    return Task(half, machine, range(len(half) - length + 1), (length, length), backfill, settings=settings)


@cache
def _workload() -> tuple[Jobs, Machine]:
    values = {"name": "example", "source": "lublin", "lublin": {"jobs": 4000, "processors": 128, "load": 0.9}}
    trace = make_trace(WorkloadSettings.model_validate(values))[0]
    machine = machine_of(trace)
    return jobs_of(trace, machine), machine


def make(
    task: Task | None = None,
    seed: int | None = None,
    render_mode: str | None = None,
    settings: EnvironmentSettings | Mapping[str, Any] | None = None,
) -> BatchEnv:
    """Return the environment of a task; without one, of the example with these settings (`example_task`)."""
    return BatchEnv(task or example_task(settings), seed, render_mode)


def make_weights(
    task: Task | None = None,
    seed: int | None = None,
    render_mode: str | None = None,
    settings: EnvironmentSettings | Mapping[str, Any] | None = None,
) -> BatchWeightsEnv:
    """Return the environment whose actions are weights, like `make`."""
    return BatchWeightsEnv(task or example_task(settings), seed, render_mode)
