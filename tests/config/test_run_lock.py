"""Jobs of a run: they end with the process that started them, and the next run waits for those that did not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from schedlab.config.runtime import run_lock

JOB = """
import os, sys, time
from schedlab.config.runtime.job_log import job_log
with job_log({log!r}):
    print(os.getpid(), file=sys.__stdout__, flush=True)
    time.sleep(120)
"""
# Starts a job and waits for it, as Snakemake does.
RUN = """
import pathlib, subprocess, sys
from schedlab.config.runtime import run_lock
run_lock.admit_jobs(pathlib.Path({lock!r}))
subprocess.run([sys.executable, "-c", {job!r}])
"""


def start_run(folder: Path) -> tuple[subprocess.Popen, psutil.Process]:
    """A process with a job that is at work, and that job."""
    job = JOB.format(log=str(folder / "job.log"))
    run = subprocess.Popen(
        [sys.executable, "-c", RUN.format(lock=str(folder / "run.lock"), job=job)], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    return run, psutil.Process(int(run.stdout.readline()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_job_ends_with_the_run_that_started_it(tmp_path: Path) -> None:
    run, job = start_run(tmp_path)
    assert job.is_running() and job.pid != run.pid
    run.kill()
    run.wait()
    assert not psutil.wait_procs([job], timeout=20)[1]


def test_the_next_run_waits_for_jobs_that_are_still_at_work(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    lock = tmp_path / "run.lock"
    run_lock.wait_for_jobs(lock)
    assert capfd.readouterr().err == "", "nothing to wait for"
    run, job = start_run(tmp_path)
    wait = (
        "import pathlib; from schedlab.config.runtime import run_lock; "
        f"run_lock.wait_for_jobs(pathlib.Path({str(lock)!r}))"
    )
    waiting = subprocess.Popen([sys.executable, "-c", wait], stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    said = waiting.stderr.readline()
    assert said.startswith(
        f"{tmp_path.parent}: jobs of a run that was killed are still at work in this directory; waiting"
    )
    time.sleep(0.3)
    assert waiting.poll() is None
    job.kill()
    assert waiting.wait(60) == 0
    run.wait(60)


ENTER = """
import os, sys
from schedlab.config.runtime import run_lock
os.environ[run_lock.STARTED_BY] = sys.argv[1] + " " + sys.argv[2]
run_lock.enter_job()
print("entered")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_job_whose_run_ended_before_it_could_ask_to_end_with_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_lock.JOBS_LOCK, str(tmp_path / "jobs.lock"))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    unasked = subprocess.Popen([sys.executable, "-c", ""])  # has ended, but nobody has asked for it: a zombie
    while psutil.Process(unasked.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    here = str(Path("/proc/self/ns/pid").readlink())

    def enter(namespace: str, number: int) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-c", ENTER, namespace, str(number)], capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    killed = (1, "", "the run that started this job was killed")
    assert enter(here, gone.pid) == killed
    assert enter(here, unasked.pid) == killed
    assert enter(here, os.getpid()) == (0, "entered", "")
    assert enter(here, os.getppid()) == (0, "entered", ""), "a shell between the run and its job"
    assert enter("pid:[1]", gone.pid) == (0, "entered", ""), "a container that counts processes anew"
    unasked.wait()


def test_a_process_of_no_run_enters_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(run_lock.JOBS_LOCK, raising=False)
    monkeypatch.chdir(tmp_path)
    run_lock.enter_job()
    assert not list(tmp_path.iterdir())
