"""The figure of learning: single runs with each seed, groups of runs side by side, and the jumpstart of transfer."""

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
from schedlab.figures.captions import listed
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.panels.axes import axis_label, key, policy_handles
from schedlab.figures.panels.curves import Curve, curve_ends, curves, running_mean, seed_curves, seeds_by_place
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import LearningSettings

DOTTED: dict[str, Any] = {"color": MUTED, "linewidth": 1.4, "linestyle": (0, (1, 1.2))}
CAPTION = (
    "[A point is the mean of {every} {counted_every}.] [Seeds whose final policy plays the best sequence of its "
    "training table with probability above 0.5: {probable:{policy} on {scenario} {seeds} of {of}}.] "
    "[{bands}Bands: lowest to highest seed.] "
    "[Mean of the last {window} episodes, {ends:{title}: {runs:{name} {value:.3f}[ {unit}]}}.] "
    "[Jumpstart: {jumpstarts:{transfer} starts {gain:.3f}[ {unit}] {direction} than {scratch} in {quantity}}.] "
    "[Cut where the running means have settled ({settled:g} of {episodes:g} {counted}s).]"
)


@dataclass(frozen=True)
class Run:
    """One phase of one policy's learning on one scenario; `points` are its rows of the curves table."""

    policy: str
    scenario: str
    points: pd.DataFrame

    @property
    def every(self) -> float:
        """Number of episodes (updates, if nothing is sampled) between two points."""
        steps = np.unique(self.points["step"].to_numpy())
        return float(np.median(np.diff(steps))) if len(steps) > 1 else 1.0

    def begin(self, episodes: float) -> Run:
        """Return the run with only its first `episodes` episodes; 0: all."""
        return replace(self, points=self.points[self.points["step"] <= episodes]) if episodes else self

    def window(self, episodes: int) -> int:
        """Return the number of points in a running mean over a number of episodes."""
        return max(1, round(episodes / self.every))

    @property
    def counted(self) -> str:
        """The unit of the horizontal axis, `episode` or `update`."""
        return "episode" if (self.points["episode"] > 0).any() else "update"

    def values(self, name: str, scenario: Shown) -> pd.DataFrame:
        """Return a curve's rows with the sign of the axis: a rewarded loss is positive."""
        points, negative = select(self.points, metric=name), name == "reward" and scenario.quantity.better == "lower"
        return points.assign(value=-points["value"]) if negative else points


