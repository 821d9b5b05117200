"""Numbers that were measured once, by hand: each is listed with the command that measured it, and a page prints it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from page_parts import REPOSITORY

import page_tables  # isort: skip

LISTS = sorted((REPOSITORY / "docs/results").glob("measurements_*.csv"))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_measurement_has_its_command_and_is_printed(path: Path) -> None:
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(rows) == ["id", "number", "unit", "what", "command"] and rows["id"].is_unique and len(rows)
    assert rows["number"].str.fullmatch(r"[\d.,]+( to [\d.,]+)?").all() and (rows["what"] != "").all()
    assert not rows["command"].str.contains("^$|not kept", regex=True).any()
    pages = "".join(page.read_text() for page in page_tables.pages())
    printed = re.findall(rf"<!-- value {path.name};\s+id=([\w-]+);", pages)
    assert set(printed) == set(rows["id"])
