"""Figures of single episodes: allocations over time, parts of the objective, severities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import GRID
from schedlab.studies.cloud.figures.common import episode, learned_name, left_out, nothing, preference_colour
from schedlab.studies.cloud.figures.settings import EpisodeSettings, ShownSettings
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.sla import ITEMS

if TYPE_CHECKING:
    import pandas as pd

RESOURCES = {"gpu_count": "GPUs", "cpu_count": "CPU cores", "memory_gb": "memory (GB)"}
PARTS = ("time", "cost", "waste")
WORDS = {
    "time": "time",
    "cost": "cost",
    "throughput": "throughput",
    "memory": "memory",
    "gpu_util": "GPU use",
    "cpu_util": "CPU use",
}


def draw_allocations(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A column a workload, a row a resource, a line a preference: what the policy holds (ShownSettings)."""
    settings = helpers.settings_of(spec, ShownSettings)
    shown = _with_episodes(tables, spec, settings.learned, settings.preferences[0])
    if not shown:
        return nothing(spec, "no policy is learned at this scale")
    figure, grid = theme.new_figure(
        len(RESOURCES), len(shown), height_mm=110, squeeze=False, sharex="col", sharey="row"
    )
    told = []
    for column, scenario in enumerate(shown):
        for place, preference in enumerate(settings.preferences):
            rows = episode(tables, "allocation_history", scenario, learned_name(settings.learned, scenario), preference)
            if not len(rows):
                continue
            for row, name in enumerate(RESOURCES):
                line = {
                    "color": preference_colour(preference, place),
                    "linestyle": theme.DASHES[place % len(theme.DASHES)],
                    "linewidth": 1.4,
                }
                grid[row, column].step(rows["step"] + 1, rows[name], where="mid", label=preference, **line)
            last = rows.iloc[-1]
            told.append(f"{scenario} {preference} {last['gpu_count']:g}, {last['cpu_count']:g}, {last['memory_gb']:g}")
        grid[0, column].set_title(scenario)
    for row, label in enumerate(RESOURCES.values()):
        grid[row, 0].set_ylabel(label)
        grid[row, 0].set_ylim(bottom=0)
    helpers.shared_xlabel(list(grid[-1]), "interval of the training")
    helpers.legend_outside(figure, columns=4)
    caption = f"{spec.caption} In the end (GPUs, cores, GB): {'; '.join(told)}."
    return Drawing(figure, caption, left_out=left_out(tables, spec, shown, settings.learned))


def draw_objective_parts(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a workload: what each interval adds, learned above and static below zero (EpisodeSettings)."""
    settings = helpers.settings_of(spec, EpisodeSettings)
    shown = _with_episodes(tables, spec, settings.learned, settings.preference)
    if not shown:
        return nothing(spec, "no policy is learned at this scale")
    figure, grid = theme.new_figure(2, len(shown), height_mm=88, squeeze=False, sharex="col", sharey="col")
    told = []
    for column, scenario in enumerate(shown):
        for row, policy in enumerate((learned_name(settings.learned, scenario), settings.baseline)):
            rows = episode(tables, "performance_metrics", scenario, policy, settings.preference)
            parts = objective_parts(rows, _references(tables, scenario), settings.preference)
            below, edges = np.zeros(len(rows)), np.arange(len(rows) + 1) + 0.5
            for number, name in enumerate(PARTS):
                above = below + parts[name]  # one area: gaps between bars so narrow come and go with the pixels
                grid[row, column].stairs(
                    above, edges, baseline=below, fill=True, color=theme.colour(4 + number), label=name
                )
                below = above
            told.append(f"{scenario} {policy.removesuffix('-' + scenario)} {below.sum():.3f}")
        grid[0, column].set_ylim(bottom=0)  # of both rows, once both are drawn
        grid[0, column].set_title(scenario)
    grid[0, 0].set_ylabel("learned\nadded to the objective")
    grid[1, 0].set_ylabel(f"{settings.baseline}\nadded to the objective")
    helpers.shared_xlabel(list(grid[-1]), "interval of the training")
    helpers.legend_outside(figure, columns=3)
    caption = f"{spec.caption} Objective in the end: {'; '.join(told)}."
    return Drawing(figure, caption, left_out=left_out(tables, spec, shown, settings.learned))


def objective_parts(rows: pd.DataFrame, references: dict[str, Any], preference: str) -> dict[str, np.ndarray]:
    """Return what time, cost and waste add to the objective in each interval of an episode without noise."""
    weights = weights_of(preference)
    busy = (rows["gpu_util"].to_numpy() + rows["cpu_util"].to_numpy()) / 200.0
    return {
        "time": weights["time"] * np.diff(rows["time_so_far"], prepend=0.0) / references["time_ref"],
        "cost": weights["cost"] * np.diff(rows["cost_so_far"], prepend=0.0) / references["cost_ref"],
        "waste": weights["resource"] * (1.0 - busy) / len(rows),
    }


def draw_service_levels(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A column a workload, learned above, static below: each item's severity over time (EpisodeSettings)."""
    settings = helpers.settings_of(spec, EpisodeSettings)
    shown = _with_episodes(tables, spec, settings.learned, settings.preference)
    if not shown:
        return nothing(spec, "no policy is learned at this scale")
    figure, grid = theme.new_figure(2, len(shown), height_mm=88, squeeze=False, sharex="col", sharey=True)
    told: list[str] = []
    image: Any = None
    for column, scenario in enumerate(shown):
        for row, policy in enumerate((learned_name(settings.learned, scenario), settings.baseline)):
            rows = episode(tables, "sla_metrics", scenario, policy, settings.preference)
            severities = rows[[f"sla_{item}_severity" for item in ITEMS]].to_numpy().T
            axes = grid[row, column]
            edges = np.arange(severities.shape[1] + 1) + 0.5
            image = axes.pcolormesh(
                edges,
                np.arange(len(ITEMS) + 1),
                severities,
                cmap="Blues",
                vmin=0,
                vmax=1,
                edgecolors=GRID,
                linewidth=0.3,
            )
            axes.set_yticks(np.arange(len(ITEMS)) + 0.5, [WORDS[item] for item in ITEMS])
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
            axes.set_ylim(len(ITEMS), 0)
            met = rows[[f"sla_{item}_met" for item in ITEMS]].iloc[-1].sum()
            told.append(f"{scenario} {policy.removesuffix('-' + scenario)} {met:.0f}")
        grid[0, column].set_title(scenario)
    grid[0, 0].set_ylabel("learned")
    grid[1, 0].set_ylabel(settings.baseline)
    helpers.shared_xlabel(list(grid[-1]), "interval of the training")
    figure.colorbar(image, ax=grid[:, -1], label="severity (0: met)", aspect=30).outline.set_visible(False)
    caption = f"{spec.caption} Met in the end, of 6: {'; '.join(told)}."
    return Drawing(figure, caption, left_out=left_out(tables, spec, shown, settings.learned))


def _with_episodes(tables: StudyTables, spec: FigureSpec, learned: str, preference: str) -> list[str]:
    """Scenarios whose learned policy has an episode of a preference."""
    found = []
    for scenario in spec.scenarios:
        rows = episode(tables, "allocation_history", scenario, learned_name(learned, scenario), preference)
        if rows is not None and len(rows):
            found.append(scenario)
    return found


def _references(tables: StudyTables, scenario: str) -> dict[str, Any]:
    return json.loads(tables.inputs[scenario]["oracle"].read_text(encoding="utf-8"))
