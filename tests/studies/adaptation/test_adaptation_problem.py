from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_scenarios import scenario as small_scenario
from small_tables import published

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.decisions import ActByDeciding, GrowthAction
from schedlab.studies.adaptation.example import BUDGET, example_architecture, example_problem, example_table
from schedlab.studies.adaptation.problem import (
    OVERLAPPING,
    AdaptationProblem,
    ProblemSetup,
    deepening_actions,
    setup_of,
)
from schedlab.studies.adaptation.rules import RULES, RandomPolicy, SequencePolicy
from schedlab.studies.adaptation.simulator.ranking import reliability
from schedlab.studies.adaptation.study import STUDY


def test_replicates_are_units_and_the_last_ones_are_kept_for_testing() -> None:
    problem = example_problem(replicates=3)
    assert [unit.id for unit in problem.units("train")] == ["job-0/replicate-0", "job-0/replicate-1"]
    assert [unit.id for unit in problem.units("test")] == ["job-0/replicate-2"]
    assert not problem.units("validation")
    assert {unit.block for split in ("train", "test") for unit in problem.units(split)} == {"job-0"}
    seeds = [unit.seed for split in ("train", "test") for unit in problem.units(split)]
    assert len(set(seeds)) == 3


def test_each_job_keeps_its_own_last_replicates() -> None:
    original = example_architecture()
    setup = ProblemSetup(BUDGET, deepening_actions(original), test_replicates=2)
    problem = AdaptationProblem("two", example_table(90, replicates=3, jobs=2), original, setup)
    assert [unit.id for unit in problem.units("test")] == [f"job-{job}/replicate-{r}" for job in (0, 1) for r in (1, 2)]
    assert [unit.block for unit in problem.units("train")] == ["job-0", "job-1"]
    with pytest.raises(UserError, match="test_replicates"):
        AdaptationProblem("two", example_table(90), original, replace(setup, test_replicates=3)).units("train")


def test_validation_replicates_stand_between_those_learned_on_and_those_tested_on() -> None:
    original = example_architecture()
    setup = ProblemSetup(BUDGET, deepening_actions(original), validation_replicates=1)
    problem = AdaptationProblem("one", example_table(90, replicates=4), original, setup)
    assert problem.rows("train") + problem.rows("validation") + problem.rows("test") == (0, 1, 2, 3)
    assert [unit.id for unit in problem.units("validation")] == ["job-0/replicate-2"]
    for wrong in ({"validation_replicates": 3}, {"test_replicates": 0}):
        with pytest.raises(UserError, match="test_replicates"):
            AdaptationProblem("one", example_table(90, replicates=4), original, replace(setup, **wrong)).units("train")


def test_replicates_must_be_left_to_learn_and_to_test_on() -> None:
    for validation, test in ((2, 1), (1, 0)):
        scenario = small_scenario(replicates=3, validation_replicates=validation, test_replicates=test)
        assert [error.where for error in STUDY.check(scenario)] == ["test_replicates"]
    assert not list(STUDY.check(small_scenario(replicates=3, validation_replicates=1)))


def test_scores_say_how_far_the_ranking_of_a_job_can_be_trusted() -> None:
    problem = example_problem(replicates=3)
    scores = problem.rollout(SequencePolicy("333"), problem.units("test")[0]).scores
    parts = reliability(problem.view.reward)
    assert (scores["noise"], scores["reliability"]) == (parts.sd_residual, parts.share)
    alone = example_problem(replicates=1)
    assert not {"noise", "reliability"} & set(alone.rollout(SequencePolicy("333"), alone.units("test")[0]).scores)


def test_a_single_replicate_is_learned_and_tested_on_and_says_so() -> None:
    problem = example_problem(replicates=1)
    train, test = problem.units("train"), problem.units("test")
    assert [unit.id for unit in train] == [unit.id for unit in test]
    assert {unit.kind for unit in (*train, *test)} == {OVERLAPPING}


