"""The ledger's values of ours are what the study computes."""

from __future__ import annotations

from claim_programs import hold, ledger, program

PROGRAM = program("hetero")
LEDGER = ledger("hetero")


def test_the_learning_case() -> None:
    hold(LEDGER, PROGRAM.case())


def test_totals_of_the_platforms_and_power_of_a_free_core() -> None:
    found = PROGRAM.platforms()
    assert found["free-core-power"]
    hold(LEDGER, found)


def test_sizes_of_observations() -> None:
    hold(LEDGER, PROGRAM.environment())
