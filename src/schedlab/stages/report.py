"""The pages that the report has beside the figures: the first page with every study's headline, tables, published
numbers, benchmarks.
"""

from __future__ import annotations

import csv
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.contract import Metric, Study
from schedlab.config.files import write_text
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import tables
from schedlab.evaluation.claims import STATUSES, ClaimSettings, ClaimsSettings, Value, read_ledger
from schedlab.figures.html import escaped, page, table
from schedlab.figures.index import SIZES
from schedlab.stages import studies
from schedlab.stages.headlines import Against, Headline, Measured, against, headline_metric, headlines, measured
from schedlab.stages.summarise import BEST_RULE

if TYPE_CHECKING:
    import pandas as pd

START_STYLE = """<style>
.h-screen:has(.headlines) { align-items: flex-start; }
.flex:has(> div > .prose > .headlines), .flex:has(> div > .prose .headlines) { flex-direction: column; }
.prose:has(.headlines) { max-width: 76rem; }
.headlines { font-size: 12.5px; line-height: 1.4; } .headlines table { margin: .5rem 0; font-size: inherit; }
.headlines td, .headlines th { padding: .4rem .6rem; text-align: left; vertical-align: top; }
.headlines .published { min-width: 19rem; } .headlines .study { width: 12rem; } .headlines .what { min-width: 11rem; }
.headlines .small { color: #6b7280; font-size: .92em; }
.headlines .value { font-weight: 600; white-space: nowrap; } .headlines .whole { white-space: nowrap; }
.headlines .better { color: #047857; } .headlines .worse { color: #b91c1c; }
.headlines .warning { border-left: 4px solid #b45309; background: #fffbeb; padding: .5rem .8rem; }
</style>"""
HEAD = (
    "Study",
    "Scenario and learned policy",
    "Result of this run",
    "Compared with",
    "Difference, unit by unit",
    "Published, and ours in the ledger",
)
POLICY_HEAD = (
    "policy",
    "kind",
    "interval or range",
    "seeds",
    "units",
    "against",
    "difference",
    "interval or range",
    "wins",
)
CLAIM_HEAD = ("quantity", "published", "reference", "repaired", "status")
BENCHMARK_HEAD = ("study", "workflow rule", "jobs", "time, s", "longest, s", "processor time, s", "largest memory, MB")
ROLES = {BEST_RULE: "best rule on validation units", "baseline": "the study's baseline"}


def start_page(scale: str, folders: Mapping[str, Path], ledgers: Mapping[str, Path], target: Path) -> None:
    """Write the report's first page as reStructuredText with a table of all studies.

    folders: study -> folder of its summary, comparisons and frozen parts; ledgers: study -> its file of claims, where
      it has one.
    """
    rows = [row for study, folder in folders.items() for row in _study_rows(folder, _ledger(ledgers, study))]
    level = " or ".join(f"{100 * each:g} %" for each in sorted({_confidence(folder) for folder in folders.values()}))
    body = [START_STYLE, '<div class="headlines">', *_warning(scale)]
    body += [
        "<table>",
        "<thead><tr>" + "".join(f"<th>{name}</th>" for name in HEAD) + "</tr></thead><tbody>",
        *rows,
        "</tbody></table>",
    ]
    body += [f"<p>{text}</p>" for text in _legend(level)] + ["</div>"]
    lines = ["Headlines", "=========", "", ".. raw:: html", "", textwrap.indent("\n".join(body), "   "), ""]
    write_text(target, "\n".join(lines))


def results_page(scale: str, folder: Path, target: Path) -> None:
    """Write the table of all policies of a study on the test units of each scenario, the best first."""
    study = _study(folder)
    metric = headline_metric(study.metrics)
    summary, comparisons = (
        tables.read(kind, folder / f"{kind.name}.parquet") for kind in (tables.SUMMARY, tables.COMPARISONS)
    )
    tested = summary[(summary["metric"] == metric.name) & (summary["split"] == "test")]
    body = [
        *_warning(scale),
        f"<p>{escaped(study.question)}</p>",
        f"<p>{escaped(_metric_words(metric))}. {_UNCERTAINTY}</p>",
    ]
    head = [*POLICY_HEAD[:2], escaped(metric.label or metric.name), *POLICY_HEAD[2:]]
    for scenario, rows in tested.groupby("scenario", sort=True):
        best_first = rows.sort_values(["value", "policy"], ascending=[metric.better == "lower", True])
        cells = [_policy_cells(row, against(metric, row, tested, comparisons)) for _, row in best_first.iterrows()]
        body += [f"<h2>{escaped(scenario)}</h2>", table(head, cells, numbers=(2, 3, 4, 5, 7, 8, 9))]
    write_text(target, page(f"{study.name}: all policies on test units", "\n".join(body)))


