"""Figures of single jobs: why they were blocked, which of them were, and the speed-ups of those that completed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import after_the_first, left_out, nothing_to_draw, settings_of
from schedlab.figures.panels.axes import legend_outside, log_ticks
from schedlab.figures.panels.bars import stacked_rows
from schedlab.figures.panels.curves import distribution
from schedlab.figures.panels.facets import Grid, facets
from schedlab.studies.ramp.figures import data
from schedlab.studies.ramp.figures.settings import CausesSettings, JobsSettings
from schedlab.studies.ramp.simulator.jobs import (
    CUT_OFF,
    NO_CHANNEL,
    NO_PARTITION,
    NO_PLACEMENT,
    QUEUE_FULL,
    REJECTED,
    TOO_SLOW,
)

FORCED = "forced"
UNPLACED = "no free block, or no memory"
CAUSES = {  # cause -> what it is called in figures, in the order of the bars
    FORCED: "too few free workers for any degree",
    NO_PLACEMENT: UNPLACED,
    TOO_SLOW: "would exceed its limit",
    REJECTED: "rejected by choice",
    CUT_OFF: "ran at the end",
    QUEUE_FULL: "queue was full",
    NO_CHANNEL: "no free channel",
    NO_PARTITION: "could not be split",
}
CHARACTERISTICS = {  # column of the table of jobs -> label, what values are divided by, whether on a logarithmic axis
    "sequential_jct": ("a  sequential time (h)", 3600.0, False),
    "memory": ("b  memory (GB)", 1e9, False),
    "dep_size": ("c  dep size (GB)", 1e9, False),
    "requested": ("d  speed-up asked for, 1 / beta", 1.0, True),
    "speedup": ("e  speed-up got", 1.0, True),
    "excess": ("f  got over asked for", 1.0, True),
}
ATTRIBUTES = {  # column -> label, and what values are divided by
    "ops": ("a  ops", 1),
    "deps": ("b  deps", 1),
    "memory": ("c  memory (GB)", 1e9),
    "dep_size": ("d  dep size (GB)", 1e9),
    "sequential_jct": ("e  sequential time (h)", 3600),
    "beta": ("f  beta", 1),
}
BINS = 10  # of an attribute that has more values
ROW_MM = 5.0


def draw_causes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a row a policy: its blocking rate on test episodes, by cause. Settings: CausesSettings."""
    settings = settings_of(spec, CausesSettings)
    shares = {name: found for name in spec.scenarios if (found := _shares(tables, name, settings.policies))}
    if not shares:
        return nothing_to_draw(data.NOT_RUN)
    colours = {label: theme.colour(number) for number, label in enumerate(CAUSES.values())}
    widest = max(sum(causes.values()) for found in shares.values() for causes in found.values())
    row_mm, unplaced = 10 + ROW_MM * len(settings.policies), []
    named = [(settings.labels.get(name, name), found) for name, found in shares.items()]

    def panel(axes: Axes, found: dict[str, dict[str, float]]) -> None:
        stacked_rows(axes, {policy: found.get(policy) for policy in settings.policies}, colours)
        axes.set_xlim(0, widest + 0.12)

    grid = Grid(2, row_mm, 14, "blocked jobs over arrived jobs", subplots={"sharex": True, "sharey": True})
    figure, _ = facets(named, panel, grid, keys=())
    for label, found in named:
        for policy, causes in found.items():
            if causes.get(UNPLACED):
                share = causes[UNPLACED] / sum(causes.values())
                unplaced.append({"policy": policy, "scenario": label, "share": share})
    handles = {handle.get_label(): handle for axes in figure.axes for handle in axes.get_legend_handles_labels()[0]}
    legend_outside(figure, [handles[label] for label in colours if label in handles], columns=3)
    caption = "[Of what was blocked, had no free block: {unplaced:{policy} in {scenario} {share:.0%}}.]"
    return Drawing(figure, caption, {"unplaced": unplaced}, left_out=left_out(spec, shares, data.NOT_SCORED))


