"""The fork server of a run: jobs are copies of a process that has imported the large packages already.

A job of the workflow needs a second or more for the import of packages before it computes anything. On Linux, a local
run therefore starts a fork server. Snakemake starts each job as a process of its own, as always. This process hands the
job over to the server (`hand_over`), which forks. The fork runs the job's script in the environment, the directory and
with the output of the process that handed it over; that process waits, and ends with the fork's status.

The server imports a package after the first job that used it, so a run imports only what its jobs need. Each fork
imports the modules of schedlab, so a job has the code of the time at which it starts. A fork is killed when the process
that handed the job over ends, and when the server ends, which ends with the run. Where there is no server, as on the
nodes of a cluster or in a container, a job runs in its own process.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from schedlab.config.runtime import run_lock

# Environment variables: the path of the server's socket, and where it runs (`place`).
ADDRESS, PLACE = "SCHEDLAB_FORK_SERVER", "SCHEDLAB_FORK_SERVER_PLACE"
# Imported by the server once a job has used them: what takes longest, none of which acts when it is imported.
PACKAGES = (
    "numpy",
    "pydantic",
    "yaml",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "gymnasium",
    "numba",
    "torch",
    "snakemake.iocontainers",
    "snakemake.logging",
)
BACKLOG = 64  # jobs that wait for their fork
CHUNK = 4096  # bytes, more than the names of all packages


def start(file: Path, environment: Mapping[str, str]) -> None:
    """Start the server of this run, which listens at the socket `file`, and pass its address to the jobs. On other
    systems than Linux 5.3 and later, and on file systems without sockets, jobs run without it.

    environment: its variables in addition to those of this process. Those that a package reads when it is imported must
    have the values that jobs give them.
    """
    os.environ.pop(ADDRESS, None)
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            file.unlink(missing_ok=True)
            listener.bind(str(file))
            file.chmod(0o600)  # before it listens, so that nobody else can hand over jobs
            listener.listen(BACKLOG)
        except OSError:
            return
        command = [sys.executable, "-m", __name__, str(listener.fileno())]
        given = {**os.environ, **environment}
        subprocess.Popen(command, env=given, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL)
    os.environ |= {ADDRESS: str(file), PLACE: place()}
    atexit.register(file.unlink, missing_ok=True)


def hand_over() -> None:
    """Let a fork of the server run the script of this process, and end this process with the fork's status. Returns if
    there is no server here, as in its forks, or in a container or another environment of Python than its own.
    """
    address = os.environ.get(ADDRESS)
    if not address or os.environ.get(PLACE) != place():
        return
    run_lock.enter_job()
    job = {
        "arguments": sys.argv,
        "path": sys.path,
        "directory": str(Path.cwd()),
        "environment": {name: value for name, value in os.environ.items() if name != ADDRESS},
    }
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
        socket.send_fds(connection, [b"\n"], [0, 1, 2])
        connection.sendall(json.dumps(job).encode() + b"\n")
    except OSError:  # there is no server any more, and none has received the job
        return
    try:
        status = int(connection.recv(16) or -signal.SIGKILL)
    except OSError:
        status = -signal.SIGKILL
    if status < 0:
        print("error: the process of this job was killed", file=sys.stderr, flush=True)
    os._exit(status if status >= 0 else 128 - status)


def place() -> str:
    """Return a name for the files and the packages that this process sees."""
    try:
        return f"{Path('/proc/self/ns/mnt').readlink()} {sys.prefix}"
    except OSError:
        return sys.prefix


def serve(listener: socket.socket) -> None:
    """Fork for each job that is handed over, until this process is killed."""
    run_lock.enter_job()  # ends with the run
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                with contextlib.suppress(OSError, ValueError):  # the process that hands over was killed meanwhile
                    fork = Fork(listener.accept()[0])
                    ready.register(fork.connection, selectors.EVENT_READ, fork)
                    ready.register(fork.handle, selectors.EVENT_READ, fork)
            elif not key.data.ended:
                fork = key.data
                if key.fileobj is fork.connection:  # closed, as the process that handed over has ended
                    os.kill(fork.process, signal.SIGKILL)
                ready.unregister(fork.connection)
                ready.unregister(fork.handle)
                import_packages(fork.end())


def import_packages(names: list[str]) -> None:
    """Import packages that a job has used."""
    for name in names:
        with contextlib.suppress(Exception):  # a job that needs it shows the error
            importlib.import_module(name)


class Fork:
    """A job at work in a copy of the server.

    connection: with the process that handed the job over; process: the copy's number; handle: a file descriptor that
    can be read when the copy has ended; ended: whether its end was noticed. Raises OSError or ValueError if no job was
    received.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.ended = connection, False
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        try:
            with connection.makefile("rb") as stream:
                job = json.loads(stream.readline())
            self.used, used = os.pipe()
            files.append(used)
            self.process = os.fork()
            if self.process == 0:
                run(job, files[:3], used)
        finally:
            for number in files:
                os.close(number)
        self.handle = os.pidfd_open(self.process)

    def end(self) -> list[str]:
        """Wait for the copy's end, pass its status on, and return the packages that it used."""
        self.ended = True
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.set_blocking(self.used, False)  # a process that the job left behind may hold the other end
        with contextlib.suppress(OSError), self.connection:
            self.connection.sendall(str(status).encode())
        try:
            return os.read(self.used, CHUNK).decode().split()
        except BlockingIOError:
            return []
        finally:
            os.close(self.used)
            os.close(self.handle)


def run(job: dict[str, Any], files: list[int], used: int) -> NoReturn:
    """Run the script of a job in this process, a copy of the server, and end the process."""
    run_lock.end_with_parent()
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.chdir(job["directory"])
        os.environ.clear()
        os.environ.update(job["environment"])
        sys.argv[:], sys.path[:] = job["arguments"], job["path"]
        for name in [name for name in sys.modules if name.partition(".")[0] == "schedlab"]:
            del sys.modules[name]  # the script imports them as they are now
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()  # else all forks would draw the same; Python's own does so by itself
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        os.write(used, " ".join(name for name in PACKAGES if name in sys.modules).encode())
    sys.exit()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
