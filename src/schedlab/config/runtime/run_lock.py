"""A lock that allows one run at a time in a working directory. The operating system releases it however the process
ends.

Snakemake's own lock is a file that stays after a kill and must be removed by hand; the profiles switch it off. Jobs
share a second lock, so that a run after a killed one does not begin while a job of the killed run still writes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import IO

from schedlab.config.errors import UserError

JOBS_LOCK = "SCHEDLAB_JOBS_LOCK"  # the environment variable with the path of the jobs' lock
STARTED_BY = "SCHEDLAB_STARTED_BY"  # the one with the process that starts the jobs: its namespace and number
PR_SET_PDEATHSIG = 1  # prctl(2)
_held: dict[Path | str, object] = {}


def hold(file: Path) -> None:
    """Hold the lock until this process ends; further calls in the same process do nothing. Raises UserError if another
    run holds it.
    """
    from filelock import FileLock, Timeout

    file = file.resolve()
    if file in _held:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise busy(file) from None
    except (OSError, NotImplementedError):  # a file system without locks
        return
    _held[file] = lock


def is_held_elsewhere(file: Path) -> bool:
    """Return whether another process holds the lock now."""
    from filelock import FileLock, Timeout

    file = file.resolve()
    if file in _held or not file.exists():
        return False
    try:
        with FileLock(file).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        return False


def busy(file: Path, what: str = "") -> UserError:
    """Return the error for a directory in which another run is active."""
    found = f"another run works in this directory{what}"
    return UserError(found, where=str(file.resolve().parent.parent), remedy="wait for it, or use another --directory")


def admit_jobs(run_lock: Path) -> None:
    """Pass the lock file of this run to the jobs that this process starts (see `enter_job`)."""
    os.environ[JOBS_LOCK] = str(run_lock.resolve().with_name("jobs.lock"))


def sign_jobs() -> None:
    """Pass the id of this process to the jobs that it starts, so that a job that begins after the end of this process
    ends at once (see `enter_job`).
    """
    os.environ[STARTED_BY] = f"{_process_namespace()} {os.getpid()}"


def enter_job() -> None:
    """Share the jobs' lock until this process ends. On Linux, the process then ends together with the Snakemake that
    started it.

    A terminal sends Ctrl-C to jobs as well as to Snakemake. Jobs ignore it and finish, as Snakemake waits for them, so
    that the next run need not repeat them.

    Does nothing in a process that does not belong to a run, or that has already called this function. Ends the process
    if its Snakemake was killed before this call, because the next run may already be active.
    """
    if not os.environ.get(JOBS_LOCK) or JOBS_LOCK in _held:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    if _is_orphan():
        raise SystemExit("the run that started this job was killed")
    if stream := _flock(Path(os.environ[JOBS_LOCK]), shared=True):
        _held[JOBS_LOCK] = stream


def end_after_jobs() -> None:
    """At Ctrl-C, end the run when the running jobs have ended; at a second Ctrl-C, end it at once.

    Snakemake waits in this way only when it is terminated. When it is interrupted, it treats the outputs of running
    jobs as broken and makes them again.
    """
    terminated = signal.getsignal(signal.SIGTERM)
    if not callable(terminated):
        return

    def interrupted(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print(
            "interrupted: the jobs at work end first (Ctrl-C again: at once); the same command goes on from here",
            file=sys.stderr,
        )
        # in a thread, because it acquires a lock that the interrupted thread may hold
        threading.Thread(target=terminated, args=(signal.SIGTERM, None)).start()

    signal.signal(signal.SIGINT, interrupted)


def wait_for_jobs(run_lock: Path) -> None:
    """Wait until no job of a killed run is running; print a line if this takes time."""
    file = run_lock.resolve().with_name("jobs.lock")
    if stream := _flock(file, shared=False):
        stream.close()


def _flock(file: Path, shared: bool) -> IO[bytes] | None:
    """Lock a file until it is closed. While waiting for an exclusive lock, print a line. Return None if there are no
    such locks.
    """
    try:
        import fcntl
    except ImportError:
        return None
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    stream = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = file.open("ab")
        try:
            fcntl.flock(stream, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if not shared:
                told = (
                    "jobs of a run that was killed are still at work in this directory; waiting for their end (or "
                    "end them yourself)"
                )
                print(f"{file.parent.parent}: {told}", file=sys.stderr)
            fcntl.flock(stream, kind)
    except OSError:  # a file system without locks, or one that cannot be written
        if stream is not None:
            stream.close()
        return None
    return stream


def end_with_parent() -> None:
    """Let the system kill this process when its parent ends. Only Linux can; elsewhere, the jobs' lock must suffice."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _is_orphan() -> bool:
    """Return whether the process that signed this job has ended; False if that is unknown, for example in a container
    with its own process numbers.
    """
    namespace, _, number = os.environ.get(STARTED_BY, "").rpartition(" ")
    if not namespace or namespace != _process_namespace() or int(number) == os.getppid():
        return False
    try:
        told = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    # Z and X: a killed process whose parent has not read its exit status, see proc_pid_stat(5)
    return told.rpartition(")")[2].split()[0] in "ZX"


def _process_namespace() -> str:
    """Return the namespace in which process numbers are valid; "" if the system does not report it."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
