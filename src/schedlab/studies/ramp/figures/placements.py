"""The figure of placements: blocking of each policy where only the servers that a job takes differ."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.panels.axes import key
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, points_with_uncertainty
from schedlab.figures.selection import select
from schedlab.studies.ramp.figures import data
from schedlab.studies.ramp.figures.settings import PlacementsSettings

ROW_MM, APART = 6.0, 0.22  # height of a policy's row; distance of its points, in heights of a row


def draw_placements(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per distribution of limits, one row per policy, in it one point per placement (PlacementsSettings)."""
    settings = settings_of(spec, PlacementsSettings)
    rows = data.tested(select(tables.summary, scenario=spec.scenarios, metric=data.BLOCKING), tables)
    rows = select(rows, policy=settings.policies)
    run = set(rows["scenario"])
    panels = {label: own for label, own in settings.panels.items() if run & set(own.values())}
    if not panels:
        return nothing_to_draw(data.NOT_RUN)
    places = dict.fromkeys(place for own in panels.values() for place in own)
    looks = data.looks(places)
    shifts = {place: APART * (number - (len(places) - 1) / 2) for number, place in enumerate(places)}
    shown = [policy for policy in settings.policies if policy in set(rows["policy"])]

    def panel(axes: Axes, own: dict[str, str]) -> dict[str, Any]:
        for place, scenario in own.items():
            found = select(rows, scenario=scenario)
            points_with_uncertainty(
                axes, found, shown, dict.fromkeys(shown, looks[place]), shift=shifts[place], absent=""
            )
        return _least(select(rows, scenario=list(own.values())), {scenario: place for place, scenario in own.items()})

    grid = Grid(2, 14 + ROW_MM * len(shown), 16, "blocking rate", subplots={"sharey": True})
    figure, least = facets(panels, panel, grid, keys=())
    handles = [key(place, **looks[place].point()) for place in places]
    facts = explain_uncertainty(figure, rows, tables.statistics.confidence, more=handles)
    caption = f"Least blocking: {{least:{{name}} {{policy}}, {{place}} ({{rate:.3f}})}}. {UNCERTAINTY}"
    missing = left_out(spec, run, data.NOT_SCORED)
    return Drawing(figure, caption, {"least": dict(zip(panels, least, strict=True)), **facts}, left_out=missing)


def _least(rows: pd.DataFrame, places: dict[str, str]) -> dict[str, Any]:
    """The policy and placement with the least blocking, informed policies included."""
    best = rows.sort_values(["value", "policy", "scenario"], kind="stable").iloc[0]
    return {"policy": best["policy"], "place": places[best["scenario"]], "rate": float(best["value"])}
