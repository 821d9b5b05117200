"""The page about reliability says how many inputs each reader gets, as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def test_the_page_lists_every_fuzzed_reader_with_its_number_of_inputs(repository: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(repository / "tests/fuzz")])
    from fuzz_readers import READERS

    page = (repository / "docs/reliability.md").read_text()
    rows = dict(re.findall(r"^\| `([\w-]+)` \| .* \| (\d+) \|$", page, flags=re.M))
    assert rows == {name: str(reader.suite) for name, reader in READERS.items()}
    assert f"{sum(reader.suite for reader in READERS.values()):,} inputs in the test suite" in page
