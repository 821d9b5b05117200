"""Figures of learning: single runs with their running mean, groups of runs, and the jumpstart of transfer."""

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
from schedlab.figures.panels.curves import running_mean, seeds_by_place
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.learning import Curve, curve_ends, curves, seed_curves
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import GroupSettings, LearningSettings, TransferSettings

NOT_LEARNED = "none of these policies is learned at this scale"
DOTTED: dict[str, Any] = {"color": MUTED, "linewidth": 1.4, "linestyle": (0, (1, 1.2))}
CUT = "[Cut where the running means have settled ({settled:g} of {episodes:g} {counted}s).]"
LEARNING = (
    "A point is the mean of {every} {counted_every}. [Seeds whose final policy plays the best sequence of its training "
    f"table with probability above 0.5: {{probable:{{policy}} on {{scenario}} {{seeds}} of {{of}}}}.] {CUT}"
)
TRANSFER = (
    "[{bands}Bands: lowest to highest seed.] "
    "Mean of the last {window} episodes, {ends:{title}: {runs:{name} {value:.3f}[ {unit}]}}. "
    "[Jumpstart: {jumpstarts:{transfer} starts {gain:.3f}[ {unit}] {direction} than {scratch} in {quantity}}.] "
) + CUT


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
        """Return only the first episodes; 0: all."""
        return replace(self, points=self.points[self.points["step"] <= episodes]) if episodes else self

    def window(self, episodes: int) -> int:
        """Return the number of points in a running mean over so many episodes."""
        return max(1, round(episodes / self.every))

    @property
    def counted(self) -> str:
        """What the horizontal axis counts."""
        return "episode" if (self.points["episode"] > 0).any() else "update"


def settling_point(values: np.ndarray) -> int:
    """Return the point from which smoothed curves (..., n) differ from their last value by at most 1 % of the whole
    range.
    """
    away = np.abs(values - values[..., -1:]) > 0.01 * np.ptp(values)
    places = np.flatnonzero(away.any(axis=tuple(range(values.ndim - 1))))
    return int(places[-1]) + 1 if len(places) else 0


def shown_range(runs: Sequence[Stretch], metrics: Sequence[str], window: int) -> tuple[float, dict[str, Any]]:
    """Return the episode up to which runs are shown (1.25 times the last settling), and the values of CUT.

    The objective, which is noise around nothing in the end, counts only where nothing else is shown.
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


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw points and running mean of single runs, with a column for each policy and phase and a row for each curve."""
    settings = settings_of(spec, LearningSettings)
    metrics, window = settings.metrics, settings.window
    runs = [run for policy in spec.policies for run in _stretches(tables, policy)]
    runs = [run for run in runs if not spec.scenarios or run.scenario in spec.scenarios]
    if not runs:
        return nothing_to_draw(NOT_LEARNED)
    looks = data.styles(tables, list(dict.fromkeys(run.policy for run in runs)))
    scenarios = _scenarios(tables, spec, [run.scenario for run in runs])
    until, cut = shown_range(runs, metrics, window)

    def panel(axes: Axes, group: tuple[str, Stretch]) -> None:
        metric, run = group
        scenario = scenarios[run.scenario]
        seed_curves(axes, shown_values(run.begin(until), metric, scenario), looks[run.policy], run.window(window))
        if metric == "reward":
            _reference_lines(axes, scenario)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel(run.counted if metric == metrics[-1] else "")

    titles = dict.fromkeys(metrics, "") | {metrics[0]: "{}\non {}"}
    groups = [
        (titles[metric].format(run.policy, data.in_words(run.scenario)), (metric, run))
        for metric, run in product(metrics, runs)
    ]
    labels = [axis_label(curve_metric(metric, scenarios[runs[0].scenario])) for metric in metrics]
    keys = _learning_keys(metrics, window, max(run.points["step"].max() for run in runs))
    grid = Grid(len(runs), 38, 24, y=labels, subplots={"sharex": "col"})
    figure, _ = facets(groups, panel, grid, keys=keys, columns=2)
    every = sorted({round(run.every) for run in runs})
    facts = {
        "every": listed([str(number) for number in every]),
        "counted_every": "episode" if every == [1] else "episodes",
        "probable": [row for run in runs if (row := _probable(run))],
        **cut,
    }
    missing = left_out(spec, scenarios, "none of its policies learned there")
    return Drawing(figure, LEARNING, facts, left_out=missing)


