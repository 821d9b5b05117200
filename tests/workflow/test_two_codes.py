"""Two branches in one checkout: what both agree on stays; what one replaced is taken back if it was learned or scored,
else made again; nothing is signed by the code of the other.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from checkouts import Checkout

from schedlab.config.runtime.parts import MADE_BY, read_part
from schedlab.config.runtime.provenance import was_made_by

pytestmark = pytest.mark.slow
SCORES = "results/small/toy/far/evaluation/rules.parquet"
AFTER_SCORES = {"summarise": 1, "draw_toy": 1, "index_figures": 1}


def git(checkout: Checkout, *words: str) -> str:
    command = ["git", "-C", str(checkout.folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def origins(checkout: Checkout) -> dict[str, dict]:
    """What each job says of its outputs, by the name of its file."""
    found = {path.relative_to(checkout.folder).as_posix(): path for path in checkout.folder.rglob("*provenance.json")}
    return {name: json.loads(path.read_text()) for name, path in sorted(found.items())}


def files(checkout: Checkout) -> dict[str, int]:
    """The number of the file system for each learned policy and each table of scores: a computed one has another."""
    found = (checkout.folder / "results").glob("*/*/*/*/**/*")
    return {
        path.relative_to(checkout.folder).as_posix(): path.stat().st_ino
        for path in found
        if path.name == "policy.zip" or (path.parent.name == "evaluation" and path.suffix == ".parquet")
    }


def are_signed(checkout: Checkout) -> bool:
    """Whether all results were made by the code that their frozen parts name."""
    made = origins(checkout).values()
    return all(was_made_by(read_part(checkout.folder / origin["config"])[MADE_BY], origin) for origin in made)


def test_two_branches_share_what_they_agree_on_and_make_the_rest_again(toy):
    one, before, first = git(toy, "branch", "--show-current"), toy.hashes(), origins(toy)
    git(toy, "checkout", "-q", "-b", "other")
    toy.edit("tests/toy_study/study.py", "distance = abs(", "distance = 2.0 * abs(")
    git(toy, "commit", "-q", "-a", "-m", "Another distance")
    commits = {name: git(toy, "rev-parse", name) for name in (one, "other")}
    toy.run(SCORES)
    made = origins(toy)
    name = SCORES.replace(".parquet", ".provenance.json")
    assert [name] == [each for each in made if made[each] != first[each]]
    assert made[name]["schedlab"]["commit"] == commits["other"] and made[name]["code_hash"] != first[name]["code_hash"]
    assert toy.hashes()[SCORES] != before[SCORES]

    git(toy, "checkout", "-q", one)
    assert toy.rules("all") == {"evaluate": 1, **AFTER_SCORES}, "what the other branch did not replace is used"
    toy.run("all")
    assert toy.hashes() == before and are_signed(toy)
    assert {origin["schedlab"]["commit"] for origin in origins(toy).values()} == {commits[one]}

    git(toy, "checkout", "-q", "other")
    toy.run("all")
    after, made_then = origins(toy), files(toy)
    assert are_signed(toy) and toy.hashes() != before
    assert {each for each in after if after[each]["schedlab"]["commit"] == commits[one]} == {
        f"results/small/toy/{scenario}/inputs/targets.provenance.json" for scenario in ("far", "near")
    }, "the targets are those of both"

    git(toy, "checkout", "-q", one)
    assert toy.rules("all") == {"learn": 3, "evaluate": 6, **AFTER_SCORES}
    kept = {path.stat().st_ino for path in (toy.folder / ".schedlab/outputs").rglob("*") if path.is_file()}
    toy.run("all")
    assert toy.hashes() == before and are_signed(toy) and set(files(toy).values()) <= kept, "nothing was computed"
    git(toy, "checkout", "-q", "other")
    toy.run("all")
    assert origins(toy) == after and files(toy) == made_then

    git(toy, "checkout", "-q", one)
    kept = {path.stat().st_ino: path for path in (toy.folder / ".schedlab/outputs").rglob("*") if path.is_file()}
    for inode, path in kept.items():
        os.link(path, toy.folder / f"kept-{inode}")
    toy.run("all", "--forceall")
    assert toy.hashes() == before and not set(files(toy).values()) & kept.keys(), (
        "also where outputs of this code are kept"
    )


def test_curves_of_other_code_are_not_summarised(toy):
    """As where a learned policy is copied from a run of another branch."""
    place = toy.folder / "results/small/toy/policies/hill/seed-0"
    kept = (toy.folder / "results/small/toy/curves.parquet").read_bytes()
    origin = place / "provenance.json"
    origin.write_text(json.dumps(json.loads(origin.read_text()) | {"code_hash": "of-another-branch"}))
    output = toy.run("results/small/toy/summary.parquet", "--forcerun", "summarise", status=1)
    curve = (place / "curve.parquet").relative_to(toy.folder).as_posix()
    assert [line for line in output.splitlines() if line.startswith(f"error: {curve}: ")] and "Traceback" not in output
    (toy.folder / curve).unlink()  # as the message says
    toy.run("all")
    assert (toy.folder / "results/small/toy/curves.parquet").read_bytes() == kept


def test_a_checkout_is_planned_by_its_own_code_where_another_one_is_installed(toy, repository):
    """Snakemake imports our logger plugin from where schedlab is installed, before it reads the Snakefile."""
    toy.edit("src/schedlab/evaluation/intervals.py", "self.variance**2 / uncertain", "self.variance**3 / uncertain")
    environment = {**os.environ, "PYTHONPATH": str(repository / "src")}
    command = toy.command("--dry-run")
    done = subprocess.run(command, cwd=toy.folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "summarise" in done.stdout + done.stderr
