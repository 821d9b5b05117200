"""Runs of the toy and of several studies side by side: complete, telling their progress, one at a time in a
directory.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import pytest
from checkouts import another_run

pytestmark = pytest.mark.slow


def test_the_toy_passes_every_stage_with_no_edit_elsewhere(finished_toy):
    made = {name.rsplit("/", 1)[-1] for name in finished_toy.hashes()}
    assert made >= {
        "summary.parquet",
        "scores.parquet",
        "curves.parquet",
        "policy.zip",
        "costs.svg",
        "costs.pdf",
        "costs.png",
    }
    assert "Nothing to be done" in finished_toy.run("all", "--dry-run")


def test_all_studies_in_one_run_tell_their_progress(finished_smoke):
    made = finished_smoke.hashes()
    assert {name.split("/")[2] for name in made if name.endswith(".png")} == {"adaptation", "hetero", "toy"}
    assert {
        "results/smoke/adaptation/early/inputs/table.parquet",
        "results/smoke/toy/near/evaluation/rules.parquet",
    } <= made.keys()
    log = next(
        (finished_smoke.folder / "results/smoke/adaptation/early/logs").glob("simulate_adaptation*.log")
    ).read_text()
    assert re.search(
        r"^early, job 0, replicate 0: all \d+ epochs, \d+ trained in [\d.]+ s, \d+ from the store$", log, flags=re.M
    )


def test_two_runs_in_one_directory_are_refused(fresh_toy):
    with another_run(fresh_toy.folder):
        output = fresh_toy.run("all", status=1)
    assert "another run works in this directory" in output and "Traceback" not in output
    assert not fresh_toy.hashes()


def test_an_interrupted_run_waits_for_its_jobs(fresh_toy, finished_toy):
    """By Ctrl-C in a terminal, which goes to Snakemake and to all its jobs."""
    job = fresh_toy.folder / "results/small/toy/policies/hill/seed-0"
    with (fresh_toy.folder / "printed.txt").open("w+") as printed:
        started = subprocess.Popen(
            fresh_toy.command("all"),
            cwd=fresh_toy.folder,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        while started.poll() is None and not (job / "progress").exists():
            time.sleep(0.02)
        os.killpg(started.pid, signal.SIGINT)
        assert started.wait(600) != 0
        printed.seek(0)
        output = printed.read()
    assert (job / "policy.zip").exists() and "interrupted: the jobs at work end first" in output, output[-4000:]
    assert "Traceback" not in output and "SIGINT" not in output and "learn toy/hill/seed-0: " in output, output[-4000:]
    assert "learn toy/hill/seed-0: " not in fresh_toy.run("all"), "it is not learned anew"
    assert fresh_toy.hashes() == finished_toy.hashes()
