"""A user's mistake stops the run before its first job, in one paragraph; a failing job names its log."""

from __future__ import annotations


def test_a_typo_in_one_scenario_runs_nothing(fresh_toy):
    fresh_toy.edit("conf/scenario/toy/near.yaml", "centre: 0.5", "centra: 0.5")
    output = fresh_toy.run("all", status=1)
    assert "conf/scenario/toy/near.yaml" in output and "'centra'" in output and "did you mean 'centre'?" in output
    assert "Traceback" not in output and not (fresh_toy.folder / "results").exists()


def test_an_unknown_scenario_as_target_is_explained(toy):
    output = toy.run("results/small/toy/nera/evaluation/rules.parquet", status=1)
    assert "there is no scenario 'nera'" in output and "did you mean 'near'?" in output and "Traceback" not in output


def test_a_failing_job_names_its_log_and_the_others_go_on(fresh_toy):
    fresh_toy.edit("tests/toy_study/study.py", "class HillClimber", "BROKEN = 1\n\n\nclass HillClimber")
    fresh_toy.edit(
        "tests/toy_study/study.py",
        "        kept = paths.progress",
        '        raise ArithmeticError("on purpose")\n        kept = paths.progress',
    )
    output = fresh_toy.run("all", status=1)
    log = fresh_toy.folder / "results/small/toy/policies/hill/seed-0/logs/learn.log"
    assert "ArithmeticError: on purpose" in output and "learn.log" in output
    assert "Traceback" in log.read_text() and "on purpose" in log.read_text()
    assert (fresh_toy.folder / "results/small/toy/near/evaluation/rules.parquet").exists()


def test_output_that_goes_to_a_file_has_no_control_characters(toy):
    output = toy.run("all", "--force")
    assert not [character for character in output if ord(character) < 32 and character not in "\n\t"]


def test_the_rule_graph_can_be_drawn(toy):
    assert "digraph" in toy.run("all", "--rulegraph")
