"""Small tables of the batch study, as the stages write them: three rules and a learned policy with two seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.evaluation import tables
from schedlab.figures.save import caption_of
from schedlab.stages.draw import drawing_function
from schedlab.studies.batch.study import STUDY

BSLD = {  # scenario -> policy -> a value a window; of a learned policy, a list a seed
    "blocks": {
        "fcfs": [[10.0, 20.0, 40.0, 1.0, 9.0, 8.0]],
        "sjf": [[5.0, 10.0, 20.0, 1.0, 6.0, 8.0]],
        "f1": [[4.0, 10.0, 40.0, 1.0, 3.0, 2.0]],
        "chosen": [[5.0, 10.0, 20.0, 1.0, 6.0, 8.0]],
        "learner": [[4.0, 8.0, 16.0, 1.0, 3.0, 4.0], [2.0, 4.0, 16.0, 1.0, 3.0, 4.0]],
    },
    "fills": {
        "fcfs": [[2.0, 3.0, 4.0, 1.0, 2.0, 3.0]],
        "sjf": [[1.5, 2.0, 4.0, 1.0, 2.0, 2.0]],
        "f1": [[1.0, 2.0, 2.0, 1.0, 2.0, 2.0]],
    },
}
LEARNED = ("chosen", "learner")


def score_rows(
    metric: str = "avg_bsld", values: Mapping[str, Mapping[str, Sequence[Sequence[float]]]] = BSLD
) -> list[dict]:
    return [
        {
            "scenario": scenario, "policy": policy, "kind": "learned" if policy in LEARNED else "rule",
            "policy_seed": seed,
            "trained_on": "fills" if policy in LEARNED else "", "mode": "default",
            "split": "test", "unit_kind": "window",
            "unit": f"test-{window:06d}", "block": f"test-{window:06d}",
            "unit_seed": window, "metric": metric, "value": value, "weight": 1.0, "config_hash": "0",
        }
        for scenario, policies in values.items()
        for policy, seeds in policies.items()
        for seed, windows in enumerate(seeds)
        for window, value in enumerate(windows)
    ]  # fmt: skip


def comparison_rows(**best: str) -> list[dict]:
    """The rule that is best on validation, by scenario: what the column `baseline` says in the role best_rule."""
    numbers = dict.fromkeys(("difference", "range_low", "range_high", "win_rate", "cliffs_delta"), 0.0)
    counts = dict.fromkeys(("seeds", "units", "blocks"), 1)
    texts = {
        "kind": "rule",
        "metric": "avg_bsld",
        "unit": "-",
        "better": "lower",
        "statistic": "mean",
        "range_over": "blocks",
    }
    places = {
        "split": "test",
        "mode": "default",
        "trained_on": "",
        "config_hash": "0",
        "policy": "fcfs",
        "role": "best_rule",
    }
    nulls = dict.fromkeys(("ci_low", "ci_high", "relative", "standardised"))
    return [
        {"scenario": scenario, "baseline": rule, **numbers, **counts, **texts, **places, **nulls}
        for scenario, rule in best.items()
    ]


def curve_rows(values: Mapping[int, Sequence[float]], policy: str = "learner", phase: int = 0, **more) -> list[dict]:
    """A curve by seed; a value a step, from 1 on. more: metric, split, updates (of each step)."""
    updates = more.pop("updates", [0] * 99)
    head = {
        "policy": policy,
        "phase": phase,
        "train_scenario": "blocks",
        "episode": 0,
        "split": "validation",
        "metric": "ratio",
        **dict.fromkeys(("decisions", "episodes", "trainings"), 0),
        **more,
    }
    return [
        {**head, "policy_seed": seed, "step": step + 1, "update": updates[step], "value": value}
        for seed, points in values.items()
        for step, value in enumerate(points)
    ]


def made(
    scores: list[dict] | None = None, comparisons: list[dict] | None = None, curves: list[dict] | None = None,
    summary: list[dict] | None = None, jobs: pd.DataFrame | None = None,
    inputs: Mapping[str, Mapping[str, Path]] | None = None,
) -> StudyTables:  # fmt: skip
    return StudyTables(
        scores=tables.build(tables.SCORES, score_rows() if scores is None else scores),
        curves=tables.build(tables.CURVES, curves or []),
        summary=tables.build(tables.SUMMARY, summary or []),
        comparisons=tables.build(tables.COMPARISONS, comparisons or []),
        details={"jobs": pd.DataFrame() if jobs is None else jobs},
        inputs=inputs or {},
        scenarios={"blocks": {"backfill": "none"}, "fills": {"backfill": "conservative"}},
        policies={},
    )


def draw(found: StudyTables, kind: str, *scenarios: str, policies: tuple[str, ...] = (), **params) -> Drawing:
    spec = FigureSpec("figure", kind, "title", "Caption.", "", scenarios, policies, params)
    drawing = drawing_function(STUDY, kind)(found, spec)
    drawing.figure.draw_without_rendering()
    assert not set("{}[]") & set(caption_of(drawing)), caption_of(drawing)
    return drawing


def rows_of(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]
