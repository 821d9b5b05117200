"""The pages of the report: which results lead, what is said of them, and that every text is escaped."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from plotly.offline import get_plotlyjs
from test_stages import run_all

import schedlab.results
from schedlab.config.files import write_table
from schedlab.evaluation import tables
from schedlab.figures import verdicts
from schedlab.stages.interactive import charts_of, interactive_page, places
from schedlab.stages.report import benchmarks_page, claims_page, results_page, start_page

if TYPE_CHECKING:
    from conftest import Toy

LEDGER = """name: toy
claims:
  - {id: guess, paper: "A & B", quantity: "cost </script><b>x</b>", published: 0.0,
    computed_in: toy_claims.csv}
  - {id: other, paper: "A & B", table: "T1", quantity: "sequence", published: "011",
    closes_with: "a run at scale full"}
"""
COMPUTED = "claim,ours_reference,ours_repaired,command\nguess,0.0,,a program\n"
ASKED = [
    {"question": "does it climb?", "published": ["guess"], "note": "other <i>numbers</i> {{ 7 * 7 }}"},
    {"question": "and further?", "published": [], "note": ""},
]


@pytest.fixture(scope="module")
def finished(shared_toy: Toy) -> Path:
    """Results of the toy as the workflow lays them, and its ledger."""
    run_all(shared_toy, shared_toy.folder / "out")
    folder = shared_toy.folder / "out/summary"
    (folder / "config").mkdir()
    shutil.copy(shared_toy.folder / "parts/summarise.yaml", folder / "config")
    for name, text in (("conf/claims/toy.yaml", LEDGER), ("docs/results/toy_claims.csv", COMPUTED)):
        (shared_toy.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (shared_toy.folder / name).write_text(text)
    return folder


def words(path: Path) -> str:
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", path.read_text(), flags=re.S)).split())


def test_the_first_page_sets_answers_beside_published_numbers(shared_toy: Toy, finished: Path) -> None:
    page, ledgers = shared_toy.folder / "start.rst", {"toy": shared_toy.folder / "conf/claims/toy.yaml"}
    start_page("smoke", {"toy": finished}, {"toy": ASKED}, ledgers, page)
    text, answers = words(page), verdicts.read_answers(finished / "headline.parquet")
    assert {row["scenario"] for row in answers} == {"near", "far", "near+far"}
    for row in answers:
        assert f"{row['scenario'].replace('+', ' + ')} : hill" in text and row["rival"] in text
        assert verdicts.ratio(row) in text and row["verdict"] in text
    assert "and further? nothing to say at this scale" in text
    assert "0 cost </script><b>x</b> (A & B) ; ours: 0 reference (reproduced) other <i>numbers</i> {{ 7 * 7 }}" in text
    assert "These numbers mean nothing" in text and "95 % interval" in text
    assert "<b>x" not in page.read_text() and "{{" not in page.read_text()
    start_page("full", {"toy": finished}, {"toy": []}, {}, page)
    assert "mean nothing" not in words(page) and "nothing published" in words(page)


def test_results_compare_a_pair_as_the_workflow_compared_it(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "toy")
    run = schedlab.results.load(tmp_path)
    assert all(table.columns[0] == "study" for table in (run.scores, run.curves, run.summary, run.headline))
    pairs = run.comparisons.query("split == 'test'").drop_duplicates(["scenario", "policy", "baseline", "metric"])
    same = ["difference", "ci_low", "ci_high", "relative", "win_rate", "seeds", "units", "blocks"]
    assert pairs["ci_low"].notna().any()
    for _, pair in pairs.iterrows():
        found = run.compare(pair["policy"], pair["baseline"], pair["metric"]).set_index("scenario")
        pd.testing.assert_series_equal(
            found.loc[pair["scenario"], same].astype(float), pair[same].astype(float), check_names=False
        )


def test_a_study_that_asks_nothing_says_so(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "toy")
    tables.write(tables.HEADLINE, tmp_path / "toy/headline.parquet", tables.build(tables.HEADLINE, ()))
    start_page("small", {"toy": tmp_path / "toy"}, {"toy": []}, {}, tmp_path / "start.rst")
    assert "nothing is asked under headline:" in words(tmp_path / "start.rst")


def test_the_charts_show_what_the_tables_hold(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "toy")
    curves = tables.read(tables.CURVES, finished / "curves.parquet")
    answer = next(row for row in verdicts.read_answers(finished / "headline.parquet") if row["scenario"] == "near")
    common = {"scenario": "near", "policy_seed": 0, "split": "test", "unit": "u1", "job_id": [1, 2, 3]}
    jobs = common | {"start": [0.0, 0.0, 5.0], "run": [5.0, 9.0, 1.0], "procs": [2, 1, 3]}
    names = (answer["policy"], answer["rival"])
    write_table(tmp_path / "toy/details/jobs.parquet", pd.concat(pd.DataFrame(jobs | {"policy": n}) for n in names))
    *lines, gantt = charts_of(tmp_path / "toy")
    assert len(lines) == curves.groupby(["train_scenario", "split", "metric"]).ngroups > 0
    _, shown = next(iter(curves.groupby(["train_scenario", "split", "metric"])))
    expected = shown[shown["policy"] == lines[0].data[0].name].groupby("step")["value"].mean()
    assert list(lines[0].data[0].x) == expected.index.tolist()
    assert list(lines[0].data[0].y) == pytest.approx(expected.tolist())
    boxes = gantt.data[0]
    assert len(gantt.data) == 2 and list(boxes.base) == [0, 0, 5, 5] and list(boxes.x) == [5, 9, 1, 1]
    assert list(boxes.y) == [0, 2, 0, 3] and list(boxes.width) == [2, 1, 2, 1]  # the third job has places 0, 1 and 3


def test_places_are_those_that_were_recorded() -> None:
    assert places(pd.DataFrame({"allocation": ["0-3 5", "2"]})) == [(0, 0, 3), (0, 5, 5), (1, 2, 2)]


def test_the_interactive_page_is_whole_and_no_name_ends_a_script(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "toy")
    curves = pd.read_parquet(finished / "curves.parquet")
    write_table(tmp_path / "toy/curves.parquet", curves.assign(policy="</script><b>x"))
    interactive_page("smoke", {"toy": tmp_path / "toy"}, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    own = page.replace(get_plotlyjs(), "")
    assert len(page) - len(own) == len(get_plotlyjs()), "the script of Plotly is in the page once"
    assert "<b>x" not in own and not re.search(
        r"src=|href=|https?:", re.sub(r"<script.*?</script>", "", own, flags=re.S)
    )
    charts = re.findall(r'<script type="application/json" class="data">(.*?)</script>', own)
    assert len(charts) == own.count("<option>") > 0
    assert json.loads(charts[0])["data"][0]["name"] == "</script><b>x"


@pytest.mark.parametrize("oracle", [None, "best", "worst"])
def test_the_table_of_a_study_has_the_best_policy_first_and_oracles_last(
    finished: Path, tmp_path: Path, oracle: str | None
) -> None:
    shutil.copytree(finished, tmp_path / "toy")
    summary = tables.read(tables.SUMMARY, finished / "summary.parquet")
    shown = summary.query("scenario == 'far' and split == 'test' and metric == 'cost'").sort_values("value")
    expected = shown["policy"].tolist()
    if oracle:
        name = expected.pop(0 if oracle == "best" else -1)
        expected.append(name)
        summary.loc[summary["policy"] == name, "kind"] = "oracle"
        write_table(tmp_path / "toy/summary.parquet", summary)
    page = tmp_path / "toy.html"
    results_page("smoke", tmp_path / "toy", page)
    table = page.read_text().partition("<h2>far</h2>")[2].partition("</table>")[0]
    assert re.findall(r'<tr><td class="whole">([^<]*)<', table) == expected
    assert ("colspan" in table) == bool(oracle) and "These numbers mean nothing" in words(page)


def test_the_ledgers_are_shown_whole(shared_toy: Toy, finished: Path) -> None:
    page = shared_toy.folder / "claims.html"
    claims_page({"toy": shared_toy.folder / "conf/claims/toy.yaml"}, page)
    assert "1 reproduced, 0 repaired, 0 differs, 1 open" in words(page)
    assert (
        "cost </script><b>x</b> 0 0 – reproduced" in words(page)
        and "A & B: T1" in words(page)
        and "sequence 011 – – open" in words(page)
    )
    assert finished and "<b>x" not in page.read_text()


def test_benchmarks_are_summed_by_study_and_rule(tmp_path: Path) -> None:
    for name, line in {
        "toy/far/benchmarks/evaluate-rules.tsv": "2.5\t100\t1.5\n4.0\t120\t3.0",  # run twice: the last counts
        "toy/near/benchmarks/evaluate-rules.tsv": "6.0\tNA\t-",
        "toy/benchmarks/draw.tsv": "1.0\t80\t1.0",
        "toy/inputs/make_trace-0123456789ab/make_trace.tsv": "3.0\t90\t2.0",  # what scenarios share
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"s\tmax_rss\tcpu_time\n{line}\n")
    benchmarks_page(tmp_path, tmp_path / "page.html")
    assert words(tmp_path / "page.html").endswith(
        "toy draw 1 1 1 1 80 toy evaluate 2 10 6 3 120 toy make_trace 1 3 3 2 90"
    )