def _stretches(tables: StudyTables, policy: str) -> list[Stretch]:
    rows = tables.curves[tables.curves["policy"] == policy]
    phases = rows.groupby(["phase", "train_scenario"])
    return [Stretch(policy, int(phase), scenario, points) for (phase, scenario), points in phases]


def _scenarios(tables: StudyTables, spec: FigureSpec, names: Sequence[str]) -> dict[str, Shown]:
    return {scenario.name: scenario for scenario in data.scenarios_of(tables, spec, dict.fromkeys(names))}


def curve_metric(name: str, scenario: Shown) -> Metric:
    """Return the metric of a curve, with its unit; a reward that is a negative loss is shown as the loss."""
    quantity = scenario.quantity
    accuracy = "test accuracy" if scenario.column.startswith("test") else "validation accuracy"
    return {
        "objective": Metric("objective", "", "lower", label="policy-gradient objective"),
        "reward": quantity,
        "accuracy": Metric("accuracy", "fraction", "higher", label=accuracy),
        "probability_best": Metric("probability_best", "", "higher", label="probability of the best sequence"),
        "regret": data.regret_metric(quantity),
    }[name]


def shown_values(run: Stretch, name: str, scenario: Shown) -> pd.DataFrame:
    """Return a curve's rows with the sign of the axis: a rewarded loss is positive."""
    points = run.points[run.points["metric"] == name]
    negative = name == "reward" and scenario.quantity.better == "lower"
    return points.assign(value=-points["value"]) if negative else points


def _reference_lines(axes: Axes, scenario: Shown) -> None:
    """Lines at the best sequence of what is learned on and at doing nothing, above the curves that end on them."""
    values = scenario.values()[list(scenario.problem.rows("train"))].mean(0)
    best = float(values.max() if scenario.quantity.better == "higher" else values.min())
    never = float(values[scenario.nothing])
    axes.axhline(never, zorder=4, **DOTTED)
    axes.axhline(best, color=INK, **data.DASHED, zorder=5)
    if best == never:
        place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "ha": "right"}
        axes.annotate("both the same here", (0.98, best), (0, 4), fontsize="x-small", color=MUTED, **place)


def _learning_keys(metrics: Sequence[str], window: int, longest: float) -> list[Any]:
    """What dots and lines are; a window that no run is as long as takes the mean of all that there was."""
    mean = f"running mean of {window} episodes" if window < longest else "mean of all episodes so far"
    dot: dict[str, Any] = {"marker": ".", "linestyle": "none", "alpha": 0.5, "markersize": 4}
    keys = [key("recorded mean of some episodes", color=MUTED, **dot)]
    keys.append(key(f"{mean}, a line a seed", color=MUTED, linewidth=1.2))
    if "reward" in metrics:
        keys += [key("best sequence", color=INK, **data.DASHED), key("no adaptation", **DOTTED)]
    return keys


def _probable(run: Stretch) -> dict[str, Any]:
    """How many seeds of a run make the best sequence of their training table probable in the end."""
    points = run.points[run.points["metric"] == "probability_best"].sort_values("step")
    last = points.groupby("policy_seed")["value"].last()
    where = {"policy": run.policy, "scenario": data.in_words(run.scenario)}
    return {**where, "seeds": int((last > 0.5).sum()), "of": len(last)} if len(last) else {}


