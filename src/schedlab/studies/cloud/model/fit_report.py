"""Reads logs for `schedlab cloud fit` and the prepare rules ingest_logs and fit_performance, and reports fits."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.fit import PINNED, fit, leave_one_placement_out
from schedlab.studies.cloud.model.fit_cores import LEAST as LEAST_OF_CORES
from schedlab.studies.cloud.model.fit_cores import core_report, core_times, cores_beside, free_of_step
from schedlab.studies.cloud.model.logs import (
    of_placements,
    of_training,
    read_table,
    read_training_log,
    require_kinds,
    require_numbers,
)
from schedlab.studies.cloud.model.step_time import StepParameters

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
UNITS = {
    "a_c": " s",
    "b_c": " s/sample",
    "a_n": " s",
    "b_n": " s/GPU",
    "a_r": " s",
    "b_r": " s/GPU",
    "y": "",
    "core_seconds": " s/sample",
}
SETTINGS = ("kind", "nodes", "gpus", "batch")
ON_BOUND = 1.01  # a parameter within this factor of its lower bound lies on the bound
MISSED = 0.2  # median relative error above which a warning is given


def run_fit(arguments: argparse.Namespace) -> int:
    """Print the report of `schedlab cloud fit`."""
    if arguments.gpus_per_node < 1:
        raise UserError(f"{arguments.gpus_per_node} GPUs", where="--gpus-per-node", expected="1 or more")
    print_report(fit_report(arguments.logs, arguments.gpus_per_node, arguments.leave_out), as_json=not arguments.text)
    return 0


def fit_report(logs: Sequence[Path], gpus_per_node: int = 4, leave_out: bool = False) -> dict[str, Any]:
    """Return the fit of the logs' model; with several models, each under its name in `models`.

    Logs that name no model belong to the same one; logs of training without a GPU are fitted by their cores. If the
    logs name kinds of GPUs, `gpu_speeds` gives their speeds. Raises UserError for an invalid log.
    """
    import pandas as pd

    steps, cores = read_logs(logs, gpus_per_node)
    if not len(steps) and len(cores) == len(set(logs)):  # training logs of a CPU: there is only the part by cores
        return core_report(pd.concat(cores, ignore_index=True))
    return report_of(steps, pd.concat(cores, ignore_index=True) if cores else None, leave_out)


def read_logs(logs: Sequence[Path], gpus_per_node: int = 4) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the checked rows that are fitted: the step times of all logs (`logs.read_step_times`), and the core times
    (`fit_cores.core_times`) of each training log that has the column `cpu_count`. Raises UserError for an invalid log.
    """
    import pandas as pd

    steps, cores = [], {}
    for path in logs:
        table = read_table(path)
        if "step_time" in table.columns:
            steps.append(of_placements(table, path))
            continue
        table = read_training_log(path)
        steps.append(of_training(table, gpus_per_node))
        if "cpu_count" in table.columns:
            cores[path] = core_times(require_numbers(table, ["cpu_count"], path), gpus_per_node)
    together = pd.concat(steps, ignore_index=True)
    if "kind" in together.columns:
        require_kinds(together["kind"], ", ".join(map(str, logs)))
    return together, list(cores.values())


def report_of(steps: pd.DataFrame, cores: pd.DataFrame | None, leave_out: bool = False) -> dict[str, Any]:
    """Return the fit of the step times of one model or, under `models`, of several. If core times of one model differ
    only in their cores, the core time per sample is fitted, too (`cores`). Raises UserError without step times.
    """
    names = sorted(set(steps["model"]))
    if len(names) <= 1:
        report = model_report(steps, leave_out)
        step, speeds = StepParameters(**report["parameters"]), report.get("gpu_speeds", {})
        beside = cores_beside(cores, step, speeds) if cores is not None else None
        return {**report, "cores": beside} if beside else report
    return {"models": {name: model_report(steps[steps["model"] == name], leave_out) for name in names}}


