"""Tables of an optimised training (docs/guide/cloud_live.md): those of `episode_tables`, the Pareto front, and a table
with a row for each run.

Episode 0 is the episode of the plan or the learned policy in the model, episode 1 the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.files import atomic_path
from schedlab.studies.cloud.live.learn import EpisodeStep
from schedlab.studies.cloud.live.model import constant_objectives, constant_totals
from schedlab.studies.cloud.model.allocation import Allocation, held_in, whole
from schedlab.studies.cloud.model.logs import read_table
from schedlab.studies.cloud.model.plan import undominated
from schedlab.studies.cloud.optimize.flow import Optimization, optimized_values, percent_change
from schedlab.studies.cloud.optimize.report import met, service_levels
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.episode_tables import KEY, seen_values, step_tables
from schedlab.studies.cloud.replay.replay import Replay
from schedlab.studies.cloud.replay.reward import PREFERENCES

if TYPE_CHECKING:
    import pandas as pd

ACTION_LOG = "rl_action_description"
METRICS = "optimization_metrics.csv"  # a row for each run


def tables(outcome: Optimization) -> dict[str, pd.DataFrame]:
    """Return every table with one row per step, and the Pareto front, by name.

    In allocation_history and rl_action_log, `change` is the actual change of the allocation; the published name of the
    action only states the requested one.
    """
    courses = outcome.learned.course, outcome.live
    gpus = outcome.job.resource.gpu_count_max > 0
    rows = [
        {"episode": episode, "step": step, "epoch": taken.record["epoch"], **_row(taken, gpus)}
        for episode, course in enumerate(courses)
        for step, taken in enumerate(course)
    ]
    made = step_tables(rows, outcome.settings.preference)
    held = [[held_in(taken.record) for taken in course] for course in courses]
    # A script that ran once began where it stayed.
    begins = outcome.job.first, outcome.job.first if outcome.resumes else held[1][0]
    done = [told for begin, course in zip(begins, held, strict=True) for told in allocation_changes([begin, *course])]
    for name, column, beside in (
        ("allocation_history", "change", "action_description"),
        ("rl_action_log", "rl_change", ACTION_LOG),
    ):
        made[name].insert(made[name].columns.get_loc(beside) + 1, column, done)
    return {**made, "pareto_front": pareto_table(outcome.replay, outcome.settings.preference)}


def allocation_changes(held: Sequence[Allocation]) -> list[str]:
    """Return a text of the change from each allocation to the next, (len(held) - 1)."""
    told = []
    for before, after in itertools.pairwise(held):
        parts = zip(("GPUs", "cores", "memory"), before, after, ("", "", " GB"), strict=True)
        told.append(
            ", ".join(f"{name} {old:g} to {new:g}{unit}" for name, old, new, unit in parts if new != old) or "nothing"
        )
    return told


def _row(taken: EpisodeStep, gpus: bool) -> dict[str, Any]:
    """Return the values of a step from which each table takes some; without GPUs, their service level is left out."""
    values = seen_values(taken.record, taken.action, taken.reward, taken.objectives, taken.state)
    if not gpus:
        values |= {"sla_gpu_util_met": None, "sla_gpu_util_severity": None}
    return {**values, "uncertainty": taken.uncertainty, "policy_used": taken.policy_used}


def pareto_table(replay: Replay, preference: str) -> pd.DataFrame:
    """Return the constant allocations that are not dominated in time and cost by the model, cheapest last.

    The column `preference` lists the preferences (the published ones and the given one) for which the objective,
    including the first start as in the report, is best on that allocation; it may be empty. For a preference with a
    weight on utilisation, the best allocation may be dominated, and is then in no row.
    """
    import pandas as pd

    time, cost = constant_totals(replay)
    names = dict.fromkeys((*PREFERENCES, preference))
    best = {name: int(constant_objectives(replay, weights_of(name)).argmin()) for name in names}
    rows = []
    for number in undominated(time, cost):
        gpus, cores, memory = replay.lattice.allocations[number].tolist()
        best_for = " ".join(name for name, chosen in best.items() if chosen == number)
        rows.append((0, 0, 0, best_for, cost[number], time[number], int(gpus), int(cores), whole(memory)))
    return pd.DataFrame(rows, columns=[*KEY, "preference", "estimated_cost", "estimated_time", *Allocation._fields])


def metrics_row(outcome: Optimization, now: str) -> dict[str, Any]:
    """Return the row of optimization_metrics for a run. now: time of the run."""
    base, new = outcome.baseline, optimized_values(outcome)
    doubts = [taken.uncertainty for taken in outcome.live]
    row: dict[str, Any] = {
        "experiment_time": now,
        "preference": outcome.settings.preference,
        "training_file": outcome.script.name,
        "average_uncertainty": float(np.mean(doubts)),
        "max_uncertainty": max(doubts),
    }
    for name, values in (("baseline", base), ("optimized", new)):
        row |= {f"{name}_{key}": values[key] for key in Allocation._fields}
        row[f"{name}_time_minutes"] = values["time"] / 60
        row |= {f"{name}_{key}": values[key] for key in ("cost", "throughput")}
    for name, key in (("gpu", "gpu_count"), ("time", "time"), ("cost", "cost")):
        change = percent_change(new[key], base[key])
        row[f"{name}_reduction_pct"] = None if change is None else -change
    levels = service_levels(outcome, base, new)
    row |= {f"{name}_sla_met_count": len(met(levels, name)) for name in ("baseline", "optimized")}
    return {**row, "optimization_time_minutes": outcome.minutes}


def runs_so_far(folder: Path) -> pd.DataFrame | None:
    """Return the table optimization_metrics.csv of a folder; None without one. Raises UserError for a damaged one."""
    file = folder / METRICS
    return read_table(file) if file.exists() else None


def write_tables(outcome: Optimization, folder: Path, now: str) -> None:
    """Write the tables as CSV and add a row to optimization_metrics. Raises UserError if that table is damaged."""
    import pandas as pd

    for name, table in tables(outcome).items():
        with atomic_path(folder / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False)
    row, kept = pd.DataFrame([metrics_row(outcome, now)]), runs_so_far(folder)
    with atomic_path(folder / METRICS) as temporary:
        (row if kept is None else pd.concat([kept, row], ignore_index=True)).to_csv(temporary, index=False)
    if (samples := outcome.baseline_table) is not None:
        model = str(samples["model_name"].iloc[0])
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in model)[:100] or "model"
        with atomic_path(folder / f"{safe}_combined_baseline.csv") as temporary:
            samples.to_csv(temporary, index=False)
