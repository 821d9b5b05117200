"""Tests of schedlab.config.plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.config.errors import UserError
from schedlab.config.plugins import find_class, is_file_target, load_class

RULE = """
from dataclasses import dataclass

@dataclass
class Greedy:
    guess: float = 1.0
    def reset(self, unit): pass
    def act(self, observation, mask): return self.guess
"""


def test_a_class_is_loaded_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RULE)
    assert load_class(f"{tmp_path}/mine.py:Greedy", "rule")().act(None, None) == 1.0


def test_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "with space").mkdir()
    (tmp_path / "with space" / "mine.py").write_text(RULE)
    monkeypatch.chdir(tmp_path)
    assert load_class("with space/mine.py:Greedy", "rule").__name__ == "Greedy"


def test_an_edited_file_is_loaded_anew(tmp_path: Path) -> None:
    target = f"{tmp_path}/mine.py:Greedy"
    (tmp_path / "mine.py").write_text(RULE)
    first = load_class(target, "rule")
    assert load_class(target, "rule") is first
    (tmp_path / "mine.py").write_text(RULE.replace("1.0", "2.0"))
    assert load_class(target, "rule")().act(None, None) == 2.0


@pytest.mark.parametrize(
    ("text", "target", "kind", "error"),
    [
        (None, "mine.py:Greedy", "rule", "no such file"),
        (RULE, "mine.py:Greed", "rule", "no class 'Greed'.*did you mean 'Greedy'"),
        (RULE, "mine.py:dataclass", "rule", "no class 'dataclass'"),
        (RULE, "mine.py:Greedy", "learner", "cannot serve as a learner: it lacks learn, load"),
        ("x = (", "mine.py:Greedy", "rule", r"mine\.py:1: the file does not run: SyntaxError"),
        ("import no_such_module_here", "mine.py:Greedy", "rule", r"mine\.py:1.*ModuleNotFoundError"),
        ("\n\nraise ValueError('no')", "mine.py:Greedy", "rule", r"mine\.py:3: the file does not run: ValueError: no"),
        (RULE, "mine.Greedy", "rule", "names no class in a file; expected FILE.py:CLASS"),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, target: str, kind: str, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=error):
        load_class(target, kind)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("class Mine:\n    def reset(self, unit): pass\n    def act(self, observation, mask): pass\n", ""),
        ("from base import Base\n\nclass Mine(Base):\n    pass\n", ""),
        ("from elsewhere import Mine\n", ""),
        ("from elsewhere import *\n", ""),
        ("Mine = make_class()\n", ""),
        ("import elsewhere as Mine\nraise SystemExit(1)\n", ""),
        ("class Other:\n    Mine = 1\n", "no class 'Mine'; valid: Other"),
        ("def Mine(): pass\n", "no class 'Mine'; none is valid here"),
        ("class Mine:\n    def act(self, observation, mask): pass\n", "cannot serve as a rule: it lacks reset"),
        ("class Mine:\n", r"mine\.py: the file does not run: IndentationError"),
    ],
)
def test_a_class_is_looked_for_without_running_the_file(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    if not error:
        find_class(f"{tmp_path}/mine.py:Mine", "rule")
        return
    with pytest.raises(UserError, match=error):
        find_class(f"{tmp_path}/mine.py:Mine", "rule")


def test_targets() -> None:
    assert is_file_target("a/b.py:C")
    assert not is_file_target("fcfs")
    assert not is_file_target("a/b.py")
