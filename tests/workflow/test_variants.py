"""Runs with other values: variants side by side, overlays, sweeps, and mistakes in them."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest
from checkouts import Checkout, toy_checkout

CENTRE = "scenario.toy.near.centre"
SMOKE = ("--config", "scale=smoke")
SWEEP = ("toy", *SMOKE, "variant=apart", f"sweep={CENTRE}=0.5,4")


@pytest.fixture
def rules_alone(repository, tmp_path) -> Checkout:
    """The toy with one scenario and without learned policies."""
    checkout = toy_checkout(repository, tmp_path / "rules")
    conf = checkout.folder / "conf"
    shutil.rmtree(conf / "policy")
    (conf / "scenario/toy/far.yaml").unlink()
    checkout.edit("conf/scenario/toy/near.yaml", "policies: [hill, hill_further]", "units: 4")
    checkout.edit("conf/figure/toy/costs.yaml", "[near, far]", "[near]")
    return checkout


def values(checkout: Checkout, run: str) -> pd.Series:
    """The costs in a run's summary by policy."""
    table = pd.read_parquet(checkout.folder / f"results/{run}/toy/summary.parquet")
    table = table[(table["metric"] == "cost") & (table["split"] == "test")]
    return table.set_index("policy")["value"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--configfile", "mine.yaml"], "'centre'"),
        pytest.param(["variant=x", f"set={CENTRE}=wide"], "number", marks=pytest.mark.slow),
        pytest.param([f"sweep={CENTRE[:-1]}=1,2"], "'centre'", marks=pytest.mark.slow),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(fresh_toy: Checkout, words: list[str], said: str) -> None:
    (fresh_toy.folder / "mine.yaml").write_text("variant: x\nscenario: {toy: {near: {center: 1}}}\n")
    output = fresh_toy.run("toy", "--dry-run", *SMOKE, *words, status=1)
    lines = [line for line in output.splitlines() if line and not line.startswith("Using workflow specific profile")]
    assert len(lines) == 1 and lines[0].startswith("error: ") and said in lines[0], output
    assert not (fresh_toy.folder / "results").exists()


@pytest.mark.slow
def test_variants_lie_side_by_side(rules_alone: Checkout) -> None:
    rules_alone.run("toy", *SMOKE)
    before = rules_alone.hashes()
    (rules_alone.folder / "mine.yaml").write_text("variant: laid_over\nscenario: {toy: {near: {centre: 4.0}}}\n")
    for words in (["--configfile", "mine.yaml", *SMOKE], [*SMOKE, "variant=set", f"set={CENTRE}=4"]):
        rules_alone.run("toy", *words)
        assert "Nothing to be done" in rules_alone.run("toy", *words)
    after = rules_alone.hashes()
    assert {name: after[name] for name in before} == before and "Nothing to be done" in rules_alone.run("toy", *SMOKE)
    laid_over, given = values(rules_alone, "smoke-laid_over"), values(rules_alone, "smoke-set")
    assert laid_over.equals(given) and not given.equals(values(rules_alone, "smoke"))
    page = (rules_alone.folder / "plots/smoke-set/INDEX.md").read_text()
    assert "numbers mean nothing" in page and "variant=set" in page


@pytest.mark.slow
def test_a_sweep_is_one_run_with_a_table_and_a_figure(rules_alone: Checkout) -> None:
    rules_alone.run(*SWEEP)
    assert "Nothing to be done" in rules_alone.run(*SWEEP)
    assert not rules_alone.rules("toy", *SMOKE, "variant=apart-4", f"set={CENTRE}=4"), "each is a variant like others"
    results, plots = (rules_alone.folder / f"{name}/smoke-apart" for name in ("results", "plots"))
    for name in ("scores", "summary"):
        table = pd.read_parquet(results / f"toy/{name}.parquet")
        for centre, rows in table.groupby(CENTRE):
            alone = pd.read_parquet(rules_alone.folder / f"results/smoke-apart-{centre:g}/toy/{name}.parquet")
            assert rows.drop(columns=CENTRE).reset_index(drop=True).equals(alone)
        assert set(table[CENTRE]) == {0.5, 4.0}
    assert "toy/sweep.png" in (plots / "INDEX.md").read_text() and (plots / "toy/sweep.svg").stat().st_size
    assert json.loads((plots / "toy/figures.json").read_text())["figures"][0]["scenarios"] == ["near"]
    output = rules_alone.run("toy", *SMOKE, "variant=apart", "set=seed=3", "--dry-run", status=1)
    assert "error: results/smoke-apart" in output
    assert rules_alone.rules(*SWEEP[:-1], f"sweep={CENTRE}=0.5,4,5")["sweep_toy"] == 1
