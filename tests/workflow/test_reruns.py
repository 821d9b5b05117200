"""What an edit reruns: everything that reads the edited value, and nothing else."""

from __future__ import annotations

import shutil

import pytest

ONE_SCENARIO = {"draw_targets": 1, "evaluate": 3, "summarise": 1, "draw_toy": 1, "index_figures": 1}
POLICY = {"learn": 5, "evaluate": 2, "summarise": 1, "draw_toy": 1, "index_figures": 1}

# file, old text, new text, the workflow rules that run again and how often
EDITS = {
    "figure: caption": ("figure/toy/costs.yaml", "title: Guessing", "title: Still guessing", {"draw_toy": 1, "index_figures": 1}),
    "theme": ("figure/theme.yaml", "dpi: 200", "dpi: 100", {"draw_toy": 1, "index_figures": 1}),
    "scenario: rule": (
        "scenario/toy/far.yaml",
        "guess: 3.0",
        "guess: 3.5",
        {"evaluate": 1, "summarise": 1, "draw_toy": 1, "index_figures": 1},
    ),
    "study: statistics": ("study/toy.yaml", "baseline: zero", "baseline: three", {"summarise": 1, "draw_toy": 1, "index_figures": 1}),
    "policy: phase": ("policy/toy/hill_further.yaml", "steps: 10", "steps: 11", {**POLICY, "learn": 3}),
    "scale: nothing reads it": ("scale/small.yaml", "name: small", "name: small\nresources: {default: {mem_mb: 900}}", {}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_reruns_what_reads_it(toy, edit):
    name, old, new, expected = EDITS[edit]
    toy.edit(f"conf/{name}", old, new)
    assert toy.rules("all") == expected
    toy.edit(f"conf/{name}", new, old)
    assert toy.rules("all") == {}, "an edit that is undone reruns nothing"


def test_touching_every_file_reruns_nothing(toy):
    for file in (toy.folder / "conf").rglob("*.yaml"):
        file.touch()
    assert toy.rules("all") == {}


def test_the_root_seed_reruns_everything_that_is_random(toy):
    toy.edit("conf/config.yaml", "seed: 42", "seed: 43")
    assert toy.rules("all") == {"learn": 8, "evaluate": 6, "summarise": 1, "draw_toy": 1, "index_figures": 1}


def test_a_training_scenario_reruns_what_is_learned_on_it(toy):
    toy.edit("conf/scenario/toy/near.yaml", "centre: 0.5", "centre: 0.6")
    assert toy.rules("all") == {"draw_targets": 1, "learn": 8, "evaluate": 5, "summarise": 1, "draw_toy": 1, "index_figures": 1}


def test_a_new_scenario_runs_alone(toy):
    text = (toy.folder / "conf/scenario/toy/far.yaml").read_text().replace("name: far", "name: noon").replace("centre: 4.0", "centre: 2.0")
    (toy.folder / "conf/scenario/toy/noon.yaml").write_text(text)
    before = toy.hashes("results/small/toy/near", "results/small/toy/policies")
    assert toy.rules("all") == ONE_SCENARIO
    toy.run("all")
    assert toy.hashes("results/small/toy/near", "results/small/toy/policies") == before


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
