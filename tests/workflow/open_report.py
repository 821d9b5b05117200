"""Open a report that was built and click through it: python tests/workflow/open_report.py [FOLDER] [--scale smoke]

FOLDER holds results/ and plots/ (default: here). Every study with a summary has to have its headline on the first page
and a category with all its figures, their captions and its table; the overview two tables and the page of charts, each
of which is drawn. Ends with an AssertionError that says what is missing. Where there is no Chromium, it says so and
opens nothing; the status is then 1 with --required.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from browser import Browser, NoBrowser

MENU = "document.querySelectorAll('table.table-auto tbody tr')"  # the list of a category
SHOWN = "results[app.state.resultPath]"
PICTURE = "document.querySelector('.p-3 > img')"
OVERVIEW, TABLE, CHARTS = "overview", "Table of all policies", "Interactive curves and Gantt charts"


def open_first_page(browser: Browser, report: Path) -> None:
    """Open a report and wait for its first page."""
    browser.open(report)
    browser.until("document.querySelector('.headlines')")


def open_category(browser: Browser, category: str) -> None:
    """Show the list of a category."""
    browser.run("app.setView({navbarMode: 'menu'})")
    browser.click(category)
    browser.until(f"{MENU}.length > 0 && app.state.category == '{category}'")


def click_through(browser: Browser, folder: Path, scale: str) -> tuple[int, int]:
    """Look at every picture, caption and table of the open report of a run; returns how many pictures and tables there
    are.
    """
    studies = [summary.parent.name for summary in (folder / "results" / scale).glob("*/summary.parquet")]
    assert studies, f"no study in {folder / 'results' / scale}"
    drawn = {
        study: {f"plots/{scale}/{study}/{file.name}" for file in (folder / "plots" / scale / study).glob("*.svg")}
        for study in studies
    }
    headlines = browser.run("[...document.querySelectorAll('.headlines td.study strong')].map(each => each.innerText)")
    assert sorted(headlines) == sorted(drawn), f"headlines of {headlines} alone"
    categories = browser.run("Object.keys(categories)")
    assert sorted(categories) == sorted([*drawn, OVERVIEW]), f"categories: {categories}"
    tables = 0
    for category in categories:
        pictures, shown_tables = look_at_category(browser, category)
        assert pictures == drawn.get(category, set()), f"{category}: {sorted(pictures ^ drawn.get(category, set()))}"
        assert shown_tables == (3 if category == OVERVIEW else 1), f"{category}: {shown_tables} tables"
        tables += shown_tables
    return sum(map(len, drawn.values())), tables


def look_at_category(browser: Browser, category: str) -> tuple[set[str], int]:
    """Look at every entry of a category, and at the captions of pictures; returns the pictures' files and how many
    tables it has.
    """
    open_category(browser, category)
    pictures, tables = {}, 0
    for row in range(browser.run(f"{MENU}.length")):
        title = browser.run(f"{MENU}[{row}].innerText.trim()")
        browser.run(f"{MENU}[{row}].querySelectorAll('a')[0].click()")
        browser.until(f"{SHOWN}?.labels.title.trim() == {json.dumps(title)}")
        if category == OVERVIEW or title == TABLE:
            browser.until(f"document.querySelector('iframe').src == {SHOWN}.data_uri")
            table = base64.b64decode(
                browser.run("document.querySelector('iframe').src").partition("base64,")[2]
            ).decode()
            if title == CHARTS:
                assert table.count('class="data"') == table.count("<option>") > 0, title
            else:
                assert table.count("<tr>") > 3 and not re.search(r"(?:src|href)=|<script|url\(", table), (
                    f"{category}: {title}"
                )
            tables += 1
        else:
            browser.until(f"{PICTURE}.src == {SHOWN}.data_uri && {PICTURE}.complete && {PICTURE}.naturalWidth > 100")
            pictures[browser.run("app.state.resultPath")] = row
    for file, row in pictures.items():
        open_category(browser, category)
        browser.run(f"{MENU}[{row}].querySelectorAll('a')[1].click()")
        browser.until(f"document.body.innerText.includes('Drawn again by: snakemake --cores all {file} ')")
    return set(pictures), tables


def draw_charts(browser: Browser, page: Path) -> int:
    """Draw every chart of the interactive page; returns how many there are."""
    browser.open(page)
    number = browser.run("choice.options.length")
    for place in range(number):
        browser.run(f"choice.selectedIndex = {place}; show()")
        browser.until("document.querySelectorAll('#chart .scatterlayer .trace, #chart .barlayer .trace').length > 0")
        title = browser.run("document.querySelector('#chart .gtitle').textContent")
        assert title == browser.run("choice.options[choice.selectedIndex].text")
    return number


def assert_self_contained(browser: Browser) -> None:
    """Hold that nothing was asked of a network, and that no script of a page failed."""
    assert browser.asked_for and not [
        url for url in browser.asked_for if not url.startswith(("data:", "file:", "blob:"))
    ]
    assert browser.errors == []


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the report of a folder; returns 0, or 1 where it had to be opened and there is no browser."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="with results/ and plots/; default: here")
    parser.add_argument("--scale", default="smoke")
    parser.add_argument("--required", action="store_true", help="fail where there is no Chromium")
    chosen = parser.parse_args(arguments)
    folder = chosen.folder.resolve()
    with tempfile.TemporaryDirectory(prefix="report-") as scratch:
        try:
            with Browser(Path(scratch)) as browser:
                open_first_page(browser, folder / f"plots/{chosen.scale}/report.html")
                pictures, tables = click_through(browser, folder, chosen.scale)
                charts = draw_charts(browser, folder / f"plots/{chosen.scale}/report/interactive.html")
                assert_self_contained(browser)
        except NoBrowser as missing:
            print(f"the report was NOT opened: {missing}")
            return int(chosen.required)
    print(f"the report was opened: {pictures} pictures with captions, {tables} tables, {charts} charts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
