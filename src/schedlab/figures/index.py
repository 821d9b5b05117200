"""The page that lists all figures of a scale, from the figures.json of each study."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.files import write_text
from schedlab.figures import verdicts


def failures(index: Path) -> dict[str, str]:
    """Return the figures in a figures.json that could not be drawn -> the reason; empty if the file does not exist."""
    if not index.is_file():
        return {}
    figures = json.loads(index.read_text(encoding="utf-8"))["figures"]
    return {figure["name"]: figure["failed"] for figure in figures if figure.get("failed")}


ANSWERS = (
    "Each policy against the best of all its rivals, which was chosen on validation units. Ratio: the policy's score "
    "over the rival's on test units, with its interval over learning seeds and blocks of units; the verdict is "
    "`better` or `worse` where the interval excludes 1."
)
SIZES = {
    "smoke": "Scale smoke: sizes chosen so that a test takes seconds. These numbers mean nothing.",
    "small": "Scale small: real effects with few seeds. Where there is no interval, fewer than five seeds were run; "
    "see the docs for more.",
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
    origin = "Made by `schedlab`; each figure is drawn from the tables of its study alone."
    for study in studies:
        if study.get("terms") or study.get("policies"):
            origin += f" Words and policies of {study['study']}: [glossary](#{study['study']}-glossary)."
    warning = [f"**{SIZES[scale]}**" for scale in sorted({study["scale"] for study in studies} & SIZES.keys())]
    lines = [f"# Figures of the run `{run}`", "", *warning, *([""] if warning else [])]
    if any((answers or {}).values()):
        lines += ["## Answers", "", ANSWERS, "", *verdicts.markdown(answers or {}), "", "## Figures", ""]
    lines += [origin, "", *_origins(studies)]
    lines += ["| figure | published figure | scenarios | seeds | configuration |", "|---|---|---|---|---|"]
    for study in studies:
        for figure in study["figures"]:
            cells = [f"[{study['study']}: {figure['title']}](#{_anchor(study, figure)})", figure["published"] or "–"]
            cells += [
                ", ".join(figure["scenarios"]) or "–",
                spans(figure["seeds"]) or "–",
                f"`{figure['config_hash']}`",
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for study in studies:
        lines += ["", f"## {study['study']}", "", study["question"]]
        for figure in study["figures"]:
            lines += ["", *_section(study, figure)]
        lines += _glossary(study)
    return "\n".join(lines) + "\n"


def _origins(studies: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table with the code that drew each study's figures, which includes the code of their
    results.
    """
    rows = []
    for study in studies:
        if made := study.get("origin"):
            code = made["schedlab"]
            state = "edited" if code.get("modified") or "source_at_end" in code else "clean"
            commit = f"`{code['commit']}` ({state})" if code.get("commit") else "none"
            rows.append(f"| `{study['study']}` | `{made['config_hash']}` | `{made['code_hash']}` | {commit} |")
    head = ["| study | configuration | code | commit, and whether its files were edited |", "|---|---|---|---|"]
    return [*head, *rows, ""] if rows else []


def _glossary(study: Mapping[str, Any]) -> list[str]:
    """Return lines that explain the study's words and the learned policies in its figures; empty if there are
    neither.
    """
    terms, policies = study.get("terms", {}), study.get("policies", {})
    if not terms and not policies:
        return []
    lines = ["", f'<a id="{study["study"]}-glossary"></a>', f"### Words and policies of {study['study']}", ""]
    lines += [f"* `{word}`: {meaning}" for word, meaning in terms.items()]
    for name, policy in policies.items():
        start = f", starting from `{policy['parent']}`" if policy["parent"] else ""
        lines.append(f"* `{name}`: learned by `{policy['learner']}` on {policy['trained_on'] or 'no scenario'}{start}")
    return lines


def spans(seeds: list[int]) -> str:
    """Return sorted integers as text, with ranges for consecutive ones: '0–4, 7'."""
    runs: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _section(study: Mapping[str, Any], figure: Mapping[str, Any]) -> list[str]:
    stem = f"{study['study']}/{figure['name']}"
    published = [f"Published figure: {figure['published']}. "] if figure["published"] else []
    shown = (
        f"Scenarios {', '.join(figure['scenarios'])}; seeds {spans(figure['seeds'])}; " if figure["scenarios"] else ""
    )
    origin = f"{shown}{'configuration' if shown else 'Configuration'} `{figure['config_hash']}`."
    return [
        f'<a id="{_anchor(study, figure)}"></a>',
        f"### {figure['title']}",
        "",
        f"![{figure['title']}]({stem}.png)",
        "",
        figure["caption"],
        "",
        "".join(published) + origin + f" [SVG]({stem}.svg) [PDF]({stem}.pdf)",
        "",
        f"    {figure['command']}",
    ]


def _anchor(study: Mapping[str, Any], figure: Mapping[str, Any]) -> str:
    return f"{study['study']}-{figure['name']}"


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
