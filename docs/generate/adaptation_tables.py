"""The table of docs/adaptation.md: published numbers and ours, of conf/claims/adaptation.yaml."""

from __future__ import annotations

from pathlib import Path

from table_parts import REPOSITORY, page, share

from schedlab.evaluation.claims import Value, read_claims

SHOWN = (
    *("constant-011-ranks", "ranks-early", "ranks-middle", "ranks-late", "ranks-early-middle-late", "scratch-ranks"),
    *("constant-011-accuracy", "best-learned", "five-scenarios", "epochs-equal", "epochs-within-one"),
)


def adaptation_claims(results: Path) -> str:
    """Selected claims of the study, with the notes of the ledger."""
    del results
    ledger = {claim.id: claim for claim in read_claims(REPOSITORY / "conf", "adaptation")["adaptation"].claims}
    rows = [
        [claim.quantity, *map(_cell, (claim.published, claim.ours_reference, claim.ours_repaired)), claim.note]
        for claim in (ledger[name] for name in SHOWN)
    ]
    return page(["", "published", "ours, reference", "ours, repaired", ""], rows)


def _cell(value: Value) -> str:
    """A number, or ranks of several seeds with a comma between seeds; empty where there is none."""
    if isinstance(value, str):
        return value.replace(" | ", ", ")
    if value is None:
        return ""
    return share(value, 4) if value < 1 else f"{value:g}"


TABLES = (adaptation_claims,)