def claims_page(ledgers: Mapping[str, Path], target: Path) -> None:
    """Write the ledgers of published claims: what a paper says, what comes out here, whether the two agree."""
    body = [
        "<p>Beside each published value: ours with every published choice (reference), and with the defects mended "
        "(repaired).</p>"
    ]
    for study, file in ledgers.items():
        claims = read_ledger(file, study).claims
        counts = ", ".join(f"{sum(claim.status == status for claim in claims)} {status}" for status in STATUSES)
        body += [f"<h2>{escaped(study)}</h2>", f"<p>{counts}</p>"]
        for place in dict.fromkeys(_place(claim) for claim in claims):
            rows = [_claim_cells(claim) for claim in claims if _place(claim) == place]
            body += [f"<h3>{escaped(place)}</h3>", table(CLAIM_HEAD, rows, numbers=(1, 2, 3))]
    write_text(target, page("Published numbers and ours", "\n".join(body)))


def job_costs(results: Path) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Return (study, workflow rule) -> the last benchmark of each of its jobs: s, cpu_time (both in s), max_rss (MiB),
    and `ended`, the time of the file (s).
    """
    found: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for file in sorted(results.rglob("*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for last in list(csv.DictReader(lines, delimiter="\t"))[-1:]:
                values = {key: _measurement(last.get(key)) for key in ("s", "cpu_time", "max_rss")}
                found[file.relative_to(results).parts[0], file.stem.partition("-")[0]].append(
                    {**values, "ended": file.stat().st_mtime}
                )
    return dict(sorted(found.items()))


def benchmarks_page(results: Path, target: Path) -> None:
    """Write what the jobs took, by study and workflow rule, from every benchmark (`<rule>.tsv`, `<rule>-<of>.tsv`) of a
    scale's results.
    """
    rows = []
    for (study, rule), measurements in job_costs(results).items():
        seconds, cpu, memory = ([each[key] for each in measurements] for key in ("s", "cpu_time", "max_rss"))
        cells = [
            str(len(measurements)),
            f"{sum(seconds):.0f}",
            f"{max(seconds, default=0):.0f}",
            f"{sum(cpu):.0f}",
            f"{max(memory, default=0):.0f}",
        ]
        rows.append([escaped(study), escaped(rule), *cells])
    words = "<p>Each job as it was run last; jobs that share the machine slow each other down.</p>"
    write_text(
        target, page("Time and memory of the jobs", words + table(BENCHMARK_HEAD, rows, numbers=(2, 3, 4, 5, 6)))
    )


_UNCERTAINTY = (
    "[a, b]: interval by bootstrap over seeds and blocks. a – b: range over seeds (of one: blocks), where "
    "they are fewer than five."
)


def _warning(scale: str) -> list[str]:
    return [f'<p class="warning">{SIZES[scale]}</p>'] if scale in SIZES else []


def _legend(level: str) -> list[str]:
    return [
        f"[a, b]: {escaped(level)} interval of a two-level bootstrap over seeds and blocks of test units. a – b: "
        "range over seeds (of one "
        "seed: over blocks), where they are fewer than five. The difference is the learned policy's value less the "
        "other's on the same "
        "units; better or worse where interval or range lie on one side of zero; below three seeds or two units "
        "nothing is said. Wins: "
        "units on which it is better, ties by half. Scenarios and policies are named in conf/claims/, not picked by "
        "their result; the best "
        "rule is chosen on validation units.",
        "Published numbers were measured on other inputs, as the note says; ours in the ledger were measured on "
        "theirs and do not come "
        "from this run. Tables of all policies stand in the menu under each study; all published numbers, times and "
        "memory under "
        "<em>overview</em>.",
    ]


def _study_rows(folder: Path, ledger: ClaimsSettings | None) -> Iterator[str]:
    """Yield a study's rows; its first and last cell go over all of them."""
    study = _study(folder)
    metric, chosen = headline_metric(study.metrics), ledger.headline if ledger else None
    summary, comparisons = (
        tables.read(kind, folder / f"{kind.name}.parquet") for kind in (tables.SUMMARY, tables.COMPARISONS)
    )
    found = headlines(metric, chosen, summary, comparisons)
    over = f' rowspan="{max(1, len(found))}"'
    first = (
        f'<td class="study"{over}><strong>{escaped(study.name)}</strong><br><span '
        f'class="small">{escaped(study.question)}</span>'
    )
    first += f"<br>{escaped(_metric_words(metric))}</td>"
    published = _published(ledger, chosen.published if chosen else (), chosen.note if chosen else "")
    last = f"<td class='published'{over}>{published}</td>"
    if not found:
        yield f'<tr>{first}<td colspan="4">no learned policy was tested at this scale</td>{last}</tr>'
    for number, headline in enumerate(found):
        what, *values = _headline_cells(headline)
        cells = f'<td class="what">{what}</td>' + "".join(f"<td>{cell}</td>" for cell in values)
        yield f"<tr>{first if number == 0 else ''}{cells}{last if number == 0 else ''}</tr>"