def test_scores_are_those_of_the_tables_row() -> None:
    problem = example_problem()
    unit = problem.units("test")[0]
    outcome = problem.rollout(SequencePolicy("031"), unit)
    row = example_table(90).query("replicate == 2").set_index("sequence")
    assert outcome.scores["reward"] == -row.loc["031", "validation_loss"]
    assert outcome.scores["validation_log_loss"] == row.loc["031", "validation_loss"]
    assert outcome.scores["test_accuracy"] == row.loc["031", "test_accuracy"]
    assert outcome.scores["regret"] == pytest.approx(row.loc["031", "validation_loss"] - row["validation_loss"].min())
    assert outcome.scores["rank"] == 1 + (row["validation_loss"] < row.loc["031", "validation_loss"]).sum()
    assert outcome.scores["noise"] == pytest.approx(0.004, rel=0.3)
    assert 0 <= outcome.scores["top_probability"] <= 1
    decisions = outcome.details["decisions"]
    assert decisions["prefix"].tolist() == ["", "0", "03"] and decisions["action"].tolist() == [0, 3, 1]
    assert decisions["time_left"].tolist() == [row.loc["031", f"time_left_{i}"] for i in (1, 2, 3)]
    assert decisions[[f"probability_{a}" for a in range(4)]].to_numpy().sum() == 3
    assert outcome.details["sequences"]["sequence"].tolist() == ["031"]


def test_a_random_policy_is_scored_by_its_exact_expectation() -> None:
    problem = example_problem()
    unit = problem.units("test")[0]
    outcome = problem.rollout(RandomPolicy(), unit)
    reward = problem.view.reward[2]
    assert outcome.scores["reward"] == pytest.approx(reward.mean(), rel=1e-12)
    assert outcome.scores["rank"] == pytest.approx(32.5)
    assert len(outcome.details["sequences"]) == 64 and len(outcome.details["decisions"]) == 21
    assert outcome.details["sequences"]["probability"].sum() == pytest.approx(1)


def test_the_oracle_has_no_regret_on_any_unit_and_never_is_no_adaptation() -> None:
    problem = example_problem()
    for split in ("train", "test"):
        for unit in problem.units(split):
            assert problem.rollout(RULES["exhaustive"]({}, problem, 0), unit).scores["regret"] == 0
            assert problem.rollout(RULES["never"]({}, problem, 0), unit).details["sequences"]["sequence"].tolist() == [
                "333"
            ]


@pytest.mark.parametrize(("column", "score"), [("test_loss", "test_log_loss"), ("test_accuracy", "test_accuracy")])
def test_the_oracle_of_a_column_bounds_every_sequence_in_it(column: str, score: str) -> None:
    problem = example_problem()
    oracle, worse = RULES["exhaustive"]({"metric": column}, problem, 0), False
    sign = 1 if score == "test_log_loss" else -1
    for unit in problem.units("test"):
        bound = sign * problem.rollout(oracle, unit).scores[score]
        of_reward = sign * problem.rollout(RULES["exhaustive"]({}, problem, 0), unit).scores[score]
        others = [sign * problem.rollout(SequencePolicy(each), unit).scores[score] for each in problem.tree.sequences]
        assert bound == min(others) <= of_reward
        worse |= of_reward > bound
    assert worse, "else both are one oracle"


