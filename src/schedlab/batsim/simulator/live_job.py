"""A job from its submission to its end."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from schedlab.batsim.files.profiles import Composed, Delay, Profile, Receive, Send
from schedlab.batsim.files.usage_trace import Steps
from schedlab.batsim.files.workload import SEPARATOR, Job
from schedlab.batsim.resource_set import EMPTY, ResourceSet

SUBMITTED = "SUBMITTED"
RUNNING = "RUNNING"
REJECTED = "REJECTED"
SUCCESS = "COMPLETED_SUCCESSFULLY"
FAILED = "COMPLETED_FAILED"
WALLTIME_REACHED = "COMPLETED_WALLTIME_REACHED"
KILLED = "COMPLETED_KILLED"
FINAL_STATES = (SUCCESS, FAILED, WALLTIME_REACHED, KILLED)

_NO_STORAGE: Mapping[str, int] = MappingProxyType({})
_NO_TIME = 1e-5  # s; run time that Batsim records for a job that took no time


class LiveJob:
    """A submitted job: the request (`job`), its `state` and, while it runs, its place in the tree of its
    profile.

    Dates and times in s. `frames` holds the sequences entered, each with the index of its current part (repetitions
    counted); `leaf` is the profile being executed since `leaf_since`; `token` changes whenever its end is planned
    again.
    """

    __slots__ = (
        "alloc", "deadline", "energy", "executors", "extra_profile", "finish", "frames", "job", "kill_requested",
        "leaf", "leaf_since", "messages", "metadata", "out_of_time", "ranks", "return_code", "runtime", "slowdown",
        "start", "state", "storage", "submission", "task", "token", "turnaround", "waiting",
    )  # fmt: skip

    def __init__(self, job: Job, submission: float) -> None:
        self.job, self.submission, self.state = job, submission, SUBMITTED
        self.alloc: ResourceSet = EMPTY
        self.executors: list[int] | None = None  # hosts of a mapping; None: those of `alloc`
        self.extra_profile: tuple[Profile, list[int]] | None = None
        self.storage: Mapping[str, int] = _NO_STORAGE
        self.frames: list[list[Any]] = []
        self.leaf: Any = None  # a Profile while it runs
        self.task: Any = None  # a Task while one is in progress
        self.ranks: list[Rank] | None = None  # executors of a usage trace while one is in progress
        self.messages: deque[str] | None = None
        self.metadata = ""
        self.start = self.finish = math.nan
        self.deadline = math.inf
        self.energy = -1.0
        self.return_code = self.token = 0
        self.leaf_since = 0.0
        self.out_of_time = self.kill_requested = False
        self.runtime = self.waiting = self.turnaround = self.slowdown = math.nan  # s, of an ended job

    def finish_at(self, now: float) -> None:
        """Note the end of the job's run, and compute its times (the run time is never 0) and its slowdown."""
        self.finish = now
        self.runtime, self.waiting = now - self.start or _NO_TIME, self.start - self.submission
        self.turnaround = self.waiting + self.runtime
        self.slowdown = self.turnaround / self.runtime

    def progress(self, now: float) -> dict[str, Any]:
        """Return the progress of the job as a tree: the index of the current part of each sequence, and the share of
        work done in the leaf.
        """
        leaf = self.leaf
        assert leaf is not None
        if self.task is not None:
            done = self.task.progress(now)
        elif self.ranks:
            done = sum(rank.progress(now) for rank in self.ranks) / len(self.ranks)
        elif isinstance(leaf, Delay | Send) and leaf.seconds > 0:
            done = min(1.0, (now - self.leaf_since) / leaf.seconds)
        else:
            done = 0.0
        tree: dict[str, Any] = {"profile_name": leaf.name, "progress": done}
        for profile, index in reversed(self.frames):
            if isinstance(profile, Composed | Receive):
                tree = {"profile_name": profile.name, "current_task_index": index, "current_task": tree}
        return tree

    def row(self) -> str:
        """Return the job's line of `_jobs.csv`."""
        job = self.job
        workload, _, number = job.id.partition(SEPARATOR)
        metadata = self.metadata and self.metadata.replace('"', '""')
        head = (
            f"{number if number.isalnum() else _cell(number)},{_cell(workload)},{_cell(job.profile.name)},"
            f"{self.submission:.6f},{job.resources},{job.walltime:.6f}"
        )
        if self.state == REJECTED:
            return f'{head},0,REJECTED,,,,,,,,,"{metadata}"\n'
        start, state = self.start, self.state
        return (
            f"{head},{1 if state == SUCCESS else 0},{state},{start:.6f},{self.runtime:.6f},{start + self.runtime:.6f},"
            f"{self.waiting:.6f},{self.turnaround:.6f},{self.slowdown:.6f},{self.alloc!s},{self.energy:.6f},"
            f'"{metadata}"\n'
        )


class Rank:
    """An executor of a job's usage trace: its `host`, its remaining `steps`, and the current `task` (None: it has
    ended).
    """

    __slots__ = ("deadline", "flops", "host", "job", "steps", "task", "token")

    def __init__(self, job: LiveJob, host: int, steps: Steps) -> None:
        self.job, self.host, self.steps = job, host, deque(steps)
        self.flops = sum(flops for _, flops in steps)
        self.task: Any = None
        self.token, self.deadline = 0, math.inf  # the job's deadline ends all its executors

    def progress(self, now: float) -> float:
        """Return the share of the flop done, 0 to 1."""
        if self.task is None:
            return 1.0
        left = sum(flops for _, flops in self.steps)
        left += self.task.flops / self.task.cores * (1.0 - self.task.progress(now))
        return float(1.0 - left / self.flops)


@lru_cache(maxsize=1024)
def _cell(text: str) -> str:
    """Return a text as a cell of CSV."""
    return text if _PLAIN(text) else '"' + text.replace('"', '""') + '"'


_PLAIN = re.compile(r'[^,"\r\n]*').fullmatch
