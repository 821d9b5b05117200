"""The batch study through the workflow: the trace is made once for all scenarios of it, every rule is scored; the same bytes each time."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest
from checkouts import Checkout, copy_repository

from small_conf import write_scales

RULES = {"fcfs", "sjf", "ljf", "smallest", "largest", "f1", "f2", "f3", "f4", "wfp3", "unicep"}


@pytest.fixture
def checkout(repository, tmp_path) -> Checkout:
    """The shipped batch study alone, at scale smoke."""
    made = copy_repository(repository, tmp_path / "batch")
    conf, shipped = made.folder / "conf", repository / "conf"
    for name in ("config.yaml", "study/batch.yaml", "figure/theme.yaml"):
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped / name, conf / name)
    shutil.copytree(shipped / "scenario/batch", conf / "scenario/batch")
    write_scales(conf, "batch", "smoke", "small")
    shutil.rmtree(made.folder / "src")
    (made.folder / "src").symlink_to(repository / "src")  # where the compiled kernels are kept
    return made


def test_a_smoke_run_scores_every_rule_and_gives_the_same_bytes_each_time(checkout):
    checkout.run("all", "--config", "scale=smoke")
    made = checkout.hashes()
    scores = pd.read_parquet(checkout.folder / "results/smoke/batch/scores.parquet")
    assert set(scores["scenario"]) == {"lublin", "lublin_easy"}
    assert set(scores["policy"]) == RULES
    assert {"validation", "test"} >= set(scores["split"]) >= {"test"}
    jobs = pd.read_parquet(checkout.folder / "results/smoke/batch/details/jobs.parquet")
    assert (jobs["wait"] >= 0).all()
    assert len(list((checkout.folder / "results/smoke/batch/inputs").glob("make_trace-*/trace.swf.gz"))) == 1
    checkout.edit("conf/scenario/batch/lublin_easy.yaml", "backfill: easy", "backfill: conservative")
    again = checkout.jobs("all", "--config", "scale=smoke")
    assert {job for job in again if job.startswith(("make_trace", "evaluate"))} == {"evaluate lublin_easy/rules"}
    checkout.edit("conf/scenario/batch/lublin_easy.yaml", "backfill: conservative", "backfill: easy")
    shutil.rmtree(checkout.folder / "results")
    checkout.run("all", "--config", "scale=smoke", cores=1)
    assert checkout.hashes() == made


def test_a_trace_that_is_not_there_is_told(checkout, monkeypatch):
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    checkout.edit("conf/scenario/batch/sdsc_sp2.yaml", "scales: [full, paper]", "scales: [smoke]")
    assert "not run: batch/sdsc_sp2" in checkout.run("all", "--dry-run", "--config", "scale=smoke")
