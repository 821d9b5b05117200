"""A user's mistake stops the run before its first job, in one paragraph; a failing job names its log."""

from __future__ import annotations

import re

import pytest
from checkouts import another_run

NOISE = ("Traceback", "Exception", 'File "', " in line ", ".smk")


def test_a_typo_in_one_scenario_runs_nothing(fresh_toy):
    fresh_toy.edit("conf/scenario/toy/near.yaml", "centre: 0.5", "centre: 0.5\nunitz: 3")
    output = fresh_toy.run("all", status=1)
    said = [line for line in output.splitlines() if line and not line.startswith("Using workflow specific profile")]
    assert len(said) == 1, said
    assert (
        said[0].startswith("error: conf/scenario/toy/near.yaml")
        and "'unitz'" in said[0]
        and "did you mean 'units'?" in said[0]
    )
    assert not (fresh_toy.folder / "results").exists()


def test_an_unknown_scenario_as_target_is_explained(toy):
    output = toy.run("results/small/toy/nera/evaluation/rules.parquet", status=1)
    assert "error: there is no scenario 'nera'" in output and "did you mean 'near'?" in output
    assert not [noise for noise in NOISE if noise in output]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("plots/small/toy/cots.svg", "there is no figure 'cots' of study 'toy'; did you mean 'costs'?"),
        pytest.param(
            "results/smoke/toy/summary.parquet",
            "it lies at scale 'smoke', and this run is at 'small'; add --config scale=smoke",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "plots/small/toy/costs.jpg",
            "plots/small/toy/costs.jpg: no figure is written as 'jpg'; expected one of svg, pdf",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "plots/small/tooy/costs.svg", "there is no study 'tooy'; did you mean 'toy'?", marks=pytest.mark.slow
        ),
        pytest.param(
            "plots/smoke/toy/costs.svg",
            "it lies at scale 'smoke', and this run is at 'small'; add --config scale=smoke",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_figure_as_target_that_is_not_drawn_is_explained(toy, target, told):
    output = toy.run(target, "--dry-run", status=1)
    assert told in output and "error: " in output
    assert not [noise for noise in NOISE if noise in output]


def test_an_unknown_key_on_the_command_line_is_refused(toy):
    output = toy.run("all", "--config", "scael=smoke", status=1)
    assert "unknown key 'scael'" in output and "did you mean 'scale'?" in output


def test_a_failing_job_names_its_log_and_the_others_go_on(fresh_toy):
    fresh_toy.edit(
        "tests/toy_study/study.py",
        "        kept = paths.progress",
        '        raise ArithmeticError("on purpose")\n        kept = paths.progress',
    )
    output = fresh_toy.run("all", status=1)
    log = fresh_toy.folder / "results/small/toy/policies/hill/seed-0/logs/learn.log"
    assert f"error: ArithmeticError: on purpose (traceback in {log.relative_to(fresh_toy.folder)})" in output
    assert "Traceback" in log.read_text() and "on purpose" in log.read_text()
    assert (fresh_toy.folder / "results/small/toy/near/evaluation/rules.parquet").exists()
    assert "Error in rule learn:" in output and f"log: {log.relative_to(fresh_toy.folder)} (check log file(s)" in output
    ended = re.findall(r"^\[ ?(\d+)/15\] (.+): \d+ s, about \d+ (?:s|min) left$", output, flags=re.M)
    assert [int(number) for number, _ in ended] == [1, 2, 3, 4], "a line for each job that ended well"
    assert {job for _, job in ended} == {
        "draw_targets near",
        "draw_targets far",
        "evaluate toy/near/rules",
        "evaluate toy/far/rules",
    }
    assert "Finished jobid" not in output and "reason:" not in output, (
        "what Snakemake tells of each job stands in its log file"
    )


def test_a_users_mistake_within_a_job_is_one_paragraph(fresh_toy):
    fresh_toy.edit("conf/scenario/toy/near.yaml", "rules:\n", "rules:\n  - {name: own, target: 'own.py:Own'}\n")
    (fresh_toy.folder / "own.py").write_text(
        "from schedlab.config.errors import UserError\n\n\nclass Own:\n    def __init__(self, params, problem, seed):\n"
        "        raise UserError('the weights are missing', where='weights.npz')\n\n"
        "    def reset(self, unit): ...\n\n    def act(self, observation, mask): ...\n"
    )
    output = fresh_toy.run("results/small/toy/near/evaluation/rules.parquet", status=1)
    assert "error: weights.npz: the weights are missing" in output and "Traceback" not in output


def test_a_changed_configuration_waits_for_the_run_that_is_at_work(toy):
    with another_run(toy.folder):
        assert "Nothing to be done" in toy.run("all", "--dry-run"), "looking is free while nothing has changed"
        before = {path: path.read_bytes() for path in (toy.folder / "results").rglob("*.yaml")}
        toy.edit("conf/scenario/toy/near.yaml", "centre: 0.5", "centre: 0.6")
        output = toy.run("all", "--dry-run", status=1)
    assert "another run works in this directory" in output and "has changed" in output
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_output_that_goes_to_a_file_has_no_control_characters(fresh_toy):
    first = "        kept = paths.progress"
    fresh_toy.edit(
        "tests/toy_study/study.py",
        first,
        f'        if paths.start:\n            raise ArithmeticError("on purpose")\n{first}',
    )
    output = fresh_toy.run("all", status=1)
    assert re.search(r"^\[ ?\d+/15\] learn toy/hill/seed-0: ", output, flags=re.M), output
    assert "Error in rule learn:" in output and "on purpose" in output, "a job that fails, as well"
    assert not [character for character in output if ord(character) < 32 and character not in "\n\t"]


@pytest.mark.slow
def test_one_figure_that_cannot_be_drawn_leaves_the_others_and_is_drawn_once_it_is_mended(toy):
    good = (toy.folder / "plots/small/toy/costs.svg").read_bytes()
    text = (toy.folder / "conf/figure/toy/costs.yaml").read_text()
    (toy.folder / "conf/figure/toy/bad.yaml").write_text(text.replace("name: costs", "name: bad"))
    drawings = toy.folder / "tests/toy_study/figures.py"
    first = "    from toy_study.study import STUDY\n"
    toy.edit(
        "tests/toy_study/figures.py",
        first,
        first + "    if spec.name == 'bad':\n        raise ArithmeticError('on purpose')\n",
    )
    output = toy.run("all", status=1)
    failed = "error: conf/figure/toy/bad.yaml: 'bad' could not be drawn: ArithmeticError: on purpose"
    assert f"{failed} (log: results/small/toy/logs/draw.log)" in output
    assert "Traceback" not in output and "Traceback" in (toy.folder / "results/small/toy/logs/draw.log").read_text()
    assert (toy.folder / "plots/small/toy/costs.svg").read_bytes() == good
    assert "could not be drawn" in (toy.folder / "plots/small/toy/bad.txt").read_text()
    assert "could not be drawn" in (toy.folder / "plots/small/INDEX.md").read_text()
    kept = toy.hashes()
    assert toy.rules() == {"draw_toy": 1, "index_figures": 1} and toy.hashes() == kept, "a dry run deletes nothing"
    drawings.write_text(drawings.read_text().replace("raise ArithmeticError('on purpose')", "pass"))
    assert toy.run("all")
    assert "could not be drawn" not in (toy.folder / "plots/small/toy/bad.txt").read_text()
    assert "could not be drawn" not in (toy.folder / "plots/small/INDEX.md").read_text()
    assert "Nothing to be done" in toy.run("all", "--dry-run")
