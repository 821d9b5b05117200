"""The report of an optimised training as one HTML file: no script, no network, foreign text escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from schedlab.figures.html import table
from schedlab.studies.cloud.optimize.flow import percent_change
from schedlab.studies.cloud.optimize.report import (
    baseline_text,
    batch_text,
    change,
    idle_text,
    model_error,
    money,
    recommended,
    source_text,
    uncertainty_text,
)

if TYPE_CHECKING:
    from schedlab.studies.cloud.optimize.plots import Picture

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #262626; max-width: 58rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid #d9d9d9; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bad { color: #a3260b; } .good { color: #1b6e3a; }
figure { margin: 1rem 0; } img { max-width: 100%; } figcaption { color: #767676; }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html_report(values: Mapping[str, Any], pictures: Sequence[Picture]) -> str:
    """Return the page of a report (report.report_values) with its pictures."""
    run, met = values["run"], values["sla_met"]
    parts = [
        f"<h1>Training of {escape(str(run['training_file']))}</h1>",
        f"<p>Preference {escape(run['preference'])}, {run['epochs']} epochs, seed {run['seed']}. "
        f"Service levels met: {met['baseline']}/{met['of']} &rarr; "
        f"<strong>{met['optimized']}/{met['of']}</strong>.</p>",
        *_warnings(values),
        "<h2>Baseline and run</h2>",
        _compared(values),
        f"<p>{escape(batch_text(values['batch']))}</p>",
        "<h2>Service levels</h2>",
        _services(values),
        f"<p>Fixed: {_listed(values['sla_fixed'])}; newly violated: {_listed(values['sla_newly_violated'])}.</p>",
        *(
            f'<figure><img alt="{escape(each.alternative)}" '
            f'src="{escape(each.address)}"><figcaption>{escape(each.caption)}</figcaption></figure>'
            for each in pictures
        ),
        "<h2>Recommendations</h2>",
        _recommendations(values),
        "<h2>How this was found</h2>",
        _method(values),
    ]
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>Training '
        "report</title>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _warnings(values: Mapping[str, Any]) -> list[str]:
    told = [*values["warnings"], *idle_text(values)]
    if values["run"]["cut_off"]:
        told.append("the run broke its limits again and again and was cut off: the training is unfinished")
    if values["uncertainty"]["warning"]:
        told.append(f"the policy is uncertain (up to {values['uncertainty']['largest']:.2f})")
    if not values["run"]["goes_on_from_checkpoints"]:
        told.append("the script keeps no checkpoint: it was run once, on the allocation that the policy settles on")
    return [f'<p class="bad">Warning: {escape(each)}.</p>' for each in told]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; cells are HTML already. All columns but the first are numbers."""
    return table([escape(name) for name in head], rows, numbers=range(1, len(head)))


def _compared(values: Mapping[str, Any]) -> str:
    base, new, changes = values["baseline"], values["optimized"], values["change_percent"]
    rows: list[tuple[str, ...]] = []
    for label, name in (
        ("GPUs", "gpu_count"),
        ("cores", "cpu_count"),
        ("memory, GB", "memory_gb"),
        ("batch size", "batch_size"),
    ):
        rows.append((label, f"{base[name]:g}", f"{new[name]:g}", f"{new[name] - base[name]:+g}"))
    rows.append(("time, s", f"{base['time']:.1f}", f"{new['time']:.1f}", change(changes["time"])))
    starts = [part["start_up_seconds"] for part in (base, new)]
    rows.append(
        ("of that starts, s", *(f"{value:.1f}" for value in starts), change(percent_change(starts[1], starts[0])))
    )
    rows.append(("cost", money(base["cost"]), money(new["cost"]), change(changes["cost"])))
    rows.append(
        (
            "throughput, samples/s",
            f"{base['throughput']:.0f}",
            f"{new['throughput']:.0f}",
            change(changes["throughput"]),
        )
    )
    whence = "baseline, by the model" if base["source"] == "model" else f"baseline, from {base['samples']} short runs"
    return _table(("", whence, "run, measured", "change"), rows)


def _services(values: Mapping[str, Any]) -> str:
    rows = []
    for item, levels in values["sla"].items():
        limit = values["thresholds"][item]
        label = escape(item.replace("_", " "))
        if levels is None:
            rows.append((label, "not applicable", "", "", ""))
            continue
        told = f"{limit['limit']:.4g} {escape(limit['unit'])} ({escape(limit['from'])})"
        rows.append(
            (label, told, _side(levels["baseline"]), _side(levels["optimized"]), f"{levels['severity_change']:+.1%}")
        )
    return _table(("", "limit (from)", "baseline", "run", "change of severity"), rows)


def _listed(items: Sequence[str]) -> str:
    return escape(", ".join(items).replace("_", " ")) or "none"


def _side(level: Mapping[str, Any]) -> str:
    value = "none" if level["value"] is None else f"{level['value']:.4g}"
    if level["met"]:
        return f'{value} <span class="good">met</span>'
    return f'{value} <span class="bad">violated by {level["severity"]:.1%}</span>'


def _recommendations(values: Mapping[str, Any]) -> str:
    rows = [
        (
            escape(label),
            f"{each['gpu_count']:g}",
            f"{each['cpu_count']:g}",
            f"{each['memory_gb']:g}",
            f"{each['time']:.1f}",
            change(each["change_percent"]["time"]),
            money(each["cost"]),
            change(each["change_percent"]["cost"]),
            source_text(each, values),
        )
        for label, each in recommended(values)
    ]
    head = ("", "GPUs", "cores", "GB", "time, s", "", "cost", "", "as told")
    return table(head, rows, numbers=range(1, len(head) - 1))


def _method(values: Mapping[str, Any]) -> str:
    base, policy = values["baseline"], values["policy"]
    begin = f"The baseline is extrapolated {baseline_text(base)}. " if "time_by_ratio" in base else ""
    return (
        f"<p>{escape(values['method'])}</p><p>{begin}Model: {model_error(values)}. "
        f"Objective of the policy: {policy['objective']:.4f} by the model, {policy['objective_measured']:.4f} "
        "measured; "
        f"of the best plan by the model: {policy['objective_of_best_plan']:.4f}. "
        f"Uncertainty: {uncertainty_text(values['uncertainty'])}.</p>"
    )
