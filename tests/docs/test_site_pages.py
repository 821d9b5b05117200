"""The menu of the site names every page once, and every page that it names is there."""

from __future__ import annotations

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
