"""The ledger's values of ours are what the study computes from the published graphs (other people's data)."""

from __future__ import annotations

from itertools import product

import pandas as pd
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


def test_loads_are_those_of_the_recorded_table(repository):
    rows = pd.read_csv(repository / "docs/results/ramp_rules.csv").query("part == 'loads'")
    rates = rows.set_index(["rule", "setting"])["blocking_rate"]
    for name in ids_of("load"):
        first, second, seconds = name.split("-")[1:]
        assert LEDGER[name].ours_reference == pytest.approx(rates[f"{first}_{second}", seconds], abs=6e-4), name


@pytest.mark.parametrize("beta", "abcd")
@pytest.mark.parametrize(("name", "form"), [("exact", "ours_reference"), ("repaired", "ours_repaired")])
def test_speedups_of_learned_policies_are_those_of_the_recorded_table(repository, beta, name, form):
    rows = pd.read_csv(repository / f"docs/results/ramp_learning_{name}.csv").set_index(["scenario", "policy"])
    learned = rows.loc[(f"published_{beta}", "afterstate")]
    assert (learned["seeds"], learned["episodes"]) == (5, 20)
    assert getattr(LEDGER[f"speedup-pac-ml-{beta}"], form) == pytest.approx(learned["speedup"], abs=6e-4)
    if form == "ours_repaired":
        assert LEDGER[f"blocking-pac-ml-{beta}"].ours_repaired == pytest.approx(learned["blocking_rate"], abs=6e-5)


@pytest.mark.parametrize("beta", "abcd")
def test_learned_policies_are_those_of_the_recorded_table(repository, beta):
    rows = pd.read_csv(repository / "docs/results/ramp_learning.csv").set_index(["scenario", "policy"])["blocking_rate"]
    learned, para_max = (rows[f"published_{beta}", policy] for policy in ("afterstate", "fixed-16"))
    assert LEDGER[f"blocking-pac-ml-{beta}"].ours_reference == pytest.approx(learned, abs=6e-5)
    assert LEDGER[f"against-para-max-{beta}"].ours_reference == pytest.approx(learned / para_max - 1, abs=6e-4)


def test_the_most_that_learned_policies_gain_is_that_of_the_recorded_table(repository):
    rows = pd.read_csv(repository / "docs/results/ramp_learning.csv").pivot(
        index="scenario", columns="policy", values="blocking_rate"
    )
    gains = 100 * (1 - rows["afterstate"] / rows["fixed-16"])
    assert LEDGER["against-para-max-most"].ours_reference == pytest.approx(gains.max(), abs=0.06)
    assert gains.idxmax() == "published_d"  # as the note says
