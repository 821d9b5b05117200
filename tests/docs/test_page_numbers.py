"""Tables of the documentation are those of docs/results and of the ledgers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from page_parts import REPOSITORY, RESULTS

import page_tables  # isort: skip
from table_parts import share  # isort: skip


def tables() -> list[Path]:
    """Tables of results; test_measurements.py holds the lists of single measurements."""
    return [path for path in sorted(RESULTS.glob("*.csv")) if not path.name.startswith("measurements_")]


def test_every_table_is_what_the_results_make():
    stale = [path.name for path in page_tables.pages() if page_tables.refreshed(path.read_text()) != path.read_text()]
    assert stale == [], "run: python docs/generate/page_tables.py"


def test_every_table_stands_in_one_page():
    found = [match["name"] for path in page_tables.pages() for match in page_tables.BLOCK.finditer(path.read_text())]
    assert sorted(found) == sorted(page_tables.TABLES)
    marked = sum(path.read_text().count("<!-- from ") for path in page_tables.pages())
    assert marked == len(found)  # a begin without its end would be passed over
    for path in page_tables.pages():
        text = path.read_text()
        assert text.count("<!-- value ") == text.count("<!-- end -->") == len(page_tables.VALUE.findall(text)), path


def test_every_result_is_named_in_a_page():
    text = "".join(path.read_text() for path in page_tables.pages())
    assert [path.name for path in tables() if f"results/{path.name}" not in text] == []


def test_the_list_of_results_says_which_of_them_name_their_configuration():
    row = r"^\| `(\w+\.csv)` \| (?:`python ([\w/.]+)|measured by hand: |by an earlier program)[^|]*\| ([^|]+) \|$"
    listed = re.findall(row, (RESULTS / "README.md").read_text(), flags=re.M)
    assert [name for name, *_ in listed] == [path.name for path in tables()]
    for name, program, said in listed:
        assert not program or (REPOSITORY / program).is_file(), program  # some have none
        columns = set(pd.read_csv(RESULTS / name, nrows=0).columns) & {"config_hash", "configuration"}
        if said.startswith("none"):
            assert "config_hash" not in columns, name
        else:
            (column,) = columns
            assert said == f"`{column}`"
            assert pd.read_csv(RESULTS / name, dtype=str)[column].str.fullmatch("[0-9a-f]{12,16}").all(), name


def test_another_result_makes_another_table(tmp_path, monkeypatch, capsys):
    results = Path(shutil.copytree(RESULTS, tmp_path / "results"))
    file = results / "ramp_learning.csv"
    rows = pd.read_csv(file, dtype={"by_seed": str})
    learned = (rows["scenario"] == "published_a") & (rows["policy"] == "afterstate")
    was = share(rows.loc[learned, "blocking_rate"].item())
    rows.loc[learned, "blocking_rate"] = 0.2793
    rows.to_csv(file, index=False)
    page = (REPOSITORY / "docs/ramp.md").read_text()
    assert "| **`afterstate`** | .279 |" in page_tables.refreshed(page, results)
    stale = tmp_path / "page.md"
    stale.write_text(page.replace(f"| **`afterstate`** | {was} |", "| `afterstate` | .278 |"))
    assert stale.read_text() != page
    monkeypatch.setattr(page_tables, "REPOSITORY", tmp_path)
    monkeypatch.setattr(page_tables, "pages", lambda: [stale])
    monkeypatch.setattr(page_tables, "refreshed", lambda text: page)
    assert page_tables.main(["--check"]) == 1
    assert page_tables.main([]) == 0 and stale.read_text() == page
    assert page_tables.main(["--check"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["page.md", "page.md"]


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("runs.csv; trace=a, seed=1; ratio; .2f", "0.87"),
        ("runs.csv; trace=a; max ratio; .0%", "91 %"),
        ("runs.csv; ; count ratio; d", "3"),
        ("runs.csv;\n trace=big one; seconds; ,d", "12,000"),
    ],
)
def test_a_number_in_a_sentence_is_that_of_its_row(tmp_path, place, number):
    (tmp_path / "runs.csv").write_text("trace,seed,ratio,seconds\na,1,0.871,1\na,2,0.909,2\nbig one,1,1.5,12000\n")
    page = f"It takes <!-- value {place} -->1<!-- end --> times, or <!-- value {place} --><!-- end -->."
    found = page_tables.refreshed(page, tmp_path)
    assert re.sub("<!--.*?-->", "", found, flags=re.S) == f"It takes {number} times, or {number}."
    assert page_tables.refreshed(found, tmp_path) == found


@pytest.mark.parametrize(
    "place",
    [
        "runs.csv; trace=a; ratio",
        "runs.csv; trace=a; ratio; .2f",  # two rows
        "runs.csv; trace=z; max ratio; .2f",  # none
        "runs.csv; track=a; ratio; .2f",
        "runs.csv; trace=a; ratios; .2f",
        "runs.csv; trace=a; most ratio; .2f",
    ],
)
def test_a_marker_names_one_number(tmp_path, place):
    (tmp_path / "runs.csv").write_text("trace,ratio\na,0.871\na,0.909\n")
    with pytest.raises(ValueError, match=re.escape(place)):
        page_tables.refreshed(f"<!-- value {place} -->1<!-- end -->", tmp_path)
