"""The benchmarks that make tables: places of learned policies among the pairs, scores of rules. By hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from schedlab.config.settings import StatisticsSettings

SCORES = {  # bounded slowdowns of two workloads
    "shortest-random": (2.0, 4.0),
    "first-random": (8.0, 4.0),
    "best_fixed_pair": (8.0, 4.0),
    "agent": (4.0, 4.0),
    "easy": (1.0, 1.0),
}


def test_scores_of_rules_by_hand(load_program):
    columns = ["scenario", "policy", "metric", "unit", "value", "units", "split", "statistic", "config_hash"]
    rows = [
        ("trio", "easy", "mean_bounded_slowdown", "-", 3.0, 6, "test", "mean", "h"),
        ("trio", "easy", "makespan", "s", 7.5, 6, "test", "mean", "h"),
        ("trio", "fcfs", "mean_bounded_slowdown", "-", 2.0, 6, "test", "mean", "h"),
        ("trio", "fcfs", "makespan", "s", 8.5, 6, "test", "mean", "h"),
        ("trio", "fcfs", "makespan", "s", 9.5, 3, "validation", "mean", "h"),
        ("trio", "fcfs", "mean_turnaround", "s", 9.5, 6, "test", "mean", "h"),
        ("alike", "easy", "mean_bounded_slowdown", "-", 4.0, 6, "test", "mean", "h"),
        ("contended", "easy", "makespan", "s", 9.5, 6, "test", "mean", "h"),
    ]
    table = load_program("benchmarks/hetero_rules").scores(pd.DataFrame(rows, columns=columns))
    assert list(table) == ["scenario", "policy", "workloads", "mean_bounded_slowdown", "makespan_s", "config_hash"]
    assert table["scenario"].tolist() == ["alike", "trio", "trio"]  # in the order of the program, then best first
    assert table["policy"].tolist() == ["easy", "fcfs", "easy"]
    assert table["makespan_s"].tolist()[1:] == [8.5, 7.5]


def test_places_by_hand(load_program):
    script = load_program("benchmarks/hetero_places")
    rows = [
        (name, 0, f"test-{unit}", value, "h") for name, values in SCORES.items() for unit, value in enumerate(values)
    ]
    table = script.places(pd.DataFrame(rows, columns=["policy", "policy_seed", "unit", "value", "config_hash"]))
    assert table["policy"].tolist() == ["easy", "shortest-random", "agent", "best_fixed_pair", "first-random"]
    by_name = table.set_index("policy")
    assert by_name["place"].to_dict() == {
        "easy": 1,
        "shortest-random": 1,
        "agent": 2,
        "best_fixed_pair": 2,
        "first-random": 2,
    }
    agent = by_name.loc["agent"]
    assert (agent["mean"], agent["geometric_mean"], agent["win_rate"]) == (
        4.0,
        pytest.approx(4.0),
        0.75,
    )  # a win and a tie
    assert agent["ratio_to_chosen_pair"] == pytest.approx(4 / 6)
    assert agent["effect_size"] == pytest.approx(0.5**0.5)  # gains log 2 and 0: mean over unbiased deviation
    assert pd.isna(by_name.loc["first-random", "effect_size"])


def test_comparisons_by_hand(load_program):
    script = load_program("benchmarks/hetero_places")
    learned = {seed: (4.0, 4.0) if seed else (8.0, 1.0) for seed in range(5)}
    rows = [
        (name, "rule", 0, f"test-{unit}", value) for name, values in SCORES.items() for unit, value in enumerate(values)
    ]
    rows = [row for row in rows if row[0] != "agent"]
    rows += [
        ("agent", "learned", seed, f"test-{unit}", value)
        for seed, values in learned.items()
        for unit, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=["policy", "kind", "policy_seed", "unit", "value"])
    table = table.assign(block=table["unit"], weight=1.0, config_hash="h")
    chosen, best = (row for _, row in script.comparisons(table, StatisticsSettings()).iterrows())
    assert (chosen["against"], best["against"]) == ("best_fixed_pair", "shortest-random")  # means 6 and 3
    assert (chosen["seeds"], chosen["workloads"]) == (5, 2)
    assert chosen["ratio"] == pytest.approx(4.1 / 6) and best["ratio"] == pytest.approx(4.1 / 3)
    assert chosen["ratio_low"] <= chosen["ratio"] <= chosen["ratio_high"]
    assert (chosen["won"], chosen["lost"]) == (0.5, 0.0)  # of ten: four of 8 to 4, one of 4 to 1; the others tie
    assert chosen["win_rate"] == pytest.approx(0.75)
    assert (best["won"], best["lost"], best["win_rate"]) == (0.1, 0.5, pytest.approx(0.3))
    gains = pd.Series(
        [4 * math.log(2) / 5, math.log(4) / 5]
    )  # of the first workload and of the second, mean over seeds
    assert chosen["effect_size"] == pytest.approx(gains.mean() / gains.std())
    few = script.comparisons(table[table["policy_seed"] < 4], StatisticsSettings())
    assert few["ratio_low"].isna().all() and few["seeds"].tolist() == [4, 4]


def test_what_a_policy_decided_is_counted(load_program):
    script = load_program("benchmarks/hetero_places")
    actions = {0: ["shortest-random", "smallest-random", "shortest-random", "first-random"], 1: ["shortest-low_power"]}
    rows = [("agent", float(seed), action) for seed, taken in actions.items() for action in taken]
    found = script.choices(pd.DataFrame(rows, columns=["policy", "policy_seed", "action"])).set_index("seed")
    assert found["actions"].to_dict() == {0: 3, 1: 1} and found["percent_other"].to_dict() == {0: 50.0, 1: 0.0}
