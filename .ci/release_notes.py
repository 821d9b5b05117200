"""Print the section of CHANGELOG.md on the present version: python .ci/release_notes.py [TAG]

Ends with a sentence and status 1 where there is no such section, or where TAG is not `v` and the version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import schedlab

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def notes(changelog: str, version: str) -> str | None:
    """Return what a changelog says of a version below its heading, `## VERSION` or `## VERSION, DATE`; else None."""
    heading = re.search(
        rf"^## {re.escape(version)}(?:, \d{{4}}-\d\d-\d\d)?\n(.*?)(?=^## |\Z)", changelog, flags=re.M | re.S
    )
    return heading[1].strip() if heading else None


def main(tags: list[str]) -> str | int:
    """Print the notes; returns 0, or what is wrong."""
    if tags and tags != [f"v{schedlab.__version__}"]:
        return f"the tag {tags[0]} is not v{schedlab.__version__}, the version in src/schedlab/__init__.py: change one"
    found = notes(CHANGELOG.read_text(), schedlab.__version__)
    if not found:
        return f"CHANGELOG.md has no section `## {schedlab.__version__}`: write it"
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
