"""The table of what learned policies came to (benchmarks/cloud_tables.py)."""

from __future__ import annotations

import pandas as pd


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
    pd.DataFrame([{**key, "unit": f"{name}-test-00"} for name in preferences]).to_parquet(tmp_path / "scores.parquet")
    assert list(score_table(tmp_path, ["learned"])["preference"]) == preferences
