"""The tutorials: each runs and prints what its page shows, and Jupyter can open it."""

from __future__ import annotations

import re
import subprocess
import sys

import nbformat
import pytest
from page_parts import REPOSITORY, blocks
from tutorials import FOLDER, cells, executed, names, notebook

NEEDS = {"train_agents": ("torch", "stable_baselines3", "sb3_contrib")}
TINY = {  # tutorials that take minutes, and what makes them take seconds
    "train_agents": {"jobs=24_000": "jobs=3_200", "8, 65_536": "2, 1_024"}
}


def require_packages(name: str) -> None:
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason=f"needs {package}: pip install '.[learn]'")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(names()) - TINY.keys()))
def test_it_prints_what_its_page_shows(name: str) -> None:
    require_packages(name)
    command = [sys.executable, str(REPOSITORY / "docs/generate/tutorials.py"), "--check", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    again = f"python docs/generate/tutorials.py {name}"
    assert done.returncode == 0, f"bring the page up to date by: {again}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_it_runs_at_a_tiny_size_and_prints_what_its_page_shows_but_for_numbers(name: str) -> None:
    require_packages(name)
    script = FOLDER / f"{name}.py"
    text, page = script.read_text(), (FOLDER / f"{name}.md").read_text()
    for size, tiny in TINY[name].items():
        assert text.count(size) == 1
        text = text.replace(size, tiny)
    ran = list(executed(cells(text), script))
    for _, printed, _ in ran:
        assert without_numbers(printed) in without_numbers(page)
    assert page.count("![figure") == sum(len(drawn) for *_, drawn in ran)


def without_numbers(text: str) -> str:
    return " ".join(re.sub(r"-?\d[\d.]*", "#", text).split())


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
