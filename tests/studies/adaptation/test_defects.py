"""Defects of the published system, each shown by the one switch that makes it. `pytest -s` prints what is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from small_tables import learn, published

from claim_programs import hold, ledger, program
from schedlab.config.contract import Phase
from schedlab.studies.adaptation.learners.exact import ExactLearner

PROGRAM = program("adaptation")


@pytest.mark.parametrize("jobs", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_logits_through_a_relu_leave_classes_dead(jobs: int) -> None:
    """Switch: model.head_relu. A class whose logit is nowhere positive has no gradient left and is never learned."""
    (dead, accuracy), (dead_repaired, repaired) = (PROGRAM.dead_classes(head_relu, jobs) for head_relu in (True, False))
    print(f"dead classes of 10: {dead} with the ReLU, {dead_repaired} without; accuracy {accuracy} and {repaired}")
    assert dead_repaired == 0 and dead > 2
    assert accuracy < repaired - 0.1
    if jobs == 10:
        values = zip(
            ("dead-classes", "dead-classes-accuracy"), (dead, accuracy), (dead_repaired, repaired), strict=True
        )
        hold(ledger("adaptation"), {name: dict(zip(PROGRAM.FORMS, ours, strict=True)) for name, *ours in values})


def test_inserted_batch_norm_does_not_preserve_the_function_in_training() -> None:
    """Switch: growth.bn_init. Calibration makes evaluation exact; only leaving the batch norm out, training. Means over
    six networks, whose changes in training differ by a factor of six.
    """
    default, calibrated, none = (PROGRAM.insertion_changes(init) for init in ("default", "calibrated", "none"))
    print(f"change of the outputs, in training (True) or not: {default}, calibrated {calibrated}, none {none}")
    assert calibrated[False] < 1e-6 < default[False] < 2e-5
    assert min(default[True], calibrated[True]) > 0.01
    assert none[True] == none[False] == 0
    hold(ledger("adaptation"), PROGRAM.batch_norm(), rel=1e-3)


def test_temperature_on_probabilities_is_all_or_nothing() -> None:
    """Switch: temperature_on. Divided probabilities are nearly equal even for a policy that is certain."""
    certain = torch.tensor([30.0, 0.0, 0.0, 0.0])
    on_probabilities = [float((certain.softmax(-1) / tau).softmax(-1).max()) for tau in (1.0001, 10.0, 1000.0)]
    on_logits = [float((certain / tau).softmax(-1).max()) for tau in (1.0001, 10.0, 1000.0)]
    print(f"largest probability at temperatures just above 1, 10 and 1000: {on_probabilities}, on logits {on_logits}")
    assert on_probabilities == pytest.approx([0.475, 0.269, 0.250], abs=1e-3)
    assert on_logits == pytest.approx([1.0, 0.870, 0.256], abs=1e-3)
    found = PROGRAM.temperature()
    assert found["temperature-episodes"] == {"ours_reference": "22 44 66"}
    hold(ledger("adaptation"), found)


def test_the_parents_sequence_and_rank_stand_beside_the_policys_own(shared_data: Path, tmp_path: Path) -> None:
    """The published system scored a transferred policy by its first parameters; here both are recorded."""
    problems = published(shared_data / "cases/adaptation/simulations.csv")
    parent = learn(ExactLearner(), problems, (Phase(("early",), 300),), tmp_path / "parent")
    child = learn(ExactLearner(), problems, (Phase(("late",), 300),), tmp_path / "child", start=parent.checkpoint)
    late = problems["late"]
    told = {}
    for name, learned in (("parent", parent), ("child", child)):
        policy = ExactLearner().load(learned.checkpoint, late)
        told[name] = late.rollout(policy, late.units("test")[0]).details["sequences"].iloc[0]
    assert told["parent"]["parent_sequence"] == "" and np.isnan(told["parent"]["parent_rank"])
    assert (told["child"]["parent_sequence"], told["child"]["parent_rank"]) == (
        told["parent"]["sequence"],
        told["parent"]["rank"],
    )
    assert told["child"]["rank"] == 1 < told["child"]["parent_rank"]
