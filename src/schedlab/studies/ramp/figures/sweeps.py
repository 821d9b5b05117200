"""Figures over scenarios that differ in one value: scores by load or cluster size, and overheads of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import helpers, theme
from schedlab.figures.units import Scaled, scaled
from schedlab.studies.ramp.figures.parts import MARKERS, NOT_SCORED, SHORT, family, left_out, nothing_to_draw
from schedlab.studies.ramp.figures.settings import OverheadsSettings, SweepSettings
from schedlab.studies.ramp.scenario import METRICS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

AXES = {
    "interarrival": "time between arrivals (s)",
    "arrival_rate": "arrivals in 1000 s",
    "workers": "workers of the cluster",
}
MOST_TICKS = 6
LARGEST_MARKER = 6.5  # points, of the first policy; each further one has a smaller one and lies above
TIME = Metric("time", "s", "lower")


def place(scenario: Mapping[str, Any], x: str, where: str = "") -> float:
    """Return where a scenario (its frozen values) lies on an axis of AXES. Raises UserError."""
    cluster, gap = scenario["cluster"], scenario["jobs"]["interarrival"]
    if x == "workers":
        return float(cluster["groups"] * cluster["racks"] * cluster["servers"] * cluster["workers"])
    if gap["kind"] != "fixed":
        what = f"arrivals are '{gap['kind']}'"
        raise UserError(what, where=where, expected="scenarios with jobs.interarrival of the kind fixed")
    return gap["value"] if x == "interarrival" else 1000.0 / gap["value"]


def draw_sweep(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a measure, a line a policy: means of test episodes, bands from the lowest to the highest."""
    settings = helpers.settings_of(spec, SweepSettings)
    places = {
        name: place(tables.scenarios[name], settings.x, f"figure {spec.name}: scenarios") for name in spec.scenarios
    }
    metrics = [metric for name in settings.metrics for metric in METRICS if metric.name == name]
    if len(set(places.values())) < 2:
        return nothing_to_draw(spec, "fewer than two such scenarios are run at this scale")
    rows = tables.scores[tables.scores["scenario"].isin(places) & (tables.scores["split"] == "test")]
    policy = [family(name, scenario) for name, scenario in zip(rows["policy"], rows["scenario"], strict=True)]
    rows = rows.assign(x=rows["scenario"].map(places), policy=policy)
    figure, lines = theme.new_grid(len(metrics), 3, row_mm=52, around_mm=14)
    for axes, metric in zip([axes for line in lines for axes in line], metrics, strict=True):
        found = rows[(rows["metric"] == metric.name) & rows["policy"].isin(settings.policies)]
        unit = scaled(replace(metric, label=SHORT.get(metric.name, metric.label)), float(found["value"].max()))
        for number, name in enumerate(settings.policies):
            _line(axes, found[found["policy"] == name], number, name, unit)
        axes.set_xscale("log")
        _ticks(axes, sorted(set(places.values())))
        axes.set_title(unit.label)
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")
    for line in lines:
        helpers.shared_xlabel(line, AXES[settings.x])
    helpers.legend_outside(figure, columns=len(settings.policies))
    told = [
        _ends_text(rows, settings),
        _episodes_text(rows),
        _lengths_text(tables.scenarios, places),
        _missing_text(rows, metrics, settings),
    ]
    scored = set(rows.loc[rows["policy"].isin(settings.policies), "scenario"])
    return Drawing(
        figure, f"{spec.caption} {' '.join(filter(None, told))}", left_out=left_out(spec, scored, NOT_SCORED)
    )


def _line(axes: Axes, rows: pd.DataFrame, number: int, name: str, unit: Scaled) -> None:
    if rows.empty:
        return
    values = rows.groupby("x")["value"].agg(["mean", "min", "max"]) / unit.size
    colour = theme.colour(number)
    axes.fill_between(values.index, values["min"], values["max"], color=colour, alpha=0.15, linewidth=0)
    # none hides those below it
    marker, size = MARKERS[number % len(MARKERS)], max(3.0, LARGEST_MARKER - number)
    axes.plot(values.index, values["mean"], color=colour, label=name, marker=marker, markersize=size)


