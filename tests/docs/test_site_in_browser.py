"""The site of the documentation, built and opened in a browser that reaches no network."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, NoBrowser

from schedlab.stages import studies

pytestmark = [pytest.mark.slow, pytest.mark.needs_system]

WORD = "backfilling"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
NO_NETWORK = ("data:", "file:", "blob:", "about:")
KEYS = {"Tab": 9, "Enter": 13, "ArrowDown": 40}


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site that was built as `make docs` builds it, so without a warning."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("needs the packages of the site: make setup-docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    without_notice = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=repository, env=without_notice, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr[-3000:]
    return folder


@pytest.fixture
def browser(site: Path, tmp_path: Path) -> Iterator[Browser]:
    """A browser that shows the first page; whatever it is used for, no script fails and no other host is asked."""
    try:
        with Browser(tmp_path) as opened:
            opened.open(site / "index.html")
            yield opened
            assert opened.errors == []
            assert [address for address in opened.asked_for if not address.startswith(NO_NETWORK)] == []
    except NoBrowser as missing:
        pytest.skip(str(missing))


def test_commands_graphs_answers_and_modules_are_filled_in(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text()
    assert not [name for name in studies.summaries() if f'<h2 id="schedlab-{name}"' not in commands]
    assert '<h3 id="schedlab-trace-clean"' in commands and "--help" in commands
    architecture = (site / "architecture.html").read_text()
    assert architecture.count('<svg class="graph"') == 2 and "--&gt;" not in architecture.partition("Rooms</h2>")[2]
    assert 'id="the-answers"' in (site / "index.html").read_text()
    python = (site / "reference/python.html").read_text()
    assert 'id="schedlab.config.contract.Study"' in python and 'id="schedlab.figures.panels.bars"' in python


def press(browser: Browser, key: str) -> None:
    """Press a key and release it."""
    text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
    code = KEYS.get(key, ord(key[0].upper()))
    for kind in ("keyDown", "keyUp"):
        more = {"text": text} if text and kind == "keyDown" else {}
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)


def test_a_word_is_searched_for_and_its_page_opened_by_keys_alone(browser: Browser) -> None:
    browser.until("document.querySelector('[data-md-component=search-result] .md-search-result__meta')")
    press(browser, "/")
    browser.until("document.activeElement.matches('[data-md-component=search-query]')")
    for letter in WORD:
        press(browser, letter)
    browser.until(f"document.querySelector('.md-search-result__list').innerText.toLowerCase().includes('{WORD}')")
    press(browser, "ArrowDown")
    browser.until("document.activeElement.matches('.md-search-result__link')")
    press(browser, "Enter")
    browser.until("!location.pathname.endsWith('/index.html') && document.readyState == 'complete'")
    assert WORD in browser.run("document.querySelector('article').innerText.toLowerCase()")


def test_keys_reach_the_text_and_the_next_page(browser: Browser) -> None:
    press(browser, "Tab")
    assert browser.run("document.activeElement.matches('a.md-skip')"), "the first stop is the link to the text"
    press(browser, "Enter")
    browser.until("location.hash")
    assert browser.run("document.querySelector('article').contains(document.querySelector(location.hash))")
    stops = set()
    for _ in range(3):
        press(browser, "Tab")
        stops.add(browser.run("document.activeElement.href"))
        assert browser.run("document.querySelector('article').contains(document.activeElement)")
        assert browser.run("getComputedStyle(document.activeElement).outlineStyle != 'none'"), "the stop is visible"
    assert len(stops) == 3
    following = browser.run("document.querySelector('a.md-footer__link--next').href")
    press(browser, "n")
    browser.until(f"location.href == '{following}'")


def test_dark_mode_stays_on_the_next_page(site: Path, browser: Browser) -> None:
    light = browser.run(BACKGROUND)
    browser.run("document.querySelector('form[data-md-component=palette] label:not([hidden])').click()")
    browser.until("document.body.dataset.mdColorScheme == 'slate'")
    dark = browser.run(BACKGROUND)
    assert sum(map(int, numbers(dark))) < 200 < 600 < sum(map(int, numbers(light)))
    browser.open(site / "architecture.html")
    assert browser.run(BACKGROUND) == dark


def numbers(colour: str) -> list[str]:
    """The parts of a colour such as rgb(1, 2, 3)."""
    return colour.removeprefix("rgb(").removesuffix(")").split(",")[:3]


def test_every_page_shows_its_pictures_and_fits_on_a_telephone(site: Path, browser: Browser) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    pictures, too_wide = 0, {}
    for page in sorted(site.rglob("*.html")):
        browser.open(page)
        browser.run("document.querySelectorAll('img').forEach(image => image.loading = 'eager')")
        browser.until("[...document.images].every(image => image.complete)")
        broken = browser.run("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)")
        assert broken == [], page.name
        pictures += browser.run("document.querySelectorAll('article img, article svg.graph').length")
        width = browser.run("document.documentElement.scrollWidth")
        if width > 360:
            too_wide[page.relative_to(site).as_posix()] = width
    assert too_wide == {}
    assert pictures >= 9, "a picture of each study, two of growth, and two graphs of the architecture"
