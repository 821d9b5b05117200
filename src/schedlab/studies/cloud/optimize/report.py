"""The report of an optimised training (measurements, decisions, results) as values, as text and as an HTML page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.figures.html import render
from schedlab.studies.cloud.live.fence import available
from schedlab.studies.cloud.model.allocation import Allocation, held_in
from schedlab.studies.cloud.model.cost import check_batch, diagnose_idle_gpus, money
from schedlab.studies.cloud.model.fit_cores import CoreFit
from schedlab.studies.cloud.optimize.flow import Optimization, optimized_values, percent_change, warnings_of
from schedlab.studies.cloud.optimize.recommend import COMPARED, baseline_row, best_constants, by_model, recommendations
from schedlab.studies.cloud.optimize.settings import PLAN
from schedlab.studies.cloud.replay.sla import COLUMN_OF, GPU_COLUMN, ITEMS, LIMIT_OF, judge
from schedlab.studies.cloud.rules.suggestions import batch_size

if TYPE_CHECKING:
    import pandas as pd

    from schedlab.studies.cloud.optimize.plots import Picture

TEMPLATES = Path(__file__).parent / "templates"
SOURCES = {
    "measured": "measured",
    "baseline": "extrapolated from short runs",
    "model": "by the model",
    "published rule": "by the published rule of thumb",
}
DOUBT = 0.3  # uncertainty of the policy above which the report warns
UNITS = {"time": "s", "cost": "$", "throughput": "samples/s", "memory": "GB", "gpu_util": "%", "cpu_util": "%"}
VALUE_OF = COLUMN_OF | {"time": "time", "cost": "cost"}  # `gpu_utilization` is the mean of all GPUs
METHODS = {
    True: "Short runs on a few allocations; the performance model fitted to them; the allocation planned on it, within "
    "the limits; the model fitted and the rest of the training planned again after each interval. ",
    False: "Short runs on a few allocations; the performance model fitted to them; a policy learned on it; the "
    "training run by that policy. ",
}  # by whether the plan, instead of a policy, decided
FROZEN = "Service levels were frozen before the run and are the same for baseline and run."


def service_levels(found: Optimization, base: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on each service level for baseline and run; None for that of GPUs if there are none."""
    result: dict[str, Any] = {}
    for item in ITEMS:
        sides = {}
        for name, values in (("baseline", base), ("optimized", new)):
            value = values[VALUE_OF[item]]
            sides[name] = {"value": value, **asdict(judge(item, float(value or 0.0), found.job.sla.limit(item)))}
        change = sides["optimized"]["severity"] - sides["baseline"]["severity"]
        result[item] = {**sides, "severity_change": change}
    return result if found.job.resource.gpu_count_max else {**result, "gpu_util": None}


def met(levels: Mapping[str, Any], name: str) -> list[str]:
    """Return the service levels that apply and that the baseline or the run (`name`) met."""
    return [item for item, level in levels.items() if level and level[name]["met"]]


def _run_values(found: Optimization) -> dict[str, Any]:
    """Return what was run."""
    return {
        "training_file": found.script.name,
        "preference": found.settings.preference,
        "epochs": found.job.epochs,
        "epochs_between_decisions": found.job.interval,
        "goes_on_from_checkpoints": found.resumes,
        "model_type": found.named.model_type,
        "dataset_type": found.named.dataset_type,
        "seed": found.settings.seed,
        "minutes": found.minutes,
        "cut_off": found.cut_off,
    }


