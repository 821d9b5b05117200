"""The report's interactive page: learning curves and Gantt charts of all studies, which Plotly draws in the browser.

The page contains Plotly's script once and the data of each chart, and loads nothing. For each study it shows

* a chart for each training scenario, split and metric of its table `curves`: the mean over seeds of each policy;
* a Gantt chart for each answered question, if the study has a details table `jobs`: the jobs of the policy and of its
  rival on one test unit. The table needs `start` with `finish` or `run` (or, as in the study ramp, the end `time` with
  the duration `jct`), s, and `allocation` ("0-3 5"), or the number of places `procs` or `workers`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import pyarrow.parquet
from markupsafe import Markup
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from schedlab.batsim.files.results import intervals
from schedlab.config.files import write_text
from schedlab.evaluation import tables
from schedlab.figures import verdicts
from schedlab.figures.html import render
from schedlab.figures.index import SIZES

if TYPE_CHECKING:
    import pandas as pd

TEMPLATES = Path(__file__).parent / "templates"
TITLE = "Interactive curves and Gantt charts"
MOST_POINTS = 200  # of a curve; longer curves are thinned evenly
MOST_JOBS = 1000  # of a Gantt chart: the jobs that start first


def interactive_page(scale: str, folders: Mapping[str, Path], target: Path) -> None:
    """Write the page; folders: study -> folder of its tables."""
    charts = [(study, chart) for study, folder in folders.items() for chart in charts_of(folder)]
    shown = [(study, chart.layout.title.text, _script_text(chart.to_json())) for study, chart in charts]
    write_text(
        target,
        render(
            TEMPLATES,
            "interactive.html",
            title=TITLE,
            warning=SIZES.get(scale),
            studies={study: [each[1:] for each in shown if each[0] == study] for study in folders},
            plotly=Markup(get_plotlyjs()),
        ),
    )


def charts_of(folder: Path) -> Iterator[go.Figure]:
    """Yield the charts of a study."""
    curves = tables.read(tables.CURVES, folder / "curves.parquet")
    for (scenario, split, metric), rows in curves.groupby(["train_scenario", "split", "metric"], sort=True):
        yield curve_chart(f"{scenario}: {metric} ({split} units) while learning", rows, str(metric))
    jobs = folder / "details/jobs.parquet"
    if jobs.is_file() and pyarrow.parquet.read_schema(jobs).names:
        seen = set()
        for answer in verdicts.read_answers(folder / "headline.parquet"):
            key = (answer["scenario"], answer["policy"], answer["rival"])
            if key not in seen and len(found := _jobs_of(jobs, *key)) == 2:
                seen.add(key)
                yield gantt_chart(f"{key[0]}: jobs under {key[1]} and {key[2]}", found)


def curve_chart(title: str, rows: pd.DataFrame, metric: str) -> go.Figure:
    """Return a chart with a line for each policy: the mean over seeds at each step. Hovering shows the lowest and the
    highest seed.
    """
    chart = go.Figure()
    for policy, points in rows.groupby("policy", sort=True):
        seeds = points.groupby(["step", "policy_seed"])["value"].mean().groupby("step").agg(["mean", "min", "max"])
        seeds = seeds.iloc[np.unique(np.linspace(0, len(seeds) - 1, MOST_POINTS).astype(int))]
        chart.add_scatter(
            x=seeds.index.tolist(),
            y=seeds["mean"].tolist(),
            customdata=seeds[["min", "max"]].to_numpy().tolist(),
            name=str(policy),
            mode="lines+markers" if len(seeds) < 3 else "lines",
            hovertemplate="%{y:.4g} (seeds %{customdata[0]:.4g} to %{customdata[1]:.4g})",
        )
    chart.update_layout(title=title, xaxis_title="step", yaxis_title=metric, showlegend=True, hovermode="x unified")
    return chart


def gantt_chart(title: str, jobs: Mapping[str, pd.DataFrame]) -> go.Figure:
    """Return a chart with a row for each policy, which has a box for each job and sequence of adjacent places.

    jobs  policy -> its jobs with the columns start, finish (s), and those that `places` reads
    """
    chart = make_subplots(len(jobs), 1, shared_xaxes=True, subplot_titles=list(jobs), vertical_spacing=0.08)
    for row, table in enumerate(jobs.values(), start=1):
        boxes = places(table)
        which = table.iloc[[box[0] for box in boxes]]
        identifiers = which["job" if "job" in which else "job_id"].astype(str)
        chart.add_bar(
            orientation="h",
            base=which["start"].tolist(),
            x=(which["finish"] - which["start"]).tolist(),
            y=[first for _, first, _ in boxes],
            width=[last - first + 1 for _, first, last in boxes],
            offset=0,
            marker_color=(which.index % 10).map(lambda colour: f"hsl({36 * colour}, 55%, 60%)").tolist(),
            hovertext=[f"job {name}" for name in identifiers],
            hovertemplate="%{hovertext}: start %{base:.6g} s, length %{x:.6g} s<extra></extra>",
            row=row,
            col=1,
        )
    chart.update_yaxes(title="place")
    chart.update_xaxes(title="time (s)", row=len(jobs))
    chart.update_layout(title=title, showlegend=False, barmode="overlay")
    return chart


def places(jobs: pd.DataFrame) -> list[tuple[int, int, int]]:
    """Return (number of the job, first, last) for each sequence of adjacent places of a job.

    Without `allocation`, jobs are placed on the free places with the lowest numbers, as an example.
    """
    if "allocation" in jobs:
        return [(row, *pair) for row, text in enumerate(jobs["allocation"]) for pair in intervals(text)]
    sizes = jobs["procs" if "procs" in jobs else "workers"].astype(int)
    found: list[tuple[int, int, int]] = []
    free: list[int] = []
    running: list[tuple[float, list[int]]] = []
    fresh = itertools.count()
    for row, (start, finish, size) in enumerate(zip(jobs["start"], jobs["finish"], sizes, strict=True)):
        while running and running[0][0] <= start * (1 + 1e-12):
            for place in heapq.heappop(running)[1]:
                heapq.heappush(free, place)
        taken = [heapq.heappop(free) if free else next(fresh) for _ in range(size)]
        heapq.heappush(running, (finish, taken))
        borders = [0, *(np.flatnonzero(np.diff(taken) != 1) + 1).tolist(), size]
        found += [(row, taken[low], taken[high - 1]) for low, high in itertools.pairwise(borders) if high > low]
    return found


def _jobs_of(file: Path, scenario: str, *policies: str) -> dict[str, pd.DataFrame]:
    """Return policy -> its jobs, in order of their start, on the first test unit of a scenario with the first seed. A
    policy is left out if the table lacks the times or places of its jobs.
    """
    import pandas as pd

    rows = pd.read_parquet(file, filters=[("scenario", "==", scenario), ("split", "==", "test")])
    if "jct" in rows:
        rows = rows.assign(start=rows["time"] - rows["jct"], finish=rows["time"])
    elif {"start", "run"} <= {*rows}:
        rows = rows.assign(finish=rows["start"] + rows["run"])
    found: dict[str, Any] = {}
    if {"start", "finish"} <= {*rows} and {"allocation", "procs", "workers"} & {*rows}:
        for policy in policies:
            table = rows[(rows["policy"] == policy) & rows["start"].notna()]
            first = table[["unit", "policy_seed"]].drop_duplicates().sort_values(["unit", "policy_seed"]).head(1)
            table = table.merge(first).sort_values("start", kind="stable", ignore_index=True).head(MOST_JOBS)
            found |= {policy: table} if len(table) else {}
    return found


def _script_text(text: str) -> Markup:
    """Escape JSON for a script element, so that no text in it can end the element."""
    return Markup(text.replace("<", "\\u003c"))
