"""The benchmark that tabulates blocking rates, by hand."""

from __future__ import annotations

import importlib.util

import pandas as pd
import pytest

from small_conf import SHIPPED

SCRIPT = SHIPPED.parent / "benchmarks" / "ramp_learning.py"


def test_a_line_for_each_policy_with_its_seeds():
    spec = importlib.util.spec_from_file_location("ramp_learning", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    rows = [("afterstate", "learned", seed, unit, 0.1 + 0.01 * seed + 0.02 * unit) for seed in range(5) for unit in range(3)]
    rows += [("para_max", "rule", 0, unit, 0.3) for unit in range(3)]
    table = pd.DataFrame(rows, columns=["policy", "kind", "policy_seed", "unit", "value"])
    table["unit"] = table["block"] = "test-" + table["unit"].astype(str)
    made = script.blocking(table.assign(scenario="published_a", weight=1.0))
    assert made["policy"].tolist() == ["afterstate", "para_max"]
    learned = made.iloc[0]
    assert (learned["seeds"], learned["episodes"], learned["blocking_rate"]) == (5, 3, pytest.approx(0.14))
    assert learned["by_seed"] == "0.1200 0.1300 0.1400 0.1500 0.1600"
    assert 0.11 < learned["low"] < 0.14 < learned["high"] < 0.17
