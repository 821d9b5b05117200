"""Runs trained while they are decided: the table's on the pinned clock, with the charges of a wall clock."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, cycle

import pandas as pd
import pytest
from small_scenarios import PUBLISHED_GROWTH, part, pictures, short

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.simulator.live import run_live
from schedlab.studies.adaptation.simulator.simulate import run_sequence

CASES = {
    "default": {},
    "curves": {"curves": True},
    "published": {"growth": PUBLISHED_GROWTH},
    "down and up": {"budget": 120.0, "changes": [{"time": 55.0, "change": "down"}, {"time": 85.0, "change": "up"}]},
    "no trunk": {"adapt_at": 0.0, "budget": 40.0},
    "an epoch is cut short": {"adapt_at": 36.0},
}
MODEL_OF_SHORT = "tiny8"


def follow(sequence: str):
    """A policy that takes a sequence."""
    return lambda _architecture, decision, _left, _taken, _slope: int(sequence[decision])


@pytest.mark.parametrize("case", CASES)
def test_on_the_pinned_clock_it_is_the_run_of_its_sequence_bit_for_bit(case: str) -> None:
    settings = short(**CASES[case])
    for replicate, sequence in enumerate(("03", "21")):
        live = run_live(settings, 0, replicate, follow(sequence), pictures())
        pd.testing.assert_frame_equal(
            live, run_sequence(settings, 0, replicate, sequence, pictures()), check_exact=True
        )


def test_the_policy_is_told_time_left_actions_and_slope() -> None:
    told = []

    def choose(architecture, decision, left, taken, slope):
        told.append((architecture.insertions, decision, left, taken, slope))
        return 0

    rows = run_live(short(curves=True), 0, 0, choose, pictures())
    assert [entry[:4] for entry in told] == [((0, 0, 0), 0, 40.0, ()), ((1, 0, 0), 1, 25.0, (0,))]
    assert [entry[4] for entry in told] == rows["slope"].tolist()[:2]


def ticks(train: float, evaluation: float) -> Iterator[float]:
    """A clock that is read before training, behind it, and behind the evaluation."""
    return accumulate(cycle((0.0, train, evaluation)))


def flat(train: float, evaluation: float) -> dict:
    """A timing by which each epoch costs the same."""
    costs = {
        "train": {"base": train, "per_insertion": [0, 0, 0]},
        "evaluation": {"base": evaluation, "per_insertion": [0, 0, 0]},
    }
    return {**part("gpu/priced.yaml"), "models": {MODEL_OF_SHORT: costs}}


@pytest.mark.parametrize(
    ("case", "seconds"), [("default", (8.0, 2.0)), ("down and up", (7.25, 1.5)), ("no trunk", (16.0, 0.5))]
)
def test_on_the_wall_clock_epochs_cost_what_they_took(case: str, seconds: tuple[float, float]) -> None:
    clock = ticks(*seconds)
    live = run_live(short(**CASES[case]), 0, 1, follow("03"), pictures(), clock=lambda: next(clock))
    pinned = run_sequence(short(timing=flat(*seconds), **CASES[case]), 0, 1, "03", pictures())
    pd.testing.assert_frame_equal(live, pinned, check_exact=True)


def test_an_epoch_that_was_interrupted_leaves_no_trace() -> None:
    """The way back begins from the state before the epoch that took too long."""
    settings = short(budget=100.0, changes=[{"time": 58.0, "change": "down"}])
    clock = ticks(9.0, 1.0)
    live = run_live(settings, 0, 0, follow("01"), pictures(), clock=lambda: next(clock))
    pinned = run_sequence(
        settings.model_copy(update={"timing": short(timing=flat(9.0, 1.0)).timing}), 0, 0, "01", pictures()
    )
    pd.testing.assert_frame_equal(live, pinned, check_exact=True)


def test_a_clock_that_leaves_no_time_is_told() -> None:
    clock = ticks(100.0, 1.0)
    with pytest.raises(UserError, match="adapt_at"):
        run_live(short(), 0, 0, follow("33"), pictures(), clock=lambda: next(clock))


def test_the_watcher_sees_every_epoch_with_its_metrics() -> None:
    seen = []
    run_live(
        short(), 0, 0, follow("33"), pictures(), watch=lambda step, metrics, state: seen.append((state.epoch, metrics))
    )
    assert [epoch for epoch, _ in seen] == list(range(1, 8)) and all(
        "validation_loss" in metrics for _, metrics in seen
    )
