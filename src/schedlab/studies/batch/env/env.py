"""The Gymnasium environments of the batch study: an episode is a window of jobs, and a step chooses the next of
them.

The action is the job's row, or the weights of a linear priority (for DDPG and for search).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import gymnasium as gym
import numpy as np

from schedlab.config.contract import Split
from schedlab.config.data_paths import find_data
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.schema import settings_given
from schedlab.studies.batch.env.layouts import Layout, Scales
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import Jobs, Machine, jobs_of, machine_of
from schedlab.studies.batch.rules import NAMES
from schedlab.studies.batch.scenario import NAMED_BACKFILLS, STEPPED, Backfill, BackfillOrder, WindowSettings
from schedlab.studies.batch.simulator.stepper import Stepper, Task
from schedlab.studies.batch.windows import part_of, window_starts
from schedlab.workloads.clean import CleaningSettings, clean
from schedlab.workloads.lublin import LublinSettings, lublin
from schedlab.workloads.prepare import read_log
from schedlab.workloads.trace import Trace

LENGTH = 256  # jobs of a window, as published
DEFAULTS = {"layout": "shortlist", "reward": "accrued"}  # of the environments that Gymnasium makes: for stock agents


class BatchEnv(gym.Env[np.ndarray, Any]):
    """Choose one waiting job after another, until every job of the window has started.

    Observation: float32 vector, rows of jobs, then the machine (`layout` names the columns and splits it). Actions:
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
        self.action_space = gym.spaces.Discrete(self.layout.rows)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a window, drawn or given by `options={"start": its first job}`; the first reset uses the seed of the
        construction. Raises UserError for another start than those of the task.
        """
        super().reset(seed=self._seed if seed is None else seed)
        self._seed = None
        drawn = self.task.draw(self.np_random)
        start = (options or {}).get("start", drawn.start)
        if start not in self.task.starts:
            expected = f"one of the {len(self.task.starts)} starts of the task (task.starts)"
            raise UserError(f"no window begins at job {start!r}", where="options of reset: start", expected=expected)
        drawn = drawn._replace(start=int(start))
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
        """Return True for each row that may be chosen now (rows,)."""
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
    length: int = LENGTH,
) -> Task:
    """Return windows of the first half of 4000 drawn jobs, 128 processors. Raises UserError for wrong settings."""
    return windows_task(settings_given(EnvironmentSettings, settings), backfilling=backfill, length=length)


def windows_task(
    settings: EnvironmentSettings | Mapping[str, Any] | None = None,
    trace: str | Path | Trace | None = None,
    backfilling: str = "none",
    part: Split = "train",
    length: int = LENGTH,
) -> Task:
    """Return the windows of one part of a trace.

    settings     what is observed and rewarded; keys that a mapping does not name are those of DEFAULTS, then of
                 EnvironmentSettings
    trace        a file in the Standard Workload Format (.gz: compressed; found by `find_data`), or a Trace; it is
                 cleaned by the default rules. None: 4000 drawn jobs, 128 processors
    backfilling  none, legacy, easy, conservative, easy_sjf or easy_area
    part         train: the first half, where a window may begin at any job; validation: the next tenth; test: the rest;
                 there, windows follow each other
    length       jobs of a window
    Raises UserError for each of these that is wrong.
    """
    if settings is None or isinstance(settings, Mapping):
        settings = {**DEFAULTS, **(settings or {})}
    settings = settings_given(EnvironmentSettings, settings)
    backfill, backfill_order = _backfilling(backfilling)
    if part not in get_args(Split):
        raise UserError(f"there is no part '{part}'", where="part", expected=", ".join(get_args(Split)))
    jobs, machine, maxima = _workload(trace)
    windows = settings_given(WindowSettings, {"length": length}, "windows")
    first, end = part_of(len(jobs), windows, part)
    starts = range(first, end - length + 1) if part == "train" else window_starts(len(jobs), windows, part)
    if not len(starts):
        what = f"the part '{part}' has {end - first} of {len(jobs)} jobs, too few for a window of {length}"
        raise UserError(what, where="length", expected="a shorter window, or a longer trace")
    learned = jobs.take(slice(*part_of(len(jobs), windows, "train")))
    scales = Scales.published(maxima) if settings.scales == "whole" and maxima else Scales.of(learned)
    return Task(
        jobs,
        machine,
        starts,
        (length, length),
        backfill,
        scales=scales,
        settings=settings,
        backfill_order=backfill_order,
    )


def _backfilling(name: str) -> tuple[Backfill, BackfillOrder]:
    """The mode and order of backfilling that a user names."""
    modes: dict[str, tuple[Backfill, BackfillOrder]] = {mode: (mode, "default") for mode in STEPPED}
    modes |= NAMED_BACKFILLS
    if name not in modes:
        remedy = did_you_mean(str(name), modes) if isinstance(name, str) else None
        what = f"there is no backfilling {name!r} for an agent that chooses job by job"
        raise UserError(what, where="backfilling", expected=", ".join(modes), remedy=remedy)
    return modes[name]


def _workload(trace: str | Path | Trace | None) -> tuple[Jobs, Machine, Mapping[str, float] | None]:
    """The jobs of a trace, its machine, and the largest values before the cleaning."""
    if trace is None:
        trace = lublin(LublinSettings(jobs=4000, processors=128, load=0.9), seed=0)
    if isinstance(trace, Trace):
        cleaned, report = clean(trace, CleaningSettings())
        machine = machine_of(cleaned)
        return jobs_of(cleaned, machine), machine, report.values().get("maxima")
    if not isinstance(trace, str | Path):
        what = f"{type(trace).__name__} is no trace"
        raise UserError(what, where="trace", expected="the path of a file in the Standard Workload Format, or a Trace")
    file = find_data(trace)
    return _of_file(file, file.stat().st_mtime_ns if file.is_file() else 0)


@lru_cache(maxsize=2)  # for the many environments of one learner
def _of_file(file: Path, changed: int) -> tuple[Jobs, Machine, Mapping[str, float] | None]:
    del changed
    trace, report = read_log(file, CleaningSettings())
    machine = machine_of(trace)
    return jobs_of(trace, machine), machine, report.values().get("maxima")


def given_task(task: Task | None, windows: Mapping[str, Any]) -> Task:
    """Return the task, or that of `windows_task` with these keywords. Raises UserError if both are given."""
    if task is not None and windows:
        what = f"a task and {', '.join(windows)}"
        raise UserError(what, where="gymnasium.make", expected="a task, which has settings of its own, or the others")
    return task or windows_task(**windows)


def make(task: Task | None = None, seed: int | None = None, render_mode: str | None = None, **windows: Any) -> BatchEnv:
    """Return the environment of a task, or of the trace and settings that the keywords of `windows_task` name."""
    return BatchEnv(given_task(task, windows), seed, render_mode)


def make_weights(
    task: Task | None = None, seed: int | None = None, render_mode: str | None = None, **windows: Any
) -> BatchWeightsEnv:
    """Return the environment whose actions are weights, like `make`, by default in the layout features."""
    settings = windows.get("settings")
    if task is None and (settings is None or isinstance(settings, Mapping)):
        windows["settings"] = {"layout": "features", **(settings or {})}
    return BatchWeightsEnv(given_task(task, windows), seed, render_mode)
