"""The ledger's values of ours are what the study computes."""

from __future__ import annotations

from claim_programs import hold, ledger, program

PROGRAM = program("hetero")
LEDGER = ledger("hetero")


def test_the_learning_case() -> None:
    found = PROGRAM.case()
    assert len(found) == 8
    hold(LEDGER, found)


def test_totals_of_the_platforms_and_power_of_a_free_core() -> None:
    found = PROGRAM.platforms()
    assert len(found) == 19 and len(found["free-core-power"]) == 2
    hold(LEDGER, found)


def test_sizes_of_observations() -> None:
    found = PROGRAM.environment()
    assert len(found) == 3
    hold(LEDGER, found)
