"""The benchmark that ranks learned policies among the pairs, by hand."""

from __future__ import annotations

import importlib.util

import pandas as pd
import pytest

from small_conf import SHIPPED

SCRIPT = SHIPPED.parent / "benchmarks" / "hetero_places.py"
SCORES = {  # bounded slowdowns of two workloads
    "shortest-random": (2.0, 4.0),
    "first-random": (8.0, 4.0),
    "best_fixed_pair": (8.0, 4.0),
    "agent": (4.0, 4.0),
    "easy": (1.0, 1.0),
}


def test_places_by_hand():
    spec = importlib.util.spec_from_file_location("hetero_places", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    rows = [(name, 0, f"test-{unit}", value, "h") for name, values in SCORES.items() for unit, value in enumerate(values)]
    table = script.places(pd.DataFrame(rows, columns=["policy", "policy_seed", "unit", "value", "config_hash"]))
    assert table["policy"].tolist() == ["easy", "shortest-random", "agent", "best_fixed_pair", "first-random"]
    by_name = table.set_index("policy")
    assert by_name["place"].to_dict() == {"easy": 1, "shortest-random": 1, "agent": 2, "best_fixed_pair": 2, "first-random": 2}
    agent = by_name.loc["agent"]
    assert (agent["mean"], agent["geometric_mean"], agent["win_rate"]) == (4.0, pytest.approx(4.0), 0.75)  # a win and a tie
    assert agent["ratio_to_chosen_pair"] == pytest.approx(4 / 6)
    assert agent["effect_size"] == pytest.approx(0.5**0.5)  # gains log 2 and 0: mean over unbiased deviation
    assert pd.isna(by_name.loc["first-random", "effect_size"])
