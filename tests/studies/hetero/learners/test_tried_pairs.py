"""The rule `tried_pairs`: its copies of a run go on as the simulator does."""

from __future__ import annotations

import numpy as np
import pytest
from small_hetero import managed_scenario, prepared

from schedlab.config.errors import UserError
from schedlab.studies.hetero.learners.tried_pairs import tried_pairs
from schedlab.studies.hetero.rules import PairRule

DECISIONS = {"observation": "heads", "objective": "avg_job_slowdown", "time_weighted": True, "void": False}
METRIC, BASE = "mean_bounded_slowdown", "shortest-low_power"


def test_the_best_pair_tried_is_no_worse_than_the_base_and_scores_what_the_trial_says(tmp_path):
    replicates = {"train": 1, "validation": 2, "test": 1}
    problem = prepared(managed_scenario(25, replicates=replicates, decisions=DECISIONS), tmp_path)
    changes = 0
    for unit in problem.units("validation"):
        base, names = problem.score(PairRule(BASE), unit, METRIC), problem.env(unit, 0).action_names
        for vary, end in (("both", ""), ("job", "-low_power"), ("core", "")):
            rule = tried_pairs({"vary": vary}, problem, 0)
            assert all(pair.endswith(end) for pair in rule.pairs)
            assert vary != "core" or all(pair.startswith("shortest-") for pair in rule.pairs)
            made = problem.rollout(rule, unit)
            assert made.scores[METRIC] == pytest.approx(rule.slowdown, rel=1e-5), vary
            assert made.scores[METRIC] <= base * (1 + 1e-5)
            changes += (made.details["decisions"]["action"] != names.index(BASE)).sum() if vary == "both" else 0
    assert changes > 0


@pytest.mark.parametrize(
    ("asked", "played"),
    [
        ([1.0, 2.0, 5.0], [7, 8, 9]),
        ([1.0, 2.0, 2.0 + 1e-7, 5.0], [7, 8, 8, 9]),  # the simulator parts in two what ends at one date
        ([1.0, 5.0 - 1e-6], [7, 9]),  # and merges what the trial parted
        ([1.0 + 1e-6, 2.0 - 1e-6, 5.0, 6.0], [7, 8, 9, 9]),
    ],
)
def test_a_decision_is_found_by_its_date(tmp_path, asked, played):
    rule = tried_pairs({}, prepared(managed_scenario(25, decisions=DECISIONS), tmp_path), 0)
    rule.dates, rule.actions, rule._passed = np.array([1.0, 2.0, 5.0]), [7, 8, 9], 0
    assert [rule.act_at(now) for now in asked] == played


def test_a_base_that_is_no_action_is_named(tmp_path):
    problem = prepared(managed_scenario(25, decisions=DECISIONS | {"selection": ("first-high_mem",)}), tmp_path)
    with pytest.raises(UserError) as caught:
        tried_pairs({}, problem, 0)
    assert caught.value.where == "rule tried_pairs: base"
