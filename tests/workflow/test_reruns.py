"""What an edit reruns: everything that reads the edited value, and nothing else."""

from __future__ import annotations

import json
import shutil

import pytest

ONE_SCENARIO = {"draw_targets": 1, "evaluate": 3, "summarise": 1, "draw_toy": 1, "index_figures": 1}


TRAINED_ON_NEAR = {"draw_targets": 1, "learn": 3, "evaluate": 5, "summarise": 1, "draw_toy": 1, "index_figures": 1}


def test_a_training_scenario_reruns_what_is_learned_on_it_and_an_edit_that_is_undone_nothing(toy):
    edits = (
        ("conf/scenario/toy/near.yaml", "centre: 0.5", "centre: 0.6"),
        ("conf/figure/theme.yaml", "dpi: 200", "dpi: 100"),
        ("conf/study/toy.yaml", "baseline: zero", "baseline: three"),
    )
    for name, old, new in edits:
        toy.edit(name, old, new)
    assert toy.rules("all") == TRAINED_ON_NEAR
    for name, old, new in edits:
        toy.edit(name, new, old)
    assert toy.rules("all") == {}


def test_what_changes_no_value_reruns_nothing(toy):
    """A new date of every file, a line break and comments in the code, and frozen parts that are gone, which come back
    with the same text.
    """
    parts = {path: path.read_text() for path in (toy.folder / "results").rglob("config/*.yaml")}
    for path in parts:
        path.unlink()
    for file in (toy.folder / "conf").rglob("*.yaml"):
        file.touch()
    toy.edit("tests/toy_study/study.py", "def make_constant(", "def make_constant(  # of all units\n    ")
    toy.edit("tests/toy_study/study.py", "class HillClimber:\n", "class HillClimber:\n    # A comment.\n")
    assert toy.rules("all") == {}
    assert len(parts) > 8 and {path: path.read_text() for path in parts} == parts


def test_an_edit_of_a_drawing_is_drawn_alone(toy):
    toy.edit("tests/toy_study/figures.py", "height_mm=60", "height_mm=61")
    assert toy.rules("all") == {"draw_toy": 1, "index_figures": 1}


def test_an_edit_of_the_simulator_reruns_all_that_used_it_and_provenance_names_it(toy):
    scores = "results/small/toy/far/evaluation/rules"
    provenance = toy.folder / f"{scores}.provenance.json"
    before = json.loads(provenance.read_text())["code_hash"]
    toy.edit("tests/toy_study/study.py", "distance = abs(", "distance = 2.0 * abs(")
    assert toy.rules("all") == {"learn": 3, "evaluate": 6, "summarise": 1, "draw_toy": 1, "index_figures": 1}
    toy.run(f"{scores}.parquet")
    assert json.loads(provenance.read_text())["code_hash"] != before
    assert toy.rules("all") == {"learn": 3, "evaluate": 5, "summarise": 1, "draw_toy": 1, "index_figures": 1}


def test_the_root_seed_reruns_everything_that_is_random(toy):
    toy.edit("conf/config.yaml", "seed: 42", "seed: 43")
    assert toy.rules("all") == {"learn": 3, "evaluate": 6, "summarise": 1, "draw_toy": 1, "index_figures": 1}


@pytest.mark.slow
def test_a_new_scenario_runs_alone(toy):
    text = (
        (toy.folder / "conf/scenario/toy/far.yaml")
        .read_text()
        .replace("name: far", "name: noon")
        .replace("centre: 4.0", "centre: 2.0")
    )
    (toy.folder / "conf/scenario/toy/noon.yaml").write_text(text)
    before = toy.hashes("results/small/toy/near", "results/small/toy/policies")
    assert toy.rules("all") == ONE_SCENARIO
    toy.run("all")
    assert toy.hashes("results/small/toy/near", "results/small/toy/policies") == before


def test_a_new_seed_is_learned_alone(toy):
    toy.edit("conf/policy/toy/hill_further.yaml", "seeds: [0]", "seeds: [0, 1]")
    assert toy.rules("all") == {"learn": 2, "evaluate": 2, "summarise": 1, "draw_toy": 1, "index_figures": 1}


def test_seeds_that_one_job_learns_have_the_bytes_of_single_jobs(toy):
    policies = "results/small/toy/policies"
    learned = sorted(str(file.relative_to(toy.folder)) for file in (toy.folder / policies).glob("*/seed-*/policy.zip"))
    before = toy.hashes(policies)
    toy.edit("conf/study/toy.yaml", "prepare:", "seeds_together: [small]\nprepare:")
    assert toy.rules("all") == {}
    shutil.rmtree(toy.folder / policies)
    assert toy.rules(*learned) == {"learn": 1, "learn_toy": 1}
    toy.run(*learned)
    assert toy.hashes(policies) == before
    shutil.rmtree(toy.folder / policies / "hill/seed-1")
    toy.run(*learned)
    assert toy.hashes(policies) == before


@pytest.mark.slow
def test_a_deleted_scenario_is_made_again_with_the_same_bytes(toy):
    before = toy.hashes()
    shutil.rmtree(toy.folder / "results/small/toy/near")
    assert toy.rules("all") == ONE_SCENARIO
    toy.run("all")
    assert toy.hashes() == before


def test_a_lost_snakemake_folder_changes_no_bytes(toy):
    before = toy.hashes()
    shutil.rmtree(toy.folder / ".snakemake")
    shutil.rmtree(toy.folder / ".schedlab")
    toy.run("all")
    assert toy.hashes() == before
