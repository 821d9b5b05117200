"""`make report`: built without a network, opened in a browser without one, every category clicked through."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from browser import Browser
from checkouts import Checkout

from schedlab.evaluation import tables

TITLE = "Guessing <i>a</i> number</script><script>document.title='broken'</script>"
CAPTION = "{{ 7 * 7 }} *x* |y| foo_ <b>z</b>."
MENU = "document.querySelectorAll('table.table-auto tbody tr')"  # the list of a category
PICTURE = "document.querySelector('.p-3 > img')"


def commands(repository: Path, target: str) -> list[list[str]]:
    """Snakemake's arguments in a recipe of the Makefile, at scale smoke."""
    recipe = re.search(rf"^{target}: setup\n((?:\t.*\n)+)", (repository / "Makefile").read_text(), flags=re.M).group(1)
    lines = [line.partition("&& snakemake ")[2] for line in recipe.splitlines() if "snakemake " in line]
    return [shlex.split(line.replace("$(SCALE)", "smoke").replace("$(CORES)", "2")) for line in lines]


@pytest.fixture(scope="module")
def reported(finished_smoke: Checkout, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the smoke run with its report, in which a figure has a title and a caption that are hostile."""
    smoke = Checkout(shutil.copytree(finished_smoke.folder, tmp_path_factory.mktemp("report") / "copy"))
    smoke.edit("conf/figure/toy/costs.yaml", "title: Guessing a number", f'title: "{TITLE}"')
    smoke.edit("conf/figure/toy/costs.yaml", "caption: ", f"caption: '{CAPTION}' #")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")  # nobody answers there
        for arguments in commands(repository, "report"):
            smoke.run(*arguments)
    return smoke


@pytest.fixture(scope="module")
def page(reported: Checkout, tmp_path_factory: pytest.TempPathFactory):
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        browser.open(reported.folder / "plots/smoke/report.html")
        browser.until("document.querySelector('.headlines')")
        yield browser


def test_the_first_page_shows_every_study_beside_what_was_published(reported, page):
    text = " ".join(page.text().split())
    assert "These numbers mean nothing" in text
    for words in (
        "adaptation",
        "hetero",
        "toy",
        "regret to the best sequence",
        "0.7084 convnet2: mean test accuracy",
        "exact-all",
        "nothing published",
    ):
        assert words in text, words
    value = re.search(r"late: exact-all learned on early \+ late (\S+)", text).group(1)
    summary = tables.read(tables.SUMMARY, reported.folder / "results/smoke/adaptation/summary.parquet")
    own = summary.query("scenario == 'late' and policy == 'exact-all' and split == 'test' and metric == 'regret'")
    assert value == f"{own['value'].iloc[0]:.4g}"
    page.until("document.querySelector('canvas, .vega-embed svg')")  # the graph of the rules
    assert page.picture(reported.folder / "start.png").stat().st_size > 20_000


def test_each_category_shows_its_pictures_tables_and_captions(reported, page):
    categories = page.run("Object.keys(categories)")
    assert sorted(categories) == ["adaptation", "hetero", "overview", "toy"]
    figures = shown_tables = 0
    for category in categories:
        open_category(page, category)
        for row in range(page.run(f"{MENU}.length")):
            title = page.run(f"{MENU}[{row}].innerText.trim()")
            page.run(f"{MENU}[{row}].querySelectorAll('a')[0].click()")
            page.until(f"results[app.state.resultPath]?.labels.title.trim() == {json.dumps(title)}")
            if category == "overview" or title == "Table of all policies":
                page.until("document.querySelector('iframe').src == results[app.state.resultPath].data_uri")
                shown = base64.b64decode(page.run("document.querySelector('iframe').src").partition("base64,")[2]).decode()
                assert shown.count("<tr>") > 3 and not re.search(r"(?:src|href)=|<script|url\(", shown)
                shown_tables += 1
            else:
                page.until(f"{PICTURE}.src == results[app.state.resultPath].data_uri && {PICTURE}.complete && {PICTURE}.naturalWidth > 100")
                figures += 1
    assert (figures, shown_tables) == (len(list((reported.folder / "plots/smoke").glob("*/*.svg"))), 3 + 2)


def open_category(page, category):
    page.run("app.setView({navbarMode: 'menu'})")
    page.click(category)
    page.until(f"{MENU}.length > 0 && app.state.category == '{category}'")


def test_hostile_words_are_shown_and_not_obeyed(page):
    open_category(page, "toy")
    titles = page.run(f"[...{MENU}].map(row => row.innerText.trim())")
    assert [title.replace("\u2060", "") for title in titles] == [TITLE, "Table of all policies"]
    page.run(f"{MENU}[0].querySelectorAll('a')[1].click()")
    page.until("document.body.innerText.includes('Drawn again by')")
    assert CAPTION in " ".join(page.text().split())
    assert page.run("document.title") == "Snakemake Report"


def test_nothing_was_asked_of_a_network_and_no_script_failed(page):
    assert page.asked_for and not [url for url in page.asked_for if not url.startswith(("data:", "file:", "blob:"))]
    assert page.errors == []


def test_every_figure_has_a_caption_that_says_what_it_rests_on(reported):
    text = html.unescape((reported.folder / "plots/smoke/report.html").read_text())
    figures = len(list((reported.folder / "plots/smoke").glob("*/*.svg")))
    assert text.count("Drawn again by: snakemake --cores all plots/smoke/") == figures
