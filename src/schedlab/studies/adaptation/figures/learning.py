"""Figures of learning: single recordings with their running mean, groups of runs, the jumpstart of transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import GroupSettings, LearningSettings, TransferSettings

MANY = 1500  # points of a panel above which they are drawn as one picture, so that files stay small


@dataclass(frozen=True)
class Stretch:
    """One phase of one policy's learning on one scenario; `points` are its rows of the curves table."""

    policy: str
    phase: int
    scenario: str
    points: pd.DataFrame

    @property
    def every(self) -> float:
        """Episodes (updates, where nothing is sampled) between two points."""
        steps = np.unique(self.points["step"].to_numpy())
        return float(np.median(np.diff(steps))) if len(steps) > 1 else 1.0

    def begin(self, episodes: float) -> Stretch:
        """Return the first episodes alone; 0: all."""
        return replace(self, points=self.points[self.points["step"] <= episodes]) if episodes else self

    @property
    def counted(self) -> str:
        """What the horizontal axis counts."""
        return "episode" if (self.points["episode"] > 0).any() else "update"


def settling_point(values: np.ndarray) -> int:
    """Return where smoothed curves (..., n) come to stay within 1 % of the whole range of their last value."""
    away = np.abs(values - values[..., -1:]) > 0.01 * np.ptp(values)
    places = np.flatnonzero(away.any(axis=tuple(range(values.ndim - 1))))
    return int(places[-1]) + 1 if len(places) else 0


def shown_range(runs: Sequence[Stretch], metrics: Sequence[str], window: int) -> tuple[float, str]:
    """Return the episode up to which runs are shown (1.25 times the last settling), and a sentence on the cut.

    The objective, which is noise around nothing in the end, counts only where nothing else is shown.
    """
    told = [name for name in metrics if name != "objective"] or list(metrics)
    last, settle = max(float(run.points["step"].max()) for run in runs), 0.0
    for run, name in product(runs, told):
        grid = (
            run.points[run.points["metric"] == name]
            .pivot_table(index="policy_seed", columns="step", values="value")
            .dropna(axis="columns")
        )
        if grid.size:
            smooth = helpers.running_mean(grid.to_numpy(), max(1, round(window / run.every)))
            settle = max(settle, float(grid.columns[settling_point(smooth)]))
    until = 1.25 * settle
    if not 0 < until < 0.8 * last:
        return last, ""
    return until, f"Cut where the running means have settled ({settle:g} of {last:g} {runs[0].counted}s)."


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Points and running mean of single runs: a column a policy and phase, a row a curve."""
    settings = helpers.settings_of(spec, LearningSettings)
    metrics, window = settings.metrics, settings.window
    runs = [
        run
        for policy in spec.policies
        for run in _stretches(tables, policy)
        if not spec.scenarios or run.scenario in spec.scenarios
    ]
    if not runs:
        return _nothing(spec)
    looks = data.styles(tables, list(dict.fromkeys(run.policy for run in runs)))
    scenarios = {
        scenario.name: scenario
        for scenario in data.scenarios_of(tables, spec, dict.fromkeys(run.scenario for run in runs))
    }
    until, cut = shown_range(runs, metrics, window)
    figure, panels = theme.new_figure(
        len(metrics), len(runs), height_mm=24 + 38 * len(metrics), squeeze=False, sharex="col"
    )
    for row, metric in enumerate(metrics):
        for axes, run in zip(panels[row], runs, strict=True):
            _points(axes, run.begin(until), metric, window, looks[run.policy], scenarios[run.scenario])
        panels[row][0].set_ylabel(_axis(metric, scenarios[runs[0].scenario]))
    for axes, run in zip(panels[0], runs, strict=True):
        axes.set_title(f"{run.policy}\non {data.in_words(run.scenario)}", fontsize="medium")
    for axes, run in zip(panels[-1], runs, strict=True):
        axes.set_xlabel(run.counted)
        axes.locator_params(axis="x", nbins=4)
    helpers.legend_outside(
        figure, _learning_keys(metrics, window, longest=max(run.points["step"].max() for run in runs)), columns=2
    )
    text = data.caption(spec.caption, _learning_caption(runs, scenarios), cut)
    return Drawing(figure, text, left_out=_left_out(spec, scenarios))


def _stretches(tables: StudyTables, policy: str) -> list[Stretch]:
    rows = tables.curves[tables.curves["policy"] == policy]
    phases = rows.groupby(["phase", "train_scenario"])
    return [Stretch(policy, int(phase), scenario, points) for (phase, scenario), points in phases]


def curve_metric(name: str, scenario: Shown) -> Metric:
    """Return what a curve is, with its unit; a reward that is a loss is shown as that loss."""
    quantity = scenario.quantity
    accuracy = "test accuracy" if scenario.column.startswith("test") else "validation accuracy"
    return {
        "objective": Metric("objective", "", "lower", label="policy-gradient objective"),
        "reward": quantity,
        "accuracy": Metric("accuracy", "fraction", "higher", label=accuracy),
        "probability_best": Metric("probability_best", "", "higher", label="probability of the best sequence"),
        "regret": data.regret_metric(quantity),
    }[name]


def _axis(name: str, scenario: Shown) -> str:
    return helpers.axis_label(curve_metric(name, scenario))


def shown_values(run: Stretch, name: str, scenario: Shown) -> pd.DataFrame:
    """Return a curve's rows with the sign that the axis has: a rewarded loss is positive."""
    points = run.points[run.points["metric"] == name]
    negative = name == "reward" and scenario.quantity.better == "lower"
    return points.assign(value=-points["value"]) if negative else points


