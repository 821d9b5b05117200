"""What runs elsewhere than in `.ci/run`, before a commit, on GitHub and for a release, is what the Makefile runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import schedlab

TOOLS = {"ruff", "snakefmt", "mypy", "codespell"}


@pytest.fixture
def release_notes(load_program: Callable[[str], ModuleType]) -> ModuleType:
    """The program that prints the notes of a release."""
    return load_program(".ci/release_notes")


def test_the_hooks_of_a_commit_are_the_linters(repository: Path) -> None:
    linted = set(re.findall(r"\w+", (repository / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]))
    hooks = yaml.safe_load((repository / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    at_commits = [hook for hook in hooks if "stages" not in hook]
    assert {hook["language"] for hook in hooks} == {"system"}, "the versions are those of requirements.txt"
    assert {hook["entry"].split()[0] for hook in at_commits} == TOOLS == TOOLS & linted


@pytest.mark.parametrize(("subject", "status"), [("s" * 72, 0), ("s" * 73, 1), ("short\n\n" + "b" * 90, 0)])
def test_a_long_subject_is_refused(repository: Path, tmp_path: Path, subject: str, status: int) -> None:
    hooks = yaml.safe_load((repository / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    entry = next(hook["entry"] for hook in hooks if hook.get("stages") == ["commit-msg"])
    (tmp_path / "message").write_text(subject)
    done = subprocess.run(f"{entry} {tmp_path}/message", shell=True, capture_output=True, text=True)
    assert (done.returncode, bool(done.stdout)) == (status, bool(status))


@pytest.mark.parametrize("name", ["tests", "docs", "release"])
def test_github_runs_targets_that_there_are(repository: Path, name: str) -> None:
    jobs = yaml.safe_load((repository / f".github/workflows/{name}.yml").read_text())["jobs"]
    lines = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    called = {word for words in re.findall(r"^make ([a-z -]+)", lines, flags=re.M) for word in words.split()}
    targets = set(re.search(r"^\.PHONY: (.*)", (repository / "Makefile").read_text(), flags=re.M)[1].split())
    assert called and called <= targets


def test_the_changelog_has_the_version_and_its_date(repository: Path, release_notes: ModuleType) -> None:
    changelog = (repository / "CHANGELOG.md").read_text()
    assert len(release_notes.notes(changelog, schedlab.__version__)) > 100
    date = yaml.safe_load((repository / "CITATION.cff").read_text())["date-released"]
    assert f"\n## {schedlab.__version__}, {date}\n" in changelog


def test_the_notes_of_a_release_are_those_of_its_version(
    release_notes: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# Changelog\n\n## 0.2.0\n\n* new\n\n## 0.1.0, 2026-01-31\n\n* first\n* last\n"
    assert release_notes.notes(text, "0.2.0") == "* new" and release_notes.notes(text, "0.1.0") == "* first\n* last"
    assert release_notes.notes(text, "0.1") is None
    assert "v9.9.9" in release_notes.main(["v9.9.9"]) and capsys.readouterr().out == ""
    assert release_notes.main([f"v{schedlab.__version__}"]) == 0 and capsys.readouterr().out


def test_words_that_may_be_misspelt_are_misspelt_in_a_test(repository: Path) -> None:
    words = (repository / "tests/misspelt.txt").read_text().split()
    text = "\n".join(file.read_text() for file in (repository / "tests").rglob("*.py")).lower()
    assert words == sorted(set(words)) and not [word for word in words if not re.search(rf"\b{word}\b", text)]