def report_values(found: Optimization) -> dict[str, Any]:
    """Return the report as plain values. Percentages are relative to the baseline, null if that is 0."""
    base, new = dict(found.baseline), optimized_values(found)
    levels, settings, learned, sla = service_levels(found, base, new), found.settings, found.learned, found.job.sla
    before, after = met(levels, "baseline"), met(levels, "optimized")
    origins = {item: found.thresholds_from[LIMIT_OF[item]] for item in ITEMS}
    origins |= {item: "not applicable" for item, level in levels.items() if level is None}
    suggested = None  # the batch size by the published rule for the run's last number of GPUs
    if new["gpu_count"] >= 1:
        of_base = base["batch_size"], base["gpu_count"], base["gpu_utilization"]
        suggested = batch_size(settings.preference, int(new["gpu_count"]), *of_base)
    return {
        "run": _run_values(found),
        "thresholds": {item: {"limit": sla.limit(item), "unit": UNITS[item], "from": origins[item]} for item in ITEMS},
        "baseline": base,
        "optimized": new,
        "sla": levels,
        "sla_met": {"baseline": len(before), "optimized": len(after), "of": sum(map(bool, levels.values()))},
        "sla_fixed": [item for item in after if item not in before],
        "sla_newly_violated": [item for item in before if item not in after],
        "change_percent": {name: percent_change(new[name], base[name]) for name in COMPARED},
        "resource_change": {name: new[name] - base[name] for name in Allocation._fields},
        "batch": {
            **check_batch(base["gpu_count"], base["batch_size"], new["gpu_count"], new["batch_size"]),
            "suggested_batch_size": suggested,
        },
        "idle_gpus": {
            "baseline": idle_gpus(found.baseline_table),
            "optimized": idle_gpus(found.live_tables[-1] if found.live_tables else None),
        },
        "recommendations": recommendations(found, new),
        "what_was_there": baseline_row(found),
        "best_constants": best_constants(found),
        "uncertainty": _doubt([taken.uncertainty for taken in found.live if not math.isnan(taken.uncertainty)]),
        "warnings": warnings_of(found, new),
        "model": {
            "parameters": {**found.fit.step.values(), "core_seconds": found.fit.core_seconds},
            **_fit_values(found.fit),
            "refitted": [_fit_values(each) for each in found.refits],
            "time_of_run": _time_of_run(found),
            "start_up_seconds": found.facts.overhead,
            "memory_needed_gb": found.facts.memory_needed,
        },
        "bill": found.bill,
        "policy": {
            "learner": PLAN if learned.policy is None else settings.rl.learner,
            "probability": found.start_probability,
            "start": found.job.first._asdict(),
            "prediction": found.prediction,
            "objective": learned.objective,
            "objective_of_best_plan": learned.best,
            "objective_of_best_constant": learned.best_constant,
            "objective_measured": found.scores["objective"],
        },
        "method": METHODS[learned.policy is None] + FROZEN + " " + available().sentences(),
    }


def idle_gpus(table: pd.DataFrame | None) -> list[str]:
    """Return possible causes if the log of an allocation reports idle GPUs."""
    if table is None:
        return []
    use = table[[name for name in table.columns if str(name).startswith(GPU_COLUMN)]].mean().dropna()
    if not len(use):
        return []
    metrics = {**use, "cpu_percent": float(table["cpu_percent"].mean())}
    if "gpu_memory_used_gb" in table.columns:
        metrics["gpu_memory_used_gb"] = float(table["gpu_memory_used_gb"].max())
    return diagnose_idle_gpus(metrics, int(table["gpu_count"].iloc[-1]))


def _fit_values(fit: CoreFit) -> dict[str, Any]:
    counts = {"rows": fit.rows, "settings": fit.settings, "free_parameters": fit.free}
    return {**counts, "median_relative_error": fit.median_error}


def _time_of_run(found: Optimization) -> float | None:
    """Return the time that the model predicted for the run before it, s; None if the run had another allocation."""
    held = [[held_in(taken.record) for taken in course] for course in (found.learned.course, found.live)]
    if found.cut_off:
        return None
    if found.resumes:
        return float(found.learned.course[-1].record["time_so_far"]) if held[0] == held[1] else None
    values = by_model(found, held[1][-1])
    return values["time"] if values else None


def _doubt(doubts: list[float]) -> dict[str, Any]:
    """Return the uncertainty of the policy's actions; null if its learner has none."""
    if not doubts:
        return {"mean": None, "largest": None, "warning": False}
    return {"mean": sum(doubts) / len(doubts), "largest": max(doubts), "warning": max(doubts) > DOUBT}


def idle_text(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence each for baseline and run about possible causes of idle GPUs, if GPUs were idle."""
    for name, label in (("baseline", "baseline"), ("optimized", "run")):
        if issues := values["idle_gpus"][name]:
            yield f"GPUs of the {label}: {'; '.join(issues)}"


def change(value: float | None) -> str:
    """Return a percentage with its sign, or a text if there is none."""
    return "no base" if value is None else f"{value:+.1f} %"


def report_text(values: Mapping[str, Any]) -> str:
    """Return the report (report_values) as plain text."""
    return render(TEMPLATES, "report.txt", FILTERS, **_known(values))


def report_page(values: Mapping[str, Any], pictures: Sequence[Picture]) -> str:
    """Return the report as one HTML page with its pictures. It has no scripts and loads nothing from a network; all
    text from outside is escaped.
    """
    return render(TEMPLATES, "report.html", FILTERS, **_known(values), pictures=pictures, percent_change=percent_change)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with those that the templates need in addition: recommendations, all warnings, names of
    sources.
    """
    warnings = [*values["warnings"], *idle_text(values)]
    return {**values, "recommended": list(recommended(values)), "said": warnings, "sources": SOURCES, "much": DOUBT}


def recommended(values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the recommendations with labels: the baseline, the three, then the best constant allocations."""
    yield "What was there", values["what_was_there"]
    for each in values["recommendations"]:
        yield f"{each['name']} ({each['description']})", each
    for each in values["best_constants"]:
        yield f"Best to stay on from the begin, for {' and '.join(each['best_for'])}", each


FILTERS: dict[str, Callable[..., str]] = {"change": change, "money": money}
