"""Figures of learning: return and loss of episodes, and the preferences of a policy, with agents side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.panels.axes import short_ticks
from schedlab.figures.panels.curves import ENDS, Curve, curves, mean_and_range
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import LearningSettings, PreferencesSettings
from schedlab.studies.hetero.simulator.core_policies import CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import ALL_JOB_POLICIES

NAMED = 6  # actions with a line and a label
PALE = "#c8c8c8"
FEW = 12  # points of a line below which each has a dot
SMOOTH = 20  # the window of a running mean is the number of points divided by this
LOSSES = ("loss", "policy_loss")  # names under which learners record the loss that they minimise
GROUPS = {"pair": "pair", "job": "job policy", "core": "core policy"}
LINES = "[Lines are means, bands the range of {seeds} seeds.]"

# place of a job policy or core policy among its kind, so that it has the same colour everywhere; pairs come after these
_ORDER = {name: number for names in (ALL_JOB_POLICIES, CORE_POLICIES) for number, name in enumerate(names)}


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw for each agent the return of an episode above and the loss below, each as mean and range of the seeds."""
    window = settings_of(spec, LearningSettings).window
    agents = _curves(tables, spec)
    looks = theme.styles_of(tables.scores)

    def panel(axes: Axes, shown: tuple[str, tuple[str, ...]]) -> dict[str, Any]:
        rows = agents[shown[0]]
        points = rows[rows["metric"] == next(name for name in shown[1] if name in set(rows["metric"]))]
        smooth = window or max(1, points["episode"].nunique() // SMOOTH)
        short_ticks(axes)
        return curves(axes, {shown[0]: Curve(points, looks[shown[0]], smooth, whole=window > 0)}, x="episode")

    groups: list[tuple[str, tuple[str, tuple[str, ...]]]]
    groups = [(title, (agent, ("return",))) for agent, title in _titles(agents).items()]
    groups += [("", (agent, LOSSES)) for agent in agents]
    y = ("return of an episode", "loss")
    grid = Grid(len(agents), 38, 19, "episode", y, lines="y", subplots={"sharex": "col"})
    figure, ends = facets(groups, panel, grid, keys=())
    for axes in figure.axes[1 : len(agents)]:
        axes.sharey(figure.axes[0])
        axes.tick_params(labelleft=False)
    facts = {"returns": {name: found for each in ends[: len(agents)] for name, found in each.items()}}
    caption = f"{LINES} Return of an episode: {{returns:{ENDS}}}."
    return Drawing(figure, caption, {**facts, "seeds": _seeds(agents)}, left_out=after_the_first(spec))


def draw_preferences(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the probability of each group of actions over the episodes, by agent (columns) and way to group (rows)."""
    settings = settings_of(spec, PreferencesSettings)
    agents = _curves(tables, spec)

    def panel(axes: Axes, shown: tuple[str, str]) -> dict[str, Any]:
        places, groups = preferred(agents[shown[0]], shown[1])
        preference_lines(axes, places, groups)
        short_ticks(axes)
        ends = {name: float(values[:, -1].mean()) for name, values in groups.items()}
        group = max(ends, key=lambda name: ends[name])
        most = max(float(values.max()) for values in groups.values())
        return {"agent": shown[0], "group": group, "probability": ends[group], "most": most}

    titles = _titles(agents)
    groups = [(titles[agent] if by == settings.by[0] else "", (agent, by)) for by in settings.by for agent in agents]
    subplots = {"sharex": "col", "sharey": True}
    grid = Grid(len(agents), 38, 24, "episode", "probability", lines="y", subplots=subplots)
    figure, last = facets(groups, panel, grid, keys=())
    figure.axes[0].set_ylim(0, min(1.02, 1.2 * max(found.pop("most") for found in last)))
    for axes, by in zip(figure.axes[len(agents) - 1 :: len(agents)], settings.by, strict=True):
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title=GROUPS[by], alignment="left")
    caption = f"{LINES} Most probable in the end (mean of the seeds): {{last:{{agent}} {{group}} {{probability:.3g}}}}."
    return Drawing(figure, caption, {"last": last, "seeds": _seeds(agents)}, left_out=after_the_first(spec))


def preferred(points: pd.DataFrame, by: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the episodes (n,) that all seeds recorded, and group -> sum of its actions' probabilities, (seeds, n).

    points  rows of the curves of one policy
    by      the grouping: pair, job or core
    """
    rows = select(points, metric="probability")
    actions = rows["action"]
    parts = actions.str.split(PAIR_SEPARATOR, n=1, expand=True)
    groups = actions if by == "pair" else parts[0 if by == "job" else 1].fillna(actions)
    grouped = rows.assign(group=groups).groupby(["group", "policy_seed", "episode"])
    sums = grouped["value"].sum().unstack("episode").dropna(axis="columns")
    order = sorted(set(groups), key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
    return sums.columns.to_numpy(), {name: sums.loc[name].to_numpy() for name in order}


def preference_lines(axes: Axes, places: np.ndarray, groups: Mapping[str, np.ndarray]) -> None:
    """Draw a line for each group (seeds, n) over the episodes (n,): mean and range of the seeds. Groups after the first
    NAMED are pale lines of the mean without a label.
    """
    for number, (name, values) in enumerate(groups.items()):
        place, marker = _ORDER.get(name, number), "." if len(places) < FEW else ""
        if number < NAMED:
            look: dict[str, Any] = {"color": theme.colour(place), "linestyle": theme.DASHES[place % len(theme.DASHES)]}
            mean_and_range(axes, places, values, label=name, marker=marker, **look)
        else:
            pale = values.mean(axis=0, keepdims=True)
            mean_and_range(axes, places, pale, label="_others", marker=marker, color=PALE, linewidth=0.6)


def episode_axis(axes: Axes, last: int) -> None:
    """Label a horizontal axis of whole episodes from 1 to the last one."""
    axes.set(xlabel="episode", xlim=(1, max(2, last)))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))


def _curves(tables: StudyTables, spec: FigureSpec) -> dict[str, pd.DataFrame]:
    """Return agent -> rows of its training curves on the figure's scenario. Raises UserError if there is none."""
    scenario = data.scenarios(tables, spec)[0]
    rows = tables.curves[(tables.curves["split"] == "train") & tables.curves["train_scenario"].isin([scenario, ""])]
    learned = set(rows.loc[rows["train_scenario"] == scenario, "policy"])
    names = [name for name in spec.policies or sorted(learned) if name in learned]
    if not names:
        what = f"none of its policies learned on {scenario}"
        raise UserError(what, where=f"figure {spec.name}: policies", expected="some that did")
    return {name: rows[rows["policy"] == name] for name in names}


def _seeds(agents: Mapping[str, pd.DataFrame]) -> int | None:
    """Return the largest number of seeds over which a band is drawn; None if there is no band."""
    seeds = max(rows["policy_seed"].nunique() for rows in agents.values())
    return seeds if seeds > 1 else None


def _titles(agents: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return agent -> its recipe, or its name if agents share a recipe."""
    recipes = {agent: rows["recipe"].iloc[0] for agent, rows in agents.items()}
    return recipes if len(set(recipes.values())) == len(agents) else {agent: agent for agent in agents}