def _points(axes: Axes, run: Stretch, metric: str, window: int, look: Style, scenario: Shown) -> None:
    """Dots of all seeds, a running mean for each; with rewards, lines at the best sequence and at no growth."""
    points = shown_values(run, metric, scenario)
    dots: dict[str, Any] = {"color": look.colour, "alpha": 0.4, "markersize": 2.5, "markeredgewidth": 0, "zorder": 2}
    axes.plot(points["step"].to_numpy(), points["value"].to_numpy(), ".", rasterized=len(points) > MANY, **dots)
    for _, seed in points.groupby("policy_seed"):
        smooth = helpers.running_mean(seed["value"].to_numpy(), max(1, round(window / run.every)))
        axes.plot(seed["step"].to_numpy(), smooth, color=look.colour, linewidth=1.1, zorder=3)
    axes.set_xlim(left=0)
    if metric == "reward":
        _reference_lines(axes, scenario)


def _reference_lines(axes: Axes, scenario: Shown) -> None:
    """Lines at the best sequence of what is learned on and at doing nothing, above the curves that end on them."""
    values = scenario.values()[list(scenario.problem.rows("train"))].mean(0)
    best = float(values.max() if scenario.quantity.better == "higher" else values.min())
    never = float(values[scenario.nothing])
    axes.axhline(never, color=MUTED, linewidth=1.4, linestyle=(0, (1, 1.2)), zorder=4)
    axes.axhline(best, color=INK, **data.DASHED, zorder=5)
    if best == never:
        place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "ha": "right"}
        axes.annotate("both the same here", (0.98, best), (0, 4), fontsize="x-small", color=MUTED, **place)


def _learning_keys(metrics: Sequence[str], window: int, longest: float) -> list[Any]:
    """What dots and lines are; a window that no run is as long as takes the mean of all that there was."""
    mean = f"running mean of {window} episodes" if window < longest else "mean of all episodes so far"
    keys = [
        data.key(
            color=MUTED, marker=".", linestyle="none", alpha=0.5, markersize=4, label="recorded mean of some episodes"
        ),
        data.key(color=MUTED, linewidth=1.2, label=f"{mean}, a line a seed"),
    ]
    if "reward" in metrics:
        keys.append(data.key(color=INK, **data.DASHED, label="best sequence"))
        keys.append(data.key(color=MUTED, linewidth=1.4, linestyle=(0, (1, 1.2)), label="no adaptation"))
    return keys


