"""`make report`: built without a network, opened in a browser without one, every category clicked through."""

from __future__ import annotations

import html
import re
import shlex
import shutil
from pathlib import Path

import pytest
from browser import Browser, NoBrowser
from checkouts import Checkout
from open_report import MENU, assert_self_contained, click_through, draw_charts, open_category, open_first_page

from schedlab.evaluation import tables

pytestmark = [pytest.mark.slow, pytest.mark.needs_system]

TITLE = "Guessing <i>a</i> number</script><script>document.title='broken'</script>"
CAPTION = "{{ 7 * 7 }} *x* |y| foo_ <b>z</b>."


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
    try:
        opened = Browser(tmp_path_factory.mktemp("browser"))
    except NoBrowser as missing:
        pytest.skip(str(missing))
    with opened as browser:
        open_first_page(browser, reported.folder / "plots/smoke/report.html")
        yield browser


def test_the_first_page_shows_every_study_beside_what_was_published(reported, page):
    text = " ".join(page.text().split())
    assert "These numbers mean nothing" in text
    for words in (
        "adaptation",
        "hetero",
        "toy",
        "0.7084 convnet2: mean test accuracy",
        "nothing published",
    ):
        assert words in text, words
    answers = tables.read(tables.HEADLINE, reported.folder / "results/smoke/hetero/headline.parquet")
    answers = answers[answers["group"] == "all"]
    assert len(answers)
    for _, row in answers.iterrows():
        said = rf"{row['policy']} .*?{row['rival']} .*?{row['ratio']:.2f}( \[[^]]*\])? {row['verdict']}"
        assert re.search(said, text), said
    page.until("document.querySelector('canvas, .vega-embed svg')")  # the graph of the rules
    assert page.picture(reported.folder / "start.png").stat().st_size > 20_000


def test_each_category_shows_its_pictures_tables_and_captions(reported, page):
    categories = page.run("Object.keys(categories)")
    assert sorted(categories) == ["adaptation", "hetero", "overview", "toy"]
    figures = len(list((reported.folder / "plots/smoke").glob("*/*.svg")))
    assert click_through(page, reported.folder, "smoke") == (figures, 3 + 3)


def test_hostile_words_are_shown_and_not_obeyed(page):
    open_category(page, "toy")
    titles = page.run(f"[...{MENU}].map(row => row.innerText.trim())")
    assert [title.replace("\u2060", "") for title in titles] == [TITLE, "Table of all policies"]
    page.run(f"{MENU}[0].querySelectorAll('a')[1].click()")
    page.until("document.body.innerText.includes('Drawn again by')")
    assert CAPTION in " ".join(page.text().split())
    assert page.run("document.title") == "Snakemake Report"


def test_each_chart_of_the_interactive_page_is_drawn(reported, page):
    assert draw_charts(page, reported.folder / "plots/smoke/report/interactive.html") > 3


def test_nothing_was_asked_of_a_network_and_no_script_failed(page):
    assert_self_contained(page)


def test_every_figure_has_a_caption_that_says_what_it_rests_on(reported):
    text = html.unescape((reported.folder / "plots/smoke/report.html").read_text())
    figures = len(list((reported.folder / "plots/smoke").glob("*/*.svg")))
    assert text.count("Drawn again by: snakemake --cores all plots/smoke/") == figures
