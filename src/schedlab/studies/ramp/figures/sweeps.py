"""Figures over scenarios that differ in one value: scores by load or cluster size, and overheads of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.panels.axes import legend_outside, shared_xlabel
from schedlab.figures.panels.curves import sweep_line
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.units import scaled
from schedlab.studies.ramp.figures import data
from schedlab.studies.ramp.figures.settings import OverheadsSettings, SweepSettings

AXES = {
    "interarrival": "time between arrivals (s)",
    "arrival_rate": "arrivals in 1000 s",
    "workers": "workers of the cluster",
}
MOST_TICKS = 6
LARGEST_MARKER = 6.5  # points, of the first policy; each further one has a smaller one and lies above
TIME = Metric("time", "s", "lower")
SWEEP = (
    "Blocking rates: {blocking:{name} {first:.2f} at {from:g}, {last:.2f} at {to:g}}. "
    "Test episodes: {episodes:{count} at {at}}[{bare} (one has no band)]. "
    "[Arrivals end after {ends:{time} at {at}}.] "
    "[Without a value, as no job was completed: {lacking:{metric} of {policy} at {at}}.]"
)


def places_of(tables: StudyTables, spec: FigureSpec, x: str) -> dict[str, float]:
    """Return where the figure's scenarios that have scores lie on an axis of AXES. Raises UserError."""
    rows = tables.scores[tables.scores["scenario"].isin(spec.scenarios)]
    found = rows.groupby("scenario")["workers" if x == "workers" else "interarrival"].first().astype(float)
    if found.isna().any():
        what, where = f"arrivals of {found.index[found.isna()][0]} follow a law", f"figure {spec.name}: scenarios"
        raise UserError(what, where=where, expected="scenarios with jobs.interarrival of the kind fixed")
    return (1000.0 / found if x == "arrival_rate" else found).to_dict()


