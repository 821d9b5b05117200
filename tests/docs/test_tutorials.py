"""The tutorials: each runs and prints what its page shows, and Jupyter can open it."""

from __future__ import annotations

import subprocess
import sys

import nbformat
import pytest
from page_parts import REPOSITORY, blocks
from tutorials import FOLDER, cells, names, notebook

NEEDS = {"train_agents": ("torch", "stable_baselines3", "sb3_contrib")}


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_it_prints_what_its_page_shows(name: str) -> None:
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason=f"needs {package}: pip install '.[learn]'")
    command = [sys.executable, str(REPOSITORY / "docs/generate/tutorials.py"), "--check", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    again = f"python docs/generate/tutorials.py {name}"
    assert done.returncode == 0, f"bring the page up to date by: {again}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.mark.parametrize("name", names())
def test_its_page_has_its_code_and_its_notebook_is_valid(name: str) -> None:
    script = (FOLDER / f"{name}.py").read_text()
    code = [cell.text for cell in cells(script) if cell.is_code]
    page = (FOLDER / f"{name}.md").read_text()
    # a block of Markdown that is shown as an example is no cell
    assert [block for block in blocks(page, "python") if block.rstrip() in code] == [f"{cell}\n" for cell in code]
    made = nbformat.reads(notebook(name), as_version=4)
    nbformat.validate(made)
    assert [cell.source for cell in made.cells] == [cell.text for cell in cells(script)]
    assert script.startswith("# %% [markdown]\n# # "), "the title comes first"


def test_cells_are_split_at_their_marks() -> None:
    found = cells("# %% [markdown]\n# # Title\n#\n# text\n\n# %%\nx = 1\n\n# comment\nprint(x)\n")
    assert [(cell.text, cell.is_code) for cell in found] == [
        ("# Title\n\ntext", False),
        ("x = 1\n\n# comment\nprint(x)", True),
    ]
