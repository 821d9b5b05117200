"""The report of an optimised training, what was measured, done and reached: as values and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from schedlab.studies.cloud.model.allocation import Allocation, held_in
from schedlab.studies.cloud.model.cost import check_batch, diagnose_idle_gpus
from schedlab.studies.cloud.model.fit_cores import CoreFit
from schedlab.studies.cloud.optimize.flow import Optimization, optimized_values, percent_change
from schedlab.studies.cloud.optimize.recommend import COMPARED, baseline_row, best_constants, by_model, recommendations
from schedlab.studies.cloud.replay.sla import COLUMN_OF, GPU_COLUMN, ITEMS, LIMIT_OF, Verdict, judge
from schedlab.studies.cloud.rules.suggestions import batch_size

if TYPE_CHECKING:
    import pandas as pd

TOLD = {
    "measured": "measured",
    "baseline": "extrapolated from short runs",
    "model": "by the model",
    "published rule": "by the published rule of thumb",
}
DOUBT = 0.3  # uncertainty above which the report warns
UNITS = {"time": "s", "cost": "$", "throughput": "samples/s", "memory": "GB", "gpu_util": "%", "cpu_util": "%"}
VALUE_OF = COLUMN_OF | {"time": "time", "cost": "cost"}
METHOD = (
    "Short runs on a few allocations; the performance model fitted to them; a policy learned on it; the training "
    "run by that policy. "
    "Service levels were frozen before anything was learned and are the same for baseline and run."
)


def verdicts(values: Mapping[str, Any], found: Optimization) -> dict[str, Verdict]:
    """Return the verdict on each service level that applies: that of the GPUs only where there are any."""
    result = {}
    for item in ITEMS:
        value = values["gpu_utilization"] if item == "gpu_util" else values[VALUE_OF[item]]
        if item == "gpu_util" and not found.resource.gpu_count_max:
            continue
        result[item] = judge(item, float(value or 0.0), found.sla.limit(item))
    return result


def report_values(found: Optimization) -> dict[str, Any]:
    """Return the report as plain values; percentages are of the baseline, null where that is 0."""
    base, new = dict(found.baseline), optimized_values(found)
    before, after = verdicts(base, found), verdicts(new, found)
    doubts = [taken.uncertainty for taken in found.live if not math.isnan(taken.uncertainty)]
    learned = found.learned
    return {
        "run": _run_values(found),
        "thresholds": {
            item: {"limit": found.sla.limit(item), "unit": UNITS[item], "from": _origin(item, found)} for item in ITEMS
        },
        "baseline": base,
        "optimized": new,
        "sla": {item: _service(item, base, new, before, after) for item in ITEMS},
        "sla_met": {"baseline": _met(before), "optimized": _met(after), "of": len(before)},
        "sla_fixed": [item for item in before if not before[item].met and after[item].met],
        "sla_newly_violated": [item for item in before if before[item].met and not after[item].met],
        "change_percent": {name: percent_change(new[name], base[name]) for name in COMPARED},
        "resource_change": {name: new[name] - base[name] for name in Allocation._fields},
        "batch": {
            **check_batch(base["gpu_count"], base["batch_size"], new["gpu_count"], new["batch_size"]),
            **_suggested(found, base, new),
        },
        "idle_gpus": {
            "baseline": idle_gpus(found.baseline_table),
            "optimized": idle_gpus(found.live_tables[-1] if found.live_tables else None),
        },
        "recommendations": recommendations(found, new),
        "what_was_there": baseline_row(found),
        "best_constants": best_constants(found),
        "uncertainty": _doubt(doubts),
        "warnings": found.warnings,
        "model": {
            "parameters": {**found.fit.step.values(), "core_seconds": found.fit.core_seconds},
            **_fit_values(found.fit),
            "refitted": [_fit_values(each) for each in found.refits],
            "time_of_run": _time_of_run(found),
            "start_up_seconds": found.job.overhead,
            "memory_needed_gb": found.job.memory_needed,
        },
        "policy": {
            "start": found.start._asdict(),
            "prediction": found.prediction,
            "objective": learned.objective,
            "objective_of_best_plan": learned.best,
            "objective_of_best_constant": learned.best_constant,
            "objective_measured": found.scores["objective"],
        },
        "method": METHOD,
    }


def _run_values(found: Optimization) -> dict[str, Any]:
    """What was run, and how."""
    return {
        "training_file": found.script.name,
        "preference": found.settings.preference,
        "epochs": found.epochs,
        "epochs_between_decisions": found.interval,
        "goes_on_from_checkpoints": found.resumes,
        "model_type": found.facts.model_type,
        "dataset_type": found.facts.dataset_type,
        "seed": found.settings.seed,
        "minutes": found.minutes,
        "cut_off": found.cut_off,
    }


def _suggested(found: Optimization, base: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, int | None]:
    """The batch that the published rule suggests for the run's last GPUs (A11, 8); None without a GPU."""
    if new["gpu_count"] < 1:
        return {"suggested_batch_size": None}
    rule = (
        found.settings.preference,
        int(new["gpu_count"]),
        base["batch_size"],
        base["gpu_count"],
        base["gpu_utilization"],
    )
    return {"suggested_batch_size": batch_size(*rule)}


