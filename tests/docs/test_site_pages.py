"""The menu of the site names every page once, and every page that it names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

NOT_ON_THE_SITE = {"results/README.md"}  # the list of recorded tables, which are no part of the site


def pages_of(menu: Any) -> Iterator[str]:
    """Every page below an entry of the menu: a file, a list of entries, or {title: entry}."""
    if isinstance(menu, str):
        yield menu
    else:
        for entry in menu.values() if isinstance(menu, dict) else menu:
            yield from pages_of(entry)


def test_every_page_is_in_the_menu_once(repository: Path) -> None:
    # the base loader makes text of the tags for objects of Python, which MkDocs alone can load
    named = list(pages_of(yaml.load((repository / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]))
    docs = repository / "docs"
    written = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    assert sorted(written - NOT_ON_THE_SITE - set(named)) == [], "add these to nav: in mkdocs.yml"
    assert sorted(set(named) - written) == [] and len(set(named)) == len(named)


def test_each_module_that_a_page_imports_is_documented(repository: Path) -> None:
    text = "\n".join(page.read_text() for page in sorted((repository / "docs").rglob("*.md")))
    documented = re.findall(r"^::: (schedlab[\w.]*)$", text, flags=re.M)
    files = {module: repository / "src" / module.replace(".", "/") for module in documented}
    assert len(files) == len(documented) > 40
    assert not [module for module, file in files.items() if not file.with_suffix(".py").is_file()]
    programs = "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S))
    imported = set(re.findall(r"^ *from (schedlab[\w.]*) import", programs, flags=re.M))
    packages = {module for module in imported if (repository / "src" / module.replace(".", "/")).is_dir()}
    assert sorted(imported - packages - set(documented)) == [], (
        "add these to docs/reference/python.md or python_studies.md"
    )
