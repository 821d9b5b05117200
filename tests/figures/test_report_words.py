"""Texts of a user in the report: captions are reStructuredText and Jinja, tables are HTML, and neither is to be found
in what they say.
"""

from __future__ import annotations

import html
import re

import pytest
from docutils.core import publish_parts
from jinja2 import Environment, UndefinedError

from schedlab.figures.html import escaped, render
from schedlab.figures.index import plain, report_caption

HOSTILE = [
    "</script><script>alert(1)</script>",
    "{{ 7 * 7 }} {% raw %} {# no #}",
    "*bold* `x`_ |y| foo_ a:b: .. raw:: html",
    "1. - + # \\ [1]_ «ü»",
]
ENTRY = {
    "name": "costs",
    "title": "Costs",
    "caption": "Mean of *all* {{ seeds }}.",
    "published": "Fig. 3 <b>",
    "scenarios": ["far", "near"],
    "policies": ["hill_climbing"],
    "seeds": [0, 1, 2, 5],
    "config_hash": "0123456789abcdef",
    "command": "snakemake --cores all plots/small/toy/costs.svg --config scale=small",
}


def shown(caption: str) -> str:
    """The text that a reader of the report sees, made as Snakemake makes it."""
    parts = publish_parts(
        Environment(trim_blocks=True, lstrip_blocks=True).from_string(caption).render(), writer="html"
    )
    assert "system-message" not in parts["body"], parts["body"]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", parts["body"])).split())


@pytest.mark.parametrize("text", HOSTILE)
def test_a_caption_is_shown_as_it_was_written(text):
    assert shown(plain(text)) == text


def test_a_caption_says_what_the_figure_rests_on():
    words = shown(report_caption(ENTRY))
    assert words.startswith(
        "Mean of *all* {{ seeds }}. Published figure: Fig. 3 <b> Scenarios: far, near Policies: hill_climbing Seeds: "
        "0–2, 5"
    )
    assert words.endswith(f"Configuration: 0123456789abcdef Drawn again by: {ENTRY['command']}")


PAGE = """{% extends "page.html" %}{% block body %}<table><tr><td>{{ text }}</td></tr></table>{% endblock %}"""


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_shows_texts_as_they_were_written_and_is_no_template(tmp_path, text):
    (tmp_path / "one.html").write_text(PAGE)
    made = render(tmp_path, "one.html", title=text, text=text)
    body = made.partition("</style>")[2]
    assert (
        not re.search(r"<(?!/?(?:h1|head|body|html|table|tr|th|td)\b)", body)
        and "{{" not in body
        and "{%" not in body
        and "{#" not in body
    )
    assert made.count(escaped(text)) == 3 and html.unescape(escaped(text)) == text


def test_a_page_loads_nothing_and_lacks_no_value(tmp_path):
    (tmp_path / "one.html").write_text(PAGE)
    assert not re.search(r"src=|href=|url\(|@import|https?:", render(tmp_path, "one.html", title="title", text="a"))
    with pytest.raises(UndefinedError):
        render(tmp_path, "one.html", title="title")


def test_a_text_is_no_markup(tmp_path):
    (tmp_path / "one.txt").write_text("{{ share|digits('.1%') }} of {{ text }}\n")
    assert render(tmp_path, "one.txt", share=0.5, text="<b> {}") == "50.0% of <b> {}\n"
