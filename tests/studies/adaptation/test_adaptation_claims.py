"""The ledger's values of ours are what follows from the published record, and from networks of a few seconds."""

from __future__ import annotations

import itertools
import statistics

import pytest

from claim_programs import hold, ledger, program
from schedlab.studies.adaptation.compat.published_table import read_own_or_published
from schedlab.studies.adaptation.simulator.ranking import ranking

PROGRAM = program("adaptation")
LEDGER = ledger("adaptation")


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(
    ("part", "claims"), [("ranking", 20), ("constant", 3), ("size", 5), ("clock", 3), ("initial", 10), ("exact", 1)]
)
def test_values_of_the_published_record(part: str, claims: int) -> None:
    found = PROGRAM.PARTS[part]()
    assert len(found) == claims
    hold(LEDGER, found)
    if part in ("ranking", "constant", "size", "initial"):
        assert {LEDGER[name].status for name in found} == {"reproduced"}


@pytest.mark.usefixtures("shared_data")
def test_the_recorded_run_has_the_values_of_the_published_record() -> None:
    found = ranking(read_own_or_published(PROGRAM.published_runs()))
    for (model, experiment), place in itertools.product(PROGRAM.EXPERIMENTS.items(), PROGRAM.PLACES):
        for key in ("best", "mean", "none", "none_rank"):
            claim = LEDGER[f"{place}-{model}-{key}".replace("_", "-")]
            assert claim.ours_reference == pytest.approx(found[experiment.format(place)][key], abs=1e-9)
            assert claim.status == "reproduced" and "schedlab record" in claim.command
    accuracy = [scores["test_accuracy"] for scores in PROGRAM.exact_scores(PROGRAM.PLACES, 0).values()]
    assert LEDGER["five-scenarios"].ours_repaired == pytest.approx(statistics.fmean(accuracy), abs=1e-9)


@pytest.mark.usefixtures("shared_data")
def test_what_sharing_prefixes_saves() -> None:
    found = PROGRAM.tree()
    hold(LEDGER, found)
    for name, ours in found.items():
        assert ours["ours_reference"] == LEDGER[name].published > ours["ours_repaired"]
