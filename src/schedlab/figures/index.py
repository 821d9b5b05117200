"""The page that lists all figures of a scale, from the figures.json of each study."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.files import write_text
from schedlab.figures import verdicts
from schedlab.figures.html import PAGES, render


def failures(index: Path) -> dict[str, str]:
    """Return the figures in a figures.json that could not be drawn -> the reason; empty if the file does not exist."""
    if not index.is_file():
        return {}
    figures = json.loads(index.read_text(encoding="utf-8"))["figures"]
    return {figure["name"]: figure["failed"] for figure in figures if figure.get("failed")}


SIZES = {
    "smoke": "Scale smoke: sizes chosen so that a test takes seconds. These numbers mean nothing.",
    "small": "Scale small: real effects with few seeds. A ratio has no interval if there were fewer than three "
    "learning seeds or two independent test cases.",
}


def write_index(folder: Path | str, headlines: Sequence[Path] = ()) -> Path:
    """Write INDEX.md into plots/<run>/ from every <study>/figures.json below it; return its path.

    headlines: the table `headline` of each study that has one
    """
    folder = Path(folder)
    studies = [_listed(path) for path in sorted(folder.glob("*/figures.json"))]
    target = folder / "INDEX.md"
    answers = {file.parent.name: verdicts.read_answers(file) for file in headlines}
    write_text(target, index_text(folder.name, studies, answers))
    return target


def _listed(file: Path) -> dict[str, Any]:
    """Return the content of a study's figures.json, with the provenance of the job that wrote it under `origin`."""
    listed: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    origin = file.with_name("provenance.json")
    return listed | ({"origin": json.loads(origin.read_text(encoding="utf-8"))} if origin.is_file() else {})


def index_text(
    run: str, studies: Sequence[Mapping[str, Any]], answers: Mapping[str, list[dict[str, Any]]] | None = None
) -> str:
    """Return the page of a run (`small`, `small-dense`): the answers to the studies' questions, the origin of the
    results, a table of all figures, and then each figure with its image, caption and origin. Links are relative to
    plots/<run>/.
    """
    values = {
        "run": run,
        "studies": studies,
        "warnings": [SIZES[scale] for scale in sorted({study["scale"] for study in studies} & SIZES.keys())],
        "answers": verdicts.markdown(answers) if answers and any(answers.values()) else [],
    }
    return render(PAGES, "index.md", {"spans": spans}, **values)


def spans(seeds: list[int]) -> str:
    """Return sorted integers as text, with ranges for consecutive ones: '0–4, 7'."""
    runs: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def report_caption(entry: Mapping[str, Any]) -> str:
    """Return the report's caption of a figure in figures.json, with its published counterpart, scenarios, policies,
    seeds, hash and command.
    """
    facts = {
        "Published figure": entry["published"] or "none",
        "Scenarios": ", ".join(entry["scenarios"]),
        "Policies": ", ".join(entry["policies"]),
        "Seeds": spans(entry["seeds"]),
        "Configuration": entry["config_hash"],
        "Drawn again by": entry["command"],
    }
    lines = [f"* {name}: {plain(text)}" for name, text in facts.items() if text]
    return "\n".join([plain(entry["caption"]), "", *lines]) + "\n"


def plain(text: str) -> str:
    """Return a text escaped so that reStructuredText, and Jinja before it, show it unchanged."""
    return re.sub(r"([^\w\s]|_)", r"\\\1", " ".join(text.split()))
