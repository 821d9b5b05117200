"""`schedlab record`: what it writes of a finished run, what it refuses, and that nothing is overwritten then."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from checkouts import Checkout

from schedlab.cli.main import main
from schedlab.cli.record import refuse_to_replace
from schedlab.config import experiment
from schedlab.config.errors import UserError
from schedlab.config.files import write_json, write_table
from schedlab.config.runtime import provenance
from schedlab.config.runtime.freeze import parts_of_tables
from schedlab.config.runtime.parts import dump, read_part
from schedlab.evaluation.manifest import write_manifest
from schedlab.evaluation.recorded import StudyRecord, outdated, read_records, read_study_record
from schedlab.evaluation.recording import Recording, planned_made, thinned, write_study_records
from schedlab.stages.studies import find_study

PLACE = Path("docs/results/toy")
RESULTS = Path("results/small/toy")
PART = RESULTS / "far/config/evaluate-hill.yaml"


@pytest.fixture
def record(toy: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """The command in a copy of the finished toy: status and what it said to standard error."""
    monkeypatch.chdir(toy.folder)
    monkeypatch.setattr(provenance, "uncommitted_files", list)

    def run(*arguments: str) -> tuple[int, str]:
        return main(["record", *(arguments or ("small", "toy"))]), capsys.readouterr().err

    return run


def written() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in PLACE.iterdir()} if PLACE.exists() else {}


def test_a_record_holds_the_tables_and_what_made_them(record) -> None:
    assert record() == (0, "")
    made = read_study_record(PLACE)
    assert (made.study, made.scale, made.run, made.options) == ("toy", "small", "small", "scale=small")
    assert made.scenarios.keys() == {"far", "near"} and made.packages.keys() >= {"numpy", "pandas"}
    assert made.cpu_seconds.keys() >= {"learn", "evaluate", "summarise"} and made.machine["cores"] > 0
    for name in ("summary", "comparisons", "curves"):
        whole, kept = pd.read_parquet(RESULTS / f"{name}.parquet"), pd.read_csv(PLACE / f"{name}.csv")
        assert list(kept) == list(whole)
        if name == "summary":
            assert kept["value"].to_numpy() == pytest.approx(whole["value"].to_numpy(), rel=1e-9)
    before = written()
    assert record() == (0, "")  # again: the same bytes, and no leftovers
    assert written() == before and not list(PLACE.parent.glob(".*"))


def test_a_curve_is_thinned_evenly_with_both_ends() -> None:
    rows = [("p", 0, 0, "", "train", "m", step, float(step)) for step in range(101)]
    rows += [("p", 1, 0, "", "train", "m", step, float(step)) for step in range(3)]
    names = ["policy", "policy_seed", "phase", "train_scenario", "split", "metric", "step", "value"]
    found = thinned(pd.DataFrame(rows, columns=names), most=11).groupby("policy_seed")["step"].agg(list)
    assert found[0] == list(range(0, 101, 10)) and found[1] == [0, 1, 2]


def test_curves_of_two_preferences_are_thinned_apart() -> None:
    rows = [("p", 0, "m", step, 0.0, preference) for step in range(5) for preference in ("cost", "time", None)]
    found = thinned(
        pd.DataFrame(rows, columns=["policy", "policy_seed", "metric", "step", "value", "preference"]), most=2
    )
    assert found.groupby("preference", dropna=False)["step"].agg(list).tolist() == [[0, 4]] * 3


def edit_part() -> str:
    PART.write_text(PART.read_text() + "# mine\n")
    return str(PART)


def delete_scores() -> str:
    (RESULTS / "far/evaluation/hill.provenance.json").unlink()
    return "hill.provenance.json"


def delete_tables() -> str:
    (RESULTS / "summary.parquet").unlink()
    return "summary.parquet"


def change_scores() -> str:
    table = pd.read_parquet(RESULTS / "far/evaluation/hill.parquet")
    table.assign(value=0.0).to_parquet(RESULTS / "far/evaluation/hill.parquet")
    return "evaluation/hill.parquet"


def edited(name: str):
    def edit_table() -> str:
        place = RESULTS / f"{name}.parquet"
        table = pd.read_parquet(place)
        write_table(place, table.iloc[::-1])
        return str(place)

    return edit_table


def no_hashes_of_tables() -> str:
    place = RESULTS / "tables.provenance.json"
    write_json(place, {key: value for key, value in json.loads(place.read_text()).items() if key != "hashes"})
    return str(place)


def older_tables() -> str:
    pd.read_parquet(RESULTS / "summary.parquet").drop(columns="units").to_parquet(RESULTS / "summary.parquet")
    return "summary.parquet"


def edit_configuration() -> str:
    Checkout(Path()).edit("conf/scenario/toy/far.yaml", "centre: 4.0", "centre: 5.0")
    return "far/config/"


def made_by(key: str, value: str):
    def change() -> str:
        place = RESULTS / "far/evaluation/hill.provenance.json"
        write_json(place, json.loads(place.read_text()) | {key: value})
        return place.name

    return change


def without(key: str):
    def change() -> str:
        place = RESULTS / "far/evaluation/hill.provenance.json"
        write_json(place, {name: value for name, value in json.loads(place.read_text()).items() if name != key})
        return place.name

    return change


def other_version() -> str:
    PART.write_text(dump(read_part(PART) | {"results_version": 0}))
    place = RESULTS / "far/evaluation/hill.provenance.json"
    write_json(place, json.loads(place.read_text()) | {"config_hash": "0" * 16})
    return str(PART)


def another_record() -> str:
    PLACE.rename(PLACE.with_name("again"))
    return "again"


def note_beside() -> str:
    (PLACE / "notes.md").write_text("mine")
    return "notes.md"


@pytest.mark.parametrize(
    "spoil",
    [
        edit_part,
        delete_scores,
        delete_tables,
        change_scores,
        *map(edited, ("summary", "comparisons", "curves")),
        no_hashes_of_tables,
        older_tables,
        edit_configuration,
        made_by("config_hash", "0" * 16),
        made_by("code_hash", "0" * 16),
        without("config_hash"),
        without("code_hash"),
        other_version,
        another_record,
        note_beside,
    ],
    ids=lambda spoil: spoil.__qualname__.removesuffix(".<locals>.change"),
)
def test_what_may_not_be_recorded_is_refused_and_nothing_overwritten(record, spoil) -> None:
    assert record()[0] == 0
    named = spoil()
    before = written()
    status, said = record()
    assert status == 2 and named in said and said.startswith("error: ") and said.count("\n") == 1
    assert written() == before
    assert not list(PLACE.parent.glob(".*"))


@pytest.mark.slow
def test_a_table_edited_by_hand_is_made_again_by_the_command_of_the_message(record, toy) -> None:
    """Whatever a manifest says: it was written after the edit, as by a run that drew the figures again."""
    toy.run("all")
    before = toy.hashes()
    edited("summary")()
    toy.run("all")
    write_manifest(toy.folder, "small")
    command = re.search(r"`snakemake --cores all (.*)`", record()[1])[1].split()
    toy.run(*command)
    assert toy.hashes() == before and record() == (0, "")


@pytest.mark.parametrize(("spoil", "deleted"), [(edit_part, True), (other_version, False)])
def test_only_a_part_edited_by_hand_is_to_be_deleted(record, spoil, deleted) -> None:
    """A part of another version goes when the run is made again; deleting it alone would not help."""
    spoil()
    assert ("delete" in record()[1]) == deleted


def test_a_run_without_the_headline_of_its_study_is_refused_with_all_that_is_recorded_with_it(record) -> None:
    record()
    (RESULTS / "headline.parquet").unlink(missing_ok=True)
    known, before = read_study_record(PLACE).model_dump(exclude={"tables"}), written()
    other = known | {"options": "scale=other"}
    wanted = [Recording(RESULTS, PLACE, known, False), Recording(RESULTS, PLACE.with_name("other"), other, True)]
    with pytest.raises(UserError) as raised:
        write_study_records(wanted)
    assert raised.value.where == str(RESULTS / "headline.parquet")
    assert written() == before and not PLACE.with_name("other").exists() and not list(PLACE.parent.glob(".*"))


def test_scale_smoke_and_an_uncommitted_tree_have_to_be_asked_for(record, monkeypatch) -> None:
    assert record("smoke", "toy")[0] == 2
    monkeypatch.setattr(provenance, "uncommitted_files", lambda: ["src/schedlab/x.py"])
    status, said = record()
    assert status == 2 and "src/schedlab/x.py" in said and not PLACE.exists()
    assert record("small", "toy", "--uncommitted") == (0, "")
    assert read_study_record(PLACE).uncommitted == ("src/schedlab/x.py",)


def test_a_record_replaces_only_one_of_its_scale(record) -> None:
    record()
    for scale in ("smoke", "full"):
        with pytest.raises(UserError, match=str(PLACE)):
            refuse_to_replace([PLACE], scale)
    refuse_to_replace([PLACE], "small")


def test_a_part_that_is_missing_is_named(record) -> None:
    part = RESULTS / "config/summarise.yaml"
    part.unlink()
    status, said = record()
    assert status == 2 and str(part) in said


def test_names_of_studies_and_runs_that_are_not_there(record) -> None:
    assert "toy" in record("small", "tay")[1]
    assert record("small", "toy", "--config", "variant")[0] == 2
    status, said = record("small", "--config", "variant=dense", "set=scenario.toy.far.centre=3.5")
    assert status == 2 and "results/small-dense" in said


def test_a_changed_table_and_two_records_of_one_run_are_refused_when_read(record) -> None:
    record()
    (PLACE.with_name("copy")).mkdir()
    for path in PLACE.iterdir():
        (PLACE.with_name("copy") / path.name).write_bytes(path.read_bytes())
    with pytest.raises(UserError) as raised:
        read_records(PLACE.parent)
    assert "copy/record.json" in str(raised.value) and "toy/record.json" in str(raised.value)
    (PLACE / "summary.csv").write_text("scenario\n")
    with pytest.raises(UserError) as raised:
        read_study_record(PLACE)
    assert raised.value.where == str(PLACE / "summary.csv")
    for text in ("[]", "{}", '{"form": 1}', "{"):
        (PLACE / "record.json").write_text(text)
        with pytest.raises(UserError, match=r"record\.json"):
            read_study_record(PLACE)


def planned() -> StudyRecord:
    """The record of the toy with what a run would be made of now."""
    parts = parts_of_tables(experiment.load("conf", "small", find_study), "toy")
    return read_study_record(PLACE).model_copy(update=planned_made(parts, "toy"))


def test_a_record_is_outdated_by_what_changed(record) -> None:
    record()
    made = read_study_record(PLACE)
    far = made.scenarios["far"]
    code = {**made.scenarios, "far": far.model_copy(update={"code_hash": "0"})}
    other = {**made.scenarios, "far": far.model_copy(update={"config_hash": "0"})}
    assert outdated(made, planned()) == ""
    Checkout(Path()).edit("conf/scenario/toy/near.yaml", "centre: 0.5", "centre: 0.6")
    assert outdated(made, planned()) == "configuration"
    assert outdated(made, made.model_copy(update={"scenarios": code})) == "code"
    assert outdated(made, made.model_copy(update={"scenarios": other})) == "configuration"
    assert outdated(made, made.model_copy(update={"code_hash": "0"})) == "code"
    assert outdated(made, made.model_copy(update={"results_version": 2})) == "configuration"
    fewer = {"near": made.scenarios["near"]}  # the data of `far` is not on this machine
    assert outdated(made, made.model_copy(update={"scenarios": fewer, "code_hash": "0", "config_hash": "0"})) == ""
    assert outdated(made, None) == "configuration"