def idle_gpus(table: pd.DataFrame | None) -> list[str]:
    """Return what may be wrong where a log of one allocation reports that its GPUs idle (A12)."""
    if table is None:
        return []
    told = table[[name for name in table.columns if str(name).startswith(GPU_COLUMN)]].mean().dropna()
    if not len(told):
        return []
    metrics = {**told, "cpu_percent": float(table["cpu_percent"].mean())}
    if "gpu_memory_used_gb" in table.columns:
        metrics["gpu_memory_used_gb"] = float(table["gpu_memory_used_gb"].max())
    return diagnose_idle_gpus(metrics, int(table["gpu_count"].iloc[-1]))


def _fit_values(fit: CoreFit) -> dict[str, Any]:
    counts = {"rows": fit.rows, "settings": fit.settings, "free_parameters": fit.free}
    return {**counts, "median_relative_error": fit.median_error}


def _time_of_run(found: Optimization) -> float | None:
    """The model's prediction of the run's time before it ran, s; None where the run held something else."""
    held = [[held_in(taken.record) for taken in course] for course in (found.learned.course, found.live)]
    if found.cut_off:
        return None
    if found.resumes:
        return float(found.learned.course[-1].record["time_so_far"]) if held[0] == held[1] else None
    told = by_model(found, held[1][-1])
    return told["time"] if told else None


def model_error(values: Mapping[str, Any]) -> str:
    """Return the model's error in words: as learned on, as refitted with the run, and on the run."""
    model = values["model"]
    told = fit_text(model)
    if model["refitted"]:
        told += f"; fitted anew with the run: {fit_text(model['refitted'][-1])}"
    if model["time_of_run"] is not None:
        said, took = model["time_of_run"], values["optimized"]["time"]
        told += (
            f"; of the run, which it had not seen, it said {said:.1f} s, and it took {took:.1f} s "
            f"({(said - took) / took:+.1%})"
        )
    return told


def fit_text(fit: Mapping[str, Any]) -> str:
    """Return the error of a fit in words; with as many parameters as settings it says nothing."""
    if fit["settings"] <= fit["free_parameters"]:
        return f"{fit['free_parameters']} parameters for {fit['settings']} settings, so that their error says nothing"
    return f"median error {fit['median_relative_error']:.1%} over {fit['settings']} settings"


def _doubt(doubts: list[float]) -> dict[str, Any]:
    """The uncertainty of the policy's actions; null where its learner tells none."""
    if not doubts:
        return {"mean": None, "largest": None, "warning": False}
    return {"mean": sum(doubts) / len(doubts), "largest": max(doubts), "warning": max(doubts) > DOUBT}


def _origin(item: str, found: Optimization) -> str:
    if item == "gpu_util" and not found.resource.gpu_count_max:
        return "not applicable"
    return found.thresholds_from[LIMIT_OF[item]]


