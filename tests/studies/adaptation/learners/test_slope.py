"""The slope of the validation accuracy: recorded with curves, tabulated at decisions, read by policies."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from small_scenarios import pictures, short
from small_tables import learn

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.studies.adaptation.learners.exact import ExactLearner
from schedlab.studies.adaptation.learners.network_policy import groups_of
from schedlab.studies.adaptation.learners.reinforce import ReinforceLearner
from schedlab.studies.adaptation.network.architecture import architecture
from schedlab.studies.adaptation.problem import AdaptationProblem, setup_of
from schedlab.studies.adaptation.simulator.simulate import run_sequence, simulate_replicate, train_trunk
from schedlab.studies.adaptation.simulator.table import DecisionTree, simulation_table, view

CURVED = short(curves=True, replicates=3, training={"batch_size": 8})


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    store = tmp_path_factory.mktemp("store")
    return pd.concat(
        [simulate_replicate(CURVED, 0, replicate, pictures(), store) for replicate in range(3)], ignore_index=True
    )


@pytest.fixture(scope="module")
def problem(rows: pd.DataFrame) -> AdaptationProblem:
    start = architecture(CURVED.model)
    return AdaptationProblem(
        "small", simulation_table(rows, DecisionTree(4, 2), window=2), start, setup_of(CURVED, start)
    )


def test_the_slope_is_what_the_last_epoch_added(rows: pd.DataFrame, tmp_path) -> None:
    trunk = train_trunk(CURVED, 0, pictures(), tmp_path)["validation_accuracy"].tolist()
    run = rows[(rows["sequence"] == "03") & (rows["replicate"] == 1)]
    accuracies = [*trunk[:3], *run["validation_accuracy"]]
    expected = [later - earlier for earlier, later in pairwise(accuracies[1:])]
    assert run["slope"].tolist() == expected[: len(run)]


def test_a_run_alone_has_the_slopes_of_the_tree(rows: pd.DataFrame) -> None:
    alone = run_sequence(CURVED, 0, 2, "21", pictures())
    same = rows[(rows["sequence"] == "21") & (rows["replicate"] == 2)].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, same, check_exact=True)


def test_before_two_epochs_there_is_no_slope() -> None:
    at_once = run_sequence(
        short(curves=True, adapt_at=0.0, budget=50.0, training={"batch_size": 8}), 0, 0, "33", pictures()
    )
    assert at_once["slope"].tolist()[:2] == [0.0, 0.0]
    assert at_once["slope"].iloc[2] == at_once["validation_accuracy"].iloc[1] - at_once["validation_accuracy"].iloc[0]


def test_a_table_has_the_slopes_at_its_decisions(rows: pd.DataFrame) -> None:
    table = simulation_table(rows, DecisionTree(4, 2), window=2)
    seen = view(table, "validation_loss")
    assert seen.slope.shape == (3, 5)
    first = rows[(rows["sequence"] == "20") & (rows["replicate"] == 1)]
    assert seen.slope[1, [0, 3]].tolist() == first["slope"].tolist()[:2]
    without = simulation_table(rows.drop(columns="slope"), DecisionTree(4, 2), window=2)
    assert not [name for name in without if name.startswith("slope")] and view(without, "validation_loss").slope is None


def test_only_a_policy_that_reads_the_slope_tells_replicates_apart(problem: AdaptationProblem) -> None:
    assert len(problem.rows("train")) == 2
    assert len(groups_of({"small": problem}, ["small"])) == 1
    blind, seeing = (groups_of({"small": problem}, ["small"], slope=asked) for asked in (False, True))
    assert len(seeing) == 2
    np.testing.assert_allclose(blind[0].reward, np.mean([group.reward for group in seeing], axis=0))


@pytest.mark.parametrize(
    ("learner", "params", "steps"), [(ExactLearner, {}, 200), (ReinforceLearner, {"episodes_per_update": 8}, 64)]
)
def test_learners_read_the_slope(problem: AdaptationProblem, learner: type, params: dict, steps: int, tmp_path) -> None:
    phases = (Phase(("small",), steps),)
    learned = learn(learner(), {"small": problem}, phases, tmp_path, params={"slope": True, **params})
    policy = learner().load(learned.checkpoint, problem)
    assert policy.encoding.slope
    steep, flat = (policy.decide(replace(problem.decisions(0)[0], slope=slope)) for slope in (0.3, 0.0))
    assert not np.allclose(steep, flat)
    assert problem.rollout(policy, problem.units("test")[0]).scores["regret"] >= 0


def test_a_table_without_curves_is_told(rows: pd.DataFrame, tmp_path) -> None:
    start = architecture(CURVED.model)
    table = simulation_table(rows.drop(columns="slope"), DecisionTree(4, 2), window=2)
    blind = {"small": AdaptationProblem("small", table, start, setup_of(CURVED, start))}
    with pytest.raises(UserError, match=r"learner\.slope.*curves: true"):
        learn(ExactLearner(), blind, (Phase(("small",), 5),), tmp_path, params={"slope": True})
