"""The ledger's values of ours are what the study computes from the published graphs (other people's data)."""

from __future__ import annotations

from itertools import product

import pytest

from claim_programs import hold, ledger, program

PROGRAM = program("ramp")
LEDGER = ledger("ramp")
QUICK = {("ours_reference", "D"), ("ours_repaired", "A")}  # of the settings in which episodes are run


def ids_of(kind):
    """Ids that begin alike."""
    found = [name for name in LEDGER if name.startswith(f"{kind}-")]
    assert found
    return found


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("part", ["table", "alone"])
def test_graphs_in_numbers_and_alone(part):
    found = PROGRAM.PARTS[part]()
    assert sorted(found) == sorted(ids_of(part)) and {len(ours) for ours in found.values()} == {2}
    hold(LEDGER, found)


def test_beta_distributions():
    found = PROGRAM.beta()
    assert sorted(found) == sorted(ids_of("beta"))
    hold(LEDGER, found)


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("rule", PROGRAM.SCORED)
@pytest.mark.parametrize(
    ("form", "beta"),
    [
        pytest.param(form, beta, marks=[pytest.mark.slow] if (form, beta) not in QUICK else [])
        for form, beta in product(PROGRAM.FORMS, "ABCD")
    ],
)
def test_episodes(form, beta, rule):
    found = PROGRAM.of_rule(form, beta, rule)
    hold(LEDGER, found)
    speedups = [ours[form] for name, ours in found.items() if name.startswith("speedup")]
    assert [15.6 <= speedup <= 15.7 for speedup in speedups] == [True] * (rule == "para_max")


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(
    ("form", "rule", "gap"), list(product(PROGRAM.FORMS, ("para_max", "para_min"), (50, 100, 6000, 12000)))
)
def test_loads(form, rule, gap):
    hold(LEDGER, PROGRAM.of_load(form, rule, gap))
