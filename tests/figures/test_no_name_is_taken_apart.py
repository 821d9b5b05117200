"""Figures select by the columns of the tables and take no name of a policy, unit or scenario apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TAKING_APART = {"removeprefix", "removesuffix", "split", "rsplit", "partition", "rpartition", "startswith", "endswith"}
TAKING_APART |= {"match", "fullmatch", "search", "sub", "findall", "extract"}
# (study, file) -> functions that read something else than such names
ALLOWED = {
    ("adaptation", "course"): {"_probability"},  # columns of a detail table, one for each action
    ("adaptation", "data"): {"in_words"},  # headings of the published simulations, which say the model once
    ("adaptation", "learning"): {"curve_metric"},  # the column of the scores that rewards are made of
    ("hetero", "learning"): {"preferred"},  # metrics of a curve, one for each action
    ("hetero", "pairs"): {"*"},  # pairs of a job policy and a core policy, which are actions
}


def taken_apart(code: str) -> set[tuple[str, str]]:
    """Return (function, method) of each call that takes a text apart."""
    found = set()
    for function in ast.walk(ast.parse(code)):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                    found |= {(function.name, node.func.attr)} if node.func.attr in TAKING_APART else set()
    return found


@pytest.mark.parametrize("study", ["adaptation", "batch", "cloud", "hetero", "ramp"])
def test_no_figure_takes_names_apart(repository: Path, study: str) -> None:
    for file in sorted((repository / "src/schedlab/studies" / study / "figures").glob("*.py")):
        allowed = ALLOWED.get((study, file.stem), set())
        wrong = {call for call in taken_apart(file.read_text()) if call[0] not in allowed and "*" not in allowed}
        assert not wrong, f"{file}: use columns such as recipe, trained_on or preference"


def test_what_takes_a_name_apart_is_seen() -> None:
    assert taken_apart("def f(policy, rows):\n return policy.removesuffix('-a'), rows['unit'].str.rsplit('-', n=2)")
    assert not taken_apart("def f(text):\n return text.split()")
