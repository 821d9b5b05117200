"""The part of the performance model that depends on cores, fitted to training logs: the input pipeline, or a whole job
on a CPU.

T = (T_gpu^d + T_data^d)^(1/d), T_data = M w / c^.95 (goodput). With GPUs, T_gpu is known from their fit and only w is
fitted. Without GPUs, a + b M takes the place of T_gpu: the computation on the CPU that more cores do not speed up; then
a, b and w are fitted. See docs/reference/cloud_model.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.fit import fit, speed_of
from schedlab.studies.cloud.model.logs import (
    check_rows,
    of_training,
    placed,
    require_columns,
    require_numbers,
    warmed,
)
from schedlab.studies.cloud.model.step_time import CORE_EXPONENT, OVERLAP, StepParameters, step_time

if TYPE_CHECKING:
    import pandas as pd

SETTING = ("model", "nodes", "gpus", "cores", "batch")  # columns
CORE_TIMES = (*SETTING, "step_time", "rows")  # columns
LEAST, MOST = 1e-9, 1e3  # bounds of a parameter, s
STARTS = (0.9, 0.5, 0.1)  # shares of the shortest time that first guesses assign to the cores


@dataclass(frozen=True)
class CoreFit:
    """A fit to core times.

    step          parameters of the GPU step; without GPUs, of the part that cores do not speed up
    core_seconds  core time per sample, s
    rows          number of rows of the log that were fitted
    free          number of parameters that these rows determine
    settings      number of different settings, each of which counts by its median; if it equals `free`, errors are
                  meaningless
    """

    step: StepParameters
    core_seconds: float
    rows: int
    median_error: float
    largest_error: float
    free: int = 0
    settings: int = 0


def core_times(log: pd.DataFrame, gpus_per_node: int = 4) -> pd.DataFrame:
    """Return the rows of a checked training log (logs.check_rows) by setting, with the columns CORE_TIMES.

    batch: in total; step_time: median, s; rows: number of rows of the log; kind: only if the log names the kind of its
    GPUs. If a run has several epochs, its first one is left out, because it includes the warm-up.
    """
    rows = warmed(log)
    found = placed(rows, gpus_per_node)
    found = found.assign(cores=rows["cpu_count"].astype(int), batch=rows["batch_size"].astype(float))
    keys = [name for name in (*SETTING, "kind") if name in found.columns]
    settings = found.groupby(keys, sort=True)["step_time"]
    return settings.median().to_frame().assign(rows=settings.size()).reset_index()


def iteration_time(
    step: StepParameters, core_seconds: float, rows: pd.DataFrame, speed: np.ndarray | float = 1.0
) -> np.ndarray:
    """Return the time of an iteration for each row of `core_times`, s. speed: of the row's GPU kind."""
    gpus = np.maximum(rows["gpus"].to_numpy(), 1)
    on_gpu = step_time(step, rows["nodes"].to_numpy(), gpus, rows["batch"].to_numpy(float) / gpus, speed)
    on_cores = rows["batch"].to_numpy(float) * core_seconds / rows["cores"].to_numpy(float) ** CORE_EXPONENT
    return (on_gpu**OVERLAP + on_cores**OVERLAP) ** (1.0 / OVERLAP)


