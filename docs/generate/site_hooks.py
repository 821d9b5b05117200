"""What MkDocs calls when it builds the site: the page of commands, pictures of graphs, links to files that are not on
the site.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

from schedlab.cli import main

sys.path.insert(0, str(Path(__file__).parent))

import site_graphs

REPOSITORY = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[([^][]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
COMMANDS, ANSWERS = "<!-- the help of every command -->", "<!-- the answers of README.md -->"  # where these go
LISTED = re.compile(r"^    ?([a-z][\w-]*)(?:  |$)", flags=re.M)


def on_config(config: Any) -> Any:
    """Let readers choose among versions where mike builds one of them."""
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in answers and the help of commands, draw graphs, and name files outside of docs/ instead of linking to
    them.
    """
    if page.file.src_uri.startswith("notebook/"):
        page.meta["search"] = {"boost": 0.5}  # of what a word finds, guides and reference come first
    folder = (REPOSITORY / "docs" / page.file.src_uri).parent

    def plain(link: re.Match) -> str:
        target = (folder / link[2]).resolve()
        listed = target == REPOSITORY / "docs/results/README.md"
        if not target.is_relative_to(REPOSITORY) or (target.is_relative_to(REPOSITORY / "docs") and not listed):
            return link[0]
        name = target.relative_to(REPOSITORY).as_posix()
        return f"`{name}`" if link[1].strip("`") == name else f"{link[1]} (`{name}`)"

    drawn = site_graphs.with_pictures(LINK.sub(plain, markdown))
    for place, text in ((COMMANDS, help_of_commands), (ANSWERS, answers)):
        drawn = drawn.replace(place, text()) if place in drawn else drawn
    return drawn


def answers() -> str:
    """Return the section of README.md with the answers and a picture of each study."""
    section = (REPOSITORY / "README.md").read_text().partition("## The answers\n")[2].partition("\n## ")[0]
    return f"## The answers\n{section}".replace("](docs/", "](")


def help_of_commands() -> str:
    """Return what each command and each of its sub-commands prints as its help; `run` would print that of Snakemake."""
    names = [name for name in _listed(help_of()) if name != "run"]
    commands = [(name, *word) for name in names for word in ((), *((word,) for word in _listed(help_of(name))))]
    return "\n".join(
        f"{'#' * (len(words) + 1)} schedlab {' '.join(words)}\n\n```text\n{help_of(*words)}```\n" for words in commands
    )


def help_of(*words: str) -> str:
    """Return the help of a command, as the program prints it into a window of 100 columns."""
    os.environ["COLUMNS"] = "100"
    with redirect_stdout(io.StringIO()) as printed, suppress(SystemExit):
        main.main([*words, "--help"])
    return printed.getvalue()


def _listed(text: str) -> list[str]:
    """The commands that a help lists."""
    return LISTED.findall(text.partition("commands:")[2])
