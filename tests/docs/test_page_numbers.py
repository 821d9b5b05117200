"""Tables of the documentation are those of docs/results and of the ledgers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from page_sentences import REPOSITORY, RESULTS, ledger, table

import page_tables  # isort: skip
from table_parts import share  # isort: skip


def tables() -> list[Path]:
    """Tables of results; test_measurements.py holds the lists of single measurements."""
    return [path for path in sorted(RESULTS.glob("*.csv")) if not path.name.startswith("measurements_")]


def test_every_table_is_what_the_results_make():
    stale = [path.name for path in page_tables.pages() if page_tables.refreshed(path.read_text()) != path.read_text()]
    assert stale == [], "run: python benchmarks/page_tables.py"


def test_every_table_stands_in_one_page():
    found = [match["name"] for path in page_tables.pages() for match in page_tables.BLOCK.finditer(path.read_text())]
    assert sorted(found) == sorted(page_tables.TABLES)
    marked = sum(path.read_text().count("<!-- from ") for path in page_tables.pages())
    assert marked == len(found)  # a begin without its end would be passed over


def test_every_result_is_named_in_a_page():
    text = "".join(path.read_text() for path in page_tables.pages())
    assert [path.name for path in tables() if f"results/{path.name}" not in text] == []


def test_the_list_of_results_says_which_of_them_name_their_configuration():
    row = r"^\| `(\w+\.csv)` \| (?:`python ([\w/.]+)|measured by hand: )[^|]*\| ([^|]+) \|$"
    listed = re.findall(row, (RESULTS / "README.md").read_text(), flags=re.M)
    assert [name for name, *_ in listed] == [path.name for path in tables()]
    for name, program, said in listed:
        assert not program or (REPOSITORY / program).is_file(), program  # none where it was measured by hand
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
    assert capsys.readouterr().out.splitlines() == ["page.md: is not up to date", "page.md: brought up to date"]


def test_the_published_windows_of_batch_are_those_of_the_ledger():
    claims, page = ledger("batch"), (REPOSITORY / "docs/batch_learning.md").read_text()
    tables = re.findall(r"rollouts, mean of 5 seeds \(least to largest\) \|\n\|[-:|]+\|\n((?:\|.*\n)+)", page)
    assert len(tables) == 2
    for rows, backfill in zip(tables, ("", "-backfill"), strict=True):
        for row in rows.splitlines():
            name, published, *_, seeds = [cell.strip() for cell in row.strip("|").split("|")]
            claim = claims[f"bsld-{name.lower().replace('lublin-', 'lublin')}{backfill}-rl"]
            assert published == f"{claim.published:.2f}"
            assert float(seeds.split()[0]) == pytest.approx(claim.ours_repaired, abs=0.006)


def test_the_loads_of_ramp_are_those_of_the_ledger():
    claims, page = ledger("ramp"), (REPOSITORY / "docs/ramp.md").read_text()
    assert page.count("| s | 50 |") == 1
    (head, most, least) = [
        line.strip("|").split("|") for line in re.search(r"(\| s \| 50 .*)\n.*\n(.*)\n(.*)\n", page).groups()
    ]
    for seconds in (50, 100, 6000, 12000):
        column = [cell.strip() for cell in head].index(str(seconds))
        for cells, rule in ((most, "para-max"), (least, "para-min")):
            assert cells[column].strip() == share(claims[f"load-{rule}-{seconds}"].ours_reference), (rule, seconds)


def test_the_effects_of_defects_are_those_of_the_results():
    """Rows of the errata whose switch was measured alone: para_max and para_min in s, then in ms."""
    found = table("ramp_rules").set_index(["part", "setting", "rule"])["blocking_rate"]
    measured = {setting for part, setting, _ in found.index if part.startswith("defects")} - {"none", "all"}
    rows = re.findall(
        r"^\| \d+ \|.*\| `(\w+)` \|((?: \.\d+ \|){4}) `", (REPOSITORY / "docs/errata.md").read_text(), flags=re.M
    )
    assert {switch for switch, _ in rows} == measured
    for switch, cells in rows:
        expected = [
            share(found[f"defects, {unit}", switch, rule]) for unit in ("s", "ms") for rule in ("para_max", "para_min")
        ]
        assert re.findall(r"\.\d+", cells) == expected, switch