def _met(found: Mapping[str, Verdict]) -> int:
    return sum(verdict.met for verdict in found.values())


def _service(
    item: str, base: Mapping[str, Any], new: Mapping[str, Any], before: dict[str, Verdict], after: dict[str, Verdict]
) -> Any:
    """What became of one service level; None where it does not apply."""
    if item not in before:
        return None
    key = "gpu_utilization" if item == "gpu_util" else VALUE_OF[item]
    return {
        "baseline": {"value": base[key], "met": before[item].met, "severity": before[item].severity},
        "optimized": {"value": new[key], "met": after[item].met, "severity": after[item].severity},
        "severity_change": after[item].severity - before[item].severity,
    }


def batch_text(batch: Mapping[str, Any]) -> str:
    """Return the batches in words, whether they go with the GPUs, and the published rule's suggestion."""
    suggested = batch["suggested_batch_size"]
    if suggested is None or suggested == batch["optimized_batch_size"]:
        return _unchanged_batch_text(batch)
    return (
        f"{_unchanged_batch_text(batch)} The published rule of thumb suggests {suggested} for "
        f"{_counted(int(batch['optimized_gpu_count']), 'GPU')}."
    )


def idle_text(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what may be wrong with idle GPUs, a sentence each for baseline and run, where something is."""
    for name, label in (("baseline", "baseline"), ("optimized", "run")):
        if issues := values["idle_gpus"][name]:
            yield f"GPUs of the {label}: {'; '.join(issues)}"


def _unchanged_batch_text(batch: Mapping[str, Any]) -> str:
    if (
        batch["baseline_batch_size"] == batch["optimized_batch_size"]
        and batch["baseline_gpu_count"] == batch["optimized_gpu_count"]
    ):
        return f"Batch: {batch['optimized_batch_size']:g} samples, as in the baseline."
    sizes = f"{batch['baseline_batch_size']:g} -> {batch['optimized_batch_size']:g}"
    each = f"{batch['baseline_per_gpu_batch']:g} -> {batch['optimized_per_gpu_batch']:g}"
    verdicts = f"{batch['batch_validation']}. {batch['per_gpu_batch_validation']}"
    return f"Batch: {sizes} samples, on each device {each}. {verdicts}."


def baseline_text(part: Mapping[str, Any]) -> str:
    """Return how a measured baseline was extrapolated, as a sentence, and what the published way would have said."""
    runs = f"from {_counted(part['samples'], 'short run')} of {_counted(part['sample_epochs'], 'epoch')}"
    each = f"a start of {part['start_up_seconds']:.1f} s and epochs of {part['epoch_seconds']:.2f} s"
    published = (
        "by the published way, the time of their epochs over their share of the training: "
        f"{part['time_by_ratio']:.1f} s"
    )
    return f"{runs}: {each}; {published}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def uncertainty_text(doubt: Mapping[str, Any]) -> str:
    """Return the uncertainty of the policy in words: of what, and how much would be much."""
    if doubt["mean"] is None:
        return "unknown"
    of = "standard deviation of an action's probability under dropout, from 0 to 0.5, mean of all actions"
    high = "; WARNING: high" if doubt["warning"] else ""
    return (
        f"{doubt['mean']:.3f} in the mean of the decisions, at most {doubt['largest']:.3f} ({of}; above {DOUBT:g} it "
        f"is high{high})"
    )


def change(value: float | None) -> str:
    """Return a percentage with its sign, or that there is none."""
    return "no base" if value is None else f"{value:+.1f} %"


def money(value: float) -> str:
    """Return an amount in dollars, with as many digits as a small one needs."""
    return f"${value:.2f}" if value >= 1 else f"${value:.5f}"


def report_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the report as lines of text."""
    run = values["run"]
    yield f"Training {run['training_file']}, preference {run['preference']}, {run['epochs']} epochs, seed {run['seed']}"
    if not run["goes_on_from_checkpoints"]:
        yield "The script keeps no checkpoint: it was run once, on the allocation that the policy settles on."
    if run["cut_off"]:
        yield (
            "WARNING: the run broke its limits again and again and was cut off; what follows is of an unfinished "
            "training."
        )
    for name in ("baseline", "optimized"):
        part = values[name]
        told = " (by the model)" if part["source"] == "model" else ""
        yield ""
        yield (
            f"{name.capitalize()}{told}: {part['gpu_count']:g} GPUs, {part['cpu_count']:g} cores, "
            f"{part['memory_gb']:g} GB"
        )
        time = f"time {part['time']:.1f} s (starts {part['start_up_seconds']:.1f} s)"
        yield f"  {time}, cost {money(part['cost'])}, {part['throughput']:.0f} samples/s"
        if "time_by_ratio" in part:
            yield f"  {baseline_text(part)}"
    yield ""
    yield "Changes: " + ", ".join(f"{name} {change(value)}" for name, value in values["change_percent"].items())
    yield "Resources: " + ", ".join(f"{name} {value:+g}" for name, value in values["resource_change"].items())
    yield batch_text(values["batch"])
    yield from _service_lines(values)
    yield ""
    yield "Recommendations:"
    for label, each in recommended(values):
        held = f"{each['gpu_count']:g} GPUs, {each['cpu_count']:g} cores, {each['memory_gb']:g} GB"
        how = source_text(each, values)
        changes = "; " + ", ".join(f"{name} {change(value)}" for name, value in each["change_percent"].items())
        told = "" if each is values["what_was_there"] else changes
        yield f"  {label}: {held}; {each['time']:.1f} s, {money(each['cost'])} ({how}){told}"
    model, policy = values["model"], values["policy"]
    yield ""
    yield f"Uncertainty of the policy: {uncertainty_text(values['uncertainty'])}"
    for warning in (*values["warnings"], *idle_text(values)):
        yield f"WARNING: {warning}"
    start = f"start-up {model['start_up_seconds']:.1f} s"
    yield f"Model: {model_error(values)}; {start}"
    yield (
        f"Objective: {policy['objective']:.4f} by the model, {policy['objective_measured']:.4f} measured; "
        f"best plan by the model {policy['objective_of_best_plan']:.4f}"
    )
    yield f"Method: {values['method']}"
    met = values["sla_met"]
    yield f"Summary: SLAs met {met['baseline']}/{met['of']} -> {met['optimized']}/{met['of']}"


def _service_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """The lines about service levels."""
    yield ""
    yield "Service levels (limit, baseline, optimised):"
    for item, levels in values["sla"].items():
        limit = values["thresholds"][item]
        if levels is None:
            yield f"  {item}: not applicable"
            continue
        sides = " -> ".join(_side(levels[side]) for side in ("baseline", "optimized"))
        yield (
            f"  {item}: {limit['limit']:.4g} {limit['unit']} ({limit['from']}): {sides}; severity "
            f"{levels['severity_change']:+.1%}"
        )
    yield (
        f"  fixed: {', '.join(values['sla_fixed']) or 'none'}; new: {', '.join(values['sla_newly_violated']) or 'none'}"
    )


def recommended(values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what the report recommends with labels: the baseline, the three, then the best to stay on."""
    yield "What was there", values["what_was_there"]
    for each in values["recommendations"]:
        yield f"{each['name']} ({each['description']})", each
    for each in values["best_constants"]:
        yield f"Best to stay on from the begin, for {' and '.join(each['best_for'])}", each


def source_text(each: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return a recommendation's source; of the fastest also that it is slower than the run, if so."""
    run, told = values["optimized"], TOLD[each["source"]]
    fastest = each.get("priority") == "time" or "time" in each.get("best_for", ())
    slower = fastest and each["source"] != "measured" and not values["run"]["cut_off"] and each["time"] > run["time"]
    return f"{told}, slower than what was measured: {run['time']:.1f} s" if slower else told


def _side(level: Mapping[str, Any]) -> str:
    value = level["value"]
    told = "met" if level["met"] else f"violated by {level['severity']:.1%}"
    return f"{value:.4g} {told}" if value is not None else f"none {told}"
