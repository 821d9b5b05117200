"""Values of a ledger that are read from recorded tables, and the status that follows from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from schedlab.config.errors import UserError, UserErrors
from schedlab.config.files import file_hash, write_json
from schedlab.evaluation.claims import Claim, read_claims, status_of
from schedlab.evaluation.recorded import StudyRecord

REPOSITORY = Path(__file__).resolve().parents[2]
RUNS = """scenario,policy,seed,time,cost,name
a,learned,0,8,3.0,x
a,learned,1,6,5.0,x
a,start,0,10,8.0,x
b,learned,0,30,1.0,y
b,learned,1,30,1.0,y
b,start,0,40,4.0,y
"""
RECORD = {
    "study": "toy",
    "scale": "full",
    "run": "full",
    "options": "scale=full",
    "results_version": 1,
    "date": "2026-12-01",
    "config_hash": "c",
    "code_hash": "k",
    "scenarios": {},
    "packages": {},
    "python": "3",
    "machine": {},
    "cpu_seconds": {},
}
CELL = {"table": "toy/summary", "row": {"scenario": "a", "policy": "learned", "seed": 0}, "column": "time"}


@pytest.fixture
def claim(tmp_path: Path):
    """Read a ledger with one claim, beside recorded tables."""
    (tmp_path / "docs/results/toy").mkdir(parents=True)
    (tmp_path / "docs/results/toy/summary.csv").write_text(RUNS)
    digest = file_hash(tmp_path / "docs/results/toy/summary.csv")
    record = StudyRecord(**RECORD, tables={"summary.csv": digest})
    write_json(tmp_path / "docs/results/toy/record.json", record.model_dump(mode="json"))
    (tmp_path / "docs/results/runs.csv").write_text(RUNS)
    (tmp_path / "conf/claims").mkdir(parents=True)

    def read(**values: object) -> Claim:
        written = {"name": "toy", "claims": [{"id": "one", "paper": "p", "quantity": "q", **values}]}
        (tmp_path / "conf/claims/toy.yaml").write_text(yaml.safe_dump(written))
        return read_claims(tmp_path / "conf", "toy")["toy"].claims[0]

    return read


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({}, 8.0),
        ({"table": "runs.csv"}, 8.0),
        ({"column": "name"}, "x"),
        ({"row": {"scenario": "b", "policy": "learned"}}, 30.0),  # two rows that agree
        ({"row": {"scenario": "a", "policy": "learned"}, "take": "mean"}, 7.0),
        ({"row": {"scenario": "a"}, "take": "max"}, 10.0),
        ({"row": {"seed": 0.0}, "take": "median"}, 20.0),
        ({"over": {"row": {"policy": "start"}}}, 0.8),
        ({"over": {"row": {"policy": "start"}}, "less": 1, "times": -100}, pytest.approx(20.0)),
        ({"over": {"column": "cost"}}, 8 / 3),
        (
            {
                "row": {"policy": "learned"},
                "take": "mean",
                "each": "scenario",
                "over": {"table": "runs.csv", "row": {"policy": "start"}},
            },
            pytest.approx((0.7 + 0.75) / 2),
        ),
    ],
)
def test_a_value_is_worked_out_of_rows(claim, changes: dict, value: object) -> None:
    found = claim(ours_repaired=CELL | changes, published=0.5)
    assert found.ours_repaired == value and found.status == "differs"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"table": "toy/sumary"}, "ours_repaired.table"),
        ({"column": "times"}, "ours_repaired.column"),
        ({"row": {"scenari": "a"}}, "ours_repaired.row"),
        ({"row": {"scenario": "c"}}, "ours_repaired.row"),
        ({"row": {"scenario": "a"}}, "ours_repaired.row"),
        ({"column": "name", "times": 2.0}, "ours_repaired.column"),
        ({"column": "name", "take": "mean"}, "ours_repaired.column"),
        ({"over": {"column": "seed"}}, "ours_repaired.over"),
        ({"over": {"column": "name"}}, "ours_repaired.over"),
        ({"over": {"row": {"policy": "nobody"}}}, "ours_repaired.over.row"),
        ({"each": "job", "take": "mean"}, "ours_repaired.column"),
        ({"takes": "mean"}, "ours_repaired"),
        ({"take": "most"}, "ours_repaired"),
    ],
)
def test_a_value_that_cannot_be_read_names_the_file_and_the_key(claim, changes: dict, key: str) -> None:
    with pytest.raises(UserErrors) as raised:
        claim(ours_repaired=CELL | changes)
    assert any("toy.yaml" in error.where and f"claims.0.{key}" in error.where for error in raised.value.errors)


def test_a_value_is_not_read_from_a_table_that_was_edited(claim, tmp_path: Path) -> None:
    (tmp_path / "docs/results/toy/summary.csv").write_text(RUNS.replace("8", "9"))
    with pytest.raises(UserErrors) as raised:
        claim(ours_repaired=CELL)
    assert "ours_repaired.table" in raised.value.errors[0].where and "toy/summary.csv" in str(raised.value)


def test_a_record_without_hashes_and_two_of_one_run_are_mistakes(claim, tmp_path: Path) -> None:
    record = tmp_path / "docs/results/toy/record.json"
    values = json.loads(record.read_text())
    copy = shutil.copytree(record.parent, tmp_path / "docs/results/toy-again")
    with pytest.raises(UserError) as raised:
        claim(ours_repaired=CELL)
    assert Path(raised.value.where) == copy / "record.json" and raised.value.remedy
    shutil.rmtree(copy)
    record.write_text(json.dumps({key: value for key, value in values.items() if not key.endswith("_hash")}))
    for cell in (CELL, CELL | {"table": "runs.csv"}):  # also one that no claim reads
        with pytest.raises(UserErrors) as raised:
            claim(ours_repaired=cell)
        assert sorted(error.where for error in raised.value.errors) == [
            f"{record}: code_hash",
            f"{record}: config_hash",
        ]


COMPUTED = """claim,ours_reference,ours_repaired,command,commit,date
one,011,0.5,a program,c,2026-12-01
"""


@pytest.mark.parametrize(
    ("given", "reference", "repaired"),
    [
        ({}, 11.0, 0.5),
        ({"published": "110"}, "011", "0.5"),
        ({"published": "1 to 3"}, 11.0, 0.5),
        ({"ours_repaired": CELL}, 11.0, 8.0),  # what is named in the ledger comes first
    ],
)
def test_values_that_a_program_computed(
    claim, tmp_path: Path, given: dict, reference: object, repaired: object
) -> None:
    (tmp_path / "docs/results/toy_claims.csv").write_text(COMPUTED)
    found = claim(computed_in="toy_claims.csv", **given)
    assert (found.ours_reference, found.ours_repaired, found.command) == (reference, repaired, "a program")
    assert claim(computed_in="toy_claims.csv", command="another").command == "another"


def test_a_value_of_a_record_names_the_command_that_records_it() -> None:
    for study, ledger in read_claims(REPOSITORY / "conf").items():
        written = yaml.safe_load((REPOSITORY / f"conf/claims/{study}.yaml").read_text())["claims"]
        for claim, said in zip(ledger.claims, written, strict=True):
            tables = {(said.get(key) or {}).get("table", "") for key in ("ours_reference", "ours_repaired")}
            if any(table.startswith(f"{study}/") for table in tables):
                assert claim.command.endswith(f"schedlab record full {study}"), claim.id


def test_a_value_is_never_written_into_a_ledger(claim) -> None:
    for typed in (0.7, "011"):
        with pytest.raises(UserErrors) as raised:
            claim(ours_reference=typed)
        assert "claims.0.ours_reference" in raised.value.errors[0].where


def test_a_claim_without_a_value_says_what_would_close_it(claim) -> None:
    assert claim(closes_with="a run at scale full").status == "open"
    for values in ({}, {"ours_reference": CELL, "closes_with": "a run"}):
        with pytest.raises(UserErrors) as raised:
            claim(**values)
        assert "claims.0.closes_with" in raised.value.errors[0].where


@pytest.mark.parametrize(
    ("published", "reference", "repaired", "status"),
    [
        (None, None, None, "open"),
        (2.0, None, None, "open"),
        (2.0, 2.05, None, "reproduced"),
        (2.0, 2.05, 1.95, "reproduced"),
        (2.0, 2.05, 1.0, "repaired"),
        (2.0, 3.0, 2.0, "differs"),
        (2.0, None, 2.0, "differs"),
        (None, 2.0, 1.0, "repaired"),
        (None, 2.0, 2.0, "differs"),
        ("1 to 3", 2.0, 0.5, "repaired"),
        ("011", "011", "110", "repaired"),
    ],
)
def test_the_status_follows_from_the_values(published, reference, repaired, status: str) -> None:
    assert status_of(published, reference, repaired, 0.1) == status
