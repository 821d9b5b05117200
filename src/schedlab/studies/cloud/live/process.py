"""A subprocess with limits on cores, memory and time. It is monitored while it runs, and all processes that it started
are ended with it.

The limits are not a sandbox against malicious scripts, which can, for example, change their own affinity.
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
    """The limits of a subprocess: the numbers of its cores, bytes of memory (None: no limit), seconds."""

    cpus: tuple[int, ...]
    memory_bytes: int | None
    seconds: float


@dataclass(frozen=True)
class Sample:
    """A sample of the resources that a subprocess and its children use.

    seconds        time since the start
    cpu_seconds    CPU time of all processes since the start
    memory_bytes   resident memory of all processes; shared memory counts once
    progress       progress as the caller counts it
    private_bytes  largest private memory that one process requested, used or not; RLIMIT_DATA limits it
    """

    seconds: float
    cpu_seconds: float
    memory_bytes: int
    progress: int
    private_bytes: int = 0


@dataclass(frozen=True)
class Ended:
    """How a subprocess ended (done, error, or the limit on memory or time), its exit status, its time in s, and the end
    of its output.
    """

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
    """Run a command, without a shell, in a given folder and environment, until it ends or exceeds a limit.

    This function monitors the memory of all its processes together; the command itself limits its cores and the memory
    of each process (child.py). All processes that it leaves running are ended. On Linux this includes processes that
    left its process group, session and environment; on other systems, those that kept one of them.
    progress  function that returns the progress; it is called for each sample
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
    """Take samples until the process ends or exceeds a limit; return this limit, or None."""
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
    """Wait for the end of a child process, at most so many seconds; return whether it has ended.

    Popen.wait is not used, because it holds a lock. The exception that SIGTERM raises could leave this lock held, and a
    later wait would never return.
    """
    until = time.monotonic() + seconds
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
    return True


class _Meter:
    """Measures a process and its descendants: CPU seconds, resident memory, and the largest private memory of a
    process. On Linux the process is the waiting process of child.py, whose own memory is not counted.
    """

    def __init__(self, process: psutil.Process) -> None:
        self.process = process
        self.shared, self.again = 0, 0.0

    def read(self) -> tuple[float, int, int] | None:
        """Return these three values (s, bytes, bytes), or None if the process has ended."""
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
        """Return the memory of all processes together. For several processes, which may share memory, it is measured
        less often, because this is slow.
        """
        if len(resident) < 2:
            return sum(rss for _, rss in resident)
        if (began := time.monotonic()) >= self.again:
            self.shared = sum(_share(each, rss) for each, rss in resident)
            self.again = began + (time.monotonic() - began) / METERING
        return self.shared


def _share(process: psutil.Process, rss: int) -> int:
    """Return the memory of a process, in which shared memory is divided by the number of its users; if the system does
    not report this, the resident memory.
    """
    try:
        return getattr(process.memory_full_info(), "pss", rss)
    except psutil.NoSuchProcess:
        return 0
    except psutil.Error:
        return rss


def _end_all(process: subprocess.Popen, word: str) -> None:
    """End the process and its children, its process group, and every process whose environment contains the word of the
    run.
    """
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
    """Whether the environment of another process contains the word."""
    try:
        return process.pid != os.getpid() and process.environ().get(RUN_VARIABLE) == word
    except (psutil.Error, OSError):
        return False


def _keep_tail(stream: IO[bytes], tail: deque[bytes]) -> None:
    """Read all output and keep at least its last TAIL bytes."""
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
