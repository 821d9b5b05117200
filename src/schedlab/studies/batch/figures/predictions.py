"""The figure of predicted run times: how far each predictor is from the true run times of a trace's test part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import settings_of
from schedlab.figures.panels.axes import key
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import MUTED
from schedlab.studies.batch.figures.settings import PredictionSettings
from schedlab.studies.batch.jobs import jobs_of, machine_of, recorded_ends
from schedlab.studies.batch.prediction_errors import (
    PREDICTORS,
    error_table,
    log_errors,
    predictions_of_test_part,
    user_errors,
)
from schedlab.workloads.swf import read_swf

PERCENT = np.arange(0.5, 100.0)
COLOURS = {name: theme.colour(number) for number, name in enumerate(PREDICTORS)}
CAPTION = (
    "{traces:{name}: {rows:{predictor} {under:.0%} under-predicted, off by a factor of {factor:.2g}[ (median user "
    "{user:.2g})]}}. Factors are exp of the mean size of the logarithm of prediction over run time."
)


def draw_predictions(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw two panels for each scenario: percentiles over jobs of prediction over run time, and over users of the
    factor by which predictions are off (PredictionSettings).
    """
    titles = settings_of(spec, PredictionSettings).titles
    groups: list[tuple[str, tuple[pd.DataFrame, str]]] = []
    traces = {}
    for name in spec.scenarios or sorted(tables.scenarios):
        trace = read_swf(tables.inputs[name]["trace"])
        jobs = jobs_of(trace, machine_of(trace))
        predicted = predictions_of_test_part(jobs, recorded_ends(trace))
        title = titles.get(name, name.replace("_", " "))
        groups += [(title, (log_errors(jobs, predicted), "jobs")), (title, (user_errors(jobs, predicted), "users"))]
        traces[title] = {"rows": [_facts(row) for row in error_table(jobs, predicted).to_dict("records")]}
    keys = [key(name.replace("_", " "), color=colour) for name, colour in COLOURS.items()]
    figure, _ = facets(groups, _panel, Grid(2, 48, 14, each=True), keys=keys, columns=len(keys))
    return Drawing(figure, CAPTION, {"traces": traces})


def _panel(axes: Axes, content: tuple[pd.DataFrame, str]) -> None:
    logs, counted = content
    for name, colour in COLOURS.items():
        if len(values := logs[name].dropna()):
            axes.plot(np.exp(np.percentile(values, PERCENT)), PERCENT, color=colour)
    jobs = counted == "jobs"
    axes.set(xscale="log", xlim=(1e-4, 1e4) if jobs else (1, 1e3), ylim=(0, 100), ylabel=f"{counted} (%)")
    axes.set_xlabel("prediction / run time" if jobs else "factor by which a user's predictions are off")
    if jobs:
        axes.axvline(1, color=MUTED, linewidth=0.7, linestyle="--")


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    """A predictor's values of CAPTION."""
    return {
        "predictor": row["predictor"].replace("_", " "),
        "under": row["under_predicted"],
        "factor": np.exp(row["mean_absolute_log"]),
        "user": np.exp(row["user_median"]) if row["users"] else None,
    }
