"""Figures of single jobs: why they were blocked, which of them were, and the speed-ups of those that completed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme
from schedlab.studies.ramp.figures.parts import MARKERS, NOT_SCORED, family, left_out, nothing_to_draw
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

if TYPE_CHECKING:
    import pandas as pd

FORCED = "forced"
CAUSES = {  # cause -> what it is called in figures, in the order of the bars
    FORCED: "too few free workers for any degree",
    NO_PLACEMENT: "no free block, or no memory",
    TOO_SLOW: "would exceed its limit",
    REJECTED: "rejected by choice",
    CUT_OFF: "ran at the end",
    QUEUE_FULL: "queue was full",
    NO_CHANNEL: "no free channel",
    NO_PARTITION: "could not be split",
}
ATTRIBUTES = {  # column of the table of jobs -> label, and what values are divided by
    "ops": ("ops", 1),
    "deps": ("deps", 1),
    "memory": ("memory (GB)", 1e9),
    "dep_size": ("dep size (GB)", 1e9),
    "sequential_jct": ("sequential time (h)", 3600),
    "beta": ("beta", 1),
}
BINS = 10  # of an attribute that has more values
ROW_MM = 5.0


def draw_causes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a row a policy: its blocking rate on test episodes, by cause. Settings: CausesSettings."""
    settings = helpers.settings_of(spec, CausesSettings)
    shares = {name: found for name in spec.scenarios if (found := _shares(tables, name, settings.policies))}
    if not shares:
        return nothing_to_draw(spec, "no such scenario is run at this scale")
    colours = {cause: theme.colour(number) for number, cause in enumerate(CAUSES)}
    widest = max(sum(causes.values()) for found in shares.values() for causes in found.values())
    row_mm = 10 + ROW_MM * len(settings.policies)
    figure, lines = theme.new_grid(len(shares), 2, row_mm=row_mm, around_mm=14, sharex=True, sharey=True)
    told = []
    for axes, (name, found) in zip([axes for line in lines for axes in line], shares.items(), strict=True):
        for height, policy in enumerate(settings.policies):
            start = 0.0
            for cause, share in found.get(policy, {}).items():
                axes.barh(height, share, left=start, color=colours[cause], height=0.7, label=CAUSES[cause])
                start += share
            axes.text(
                start + 0.01, height, f"{start:.3f}" if policy in found else "not run", va="center", color=theme.MUTED
            )
        label = settings.labels.get(name, name)
        axes.set_title(label)
        axes.set_yticks(range(len(settings.policies)), settings.policies)
        axes.set_ylim(len(settings.policies) - 0.4, -0.6)
        axes.set_xlim(0, widest + 0.12)
        axes.tick_params(axis="y", length=0)
        told += [
            f"{policy} in {label} {100 * causes[NO_PLACEMENT] / sum(causes.values()):.0f} %"
            for policy, causes in found.items()
            if causes.get(NO_PLACEMENT)
        ]
    helpers.shared_xlabel(lines[-1], "blocked jobs over arrived jobs")
    labelled = {handle.get_label(): handle for axes in figure.axes for handle in axes.get_legend_handles_labels()[0]}
    helpers.legend_outside(figure, [labelled[label] for label in CAUSES.values() if label in labelled], columns=3)
    placed = f" Of what was blocked, had no free block: {', '.join(told)}." if told else ""
    return Drawing(figure, f"{spec.caption}{placed}", left_out=left_out(spec, shares, NOT_SCORED))


