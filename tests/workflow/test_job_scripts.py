"""Scripts of the workflow are in no hash of code, so they may decide nothing: they pass the files of a job to a stage.

They compute nothing, define nothing and branch on nothing but whether a file is there.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "workflow/scripts").glob("*.py"))
DECIDING = (
    ast.If, ast.While, ast.Match, ast.Try, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.AugAssign, ast.Lambda,
    ast.FunctionDef, ast.ClassDef, ast.Delete, ast.Global, ast.JoinedStr,
)  # fmt: skip


def deciding(tree: ast.AST) -> list[str]:
    """What of a script does more than pass on: statements of DECIDING, arithmetic, numbers that are no place of a
    list.
    """
    places = {place for node in ast.walk(tree) if isinstance(node, ast.Subscript) for place in ast.walk(node.slice)}
    numbers = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node not in places
    ]
    sums = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div)]
    return [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, DECIDING) or node in [*numbers, *sums]]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_passes_the_files_of_its_job_to_a_stage_and_nothing_else(script: Path) -> None:
    found = deciding(ast.parse(script.read_text()))
    assert not found, f"{script.name}: move this into the stage: {found}"


@pytest.mark.parametrize("line", ["seed = int(seed) + 1", "if x:\n    y()", "rate = 0.5", "x = a if b > c else d"])
def test_what_decides_is_seen(line: str) -> None:
    assert deciding(ast.parse(line))
