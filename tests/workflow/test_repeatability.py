"""The same bytes, however a run goes: on one core or two, killed or not, toy and shipped study."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from checkouts import shipped_checkout


def test_the_toy_passes_every_stage_and_two_cores_give_the_bytes_of_one(finished_toy, fresh_toy):
    fresh_toy.run("all", cores=2)
    made = fresh_toy.hashes()
    assert {name.rsplit("/", 1)[-1] for name in made} >= {"summary.parquet", "scores.parquet", "curves.parquet", "costs.svg", "policy.zip"}
    assert made == finished_toy.hashes()
    assert "Nothing to be done" in fresh_toy.run("all")


@pytest.mark.parametrize("moment", range(4))
def test_a_killed_toy_run_is_simply_started_again(finished_toy, fresh_toy, moment):
    seconds = float(np.random.default_rng([7, moment]).uniform(3.0, 12.0))
    fresh_toy.run_and_kill(seconds, "all")
    fresh_toy.run("all")
    assert fresh_toy.hashes() == finished_toy.hashes()


def test_the_shipped_smoke_run_killed_within_a_simulation(repository, tmp_path):
    whole = shipped_checkout(repository, tmp_path / "whole")
    whole.run("all", "--config", "scale=smoke", cores=1)
    expected = whole.hashes()
    assert any(name.endswith("table.parquet") for name in expected) and any(name.endswith(".png") for name in expected)
    shutil.rmtree(whole.folder / "results")
    shutil.rmtree(whole.folder / "plots")
    command = whole.command("all", "--config", "scale=smoke")
    running = subprocess.Popen(command, cwd=whole.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(whole.folder.glob("results/smoke/adaptation/store/*.sqlite")) and time.monotonic() < deadline:
        time.sleep(0.05)
    whole.kill(running)
    whole.run("all", "--config", "scale=smoke", cores=2)
    assert whole.hashes() == expected


def test_two_runs_in_one_directory_are_refused(fresh_toy):
    hold = "import pathlib, time; from schedlab.config import run_lock; run_lock.hold(pathlib.Path('.schedlab/run.lock'))"
    wait = "print('held', flush=True); time.sleep(120)"
    first = subprocess.Popen([sys.executable, "-c", f"{hold}; {wait}"], cwd=fresh_toy.folder, stdout=subprocess.PIPE)
    first.stdout.readline()
    output = fresh_toy.run("all", status=1)
    first.kill()
    first.wait()
    assert "another run works in this directory" in output and "Traceback" not in output
    assert not fresh_toy.hashes()
