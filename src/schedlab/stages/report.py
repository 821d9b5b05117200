"""The pages of the report without figures: the first page with every study's headline, tables, published numbers,
benchmarks.
"""

from __future__ import annotations

import csv
import math
import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Study
from schedlab.config.files import write_text
from schedlab.config.readers import read_json
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import tables
from schedlab.evaluation.claims import STATUSES, Claim, Ledger, Value, read_ledger
from schedlab.figures import verdicts
from schedlab.figures.html import render
from schedlab.figures.index import SIZES
from schedlab.figures.order import APART
from schedlab.stages import studies
from schedlab.stages.summarise import BEST_RULE, NAMED

if TYPE_CHECKING:
    import pandas as pd

TEMPLATES = Path(__file__).parent / "templates"


def start_page(
    scale: str,
    folders: Mapping[str, Path],
    asked: Mapping[str, Sequence[Mapping[str, Any]]],
    ledgers: Mapping[str, Path],
    target: Path,
) -> None:
    """Write the report's first page as reStructuredText with a table of the answers of all studies.

    folders: study -> folder of its tables and frozen parts; asked: study -> its questions as in conf/study; ledgers:
      study -> its file of claims, if it has one.
    """
    level = " or ".join(f"{100 * each:g} %" for each in sorted({_confidence(folder) for folder in folders.values()}))
    body = render(
        TEMPLATES,
        "start.html",
        FILTERS,
        studies=[_lead(folder, asked[study], _ledger(ledgers, study)) for study, folder in folders.items()],
        warning=SIZES.get(scale),
        level=level,
    )
    lines = ["Headlines", "=========", "", ".. raw:: html", "", textwrap.indent(body, "   "), ""]
    write_text(target, "\n".join(lines))


def results_page(scale: str, folder: Path, target: Path) -> None:
    """Write the table of all policies of a study on the test units of each scenario, the best first. Informed policies,
    oracles and bounds come last.
    """
    study = _study(folder)
    metric = study.leading_metric
    summary, comparisons = _tables(folder)
    tested = summary[(summary["metric"] == metric.name) & (summary["split"] == "test")]
    tested = tested.assign(apart=tested["kind"].isin(APART))
    tested = tested.sort_values(["apart", "value", "policy"], ascending=[True, metric.better == "lower", True])
    page = render(
        TEMPLATES,
        "results.html",
        FILTERS,
        title=f"{study.name}: all policies on test units",
        warning=SIZES.get(scale),
        question=study.question,
        metric=metric,
        scenarios=[
            (scenario, [(row, _measured(row), _against(row, comparisons)) for _, row in rows.iterrows()])
            for scenario, rows in tested.groupby("scenario", sort=True)
        ],
    )
    write_text(target, page)


def claims_page(ledgers: Mapping[str, Path], target: Path) -> None:
    """Write the ledgers of published claims: published values, our values, and whether the two agree."""
    claims = {study: read_ledger(file, study).claims for study, file in ledgers.items()}
    title = "Published numbers and ours"
    write_text(target, render(TEMPLATES, "claims.html", FILTERS, title=title, ledgers=claims, statuses=STATUSES))


