"""docs/notebook/reliability.md lists each fuzzed reader, file that is not compared and kind of difference."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def test_the_page_lists_every_fuzzed_reader(repository: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(repository / "tests/fuzz")])
    from fuzz_readers import READERS

    page = (repository / "docs/notebook/reliability.md").read_text()
    assert [name for name in READERS if f"| `{name}` |" not in page] == []


def test_the_page_names_every_file_that_is_not_compared(repository: Path) -> None:
    from schedlab.evaluation.promises import NOT_COMPARED

    page = (repository / "docs/notebook/reliability.md").read_text()
    assert [name for name in NOT_COMPARED if f"`{name}`" not in page] == []


def test_the_page_names_the_first_words_of_every_difference(repository: Path) -> None:
    source = (repository / "src/schedlab/evaluation/manifest_differences.py").read_text()
    told = set(
        re.findall(r"f\"((?:other (?:code|Python|package|seed|configuration|input)|(?:changed|missing) file))", source)
    )
    page = (repository / "docs/notebook/reliability.md").read_text()
    assert told
    assert [words for words in told if f"`{words}`" not in page] == []
