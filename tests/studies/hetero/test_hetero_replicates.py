"""Replicates of a workload: which there are, and that no two share a job."""

from __future__ import annotations

import pytest
from small_hetero import part

from schedlab.config.schema import validate
from schedlab.studies.hetero.scenario import ReplicateSettings, check_replicates, settings_of, units
from schedlab.workloads.settings import WorkloadSettings

SPLIT = ReplicateSettings(train=2, validation=1, test=2)


def drawn(**changes) -> WorkloadSettings:
    return validate(WorkloadSettings, {**part("workload/lublin.yaml"), **changes})


def trace(**trim) -> WorkloadSettings:
    return validate(WorkloadSettings, {**part("workload/kth.yaml"), "trim": trim})


def test_each_replicate_is_a_block_of_its_own_with_a_seed_of_its_own():
    made = units(drawn(), SPLIT)
    assert [unit.id for unit in made] == ["train-00", "train-01", "validation-00", "test-00", "test-01"]
    assert [unit.split for unit in made] == ["train"] * 2 + ["validation"] + ["test"] * 2
    assert [unit.block for unit in made] == [unit.id for unit in made]
    assert len({unit.seed for unit in made}) == 5
    assert all(settings_of(drawn(), SPLIT, unit).seed == unit.seed for unit in made)


def test_more_replicates_change_none_that_was_there():
    before = {unit.id: unit for unit in units(drawn(), SPLIT)}
    after = {unit.id: unit for unit in units(drawn(), ReplicateSettings(train=5, validation=2, test=9))}
    assert before.items() <= after.items()


def test_the_seed_of_the_workload_draws_others():
    seeds = [{unit.seed for unit in units(drawn(seed=seed), SPLIT)} for seed in (0, 1)]
    assert not seeds[0] & seeds[1]


def test_pieces_of_a_trace_follow_each_other_from_training_to_test():
    workload = trace(count=100, first=30)
    pieces = [settings_of(workload, SPLIT, unit).trim for unit in units(workload, SPLIT)]
    assert [(piece.first, piece.count) for piece in pieces] == [(30 + 100 * number, 100) for number in range(5)]


def test_one_piece_may_be_chosen_by_its_load():
    workload, one = trace(count=100, load=0.9), ReplicateSettings(test=1)
    assert not list(check_replicates(workload, one))
    assert settings_of(workload, one, units(workload, one)[0]).trim == workload.trim


@pytest.mark.parametrize(
    ("workload", "where"),
    [
        (trace(), "workload.trim"),
        (trace(count=100, load=0.9), "workload.trim.load"),
        (validate(WorkloadSettings, {"source": "batsim", "file": "w.json"}), "replicates"),
    ],
)
def test_what_keeps_replicates_from_being_workloads_of_their_own_is_refused(workload, where):
    assert [error.where for error in check_replicates(workload, SPLIT)] == [where]