def draw_sweep(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a measure, a line a policy: means of test episodes, bands from the lowest to the highest."""
    settings = settings_of(spec, SweepSettings)
    places = places_of(tables, spec, settings.x)
    metrics = [data.BY_NAME[name] for name in settings.metrics if name in data.BY_NAME]
    if len(set(places.values())) < 2:
        return nothing_to_draw("fewer than two such scenarios are run at this scale")
    rows = data.tested(tables.scores[tables.scores["scenario"].isin(places)], tables)
    rows = rows.assign(x=rows["scenario"].map(places))

    def panel(axes: Axes, metric: Metric) -> None:
        found = rows[(rows["metric"] == metric.name) & rows["policy"].isin(settings.policies)]
        unit = data.short_unit(metric, float(found["value"].max()))
        for number, name in enumerate(settings.policies):
            values = found[found["policy"] == name].set_index("x")["value"] / unit.size
            if len(values):  # no marker hides those below it
                look = {**data.line_look(number), "markersize": max(3.0, LARGEST_MARKER - number)}
                sweep_line(axes, values, colour=look.pop("color"), label=name, **look)
        axes.set_xscale("log")
        _ticks(axes, sorted(set(places.values())))
        axes.set_title(unit.label)
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")

    groups = [("", metric) for metric in metrics]
    figure, _ = facets(groups, panel, Grid(3, 52, 14, AXES[settings.x]), columns=len(settings.policies))
    facts = {"blocking": _ends(rows, settings), "lacking": _lacking(rows, settings)}
    facts |= {**_episodes(rows), "ends": _lengths(tables.scenarios, places)}
    scored = set(rows.loc[rows["policy"].isin(settings.policies), "scenario"])
    return Drawing(figure, SWEEP, facts, left_out=left_out(spec, scored, data.NOT_SCORED))


def _ticks(axes: Axes, places: list[float]) -> None:
    """Where scenarios lie, as far as their labels do not meet."""
    apart = (places[-1] / places[0]) ** (1 / MOST_TICKS) * 0.999
    shown: list[float] = []
    for value in places:
        if not shown or value >= apart * shown[-1]:
            shown.append(value)
    axes.set_xticks(shown, [f"{value:g}" for value in shown])
    axes.minorticks_off()


def _ends(rows: pd.DataFrame, settings: SweepSettings) -> dict[str, dict[str, float]]:
    """Policy -> its blocking rates at both ends of its line."""
    found = {}
    for name in settings.policies:
        own = rows[(rows["metric"] == data.BLOCKING) & (rows["policy"] == name)]
        if len(own):
            rates = own.groupby("x")["value"].mean()
            ends = {"from": rates.index[0], "to": rates.index[-1]}
            found[name] = {"first": rates.iloc[0], "last": rates.iloc[-1], **ends}
    return found


def _episodes(rows: pd.DataFrame) -> dict[str, Any]:
    """How many episodes a mean and a band are of; a band of one has no width."""
    counts = rows.groupby("x")["unit"].nunique()
    shared = [{"count": int(n), "at": _at(counts.index[counts == n])} for n in sorted(set(counts))]
    return {"episodes": shared, "bare": bool(counts.min() == 1)}


def _lengths(scenarios: Mapping[str, Mapping[str, Any]], places: Mapping[str, float]) -> list[dict[str, Any]]:
    """How long the episodes are, where the scenarios differ in that."""
    ends = {place: scenarios[name].get("episodes", {}).get("end") for name, place in places.items()}
    times = sorted(set(ends.values())) if len(set(ends.values())) > 1 else []
    at = {end: _at(sorted(x for x in ends if ends[x] == end)) for end in times}
    return [{"time": scaled(TIME, end).of(end), "at": at[end]} for end in times]


def _lacking(rows: pd.DataFrame, settings: SweepSettings) -> list[dict[str, str]]:
    """Which points there are none of: a measure of completed jobs of a policy that completed none."""
    found = []
    for metric in settings.metrics:
        for name in settings.policies:
            own = rows[rows["policy"] == name]
            if lacking := sorted(set(own["x"]) - set(own.loc[own["metric"] == metric, "x"])):
                label = data.SHORT.get(metric, data.BY_NAME[metric].label)
                found.append({"metric": label, "policy": name, "at": _at(lacking)})
    return found


def _at(places: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in places)


def draw_overheads(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A line a graph over the scenarios' numbers of workers: share of the time in which flows advance, and speed-up."""
    settings = settings_of(spec, OverheadsSettings)
    places = places_of(tables, spec, "workers")
    jobs = tables.details["jobs"]
    jobs = jobs[jobs["scenario"].isin(places) & (jobs["policy"] == settings.policy) & jobs["duration"].notna()]
    if jobs.empty:
        return nothing_to_draw(data.NOT_RUN)
    shares, gains = 100 * jobs["communication"] / jobs["duration"], jobs["sequential_jct"] / jobs["duration"]
    jobs = jobs.assign(x=jobs["scenario"].map(places), overhead=shares, gain=gains)
    means = jobs.groupby(["model", "x"])[["overhead", "gain"]].mean()
    figure, (left, right) = theme.new_figure(1, 2, height_mm=70)
    overheads = {}
    for number, model in enumerate(sorted(jobs["model"].unique())):
        rows, look = means.loc[model], {**data.line_look(number), "markersize": 3.5, "label": model}
        left.plot(rows.index, rows["overhead"], **look)
        right.plot(rows.index, rows["gain"], **look)
        overheads[model] = {"first": rows["overhead"].iloc[0], "last": rows["overhead"].iloc[-1]}
    every = sorted(set(places.values()))
    right.plot(every, every, color=theme.MUTED, linewidth=0.8, linestyle=theme.DASHES[1], label="as many as workers")
    for axes, title in ((left, "a  share of the time in which messages travel (%)"), (right, "b  speed-up")):
        axes.set_title(title)
        axes.set_xscale("log", base=2)
        axes.set_xticks(every, [f"{value:g}" for value in every])
        axes.minorticks_off()
        axes.grid(True, axis="y")
    left.set_ylim(0, 100)
    right.set_yscale("log", base=2)
    right.set_yticks(every, [f"{value:g}" for value in every])
    shared_xlabel([left, right], AXES["workers"])
    legend_outside(figure, columns=4)
    caption = "From {least:g} to {most:g} workers: {overheads:{name} {first:.0f} to {last:.0f} %}."
    facts = {"least": every[0], "most": every[-1], "overheads": overheads}
    missing = left_out(spec, set(jobs["scenario"]), f"no job ran under {settings.policy}")
    return Drawing(figure, caption, facts, left_out=missing)