def model_report(rows: pd.DataFrame, leave_out: bool = False) -> dict[str, Any]:
    """Return parameters, numbers of rows and settings, and errors of the fit of one model's step times."""
    found = fit(rows)
    report: dict[str, Any] = {
        "model": str(rows["model"].iloc[0]) or None,
        "parameters": found.parameters.values(),
        "rows": int(rows["rows"].sum()),
        "settings": len(rows[[name for name in SETTINGS if name in rows.columns]].drop_duplicates()),
        "free_parameters": free_of_step(rows),
        "placements": len(rows[["nodes", "gpus"]].drop_duplicates()),
        "median_relative_error": found.median_error,
        "largest_relative_error": found.largest_error,
        "step_times_alone": found.alone,
        **({"gpu_speeds": dict(found.speeds)} if found.speeds else {}),
    }
    if leave_out:
        left = leave_one_placement_out(rows)
        report["left_out"] = {
            "placements": left.placements,
            "interpolation_median_relative_error": left.interpolation,
            "extrapolation_median_relative_error": left.extrapolation,
        }
    return report


def print_report(report: Mapping[str, Any], as_json: bool) -> None:
    """Print a report as lines of text or as one JSON document, and log its warnings."""
    if not as_json:
        print("\n".join(report_lines(report)))
        return
    print(json.dumps(report, indent=1, allow_nan=False))
    for one in report["models"].values() if "models" in report else [report]:
        for told in (*_undetermined(one), *fit_warnings(one)):
            log.warning("%s", told)


def report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a report as lines of text."""
    for one in report["models"].values() if "models" in report else [report]:
        if one["model"]:
            yield one["model"]
        yield "  ".join(f"{name} {value:.4g}{UNITS[name]}" for name, value in one["parameters"].items())
        errors = (
            f"median relative error {one['median_relative_error']:.2%}, largest {one['largest_relative_error']:.2%}"
        )
        yield f"{', '.join(_counted(one[name], name) for name in ('rows', 'settings', 'placements'))}: {errors}"
        if speeds := one.get("gpu_speeds"):
            yield "speed of the GPUs: " + ", ".join(f"{kind} {speed:.3g}" for kind, speed in speeds.items())
        if one.get("step_times_alone"):
            yield "fitted to step times alone: with the part in synchronisation as told they are farther off"
        yield from _undetermined(one)
        if cores := one.get("cores"):
            error = f"median relative error {cores['median_relative_error']:.2%}"
            work = f"core_seconds {cores['core_seconds']:.4g}{UNITS['core_seconds']}"
            yield f"{work}: {error} over {_counted(cores['settings'], 'settings')}"
        for name in ("interpolation", "extrapolation"):
            value = one.get("left_out", {}).get(f"{name}_median_relative_error")
            if value is not None:
                yield f"left out placements, {name}: median relative error {value:.2%}"
        yield from (f"WARNING: {told}" for told in fit_warnings(one))


def _undetermined(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameters that a fit's rows do not determine, however small its error is."""
    if lowest := _on_bound(one["parameters"]):
        yield f"not told by these rows, on the lowest bound: {', '.join(lowest)}"
    if one["settings"] <= one["free_parameters"]:
        free = _counted(one["free_parameters"], "parameters")
        yield f"{free} for {_counted(one['settings'], 'settings')}: the error says nothing of others"


def _counted(number: int, names: str) -> str:
    """Return a number with its noun, as in 1 row, 2 rows."""
    return f"{number} {names if number != 1 else names.removesuffix('s')}"


def fit_warnings(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield warnings about the fit of one model whose error is large."""
    if one["median_relative_error"] > MISSED:
        told = f"half of the rows are missed by more than {one['median_relative_error']:.2%}"
        yield f"{told}; measure longer, on a machine that does nothing else, before anything rests on this fit"


def _on_bound(parameters: Mapping[str, float]) -> list[str]:
    """Return the parameters that the fit left at their lower bounds: the rows do not show their effect."""
    least = LEAST_OF_CORES if "core_seconds" in parameters else PINNED
    return [name for name, value in parameters.items() if value <= ON_BOUND * least]
