"""Figures of the course of a run: decisions over time, the starts of scenarios, widening and shrinking back."""

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
from schedlab.figures import theme
from schedlab.figures.drawing import settings_of
from schedlab.figures.panels.axes import axis_label, key, legend_outside, name_rows
from schedlab.figures.panels.cells import heat_map
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import ColumnsSettings, MovesSettings
from schedlab.studies.adaptation.simulator.ranking import reliability
from schedlab.studies.adaptation.simulator.table import DIGITS

SURE = 0.9  # a mark is filled if its action has at least this mean probability
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
DECISIONS = (
    "Share of decisions that grow, with more than {half:g} s left and with less (in brackets, the smallest probability "
    "of an action that was taken): {policies:{name} {early:.0%} and {late:.0%} ({sure:.2f})}."
)
TRUNK = (
    "Gain of the best sequence over doing nothing, in {quantity}: {gains:{gain:.3f}[ {unit}] from {start:g} s}. "
    "[The curve begins with the last epoch before growth is possible ({begins:g} s) and shows single epochs of the "
    "first replicate of each job. The bars and the dashed line are means over the last {window:epoch|epochs} and all "
    "replicates, so the curve need not end on the line.]"
)
MOVES = (
    "Left: the best is {moves} ({best:.3f}[ {unit}]; {deepest:.3f}[ {unit}] by deepening alone, {none:.3f}[ {unit}] "
    "without growth[; standard deviation of a mean {noise:.3f}[ {unit}]][{unclear}, so growth is not shown to help]). "
    "Right: of {growing} sequences that grow, {stay} end better than no growth if the resources stay, {back} if they "
    "are taken away. Each is compared with no growth in the same case (dashed: {stay_none:.3f}[ {unit}] and "
    "{back_none:.3f}[ {unit}]). The two values differ because taking resources away gives a network soft targets even "
    "if it has not grown."
)
STAR: dict[str, Any] = {"marker": "*", "linestyle": "none", "markersize": 7, **data.EDGE}
BAR: dict[str, Any] = {"linewidth": 4, "alpha": 0.35, "solid_capstyle": "butt"}


