"""Figures of the course of a run: decisions over time, starts of scenarios, widening and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.files import read_table
from schedlab.figures import helpers, theme
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import MovesSettings, TrunkSettings
from schedlab.studies.adaptation.simulator.ranking import reliability

SURE = 0.9  # mean probability of the action taken from which a mark is filled


def draw_decisions(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Time left against action, a panel a policy; area: share of seeds and replicates; filled: it was sure."""
    scenarios, unlike = data.alike(data.scenarios_of(tables, spec), lambda found: found.action_names, "other actions")
    names = data.policies(tables, spec)
    actions = scenarios[0].action_names
    decisions = max(scenario.problem.tree.decisions for scenario in scenarios)
    rows = tables.details["decisions"]
    of_scenarios = rows["scenario"].isin([scenario.name for scenario in scenarios])
    rows = rows[of_scenarios & (rows["split"] == "test") & rows["policy"].isin(names)]
    most = 2 if len(names) > 1 else 1
    figure, lines = theme.new_grid(
        len(names), most, row_mm=14 + 9 * len(actions), around_mm=20, sharey=True, sharex=True
    )
    for axes, name in zip(data.flat(lines), names, strict=True):
        _decision_panel(axes, rows[rows["policy"] == name], decisions)
        axes.set_title(name, fontsize="medium")
    for line in lines:
        line[0].set(ylabel="action taken")
    first = lines[0][0]
    first.set_yticks(range(len(actions)), actions)
    first.set(ylim=(len(actions) - 0.5, -0.5), xlim=(1.06 * rows["time_left"].max(), 0))
    helpers.shared_xlabel(lines[-1], "time left when the decision is taken (s)")
    helpers.legend_outside(figure, _decision_keys(decisions), columns=max(decisions, 3))
    return Drawing(figure, data.caption(spec.caption, _decisions_caption(rows, names, actions)), left_out=unlike)


