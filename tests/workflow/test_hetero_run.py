"""The hetero study through the workflow: prepared, scored with a user's own scheduler, drawn; an edit runs again."""

from __future__ import annotations

import pandas as pd
import pytest
from checkouts import copy_repository

import shipped_conf
from small_conf import OWN_SCHEDULER, write_hetero_conf


@pytest.fixture
def checkout(repository, tmp_path):
    made = copy_repository(repository, tmp_path / "hetero")
    write_hetero_conf(made.folder)
    for name in ("gantt", "course"):  # the others show scenarios that are none of these
        shipped_conf.write("figure/hetero", name, made.folder / "conf")
    made.edit(
        "conf/scenario/hetero/_base.yaml", "  - fcfs\n", "  - fcfs\n  - {name: mine, target: 'own.py:LastCoreFirst'}\n"
    )
    (made.folder / "own.py").write_text(OWN_SCHEDULER)
    return made


@pytest.mark.slow
def test_a_smoke_run_scores_a_users_scheduler_and_again_when_it_is_edited(checkout):
    checkout.run("all", "--config", "scale=smoke", cores=1)
    made = checkout.hashes()
    assert {name.rsplit("/", 1)[-1] for name in made} >= {
        "summary.parquet",
        "rules.parquet",
        "jobs.parquet",
        "gantt.svg",
        "course.png",
    }
    scores = pd.read_parquet(checkout.folder / "results/smoke/hetero/scores.parquet")
    assert set(scores["policy"]) == {"fcfs", "mine", "sjf", "filler", "easy", "easy-sjf", "easy-f1", "conservative"}
    assert set(scores["split"]) == {"validation", "test"}
    jobs = pd.read_parquet(checkout.folder / "results/smoke/hetero/details/jobs.parquet")
    mine = jobs[(jobs["policy"] == "mine") & (jobs["split"] == "test")].sort_values("start")
    assert (
        len(mine) == 12 and (mine["start"].to_numpy()[1:] >= mine["finish"].to_numpy()[:-1]).all()
    )  # one job at a time
    (checkout.folder / "own.py").write_text(OWN_SCHEDULER + "\n# changed\n")
    assert set(checkout.rules("all", "--config", "scale=smoke")) >= {"evaluate", "summarise"}
