"""What the programs docs/generate/<study>_claims.py share: they compute our values of a study's claims, where these
follow from the library alone or from reference data, and write them to docs/results/<study>_claims.csv.

    SCHEDLAB_DATA=DIR python docs/generate/ramp_claims.py [PART ...]     # no part: all; rows of other parts stay

A row is a claim: its id, our values in reference mode and in default mode, and the command, commit, day and code that
made them: a hash of the program and of the library's modules that it reaches (records.py compares it with today's).
`computed_in` in conf/claims/<study>.yaml names the table; tests compare it with what the parts give now.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from schedlab.config.data_paths import CHECKOUT
from schedlab.config.errors import UserError
from schedlab.config.files import write_text
from schedlab.config.runtime import instructions
from schedlab.config.runtime.code import Code
from schedlab.config.runtime.provenance import environment, made_mark, uncommitted_files

FORMS = {"ours_reference": True, "ours_repaired": False}  # -> whether the published defects are in
COLUMNS = ("claim", *FORMS, "command", "commit", "date", "code")
Number = float | int | str
Values = dict[str, dict[str, Number]]  # claim -> ours_reference, ours_repaired or both


def both(name: str, *ours: Number) -> Values:
    """Return the values of one claim: in reference mode and in default mode, or in reference mode alone."""
    return {name: dict(zip(FORMS, ours, strict=False))}


def joined(several: Iterable[Values]) -> Values:
    """Return values that were computed claim by claim or form by form."""
    found: Values = {}
    for values in several:
        for name, ours in values.items():
            found.setdefault(name, {}).update(ours)
    return found


def code_of(study: str, checkout: Path = CHECKOUT) -> str:
    """Return the hash of the code of a checkout that computes the claims of a study, and of the packages that it
    uses.
    """
    program = f"{study}_claims"
    place = {"schedlab": checkout / "src/schedlab", program: checkout / f"docs/generate/{program}.py"}
    found = Code(place).hash([program])
    return made_mark(found["code"], found["packages"])


def write_claims(study: str, parts: Mapping[str, Callable[[], Values]]) -> int:
    """Compute the parts that the command line names, all where it names none, and write their rows."""
    parser = argparse.ArgumentParser(description=f"Compute our values of the claims of the study {study}.")
    parser.add_argument("part", nargs="*", help=f"of {', '.join(parts)}; default: all")
    chosen = parser.parse_args().part or list(parts)
    if unknown := [name for name in chosen if name not in parts]:
        parser.error(f"there is no part {unknown[0]}; choose from {', '.join(parts)}")
    if changed := uncommitted_files():
        parser.error(f"a table names the commit of its code, and {changed[0]} differs from it; commit it first")
    if instructions.pins().items() - os.environ.items():  # as in the workflow's jobs, before libraries are loaded
        instructions.begin_job()
        os.execv(sys.executable, [sys.executable, *sys.argv])
    path = CHECKOUT / f"docs/results/{study}_claims.csv"
    rows = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as lines:
            rows = {row["claim"]: row for row in csv.DictReader(lines)}
    for name in chosen:
        try:
            found = parts[name]()
        except UserError as error:
            parser.error(f"{name}: {error}")
        made = {
            "command": f"python docs/generate/{study}_claims.py {name}",
            "commit": environment()["schedlab"]["commit"][:12],
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "code": code_of(study),
        }
        for claim, ours in found.items():
            rows[claim] = {"claim": claim, **{form: _text(ours.get(form, "")) for form in FORMS}, **made}
        print(f"{name}: {len(found)} claims", flush=True)
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows[claim] for claim in sorted(rows))
    write_text(path, table.getvalue())
    return 0


def _text(value: Number) -> str:
    """A cell: numbers with ten digits, as rounding errors have no place in a table."""
    return value if isinstance(value, str) else f"{value:.10g}"
