"""Tables of the documentation are those of docs/results and of the ledgers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from page_parts import REPOSITORY, RESULTS

from schedlab.config.files import file_hash, write_json

import claim_tables  # isort: skip
import page_tables  # isort: skip
import records  # isort: skip
from table_parts import share  # isort: skip


def tables() -> list[Path]:
    """Tables of results; test_measurements.py holds the lists of single measurements."""
    return [path for path in sorted(RESULTS.glob("*.csv")) if not path.name.startswith("measurements_")]


def test_every_table_is_what_the_results_make():
    stale = [path.name for path in page_tables.pages() if page_tables.is_stale(path.read_text())]
    assert stale == [], "run: python docs/generate/page_tables.py"


def test_every_table_stands_in_one_page():
    found = [match["name"] for path in page_tables.pages() for match in page_tables.BLOCK.finditer(path.read_text())]
    assert sorted(found) == sorted(page_tables.TABLES)
    marked = sum(path.read_text().count("<!-- from ") for path in page_tables.pages())
    assert marked == len(found)  # a begin without its end would be passed over
    for path in page_tables.pages():
        text = path.read_text()
        assert text.count("<!-- value ") == text.count("<!-- end -->") == len(page_tables.VALUE.findall(text)), path
        assert not re.search(r"^\s*(\* )?<!-- value ", text, flags=re.M), f"{path}: a marker ends the paragraph here"


def test_every_result_is_named_in_a_page():
    text = "".join(path.read_text() for path in page_tables.pages())
    assert [path.name for path in tables() if f"results/{path.name}" not in text] == []


def test_the_list_of_results_says_which_of_them_name_their_configuration():
    row = r"^\| `(\w+\.csv)` \| (?:`python ([\w/.]+)|by hand: |an earlier program)[^|]*\| ([^|]+) \|$"
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
    page = (REPOSITORY / "docs/notebook/ramp.md").read_text()
    label = "| **`afterstate`** (informed), mean of five seeds |"
    assert f"{label} .279 [" in page_tables.refreshed(page, results)
    stale = tmp_path / "page.md"
    stale.write_text(page.replace(f"{label} {was} [", f"{label} .278 ["))
    assert stale.read_text() != page
    monkeypatch.setattr(page_tables, "REPOSITORY", tmp_path)
    monkeypatch.setattr(page_tables, "pages", lambda: [stale])
    monkeypatch.setattr(page_tables, "refreshed", lambda text, how=None: page)
    assert page_tables.main(["--check"]) == 1
    assert page_tables.main([]) == 0 and stale.read_text() == page
    assert page_tables.main(["--check"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["page.md", "page.md"]


COLUMNS = (
    "question,scenario,metric,policy,recipe,group,rival,rival_chosen_on,ratio,ci_low,ci_high,learning_seeds,share_won,"
    "ratio_to_hindsight,ratio_to_bound,budget,rival_budget,verdict,budget_unit\n"
)
HEADLINE = """faster?,a,time,p-a,p,rules,r,validation,0.5,0.4,0.6,5,0.8,0.55,,,,better,episodes
faster?,a,time,p-a,p,all,s,validation,0.9,0.8,0.95,5,0.7,0.92,1.5,38400,4800,better,episodes
faster?,b,time,p-b,p,all,s,validation,1.1,0.9,1.2,5,0.4,1.2,1.6,38400,5200,not distinguishable,episodes
faster?,a+b,time,p,p,all,s,validation,0.994,0.9,1.1,5,0.55,1.05,1.55,38400,5000,not distinguishable,episodes
"""
RECORD = {
    "form": 1,
    "study": "cloud",
    "scale": "full",
    "run": "full",
    "options": "scale=full",
    "results_version": 1,
    "config_hash": "c",
    "code_hash": "k",
    "scenarios": {},
    "packages": {},
    "python": "3.11",
    "commit": "01234567",
    "date": "2026-12-01",
    "machine": {},
    "cpu_seconds": {},
}


@pytest.fixture
def recorded(tmp_path):
    """docs/results with a record of one study."""
    (tmp_path / "cloud").mkdir()
    (tmp_path / "cloud/headline.csv").write_text(COLUMNS + HEADLINE)
    write_json(
        tmp_path / "cloud/record.json",
        RECORD | {"tables": {"headline.csv": file_hash(tmp_path / "cloud/headline.csv")}},
    )
    return tmp_path


def test_the_headline_is_the_pooled_row_of_each_recorded_study(recorded):
    lines = page_tables.TABLES["headlines"](recorded).splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [row[0] for row in cells] == ["`adaptation`", "`hetero`", "`batch`", "`ramp`", "`cloud`"]
    answer = ["faster?", "`p`", "`s`", "0.99 [0.90, 1.10]", "not distinguishable", "38,400 episodes", "5,000 episodes"]
    assert cells[-1][1:] == [*answer, "5", "`full`, 2026-12-01"]
    assert {tuple(row[2:4]) for row in cells[:-1]} == {("", "")}
    of_study = page_tables.TABLES["cloud_headline"](recorded)
    whole, each = of_study.split("<details")
    rows = [[line for line in part.splitlines() if line.startswith("| ") and "`" in line] for part in (whole, each)]
    assert [len(lines) for lines in rows] == [1, 3]  # all scenarios first
    used = [[cell.strip() for cell in line.split("|")[-3:-1]] for lines in rows for line in lines]
    pairs = [("38,400", "5,000"), (None, None), ("38,400", "4,800"), ("38,400", "5,200")]
    assert used == [[f"{each} episodes" if each else "–" for each in pair] for pair in pairs]  # a rule uses none


def test_a_page_says_with_what_a_table_was_recorded_and_only_the_generator_whether_that_is_today(recorded):
    page = "<!-- from docs/results/cloud/headline.csv: cloud_headline -->\n<!-- end of cloud_headline -->\nmore"
    found = page_tables.refreshed(page, recorded)
    assert "2026-12-01" in found and "01234567" in found and "earlier" not in found
    marked = page_tables.refreshed(page, recorded, how=lambda record: "code")
    assert "earlier code" in marked and records.without_marks(marked) == found
    both = "<!-- from docs/results: headlines -->\n<!-- end of headlines -->"
    marked = page_tables.refreshed(both, recorded, how=lambda record: "configuration")
    assert "earlier configuration" in marked
    assert records.without_marks(marked) == page_tables.refreshed(both, recorded)


def test_a_page_says_which_claims_a_program_computed_with_other_code(tmp_path):
    """Where the generator asks for it, as of records."""
    source, rows = "conf/claims/cloud.yaml", ["claim,code,date", "one,{},2026-12-01", "two,0123,2026-12-02"]
    table = tmp_path / "cloud_claims.csv"
    table.write_text("\n".join(rows).format(claim_tables.code_of("cloud")))
    marked = records.note(source, tmp_path, lambda record: "")
    assert "2026-12-02" in marked and "2026-12-01" not in marked and records.without_marks(f"|{marked}") == "|\n"
    assert records.note(source, tmp_path) == ""
    table.write_text("\n".join(rows[:2]).format(claim_tables.code_of("cloud")))
    assert records.note(source, tmp_path, lambda record: "") == ""


def test_tables_of_scripts_say_that_they_lack_hashes_and_speeds_do_not():
    notes = {
        name: records.note(f"docs/results/{name}", RESULTS)
        for name in ("batch_rewards.csv", "hetero_launch.csv", "core_starts.csv")
    }
    assert [bool(text) for text in notes.values()] == [True, False, False]


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
