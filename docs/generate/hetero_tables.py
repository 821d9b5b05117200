"""Tables of the hetero study and of the simulator inside it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table_parts import page, percent

PHYSICS = ("physics-step", "physics-proportional", "physics-fair", "physics-capped", "physics-failing")


def hetero_objectives(results: Path) -> str:
    """The pair with the largest time-weighted sum of each objective."""
    rows = [
        [
            f"`{row.objective}`",
            f"`{row.best_pair}`",
            f"{row.mean_slowdown:.1f}" if row.mean_slowdown < 100 else f"{row.mean_slowdown:.0f}",
            f"{row.mean_waiting_time_h:.1f}",
            f"{row.makespan_h}",
            f"{row.energy_gj:.2f}",
        ]
        for row in pd.read_csv(results / "hetero_objectives.csv").itertuples()
    ]
    return page(
        ["objective", "its best pair", "mean slowdown", "mean waiting time (h)", "makespan (h)", "energy (GJ)"], rows
    )


def hetero_sensitivity(results: Path) -> str:
    """Values of the queue's variation by its sensitivity."""
    found = pd.read_csv(results / "hetero_sensitivity.csv")
    rows = [
        ["decisions at which v is 0.5", *(f"{value:g} %" for value in found["percent_at_half"])],
        ["decisions at which v is 0 or 1", *(f"{value:g} %" for value in found["percent_at_ends"])],
        ["values that v takes", *map(str, found["values"])],
    ]
    return page(["s", *(f"{value:g}" for value in found["queue_sensitivity"])], rows)


def hetero_launch(results: Path) -> str:
    """Episodes until an agent prefers the right pairs, by what was changed."""
    found = pd.read_csv(results / "hetero_launch.csv", keep_default_na=False)
    rows = []
    for (agent, changed), own in found.groupby(["agent", "changed"], sort=False):
        name, _, value = changed.partition(" ")
        rows.append(
            [
                f"`{agent}`",
                f"`{name}` {value}" if changed else "",
                ", ".join(map(str, own.sort_values("seed")["episodes"])),
            ]
        )
    return page(["agent", "changed", "episodes, by seed"], rows)


def hetero_physics(results: Path) -> str:
    """Mean bounded slowdown and rank of each policy under each physics, best with HDeepRM's physics first."""
    found = pd.read_csv(results / "hetero_physics.csv")
    means = found.pivot_table("mean_bounded_slowdown", "policy", "scenario")
    ranks, rows = means.rank(method="min").astype(int), []
    for policy in means.sort_values("physics-step").index:
        cells = [f"{means.loc[policy, name]:.2f} ({ranks.loc[policy, name]})" for name in PHYSICS]
        rows.append([f"`{policy}`", *cells])
    return page(["policy", *(f"`{name}`" for name in PHYSICS)], rows, "lrrrrr")


def batsim_simulator(results: Path) -> str:
    """Cases of benchmarks/simulator.py."""
    rows = [
        [
            f"`{row.case}`",
            f"{row.jobs:,}",
            f"{row.seconds:.2f}",
            f"{row.jobs_per_s:,}",
            f"{row.memory_mb:,.1f}",
            f"{row.bytes_per_job:,}",
        ]
        for row in pd.read_csv(results / "batsim_simulator.csv").itertuples()
    ]
    return page(["case", "jobs", "seconds", "jobs/s", "memory, MB", "bytes/job"], rows, "lrrrrr")


def batsim_profile(results: Path) -> str:
    """Shares of a case's time by part of the code."""
    found = pd.read_csv(results / "batsim_profile.csv")
    rows = [[row.part, percent(row.share)] for row in found[found["share"] >= 0.005].itertuples()]
    return page(["part", "share of the time"], rows, "lr")


TABLES = (
    hetero_physics,
    hetero_objectives,
    hetero_sensitivity,
    hetero_launch,
    batsim_simulator,
    batsim_profile,
)
