"""`schedlab claims`: the ledger of published claims as a table, or as JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from schedlab.config.claims import STATUSES, Value, read_claims, rows
from schedlab.config.errors import UserError

COLUMNS = {  # of the table -> of the ledger
    "study": "study",
    "claim": "id",
    "table": "table",
    "quantity": "quantity",
    "published": "published",
    "reference": "ours_reference",
    "repaired": "ours_repaired",
    "tolerance": "tolerance",
    "status": "status",
}
NUMBERS = frozenset({"published", "reference", "repaired", "tolerance"})


def claims(folder: str, study: str | None, as_json: bool = False) -> int:
    """Print every claim with what is published and what comes out here in both modes; returns 0. Raises UserError(s)."""
    if not (Path(folder) / "config.yaml").is_file():
        raise UserError(f"there is no {folder}/config.yaml", expected="a configuration folder", remedy="run in a checkout, or name it")
    found = list(rows(read_claims(folder, study)))
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    if not found:
        print("no claims yet")
        return 0
    lines = [list(COLUMNS), *([_text(row[key]) for key in COLUMNS.values()] for row in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    for line in lines:
        cells = zip(line, widths, COLUMNS, strict=True)
        print("  ".join(cell.rjust(width) if name in NUMBERS else cell.ljust(width) for cell, width, name in cells).rstrip())
    counts = Counter(row["status"] for row in found)
    print(", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status]))
    return 0


def _text(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
