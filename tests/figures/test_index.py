"""Tests of schedlab.figures.index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schedlab.config.files import write_json
from schedlab.figures.index import SIZES, index_text, spans, write_index

FIGURE = {
    "name": "objective",
    "title": "Objective | by learner",
    "caption": "The running mean.",
    "published": "Fig. 3",
    "scenarios": ["early", "late"],
    "policies": ["exact"],
    "seeds": [0, 1, 2],
    "config_hash": "0123456789abcdef",
    "rests_on": ["a"],
    "command": "snakemake --cores all plots/small/adaptation/objective.svg",
}


WORDS = {
    "adaptation": {
        "terms": {"regret": "what is lost"},
        "policies": {
            "exact": {"learner": "exact", "trained_on": "early+late", "parent": None},
            "further": {"learner": "reinforce", "trained_on": "early > late", "parent": "exact"},
        },
    },
    "batch": {"terms": {}, "policies": {}},
}


def test_every_figure_is_listed_with_what_it_rests_on(tmp_path: Path) -> None:
    for study in ("batch", "adaptation"):
        folder = tmp_path / "small" / study
        write_json(
            folder / "figures.json",
            {"study": study, "question": "when?", "scale": "small", **WORDS[study], "figures": [FIGURE]},
        )
        (folder / "objective.png").touch()
        (folder / "objective.svg").touch()
        (folder / "objective.pdf").touch()
    page = write_index(tmp_path / "small")
    text = page.read_text()
    assert text.index("## adaptation") < text.index("## batch")
    assert text.splitlines()[2] == f"**{SIZES['small']}**"
    for part in ("Fig. 3", "early, late", "0–2", FIGURE["config_hash"], FIGURE["command"], FIGURE["caption"]):
        assert part in text
    glossary = dict(line.split(": ", 1) for line in text.splitlines() if line.startswith("* `"))
    assert list(glossary) == ["* `regret`", "* `exact`", "* `further`"] and glossary["* `regret`"] == "what is lost"
    assert all(part in glossary["* `exact`"] for part in ("`exact`", "early+late"))
    assert all(part in glossary["* `further`"] for part in ("`reinforce`", "early > late", "`exact`"))
    assert "batch-glossary" not in text
    links = re.findall(r"\]\(([^)]+)\)", text)
    files = [link for link in links if not link.startswith("#")]
    assert len(files) == 6
    assert all((page.parent / link).is_file() for link in files)
    assert all(f'id="{link[1:]}"' in text for link in links if link.startswith("#"))
    table = [line for line in text.splitlines() if line.startswith("| [")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 6 for line in table)


@pytest.mark.parametrize(
    ("code", "commit"),
    [
        ({"commit": "c" * 40, "modified": False}, f"`{'c' * 40}` (clean)"),
        ({"commit": "c" * 40, "modified": True}, f"`{'c' * 40}` (edited)"),
        ({"commit": "c" * 40, "modified": False, "source_at_end": "2"}, f"`{'c' * 40}` (edited)"),
        ({"commit": None}, "none"),
    ],
)
def test_the_page_names_the_code_of_each_study_and_no_machine(tmp_path: Path, code, commit) -> None:
    pages = []
    for cores in (1, 2):
        folder = tmp_path / "small/batch"
        listed = {"study": "batch", "question": "when?", "scale": "small", "figures": [FIGURE]}
        write_json(folder / "figures.json", listed)
        made = {"config_hash": "1" * 16, "code_hash": "2" * 16, "schedlab": code, "machine": {"cores": cores}}
        write_json(folder / "provenance.json", made)
        pages.append(write_index(tmp_path / "small").read_text())
    assert pages[0] == pages[1]
    assert f"| `batch` | `{'1' * 16}` | `{'2' * 16}` | {commit} |\n" in pages[0]


def test_spans() -> None:
    assert spans([]) == ""
    assert spans([3]) == "3"
    assert spans([4, 0, 1, 2, 7]) == "0–2, 4, 7"


def test_a_figure_of_records_alone_names_no_scenario() -> None:
    figure = {**FIGURE, "scenarios": [], "policies": [], "seeds": []}
    text = index_text("full", [{"study": "batch", "question": "when?", "scale": "full", "figures": [figure]}])
    assert "| Fig. 3 | – | – | `0123456789abcdef` |" in text
    assert "Published figure: Fig. 3. Configuration `0123456789abcdef`. [SVG]" in text and "seeds ;" not in text


def test_the_page_warns_below_its_heading_where_numbers_mean_nothing() -> None:
    smoke, paper = (
        {"study": "batch", "question": "when?", "scale": scale, "figures": []} for scale in ("smoke", "paper")
    )
    for run in ("smoke", "smoke-dense"):
        assert "These numbers mean nothing" in index_text(run, [smoke]).splitlines()[2]
    assert index_text("paper", [paper]).splitlines()[2].startswith("Made by")