@dataclass(frozen=True)
class Group:
    """The runs of a panel on one scenario.

    jumpstart: as in GroupSettings; runs: policy -> its last phase on the scenario
    """

    title: str
    scenario: str
    jumpstart: tuple[str, ...]
    runs: Mapping[str, Run]


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw learning curves with a panel for each group of runs and each curve.

    A group shows the running means of its runs with bands over the seeds, and an arrow from the start of learning from
    scratch to that of transfer. Without groups, each run has a separate column with all recorded points and the running
    mean of each seed.
    """
    settings = settings_of(spec, LearningSettings)
    metrics, window = settings.metrics, settings.window
    groups = [group for group in _groups(tables, spec, settings) if group.runs]
    if not groups:
        return nothing_to_draw("none of these policies is learned at this scale")
    runs = [run for group in groups for run in group.runs.values()]
    looks = data.styles(tables, [name for name in spec.policies if name in {run.policy for run in runs}])
    named = dict.fromkeys(group.scenario for group in groups)
    scenarios = {scenario.name: scenario for scenario in data.scenarios_of(tables, spec, named)}
    until, cut = shown_range(runs, metrics, window)
    alone, stacked = not settings.groups, len(metrics) > 1 and len(groups) > 1

    def panel(axes: Axes, shown: tuple[str, Group]) -> list[dict[str, Any]]:
        metric, group = shown
        scenario, first = scenarios[group.scenario], next(iter(group.runs.values()))
        kind = curve_metric(metric, scenario)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel("" if stacked and metric != metrics[-1] else first.counted)
        axes.set_ylabel(axis_label(kind) if len(groups) == 1 else "")
        if alone:
            seed_curves(axes, first.begin(until).values(metric, scenario), looks[first.policy], first.window(window))
            if metric == "reward":
                _reference_lines(axes, scenario)
            return []
        means = {
            name: Curve(run.begin(until).values(metric, scenario), looks[name], run.window(window))
            for name, run in group.runs.items()
        }
        curves(axes, means)
        return _jumpstart(axes, group.jumpstart, means, kind)

    titled = set(metrics[:1] if stacked or len(groups) == 1 else metrics)
    places = [(each.title if name in titled else "", (name, each)) for name, each in product(metrics, groups)]
    labels = [axis_label(curve_metric(name, scenarios[groups[0].scenario])) for name in metrics]
    most = len(groups) if stacked else 2 if len(places) == 4 else 3
    y: Any = "" if len(groups) == 1 else labels if stacked else labels[0]
    keys = _seed_keys(metrics, window, runs) if alone else _policy_keys(tables, looks)
    grid = Grid(most, 42, 24, y=y, subplots={"sharex": "col"} if stacked else {})
    figure, jumps = facets(places, panel, grid, keys=keys, columns=2)
    every = sorted({round(run.every) for run in runs})
    facts = {
        "every": listed([str(number) for number in every]) if alone else "",
        "counted_every": "episode" if every == [1] else "episodes",
        "probable": [row for run in runs if alone and (row := _probable(run))],
        "bands": not alone and max(run.points["policy_seed"].nunique() for run in runs) > 1,
        "window": window,
        "ends": [] if alone else [_ends(group, scenarios[group.scenario], metrics[0], window) for group in groups],
        "jumpstarts": [jump for each in jumps for jump in each],
        **cut,
    }
    return Drawing(figure, CAPTION, facts, left_out=left_out(spec, scenarios, "none of its policies learned there"))


def _groups(tables: StudyTables, spec: FigureSpec, settings: LearningSettings) -> list[Group]:
    """Return the groups of a figure with their existing runs; without groups in its settings, one for each run."""
    runs: dict[str, list[Run]] = {}
    for name in spec.policies:
        phases = tables.curves[tables.curves["policy"] == name].groupby(["phase", "train_scenario"])
        runs[name] = [Run(name, str(scenario), points) for (_, scenario), points in phases]
    if not settings.groups:
        every = [run for own in runs.values() for run in own if run.scenario in (spec.scenarios or [run.scenario])]
        return [Group(f"{run.policy}\non {data.in_words(run.scenario)}", run.scenario, (), {"": run}) for run in every]
    found = []
    for number, group in enumerate(settings.groups):
        wanted = dict.fromkeys([*group.policies, *group.jumpstart])
        if unknown := [name for name in wanted if name not in runs]:
            where, remedy = f"figure {spec.name}: params.groups.{number}", did_you_mean(unknown[0], runs)
            raise UserError(f"'{unknown[0]}' is not among the figure's policies", where=where, remedy=remedy)
        last = {
            name: run.begin(settings.first) for name in wanted for run in runs[name] if run.scenario == group.scenario
        }
        found.append(Group(group.title or data.in_words(group.scenario), group.scenario, group.jumpstart, last))
    return found


def settling_point(values: np.ndarray) -> int:
    """Return the point from which curves (..., n) differ from their last value by at most 1 % of the whole range."""
    away = np.abs(values - values[..., -1:]) > 0.01 * np.ptp(values)
    places = np.flatnonzero(away.any(axis=tuple(range(values.ndim - 1))))
    return int(places[-1]) + 1 if len(places) else 0


def shown_range(runs: Sequence[Run], metrics: Sequence[str], window: int) -> tuple[float, dict[str, Any]]:
    """Return the episode up to which runs are shown (1.25 times the last settling), and the facts for the caption.

    The objective counts only if no other curve is shown, because it ends as noise around zero.
    """
    names = [name for name in metrics if name != "objective"] or list(metrics)
    last, settle = max(float(run.points["step"].max()) for run in runs), 0.0
    for run, name in product(runs, names):
        grid = seeds_by_place(run.points[run.points["metric"] == name])
        if grid.size:
            smooth = running_mean(grid.to_numpy(), run.window(window))
            settle = max(settle, float(grid.columns[settling_point(smooth)]))
    cut = 0 < 1.25 * settle < 0.8 * last
    facts = {"settled": settle if cut else None, "episodes": last, "counted": runs[0].counted}
    return 1.25 * settle if cut else last, facts


def curve_metric(name: str, scenario: Shown) -> Metric:
    """Return the metric of a curve, with its unit; a reward that is a negative loss is shown as the loss."""
    accuracy = "test accuracy" if scenario.column.startswith("test") else "validation accuracy"
    return {
        "objective": Metric("objective", "", "lower", label="policy-gradient objective"),
        "reward": scenario.quantity,
        "accuracy": Metric("accuracy", "fraction", "higher", label=accuracy),
        "probability_best": Metric("probability_best", "", "higher", label="probability of the best sequence"),
        "regret": data.regret_metric(scenario.quantity),
    }[name]


def _reference_lines(axes: Axes, scenario: Shown) -> None:
    """Draw lines at the best sequence of the training units and at doing nothing, above the curves that reach them."""
    values = scenario.values()[list(scenario.problem.rows("train"))].mean(0)
    best = float(values.max() if scenario.quantity.better == "higher" else values.min())
    never = float(values[scenario.nothing])
    axes.axhline(never, zorder=4, **DOTTED)
    axes.axhline(best, color=INK, **data.DASHED, zorder=5)
    if best == never:
        place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "ha": "right"}
        axes.annotate("both the same here", (0.98, best), (0, 4), fontsize="x-small", color=MUTED, **place)


def _seed_keys(metrics: Sequence[str], window: int, runs: Sequence[Run]) -> list[Any]:
    """Return the legend of dots and lines; a window longer than all runs is the mean of all episodes so far."""
    longer = window >= max(run.points["step"].max() for run in runs)
    mean = "mean of all episodes so far" if longer else f"running mean of {window} episodes"
    dot: dict[str, Any] = {"marker": ".", "linestyle": "none", "alpha": 0.5, "markersize": 4}
    keys = [key("recorded mean of some episodes", color=MUTED, **dot)]
    keys.append(key(f"{mean}, a line a seed", color=MUTED, linewidth=1.2))
    levels = [key("best sequence", color=INK, **data.DASHED), key("no adaptation", **DOTTED)]
    return keys + (levels if "reward" in metrics else [])


def _policy_keys(tables: StudyTables, looks: Mapping[str, Style]) -> list[Any]:
    """Return a legend entry for each policy, with the policy it starts from if there are at most four entries."""
    handles = policy_handles(looks, looks, lines=True)
    for handle, name in zip(handles, looks, strict=True):
        if name in tables.policies and len(looks) <= 4:
            parent = tables.policies[name].get("policy", {}).get("parent")
            handle.set_label(f"{name} (starts from {parent})" if parent else f"{name} (from scratch)")
    return handles


def _probable(run: Run) -> dict[str, Any]:
    """Return how many seeds of a run finally give the best sequence of their training table a probability above 0.5."""
    points = run.points[run.points["metric"] == "probability_best"].sort_values("step")
    last = points.groupby("policy_seed")["value"].last()
    where = {"policy": run.policy, "scenario": data.in_words(run.scenario)}
    return {**where, "seeds": int((last > 0.5).sum()), "of": len(last)} if len(last) else {}


def _jumpstart(axes: Axes, pair: Sequence[str], shown: Mapping[str, Curve], kind: Metric) -> list[dict[str, Any]]:
    """Draw an arrow from the start of learning from scratch to that of transfer; return the gain in a score."""
    if len(pair) < 2 or not set(pair) <= set(shown):
        return []
    scratch, transfer = (float(seeds_by_place(shown[name].points).iloc[:, 0].mean()) for name in pair)
    low, high = axes.get_ylim()
    if abs(transfer - scratch) > 0.04 * (high - low):
        left, right = axes.get_xlim()
        x = left - 0.02 * (right - left)
        axes.set_xlim(left - 0.07 * (right - left), right)
        arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=(x, transfer), xytext=(x, scratch), arrowprops=arrow)
        look: dict[str, Any] = {"rotation": 90, "ha": "right", "va": "center", "fontsize": "x-small"}
        axes.annotate("jumpstart", (x, (scratch + transfer) / 2), (-3, 0), textcoords="offset points", **look)
    better = (transfer >= scratch) == (kind.better == "higher") or transfer == scratch
    names = {"scratch": pair[0], "transfer": pair[1], "direction": "better" if better else "worse"}
    gain = {**names, "gain": abs(transfer - scratch), "unit": data.unit_of(kind), "quantity": kind.label}
    return [] if kind.name == "objective" else [gain]


def _ends(group: Group, scenario: Shown, metric: str, window: int) -> dict[str, Any]:
    """Return the mean over the last `window` episodes of each run of a group."""
    runs = {
        name: curve_ends(run.values(metric, scenario), window=run.window(window))["last"]
        for name, run in group.runs.items()
    }
    return {"title": group.title, "runs": runs, "unit": data.unit_of(curve_metric(metric, scenario))}
