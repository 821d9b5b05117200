"""results/<scale>/manifest.json: what a run writes, and what `schedlab manifest check` says of it."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from checkouts import Checkout, copied

from schedlab.cli.main import main
from schedlab.config import experiment
from schedlab.config.files import write_table
from schedlab.config.runtime import freeze, instructions, provenance
from schedlab.evaluation.manifest import build, write_manifest
from schedlab.stages.studies import find_study

MANIFEST = "results/small/manifest.json"
SCORES_OF_HILL = "results/small/toy/far/evaluation/hill.parquet"


@pytest.fixture
def check(toy, monkeypatch, capsys):
    """The command in a copy of the finished toy: status, lines."""
    monkeypatch.chdir(toy.folder)

    def run(*arguments: str) -> tuple[int, list[str]]:
        status = main(["manifest", "check", *arguments])
        printed = capsys.readouterr()
        return status, (printed.out + printed.err).splitlines()

    return run


def recorded(checkout: Checkout) -> dict:
    return json.loads((checkout.folder / MANIFEST).read_text())


def test_it_lists_all_that_figures_rest_on(finished_toy):
    found = recorded(finished_toy)
    assert found["scale"] == "small" and found["seeds"] == {"toy": 42} and found["studies"] == {"toy": 1}
    assert found["figures"].keys() == {"toy/costs"}
    figure = found["figures"]["toy/costs"]
    assert set(figure["rests_on"]) == found["steps"].keys() and figure["seeds"] == [0, 1, 2]
    listed = {path: digest for entry in (figure, *found["steps"].values()) for path, digest in entry["outputs"].items()}
    made = finished_toy.hashes()
    assert len(made) > 20
    assert {path: made[path] for path in listed} == listed
    frozen = {path for path in made if "/config/" in path or path.endswith("/config.yaml")}
    lists = {MANIFEST, "plots/small/INDEX.md", "plots/small/toy/figures.json", "plots/small/toy/costs.rst"}
    assert made.keys() - listed.keys() == frozen | lists
    assert "results/small/toy/far/inputs/targets.json" in listed and "plots/small/toy/costs.txt" in listed
    hill = found["steps"]["results/small/toy/far/evaluation/hill"]
    assert hill["seeds"] == [0, 1] and hill["inputs"].keys() == {"hill/seed-0", "hill/seed-1", "targets"}
    assert (
        found["steps"]["results/small/toy/far/evaluation/rules"]["promise"] == "exact" and hill["promise"] == "learned"
    )
    environment = found["environments"][hill["environment"]]
    assert environment["code"] and environment["packages"]["numpy"] and environment["packages"]["llvmlite"]
    assert {entry["environment"] for entry in (figure, *found["steps"].values())} == {hill["environment"]}, (
        "all by one code"
    )
    assert figure["inputs"]["results/small/toy/summary.parquet"] == made["results/small/toy/summary.parquet"]
    tables = found["steps"]["results/small/toy/tables"]
    assert (
        tables["inputs"]["results/small/toy/far/evaluation/hill.parquet"]
        == made["results/small/toy/far/evaluation/hill.parquet"]
    )
    targets = found["steps"]["results/small/toy/far/inputs/targets"]
    assert targets["outputs"].keys() == {"results/small/toy/far/inputs/targets.json"} and targets["inputs"] == {}


def test_inputs_of_jobs_that_tell_no_origin_are_listed_all_the_same(toy):
    file = toy.folder / "results/small/toy/far/inputs/targets.provenance.json"
    before = recorded(toy)["steps"]["results/small/toy/far/inputs/targets"]
    file.unlink()
    found = build(toy.folder, "small").model_dump(mode="json")["steps"]
    assert found["results/small/toy/far/inputs"] == before | {"environment": None}
    assert "results/small/toy/far/inputs" in found["results/small/toy/far/evaluation/hill"]["rests_on"]


def holding(folder: Path, text: str) -> list[str]:
    """The files below a folder, hidden ones too, that hold a text."""
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and text.encode() in path.read_bytes()
    ]


def test_no_file_of_a_run_holds_a_secret_of_its_environment(finished_toy, tmp_path, secret):
    """The variables were set before the run, so that a log, a manifest or a record of provenance that told them would
    be found.
    """
    assert holding(finished_toy.folder, secret) == []
    (tmp_path / "told.log").write_text(f"GITHUB_TOKEN={secret}\n")
    assert holding(tmp_path, secret) == ["told.log"]
    kept = holding(finished_toy.folder, "numpy")  # what the search has to see: manifest, provenance
    assert MANIFEST in kept and any(name.endswith("provenance.json") for name in kept)
    assert list((finished_toy.folder / ".snakemake/log").glob("*.log")) and list(
        finished_toy.folder.glob("results/small/toy/**/logs/*.log")
    )


def test_it_tells_no_machine_and_no_place(finished_toy, tmp_path, monkeypatch):
    head = ["git", "-C", str(finished_toy.folder), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setattr(provenance, "_git_state", lambda: {"commit": commit, "modified": False})  # as the run had it
    folder = copied(finished_toy, tmp_path / "elsewhere").folder
    text = write_manifest(folder, "small").read_text()
    assert text == (finished_toy.folder / MANIFEST).read_text()  # whenever and wherever it is written
    for told in (str(finished_toy.folder), str(folder), os.environ["HOME"] + "/", "machine", "processor"):
        assert told not in text
    assert len(platform.node()) < 4 or platform.node() not in text


def test_nothing_differs_after_a_run(check):
    status, lines = check()
    assert status == 0
    assert len(lines) == 1
    assert check("results/small") == check(MANIFEST) == (status, lines)


def test_changed_and_missing_files_are_told(check, toy):
    scores = toy.folder / "results/small/toy/far/evaluation/hill.parquet"
    table = pd.read_parquet(scores)
    write_table(scores, table.assign(value=table["value"] + 1.0))
    (toy.folder / "plots/small/toy/costs.pdf").unlink()
    status, lines = check()
    assert status == 1 and lines[-1].startswith("2 differences")
    assert lines[0].startswith(
        "changed file: results/small/toy/far/evaluation/hill.parquet: edited or damaged after it was made"
    )
    assert lines[1].startswith("missing file: plots/small/toy/costs.pdf is only recorded")


def test_another_configuration_is_told(check, toy):
    toy.edit("conf/scenario/toy/near.yaml", "seed: 7", "seed: 8")
    freeze.write_parts(experiment.load("conf", "small", find_study))
    status, lines = check()
    assert status == 1
    assert "other configuration: results/small/toy/near/config/draw_targets.yaml" in lines
    assert all(
        line.startswith("other configuration: ") and "evaluate-rules" not in line
        for line in lines[:-1]
        if "/far/" in line
    )


def test_an_input_that_was_made_anew_is_told(check, toy):
    policy = toy.folder / "results/small/toy/policies/hill/seed-0/policy.zip"
    shutil.copy(policy.parent.parent / "seed-1/policy.zip", policy)
    lines = check()[1]
    assert "other input: results/small/toy/far/evaluation/hill was made from another 'hill/seed-0'" in "\n".join(lines)


@pytest.mark.parametrize(
    ("origin", "step"),
    [
        ("results/small/toy/far/inputs/targets.provenance.json", "results/small/toy/far/inputs/targets"),
        ("results/small/toy/policies/hill/seed-0/provenance.json", "results/small/toy/policies/hill/seed-0"),
        ("results/small/toy/far/evaluation/hill.provenance.json", "results/small/toy/far/evaluation/hill"),
        ("results/small/toy/tables.provenance.json", "results/small/toy/tables"),
        ("plots/small/toy/provenance.json", "toy/costs"),
    ],
)
@pytest.mark.parametrize(
    "other",
    [{"code_hash": "of-another-branch"}, {"computed_with": {"numpy": "1.0"}}, {"code_hash": None, "schedlab": None}],
)
def test_a_result_of_other_code_than_its_part_names_is_reported(check, toy, origin, step, other):
    """As where a finished table is copied from a run of another branch, or of another version of schedlab."""
    file = toy.folder / origin
    changed = json.loads(file.read_text()) | other
    file.write_text(json.dumps({key: value for key, value in changed.items() if value is not None}))
    status, lines = check()
    assert status == 1
    assert [line for line in lines if line.startswith("other code: ")] == [lines[0]] and f" {step} " in lines[0]


def commands(lines: list[str]) -> set[str]:
    """The arguments of snakemake that lines advise."""
    return {told for line in lines for told in re.findall("`snakemake --cores all ([^`]*)`", line)}


SHORT = "--config scale=small"


@pytest.mark.slow
def test_what_it_advises_after_an_edit_of_the_code_makes_all_new(check, toy):
    toy.edit("tests/toy_study/study.py", "distance = abs(", "distance = 2.0 * abs(")
    toy.run("all", "--dry-run")
    lines = check()[1]
    assert "results/small/toy/far/evaluation/rules" in str(lines) and commands(lines) == {SHORT}
    toy.run(*SHORT.split())
    assert check()[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    ["results/small/toy/far/evaluation/hill.provenance.json", SCORES_OF_HILL, "results/small/toy/summary.parquet"],
)
def test_what_it_advises_of_copied_or_edited_results_makes_them_again(check, toy, spoil):
    before = toy.hashes()
    file = toy.folder / spoil
    if file.suffix == ".json":
        file.write_text(json.dumps(json.loads(file.read_text()) | {"code_hash": "of-another-branch"}))
    else:
        scale_values(file, 2.0)
    advised = commands(check()[1])
    assert advised and SHORT not in advised
    for command in sorted(advised):
        toy.run(*command.split())
    assert check()[0] == 0 and toy.hashes() == before


def two_unpinned(finished: Checkout, folder: Path) -> tuple[str, Checkout]:
    """Copies of a run as processors make it whose instructions cannot be pinned: the manifest of one, and the other."""
    copies = [copied(finished, folder / name) for name in ("one", "other")]
    for copy in copies:
        for file in (copy.folder / "results").rglob("*provenance.json"):
            file.write_text(json.dumps(json.loads(file.read_text()) | {"instructions": {}}))
        write_manifest(copy.folder, "small")
    return str(copies[0].folder / MANIFEST), copies[1]


def scale_values(file: Path, factor: float) -> None:
    table = pd.read_parquet(file)
    write_table(file, table.assign(value=table["value"] * factor))


CURVE_OF_HILL = "results/small/toy/policies/hill/seed-0/curve.parquet"


def test_manifests_of_two_places_are_compared(check, finished_toy, tmp_path):
    here, other = two_unpinned(finished_toy, tmp_path)
    place = str(other.folder / MANIFEST)
    assert check(here, "--against", place)[0] == 0
    for name in (SCORES_OF_HILL, CURVE_OF_HILL):
        scale_values(other.folder / name, 1 + 1e-7)
    write_manifest(other.folder, "small")
    status, lines = check(here, "--against", place)
    assert status == 0 and len(lines) == 1 and "1 of them within tolerance" in lines[0]
    status, lines = check(here, "--against", place, "--exact")
    assert status == 1 and len(lines) == 3
    assert lines[0].startswith(f"changed file: {CURVE_OF_HILL}: nothing that is recorded differs")
    scale_values(other.folder / SCORES_OF_HILL, 2)
    write_manifest(other.folder, "small")
    status, lines = check(here, "--against", place)
    assert status == 1 and "('value' differs by 5.0e-01 of its value, 0.001 is allowed)" in lines[0]


def test_no_tolerance_where_both_were_held_to_the_same_instructions(check, finished_toy, tmp_path):
    if not instructions.pins():
        pytest.skip("this processor lacks the instructions that results are pinned to")
    other = copied(finished_toy, tmp_path / "other")
    assert check(MANIFEST, "--against", str(other.folder / MANIFEST)) == check()
    scale_values(other.folder / SCORES_OF_HILL, 1 + 1e-7)
    write_manifest(other.folder, "small")
    status, lines = check(MANIFEST, "--against", str(other.folder / MANIFEST))
    assert status == 1 and SCORES_OF_HILL in lines[0]


def test_another_configuration_elsewhere_is_told_with_its_first_key(check, finished_toy, tmp_path, monkeypatch):
    other = copied(finished_toy, tmp_path / "other")
    other.edit("conf/policy/toy/hill.yaml", "step_size: 0.4", "step_size: 0.3")
    with monkeypatch.context() as there:
        there.chdir(other.folder)
        freeze.write_parts(experiment.load("conf", "small", find_study))
    write_manifest(other.folder, "small")
    lines = check(MANIFEST, "--against", str(other.folder / "results/small"))[1]
    learning = next(line for line in lines if "hill/config/learn.yaml" in line)
    assert learning.endswith("policy.params.step_size is 0.4 here, 0.3 there")


@pytest.mark.slow
def test_a_single_figure_brings_its_manifest(toy):
    for name in (MANIFEST, "plots/small/INDEX.md", "plots/small/toy/costs.svg"):
        (toy.folder / name).unlink()
    toy.run("plots/small/toy/costs.svg")
    assert (toy.folder / MANIFEST).is_file()
    assert recorded(toy)["steps"] == build(toy.folder, "small").model_dump(mode="json")["steps"]
    assert "Nothing to be done" in toy.run("all", "--dry-run")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "there is no manifest"),
        ("{", "is no valid JSON"),
        ("[]", "is no manifest"),
        ('{"form": 1}', "'form' is 1"),
        ('{"form": 2, "scale": 3}', "'scale' is 3"),
    ],
)
def test_what_is_no_manifest_is_refused(check, toy, text, told):
    file = toy.folder / MANIFEST
    file.unlink() if text is None else file.write_text(text)
    for arguments in ((MANIFEST,), ("results/small", "--against", MANIFEST)):
        status, lines = check(*arguments)
        assert status == 2 and any(told in line for line in lines)


def test_a_manifest_without_its_files_is_for_comparing_alone(check, toy, tmp_path):
    alone = shutil.copy(toy.folder / MANIFEST, tmp_path / "theirs.json")
    status, lines = check(str(alone))
    assert status == 2 and "--against" in lines[0]
    assert check(MANIFEST, "--against", str(alone))[0] == 0
