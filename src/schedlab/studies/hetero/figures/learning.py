"""Figures of learning: return and loss of an episode, and what a policy prefers, agent next to agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.panels.axes import shared_xlabel, short_ticks
from schedlab.figures.panels.curves import BAND, learning_curve
from schedlab.figures.theme import Style
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import LearningSettings, PreferencesSettings
from schedlab.studies.hetero.simulator.core_policies import CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import JOB_POLICIES

NAMED = 6  # actions with a line and a label
PALE = "#c8c8c8"
FEW = 12  # points of a line below which each has a dot
SMOOTH = 20  # a running mean takes this part of all points
LOSSES = ("loss", "policy_loss")  # what a learner calls what it descends
CHANCE = "probability "  # begin of the curves that hold an action's probability
GROUPS = {"pair": "pair", "job": "job policy", "core": "core policy"}
LINES = "[Lines are means, bands the range of {seeds} seeds.]"

# place of a job policy or core policy among its kind, so that it has one colour everywhere; pairs come after
_ORDER = {name: number for names in (JOB_POLICIES, CORE_POLICIES) for number, name in enumerate(names)}


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A column an agent: above the return of an episode, below the loss; the mean of the seeds and their range."""
    window = settings_of(spec, LearningSettings).window
    agents = _curves(tables, spec)
    looks = theme.styles_of(tables.scores)
    figure, panels = theme.new_figure(2, len(agents), height_mm=95, sharex="col", squeeze=False)
    returns = {}
    for column, (agent, rows) in enumerate(agents.items()):
        loss = next(name for name in LOSSES if name in set(rows["metric"]))
        for axes, metric in zip(panels[:, column], ("return", loss), strict=True):
            points = rows[rows["metric"] == metric]
            _mean_and_range(axes, points, looks[agent], window)
            axes.grid(True, axis="y")
            short_ticks(axes)
            if metric == "return":
                returns[agent] = _ends(points, window)
        panels[0, column].set_title(_short(agent, agents))
        if column:
            panels[0, column].sharey(panels[0, 0])
            panels[0, column].tick_params(labelleft=False)
    panels[0, 0].set_ylabel("return of an episode")
    panels[1, 0].set_ylabel("loss")
    shared_xlabel(panels[1], "episode")
    caption = "Return in the first and in the last points: {returns:{name} {first:.4g} and {last:.4g}}."
    facts = {"returns": returns, "seeds": _seeds(agents)}
    return Drawing(figure, f"{LINES} {caption}", facts, left_out=after_the_first(spec))