def draw_characteristics(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Distributions over the completed and the blocked jobs of each policy: what they were, asked for and got."""
    settings = helpers.settings_of(spec, JobsSettings)
    jobs = _jobs(tables, spec.scenarios[0], settings.policies) if spec.scenarios else None
    if jobs is None or jobs.empty:
        return nothing_to_draw(spec, "no such scenario is run at this scale")
    jobs = jobs.assign(requested=1 / jobs["beta"], excess=jobs["speedup"] * jobs["beta"])
    panels = {
        "sequential_jct": ("a  sequential time (h)", 3600.0, False),
        "memory": ("b  memory (GB)", 1e9, False),
        "dep_size": ("c  dep size (GB)", 1e9, False),
        "requested": ("d  speed-up asked for, 1 / beta", 1.0, True),
        "speedup": ("e  speed-up got", 1.0, True),
        "excess": ("f  got over asked for", 1.0, True),
    }
    figure, lines = theme.new_grid(len(panels), 3, row_mm=48, around_mm=14, sharey=True)
    for axes, (column, (title, size, logarithmic)) in zip(
        [axes for line in lines for axes in line], panels.items(), strict=True
    ):
        for number, policy in enumerate(settings.policies):
            own = jobs[jobs["policy"] == policy]
            for blocked, dashes in ((False, "-"), (True, theme.DASHES[2])):
                values = np.sort(own.loc[(own["cause"] != "") == blocked, column].dropna().to_numpy()) / size
                if len(values):
                    look = {
                        "color": theme.colour(number),
                        "linestyle": dashes,
                        "label": f"{policy}, {'blocked' if blocked else 'completed'}",
                    }
                    axes.step(
                        np.append(values, values[-1]), np.arange(len(values) + 1) / len(values), where="pre", **look
                    )
        axes.set_title(title)
        if logarithmic:
            low, high = (getattr(jobs[column], end)() for end in ("min", "max"))
            axes.set_xscale("log")
            helpers.log_ticks(axes.xaxis, low, high)
        axes.set_ylim(0, 1.02)
        axes.grid(True)
    for line in lines:
        line[0].set_ylabel("share of the jobs")
    helpers.legend_outside(figure, columns=jobs["policy"].nunique())
    medians = jobs.groupby("policy")["excess"].median()
    told = ", ".join(
        f"{policy} {medians[policy]:.2f}" for policy in settings.policies if np.isfinite(medians.get(policy, np.nan))
    )
    caption = f"{spec.caption} Median of what completed jobs got over what they asked for: {told}."
    return Drawing(figure, caption, left_out=helpers.after_the_first(spec))


def draw_attributes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel an attribute of jobs, a line a policy: the share of jobs with about that value which was blocked."""
    settings = helpers.settings_of(spec, JobsSettings)
    jobs = _jobs(tables, spec.scenarios[0], settings.policies) if spec.scenarios else None
    if jobs is None or jobs.empty:
        return nothing_to_draw(spec, "no such scenario is run at this scale")
    jobs = jobs.assign(blocked=(jobs["cause"] != "").astype(float))
    figure, lines = theme.new_grid(len(ATTRIBUTES), 3, row_mm=48, around_mm=14, sharey=True)
    for letter, axes, (column, (label, size)) in zip(
        "abcdef", [axes for line in lines for axes in line], ATTRIBUTES.items(), strict=True
    ):
        where = _binned(jobs[column]) / size
        for number, policy in enumerate(settings.policies):
            own = jobs["policy"] == policy
            if not own.any():
                continue
            rates = jobs.loc[own, "blocked"].groupby(where[own]).mean()
            marker, colour = MARKERS[number % len(MARKERS)], theme.colour(number)
            axes.plot(rates.index, rates, label=policy, color=colour, marker=marker, markersize=3.5)
        axes.set_title(f"{letter}  {label}")
        axes.set_ylim(0, 1)
        axes.grid(True)
    for line in lines:
        line[0].set_ylabel("blocking rate")
    helpers.legend_outside(figure, columns=len(settings.policies))
    models = jobs.drop_duplicates("model").sort_values("sequential_jct")
    named = ", ".join(f"{row.model} {row.sequential_jct / 3600:.1f} h, {row.ops} ops" for row in models.itertuples())
    return Drawing(figure, f"{spec.caption} The graphs: {named}.", left_out=helpers.after_the_first(spec))


def _binned(values: pd.Series) -> pd.Series:
    """The value itself where there are few, else the mean of its bin; bins are of one width."""
    import pandas as pd

    if values.nunique() <= BINS:
        return values
    return values.groupby(pd.cut(values, BINS, labels=False)).transform("mean")


def _jobs(tables: StudyTables, scenario: str, policies: tuple[str, ...]) -> pd.DataFrame:
    """Jobs of test episodes under the named policies, called without the scenario that they were learned on."""
    jobs = tables.details["jobs"]
    jobs = jobs[(jobs["scenario"] == scenario) & (jobs["split"] == "test")]
    jobs = jobs.assign(policy=[family(name, scenario) for name in jobs["policy"]])
    return jobs[jobs["policy"].isin(policies)]


def _shares(tables: StudyTables, scenario: str, policies: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Policy -> cause -> blocked jobs of that cause over all arrived jobs; causes in the order of CAUSES."""
    found = {}
    jobs = _jobs(tables, scenario, policies)
    forced = (jobs["cause"] == REJECTED) & (jobs["choices"] == 0)
    causes = jobs["cause"].mask(forced, FORCED)
    rates = tables.scores[(tables.scores["scenario"] == scenario) & (tables.scores["metric"] == "blocking_rate")]
    rates = rates[rates["split"] == "test"]
    for policy, own in causes.groupby(jobs["policy"]):
        counted = own[own != ""].value_counts()
        rate = rates.loc[[family(name, scenario) == policy for name in rates["policy"]], "value"].mean()
        total = max(int(counted.sum()), 1)  # jobs that still run have no row: the score knows how many arrived
        found[str(policy)] = {cause: float(rate * counted[cause] / total) for cause in CAUSES if cause in counted}
    return found
