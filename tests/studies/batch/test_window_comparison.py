"""Ratios of windows against numbers worked out by hand, and the command that prints them."""

from __future__ import annotations

import csv
import io
import math
import statistics

import pandas as pd
import pytest

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.evaluation import tables
from schedlab.studies.batch.comparison import comparisons

OURS = [[1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 8.0], [1.0, 4.0, 3.0, 4.0, 50.0, 60.0, 70.0, 8.0]]
RULE = [1.0, 6.0, 3.0, 2.0, 100.0, 60.0, 70.0, 4.0]
OTHER = [1.0, 6.0, 9.0, 2.0, 100.0, 60.0, 71.0, 4.0]


def scores() -> pd.DataFrame:
    rows = []
    policies = [("ours", "learned", seed, values) for seed, values in enumerate(OURS)]
    for name, kind, seed, values in [*policies, ("rule", "rule", 0, RULE), ("other", "rule", 0, OTHER)]:
        for number, value in enumerate(values):
            unit = f"test-{number}"
            about = {"policy": name, "kind": kind, "policy_seed": seed, "trained_on": "", "mode": "default"}
            place = {
                "scenario": "here",
                "split": "test",
                "unit_kind": "window",
                "unit": unit,
                "block": unit,
                "unit_seed": 0,
            }
            rows.append({**about, **place, "metric": "avg_bsld", "value": value, "weight": 1.0, "config_hash": "0"})
    return tables.build(tables.SCORES, rows)


def test_ratios_by_hand() -> None:
    (found,) = comparisons(scores(), "ours", ("rule",))
    mean = [1, 3, 3, 4, 50, 60, 70, 8]
    assert found["ratio"] == pytest.approx(sum(mean) / sum(RULE))
    assert found["ratio_without_worst"] == pytest.approx(
        (1 + 3 + 3 + 4 + 8) / (1 + 6 + 3 + 2 + 4)
    )  # without 100, 70 and 60
    logs = [math.log(a / b) for values in OURS for a, b in zip(values, RULE, strict=True)]
    assert found["geometric_ratio"] == pytest.approx(math.exp(sum(logs) / len(logs)))
    by_window = [(a + b) / 2 for a, b in zip(logs[:8], logs[8:], strict=True)]
    assert found["standardised_log_ratio"] == pytest.approx(statistics.fmean(by_window) / statistics.stdev(by_window))
    assert (found["windows"], found["windows_differing"]) == (8, 6)  # in windows 0 and 5 all are equal
    assert found["win_rate"] == pytest.approx((1 + 0.5 + 0 + 1 + 0.5 + 0) / 6)
    assert found["ratio_low"] < found["ratio"] < found["ratio_high"]
    assert found["geometric_ratio_low"] < found["geometric_ratio"] < found["geometric_ratio_high"]


def test_equal_policies_have_no_standardised_ratio() -> None:
    same = scores()
    same.loc[same["policy"] == "ours", "value"] = RULE * 2
    (found,) = comparisons(same, "ours", ("rule",))
    assert (found["geometric_ratio"], found["standardised_log_ratio"]) == (1.0, None)


def test_a_policy_that_is_not_there() -> None:
    with pytest.raises(UserError, match="rule"):
        list(comparisons(scores(), "ours", ("rul",)))


def test_policies_that_no_scenario_scores_together_are_told() -> None:
    here = scores()
    elsewhere = here[here["policy"] == "other"].assign(scenario="there")
    apart = pd.concat([here[here["policy"] != "other"], elsewhere])
    with pytest.raises(UserError, match="--baseline"):
        list(comparisons(apart, "ours", ("rule", "other")))
    with pytest.raises(UserError, match="--baseline"):
        list(comparisons(here, "ours", ("rule", "ours")))


def test_the_command_takes_the_level_of_intervals_from_the_study(tmp_path, capsys) -> None:
    tables.write(tables.SCORES, tmp_path / "case/evaluation/rules.parquet", scores())
    command = ["batch", "compare", str(tmp_path / "case/evaluation/rules.parquet"), "--policy", "ours"]
    widths = []
    for level in (None, 0.5):
        if level is not None:
            (tmp_path / "config").mkdir()
            (tmp_path / "config/summarise.yaml").write_text(f"statistics: {{confidence: {level}, baseline: rule}}\n")
        assert main([*command, "--baseline", "rule"]) == 0
        (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
        assert float(row["confidence"]) == (level or 0.95)
        widths.append(float(row["geometric_ratio_high"]) - float(row["geometric_ratio_low"]))
    assert widths[1] < 0.7 * widths[0]


def test_the_command_takes_tables_of_evaluations_with_the_facts_of_their_windows(tmp_path, capsys) -> None:
    both, words = scores().assign(first_job=7), []
    for name, rows in both.groupby(both["policy"] == "ours"):
        path = tmp_path / f"{name}.parquet"
        tables.write(tables.SCORES.with_facts({"first_job": "integer"}), path, rows)
        words.append(str(path))
    assert main(["batch", "compare", *words, "--policy", "ours", "--baseline", "rule"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["baseline"] == "rule"


def test_the_command(tmp_path, capsys) -> None:
    tables.write(tables.SCORES, tmp_path / "scores.parquet", scores())
    assert (
        main(["batch", "compare", str(tmp_path / "scores.parquet"), "--policy", "ours", "--baseline", "rule", "other"])
        == 0
    )
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["scenario"], row["baseline"]) for row in rows] == [("here", "rule"), ("here", "other")]
    assert main(["batch", "compare", str(tmp_path / "none.parquet"), "--policy", "a", "--baseline", "b"]) == 2
    assert "none.parquet" in capsys.readouterr().err
    scores()[["policy", "value"]].to_parquet(tmp_path / "summary.parquet")
    assert main(["batch", "compare", str(tmp_path / "summary.parquet"), "--policy", "ours", "--baseline", "rule"]) == 2
    told = capsys.readouterr().err
    assert "summary.parquet" in told and "scores.parquet" in told and "Traceback" not in told
