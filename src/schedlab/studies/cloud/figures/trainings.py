"""The figure of searches at equal budget: the share of jobs whose allocation is found, by the number of trainings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import nothing_to_draw, settings_of
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import policy_of
from schedlab.studies.cloud.figures.settings import SearchesSettings

LEAST = 0.1  # where the axis begins, trainings; policies that know the model need none and are drawn here


def draw_trainings(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each scenario of several jobs and a line for each search: the share of jobs (and seeds) whose
    allocation is found, by trainings of the job. Settings: SearchesSettings.
    """
    settings = settings_of(spec, SearchesSettings)
    scores = tables.scores
    of_jobs = set(scores.loc[scores["metric"] == "found", "scenario"])
    shown = [name for name in spec.scenarios if name in of_jobs]
    if not shown:
        return nothing_to_draw("no scenario of several jobs is scored at this scale")
    most = float(scores.loc[scores["metric"] == "trainings_used", "value"].max())

    def panel(axes: Axes, scenario: str) -> dict[str, Any]:
        found = {}
        for place, (label, name) in enumerate(settings.searches.items()):
            policy = policy_of(scores, name, scenario) or name
            rows = scores[(scores["scenario"] == scenario) & (scores["policy"] == policy) & (scores["split"] == "test")]
            if not len(rows):
                continue
            needed = found_after(rows)
            found[label] = len(needed[np.isfinite(needed)]) / len(needed)
            line = {"color": theme.colour(place), "linestyle": theme.DASHES[place % len(theme.DASHES)]}
            steps = np.sort(np.maximum(needed[np.isfinite(needed)], LEAST))
            x = np.concatenate([[LEAST], steps, [max(most, LEAST)]])
            y = np.concatenate([[0.0], np.arange(1, len(steps) + 1), [len(steps)]]) / len(needed)
            axes.step(x, y, where="post", label=label, **line)
        axes.set_xscale("log")
        axes.set_ylim(-0.03, 1.03)
        axes.grid(True, axis="y")
        return found

    grid = Grid(3, 55, 22, "trainings of the job", "share of jobs whose allocation is found")
    figure, shares = facets([(name.replace("_", " "), name) for name in shown], panel, grid, columns=4)
    caption = "Share found in the end: {found:{name}: {shares:{name} {value:.2f}}}."
    found = {name: {"shares": values} for name, values in zip(shown, shares, strict=True)}
    left_out = {name: "it is not scored at this scale" for name in spec.scenarios if name not in shown}
    return Drawing(figure, caption, {"found": found}, left_out=left_out)


def found_after(rows: pd.DataFrame) -> np.ndarray:
    """Return, for each job and seed, the number of trainings after which a policy found the allocation; infinite if
    never.
    """
    table = rows.pivot_table(index=["policy_seed", "unit"], columns="metric", values="value", aggfunc="mean")
    needed = table["trainings_needed"] if "trainings_needed" in table else pd.Series(np.inf, index=table.index)
    return np.where(table["found"] > 0, needed, np.inf)
