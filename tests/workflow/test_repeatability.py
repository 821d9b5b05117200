"""The same bytes, however a run goes: on one core or two, killed or not, toy and shipped study."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from checkouts import smoke_checkout


def test_the_toy_passes_every_stage_with_no_edit_elsewhere(finished_toy):
    made = {name.rsplit("/", 1)[-1] for name in finished_toy.hashes()}
    assert made >= {"summary.parquet", "scores.parquet", "curves.parquet", "policy.zip", "costs.svg", "costs.pdf", "costs.png"}
    assert "Nothing to be done" in finished_toy.run("all", "--dry-run")


def test_all_studies_in_one_run_tell_their_progress(finished_smoke):
    made = finished_smoke.hashes()
    assert {name.split("/")[2] for name in made if name.endswith(".png")} == {"adaptation", "hetero", "toy"}
    assert {"results/smoke/adaptation/early/inputs/table.parquet", "results/smoke/toy/near/evaluation/rules.parquet"} <= made.keys()
    log = next((finished_smoke.folder / "results/smoke/adaptation/early/logs").glob("simulate_adaptation*.log")).read_text()
    assert re.search(r"^early, job 0, replicate 0: all \d+ epochs, \d+ trained in [\d.]+ s, \d+ from the store$", log, flags=re.M)


@pytest.mark.parametrize(("seed", "victim", "cores"), [(11, "main", 1), (12, "worker", 2)])
def test_a_run_killed_at_a_random_moment_ends_with_the_bytes_of_one_that_was_not(
    repository, finished_smoke, tmp_path, tell_count, seed, victim, cores
):
    checkout = smoke_checkout(repository, tmp_path / "checkout")
    target = ("all", "--config", "scale=smoke")
    draws = np.random.default_rng(seed)
    while not checkout.run_and_kill(draws.uniform(0.1, 0.8) * finished_smoke.seconds, victim, *target, cores=cores):
        shutil.rmtree(checkout.folder / "results")  # over before the kill: another moment
    checkout.run(*target, cores=cores)
    assert checkout.hashes() == finished_smoke.hashes()
    assert not temporary_files(checkout)
    assert "Nothing to be done" in checkout.run(*target, "--dry-run")
    tell_count("kill points survived on the smoke run of the studies", 1, of=1)
    tell_count("hashes of files compared between smoke runs", len(finished_smoke.hashes()))


def temporary_files(checkout):
    """What a killed process leaves: temporary files, the progress of learning, marks of outputs that are not complete."""
    hidden = [path for name in ("results", "plots") for path in (checkout.folder / name).rglob(".*") if path.name != ".snakemake_timestamp"]
    progress = list((checkout.folder / "results").rglob("progress"))
    return hidden + progress + list((checkout.folder / ".snakemake/incomplete").rglob("*"))


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
