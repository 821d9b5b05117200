"""A study on a real Slurm of one node: grouped jobs, one killed, the controller restarted, and the bytes of a local
run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from private_slurm import PrivateSlurm, missing

from faults import five_study_checkout

pytestmark = [pytest.mark.slow, pytest.mark.needs_system]
MOST_JOBS = 12
# The study that has jobs of every group; each job on Slurm starts Snakemake twice.
ASKED = ("adaptation", "--config", "scale=smoke")
# What a test may ask for and a cluster would rather not: states every second, small jobs, any partition, no accounting.
HURRY = (
    *("--slurm-no-account", "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "1"),
    *("--seconds-between-status-checks", "1", "--latency-wait", "20"),
    *("--default-resources", "slurm_partition=debug", "mem_mb=500", "runtime=10"),
)


@pytest.fixture
def slurm():
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    private = PrivateSlurm(folder / "s")
    try:
        private.start()
        yield private
    finally:
        private.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(bool(missing()), reason=missing() or "a private Slurm can run")
def test_a_run_on_slurm_survives_a_killed_job_and_a_restarted_controller(slurm, tmp_path):
    local = five_study_checkout(tmp_path / "local")
    local.run(*ASKED)
    checkout = five_study_checkout(tmp_path / "slurm")
    command = checkout.command(*ASKED, "--profile", "profiles/slurm", *HURRY)
    log = tmp_path / "snakemake.log"
    environment = {**os.environ, **slurm.environment}
    with log.open("w") as stream:
        started = subprocess.Popen(
            command,
            cwd=checkout.folder,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            killed = running_job(slurm, started)
            slurm.ask("scancel", "--signal=KILL", "--full", killed)
            running_job(slurm, started, after=killed)
            slurm.restart_controller()
            status = started.wait(1800)
        finally:
            if started.poll() is None:
                checkout.kill(started)
    said = log.read_text()
    assert status == 0, said[-4000:]
    states = dict(slurm.jobs())
    assert states.pop(killed) in ("CANCELLED", "FAILED", "NODE_FAIL")
    assert set(states.values()) == {"COMPLETED"}, states
    assert 4 <= len(states) + 1 <= MOST_JOBS, states
    assert "Trying to restart job" in said
    assert checkout.hashes() == local.hashes()
    assert "Nothing to be done" in checkout.run(*ASKED, "--dry-run")


def running_job(slurm: PrivateSlurm, started: subprocess.Popen, after: str = "0", patience: float = 300.0) -> str:
    """Wait until a job with a higher number than `after` is in the middle of its work; returns its number."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and started.poll() is None:
        running = [job for job, state in slurm.jobs() if state == "RUNNING" and int(job) > int(after)]
        if running:
            time.sleep(3.0)
            return running[0]
        time.sleep(0.2)
    raise AssertionError(f"no Slurm job ran within {patience} s")