def fit_cores(
    rows: pd.DataFrame,
    step: StepParameters | None = None,
    shares: Sequence[float] = STARTS,
    speeds: Mapping[str, float] | None = None,
) -> CoreFit:
    """Fit the core time per sample; without `step`, fit rows without GPUs, and also the part that cores do not speed
    up. shares: starts of the search (STARTS); speeds: of the GPU kinds, for a known step. Raises UserError without
    rows.
    """
    from scipy.optimize import minimize

    rows = rows[(rows["gpus"] > 0) if step else (rows["gpus"] == 0)]
    if not len(rows):
        raise UserError(
            "no row to fit", where="training log", expected="epochs on a CPU" if step is None else "epochs on a GPU"
        )
    measured = rows["step_time"].to_numpy(float)
    speed = speed_of(rows, speeds or {}) if step else 1.0
    one_batch = rows["batch"].nunique() == 1

    def parameters(logs: np.ndarray) -> tuple[StepParameters, float]:
        values = np.exp(logs)
        return step or on_cpu(LEAST if one_batch else float(values[1]), float(values[2])), float(values[0])

    def loss(logs: np.ndarray) -> float:
        errors = np.log(iteration_time(*parameters(logs), rows, speed) / measured)
        return float(np.sqrt(np.mean(errors**2) + 1e-6))

    each = float((measured / rows["batch"]).min())
    cores = float(rows["cores"].mean()) ** CORE_EXPONENT
    best: Any = None
    for share in shares:
        start = np.log([each * share * cores, max(LEAST, 0.1 * measured.min()), each * (1 - share)][: 1 if step else 3])
        bounds = np.log([(LEAST, MOST)] * len(start))
        found = minimize(loss, start, method="L-BFGS-B", bounds=bounds)
        best = found if best is None or found.fun < best.fun else best
    fitted, core_seconds = parameters(best.x)
    errors = np.abs(iteration_time(fitted, core_seconds, rows, speed) - measured) / measured
    free = 1 if step else 2 if one_batch else 3
    return CoreFit(
        fitted, core_seconds, int(rows["rows"].sum()), float(np.median(errors)), float(errors.max()), free, len(rows)
    )


def fit_table(table: pd.DataFrame, path: Path, gpus_per_node: int = 4) -> CoreFit:
    """Return the model fitted to a training log: the step on GPUs, if there are any, and the part by cores. path: for
    errors.
    """
    log = check_rows(table, path)
    require_columns(log, ("cpu_count",), path)
    rows = core_times(require_numbers(log, ("cpu_count",), path), gpus_per_node)
    if not (log["gpu_count"] > 0).any():
        return fit_cores(rows)
    steps = of_training(log, gpus_per_node)
    whole = fit(steps)
    found = fit_cores(rows, whole.parameters, speeds=whole.speeds)
    return replace(found, free=found.free + free_of_step(steps))


def free_of_step(steps: pd.DataFrame) -> int:
    """Return the number of step parameters that rows of `logs.read_step_times` determine (fit.bounds)."""
    within, between = (steps["nodes"] == 1) & (steps["gpus"] > 1), steps["nodes"] > 1
    found = 1 + (steps["batch"].nunique() > 1) + bool(within.any() or between.any())  # b_c, a_c, y
    found += steps["kind"].nunique() - 1 if "kind" in steps.columns else 0
    return int(found + sum(1 + (steps["gpus"][which].max() > 2) for which in (within, between) if which.any()))


def on_cpu(a: float, b: float) -> StepParameters:
    """Return the parameters of a step on one device that never synchronises: a + b M seconds."""
    return StepParameters(a, b, LEAST, LEAST, LEAST, LEAST, 1.0)


def core_report(rows: pd.DataFrame) -> dict[str, object]:
    """Return the fit of core times (`core_times`) of training without GPUs, in the form of `fit_report`."""
    found = fit_cores(rows)
    values = found.step.values()
    return {
        "model": str(rows["model"].iloc[0]) or None,
        "parameters": {"a_c": values["a_c"], "b_c": values["b_c"], "core_seconds": found.core_seconds},
        "rows": found.rows,
        "settings": found.settings,
        "free_parameters": found.free,
        "placements": len(rows[["nodes", "gpus", "cores"]].drop_duplicates()),
        **_errors(found),
    }


def cores_beside(rows: pd.DataFrame, step: StepParameters, speeds: Mapping[str, float]) -> dict[str, object] | None:
    """Return the core time per sample and the errors of the fit, for a known step on the GPUs and known speeds of their
    kinds. None if no two rows differ only in their cores: the logs then do not determine it.
    """
    rows = rows[rows["gpus"] > 0]
    alike = [name for name in ("kind", "nodes", "gpus", "batch") if name in rows.columns]
    if not (rows.groupby(alike)["cores"].nunique() > 1).any():
        return None
    found = fit_cores(rows, step, speeds=speeds)
    counts = {"rows": found.rows, "settings": found.settings, "free_parameters": found.free}
    return {"core_seconds": found.core_seconds, **counts, **_errors(found)}


def _errors(found: CoreFit) -> dict[str, float]:
    return {"median_relative_error": found.median_error, "largest_relative_error": found.largest_error}
