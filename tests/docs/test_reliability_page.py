"""The page about reliability lists every fuzzed reader, every promise and every kind of difference."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def test_the_page_lists_every_fuzzed_reader(repository: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(repository / "tests/fuzz")])
    from fuzz_readers import READERS

    page = (repository / "docs/reliability.md").read_text()
    assert [name for name in READERS if f"| `{name}` |" not in page] == []


def test_the_page_states_the_promises_of_the_code(repository: Path) -> None:
    from schedlab.evaluation.promises import NOT_COMPARED, PROMISES

    page = (repository / "docs/reliability.md").read_text()
    rows = [
        f"| `{kind}` | {', '.join(f'`{part}`' for part in promise.made_by)} | "
        f"{f'{promise.relative:g}' if promise.relative else '0: the same bytes'} | {promise.meaning} |"
        for kind, promise in PROMISES.items()
    ]
    assert [row for row in rows if row not in page] == []
    assert all(f"`{name}`" in page for name in NOT_COMPARED)


def test_the_page_names_the_first_words_of_every_difference(repository: Path) -> None:
    source = (repository / "src/schedlab/evaluation/manifest_differences.py").read_text()
    told = set(
        re.findall(r"f\"((?:other (?:code|Python|package|seed|configuration|input)|(?:changed|missing) file))", source)
    )
    page = (repository / "docs/reliability.md").read_text()
    assert told
    assert [words for words in told if f"`{words}`" not in page] == []
