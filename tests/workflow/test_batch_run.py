"""The batch study through the workflow: each trace is made once, every rule and policy is scored."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest
from checkouts import Checkout, copy_repository, own_source

from schedlab.studies.batch.backfilling import BACKFILLING_POLICIES

RULES = {
    "fcfs",
    "sjf",
    "ljf",
    "smallest",
    "largest",
    "smallest_area",
    "f1",
    "f2",
    "f3",
    "f4",
    "wfp3",
    "unicep",
    "lxf",
    "slurm",
    "planner",
    "shortest_predicted",
    "f1_predicted",
    "smallest_area_predicted",
    "costly_per_area_predicted",
    "smallest_area_true_times",
    "planner_true_times",
}
SMOKE = ("all", "--config", "scale=smoke")
EASY = {*BACKFILLING_POLICIES}  # rivals of EASY alone
POLICIES = {
    "evolution-lublin",
    "rollout-lublin",
    "ppo-kernel-lublin",
}


@pytest.fixture
def checkout(repository, tmp_path) -> Checkout:
    """The shipped batch study alone, at scale smoke."""
    made = copy_repository(repository, tmp_path / "batch")
    conf, shipped = made.folder / "conf", repository / "conf"
    for name in ("config.yaml", "study/batch.yaml", "figure/theme.yaml"):
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped / name, conf / name)
    shutil.copytree(shipped / "scale", conf / "scale")
    for group in ("scenario", "policy", "learner"):
        shutil.copytree(shipped / group / "batch", conf / group / "batch")
    made.edit("conf/scenario/batch/lublin_easy.yaml", "scales: [small,", "scales: [smoke, small,")
    for name in ("evolution", "rollout"):
        made.edit(f"conf/policy/batch/{name}.yaml", "lublin: {scales: [small,", "lublin: {scales: [smoke, small,")
    shutil.rmtree(made.folder / "src")
    (made.folder / "src").symlink_to(repository / "src")  # where the compiled kernels are kept
    return made


@pytest.mark.slow
def test_a_smoke_run_scores_every_rule_and_an_edit_makes_again_what_reads_it(checkout):
    checkout.run(*SMOKE)
    scores = pd.read_parquet(checkout.folder / "results/smoke/batch/scores.parquet")
    assert set(scores["scenario"]) == {"lublin", "lublin_easy"}
    assert set(scores["policy"]) == RULES | EASY | POLICIES
    assert set(scores.loc[scores["scenario"] == "lublin", "policy"]).isdisjoint(EASY)
    assert {"validation", "test"} >= set(scores["split"]) >= {"test"}
    jobs = pd.read_parquet(checkout.folder / "results/smoke/batch/details/jobs.parquet")
    assert (jobs["wait"] >= 0).all()
    assert len(list((checkout.folder / "results/smoke/batch/inputs").glob("make_trace-*/trace.swf.gz"))) == 1
    own_source(checkout)
    assert checkout.jobs(*SMOKE) == set()
    simulator = "src/schedlab/studies/batch/simulator/cluster.py"
    checkout.edit(simulator, "WRITTEN = -1", "WRITTEN = -2")
    folder = checkout.folder / "results/smoke/batch"
    scored = {
        f"{part.parents[1].name}/{part.stem.removeprefix('evaluate-')}" for part in folder.glob("*/config/evaluate-*")
    }
    learned = {f"{seed.parent.name}/{seed.name.removeprefix('seed-')}" for seed in folder.glob("policies/*/seed-*")}
    expected = {*(f"evaluate {each}" for each in scored), *(f"learn {each}" for each in learned)}
    again = {job for job in checkout.jobs(*SMOKE) if not job.startswith(("draw", "index"))}
    assert again == {*expected, "summarise batch"}, "all but the trace"
    checkout.edit(simulator, "WRITTEN = -2", "WRITTEN = -1")
    checkout.edit("conf/scenario/batch/lublin_easy.yaml", "scales:", "kill: true\nscales:")
    again = checkout.jobs(*SMOKE)
    assert {job for job in again if job.startswith(("make_trace", "evaluate"))} == {
        "evaluate lublin_easy/rules",
        "evaluate lublin_easy/learned",
    }


@pytest.mark.slow
def test_a_trace_that_is_not_there_is_told(checkout, monkeypatch):
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    checkout.edit("conf/scenario/batch/sdsc_sp2.yaml", "scales: [full, paper]", "scales: [smoke]")
    assert "not run: batch/sdsc_sp2" in checkout.run("all", "--dry-run", "--config", "scale=smoke")
