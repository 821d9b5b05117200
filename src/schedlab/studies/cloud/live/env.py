"""schedlab/CloudLive-v0: as the replay, but with real training. A step takes an action and runs the user's script in a
subprocess.

Times on a real machine cannot be reproduced: measure them once (`schedlab cloud sweep`), fit the model, and learn in
the replay. See docs/guide/cloud_live.md.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed
from schedlab.studies.cloud.live.machine import machine_limits, machine_resources
from schedlab.studies.cloud.live.process import DISK_GB
from schedlab.studies.cloud.live.run import LiveRequest, LiveRun, run_script
from schedlab.studies.cloud.model.allocation import ACTIONS, KEEP, Allocation, ResourceConfig, action_at, moved
from schedlab.studies.cloud.replay.env import OBJECTIVES, scores_of, weights_of
from schedlab.studies.cloud.replay.sla import GPU_COLUMN, SLAConfig, gpu_utilisations
from schedlab.studies.cloud.replay.state import SIZE, CloudEnvironmentState

EXAMPLE = "resources/examples/train_mlp.py"
MOST_FAILURES = 3  # intervals that broke a limit after which an episode is cut off


@dataclass(frozen=True)
class LiveJob:
    """A training job to run: `epochs` of a script in intervals, on at most `resource`, beginning with the allocation
    `start` (None: the largest one).

    batch               batch size (None: that of the script), on each GPU if `per_gpu`, else in total
    command             words of a command that trains (LiveRequest); empty: the script is run as Python
    seconds, disk_gb    limits on the wall-clock time of an interval and on the files in its folder
    time_ref, cost_ref  time (s) and cost ($) that divide those of the job in the objective; None: their limits
    memory_needed       GB; actions that lead to less memory are masked
    gpus_per_node       for the performance model
    """

    script: Path
    epochs: int = 4
    interval: int = 1
    batch: int | None = None
    per_gpu: bool = False
    command: tuple[str, ...] = ()
    dataset_path: Path | None = None
    resource: ResourceConfig = field(default_factory=machine_resources)
    sla: SLAConfig = field(default_factory=machine_limits)
    start: Allocation | None = None
    seconds: float = 3600.0
    disk_gb: float = DISK_GB
    time_ref: float | None = None
    cost_ref: float | None = None
    memory_needed: float = 0.0
    gpus_per_node: int = 8
    seed: int = 0

    @property
    def first(self) -> Allocation:
        """The start allocation."""
        return self.start or self.resource.most

    @property
    def intervals(self) -> int:
        """Number of decisions until the job ends."""
        return -(-self.epochs // self.interval)

    def request(self, allocation: Allocation, epochs: int, **fields: Any) -> LiveRequest:
        """Return the request to train on an allocation. fields: further ones of the request."""
        return LiveRequest(
            script=self.script,
            allocation=allocation,
            epochs=epochs,
            batch=self.batch * max(1, allocation.gpu_count) if self.batch and self.per_gpu else self.batch,
            prices=self.resource,
            dataset_path=self.dataset_path,
            seconds=self.seconds,
            disk_gb=self.disk_gb,
            command=self.command,
            **{"seed": self.seed, **fields},
        )


class CloudLiveEnv(gym.Env[np.ndarray, Any]):
    """The environment of real runs. Observations, actions, rewards and `info` are those of CloudReplayEnv with its
    defaults; time and cost are those of the runs. The paper's space, the published reward and adaptive weights exist
    only in the replay. Without GPUs, the service level of GPUs does not apply.

    Time consists of the time of the epochs and, if the allocation changed, of the start (imports, data); a job whose
    allocation stays would not have been stopped. An interval that exceeds a limit on memory, time or disk is
    paid for and repeated; after MOST_FAILURES such intervals the episode is truncated. `info["run"]` is the run. If a
    script saves no checkpoint, each interval starts the training from the beginning (`info["resumes"]` is false).
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(
        self,
        job: LiveJob,
        preference: str = "balanced",
        seed: int | None = None,
        render_mode: str | None = None,
        folder: Path | None = None,
    ) -> None:
        if job.epochs < 1 or job.interval < 1:
            what = f"{job.epochs} epochs in intervals of {job.interval}"
            raise UserError(what, where="live job", expected="1 or more of both")
        self.job, self.preference, self.render_mode = job, preference, render_mode
        self.weights = weights_of(preference)
        self.actions = tuple(range(ACTIONS))
        self.observation_space = gym.spaces.Box(0.0, 1.0, (SIZE,), np.float32)
        self.action_space = gym.spaces.Discrete(ACTIONS)
        self._seed, self._episode, self._runs = seed, -1, 0
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="schedlab-live-")) if folder is None else Path(folder)
        self._begin()

    def _begin(self) -> None:
        job = self.job
        bounds = zip(job.first, job.resource.least, job.resource.most, Allocation._fields, strict=True)
        for have, least, most, name in bounds:
            if not least <= have <= most:
                raise UserError(f"'{name}' is {have:g}", where="start allocation", expected=f"{least:g} to {most:g}")
        self.allocation = Allocation(*job.first)
        self.steps = self.epoch = self.failures = self.restarts = 0
        self.time = self.cost = self.gpu_hours = self.waste = self.severity = 0.0
        self.checkpoint: Path | None = None
        self.gpu_util: float | None = None
        self.state = CloudEnvironmentState(job.resource, job.sla)
        self.state.gpus_apply = job.resource.gpu_count_max > 0
        self.state.update({**self.allocation._asdict(), "total_epochs": job.epochs})
        self.state.status = CloudEnvironmentState(job.resource, job.sla).status  # nothing was measured yet

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode: the job starts again, with seeds of the script that are derived from this seed.

        options  {"preference": name}
        """
        super().reset(seed=self._seed if seed is None else seed)
        self._root = seed if seed is not None else self._seed if self._seed is not None else 0
        self._seed = None
        if options and "preference" in options:
            self.weights, self.preference = weights_of(options["preference"]), options["preference"]
        self._episode, self._runs = self._episode + 1, 0
        self._begin()
        return self.vector, {"allocation": self.allocation._asdict()}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take an action and train for an interval. Raises ScriptFailed if the script fails."""
        return self.train_on(moved(self.allocation, action_at(self.actions, action), self.job.resource))

    def train_on(self, allocation: Allocation) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Train for an interval on a given allocation, which must be within the limits; else as `step`."""
        if self.epoch >= self.job.epochs:
            raise RuntimeError("the training is done: call reset")
        if self._episode < 0:
            raise RuntimeError("call reset first")
        changed, self.allocation = allocation != self.allocation, allocation
        run = self._run()
        self.steps += 1
        self.restarts += changed
        record, seconds, share = self._account(run, changed)
        self.state.update(record)
        self.severity += sum(verdict.severity for verdict in self.state.status.values()) * seconds
        price = self.job.resource.hourly_price(*self.allocation) / 3600.0
        busy = float(record.get("cpu_percent", 0.0)) / 100.0  # of the allocated cores, or of cores and GPUs
        if self.allocation.gpu_count:
            busy = (busy + (self.gpu_util or 0.0) / 100.0) / 2.0
        waste = (1.0 - busy) * share
        self.waste += waste
        self.gpu_hours += self.allocation.gpu_count * seconds / 3600.0
        time_ref, cost_ref = self._references()
        parts = (-seconds / time_ref, -seconds * price / cost_ref, -waste, self.state.compliance * share)
        objectives = dict(zip(OBJECTIVES, parts, strict=True))
        done = self.epoch >= self.job.epochs
        cut = self.failures >= MOST_FAILURES and not done
        resumes = self.checkpoint is not None
        info = {"record": record, "objectives": objectives, "changed": changed, "run": run, "resumes": resumes}
        if done or cut:
            info["scores"] = self.scores()
        reward = sum(weight * objectives[name] for name, weight in self.weights.items())
        return self.vector, float(reward), done, cut, info

    def _run(self) -> LiveRun:
        job = self.job
        epochs = min(job.interval, job.epochs - self.epoch)
        request = job.request(
            self.allocation,
            epochs,
            seed=derive_seed(self._root, "live", self._episode) % 2**31,
            first_epoch=self.epoch,
            total_epochs=job.epochs,
            checkpoint=self.checkpoint,
            gpu_util=self.gpu_util,
        )
        self._runs += 1  # also where the script fails: the next try has a separate folder
        return run_script(request, self.folder / f"{self._episode:03d}-{self._runs - 1:03d}")

    def _account(self, run: LiveRun, changed: bool) -> tuple[dict[str, Any], float, float]:
        """Charge a run to the job; return its record, its seconds, and the share of the job that it trained."""
        trained, seconds = run.how == "done", run.seconds
        if trained:
            seconds = float(run.table["epoch_time"].sum()) + run.overhead * (changed or self.steps == 1)
        self.time += seconds
        self.cost += seconds * self.job.resource.hourly_price(*self.allocation) / 3600.0
        epochs = min(len(run.table), self.job.epochs - self.epoch) if trained else 0
        self.epoch, self.failures = self.epoch + epochs, self.failures + (not trained)
        record = {
            **(run.summary if trained else {"throughput": 0.0}),
            **self.allocation._asdict(),
            "epoch": self.epoch,
            "total_epochs": self.job.epochs,
            "time_so_far": self.time,
            "cost_so_far": self.cost,
        }
        if trained:
            self.checkpoint = run.checkpoint
            means = run.table.mean(numeric_only=True)
            averaged = [name for name in means.index if name in AVERAGED or str(name).startswith(GPU_COLUMN)]
            record |= {name: float(means[name]) for name in averaged}
            used = gpu_utilisations(record)
            self.gpu_util = sum(used) / len(used) if used else None
        return record, seconds, epochs / self.job.epochs

    def _references(self) -> tuple[float, float]:
        job = self.job
        return job.time_ref or job.sla.time_max or 1.0, job.cost_ref or job.sla.cost_max or 1.0

    def objective(self) -> float:
        """Return the objective J up to now, with the weights of the preference."""
        time_ref, cost_ref = self._references()
        of = {"time": self.time / time_ref, "cost": self.cost / cost_ref, "resource": self.waste}
        return sum(weight * of[name] for name, weight in self.weights.items())

    def scores(self) -> dict[str, float]:
        """Return the scores of the episode up to now, under the names of the replay."""
        return scores_of(self, sum(self.state.status[item].met for item in self.state.items))

    def action_masks(self) -> np.ndarray:
        """Return True for each action after which at least `memory_needed` is allocated; if there is none, for KEEP."""
        after = [moved(self.allocation, action, self.job.resource) for action in self.actions]
        mask = np.array([allocation.memory_gb >= self.job.memory_needed for allocation in after])
        mask[KEEP] |= not mask.any()
        return mask

    def render(self) -> str:
        """Return progress, allocation, time and cost as a line of text."""
        gpus, cores, memory = self.allocation
        held = f"{gpus} GPUs, {cores} cores, {memory:g} GB"
        return f"epoch {self.epoch} of {self.job.epochs}: {held}; {self.time:.1f} s, ${self.cost:.4f}"

    def close(self) -> None:
        """Remove the folder of the runs if it is a temporary one."""
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def vector(self) -> np.ndarray:
        """All components of the state, (26,)."""
        return np.clip(self.state.vector(), 0.0, 1.0)


# Columns averaged over an interval; of all others, the last row counts.
AVERAGED = frozenset({"throughput", "cpu_percent", "epoch_time"})


def make(
    script: Path | str | None = None,
    preference: str = "balanced",
    seed: int | None = None,
    render_mode: str | None = None,
    folder: Path | None = None,
    **job: Any,
) -> CloudLiveEnv:
    """Return the environment of a script, or of the bundled example if none is given. job: further fields of
    LiveJob.
    """
    path = Path(script) if script is not None else find_resource(EXAMPLE)
    return CloudLiveEnv(LiveJob(path, **job), preference, seed, render_mode, folder)