def test_the_oracle_of_a_column_that_the_table_lacks_is_refused() -> None:
    problem = example_problem()
    lacking = replace(problem.view, metrics={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem, "view", lacking)
        with pytest.raises(UserError, match="test_loss"):
            RULES["exhaustive"]({"metric": "test_loss"}, problem, 0)


def test_a_policy_that_reads_observations_steps_the_environment() -> None:
    class Stock:
        def __init__(self) -> None:
            self.seen: list[np.ndarray] = []

        def reset(self, unit) -> None:
            self.unit = unit

        def act(self, observation: np.ndarray, mask: np.ndarray) -> np.int64:
            assert mask.tolist() == [True] * 4
            self.seen.append(observation)
            return np.int64(len(self.seen) % 4)

    problem, policy = example_problem(), Stock()
    outcome = problem.rollout(policy, problem.units("test")[0])
    assert outcome.details["sequences"]["sequence"].tolist() == ["123"]
    assert outcome.scores["reward"] == problem.view.reward[2, problem.tree.index("123")]
    assert all(isinstance(seen, np.ndarray) for seen in policy.seen)


def test_a_policy_for_another_number_of_actions_is_refused() -> None:
    class Wide(ActByDeciding):
        def decide(self, decision) -> np.ndarray:
            return np.full(len(decision.actions) + 2, 0.2)

    problem = example_problem()
    with pytest.raises(UserError, match=r"among 5 actions; expected 4 actions"):
        problem.rollout(Wide(), problem.units("test")[0])


def test_a_table_that_does_not_fit_the_scenario_is_refused() -> None:
    original, table = example_architecture(), example_table(90)
    setup = ProblemSetup(BUDGET, deepening_actions(original))
    with pytest.raises(UserError, match="no sequence of 2 out of 4"):
        AdaptationProblem("x", table, original, replace(setup, decisions=2))
    with pytest.raises(UserError, match="no sequence of 3 out of 3"):
        AdaptationProblem("x", table, original, replace(setup, actions=setup.actions[:2]))
    with pytest.raises(UserError, match=r"150.*100"):
        AdaptationProblem("x", table, original, replace(setup, total_time=100.0))
    with pytest.raises(UserError, match="'test_acc'"):
        AdaptationProblem("x", table, original, replace(setup, metric="test_acc"))
    problem = AdaptationProblem("x", table, original, setup)
    with pytest.raises(UserError, match="job-7/replicate-0"):
        problem.row(replace(problem.units("test")[0], id="job-7/replicate-0"))


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("always", {"action": 4}, "action"),
        ("always", {}, "'action'"),
        ("always", {"action": "0"}, "action"),
        ("sequence", {"sequence": "0144"}, "'0144'"),
        ("sequence", {"sequnce": "014"}, "'sequnce'.*'sequence'"),
        ("never", {"x": 1}, "'x'"),
    ],
)
def test_wrong_values_of_rules_are_told(name: str, params: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        RULES[name](params, example_problem(), 0)


def test_rules_take_the_sequences_that_they_say() -> None:
    problem = example_problem()
    unit = problem.units("test")[0]
    for name, params, sequence in (
        ("always", {"action": 1}, "111"),
        ("sequence", {"sequence": "302"}, "302"),
        ("always", {"action": 3}, "333"),
    ):
        policy = RULES[name](params, problem, 0)
        for _ in range(2):  # a second unit starts anew
            assert problem.rollout(policy, unit).details["sequences"]["sequence"].tolist() == [sequence]


def test_the_published_tables_are_problems_without_losses(shared_data: Path) -> None:
    problem = published(shared_data / "cases/adaptation/simulations.csv")["late"]
    unit = problem.units("test")[0]
    scores = problem.rollout(SequencePolicy("333"), unit).scores
    assert scores["rank"] == 50 and scores["test_accuracy"] == 0.5912
    assert "validation_log_loss" not in scores and "validation_accuracy" not in scores
    assert scores["noise"] == pytest.approx(0.024, abs=0.001)  # of the last epochs' jumps


def test_a_typed_scenario_says_metric_actions_and_when_the_network_is_the_original_one_again() -> None:
    scenario = small_scenario(
        changes=[{"time": 118.0, "change": "down"}, {"time": 119.0, "change": "up"}], growth={"bn_init": "none"}
    )
    original = example_architecture()
    setup = setup_of(scenario, original)
    assert (setup.metric, setup.total_time, setup.test_replicates) == ("validation_loss", BUDGET, 1)
    assert setup.actions == deepening_actions(original, bn=False)
    problem = AdaptationProblem("x", example_table(90), original, setup)  # decisions 10 to 20 s apart from 90 s on
    inserted = dict(zip(problem.tree.prefixes, (sum(a.insertions) for a in problem.states), strict=True))
    assert inserted["0"] == 1
    assert inserted["00"] == 0  # at 90, 105 and 125 s: the way back at 118 s lies in front of the third decision
    assert inserted["11"] == 2  # at 90, 101.5 and 114.5 s: it lies behind all


def test_test_set_accuracy_and_widening_come_from_the_scenario() -> None:
    scenario = small_scenario(
        reward={"split": "test", "metric": "accuracy"}, actions=["widen-0", "deepen-1"], growth={"widen_factor": 1.5}
    )
    setup = setup_of(scenario, example_architecture())
    assert setup.metric == "test_accuracy" and setup.tree.actions == 3
    assert setup.actions == (GrowthAction(0, "widen", None, 1.5), GrowthAction(1, "deepen", None, 1.5))
    assert setup.actions[0].apply(example_architecture()).layers[0].outputs == 12
