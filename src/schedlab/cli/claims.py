"""`schedlab claims`: the ledger of published claims as a table, or as JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError
from schedlab.evaluation.claims import STATUSES, Value, lacks_tables, read_claims, recorded_tables, rows
from schedlab.evaluation.recorded import recorded_answers
from schedlab.figures.verdicts import ratio

WIDTH = 140  # columns of a terminal, which the table does not exceed
COLUMNS = {  # of the table -> of the ledger; the file and the JSON contain more keys of a claim
    "claim": "id",
    "table/figure": "table",
    "quantity": "quantity",
    "published": "published",
    "reference": "ours_reference",
    "repaired": "ours_repaired",
    "tolerance": "tolerance",
    "status": "status",
}
# Widths above which cells are wrapped.
MOST = {"claim": 26, "table/figure": 18, "published": 12, "reference": 12, "repaired": 12, "tolerance": 9, "status": 10}
STATUS_WORDS = (
    "reproduced: reference mode agrees within the tolerance. repaired: a defect of the published system, mended here. "
    "differs: ours does not agree, or was measured on other inputs, as the note in the file says. open: not measured; "
    "`closes_with` in the file says what would be needed."
)
NUMBERS = frozenset({"published", "reference", "repaired", "tolerance"})


def claims(folder: str, study: str | None, as_json: bool = False) -> int:
    """Print every claim with the published value and our values in both modes; return 0. Raises UserError(s)."""
    if not (Path(folder) / "config.yaml").is_file():
        raise UserError(
            f"there is no {folder}/config.yaml",
            expected="a configuration folder",
            remedy="run in a checkout, or name it",
        )
    if lacks_tables(folder):
        raise UserError(
            "there are no recorded tables, which hold our values",
            where=str(recorded_tables(folder)),
            expected="the folder docs/results/ of a checkout, beside its conf/",
            remedy="copy it there, or name the conf/ of a checkout (--conf)",
        )
    ledgers = read_claims(folder, study)
    found = list(rows(ledgers))
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    if not found:
        print("no claims yet")
        return 0
    for line in _counts(found):
        print(line)
    print()
    for name in ledgers:
        own = [row for row in found if row["study"] == name]
        if own:
            lines = [*_origin(Path(folder) / "claims" / f"{name}.yaml", own), *_answers(Path(folder), name)]
            print("\n".join([*lines, "", *_table(own), ""]))
    return 0


def _counts(found: Sequence[Mapping[str, Value]]) -> Iterator[str]:
    """Yield the numbers of claims with each status, first of all studies, then of each."""
    whole = Counter(row["status"] for row in found)
    yield f"{len(found)} published claims: " + ", ".join(
        f"{whole[status]} {status}" for status in STATUSES if whole[status]
    )
    studies = list(dict.fromkeys(str(row["study"]) for row in found))
    for study in studies if len(studies) > 1 else ():
        own = Counter(row["status"] for row in found if row["study"] == study)
        yield f"  {study}: " + ", ".join(f"{own[status]} {status}" for status in STATUSES if own[status])
    yield from textwrap.wrap(STATUS_WORDS, WIDTH)


def _origin(file: Path, own: Sequence[Mapping[str, Value]]) -> list[str]:
    """Return a paragraph that explains the columns of a study's ledger, and that nothing is computed now."""
    papers = "; ".join(dict.fromkeys(str(row["paper"]) for row in own))
    text = (
        f"{own[0]['study']}: published in {papers}. Beside each published value stand ours: `reference` with every "
        "published choice, `repaired` with the published defects mended. They are read from the recorded tables that "
        f"{file.as_posix()} names; nothing is run now. tolerance: the largest "
        "difference that counts as equal (-: none). There, and with --json, each claim names the command that measures "
        "it again, and what has to be known to read it."
    )
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def _answers(folder: Path, study: str) -> Iterator[str]:
    """Yield lines with the answers to the study's questions from its recorded run."""
    for row in recorded_answers(recorded_tables(folder), study):
        answer = (
            f"{row['recipe']} over {row['rival']} in {row['metric']}, {row['scenario']}: {ratio(row)}, {row['verdict']}"
        )
        yield from textwrap.wrap(f"{row['question']} {answer}", WIDTH, subsequent_indent=" ")


def _table(own: Sequence[Mapping[str, Value]]) -> list[str]:
    """Return the lines of a table of the claims, at most WIDTH columns wide; long cells are wrapped."""
    texts = [
        {name: _text(row[key]) for name, key in COLUMNS.items()}
        for row in [dict(zip(COLUMNS.values(), COLUMNS, strict=True)), *own]
    ]
    widths = {name: min(most, max(len(text[name]) for text in texts)) for name, most in MOST.items()}
    rest = WIDTH - sum(widths.values()) - 2 * len(widths)
    widths["quantity"] = min(rest, max(len(text["quantity"]) for text in texts))
    return [line for text in texts for line in _lines(text, widths)]


def _lines(text: Mapping[str, str], widths: Mapping[str, int]) -> Iterator[str]:
    cells = {
        name: textwrap.wrap(text[name], widths[name], subsequent_indent=" " * (name not in NUMBERS)) for name in COLUMNS
    }
    for number in range(max(len(lines) for lines in cells.values())):
        parts = {name: lines[number] if number < len(lines) else "" for name, lines in cells.items()}
        placed = [
            part.rjust(widths[name]) if name in NUMBERS else part.ljust(widths[name]) for name, part in parts.items()
        ]
        yield "  ".join(placed).rstrip()


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value) or "-"