def _headline_cells(headline: Headline) -> list[str]:
    learned = f"learned on {_scenarios(headline.trained_on)}" if headline.trained_on else ""
    instead = (
        "" if headline.meant else '<br><span class="small">stands in for results that this scale does not have</span>'
    )
    what = (
        f"{escaped(headline.scenario)}: <strong>{escaped(headline.policy)}</strong><br><span "
        f'class="small">{escaped(learned)}</span>'
    )
    sizes = f"{_count(headline.measured.seeds, 'seed')}, {_count(headline.measured.units, 'test unit')}"
    value = f'{_value(headline.measured)}<br><span class="small">{sizes}</span>'
    if (other := headline.against) is None:
        return [what + instead, value, "none compared", "–"]
    rule = (
        f'{escaped(other.policy)}: <span class="value">{_number(other.value)}</span><br><span '
        f'class="small">{ROLES[other.role]}</span>'
    )
    said = f'<strong class="{other.verdict.replace(" ", "-")}">{other.verdict}</strong>, wins {other.win_rate:.0%}'
    return [what + instead, value, rule, f"{_value(other.difference)}<br>{said}"]


def _scenarios(trained_on: str) -> str:
    """Return the scenarios that a policy learned on ('a+b > c'), or their number where they are many."""
    number = len(re.split(r"\+| > ", trained_on))
    return f"{number} scenarios" if number > 3 else trained_on.replace("+", " + ")


def _published(ledger: ClaimsSettings | None, names: Sequence[str], note: str) -> str:
    """Return the published values of a study's headline with ours of the ledger, and the note."""
    parts = []
    for claim in (claim for name in names for claim in (ledger.claims if ledger else ()) if claim.id == name):
        both = {"reference": claim.ours_reference, "repaired": claim.ours_repaired}
        ours = [f"{_text(value)} {mode}" for mode, value in both.items() if value is not None]
        place = f'<span class="small">({escaped(_place(claim))})</span>'
        parts.append(
            f'<span class="value">{_text(claim.published)}</span> {escaped(claim.quantity)} {place}; '
            f"ours: {', '.join(ours) or 'not measured'} ({claim.status})"
        )
    return "<br>".join(
        [*(parts or ["nothing published"]), *([f'<span class="small">{escaped(note)}</span>'] if note else [])]
    )


def _policy_cells(row: pd.Series, other: Against | None) -> list[str]:
    """Return the cells of POLICY_HEAD and the value for one row of the summary."""
    name = row["policy"] if row["mode"] == "default" else f"{row['policy']} ({row['mode']})"
    cells = [
        _whole(escaped(name)),
        escaped(row["kind"]),
        _number(row["value"]),
        _bounds(measured(row)),
        str(row["seeds"]),
        str(row["units"]),
    ]
    if other is None:
        return [*cells, "", "", "", ""]
    return [
        *cells,
        _whole(escaped(other.policy)),
        _number(other.difference.value),
        _bounds(other.difference),
        f"{other.win_rate:.0%}",
    ]


def _claim_cells(claim: ClaimSettings) -> list[str]:
    note = f'<br><span class="small">{escaped(claim.note)}</span>' if claim.note else ""
    values = [_text(value) for value in (claim.published, claim.ours_reference, claim.ours_repaired)]
    return [escaped(claim.quantity) + note, *values, claim.status]


def _place(claim: ClaimSettings) -> str:
    return f"{claim.paper}: {claim.table}" if claim.table else claim.paper


def _study(folder: Path) -> Study:
    return studies.of_part(read_part(folder / "config/summarise.yaml"))


def _confidence(folder: Path) -> float:
    return validate(StatisticsSettings, read_part(folder / "config/summarise.yaml").get("statistics") or {}).confidence


def _ledger(ledgers: Mapping[str, Path], study: str) -> ClaimsSettings | None:
    return read_ledger(ledgers[study], study) if study in ledgers else None


def _metric_words(metric: Metric) -> str:
    unit = f", {metric.unit}" if metric.unit not in ("", "-") else ""
    return f"{metric.label or metric.name}{unit} ({metric.better} is better)"


def _value(found: Measured) -> str:
    return f'<span class="value">{_number(found.value)}</span><br>{_bounds(found)}'


def _bounds(found: Measured) -> str:
    low, high = _number(found.low), _number(found.high)
    if found.interval:
        return _whole(f"[{low}, {high}]")
    if found.low == found.high:  # of one block, a range says nothing
        return "all seeds alike" if found.over == "seeds" else ""
    return _whole(f"{low} – {high}")


def _whole(cell: str) -> str:
    return f'<span class="whole">{cell}</span>'


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _number(value: float) -> str:
    """Return four significant digits; what is nothing but rounding of floats is 0."""
    return "0" if abs(value) < 1e-12 else f"{value:.4g}".replace("-", "−")


def _text(value: Value) -> str:
    return "–" if value is None else escaped(f"{value:.6g}" if isinstance(value, float) else value)


def _measurement(text: str | None) -> float:
    """Return a number of a benchmark, which writes NA or - for what it could not measure."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