def draw_characteristics(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Distributions over the completed and the blocked jobs of each policy: what they were, asked for and got."""
    settings = settings_of(spec, JobsSettings)
    jobs = _jobs(tables, spec.scenarios[:1], settings.policies)
    if jobs.empty:
        return nothing_to_draw(data.NOT_RUN)
    jobs = jobs.assign(requested=1 / jobs["beta"], excess=jobs["speedup"] * jobs["beta"])
    outcomes = (("completed", jobs["cause"] == "", "-"), ("blocked", jobs["cause"] != "", theme.DASHES[2]))

    def panel(axes: Axes, shown: tuple[str, float, bool]) -> None:
        column, size, logarithmic = shown
        for number, policy in enumerate(settings.policies):
            for outcome, those, dashes in outcomes:
                values = jobs.loc[those & (jobs["policy"] == policy), column].to_numpy(float) / size
                look = {"color": theme.colour(number), "linestyle": dashes, "label": f"{policy}, {outcome}"}
                distribution(axes, values, **look)
        if logarithmic:
            axes.set_xscale("log")
            log_ticks(axes.xaxis, jobs[column].min(), jobs[column].max())
        axes.set_ylim(0, 1.02)
        axes.grid(True)

    groups = [(title, (column, size, log)) for column, (title, size, log) in CHARACTERISTICS.items()]
    grid = Grid(3, 48, 14, y="share of the jobs", subplots={"sharey": True})
    figure, _ = facets(groups, panel, grid, columns=jobs["policy"].nunique())
    medians = jobs.groupby("policy")["excess"].median().dropna()
    facts = {"medians": {policy: medians[policy] for policy in settings.policies if policy in medians}}
    caption = "[Median of what completed jobs got over what they asked for: {medians:{name} {value:.2f}}.]"
    return Drawing(figure, caption, facts, left_out=after_the_first(spec))


def draw_attributes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel an attribute of jobs, a line a policy: the share of jobs with about that value which was blocked."""
    settings = settings_of(spec, JobsSettings)
    jobs = _jobs(tables, spec.scenarios[:1], settings.policies)
    if jobs.empty:
        return nothing_to_draw(data.NOT_RUN)

    def panel(axes: Axes, shown: tuple[str, float]) -> None:
        where = _binned(jobs[shown[0]]) / shown[1]
        for number, policy in enumerate(settings.policies):
            own = jobs["policy"] == policy
            if own.any():
                rates = (jobs.loc[own, "cause"] != "").groupby(where[own]).mean()
                axes.plot(rates.index, rates, label=policy, markersize=3.5, **data.line_look(number))
        axes.set_ylim(0, 1)
        axes.grid(True)

    groups = [(title, (column, size)) for column, (title, size) in ATTRIBUTES.items()]
    grid = Grid(3, 48, 14, y="blocking rate", subplots={"sharey": True})
    figure, _ = facets(groups, panel, grid, columns=len(settings.policies))
    models = jobs.drop_duplicates("model").sort_values("sequential_jct")
    models = models.assign(hours=models["sequential_jct"] / 3600)[["model", "hours", "ops"]]
    facts = {"graphs": models.to_dict("records")}
    caption = "The graphs: {graphs:{model} {hours:.1f} h, {ops} ops}."
    return Drawing(figure, caption, facts, left_out=after_the_first(spec))


def _binned(values: pd.Series) -> pd.Series:
    """The value itself where there are few, else the mean of its bin; bins are of one width."""
    if values.nunique() <= BINS:
        return values
    return values.groupby(pd.cut(values, BINS, labels=False)).transform("mean")


def _jobs(tables: StudyTables, scenarios: tuple[str, ...], policies: tuple[str, ...]) -> pd.DataFrame:
    """Jobs of test episodes of scenarios under the named policies."""
    jobs = tables.details["jobs"]
    jobs = data.tested(jobs[jobs["scenario"].isin(scenarios)], tables)
    return jobs[jobs["policy"].isin(policies)]


def _shares(tables: StudyTables, scenario: str, policies: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Policy -> label of a cause -> blocked jobs of that cause over all arrived jobs, in the order of CAUSES."""
    jobs = _jobs(tables, (scenario,), policies)
    causes = jobs["cause"].mask((jobs["cause"] == REJECTED) & (jobs["choices"] == 0), FORCED)
    scores = data.tested(tables.scores[tables.scores["scenario"] == scenario], tables)
    rates = scores[scores["metric"] == data.BLOCKING].groupby("policy")["value"].mean()
    found = {}
    for policy, own in causes.groupby(jobs["policy"]):
        counted = own[own != ""].value_counts()
        rate = rates.get(policy, np.nan) / max(int(counted.sum()), 1)  # jobs that still run have no row
        blocked = {label: float(rate * counted.get(cause, 0)) for cause, label in CAUSES.items()}
        found[str(policy)] = {label: share for label, share in blocked.items() if share}
    return found
