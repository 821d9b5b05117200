"""`schedlab accept`: results stay up to date through a pure refactoring, and through nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkouts import OWN_RULE, Checkout, commit, copied, one_seed_checkout

from schedlab.cli.accept import _newest

pytestmark = pytest.mark.slow
OWN = "  - {name: two, target: 'own.py:Two'}\n"
STUDY = "tests/toy_study/study.py"


@pytest.fixture(scope="module")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A finished run with a job of each rule, of committed code: each trial runs it twice at scale smoke."""
    checkout = one_seed_checkout(repository, tmp_path_factory.mktemp("accept") / "checkout")
    commit(checkout.folder)
    checkout.run("all")
    return checkout


@pytest.fixture
def toy(finished: Checkout, tmp_path: Path) -> Checkout:
    """A copy of it."""
    return copied(finished, tmp_path / "copy")


def accept(checkout, *words, status):
    """Run `schedlab accept` with the checkout's own code, as its user would."""
    given = {**os.environ, "PYTHONPATH": str(checkout.folder / "src")}
    command = [sys.executable, "-m", "schedlab.cli.main", "accept", *words]
    done = subprocess.run(command, cwd=checkout.folder, env=given, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def check(checkout):
    """Run `schedlab manifest check` there: status, and what it printed."""
    given = {**os.environ, "PYTHONPATH": str(checkout.folder / "src")}
    command = [sys.executable, "-m", "schedlab.cli.main", "manifest", "check", "results/small"]
    done = subprocess.run(command, cwd=checkout.folder, env=given, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_renamed_variable_is_accepted_and_nothing_runs_again(toy):
    before = toy.hashes()
    for old, new in (("distance = abs", "gap = abs"), ("distance**2", "gap**2"), ("distance < 1", "gap < 1")):
        toy.edit(STUDY, old, new)
    assert toy.rules("all")["learn"] == 1
    accept(toy, "toy", status=0)
    assert toy.rules("all") == {}
    status, said = check(toy)
    assert status == 0 and "accepted: " in said and "other code" not in said
    assert toy.hashes() == before | {"results/small/accepted.json": toy.hashes()["results/small/accepted.json"]}
    (entry,) = json.loads((toy.folder / "results/small/accepted.json").read_text())
    assert entry["modules"] == ["toy_study.study"] and entry["by"] and entry["when"]

    toy.edit("conf/scenario/toy/near.yaml", "centre: 0.5", "centre: 0.6")  # what is made now is made by today's code
    toy.run("all")
    manifest = json.loads((toy.folder / "results/small/manifest.json").read_text())
    scores = "results/small/toy/near/evaluation/rules"
    assert json.loads((toy.folder / f"{scores}.provenance.json").read_text())["accepted"]
    assert manifest["accepted"][0]["by"] == entry["by"] and scores in manifest["accepted"][0]["steps"]
    assert not any(step["other_code"] for step in manifest["steps"].values())

    toy.edit(STUDY, "gap**2", "gap * gap")  # and accepted once more
    accept(toy, status=0)
    assert toy.rules("all") == {}


def test_a_changed_constant_is_not_accepted_and_nothing_is_written(toy):
    toy.edit(STUDY, "distance = abs(", "distance = 2.0 * abs(")
    toy.rules("all")
    before = toy.hashes()
    assert "results/smoke/toy/near/evaluation/" in accept(toy, status=1)
    assert toy.hashes() == before and toy.rules("all")["learn"] == 1


def test_code_that_smoke_does_not_run_is_not_accepted(toy):
    near = (toy.folder / "conf/scenario/toy/near.yaml").read_text()
    noon = near.replace("name: near", "name: noon\nscales: [small]").replace("rules:\n", f"rules:\n{OWN}")
    (toy.folder / "conf/scenario/toy/noon.yaml").write_text(noon)
    rule = OWN_RULE.replace("return 2.0", "return guess()")
    (toy.folder / "own.py").write_text(f"from helper import guess\n\n\n{rule}")
    (toy.folder / "helper.py").write_text("def guess():\n    number = 2.0\n    return number\n")
    commit(toy.folder)
    toy.run("all")
    toy.edit("helper.py", "number", "answer")
    toy.edit(STUDY, "distance**2", "distance * distance")
    said = accept(toy, status=1)
    assert "results/small/toy/noon/config/evaluate-rules.yaml" in said
    assert toy.rules("all") == {"evaluate": 1, "summarise": 1, "draw_toy": 1, "index_figures": 1}


def test_what_cannot_be_compared_is_refused(toy):
    assert "nothing to accept" in accept(toy, status=0)
    toy.edit(STUDY, "distance**2", "distance * distance")
    assert "toys" in accept(toy, "toys", status=2)
    files = [*toy.folder.rglob("results/**/*provenance.json"), *toy.folder.rglob("plots/**/provenance.json")]
    for key, other in (("schedlab", {"commit": "0" * 40}), ("computed_with", {"numpy": "1.0"})):
        for file in files:
            file.write_text(json.dumps(json.loads(file.read_text()) | {key: other}))
        assert other.get("commit", "numpy 1.0")[:12] in accept(toy, status=2)
    for file in files:  # as another version of schedlab may have written it
        file.write_text(json.dumps({"config": json.loads(file.read_text())["config"]}))
    assert "error: results/small/toy/" in accept(toy, status=2)
    toy.edit("conf/scenario/toy/near.yaml", "centre: 0.5", "centre: 0.6")
    assert "/config/evaluate-" in accept(toy, status=2)
    assert not list(toy.folder.glob("results/*/accepted.json"))


def test_the_newest_of_commits_of_one_second_is_the_last(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = []
    for number in range(8):  # whatever order their hashes have
        (tmp_path / "number").write_text(str(number))
        commit(tmp_path)
        made.append(subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout)
    commits = sorted(map(str.strip, made))
    assert [_newest(commits), _newest([*commits, "0" * 40])] == [made[-1].strip()] * 2
    assert _newest(["0" * 40]) == "0" * 40
