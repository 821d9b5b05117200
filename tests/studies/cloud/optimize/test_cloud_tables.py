"""The table of what learned policies came to (benchmarks/cloud_tables.py), and what tables of an optimised training
tell.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.optimize.tables import allocation_changes, undominated


def test_weights_are_a_preference_as_names_are(repository, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "benchmarks"))
    from cloud_tables import score_table

    key = {
        "scenario": "example",
        "policy": "learned",
        "policy_seed": 0,
        "split": "test",
        "config_hash": "0",
        "metric": "regret",
        "value": 0.0,
    }
    preferences = ["5e-1:0.25:0.25", "cost"]
    pd.DataFrame([{**key, "unit": str(n), "preference": name} for n, name in enumerate(preferences)]).to_parquet(
        tmp_path / "scores.parquet"
    )
    assert list(score_table(tmp_path, ["learned"])["preference"]) == preferences


def test_what_was_done_is_told_of_allocations():
    steps = [Allocation(1, 8, 16.0), Allocation(1, 8, 16.0), Allocation(2, 4, 16.0), Allocation(2, 4, 7.5)]
    assert allocation_changes(steps) == ["nothing", "GPUs 1 to 2, cores 8 to 4", "memory 16 to 7.5 GB"]


def test_dominated_points_are_no_front():
    time, cost = np.array([1.0, 2.0, 2.0, 3.0, np.inf, 1.0]), np.array([5.0, 3.0, 4.0, 3.0, 0.0, 6.0])
    assert undominated(time, cost) == [0, 1]
