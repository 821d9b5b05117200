"""Figures of single episodes: allocations over time, parts of the objective, severities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import nothing_to_draw, settings_of
from schedlab.figures.panels.axes import legend_outside, shared_xlabel
from schedlab.figures.panels.cells import cells, colour_bar
from schedlab.figures.panels.timeline import stacked_areas
from schedlab.figures.theme import GRID, INK
from schedlab.studies.cloud.figures import data
from schedlab.studies.cloud.figures.settings import EpisodeSettings, ShownSettings
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.sla import ITEMS

RESOURCES = {"gpu_count": "GPUs", "cpu_count": "CPU cores", "memory_gb": "memory (GB)"}
INTERVAL = "interval of the training"
PARTS = ("time", "cost", "waste")
WORDS = {"gpu_util": "GPU use", "cpu_util": "CPU use"}  # of items whose names are no words


def draw_allocations(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a column for each workload, a row for each resource and a line for each preference: the allocation that the
    policy chooses (ShownSettings).
    """
    settings = settings_of(spec, ShownSettings)
    shown = _with_episodes(tables, spec, settings.learned, settings.preferences[0])
    if not shown:
        return nothing_to_draw(data.NOT_LEARNED)
    rows_and_columns = len(RESOURCES), len(shown)
    figure, grid = theme.new_figure(*rows_and_columns, height_mm=110, squeeze=False, sharex="col", sharey="row")
    final = []
    for column, scenario in enumerate(shown):
        for place, preference in enumerate(settings.preferences):
            rows = data.episode(tables, "allocation_history", scenario, settings.learned, preference)
            if not len(rows):
                continue
            look: dict[str, Any] = {"color": data.preference_colour(preference, place), "linewidth": 1.4}
            look |= {"linestyle": theme.DASHES[place % len(theme.DASHES)], "label": preference, "where": "mid"}
            for row, name in enumerate(RESOURCES):
                grid[row, column].step(rows["step"] + 1, rows[name], **look)
            held = {name: float(rows[name].iloc[-1]) for name in RESOURCES}
            final.append({"scenario": scenario, "preference": preference, **held})
        grid[0, column].set_title(scenario)
    for axes, label in zip(grid[:, 0], RESOURCES.values(), strict=True):
        axes.set(ylabel=label)
        axes.set_ylim(bottom=0)
    shared_xlabel(list(grid[-1]), INTERVAL)
    legend_outside(figure, columns=4)
    held_text = "{scenario} {preference} {gpu_count:g}, {cpu_count:g}, {memory_gb:g}"
    missing = data.left_out(tables, spec, shown, settings.learned)
    return Drawing(figure, f"In the end (GPUs, cores, GB): {{final:{held_text}}}.", {"final": final}, left_out=missing)


def draw_objective_parts(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a column for each workload: what each interval adds to the objective, learned above and static below
    (EpisodeSettings).
    """
    settings = settings_of(spec, EpisodeSettings)
    shown = _with_episodes(tables, spec, settings.learned, settings.preference)
    if not shown:
        return nothing_to_draw(data.NOT_LEARNED)
    figure, grid = theme.new_figure(2, len(shown), height_mm=88, squeeze=False, sharex="col", sharey="col")
    colours = {name: theme.colour(4 + number) for number, name in enumerate(PARTS)}
    final = []
    for column, scenario in enumerate(shown):
        for axes, policy in zip(grid[:, column], (settings.learned, settings.baseline), strict=True):
            rows = data.episode(tables, "performance_metrics", scenario, policy, settings.preference)
            parts = objective_parts(rows, data.oracle_of(tables, scenario), settings.preference)
            stacked_areas(axes, parts, np.arange(len(rows) + 1) + 0.5, colours)
            total = float(sum(values.sum() for values in parts.values()))
            final.append({"scenario": scenario, "policy": policy, "objective": total})
        grid[0, column].set_ylim(bottom=0)  # of both rows, once both are drawn
        grid[0, column].set_title(scenario)
    grid[0, 0].set_ylabel("learned\nadded to the objective")
    grid[1, 0].set_ylabel(f"{settings.baseline}\nadded to the objective")
    shared_xlabel(list(grid[-1]), INTERVAL)
    legend_outside(figure, columns=3)
    missing = data.left_out(tables, spec, shown, settings.learned)
    caption = "Objective in the end: {final:{scenario} {policy} {objective:.3f}}."
    return Drawing(figure, caption, {"final": final}, left_out=missing)


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
    """Draw a column for each workload, learned above and static below: the severity of each service level over time
    (EpisodeSettings).
    """
    settings = settings_of(spec, EpisodeSettings)
    shown = _with_episodes(tables, spec, settings.learned, settings.preference)
    if not shown:
        return nothing_to_draw(data.NOT_LEARNED)
    figure, grid = theme.new_figure(2, len(shown), height_mm=88, squeeze=False, sharex="col", sharey=True)
    look: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 1, "edgecolors": GRID, "linewidth": 0.3}
    names, final, image = [WORDS.get(item, item) for item in ITEMS], [], None
    for column, scenario in enumerate(shown):
        for axes, policy in zip(grid[:, column], (settings.learned, settings.baseline), strict=True):
            rows = data.episode(tables, "sla_metrics", scenario, policy, settings.preference)
            severities = rows[[f"sla_{item}_severity" for item in ITEMS]].to_numpy().T
            image = cells(axes, severities, names, edges=np.arange(len(rows) + 1) + 0.5, **look)
            violated, intervals = np.nonzero(severities > 0)
            axes.plot(intervals + 1, violated + 0.5, ".", color=INK, markersize=1.5)
            met = int(rows[[f"sla_{item}_met" for item in ITEMS]].iloc[-1].sum())
            final.append({"scenario": scenario, "policy": policy, "met": met})
        grid[0, column].set_title(scenario)
    grid[0, 0].set_ylabel("learned")
    grid[1, 0].set_ylabel(settings.baseline)
    shared_xlabel(list(grid[-1]), INTERVAL)
    colour_bar(grid[:, -1], image, "severity (0: met)")
    missing = data.left_out(tables, spec, shown, settings.learned)
    caption = "Met in the end, of {items}: {final:{scenario} {policy} {met}}."
    return Drawing(figure, caption, {"final": final, "items": len(ITEMS)}, left_out=missing)


def _with_episodes(tables: StudyTables, spec: FigureSpec, learned: str, preference: str) -> list[str]:
    """Scenarios whose learned policy has an episode of a preference."""
    return [
        name for name in spec.scenarios if len(data.episode(tables, "allocation_history", name, learned, preference))
    ]