def _learning_caption(runs: Sequence[Stretch], scenarios: Mapping[str, Shown]) -> str:
    """Where each run ended: how many of its seeds make the best sequence of their training table probable."""
    told = []
    for run in runs:
        last = (
            shown_values(run, "probability_best", scenarios[run.scenario])
            .sort_values("step")
            .groupby("policy_seed")["value"]
            .last()
        )
        if len(last):
            told.append(f"{run.policy} on {data.in_words(run.scenario)} {int((last > 0.5).sum())} of {len(last)}")
    every = sorted({round(run.every) for run in runs})
    episodes = f"{data.listed([str(number) for number in every])} episode{'s' if every != [1] else ''}"
    probable = "Seeds that end with the best sequence of what they learned on more probable than not"
    return f"A point is the mean of {episodes}. {probable}: {', '.join(told)}."


def draw_transfer(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Running means of several runs, a panel a group and curve; an arrow from scratch to transfer."""
    settings = helpers.settings_of(spec, TransferSettings)
    metrics, window = settings.metrics, settings.window
    groups = [group for group in _groups(tables, spec, settings) if group["runs"]]
    if not groups:
        return _nothing(spec)
    looks = data.styles(tables, [name for name in spec.policies if any(name in group["runs"] for group in groups)])
    named = dict.fromkeys(group["scenario"] for group in groups)
    scenarios = {scenario.name: scenario for scenario in data.scenarios_of(tables, spec, named)}
    places = [(group, metric) for group in groups for metric in metrics]
    until, cut = shown_range([run for group in groups for run in group["runs"].values()], metrics, window)
    figure, lines = theme.new_grid(len(places), 3 if len(places) < 4 else 2, row_mm=46, around_mm=24)
    jumps = []
    for axes, (group, metric) in zip(data.flat(lines), places, strict=True):
        jumps += _group_panel(axes, group, metric, window, looks, scenarios[group["scenario"]], until)
        if len(groups) > 1 or metric == metrics[0]:
            axes.set_title(group["title"], fontsize="medium")
        if settings.range:
            axes.set_ylim(*settings.range)
    helpers.legend_outside(figure, _transfer_keys(tables, looks), columns=3 if len(looks) > 4 else 2)
    jumpstart = f"Jumpstart: {'; '.join(jumps)}." if jumps else ""
    text = data.caption(spec.caption, _ends_caption(groups, scenarios, metrics[0], window), jumpstart, cut)
    return Drawing(figure, text, left_out=_left_out(spec, scenarios))


def _transfer_keys(tables: StudyTables, looks: Mapping[str, Style]) -> list[Any]:
    """A line a policy, with what it starts from; where there are many their names say it."""
    handles = helpers.policy_handles(looks, looks, lines=True)
    for handle, name in zip(handles, looks, strict=True):
        parent = tables.policies.get(name, {}).get("policy", {}).get("parent")
        if name in tables.policies and len(looks) <= 4:
            handle.set_label(f"{name} (starts from {parent})" if parent else f"{name} (from scratch)")
    return handles


def _groups(tables: StudyTables, spec: FigureSpec, settings: TransferSettings) -> list[dict[str, Any]]:
    """The groups of a figure with the runs that there are: policy -> its last phase on the group's scenario."""
    given = settings.groups or (GroupSettings(scenario=spec.scenarios[0], policies=spec.policies),)
    found = []
    for number, group in enumerate(given):
        where = f"figure {spec.name}: params.groups.{number}"
        names = [*group.policies, *group.jumpstart]
        for name in names:
            if name not in spec.policies:
                what = f"'{name}' is not among the figure's policies"
                raise UserError(what, where=where, remedy=did_you_mean(name, spec.policies))
        runs = {}
        for name in dict.fromkeys(names):
            of_policy = [run for run in _stretches(tables, name) if run.scenario == group.scenario]
            if of_policy:
                runs[name] = of_policy[-1].begin(settings.first)
        title = group.title or data.in_words(group.scenario)
        found.append({"title": title, "scenario": group.scenario, "jumpstart": group.jumpstart, "runs": runs})
    return found


def _group_panel(
    axes: Axes,
    group: Mapping[str, Any],
    metric: str,
    window: int,
    looks: Mapping[str, Style],
    scenario: Shown,
    until: float,
) -> list[str]:
    """Draw one group up to an episode; return what its jumpstart is, in words."""
    starts = {}
    for name, run in group["runs"].items():
        points = shown_values(run.begin(until), metric, scenario)
        smooth = max(1, round(window / run.every))
        helpers.learning_curve(axes, points, looks[name], window=smooth)
        starts[name] = float(points[points["step"] == points["step"].min()]["value"].mean())
    first = next(iter(group["runs"].values()))
    axes.set(xlabel=first.counted, ylabel=_axis(metric, scenario))
    axes.margins(x=0.02)
    pair = [name for name in group["jumpstart"] if name in starts]
    if len(pair) < 2:
        return []
    scratch, transfer = (starts[name] for name in pair)
    kind = curve_metric(metric, scenario)
    low, high = axes.get_ylim()
    if abs(transfer - scratch) > 0.04 * (high - low):
        _arrow(axes, scratch, transfer)
    gain = (transfer - scratch) * (1 if kind.better == "higher" else -1)
    if metric == "objective":
        return []
    direction = "better" if gain >= 0 else "worse"
    return [f"{pair[1]} starts {data.amount(abs(gain), kind.unit)} {direction} than {pair[0]} in {kind.label}"]


def _arrow(axes: Axes, scratch: float, transfer: float) -> None:
    """An arrow left of the curves, from the start value of learning from scratch to that of transfer."""
    left, right = axes.get_xlim()
    x = left - 0.02 * (right - left)
    axes.set_xlim(left - 0.07 * (right - left), right)
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(x, transfer), xytext=(x, scratch), arrowprops=arrow)
    look: dict[str, Any] = {"rotation": 90, "ha": "right", "va": "center", "fontsize": "x-small"}
    axes.annotate("jumpstart", (x, (scratch + transfer) / 2), (-3, 0), textcoords="offset points", **look)


