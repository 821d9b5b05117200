"""Figures of single episodes: allocations over time, parts of the objective, severities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import nothing_to_draw, settings_of
from schedlab.figures.panels.cells import cells, colour_bar
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.timeline import stacked_areas
from schedlab.figures.theme import GRID, INK
from schedlab.studies.cloud.figures import data
from schedlab.studies.cloud.figures.settings import EpisodeSettings, ShownSettings
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.sla import ITEMS

RESOURCES = {"gpu_count": "GPUs", "cpu_count": "CPU cores", "memory_gb": "memory (GB)"}
PARTS = ("time", "cost", "waste")
WORDS = {"gpu_util": "GPU use", "cpu_util": "CPU use"}  # labels of items whose names are not words
Panel = Callable[[Axes, str, str], list[dict[str, Any]]]  # (axes, row, scenario) -> values for the caption


def draw_allocations(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the chosen allocation by workload (columns), resource (rows) and preference (lines); ShownSettings."""
    settings = settings_of(spec, ShownSettings)

    def panel(axes: Axes, resource: str, scenario: str) -> list[dict[str, Any]]:
        final = []
        for place, preference in enumerate(settings.preferences):
            rows = data.episode(tables, "allocation_history", scenario, settings.learned, preference)
            if len(rows):
                look: dict[str, Any] = {"color": data.preference_colour(preference, place), "linewidth": 1.4}
                look |= {"linestyle": theme.DASHES[place % len(theme.DASHES)], "label": preference, "where": "mid"}
                axes.step(rows["step"] + 1, rows[resource], **look)
                held = {name: float(rows[name].iloc[-1]) for name in RESOURCES}
                final.append({"scenario": scenario, "preference": preference, **held})
        return final if resource == "gpu_count" else []

    held = "{scenario} {preference} {gpu_count:g}, {cpu_count:g}, {memory_gb:g}"
    caption = f"In the end (GPUs, cores, GB): {{final:{held}}}."
    grid = Grid(row_mm=38, zero=True, subplots={"sharex": "col", "sharey": "row"})
    return _columns(tables, spec, settings, settings.preferences[0], RESOURCES, panel, caption, grid)


def draw_objective_parts(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw what each interval adds to a workload's objective, learned above and static below (EpisodeSettings)."""
    settings = settings_of(spec, EpisodeSettings)
    colours = {name: theme.colour(4 + number) for number, name in enumerate(PARTS)}

    def panel(axes: Axes, policy: str, scenario: str) -> list[dict[str, Any]]:
        rows = data.episode(tables, "performance_metrics", scenario, policy, settings.preference)
        parts = objective_parts(rows, data.oracle_of(tables, scenario), settings.preference)
        stacked_areas(axes, parts, np.arange(len(rows) + 1) + 0.5, colours)
        total = float(sum(values.sum() for values in parts.values()))
        return [{"scenario": scenario, "policy": policy, "objective": total}]

    added = {policy: f"{name}\nadded to the objective" for policy, name in _sides(settings).items()}
    caption = "Objective in the end: {final:{scenario} {policy} {objective:.3f}}."
    grid = Grid(row_mm=38, zero=True, subplots={"sharex": "col", "sharey": "col"})
    return _columns(tables, spec, settings, settings.preference, added, panel, caption, grid)


def objective_parts(rows: pd.DataFrame, references: dict[str, Any], preference: str) -> dict[str, np.ndarray]:
    """Return the increase of the objective by time, cost and waste in each interval of an episode without noise."""
    weights = weights_of(preference)
    busy = (rows["gpu_util"].to_numpy() + rows["cpu_util"].to_numpy()) / 200.0
    return {
        "time": weights["time"] * np.diff(rows["time_so_far"], prepend=0.0) / references["time_ref"],
        "cost": weights["cost"] * np.diff(rows["cost_so_far"], prepend=0.0) / references["cost_ref"],
        "waste": weights["resource"] * (1.0 - busy) / len(rows),
    }


def draw_service_levels(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw each service level's severity over time by workload, learned above and static below (EpisodeSettings)."""
    settings, images = settings_of(spec, EpisodeSettings), []
    look: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 1, "edgecolors": GRID, "linewidth": 0.3}

    def panel(axes: Axes, policy: str, scenario: str) -> list[dict[str, Any]]:
        rows = data.episode(tables, "sla_metrics", scenario, policy, settings.preference)
        severities = rows[[f"sla_{item}_severity" for item in ITEMS]].to_numpy().T
        names, edges = [WORDS.get(item, item) for item in ITEMS], np.arange(len(rows) + 1) + 0.5
        images.append(cells(axes, severities, names, edges=edges, **look))
        violated, intervals = np.nonzero(severities > 0)
        axes.plot(intervals + 1, violated + 0.5, ".", color=INK, markersize=1.5)
        met = int(rows[[f"sla_{item}_met" for item in ITEMS]].iloc[-1].sum())
        return [{"scenario": scenario, "policy": policy, "met": met}]

    caption = f"Met in the end, of {len(ITEMS)}: {{final:{{scenario}} {{policy}} {{met}}}}."
    grid = Grid(row_mm=38, subplots={"sharex": "col", "sharey": True})
    drawing = _columns(tables, spec, settings, settings.preference, _sides(settings), panel, caption, grid)
    if images:
        colour_bar(drawing.figure.axes[len(images) // 2 - 1 :: len(images) // 2], images[0], "severity (0: met)")
    return drawing


def _sides(settings: EpisodeSettings) -> dict[str, str]:
    return {settings.learned: "learned", settings.baseline: settings.baseline}


def _columns(
    tables: StudyTables, spec: FigureSpec, settings: ShownSettings, preference: str, rows: Mapping[str, str],
    panel: Panel, caption: str, grid: Grid,
) -> Drawing:  # fmt: skip
    """Return the drawing with the labelled rows and a column for each scenario in which the learned policy has an
    episode of the preference. The values of the panels are `final`, scenario by scenario.
    """
    episodes = {
        name: data.episode(tables, "allocation_history", name, settings.learned, preference) for name in spec.scenarios
    }
    shown = [name for name, found in episodes.items() if len(found)]
    if not shown:
        return nothing_to_draw(data.NOT_LEARNED)
    places = list(product(rows, shown))
    groups = [(place[1] if place[0] == next(iter(rows)) else "", place) for place in places]
    grid = replace(grid, most=len(shown), x="interval of the training", y=list(rows.values()))
    figure, found = facets(groups, lambda axes, place: panel(axes, *place), grid)
    final = [row for name in shown for place, own in zip(places, found, strict=True) if place[1] == name for row in own]
    missing = data.left_out(tables, spec, shown, settings.learned)
    return Drawing(figure, caption, {"final": final}, left_out=missing)
