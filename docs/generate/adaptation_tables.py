"""The tables of docs/studies/adaptation.md: published numbers and ours, and what the recorded run of the study says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from table_parts import REPOSITORY, page, share

from schedlab.evaluation.claims import Value, read_claims
from schedlab.evaluation.recorded import read_rows

SHOWN = (
    *("constant-011-ranks", "ranks-early", "ranks-middle", "ranks-late", "ranks-early-middle-late", "scratch-ranks"),
    *("constant-011-accuracy", "five-scenarios", "epochs-equal", "epochs-within-one"),
)

DEFAULT = ("early", "early_middle", "middle", "middle_late", "late")
NOT_RECORDED = "Not recorded yet; `schedlab record full adaptation` writes it after a finished run."


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
    return share(value, 4) if value < 1 else f"{value:.4g}"


def adaptation_reliability(results: Path) -> str:
    """How far the order of the sequences of each scenario can be trusted, and what growing can save there."""
    found = _tested(results)
    if not found:
        return NOT_RECORDED
    rows = []
    for scenario in DEFAULT:
        noise, share_due = (found[scenario, "never", metric]["value"] for metric in ("noise", "reliability"))
        losses = [found[scenario, name, "validation_log_loss"] for name in ("never", "best-constant", "exhaustive")]
        start = f"{float(losses[0]['adapt_at']):g} s"
        rows.append([f"`{scenario}`", start, share(float(share_due), 2), share(float(noise), 4), *map(_loss, losses)])
    header = ["scenario", "growth from", "share due to the sequence", "noise of one result"]
    return page([*header, "`never`", "`best-constant`", "`exhaustive`"], rows, "lrrrrrr")


def adaptation_policies(results: Path) -> str:
    """The test log loss of every policy in the five scenarios, the smallest mean first."""
    found = _tested(results)
    if not found:
        return NOT_RECORDED
    losses, kinds = {}, {}
    for policy in dict.fromkeys(policy for _, policy, _ in found):
        cells = [found.get((scenario, policy, "test_log_loss")) for scenario in DEFAULT]
        if known := [cell for cell in cells if cell]:
            losses[policy], kinds[policy] = [float(cell["value"]) for cell in known], known[0]["kind"]
    whole = {policy: values for policy, values in losses.items() if len(values) == len(DEFAULT)}
    rows = [
        [f"`{policy}`", kinds[policy], *(share(value) for value in (sum(values) / len(values), *values))]
        for policy, values in sorted(whole.items(), key=lambda entry: (sum(entry[1]), entry[0]))
    ]
    header = ["policy", "kind", "mean", *(f"`{scenario}`" for scenario in DEFAULT)]
    return page(header, rows, "ll" + "r" * (1 + len(DEFAULT)))


def _tested(results: Path) -> dict[tuple[str, str, str], Mapping[str, str]]:
    """(scenario, policy, metric) -> the row of the recorded summary on test units; empty without a record."""
    if not (results / "adaptation/summary.csv").is_file():
        return {}
    rows = (row for row in read_rows(results, "adaptation/summary") if row["split"] == "test")
    return {(row["scenario"], row["policy"], row["metric"]): row for row in rows}


def _loss(row: Mapping[str, str]) -> str:
    """A log loss with its interval where it has one."""
    interval = [share(float(row[name])) for name in ("ci_low", "ci_high") if row[name]]
    return share(float(row["value"])) + (f" [{', '.join(interval)}]" if interval else "")


TABLES = (adaptation_claims, adaptation_reliability, adaptation_policies)
