"""Results as data frames: tables over all studies, and any two policies compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import schedlab.results
from schedlab.config.errors import UserError
from schedlab.evaluation import tables


def scores(scenario: str, policy: str, recipe: str, seeds: int, better: float = 0.0) -> list[dict]:
    """Scores on 6 units of one block each; learned where there are several seeds."""
    rng = np.random.default_rng(1)  # the same units for all
    values = rng.uniform(10, 20, 6)
    return [
        {
            "scenario": scenario,
            "policy": policy,
            "kind": "learned" if seeds > 1 else "rule",
            "policy_seed": seed,
            "trained_on": scenario if seeds > 1 else "",
            "mode": "default",
            "split": "test",
            "unit_kind": "workload",
            "unit": f"test-{number}",
            "block": f"test-{number}",
            "unit_seed": number,
            "metric": "slowdown",
            "value": float(value - better - 0.1 * seed),
            "weight": 1.0,
            "config_hash": "c",
            "recipe": recipe,
        }
        for seed in range(seeds)
        for number, value in enumerate(values)
    ]


@pytest.fixture
def run(tmp_path):
    """Two studies with scores; the first has a question and knows which direction is better."""
    facts = {"recipe": "text"}
    rows = scores("calm", "learned-calm", "learned", 5, 2.0) + scores("calm", "fcfs", "fcfs", 1)
    rows += scores("busy", "learned-busy", "learned", 5, 1.0) + scores("busy", "fcfs", "fcfs", 1)
    for study, found in (("queue", rows), ("other", scores("calm", "greedy", "greedy", 1))):
        (tmp_path / study).mkdir()
        tables.write(
            tables.SCORES.with_facts(facts),
            tmp_path / study / "scores.parquet",
            tables.build(tables.SCORES.with_facts(facts), found),
        )
    pd.DataFrame([{"metric": "slowdown", "unit": "1", "better": "lower"}]).to_csv(tmp_path / "queue/comparisons.csv")
    pd.DataFrame([{"scenario": name, "metric": "slowdown"} for name in ("calm", "busy")]).to_csv(
        tmp_path / "queue/headline.csv"
    )
    return schedlab.results.load(tmp_path)


def test_a_table_is_over_all_studies(run):
    assert run.studies == ("other", "queue")
    assert run.scores.groupby("study").size().to_dict() == {"other": 6, "queue": 72}
    assert list(run.headline.columns[:1]) == ["study"] and len(run.headline) == 2


def test_two_policies_are_compared_in_each_scenario_by_their_recipe(run):
    found = run.compare("learned", "fcfs").set_index("scenario")
    assert found["policy"].to_dict() == {"calm": "learned-calm", "busy": "learned-busy"}
    assert found["difference"].to_dict() == pytest.approx({"calm": -2.2, "busy": -1.2})
    assert (found["ci_low"] <= found["difference"]).all() and (found["difference"] <= found["ci_high"]).all()
    assert (found["win_rate"] == 1.0).all() and (found[["seeds", "units", "blocks"]] == [5, 6, 6]).all(axis=None)
    again = run.compare("learned-calm", "fcfs", "slowdown", study="queue")
    pd.testing.assert_frame_equal(
        again, run.compare("learned", "fcfs")[lambda rows: rows["scenario"] == "calm"].reset_index(drop=True)
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("lerned", "fcfs"), "'learned'"),
        (("learned", "greedy"), "study="),
        (("learned", "fcfs", "slowdwn"), "'slowdown'"),
        (("learned", "fcfs", None, "queu"), "'queue'"),
        (("learned", "fcfs", None, None, "tset"), "'test'"),
        (("learned", "fcfs", "slowdown", "queue", "tset"), "'test'"),
        (("learned", "fcfs", "slowdown", "queue", "tset"), "'tset'"),
    ],
)
def test_a_wrong_name_gets_the_nearest(run, arguments, named):
    with pytest.raises(UserError) as caught:
        run.compare(*arguments)
    assert named in str(caught.value)


def test_what_is_not_there_is_named(tmp_path, run):
    with pytest.raises(UserError) as caught:
        schedlab.results.load(tmp_path / "queue")
    assert caught.value.where == str(tmp_path / "queue")
    with pytest.raises(UserError) as caught:
        _ = run.curves
    assert "curves" in str(caught.value)