def _ticks(axes: Axes, places: list[float]) -> None:
    """Where scenarios lie, as far as their labels do not meet."""
    apart = (places[-1] / places[0]) ** (1 / MOST_TICKS) * 0.999
    shown: list[float] = []
    for value in places:
        if not shown or value >= apart * shown[-1]:
            shown.append(value)
    axes.set_xticks(shown, [f"{value:g}" for value in shown])
    axes.minorticks_off()


def _ends_text(rows: pd.DataFrame, settings: SweepSettings) -> str:
    """Blocking rates at both ends, by policy."""
    rates = rows[rows["metric"] == "blocking_rate"].groupby(["policy", "x"])["value"].mean()
    told = []
    for name in settings.policies:
        if name in rates.index.get_level_values("policy"):
            ends = rates[name].iloc[[0, -1]]
            told.append(f"{name} {ends.iloc[0]:.2f} at {ends.index[0]:g}, {ends.iloc[1]:.2f} at {ends.index[1]:g}")
    return f"Blocking rates: {'; '.join(told)}."


def _episodes_text(rows: pd.DataFrame) -> str:
    """How many episodes a mean and a band are of; a band of one has no width."""
    counts = rows.groupby("x")["unit"].nunique()
    shared = ", ".join(f"{count} at {_span(counts.index[counts == count])}" for count in sorted(set(counts)))
    bare = " (one has no band)" if counts.min() == 1 else ""
    return f"Test episodes: {shared if counts.nunique() > 1 else counts.iloc[0]}{bare}."


def _lengths_text(scenarios: Mapping[str, Mapping[str, Any]], places: Mapping[str, float]) -> str:
    """How long the episodes are, where the scenarios differ in that."""
    ends = {place: scenarios[name].get("episodes", {}).get("end") for name, place in places.items()}
    if len(set(ends.values())) < 2:
        return ""
    told = [
        f"{scaled(TIME, end).text(end)} at {_span([x for x in sorted(ends) if ends[x] == end])}"
        for end in sorted(set(ends.values()))
    ]
    return f"Arrivals end after {', '.join(told)}."


def _missing_text(rows: pd.DataFrame, metrics: Sequence[Metric], settings: SweepSettings) -> str:
    """Which points there are none of: a measure of completed jobs of a policy that completed none."""
    told = []
    for metric in metrics:
        for name in settings.policies:
            own = rows[rows["policy"] == name]
            if lacking := sorted(set(own["x"]) - set(own.loc[own["metric"] == metric.name, "x"])):
                told.append(f"{SHORT.get(metric.name, metric.label)} of {name} at {_span(lacking)}")
    return f"Without a value, as no job was completed: {', '.join(told)}." if told else ""


def _span(places: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in places)


def draw_overheads(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A line a graph over the scenarios' numbers of workers: share of the time in which flows advance, and speed-up."""
    settings = helpers.settings_of(spec, OverheadsSettings)
    places = {name: place(tables.scenarios[name], "workers") for name in spec.scenarios}
    jobs = tables.details["jobs"]
    jobs = jobs[jobs["scenario"].isin(places) & (jobs["policy"] == settings.policy) & jobs["duration"].notna()]
    if jobs.empty:
        return nothing_to_draw(spec, "no such scenario is run at this scale")
    jobs = jobs.assign(
        x=jobs["scenario"].map(places),
        overhead=100 * jobs["communication"] / jobs["duration"],
        gain=jobs["sequential_jct"] / jobs["duration"],
    )
    means = jobs.groupby(["model", "x"])[["overhead", "gain"]].mean()
    figure, (left, right) = theme.new_figure(1, 2, height_mm=70)
    told = []
    for number, model in enumerate(sorted(jobs["model"].unique())):
        rows = means.loc[model]
        look: dict[str, Any] = {
            "color": theme.colour(number),
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 3.5,
            "label": model,
        }
        left.plot(rows.index, rows["overhead"], **look)
        right.plot(rows.index, rows["gain"], **look)
        told.append(f"{model} {rows['overhead'].iloc[0]:.0f} to {rows['overhead'].iloc[-1]:.0f} %")
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
    helpers.shared_xlabel([left, right], AXES["workers"])
    helpers.legend_outside(figure, columns=4)
    missing = left_out(spec, set(jobs["scenario"]), f"no job ran under {settings.policy}")
    return Drawing(
        figure, f"{spec.caption} From {every[0]:g} to {every[-1]:g} workers: {', '.join(told)}.", left_out=missing
    )
