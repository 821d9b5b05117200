"""Jobs in forks of one process: the code, environment and output of the job, its status, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from schedlab.config.runtime import fork_server, run_lock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are fork servers on Linux alone")
RUN = """
import pathlib, sys
from schedlab.config.runtime import fork_server, run_lock
run_lock.sign_jobs()
run_lock.admit_jobs(pathlib.Path("run.lock"))
fork_server.start(pathlib.Path("jobs.sock"), {})
print("started", flush=True)
sys.stdin.read()
"""
BEGIN = "import os, sys\nfrom schedlab.config.runtime import fork_server\nfork_server.hand_over()\n"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A run with a fork server, in an empty folder."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", RUN], cwd=tmp_path, text=True, **pipes) as process:
        assert process.stdout.readline() == "started\n"
        yield process
        process.kill()


@pytest.fixture
def job(run: subprocess.Popen, tmp_path: Path) -> Callable[..., subprocess.Popen]:
    """Start a script as a job of the run."""
    assert run.poll() is None
    given = {run_lock.JOBS_LOCK: str(tmp_path / "jobs.lock"), fork_server.ADDRESS: "jobs.sock"}
    given[fork_server.PLACE] = fork_server.place()

    def start(script: str, **more: str) -> subprocess.Popen:
        (tmp_path / "job.py").write_text(BEGIN + script)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, str(tmp_path / "job.py"), "word"]
        return subprocess.Popen(command, cwd=tmp_path, text=True, env={**os.environ, **given, **more}, **pipes)

    return start


def printed(process: subprocess.Popen, status: int = 0) -> list[str]:
    """What a job printed."""
    out, errors = process.communicate("typed\n", timeout=60)
    assert process.returncode == status, out + errors
    return (out + errors).splitlines()


def server_of(run: subprocess.Popen) -> psutil.Process:
    (server,) = psutil.Process(run.pid).children()
    return server


def test_a_job_is_a_fork_with_the_environment_of_the_process_that_hands_it_over(run, job, tmp_path) -> None:
    script = "print(os.getppid(), os.getcwd(), sys.argv[1], os.environ['SAID'], input())"
    assert printed(job(script, SAID="this")) == [f"{server_of(run).pid} {tmp_path} word this typed"]
    assert printed(job("print(__name__, __file__)")) == [f"__main__ {tmp_path / 'job.py'}"]
    assert printed(job(f"print(os.environ.get({fork_server.ADDRESS!r}))")) == ["None"], "what it starts is no job"


def test_a_package_is_imported_once_a_job_has_used_it(job) -> None:
    known = "print('yaml' in sys.modules, 'numpy' in sys.modules)\nimport yaml"
    assert [printed(job(known)), printed(job(known))] == [["False False"], ["True False"]]


@pytest.fixture
def package(repository: Path, tmp_path: Path) -> Path:
    """A copy of the package in the folder of the run, whose processes import it."""
    return Path(shutil.copytree(repository / "src/schedlab", tmp_path / "schedlab"))


def test_a_job_has_the_code_of_its_start(package, run, job) -> None:
    asked = "from schedlab.config import errors\nprint(errors.__file__, hasattr(errors, 'ADDED'))"
    errors = package / "config/errors.py"
    assert printed(job(asked)) == [f"{errors} False"]
    with errors.open("a") as file:
        file.write("ADDED = True\n")
    assert printed(job(asked)) == [f"{errors} True"], "the server imported the module before"
    assert run.poll() is None


@pytest.mark.parametrize(
    ("script", "status", "end"),
    [
        ("sys.exit(3)", 3, []),
        ("sys.exit()", 0, []),
        ("sys.exit('because')", 1, ["because"]),
        ("1 / 0", 1, ["ZeroDivisionError: division by zero"]),
        ("os.kill(os.getpid(), 9)", 137, ["error: the process of this job was killed"]),
    ],
)
def test_the_process_that_hands_over_ends_as_the_fork_does(job, script: str, status: int, end: list[str]) -> None:
    assert printed(job(script), status)[-1:] == end
    assert printed(job("print(1)")) == ["1"], "the server goes on"


def test_jobs_do_not_share_the_global_random_numbers(job) -> None:
    drawn = "import random, numpy\nprint(random.random(), numpy.random.rand())"
    rows = [printed(job(drawn))[0].split() for _ in range(4)]
    assert len({one for row in rows for one in row}) == 8


def test_what_a_job_leaves_for_its_end_is_done(job) -> None:
    script = "import atexit, threading, time\natexit.register(print, 'end')\n"
    script += "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    assert printed(job(script)) == ["thread", "end"]


def sleeper(job) -> tuple[subprocess.Popen, psutil.Process]:
    """A job at work, and its fork."""
    process = job("import time\nprint(os.getpid(), flush=True)\ntime.sleep(120)")
    return process, psutil.Process(int(process.stdout.readline()))


@pytest.mark.parametrize("killed", ["job", "server", "run"])
def test_a_fork_ends_with_the_process_that_handed_it_over_with_the_server_and_with_the_run(run, job, killed) -> None:
    process, fork = sleeper(job)
    server = server_of(run)
    assert server.pid == fork.ppid()
    {"job": process, "server": server, "run": run}[killed].kill()
    gone = [fork, psutil.Process(process.pid), *([server] if killed == "run" else [])]
    end = time.monotonic() + 30
    while time.monotonic() < end and any(one.is_running() and one.status() != "zombie" for one in gone):
        time.sleep(0.05)
    assert not [one for one in gone if one.is_running() and one.status() != "zombie"]
    if killed == "job":
        assert printed(job("print(1)")) == ["1"]


def test_a_job_that_is_ended_or_handed_over_by_halves_disturbs_no_other(job, tmp_path) -> None:
    process, fork = sleeper(job)
    with socket.socket(socket.AF_UNIX) as half:
        half.connect(str(tmp_path / "jobs.sock"))
    with socket.socket(socket.AF_UNIX) as half:
        half.connect(str(tmp_path / "jobs.sock"))
        socket.send_fds(half, [b"\n"], [0, 1, 2])
        half.sendall(b'{"arguments": [')
    assert printed(job("print(1)")) == ["1"]
    process.send_signal(signal.SIGTERM)
    psutil.wait_procs([fork], timeout=30)
    assert not fork.is_running() and printed(job("print(2)")) == ["2"]


def test_without_a_server_a_job_goes_on_in_its_own_process(tmp_path) -> None:
    (tmp_path / "job.py").write_text(f"{BEGIN}print(os.getpid())")
    for address in ("", "jobs.sock"):
        given = {**os.environ, fork_server.ADDRESS: address, fork_server.PLACE: fork_server.place()}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([sys.executable, "job.py"], cwd=tmp_path, env=given, text=True, **pipes)
        assert printed(process) == [str(process.pid)]


def test_a_job_in_a_container_or_of_another_python_goes_on_in_its_own_process(job) -> None:
    process = job("print(os.getpid())", **{fork_server.PLACE: "mnt:[1] /elsewhere"})
    assert printed(process) == [str(process.pid)]