def _decision_panel(axes: Axes, rows: pd.DataFrame, decisions: int) -> None:
    """A mark a decision, action and time left; each decision has a lane, shape and colour within an action's row."""
    rows = rows.assign(sure=_probability(rows))
    runs = rows.groupby("scenario")[["policy_seed", "unit"]].apply(lambda some: len(some.drop_duplicates()))
    for number in range(decisions):
        some = (
            rows[rows["decision"] == number]
            .groupby(["scenario", "action", "time_left"])["sure"]
            .agg(["size", "mean"])
            .reset_index()
        )
        share = (some["size"] / some["scenario"].map(runs)).to_numpy()
        lane, colour = 0.27 * (number - (decisions - 1) / 2), theme.colour(number)
        faces = np.where(some["mean"] >= SURE, colour, "white")
        look: dict[str, Any] = {
            "marker": theme.LEARNED_MARKERS[number],
            "linewidths": 0.9,
            "facecolors": faces,
            "edgecolors": colour,
        }
        axes.scatter(some["time_left"], some["action"] + lane, s=_area(share), zorder=3, **look)
    for line in range(int(rows.filter(like="probability_").notna().any().sum()) - 1):
        axes.axhline(line + 0.5, color=GRID, linewidth=0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")


def _area(share: Any) -> Any:
    """Area (pt^2) of a mark that stands for a share of the runs."""
    return 6 + 34 * share


def _probability(rows: pd.DataFrame) -> np.ndarray:
    """The probability that each row's policy gave to the action that it took: (rows,)."""
    columns = [name for name in rows.columns if name.startswith("probability_")]
    columns.sort(key=lambda name: int(name.removeprefix("probability_")))
    return rows[columns].to_numpy()[np.arange(len(rows)), rows["action"].to_numpy()]


def _decision_keys(decisions: int) -> list[Any]:
    ordinals = ["first", "second", "third", "fourth", "fifth", "sixth"]
    numbers, sizes = [], []
    for number in range(decisions):
        mark, colour = theme.LEARNED_MARKERS[number], theme.colour(number)
        label = f"{ordinals[number]} decision"
        numbers.append(data.key(marker=mark, color=colour, linestyle="none", markersize=5.5, label=label))
    marks = (
        ("all seeds and replicates", 1.0, MUTED),
        ("a third of them", 1 / 3, MUTED),
        (f"probability below {SURE:g}", 1.0, "white"),
    )
    for label, share, inside in marks:
        look: dict[str, Any] = {"marker": "o", "color": MUTED, "markerfacecolor": inside, "linestyle": "none"}
        sizes.append(data.key(markersize=_area(share) ** 0.5, label=label, **look))
    return [key for pair in zip_longest(numbers, sizes) for key in pair if key]  # a legend fills its columns one by one


def _decisions_caption(rows: pd.DataFrame, names: Sequence[str], actions: Sequence[str]) -> str:
    """For each policy: how often it grows early and late, and how sure it is at least."""
    half = rows["time_left"].max() / 2
    told = []
    for name in names:
        some = rows[rows["policy"] == name]
        grows = some["action"] < len(actions) - 1
        early, late = (float(grows[part].mean()) for part in (some["time_left"] > half, some["time_left"] <= half))
        told.append(f"{name} {early:.0%} and {late:.0%} ({_probability(some).min():.2f})")
    what = f"Decisions that grow, of those with more than {half:g} s left and of the later ones"
    return f"{what} (in brackets the smallest probability of an action taken): {'; '.join(told)}."


def draw_trunk(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Results against pinned time: the trunk, when each scenario starts, and what its sequences lead to.

    The curve of the trunk needs the input `trunk` of a scenario; without it, starts and ends alone are drawn. It begins
    with the last
    epoch before the first start: what was before would squeeze all that follows.
    """
    scenarios, unlike = data.alike(
        data.scenarios_of(tables, spec), lambda found: tables.inputs[found.name].get("trunk"), "another trunk"
    )
    columns = helpers.settings_of(spec, TrunkSettings).columns or (scenarios[0].column,)
    trunk = _trunk(tables, scenarios)
    beside = 2 if len(scenarios) < 8 else 1
    figure, lines = theme.new_grid(len(columns), beside, row_mm=62, around_mm=16)
    for axes, column in zip(data.flat(lines), columns, strict=True):
        if trunk is not None:
            for _, job in trunk.groupby("job"):
                look: dict[str, Any] = {"color": INK, "linewidth": 1.0, "marker": ".", "markersize": 2.5, "zorder": 3}
                axes.plot(job["ends"].to_numpy(), job[column].to_numpy(), **look)
        _starts(axes, scenarios, column)
        axes.set(
            xlabel="pinned time since the start of training (s)", ylabel=helpers.axis_label(data.QUANTITIES[column])
        )
    helpers.legend_outside(figure, _trunk_keys(trunk is not None), columns=2)
    return Drawing(figure, data.caption(spec.caption, _trunk_caption(scenarios, columns[0], trunk)), left_out=unlike)


def _trunk(tables: StudyTables, scenarios: Sequence[Shown]) -> pd.DataFrame | None:
    """The epochs of the trunk from the last one before the first start, with the second at which each `ends`."""
    paths = [tables.inputs[scenario.name]["trunk"] for scenario in scenarios if "trunk" in tables.inputs[scenario.name]]
    if not paths:
        return None
    trunk = read_table(paths[0])
    trunk = trunk.assign(
        ends=trunk["time_left"].max() - trunk["time_left"] + trunk["train_seconds"] + trunk["eval_seconds"]
    )
    before = trunk["ends"][trunk["ends"] <= min(scenario.start for scenario in scenarios)]
    return trunk[trunk["ends"] >= before.max()] if len(before) else trunk


def _starts(axes: Axes, scenarios: Sequence[Shown], column: str) -> None:
    """At each start: the range of the sequences' ends and the best one; at the end: the result without growth."""
    values = np.stack([scenario.mean(column) for scenario in scenarios])
    ends = np.concatenate([scenario.values(column)[:, scenario.nothing] for scenario in scenarios])
    begin, end = min(scenario.start for scenario in scenarios), max(scenario.budget for scenario in scenarios)
    crowded = bool((np.diff([scenario.start for scenario in scenarios]) < 0.1 * (end - begin)).any())
    axes.axhline(ends.mean(), color=MUTED, **data.DASHED, zorder=1)
    reach = [[ends.mean() - ends.min()], [ends.max() - ends.mean()]]
    look: dict[str, Any] = {"color": MUTED, "fmt": "D", "markersize": 3.5, "linewidth": 0.9, "capsize": 2, "zorder": 4}
    axes.errorbar([1.02 * end], [ends.mean()], reach, **look)
    for scenario, results in zip(scenarios, values, strict=True):
        axes.axvline(scenario.start, color=GRID, linewidth=0.7, zorder=0)
        axes.plot([scenario.start] * 2, [results.min(), results.max()], zorder=2, color=theme.colour(0), **_BAR)
        axes.plot([scenario.start], [results[scenario.best]], color=theme.colour(0), zorder=4, **_STAR)
        name = scenario.label if crowded else scenario.label.replace(" ", "\n")
        place: dict[str, Any] = {"ha": "center", "va": "bottom", "transform": axes.get_xaxis_transform()}
        axes.text(scenario.start, 1.01, name, fontsize="x-small", rotation=90 if crowded else 0, **place)
    axes.set_xlim(begin - 0.06 * (end - begin), end + 0.06 * (end - begin))


_STAR: dict[str, Any] = {"marker": "*", "linestyle": "none", "markersize": 7, **data.EDGE}
_BAR: dict[str, Any] = {"linewidth": 4, "alpha": 0.35, "solid_capstyle": "butt"}
_NEVER_ENDS = "end without growth: mean of all replicates and their range"


def _trunk_keys(with_trunk: bool) -> list[Any]:
    keys = [data.key(color=INK, linewidth=1.0, marker=".", markersize=3, label="no growth, epoch by epoch")]
    keys = keys if with_trunk else []
    keys.append(data.key(color=MUTED, marker="D", markersize=3.5, label=_NEVER_ENDS, **data.DASHED))
    keys.append(data.key(color=theme.colour(0), label="ends of all sequences that start here", **_BAR))
    keys.append(data.key(color=theme.colour(0), label="best of them by what is rewarded", **_STAR))
    return keys


def _trunk_caption(scenarios: Sequence[Shown], column: str, trunk: pd.DataFrame | None) -> str:
    quantity = data.QUANTITIES[column]
    sign = 1 if quantity.better == "higher" else -1
    gains = []
    for scenario in scenarios:
        gain = sign * float(scenario.mean(column)[scenario.best] - scenario.mean(column)[scenario.nothing])
        gains.append(f"{data.amount(gain, quantity.unit)} from {scenario.start:g} s")
    told = ", ".join(gains)
    gained = f"The best sequence gains over doing nothing, in {quantity.label}: {told}."
    if trunk is None:
        return gained
    window = scenarios[0].window
    last = "the last epoch" if window == 1 else f"the last {window} epochs"
    return (
        f"{gained} The curve begins with the last epoch before growth is possible ({trunk['ends'].min():g} s) and "
        "shows single epochs of the first replicate of each job; an end, and so the dashed line, is a mean over "
        f"{last} and all replicates, so the curve need not end on it."
    )


def draw_moves(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Left: two moves that may widen as well as deepen. Right: sequences with resources kept and taken away.

    `kept` starts like `down`, without the way back; nothing is done at decisions that `down` has not.
    """
    settings = helpers.settings_of(spec, MovesSettings)
    widen, down, kept = data.scenarios_of(tables, spec, (settings.widen, settings.down, settings.kept))
    if widen.problem.tree.decisions != 2:
        where = f"figure {spec.name}: params.widen"
        what = f"{widen.name} has {widen.problem.tree.decisions} decisions"
        raise UserError(what, where=where, expected="a scenario with two")
    quantity = data.one_quantity([widen, down, kept], spec)
    figure, panels = theme.new_figure(1, 2, height_mm=86, width_ratios=[1.05, 1])
    actions = widen.action_names
    square = widen.mean().reshape(len(actions), len(actions))
    colours = data.HIGH_IS_GOOD if quantity.better == "higher" else data.LOW_IS_GOOD
    helpers.heat_map(
        panels[0],
        pd.DataFrame(square, actions, actions),
        form="{:.3f}",
        label=helpers.axis_label(quantity),
        colours=colours,
    )
    panels[0].set(
        title=f"{widen.label}: means of {widen.replicates} replicates", xlabel="second move", ylabel="first move"
    )
    panels[0].tick_params(axis="x", rotation=30)
    _dumbbells(panels[1], down, kept)
    panels[1].set(
        title=f"{down.label}: taken away at {down.problem.setup.downs[0]:g} s", xlabel=helpers.axis_label(quantity)
    )
    helpers.legend_outside(figure, _moves_keys(), columns=3)
    return Drawing(figure, f"{spec.caption} {_moves_caption(widen, down, kept)}")


def _both(down: Shown, kept: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Results of each sequence of `down` with resources kept and taken away, on common units (units, sequences).

    Nothing is done at the further decisions of `kept`.
    """
    tree, units = kept.problem.tree, down.problem.view.units
    rest = tree.nothing[down.problem.tree.decisions :]
    columns = [tree.index(sequence + rest) for sequence in down.sequences]
    rows = [row for row, unit in enumerate(kept.problem.view.units) if unit in units]
    own = [units.index(kept.problem.view.units[row]) for row in rows]
    return kept.values()[np.ix_(rows, columns)], down.values()[own]


def _dumbbells(axes: Axes, down: Shown, kept: Shown) -> None:
    """A row a sequence: its mean with resources kept and taken away, each with the range of its replicates."""
    stay, back = _both(down, kept)
    sides = ((stay, theme.colour(0), "o", -0.14), (back, theme.colour(3), "D", 0.14))
    for values, colour, marker, shift in sides:
        for row, results in enumerate(values.T):
            axes.plot([results.min(), results.max()], [row + shift] * 2, color=colour, linewidth=0.6, zorder=2)
            look: dict[str, Any] = {"color": colour, "markersize": 4, "zorder": 3}
            axes.plot([results.mean()], [row + shift], marker, **look, **data.EDGE)
        axes.axvline(values.mean(0)[down.nothing], color=colour, **data.DASHED, zorder=1)
    axes.set_yticks(range(len(down.sequences)), [", ".join(down.moves(name)) for name in down.sequences])
    axes.set_ylim(len(down.sequences) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")


def _moves_keys() -> list[Any]:
    looks = (("o", theme.colour(0), "resources stay"), ("D", theme.colour(3), "resources are taken away"))
    keys = [
        data.key(marker=marker, color=colour, linewidth=0.6, markersize=4, label=f"{label} (line: replicates)")
        for marker, colour, label in looks
    ]
    return [*keys, data.key(color=MUTED, **data.DASHED, label="no growth, in either case")]


def _moves_caption(widen: Shown, down: Shown, kept: Shown) -> str:
    unit, values = widen.quantity.unit, widen.mean()
    sign = 1 if widen.quantity.better == "higher" else -1
    deep = [
        place for place, name in enumerate(widen.sequences) if not any("widen" in move for move in widen.moves(name))
    ]
    deepest = max(deep, key=lambda place: sign * values[place])
    best, only, none = (data.amount(values[place], unit) for place in (widen.best, deepest, widen.nothing))
    moves = ", then ".join(widen.moves(widen.sequences[widen.best]))
    told = f"Left, best: {moves} ({best}; {only} by deepening alone, {none} without growth"
    if widen.replicates > 1:
        noise = reliability(widen.values()).sd_residual / widen.replicates**0.5
        told += f"; standard deviation of a mean {data.amount(noise, unit)}"
        if sign * (values[widen.best] - values[widen.nothing]) < 2 * noise:
            told += ", so growth is not shown to help"
    stay, back = (results.mean(0) for results in _both(down, kept))
    helped = [int((sign * results > sign * results[down.nothing]).sum()) for results in (stay, back)]
    without = " and ".join(data.amount(results[down.nothing], unit) for results in (stay, back))
    return (
        f"{told}). Right: of {len(back) - 1} sequences that grow, {helped[0]} end better than no growth where the "
        f"resources stay, {helped[1]} where they are taken away. Each is held against no growth in the same case "
        f"(dashed: {without}), which is not the same number twice, since the way back gives soft targets to a network "
        "that has not grown as well: its own."
    )
