"""What mkdocstrings calls for each docstring: paragraphs of `name  meaning` become lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

ENTRY = re.compile(r"([\w.*]+(?:, [\w.*]+)*)(?: {2,}|: )(\S.*)")


class Lists(griffe.Extension):
    """Makes a list of each paragraph of a docstring whose lines, but for indented ones, say what a name means."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = "\n\n".join(map(with_list, obj.docstring.value.split("\n\n")))


def with_list(paragraph: str) -> str:
    """Return a paragraph as a list, where it is one; else as it is."""
    lines = paragraph.splitlines()
    entries = [ENTRY.fullmatch(line) for line in lines if not line.startswith(" ")]
    if not lines or lines[0].startswith(" ") or not all(entries):
        return paragraph
    return "\n".join(
        line if line.startswith(" ") else f"* `{match[1]}`: {match[2]}"
        for line, match in ((line, ENTRY.fullmatch(line)) for line in lines)
    )