def _ends_caption(groups: Sequence[Mapping[str, Any]], scenarios: Mapping[str, Shown], metric: str, window: int) -> str:
    """The mean over the last `window` episodes of each run, by group."""
    told = []
    for group in groups:
        scenario, ends = scenarios[group["scenario"]], []
        for name, run in group["runs"].items():
            points = shown_values(run, metric, scenario)
            tail = points[points["step"] > points["step"].max() - max(window, run.every)]
            ends.append(f"{name} {data.amount(float(tail['value'].mean()), curve_metric(metric, scenario).unit)}")
        told.append(f"{group['title']}: {', '.join(ends)}")
    seeds = max(run.points["policy_seed"].nunique() for group in groups for run in group["runs"].values())
    bands = " Bands: lowest to highest seed." if seeds > 1 else ""
    return f"{bands} Mean of the last {window} episodes, {'; '.join(told)}.".strip()


def _left_out(spec: FigureSpec, shown: Mapping[str, Shown]) -> dict[str, str]:
    """The scenarios of a figure on which none of its policies learned (see Drawing)."""
    return {name: "none of its policies learned there" for name in spec.scenarios if name not in shown}


def _nothing(spec: FigureSpec) -> Drawing:
    """What is drawn where none of the runs was learned at this scale."""
    figure, axes = theme.new_figure(height_mm=20)
    axes.axis("off")
    axes.text(0.5, 0.5, "none of these policies is learned at this scale", ha="center", va="center", color=MUTED)
    return Drawing(figure, f"{spec.caption} None of these policies is learned at this scale.")
