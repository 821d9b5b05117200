"""A subprocess with limits on cores, memory and time. It is monitored while it runs, and all processes that it started
are ended with it.

What the kernel enforces besides is in `fence`. The limits are not a sandbox against malicious scripts, which can, for
example, change their own affinity. See docs/guide/cloud_live.md.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

import psutil

from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.child import GUARDED, MEMORY
from schedlab.studies.cloud.live.fence import Fence, files_in_memory

RUN_VARIABLE = "SCHEDLAB_RUN"  # a secret word in the environment of all that a run starts, by which it is found again
TAIL = 64 * 1024  # bytes of output that are kept: the last ones
DISK_GB = 20.0  # default limit on the files of a run
SAMPLE_EVERY = 0.1  # s
METERING = 0.05  # share of the time that measuring shared memory, or files, may take
PATIENCE = 5.0  # s that child.py may take to end what a script started
PASSES = 20  # over all processes, because those that are found may have started others meanwhile
WATCHED = Fence()
OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "an't allocate memory", "annot allocate memory", "out of memory")
TOO_LARGE = "File too large"  # what systems say of a file that exceeds RLIMIT_FSIZE
How = Literal["done", "error", "memory", "time", "disk"]


class ScriptFailed(UserError):
    """The user's script failed."""


@dataclass(frozen=True)
class Limits:
    """The limits of a subprocess: the numbers of its cores, bytes of memory (None: no limit), seconds, and bytes of
    the files in its folder (None: no limit).
    """

    cpus: tuple[int, ...]
    memory_bytes: int | None
    seconds: float
    disk_bytes: int | None = None


@dataclass(frozen=True)
class Sample:
    """A sample of the resources that a subprocess and its children use.

    seconds        time since the start
    cpu_seconds    CPU time of all processes since the start
    memory_bytes   resident memory of all processes, in which shared memory counts once, and files in /dev/shm
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
    """How a subprocess ended (done, error, or the limit on memory, time or disk), its exit status, its time in s, and
    the end of its output.
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
    fence: Fence = WATCHED,
) -> Ended:
    """Run a command, without a shell, in a given folder and environment, until it ends or exceeds a limit.

    This function monitors the memory of all its processes together; the command itself limits its cores and the memory
    of each process (child.py). All processes that it leaves running are ended. On Linux this includes processes that
    left its process group, session and environment; on other systems, those that kept one of them.
    progress  function that returns the progress; it is called for each sample
    fence     what the kernel enforces, too
    """
    word = secrets.token_hex(16)
    started = time.monotonic()
    process = subprocess.Popen(
        [*fence.words(limits.memory_bytes), *command],
        cwd=folder,
        env={**environment, RUN_VARIABLE: word},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    tail = bytearray()
    reader = threading.Thread(target=_keep_tail, args=(process.stdout, tail), daemon=True)
    reader.start()
    samples: list[Sample] = []
    try:
        broken = _watch(_Meter(psutil.Process(process.pid), folder, fence), started, limits, samples, progress)
        seconds = time.monotonic() - started
    finally:
        _end_all(process, word, fence)
    reader.join(timeout=5)
    output = bytes(tail).decode("utf-8", errors="replace")
    return Ended(broken or _how(process.returncode, output, fence), process.returncode, seconds, output, samples)


def _watch(
    meter: _Meter, started: float, limits: Limits, samples: list[Sample], progress: Callable[[], int]
) -> How | None:
    """Take samples until the process ends or exceeds a limit; return this limit, or None."""
    while True:
        seconds = time.monotonic() - started
        if seconds > limits.seconds:
            return "time"
        if (used := meter.read()) is not None:
            cpu, memory, private = used
            samples.append(Sample(seconds, cpu, memory, progress(), private))
            if limits.memory_bytes and memory > limits.memory_bytes:
                return "memory"
        if limits.disk_bytes and meter.disk() > limits.disk_bytes:
            return "disk"
        if _has_ended(meter.process, min(SAMPLE_EVERY, limits.seconds)):
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
    process, and the files in a folder. On Linux the process is the waiting process of child.py, whose own memory is not
    counted; in namespaces it is unshare, whose child is the waiting process.
    """

    def __init__(self, process: psutil.Process, folder: Path, fence: Fence) -> None:
        self.process, self.folder, self.fence = process, folder, fence
        self.shared, self.again = 0, 0.0
        self.files, self.files_again = 0, 0.0

    def read(self) -> tuple[float, int, int] | None:
        """Return these three values (s, bytes, bytes), or None if the process has ended."""
        cpu, resident, private = 0.0, [], [0]
        try:
            others = self.process.children(recursive=True)
            waiting = {self.process, *others[: int(self.fence.namespaces)]} if GUARDED and others else set()
            for each in (self.process, *others):
                with suppress(psutil.NoSuchProcess), each.oneshot():
                    cpu += sum(each.cpu_times()[:4])  # its own, and those of its children that have ended
                    if each not in waiting:
                        memory = each.memory_info()
                        resident.append((each, memory.rss))
                        private.append(getattr(memory, "data", 0))
        except psutil.NoSuchProcess:
            return None
        in_files = max((files_in_memory(each.pid) for each in waiting - {self.process}), default=0)
        mapped = max((_mapped(each) for each, _ in resident), default=0) if in_files else 0
        return cpu, self._memory(resident) + max(0, in_files - mapped), max(private)

    def disk(self) -> int:
        """Return the bytes of the files in the folder, counted less often where that is slow."""
        if (began := time.monotonic()) >= self.files_again:
            self.files = 0
            for path in (Path(at, name) for at, _, names in os.walk(self.folder) for name in names):
                with suppress(OSError):  # it is gone
                    self.files += path.lstat().st_blocks * 512
            self.files_again = began + max(SAMPLE_EVERY, (time.monotonic() - began) / METERING)
        return self.files

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


def _mapped(process: psutil.Process) -> int:
    """Return the bytes of files in memory that a process has mapped, and which its resident memory contains."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssShmem:"))


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


def _end_all(process: subprocess.Popen, word: str, fence: Fence) -> None:
    """End the process and its children, its process group, and every process whose environment contains the word of the
    run. With unshare, the kernel ends all that is in its namespaces.
    """
    if process.poll() is None and not fence.namespaces:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=PATIENCE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(PASSES):
        left = []
        for other in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if other.pid != os.getpid() and other.environ().get(RUN_VARIABLE) == word:
                    left.append(other)
                    other.kill()
        if not left:
            return
        psutil.wait_procs(left, timeout=1)


def _keep_tail(stream: IO[bytes], tail: bytearray) -> None:
    """Read all output and keep its last TAIL bytes."""
    while piece := os.read(stream.fileno(), 65536):
        tail += piece
        del tail[:-TAIL]
    stream.close()


def _how(status: int, output: str, fence: Fence) -> How:
    if status == 0:
        return "done"
    last = output[-4096:]
    if TOO_LARGE in last:
        return "disk"
    if fence.control_group and status == 128 + signal.SIGKILL:
        return "memory"  # what the kernel ends in a control group, it ends for lack of memory
    return "memory" if status == MEMORY or any(words in last for words in OUT_OF_MEMORY) else "error"
