"""Figures of single jobs: why they were blocked, which of them were, and the speed-ups of those that completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import after_the_first, left_out, nothing_to_draw, settings_of
from schedlab.figures.panels.axes import labelled, log_ticks
from schedlab.figures.panels.bars import stacked_rows
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, span
from schedlab.figures.selection import select
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
CAUSES = {  # cause -> its name in figures, in the order of the bars
    FORCED: "too few free workers for any degree",
    NO_PLACEMENT: UNPLACED,
    TOO_SLOW: "would exceed its limit",
    REJECTED: "rejected by choice",
    CUT_OFF: "ran at the end",
    QUEUE_FULL: "queue was full",
    NO_CHANNEL: "no free channel",
    NO_PARTITION: "could not be split",
}
CHARACTERISTICS = {  # column -> label
    "requested": "a  required speed-up, 1 / beta",
    "speedup": "b  speed-up",
    "excess": "c  speed-up over the required one",
}
BINS = 10  # of beta, where it has more values
ROW_MM = 5.0
CAUSES_SHOWN = (
    "[Share of blocked jobs without a free block: {unplaced:{policy} in {scenario} {share:.0%}}.] The lines "
    "show the uncertainty of the total rates. "
) + UNCERTAINTY


def draw_causes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per scenario, one row per policy: blocking rate on test episodes by cause. Settings: CausesSettings."""
    settings = settings_of(spec, CausesSettings)
    shares = {name: found for name in spec.scenarios if (found := _shares(tables, name, settings.policies))}
    if not shares:
        return nothing_to_draw(data.NOT_RUN)
    colours = {label: theme.colour(number) for number, label in enumerate(CAUSES.values())}
    rates = data.scored(tables, shares, policy=settings.policies)
    widest = float(np.nanmax(rates[["value", "ci_high", "range_high"]].to_numpy(float)))

    def panel(axes: Axes, name: str) -> None:
        sums = stacked_rows(axes, shares[name], colours)
        spread = {row["policy"]: row for row in select(rates, scenario=name).to_dict("records")}
        for height, (policy, rate) in enumerate(sums.items()):
            span(axes, spread[policy], height + 0.35, colour=theme.INK)  # at the edge, so that it hides no part
            high = spread[policy]["ci_high"] if np.isfinite(spread[policy]["ci_high"]) else spread[policy]["range_high"]
            axes.text(max(rate, high) + 0.01, height, f"{rate:.3f}", va="center", color=theme.MUTED)
        axes.set_xlim(0, widest + 0.14)

    named = [(settings.labels.get(name, name), name) for name in shares]
    grid = Grid(2, 10 + ROW_MM * max(map(len, shares.values())), 22, "blocked jobs over arrived jobs")
    figure, _ = facets(named, panel, grid, keys=())
    handles = {handle.get_label(): handle for handle in labelled(figure)}
    shown = [handles[label] for label in colours if label in handles]
    facts: dict[str, Any] = explain_uncertainty(figure, rates, tables.statistics.confidence, more=shown)
    facts["unplaced"] = [
        {"policy": policy, "scenario": label, "share": causes[UNPLACED] / sum(causes.values())}
        for label, name in named
        for policy, causes in shares[name].items()
        if causes.get(UNPLACED)
    ]
    return Drawing(figure, CAUSES_SHOWN, facts, left_out=left_out(spec, shares, data.NOT_SCORED))


