"""Run the tutorials and write their pages, or make notebooks of Jupyter: python docs/generate/tutorials.py [NAME ...]

A tutorial is a script in docs/tutorials/ whose cells begin with `# %%` (text: `# %% [markdown]`), which Jupyter with
jupytext, VS Code and Spyder open as a notebook. Its page NAME.md holds the cells with what they print and draw; with
`--check`, the pages are only compared with the present outputs. With `--notebooks FOLDER`, write NAME.ipynb files
without outputs into the folder instead, and run nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schedlab.config.files import write_bytes, write_text
from schedlab.config.runtime.instructions import begin_job

FOLDER = Path(__file__).resolve().parents[1] / "tutorials"
PICTURES = FOLDER.parent / "pictures/tutorials"
CELL = re.compile(r"^# %%( \[markdown\])?\n", flags=re.M)


@dataclass(frozen=True)
class Cell:
    """Code, or text in Markdown."""

    text: str
    is_code: bool


def cells(script: str) -> list[Cell]:
    """Return the cells of a script."""
    parts = CELL.split(script)[1:]
    return [
        Cell((body if mark is None else re.sub(r"^# ?", "", body, flags=re.M)).strip("\n"), mark is None)
        for mark, body in zip(parts[::2], parts[1::2], strict=True)
    ]


def page(name: str) -> tuple[str, dict[str, bytes]]:
    """Run a tutorial in its folder; return its page, and its pictures as file name -> PNG."""
    script = FOLDER / f"{name}.py"
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell, printed, drawn in executed(cells(script.read_text(encoding="utf-8")), script):
        parts.append(f"```python\n{cell.text}\n```" if cell.is_code else cell.text)
        parts += [f"```text\n{printed}\n```"] if printed else []
        for picture in drawn:
            file = f"{name}-{len(pictures) + 1}.png"
            pictures[file] = picture
            parts.append(f"![figure {len(pictures)} of this notebook](../pictures/tutorials/{file})")
    note = (
        f"*Made by `python docs/generate/tutorials.py {name}` from [{name}.py]({name}.py), which opens as a notebook.*"
    )
    return "\n\n".join([*parts, note]) + "\n", pictures


def executed(found: Sequence[Cell], script: Path) -> Iterator[tuple[Cell, str, list[bytes]]]:
    """Run cells in one namespace; yield each with what it printed and the pictures (PNG) that it drew."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    values = {"__name__": "__main__", "__file__": str(script)}
    with contextlib.chdir(script.parent), pyplot.rc_context({"figure.dpi": 80}):
        for number, cell in enumerate(found, start=1):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                if cell.is_code:
                    exec(compile(cell.text, f"cell {number} of {script.name}", "exec"), values)
            yield cell, printed.getvalue().strip("\n"), [_png(pyplot.figure(each)) for each in pyplot.get_fignums()]
            pyplot.close("all")


def notebook(name: str) -> str:
    """Return a tutorial as a notebook of Jupyter, without outputs."""
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    found = cells((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    made = [
        (new_code_cell if cell.is_code else new_markdown_cell)(cell.text, id=f"{name}-{k}")
        for k, cell in enumerate(found)
    ]
    language = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return str(nbformat.writes(new_notebook(cells=made, metadata=language)))


def names() -> list[str]:
    """The tutorials."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write pages or notebooks, or say which pages are not up to date."""
    begin_job()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=names(), help="tutorials; default: all")
    parser.add_argument("--notebooks", type=Path, metavar="FOLDER", help="write NAME.ipynb into this folder")
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if a page is not up to date")
    chosen = parser.parse_args(arguments)
    if unknown := sorted(set(chosen.names) - set(names())):
        parser.error(f"no tutorial {', '.join(unknown)}; there are {', '.join(names())}")
    stale = False
    for name in chosen.names:
        target = FOLDER / f"{name}.md"
        if chosen.notebooks is not None:
            write_text(chosen.notebooks / f"{name}.ipynb", notebook(name))
            continue
        text, pictures = page(name)
        if chosen.check:
            lines = (target.read_text(encoding="utf-8") if target.is_file() else "").splitlines()
            difference = list(difflib.unified_diff(lines, text.splitlines(), str(target), "now", lineterm="", n=0))
            print(*difference, sep="\n", end="\n" if difference else "")
            stale = stale or bool(difference)
        else:
            write_text(target, text)
            PICTURES.mkdir(exist_ok=True)
            for file, picture in pictures.items():
                write_bytes(PICTURES / file, picture)
    return int(stale)


def _png(figure: object) -> bytes:
    with io.BytesIO() as file:
        figure.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()


if __name__ == "__main__":
    sys.exit(main())
