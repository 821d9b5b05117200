"""The rows that benchmarks/batch_search.py writes of policies on test windows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import shipped_conf
from schedlab.config.schema import validate
from schedlab.studies.batch.learners.policy_files import save_priority
from schedlab.studies.batch.learners.search_settings import CORRECT_RULES
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.workloads.prepare import make_trace

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "benchmarks"))

import batch_search  # noqa: E402


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of two seeds that keep SJF and one seed of another learner that keeps F1."""
    lublin = {"jobs": 4000, "processors": 64, "load": 0.9}
    values = {
        "name": "drawn",
        "seed": 1,
        "workload": {"name": "drawn", "source": "lublin", "seed": 1, "lublin": lublin},
    }
    scenario = validate(BatchScenario, values | {"windows": {"length": batch_search.LENGTH}, "backfill": "easy"})
    problem = BatchProblem(scenario, make_trace(scenario.workload)[0])
    folder, made = tmp_path_factory.mktemp("policies"), {"rollout": ["sjf", "sjf"], "evolution": ["f1"]}
    for learner, kept in made.items():
        paths = [folder / f"drawn-easy-{learner}-{seed}.zip" for seed in range(len(kept))]
        for path, rule in zip(paths, kept, strict=True):
            save_priority(path, rule)
        made[learner] = paths
    return batch_search.rows_of(
        problem, {"backfill": "easy", "trace": "drawn", "learned_on": "drawn"}, made, every_rule=True
    )


def test_every_policy_stands_beside_the_chosen_rules_the_planner_and_every_rule(rows):
    roles = ["chosen by mean", "chosen by log", "hindsight", "planner"]
    ours = [row for row in rows if row["learner"] == "rollout"]
    assert [row["against"] for row in ours] == [*roles, *["rule"] * len(CORRECT_RULES), "evolution"]
    assert [row["rule"] for row in ours if row["against"] == "rule"] == list(CORRECT_RULES)
    assert [row["against"] for row in rows if row["learner"] == "evolution"] == [*roles, *["rule"] * len(CORRECT_RULES)]


def test_the_best_rule_in_hindsight_is_the_lowest_of_all(rows):
    ours = [row for row in rows if row["learner"] == "rollout"]
    means = {row["rule"]: row["baseline_mean"] for row in ours if row["against"] == "rule"}
    (hindsight,) = (row for row in ours if row["against"] == "hindsight")
    assert hindsight["rule"] == min(means, key=means.get) and len(set(means.values())) > 2


def test_a_policy_against_itself_has_ratio_and_effect_of_nothing(rows):
    same = next(
        row for row in rows if row["learner"] == "rollout" and row["rule"] == "sjf" and row["against"] == "rule"
    )
    other = next(row for row in rows if row["learner"] == "rollout" and row["rule"] == "ljf")
    assert same["ratio"] == same["geometric_ratio"] == 1.0 and not same["standardised_log_ratio"]
    assert other["geometric_ratio"] < 1 and other["standardised_log_ratio"] < 0  # below 0: the policy is better
    assert same["by_seed"].split() == [f"{same['mean']:.4g}"] * 2 and same["windows"] == 6


def test_scenarios_that_are_named_exist():
    assert set(batch_search.SCENARIOS) <= set(shipped_conf.names("scenario/batch"))