def draw_characteristics(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Distributions over completed and blocked jobs of each policy: required speed-up, and speed-up of the run."""
    settings = settings_of(spec, JobsSettings)
    jobs = _jobs(tables, spec.scenarios[:1], settings.policies)
    if jobs.empty:
        return nothing_to_draw(data.NOT_RUN)
    jobs = jobs.assign(requested=1 / jobs["beta"], excess=jobs["speedup"] * jobs["beta"])
    outcomes = (("completed", jobs["cause"] == "", "-"), ("blocked", jobs["cause"] != "", theme.DASHES[2]))

    def panel(axes: Axes, column: str) -> None:
        for number, policy in enumerate(settings.policies):
            for outcome, those, dashes in outcomes:
                values = jobs.loc[those & (jobs["policy"] == policy), column].dropna()
                if len(values):
                    axes.ecdf(values, color=theme.colour(number), linestyle=dashes, label=f"{policy}, {outcome}")
        axes.set_xscale("log")
        log_ticks(axes.xaxis, jobs[column].min(), jobs[column].max())
        axes.set_ylim(0, 1.02)

    groups = [(title, column) for column, title in CHARACTERISTICS.items()]
    grid = Grid(3, 48, 14, y="share of the jobs", lines="both", subplots={"sharey": True})
    figure, _ = facets(groups, panel, grid, columns=jobs["policy"].nunique())
    medians = jobs.groupby("policy")["excess"].median().dropna()
    facts = {"medians": {policy: medians[policy] for policy in settings.policies if policy in medians}}
    caption = "[Median speed-up of completed jobs over the required one: {medians:{name} {value:.2f}}.]"
    return Drawing(figure, caption, facts, left_out=after_the_first(spec))


def draw_attributes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Share of blocked jobs by graph and by beta: a point for each policy, a line over the range of episodes."""
    settings = settings_of(spec, JobsSettings)
    jobs = _jobs(tables, spec.scenarios[:1], settings.policies)
    if jobs.empty:
        return nothing_to_draw(data.NOT_RUN)
    graphs = jobs.drop_duplicates("model").sort_values(["sequential_jct", "model"])
    places = {model: number for number, model in enumerate(graphs["model"])}
    jobs = jobs.assign(graph=jobs["model"].map(places), beta=_binned(jobs["beta"]), blocked=jobs["cause"] != "")
    looks = data.looks(settings.policies)

    def panel(axes: Axes, column: str) -> None:
        whole = jobs.groupby(["policy", column])["blocked"].mean()
        episodes = jobs.groupby(["policy", column, "policy_seed", "unit"])["blocked"].mean()
        ends = episodes.groupby(["policy", column]).agg(range_low="min", range_high="max").assign(ci_low=np.nan)
        apart = float(np.diff(np.unique(jobs[column])).min(initial=1.0)) * 0.8 / len(looks)
        for number, policy in enumerate(name for name in looks if name in whole):
            x = whole[policy].index.to_numpy(float) + apart * (number - (len(looks) - 1) / 2)
            axes.plot(x, whole[policy], label=policy, **looks[policy].point() | {"markersize": 3.5})
            for at, row in zip(x, ends.loc[policy].to_dict("records"), strict=True):
                span(axes, row, at, colour=looks[policy].colour, upright=True)
        if column == "graph":
            axes.set_xticks(list(places.values()), list(places), rotation=20)
        axes.set_ylim(-0.02, 1.02)

    grid = Grid(2, 56, 14, y="blocking rate", lines="y", subplots={"sharey": True})
    figure, _ = facets([("a  by graph", "graph"), ("b  by beta", "beta")], panel, grid, columns=len(looks))
    models = graphs.assign(hours=graphs["sequential_jct"] / 3600)[["model", "hours", "ops"]]
    caption = "Lines: smallest to largest episode. The graphs: {graphs:{model} {hours:.1f} h, {ops} ops}."
    return Drawing(figure, caption, {"graphs": models.to_dict("records")}, left_out=after_the_first(spec))


def _binned(values: pd.Series) -> pd.Series:
    """Return each value where there are few different ones, else the mean of its bin; bins have equal widths."""
    if values.nunique() <= BINS:
        return values
    return values.groupby(pd.cut(values, BINS, labels=False)).transform("mean")


def _jobs(tables: StudyTables, scenarios: Sequence[str], policies: Sequence[str]) -> pd.DataFrame:
    """Jobs of test episodes of scenarios under the named policies."""
    return select(data.tested(select(tables.details["jobs"], scenario=scenarios), tables), policy=policies)


def _shares(tables: StudyTables, scenario: str, policies: Sequence[str]) -> dict[str, dict[str, float]]:
    """Policy -> label of a cause -> blocked jobs of that cause over all arrived jobs, in the order of CAUSES."""
    jobs = _jobs(tables, [scenario], policies)
    causes = jobs["cause"].mask((jobs["cause"] == REJECTED) & (jobs["choices"] == 0), FORCED)
    rates, found = data.scored(tables, scenario).set_index("policy")["value"], {}
    for policy in policies:
        if policy in rates:
            counted = causes[(jobs["policy"] == policy) & (causes != "")].value_counts()
            rate = rates[policy] / max(int(counted.sum()), 1)  # jobs that still run have no row
            blocked = {label: float(rate * counted.get(cause, 0)) for cause, label in CAUSES.items()}
            found[policy] = {label: share for label, share in blocked.items() if share}
    return found