def draw_transfer(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw running means of several runs, with a panel for each group and curve, and an arrow from scratch to
    transfer.
    """
    settings = settings_of(spec, TransferSettings)
    metrics, window = settings.metrics, settings.window
    groups = [group for group in _groups(tables, spec, settings) if group.runs]
    if not groups:
        return nothing_to_draw(NOT_LEARNED)
    looks = data.styles(tables, [name for name in spec.policies if any(name in group.runs for group in groups)])
    scenarios = _scenarios(tables, spec, [group.scenario for group in groups])
    runs = [run for group in groups for run in group.runs.values()]
    until, cut = shown_range(runs, metrics, window)

    def panel(axes: Axes, shown: tuple[Group, str]) -> list[dict[str, Any]]:
        group, metric = shown
        jumps = _group_panel(axes, group, metric, window, looks, scenarios[group.scenario], until)
        if settings.range:
            axes.set_ylim(*settings.range)
        return jumps

    titled = set(metrics if len(groups) > 1 else metrics[:1])
    places = [(each[0].title if each[1] in titled else "", each) for each in product(groups, metrics)]
    keys, columns = _transfer_keys(tables, looks), 3 if len(looks) > 4 else 2
    figure, jumps = facets(places, panel, Grid(3 if len(places) < 4 else 2, 46, 24), keys=keys, columns=columns)
    ends = [_ends(group, scenarios[group.scenario], metrics[0], window) for group in groups]
    bands = max(run.points["policy_seed"].nunique() for run in runs) > 1
    facts = {
        "bands": bands,
        "window": window,
        "ends": ends,
        "jumpstarts": [jump for each in jumps for jump in each],
        **cut,
    }
    missing = left_out(spec, scenarios, "none of its policies learned there")
    return Drawing(figure, TRANSFER, facts, left_out=missing)


def _transfer_keys(tables: StudyTables, looks: Mapping[str, Style]) -> list[Any]:
    """A line a policy, with what it starts from; where there are many their names say it."""
    handles = policy_handles(looks, looks, lines=True)
    for handle, name in zip(handles, looks, strict=True):
        parent = tables.policies.get(name, {}).get("policy", {}).get("parent")
        if name in tables.policies and len(looks) <= 4:
            handle.set_label(f"{name} (starts from {parent})" if parent else f"{name} (from scratch)")
    return handles


@dataclass(frozen=True)
class Group:
    """A panel's runs on one scenario: policy -> its last phase there; jumpstart as in GroupSettings."""

    title: str
    scenario: str
    jumpstart: tuple[str, ...]
    runs: Mapping[str, Stretch]


def _groups(tables: StudyTables, spec: FigureSpec, settings: TransferSettings) -> list[Group]:
    """The groups of a figure with the runs that there are."""
    given = settings.groups or (GroupSettings(scenario=spec.scenarios[0], policies=spec.policies),)
    found = []
    for number, group in enumerate(given):
        runs = {}
        for name in dict.fromkeys([*group.policies, *group.jumpstart]):
            if name not in spec.policies:
                where, remedy = f"figure {spec.name}: params.groups.{number}", did_you_mean(name, spec.policies)
                raise UserError(f"'{name}' is not among the figure's policies", where=where, remedy=remedy)
            of_policy = [run for run in _stretches(tables, name) if run.scenario == group.scenario]
            if of_policy:
                runs[name] = of_policy[-1].begin(settings.first)
        found.append(Group(group.title or data.in_words(group.scenario), group.scenario, group.jumpstart, runs))
    return found


def _group_panel(
    axes: Axes, group: Group, metric: str, window: int, looks: Mapping[str, Style], scenario: Shown, until: float
) -> list[dict[str, Any]]:
    """Draw one group up to an episode; return its jumpstart, if it has one."""
    kind, shown = curve_metric(metric, scenario), {}
    for name, run in group.runs.items():
        shown[name] = Curve(shown_values(run.begin(until), metric, scenario), looks[name], run.window(window))
    curves(axes, shown)
    starts = {name: float(seeds_by_place(curve.points).iloc[:, 0].mean()) for name, curve in shown.items()}
    axes.set(xlabel=next(iter(group.runs.values())).counted, ylabel=axis_label(kind))
    pair = [name for name in group.jumpstart if name in starts]
    if len(pair) < 2:
        return []
    scratch, transfer = (starts[name] for name in pair)
    low, high = axes.get_ylim()
    if abs(transfer - scratch) > 0.04 * (high - low):
        _arrow(axes, scratch, transfer)
    if metric == "objective":
        return []
    better = (transfer >= scratch) == (kind.better == "higher") or transfer == scratch
    names = {"scratch": pair[0], "transfer": pair[1], "direction": "better" if better else "worse"}
    return [{**names, "gain": abs(transfer - scratch), "unit": data.unit_of(kind), "quantity": kind.label}]


def _arrow(axes: Axes, scratch: float, transfer: float) -> None:
    """An arrow left of the curves, from the start value of learning from scratch to that of transfer."""
    left, right = axes.get_xlim()
    x = left - 0.02 * (right - left)
    axes.set_xlim(left - 0.07 * (right - left), right)
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(x, transfer), xytext=(x, scratch), arrowprops=arrow)
    look: dict[str, Any] = {"rotation": 90, "ha": "right", "va": "center", "fontsize": "x-small"}
    axes.annotate("jumpstart", (x, (scratch + transfer) / 2), (-3, 0), textcoords="offset points", **look)


def _ends(group: Group, scenario: Shown, metric: str, window: int) -> dict[str, Any]:
    """The mean over the last `window` episodes of each run of a group."""
    runs = {
        name: curve_ends(shown_values(run, metric, scenario), window=run.window(window))["last"]
        for name, run in group.runs.items()
    }
    return {"title": group.title, "runs": runs, "unit": data.unit_of(curve_metric(metric, scenario))}