def draw_preferences(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A column an agent, a row a way to group its actions: the probability of each group over the episodes."""
    settings = settings_of(spec, PreferencesSettings)
    agents = _curves(tables, spec)
    looks: dict[str, Any] = {"height_mm": 24 + 38 * len(settings.by), "sharex": "col", "sharey": True, "squeeze": False}
    figure, panels = theme.new_figure(len(settings.by), len(agents), **looks)
    preferred_last, most = [], 0.0
    for column, (agent, points) in enumerate(agents.items()):
        for axes, by in zip(panels[:, column], settings.by, strict=True):
            places, groups = preferred(points, by)
            preference_lines(axes, places, groups)
            ends = {name: float(values[:, -1].mean()) for name, values in groups.items()}
            group = max(ends, key=lambda name: ends[name])
            most = max(most, *(float(values.max()) for values in groups.values()))
            preferred_last.append({"agent": agent, "group": group, "probability": ends[group]})
            short_ticks(axes)
            axes.grid(True, axis="y")
        panels[0, column].set_title(_short(agent, agents))
    for line, by in zip(panels, settings.by, strict=True):
        line[0].set(ylabel="probability", ylim=(0, min(1.02, 1.2 * most)))
        line[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title=GROUPS[by], alignment="left")
    shared_xlabel(panels[-1], "episode")
    caption = f"{LINES} Most probable in the end (mean of the seeds): {{last:{{agent}} {{group}} {{probability:.3g}}}}."
    return Drawing(figure, caption, {"last": preferred_last, "seeds": _seeds(agents)}, left_out=after_the_first(spec))


def preferred(points: pd.DataFrame, by: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the episodes (n,) that all seeds recorded, and group -> probability of its actions together, (seeds, n).

    points  rows of the curves of one policy. by: pair, job or core
    """
    rows = points[points["metric"].str.startswith(CHANCE)]
    actions = rows["metric"].str.removeprefix(CHANCE)
    parts = actions.str.split(PAIR_SEPARATOR, n=1, expand=True)
    groups = actions if by == "pair" else parts[0 if by == "job" else 1].fillna(actions)
    grouped = rows.assign(group=groups).groupby(["group", "policy_seed", "episode"])
    sums = grouped["value"].sum().unstack("episode").dropna(axis="columns")
    order = sorted(set(groups), key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
    return sums.columns.to_numpy(), {name: sums.loc[name].to_numpy() for name in order}


def preference_lines(axes: Axes, places: np.ndarray, groups: Mapping[str, np.ndarray]) -> None:
    """Draw a line a group (seeds, n): mean and range over episodes (n,); beyond the first NAMED pale and nameless."""
    for number, (name, values) in enumerate(groups.items()):
        named, place = number < NAMED, _ORDER.get(name, number)
        look: dict[str, Any] = {"color": PALE, "linewidth": 0.6}
        if named:
            look = {"color": theme.colour(place), "linestyle": theme.DASHES[place % len(theme.DASHES)]}
        if named and len(values) > 1:
            axes.fill_between(places, values.min(axis=0), values.max(axis=0), color=look["color"], **BAND)
        look["marker"] = "." if len(places) < FEW else ""
        axes.plot(places, values.mean(axis=0), label=name if named else "_others", **look)


def episode_axis(axes: Axes, last: int) -> None:
    """Label a horizontal axis of whole episodes from 1 to the last one."""
    axes.set(xlabel="episode", xlim=(1, max(2, last)))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))


def _curves(tables: StudyTables, spec: FigureSpec) -> dict[str, pd.DataFrame]:
    """Agent -> rows of its training curves on the figure's scenario. Raises UserError where there are none."""
    scenario = data.scenarios(tables, spec)[0]
    rows = tables.curves[(tables.curves["split"] == "train") & tables.curves["train_scenario"].isin([scenario, ""])]
    learned = set(rows.loc[rows["train_scenario"] == scenario, "policy"])
    names = [name for name in spec.policies or sorted(learned) if name in learned]
    if not names:
        what = f"none of its policies learned on {scenario}"
        raise UserError(what, where=f"figure {spec.name}: policies", expected="some that did")
    return {name: rows[rows["policy"] == name] for name in names}


def _mean_and_range(axes: Axes, points: pd.DataFrame, look: Style, window: int) -> None:
    smooth = window or max(1, points["episode"].nunique() // SMOOTH)
    learning_curve(axes, points, look, window=smooth, whole=window > 0, x="episode")


def _ends(points: pd.DataFrame, window: int) -> dict[str, float]:
    """Mean of the first and of the last part of a curve."""
    means = points.groupby("episode")["value"].mean().sort_index().to_numpy()
    part = window or max(1, len(means) // SMOOTH)
    return {"first": float(means[:part].mean()), "last": float(means[-part:].mean())}


def _seeds(agents: Mapping[str, pd.DataFrame]) -> int | None:
    """How many seeds a band is the range of; None where there is no band."""
    seeds = max(rows["policy_seed"].nunique() for rows in agents.values())
    return seeds if seeds > 1 else None


def _short(agent: str, agents: Iterable[str]) -> str:
    """The agent's name without what the names of all have in common behind the last dash."""
    ends = {name.rpartition("-")[2] for name in agents}
    return agent.rpartition("-")[0] or agent if len(ends) == 1 else agent
