"""Tests of schedlab.figures.verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.evaluation import tables
from schedlab.figures.verdicts import lines, main_answers, markdown, ratio, read_answers

ROW = {
    "question": "is it faster?",
    "metric": "cost",
    "policy": "ours-near",
    "recipe": "ours",
    "rival": "look",
    "rival_chosen_on": "validation",
    "ratio": 0.8404,
    "ci_low": 0.7,
    "ci_high": 0.9499,
    "learning_seeds": 5,
    "units": 12,
    "blocks": 12,
    "share_won": 0.75,
    "ratio_to_hindsight": 0.9,
    "ratio_to_bound": None,
    "budget": 12345.0,
    "rival_budget": None,
    "budget_unit": "decisions",
    "verdict": "better",
    "config_hash": "a",
    "code_hash": "b",
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [
        ROW | {"scenario": scenario, "group": group, "rival": rival}
        for scenario in ("near", "far", "near+far")
        for group, rival in (("all", "look"), ("planners", "look"), ("rules", "quick"))
    ]
    rows += [ROW | {"scenario": "far", "group": "all", "question": "anything?", "ratio": None, "ci_low": None}]
    file = tmp_path / "toy/headline.parquet"
    file.parent.mkdir()
    tables.write(tables.HEADLINE, file, tables.build(tables.HEADLINE, rows))
    return file


def test_the_answers_are_those_against_all_rivals_with_the_group_of_the_best(table: Path) -> None:
    found = read_answers(table)
    assert [(row["question"], row["scenario"]) for row in found] == [
        ("anything?", "far"),
        *(("is it faster?", scenario) for scenario in ("far", "near", "near+far")),
    ]
    assert [row["rival_group"] for row in found] == ["", *["planners"] * 3]
    assert (found[0]["ratio"], found[0]["ratio_to_bound"], found[1]["ratio"]) == (None, None, 0.8404)
    assert [row["scenario"] for row in main_answers(found)] == ["far", "near+far"]


def test_a_line_says_what_was_compared_and_the_verdict(table: Path) -> None:
    first, second = lines(table)
    assert "no ratio" in first
    for shown in ("toy", "ours", "near+far", "cost", "0.84 [0.70, 0.95]", "look", "planners", "better"):
        assert shown in second


def test_a_row_of_the_table_for_each_answer(table: Path) -> None:
    head, rule, *rows = markdown({"toy": read_answers(table), "other": []})
    assert len(rows) == 4 and {line.count("|") for line in (head, rule, *rows)} == {head.count("|")}
    assert "near + far" in rows[-1] and "12,345 decisions" in rows[-1] and "75%" in rows[-1]


@pytest.mark.parametrize(
    ("ends", "verdict", "expected"),
    [
        ((0.851, 0.9967), "better", "0.926 [0.851, 0.997]"),
        ((0.851, 0.9967), "not distinguishable", "0.93 [0.85, 1.00]"),
        ((0.851, 0.95), "better", "0.93 [0.85, 0.95]"),
        ((None, None), "not distinguishable", "0.93"),
    ],
)
def test_a_ratio_has_the_digits_that_its_verdict_needs(ends, verdict, expected) -> None:
    assert ratio({"ratio": 0.926, "ci_low": ends[0], "ci_high": ends[1], "verdict": verdict}) == expected