def draw_decisions(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw time left against action, with a panel for each policy.

    The area of a mark is its share of seeds and replicates; a mark is filled if the policy was certain.
    """
    scenarios, unlike = data.alike(data.scenarios_of(tables, spec), lambda found: found.action_names, "other actions")
    names, actions = data.policies(tables, spec), scenarios[0].action_names
    decisions = max(scenario.problem.tree.decisions for scenario in scenarios)
    shown = [scenario.name for scenario in scenarios]
    rows = select(tables.details["decisions"], scenario=shown, split="test", policy=names)
    chances = rows.filter(like="probability_")
    taken = chances.columns.get_indexer([f"probability_{action}" for action in rows["action"]])
    rows = rows.assign(sure=chances.to_numpy()[np.arange(len(rows)), taken])
    longest, found = float(rows["time_left"].max()), {}

    def panel(axes: Axes, name: str) -> None:
        some = select(rows, policy=name)
        _decision_panel(axes, some, decisions, actions)
        axes.set_xlim(1.06 * longest, 0)
        grows, early = some["action"] < len(actions) - 1, some["time_left"] > longest / 2
        found[name] = {"early": grows[early].mean(), "late": grows[~early].mean(), "sure": some["sure"].min()}

    x, y, subplots = "time left when the decision is taken (s)", "action taken", {"sharey": True, "sharex": True}
    grid = Grid(2, 14 + 9 * len(actions), 20, x, y, lines="x", subplots=subplots)
    keys = _decision_keys(decisions)
    figure, _ = facets([(name, name) for name in names], panel, grid, keys=keys, columns=max(decisions, 3))
    return Drawing(figure, DECISIONS, {"half": longest / 2, "policies": found}, left_out=unlike)


def _decision_panel(axes: Axes, rows: pd.DataFrame, decisions: int, actions: Sequence[str]) -> None:
    """Draw a mark for each decision, action and time left; a decision has a lane, shape and colour in each row."""
    runs = rows.groupby("scenario")[["policy_seed", "unit"]].apply(lambda some: len(some.drop_duplicates()))
    for number in range(decisions):
        some = rows[rows["decision"] == number].groupby(["scenario", "action", "time_left"])["sure"]
        marks = some.agg(["size", "mean"]).reset_index()
        share = (marks["size"] / marks["scenario"].map(runs)).to_numpy()
        lane, colour = 0.27 * (number - (decisions - 1) / 2), theme.colour(number)
        look: dict[str, Any] = {"marker": theme.LEARNED_MARKERS[number], "linewidths": 0.9, "edgecolors": colour}
        faces = np.where(marks["mean"] >= SURE, colour, "white")
        axes.scatter(marks["time_left"], marks["action"] + lane, s=_area(share), facecolors=faces, zorder=3, **look)
    for line in range(len(actions) - 1):
        axes.axhline(line + 0.5, color=GRID, linewidth=0.5)
    name_rows(axes, actions)


def _area(share: Any) -> Any:
    """Return the area (pt^2) of a mark for a share of the runs."""
    return 6 + 34 * share


def _decision_keys(decisions: int) -> list[Any]:
    numbers, sizes = [], []
    for number in range(decisions):
        look: dict[str, Any] = {"marker": theme.LEARNED_MARKERS[number], "color": theme.colour(number)}
        numbers.append(key(f"{ORDINALS[number]} decision", linestyle="none", markersize=5.5, **look))
    unsure = f"probability below {SURE:g}"
    for label, share in (("all seeds and replicates", 1.0), ("a third of them", 1 / 3), (unsure, 1.0)):
        look = {"marker": "o", "color": MUTED, "markerfacecolor": "white" if label == unsure else MUTED}
        sizes.append(key(label, linestyle="none", markersize=_area(share) ** 0.5, **look))
    return [entry for pair in zip_longest(numbers, sizes) for entry in pair if entry]  # legends fill columns


def draw_trunk(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw results against pinned time: the trunk, the start of each scenario, and the results of the scenario's
    sequences.

    The curve of the trunk needs the input `trunk` of a scenario; without it, only starts and ends are drawn. The curve
    begins with the last epoch before the first start, because earlier epochs would compress the rest of the figure.
    """
    scenarios, unlike = data.alike(
        data.scenarios_of(tables, spec), lambda found: tables.inputs[found.name].get("trunk"), "another trunk"
    )
    columns = settings_of(spec, ColumnsSettings).columns or (scenarios[0].column,)
    trunk = _trunk(tables, scenarios)

    def panel(axes: Axes, column: str) -> None:
        for _, job in trunk.groupby("job") if trunk is not None else ():
            look: dict[str, Any] = {"color": INK, "linewidth": 1.0, "marker": ".", "markersize": 2.5, "zorder": 3}
            axes.plot(job["ends"].to_numpy(), job[column].to_numpy(), label="no growth, epoch by epoch", **look)
        _starts(axes, scenarios, column)
        axes.set_ylabel(axis_label(data.QUANTITIES[column]))

    grid = Grid(2 if len(scenarios) < 8 else 1, 62, 16, "pinned time since the start of training (s)", each=True)
    figure, _ = facets([("", column) for column in columns], panel, grid, columns=2)
    quantity = data.QUANTITIES[columns[0]]
    gains = [(found.better(columns[0]), found) for found in scenarios]
    facts = {
        "quantity": quantity.label,
        "gains": [{"gain": float(own[it.best] - own[it.nothing]), "start": it.start} for own, it in gains],
        "unit": data.unit_of(quantity),
        "begins": None if trunk is None else float(trunk["ends"].min()),
        "window": scenarios[0].window,
    }
    return Drawing(figure, TRUNK, facts, left_out=unlike)


def _trunk(tables: StudyTables, scenarios: Sequence[Shown]) -> pd.DataFrame | None:
    """Return the epochs of the trunk from the last one before the first start; `ends`: the second at which one ends."""
    paths = [tables.inputs[scenario.name]["trunk"] for scenario in scenarios if "trunk" in tables.inputs[scenario.name]]
    if not paths:
        return None
    trunk = read_table(paths[0])
    ends = trunk["time_left"].max() - trunk["time_left"] + trunk["train_seconds"] + trunk["eval_seconds"]
    before = ends[ends <= min(scenario.start for scenario in scenarios)]
    return trunk.assign(ends=ends)[ends >= (before.max() if len(before) else -np.inf)]


def _starts(axes: Axes, scenarios: Sequence[Shown], column: str) -> None:
    """Draw at each start the range of the sequences' results and the best one, at the end the result without growth."""
    values = np.stack([scenario.mean(column) for scenario in scenarios])
    ends = np.concatenate([scenario.values(column)[:, scenario.nothing] for scenario in scenarios])
    begin, end = min(scenario.start for scenario in scenarios), max(scenario.budget for scenario in scenarios)
    crowded = bool((np.diff([scenario.start for scenario in scenarios]) < 0.1 * (end - begin)).any())
    axes.axhline(ends.mean(), color=MUTED, **data.DASHED, zorder=1)
    reach = [[ends.mean() - ends.min()], [ends.max() - ends.mean()]]
    look: dict[str, Any] = {"color": MUTED, "fmt": "D", "markersize": 3.5, "linewidth": 0.9, "capsize": 2, "zorder": 4}
    label = "end without growth: mean of all replicates and their range"
    axes.errorbar([1.02 * end], [ends.mean()], reach, label=label, **look)
    for scenario, results in zip(scenarios, values, strict=True):
        axes.axvline(scenario.start, color=GRID, linewidth=0.7, zorder=0)
        at, look = [scenario.start], {"color": theme.colour(0)}
        every = "ends of all sequences that start here"
        axes.plot(at * 2, [results.min(), results.max()], zorder=2, label=every, **look, **BAR)
        axes.plot(at, [results[scenario.best]], zorder=4, label="best of them by what is rewarded", **look, **STAR)
        name = scenario.label if crowded else scenario.label.replace(" ", "\n")
        place: dict[str, Any] = {"ha": "center", "va": "bottom", "transform": axes.get_xaxis_transform()}
        axes.text(scenario.start, 1.01, name, fontsize="x-small", rotation=90 if crowded else 0, **place)
    axes.set_xlim(begin - 0.06 * (end - begin), end + 0.06 * (end - begin))


def draw_moves(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw two moves that may widen or deepen (left), and sequences if resources stay or are taken away (right).

    The scenario `stay` starts like `down` and keeps its resources. At its decisions that `down` does not have, nothing
    is done. Raises UserError for scenarios that do not fit the figure.
    """
    settings = settings_of(spec, MovesSettings)
    widen, down, stay = data.scenarios_of(tables, spec, (settings.widen, settings.down, settings.stay))
    if widen.problem.tree.decisions != 2:
        what = f"{widen.name} has {widen.problem.tree.decisions} decisions"
        raise UserError(what, where=f"figure {spec.name}: params.widen", expected="a scenario with two")
    if len({scenario.quantity for scenario in (widen, down, stay)}) > 1:
        what = "its scenarios are rewarded by different quantities"
        raise UserError(what, where=f"figure {spec.name}: params", expected="scenarios with one reward")
    quantity = widen.quantity
    figure, (left, right) = theme.new_figure(1, 2, height_mm=86, width_ratios=[1.05, 1])
    actions, label = widen.action_names, axis_label(quantity)
    square = pd.DataFrame(widen.mean().reshape(len(actions), len(actions)), actions, actions)
    colours = data.HIGH_IS_GOOD if quantity.better == "higher" else data.LOW_IS_GOOD
    heat_map(left, square, form="{:.3f}", label=label, colours=colours)
    left.set(title=f"{widen.label}: means of {widen.replicates} replicates", xlabel="second move", ylabel="first move")
    left.tick_params(axis="x", rotation=30)
    stayed, back = _both(down, stay)
    _dumbbells(right, stayed, down.nothing, -0.14, "resources stay", theme.colour(0), "o")
    _dumbbells(right, back, down.nothing, 0.14, "resources are taken away", theme.colour(3), "D")
    name_rows(right, [", ".join(_moves(down, name)) for name in down.sequences], below=0.6, above=0.6)
    right.grid(True, axis="x")
    right.set(title=f"{down.label}: taken away at {down.problem.setup.downs[0]:g} s", xlabel=label)
    dashed = key("no growth, in either case", color=MUTED, **data.DASHED)
    legend_outside(figure, [*right.get_legend_handles_labels()[0], dashed], columns=3)
    facts = {**_widening(widen), **_way_back(stayed.mean(0), back.mean(0), down)}
    return Drawing(figure, MOVES, facts)


def _moves(scenario: Shown, sequence: str) -> list[str]:
    return [scenario.action_names[DIGITS.index(digit)] for digit in sequence]


def _both(down: Shown, stay: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of each sequence of `down`, if resources stay and if not: two arrays (units, sequences).

    Nothing is done at the further decisions of `stay`.
    """
    tree, units = stay.problem.tree, down.problem.view.units
    rest = tree.nothing[down.problem.tree.decisions :]
    columns = [tree.index(sequence + rest) for sequence in down.sequences]
    rows = [row for row, unit in enumerate(stay.problem.view.units) if unit in units]
    own = [units.index(stay.problem.view.units[row]) for row in rows]
    return stay.values()[np.ix_(rows, columns)], down.values()[own]


def _dumbbells(
    axes: Axes, values: np.ndarray, nothing: int, shift: float, label: str, colour: str, marker: str
) -> None:
    """Draw a row for each sequence: mean and range of its replicates; dashed: no growth. values: (units, sequences)."""
    look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4, "linestyle": "none", "zorder": 3}
    for row, results in enumerate(values.T):
        axes.plot([results.min(), results.max()], [row + shift] * 2, color=colour, linewidth=0.6, zorder=2)
        axes.plot([results.mean()], [row + shift], label=f"{label} (line: replicates)", **look, **data.EDGE)
    axes.axvline(values.mean(0)[nothing], color=colour, **data.DASHED, zorder=1)


def _widening(widen: Shown) -> dict[str, Any]:
    """Return the results of the best moves, the best that only deepen, and no growth, with the noise of a mean."""
    values, better = widen.mean(), widen.better()
    moves = {place: _moves(widen, name) for place, name in enumerate(widen.sequences)}
    deep = [place for place, names in moves.items() if not any("widen" in name for name in names)]
    noise = reliability(widen.values()).sd_residual / widen.replicates**0.5 if widen.replicates > 1 else None
    return {
        "moves": ", then ".join(moves[widen.best]),
        "best": float(values[widen.best]),
        "deepest": float(values[max(deep, key=lambda place: better[place])]),
        "none": float(values[widen.nothing]),
        "noise": noise,
        "unclear": noise is not None and bool(better[widen.best] - better[widen.nothing] < 2 * noise),
        "unit": data.unit_of(widen.quantity),
    }


def _way_back(stay: np.ndarray, back: np.ndarray, down: Shown) -> dict[str, Any]:
    """Return how many sequences end better than no growth in either case; stay, back: means of the sequences."""
    sign, none = 1 if down.quantity.better == "higher" else -1, down.nothing
    helped = [int((sign * results > sign * results[none]).sum()) for results in (stay, back)]
    counts = {"growing": len(back) - 1, "stay": helped[0], "back": helped[1]}
    return {**counts, "stay_none": float(stay[none]), "back_none": float(back[none])}
