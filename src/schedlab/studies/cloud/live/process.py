"""A subprocess with limits on cores, memory and time. It is monitored while it runs, and no process that it started
outlives it.

Limits are not a sandbox: a script that means harm can undo its own affinity. They hold for scripts that train.
See docs/guide/cloud_live.md.
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
from schedlab.studies.cloud.live.child import GUARDED, MEMORY

RUN_VARIABLE = "SCHEDLAB_RUN"  # a secret word in the environment of all that a run starts, by which it is found again
TAIL = 64 * 1024  # bytes of output that are kept: the last ones
SAMPLE_EVERY = 0.1  # s
METERING = 0.05  # share of the time that measuring shared memory may take
PATIENCE = 5.0  # s that child.py may take to end what a script started
PASSES = 20  # over all processes: what is found may have started another meanwhile
OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "an't allocate memory", "annot allocate memory", "out of memory")
How = Literal["done", "error", "memory", "time"]


class ScriptFailed(UserError):
    """The user's script failed."""


@dataclass(frozen=True)
class Limits:
    """The limits of a subprocess: numbers of its cores, bytes (None: no limit), seconds."""

    cpus: tuple[int, ...]
    memory_bytes: int | None
    seconds: float


@dataclass(frozen=True)
class Sample:
    """Resources that a subprocess and its children used when they were sampled.

    seconds        since the start                                   cpu_seconds  of all of them since then
    memory_bytes   resident at the time, what they share once        progress     as the caller counts it
    private_bytes  that the hungriest of them asked for to itself, touched or not: what RLIMIT_DATA limits
    """

    seconds: float
    cpu_seconds: float
    memory_bytes: int
    progress: int
    private_bytes: int = 0


@dataclass(frozen=True)
class Ended:
    """How a subprocess ended (done, error, or the limit on memory or time), its status, seconds, last output."""

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
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    limits: Limits,
    progress: Callable[[], int] = lambda: 0,
) -> Ended:
    """Run a command without a shell in a folder and an environment of its own, until it ends or breaks a limit.

    The memory of all its processes together is watched; cores and each process's own memory are for the command itself
    to limit (child.py). Whatever it leaves running is ended, also what left its process group, session and
    environment (Linux; elsewhere what keeps one of these). progress: counted at each sample.
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


def _watch(
    process: subprocess.Popen, started: float, limits: Limits, samples: list[Sample], progress: Callable[[], int]
) -> How | None:
    """Sample until the process ends; returns the limit that it broke, if any."""
    meter = _Meter(psutil.Process(process.pid))
    while True:
        seconds = time.monotonic() - started
        if seconds > limits.seconds:
            return "time"
        if (used := meter.read()) is not None:
            cpu, memory, private = used
            samples.append(Sample(seconds, cpu, memory, progress(), private))
            if limits.memory_bytes and memory > limits.memory_bytes:
                return "memory"
        if _has_ended(meter.process, min(SAMPLE_EVERY, limits.seconds)):
            process.wait()
            return None


def _has_ended(process: psutil.Process, seconds: float) -> bool:
    """Wait until a child process has ended, at most some seconds.

    Popen.wait holds a lock while it looks. SIGTERM raises an exception, which could leave that lock held; whoever
    waited for the process after that would wait for ever.
    """
    until = time.monotonic() + seconds
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
    return True


class _Meter:
    """Reads what a process and all that came of it use: CPU seconds, bytes in memory, bytes that the hungriest asked
    for to itself. On Linux the process is child.py's waiting one, whose own few bytes are none of the script's.
    """

    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.shared, self.again = 0, 0.0

    def read(self) -> tuple[float, int, int] | None:
        """Return them; None where the process is gone."""
        cpu, resident, private = 0.0, [], [0]
        try:
            others = self.process.children(recursive=True)
            for each in (self.process, *others):
                with suppress(psutil.NoSuchProcess), each.oneshot():
                    cpu += sum(each.cpu_times()[:4])  # its own, and those of its children that have ended
                    if each is not self.process or not (GUARDED and others):
                        told = each.memory_info()
                        resident.append((each, told.rss))
                        private.append(getattr(told, "data", 0))
        except psutil.NoSuchProcess:
            return None
        return cpu, self._memory(resident), max(private)

    def _memory(self, resident: list[tuple[psutil.Process, int]]) -> int:
        """Memory that processes hold together; shared memory of several is read less often, as it is slow to read."""
        if len(resident) < 2:
            return sum(rss for _, rss in resident)
        if (began := time.monotonic()) >= self.again:
            self.shared = sum(_share(each, rss) for each, rss in resident)
            self.again = began + (time.monotonic() - began) / METERING
        return self.shared


def _share(process: psutil.Process, rss: int) -> int:
    """The proportional share of a process in what it holds; all of it where the system reports none."""
    try:
        return getattr(process.memory_full_info(), "pss", rss)
    except psutil.NoSuchProcess:
        return 0
    except psutil.Error:
        return rss


def _end_all(process: subprocess.Popen, word: str) -> None:
    """End the process and what it started; then its group and every process with the run's word in its environment."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=PATIENCE)
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
