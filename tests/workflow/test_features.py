"""What Snakemake offers beside the run itself, as this workflow uses it: growing resources, messages, profiles."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from checkouts import Checkout

from schedlab.config import experiment
from schedlab.stages.studies import find_study
from small_conf import write_conf

pytestmark = pytest.mark.slow

GREEDY = """import pathlib

job = snakemake
with pathlib.Path("attempts.txt").open("a") as file:
    file.write(f"{job.resources.mem_mb} {job.resources.runtime}\\n")
if job.resources.mem_mb < 3000:
    raise SystemExit("killed: out of memory")
"""
NOTE = "import json, pathlib, sys; pathlib.Path('told.json').write_text(json.dumps(sys.argv[1:]))"


def test_a_job_that_runs_out_of_memory_gets_twice_as_much_and_passes(fresh_toy: Checkout) -> None:
    rules = fresh_toy.folder / "tests/toy_study/prepare.smk"
    asks = "".join(f'        {key}=resource("draw_targets", "{key}"),\n' for key in ("mem_mb", "runtime"))
    rules.write_text(rules.read_text().replace("    localrule: True", f"    resources:\n{asks}    localrule: True"))
    script = fresh_toy.folder / "tests/toy_study/draw_targets.py"
    script.write_text(GREEDY + script.read_text())
    profile = yaml.safe_load((fresh_toy.folder / "profiles/slurm/config.yaml").read_text())
    target = "results/small/toy/near/inputs/targets.json"
    fresh_toy.run(target, status=1)
    assert (fresh_toy.folder / "attempts.txt").read_text().splitlines() == ["2000 60"]
    fresh_toy.run(target, "--retries", str(profile["retries"]))
    assert (fresh_toy.folder / "attempts.txt").read_text().splitlines() == ["2000 60", "2000 60", "4000 120"]


@pytest.mark.parametrize(
    ("wrong", "how"),
    [
        ("", "succeeded"),
        ("    raise ArithmeticError('a figure that cannot be drawn')\n", "failed"),
        ("    raise SystemExit('a job that fails')\n", "failed"),
    ],
    ids=["all is well", "a figure fails", "a job fails"],
)
def test_a_command_of_the_user_is_told_how_a_run_ended(toy: Checkout, wrong: str, how: str) -> None:
    (toy.folder / "note.py").write_text(NOTE)
    (toy.folder / "plots/small/toy/costs.svg").unlink()
    toy.edit("tests/toy_study/figures.py", "    from toy_study.study", f"{wrong}    from toy_study.study")
    toy.run("toy", "--config", f"notify={sys.executable} note.py word", status=int(bool(wrong)))
    word, told, where = json.loads((toy.folder / "told.json").read_text())
    assert (word, told) == ("word", how) and str(toy.folder) in where


def test_a_command_that_is_not_there_fails_no_run(toy: Checkout) -> None:
    (toy.folder / "plots/small/toy/costs.svg").unlink()
    assert "warning: --config notify: " in toy.run("toy", "--config", "notify=no-such-program")


def test_the_profile_for_tests_takes_the_smallest_scale(fresh_toy: Checkout) -> None:
    output = fresh_toy.run("toy", "--dry-run", "--profile", "profiles/test")
    assert "results/smoke/toy/near/inputs/targets.json" in output and "results/small" not in output


def test_the_scenarios_that_the_benchmark_generates_are_as_many_as_it_says(repository, tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(repository / "benchmarks"))
    from many_scenarios import generated

    assert generated(tmp_path / "checkout", 3).rules("all") == {
        "draw_targets": 3,
        "learn": 15,
        "evaluate": 6,
        "summarise": 1,
        "draw_toy": 1,
        "index_figures": 1,
    }


def test_two_directories_share_what_a_rule_makes_of_its_part_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(tmp_path / "cache"))
    made = []
    for name, ran in {"one": True, "two": False}.items():
        part = experiment.load(write_conf(tmp_path / name), "small", find_study).part_folder(
            "adaptation", "tiny", "check_data"
        )
        arguments = ("-s", str(repository / "Snakefile"), f"{part}/data.npz", f"{part}/summary.json", "--cache")
        checkout = Checkout(tmp_path / name)
        checkout.run(*arguments)
        assert (checkout.folder / part / "provenance.json").exists() == ran  # which the script writes
        made.append({file: (checkout.folder / part / file).read_bytes() for file in ("data.npz", "summary.json")})
        assert "Nothing to be done" in checkout.run(*arguments, "--dry-run")
    assert made[0] == made[1]
