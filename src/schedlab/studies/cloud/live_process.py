"""A subprocess within limits: cores, memory, time. It is watched while it runs, and nothing that it started outlives it.

Limits are not a sandbox: a script that means harm can undo its own affinity. They hold for scripts that train.
Source: specification of the study cloud, B2 (CloudLive).
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

import psutil

from schedlab.config.errors import UserError
from schedlab.studies.cloud.live_child import MEMORY

RUN_VARIABLE = "SCHEDLAB_RUN"  # a secret word in the environment of all that a run starts, by which it is found again
TAIL = 64 * 1024  # bytes of output that are kept: the last ones
SAMPLE_EVERY = 0.1  # s
PASSES = 20  # over all processes: what is found may have started another meanwhile
OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "an't allocate memory", "annot allocate memory", "out of memory")
How = Literal["done", "error", "memory", "time"]


class ScriptFailed(UserError):
    """The user's script did not do what it was started for."""


@dataclass(frozen=True)
class Limits:
    """What a subprocess may take: cores by number, bytes (None: as many as there are), seconds."""

    cpus: tuple[int, ...]
    memory_bytes: int | None
    seconds: float


@dataclass(frozen=True)
class Sample:
    """What a subprocess and its children were seen to use.

    seconds      since the start              cpu_seconds  of all of them since then
    rss_bytes    memory resident at the time  progress     as the caller counts it
    """

    seconds: float
    cpu_seconds: float
    rss_bytes: int
    progress: int


@dataclass(frozen=True)
class Ended:
    """How a subprocess ended: done, error, memory (above its limit), time (above its limit); exit status; wall-clock s; last output."""

    how: How
    status: int
    seconds: float
    output: str
    samples: list[Sample] = field(default_factory=list)


def available_cpus() -> tuple[int, ...]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def run_limited(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], limits: Limits, progress: Callable[[], int] = lambda: 0
) -> Ended:
    """Run a command without a shell in a folder and an environment of its own, until it ends or breaks a limit.

    The memory of all its processes together is watched; cores and each process's own memory are for the command itself to limit
    (live_child). Whatever it leaves running is ended, also what left its process group. progress: counted at each sample.
    """
    word = secrets.token_hex(16)
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, RUN_VARIABLE: word},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    tail: deque[bytes] = deque()
    reader = threading.Thread(target=_keep_tail, args=(process.stdout, tail), daemon=True)
    reader.start()
    samples: list[Sample] = []
    try:
        broken = _watch(process, started, limits, samples, progress)
        seconds = time.monotonic() - started
    finally:
        _end_all(process, word)
    reader.join(timeout=5)
    output = b"".join(tail)[-TAIL:].decode("utf-8", errors="replace")
    return Ended(broken or _how(process.returncode, output), process.returncode, seconds, output, samples)


def _watch(process: subprocess.Popen, started: float, limits: Limits, samples: list[Sample], progress: Callable[[], int]) -> How | None:
    """Sample until the process ends; returns the limit that it broke, if any."""
    watched = psutil.Process(process.pid)
    while True:
        seconds = time.monotonic() - started
        if seconds > limits.seconds:
            return "time"
        if (used := _used(watched)) is not None:
            samples.append(Sample(seconds, *used, progress()))
            if limits.memory_bytes and used[1] > limits.memory_bytes:
                return "memory"
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=min(SAMPLE_EVERY, limits.seconds))
            return None


def _used(process: psutil.Process) -> tuple[float, int] | None:
    """CPU seconds and resident bytes of a process with its children; None where it is gone."""
    cpu, rss = 0.0, 0
    try:
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                with each.oneshot():
                    times = each.cpu_times()
                    cpu += times.user + times.system
                    rss += each.memory_info().rss
                if each is process:
                    cpu += times.children_user + times.children_system
    except psutil.NoSuchProcess:
        return None
    return cpu, rss


def _end_all(process: subprocess.Popen, word: str) -> None:
    """End the process group, and what left it: every process that carries the run's word in its environment."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(PASSES):
        left = [other for other in psutil.process_iter() if _carries(other, word)]
        if not left:
            return
        for other in left:
            with suppress(psutil.Error):
                other.kill()
        psutil.wait_procs(left, timeout=1)


def _carries(process: psutil.Process, word: str) -> bool:
    """Whether another process has the word in its environment."""
    try:
        return process.pid != os.getpid() and process.environ().get(RUN_VARIABLE) == word
    except (psutil.Error, OSError):
        return False


def _keep_tail(stream: IO[bytes], tail: deque[bytes]) -> None:
    """Read all output, and keep the last TAIL bytes (and what is left of the piece before)."""
    kept = 0
    while piece := os.read(stream.fileno(), 65536):
        tail.append(piece)
        kept += len(piece)
        while kept - len(tail[0]) > TAIL:
            kept -= len(tail.popleft())
    stream.close()


def _how(status: int, output: str) -> How:
    if status == 0:
        return "done"
    last = output[-4096:]
    return "memory" if status == MEMORY or any(words in last for words in OUT_OF_MEMORY) else "error"
