"""Jobs of a run: they end with the process that started them, and the next run waits for those that did not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from schedlab.config import run_lock

JOB = """
import os, sys, time
from schedlab.config.job_log import job_log
with job_log({log!r}):
    print(os.getpid(), file=sys.__stdout__, flush=True)
    time.sleep(120)
"""
# Starts a job and waits for it, as Snakemake does.
RUN = """
import pathlib, subprocess, sys
from schedlab.config import run_lock
run_lock.admit_jobs(pathlib.Path({lock!r}))
subprocess.run([sys.executable, "-c", {job!r}])
"""


def start_run(folder: Path) -> tuple[subprocess.Popen, psutil.Process]:
    """A process with a job that is at work, and that job."""
    job = JOB.format(log=str(folder / "job.log"))
    run = subprocess.Popen([sys.executable, "-c", RUN.format(lock=str(folder / "run.lock"), job=job)], stdout=subprocess.PIPE, text=True)
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
    wait = f"import pathlib; from schedlab.config import run_lock; run_lock.wait_for_jobs(pathlib.Path({str(lock)!r}))"
    waiting = subprocess.Popen([sys.executable, "-c", wait], stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    said = waiting.stderr.readline()
    assert said.startswith(f"{tmp_path.parent}: jobs of a run that was killed are still at work in this directory; waiting")
    time.sleep(0.3)
    assert waiting.poll() is None
    job.kill()
    assert waiting.wait(60) == 0
    run.wait(60)


def test_a_process_of_no_run_enters_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(run_lock.JOBS_LOCK, raising=False)
    monkeypatch.chdir(tmp_path)
    run_lock.enter_job()
    assert not list(tmp_path.iterdir())
