"""Figures over scenarios that differ in one value: scores by load or cluster size, and overheads of the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.panels.curves import sweep
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.points import UNCERTAINTY
from schedlab.figures.selection import select
from schedlab.figures.units import scaled
from schedlab.studies.ramp.figures import data
from schedlab.studies.ramp.figures.settings import OverheadsSettings, SweepSettings

AXES = {
    "interarrival": "time between arrivals (s)",
    "arrival_rate": "arrivals in 1000 s",
    "workers": "workers of the cluster",
}
GAINS = {"overhead": "a  share of the time in which messages travel (%)", "gain": "b  speed-up"}
TIME = Metric("time", "s", "lower")
SWEEP = (
    "Blocking rates: {blocking:{name} {first:.2f} at {from:g}, {last:.2f} at {to:g}}. Test episodes in each mean: "
    "{episodes}. [Arrivals end after {ends:{time} at {at}}.] "
    "[Without a value, because no job was completed: {lacking:{metric} of {policy} at {at}}.] "
) + UNCERTAINTY


def places_of(tables: StudyTables, spec: FigureSpec, x: str) -> dict[str, float]:
    """Return the positions of the figure's scenarios that have scores on an axis of AXES. Raises UserError."""
    rows = select(tables.scores, scenario=spec.scenarios)
    found = rows.groupby("scenario")["workers" if x == "workers" else "interarrival"].first().astype(float)
    if found.isna().any():
        what, where = f"arrivals of {found.index[found.isna()][0]} follow a law", f"figure {spec.name}: scenarios"
        raise UserError(what, where=where, expected="scenarios with jobs.interarrival of the kind fixed")
    return (1000.0 / found if x == "arrival_rate" else found).to_dict()


def draw_sweep(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per measure, one line per policy: mean on test episodes against the value that scenarios vary."""
    settings = settings_of(spec, SweepSettings)
    places = places_of(tables, spec, settings.x)
    if len(set(places.values())) < 2:
        return nothing_to_draw("fewer than two such scenarios are run at this scale")
    rows = select(data.tested(tables.summary, tables), scenario=places, policy=settings.policies)
    rows = rows.assign(x=rows["scenario"].map(places))
    groups = [data.panel(rows, data.BY_NAME[name]) for name in settings.metrics]
    looks, level = data.looks(settings.policies), tables.statistics.confidence
    grid = Grid(3, 52, 14, AXES[settings.x], zero=True)
    figure, explained = sweep(groups, "x", sorted(set(places.values())), looks, level, grid)
    blocking, found = select(rows, metric=data.BLOCKING).sort_values("x").groupby("policy"), {}
    for name, own in blocking:
        ends = {"from": own["x"].iloc[0], "to": own["x"].iloc[-1]}
        found[name] = {"first": own["value"].iloc[0], "last": own["value"].iloc[-1], **ends}
    units = dict.fromkeys((int(rows["units"].min()), int(rows["units"].max())))
    facts: dict[str, Any] = {**explained, "blocking": found, "episodes": " to ".join(map(str, units))}
    facts |= {"lacking": _lacking(rows, settings), "ends": _lengths(tables.scenarios, places)}
    return Drawing(figure, SWEEP, facts, left_out=left_out(spec, set(rows["scenario"]), data.NOT_SCORED))


def _lengths(scenarios: Mapping[str, Mapping[str, Any]], places: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the lengths of episodes where the scenarios have different ones."""
    ends = {place: scenarios[name].get("episodes", {}).get("end") for name, place in sorted(places.items())}
    times = sorted(set(ends.values())) if len(set(ends.values())) > 1 else []
    at = {end: [f"{x:g}" for x in sorted(ends) if ends[x] == end] for end in times}
    return [{"time": scaled(TIME, end).of(end), "at": ", ".join(at[end])} for end in times]


def _lacking(rows: pd.DataFrame, settings: SweepSettings) -> list[dict[str, str]]:
    """Return the missing points: measures of completed jobs where a policy completed none."""
    found = []
    for metric in settings.metrics:
        for name, own in rows.groupby("policy"):
            if lacking := sorted(set(own["x"]) - set(select(own, metric=metric)["x"])):
                label = data.SHORT.get(metric, data.BY_NAME[metric].label)
                found.append({"metric": label, "policy": str(name), "at": ", ".join(f"{x:g}" for x in lacking)})
    return found


def draw_overheads(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One line per graph against the number of workers: share of time in which flows advance, and speed-up."""
    settings = settings_of(spec, OverheadsSettings)
    places = places_of(tables, spec, "workers")
    jobs = select(tables.details["jobs"], scenario=places, policy=settings.policy)
    jobs = jobs[jobs["duration"].notna()]
    if jobs.empty:
        return nothing_to_draw(data.NOT_RUN)
    shares, gains = 100 * jobs["communication"] / jobs["duration"], jobs["sequential_jct"] / jobs["duration"]
    jobs = jobs.assign(x=jobs["scenario"].map(places), overhead=shares, gain=gains)
    means = jobs.groupby(["model", "x"])[list(GAINS)].mean()
    models, every = sorted(jobs["model"].unique()), sorted(set(places.values()))

    def panel(axes: Axes, column: str) -> None:
        for model, look in data.looks(models).items():
            axes.plot(means.loc[model][column], label=model, **look.point() | look.line() | {"markersize": 3.5})
        axes.set_xscale("log", base=2)
        axes.set_xticks(every, [f"{value:g}" for value in every])
        axes.minorticks_off()
        if column == "overhead":
            axes.set_ylim(0, 100)
        else:
            axes.plot(every, every, color=theme.MUTED, linewidth=0.8, dashes=(5, 1.5), label="as many as workers")
            axes.set_yscale("log", base=2)
            axes.set_yticks(every, [f"{value:g}" for value in every])

    groups = [(title, column) for column, title in GAINS.items()]
    figure, _ = facets(groups, panel, Grid(2, 56, 14, AXES["workers"], lines="y"))
    ends = {model: means.loc[model]["overhead"] for model in models}
    overheads = {model: {"first": own.iloc[0], "last": own.iloc[-1]} for model, own in ends.items()}
    caption = "From {least:g} to {most:g} workers: {overheads:{name} {first:.0f} to {last:.0f} %}."
    facts = {"least": every[0], "most": every[-1], "overheads": overheads}
    missing = left_out(spec, set(jobs["scenario"]), f"no job ran under {settings.policy}")
    return Drawing(figure, caption, facts, left_out=missing)