def job_costs(results: Path) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Return (study, workflow rule) -> the cost of each of its jobs (job_log.cost_file); jobs for all studies have the
    study "".

    A cost has the keys s, cpu_time (both in s), max_rss (MiB), `earlier` (the CPU seconds with which reused outputs
    were made, see earlier_outputs; else 0) and `ended` (the time of the file, s).
    """
    found: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for file in sorted(results.rglob("*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for last in list(csv.DictReader(lines, delimiter="\t"))[-1:]:
                values = {key: _measurement(last.get(key)) for key in ("s", "cpu_time", "max_rss")}
                note = file.with_suffix(".json")
                earlier = read_json(note, "what outputs took")["cpu_time"] if note.is_file() else 0.0
                study, *below = file.relative_to(results).parts
                found[study if len(below) > 1 else "", file.stem.partition("-")[0]].append(
                    {**values, "earlier": earlier, "ended": file.stat().st_mtime}
                )
    return dict(sorted(found.items()))


def benchmarks_page(results: Path, target: Path) -> None:
    """Write the time and memory of the jobs, by study and workflow rule, from all costs (`<rule>.tsv`,
    `<rule>-<of>.tsv`) of a scale's results.
    """
    title = "Time and memory of the jobs"
    write_text(target, render(TEMPLATES, "benchmarks.html", title=title, costs=job_costs(results)))


def _lead(folder: Path, asked: Sequence[Mapping[str, Any]], ledger: Ledger | None) -> dict[str, Any]:
    """Return the content of a study's part of the first page: the answers to its questions, and the published values
    for comparison.
    """
    study = _study(folder)
    claims = {claim.id: claim for claim in (ledger.claims if ledger else ())}
    answers = verdicts.read_answers(folder / "headline.parquet")
    published = [claims[name] for question in asked for name in question["published"] if name in claims]
    notes = [question["note"] for question in asked if question["note"]]
    unanswered = [each["question"] for each in asked if each["question"] not in {row["question"] for row in answers}]
    found = {"answers": answers, "unanswered": unanswered, "published": published, "notes": notes}
    return {"name": study.name, "question": study.question, **found}


def _measured(row: pd.Series, column: str = "value") -> dict[str, Any]:
    """Return the value and uncertainty in a row of the summary or, with the column `difference`, of the comparisons."""
    interval = not math.isnan(row["ci_low"])
    low, high = (row["ci_low"], row["ci_high"]) if interval else (row["range_low"], row["range_high"])
    found = {"value": row[column], "low": low, "high": high, "interval": interval, "over": row["range_over"]}
    return found | {"seeds": int(row["seeds"]), "units": int(row["units"])}


def _against(row: pd.Series, comparisons: pd.DataFrame) -> dict[str, Any] | None:
    """Return the comparison of a policy with the rule that is best on validation units or, if there is none, with the
    study's baseline.
    """
    same = ["scenario", "policy", "mode", "split", "metric"]
    pairs = comparisons[(comparisons[same] == row[same]).all(axis=1)]
    for role in (BEST_RULE, NAMED):
        for _, found in pairs[pairs["role"] == role].iterrows():
            difference = _measured(found, "difference")
            return {"policy": found["baseline"], "win_rate": found["win_rate"], "difference": difference}
    return None


def _ours(claim: Claim) -> str:
    both = {"reference": claim.ours_reference, "repaired": claim.ours_repaired}
    return ", ".join(f"{_claimed(value)} {mode}" for mode, value in both.items() if value is not None) or "not measured"


def _place(claim: Claim) -> str:
    return f"{claim.paper}: {claim.table}" if claim.table else claim.paper


def _tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables summary and comparisons of a study's folder."""
    summary, comparisons = (
        tables.read(kind, folder / f"{kind.name}.parquet") for kind in (tables.SUMMARY, tables.COMPARISONS)
    )
    return summary, comparisons


def _study(folder: Path) -> Study:
    return studies.of_part(read_part(folder / "config/summarise.yaml"))


def _confidence(folder: Path) -> float:
    return validate(StatisticsSettings, read_part(folder / "config/summarise.yaml").get("statistics") or {}).confidence


def _ledger(ledgers: Mapping[str, Path], study: str) -> Ledger | None:
    return read_ledger(ledgers[study], study) if study in ledgers else None


def _number(value: float) -> str:
    """Return a number with four significant digits; values below 1e-12, which come from rounding, are 0."""
    return "0" if abs(value) < 1e-12 else f"{value:.4g}".replace("-", "−")


def _claimed(value: Value) -> str:
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _measurement(text: str | None) -> float:
    """Return a number of a cost; NA (not measured) gives 0."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


FILTERS: dict[str, Callable[..., str | list[str]]] = {
    "ratio": verdicts.ratio,
    "budgets": verdicts.budgets,
    "number": _number,
    "claimed": _claimed,
    "ours": _ours,
    "place": _place,
}
