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
from schedlab.figures.panels.axes import axis_label, key, legend_outside, name_rows, shared_xlabel
from schedlab.figures.panels.cells import heat_map
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import MovesSettings, TrunkSettings
from schedlab.studies.adaptation.simulator.ranking import reliability

SURE = 0.9  # mean probability of the action taken from which a mark is filled
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


def draw_decisions(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw time left against action, with a panel for each policy. Area: share of seeds and replicates; filled: the
    policy was certain.
    """
    scenarios, unlike = data.alike(data.scenarios_of(tables, spec), lambda found: found.action_names, "other actions")
    names, actions = data.policies(tables, spec), scenarios[0].action_names
    decisions = max(scenario.problem.tree.decisions for scenario in scenarios)
    rows = tables.details["decisions"]
    of_scenarios = rows["scenario"].isin([scenario.name for scenario in scenarios])
    rows = rows[of_scenarios & (rows["split"] == "test") & rows["policy"].isin(names)]
    rows = rows.assign(sure=_probability(rows))
    row_mm, most = 14 + 9 * len(actions), 2 if len(names) > 1 else 1
    figure, panels, lines = theme.new_panels(len(names), most, row_mm=row_mm, around_mm=20, sharey=True, sharex=True)
    for axes, name in zip(panels, names, strict=True):
        _decision_panel(axes, rows[rows["policy"] == name], decisions, len(actions))
        axes.set_title(name, fontsize="medium")
    for line in lines:
        line[0].set(ylabel="action taken")
    name_rows(panels[0], actions)
    panels[0].set_xlim(1.06 * rows["time_left"].max(), 0)
    shared_xlabel(lines[-1], "time left when the decision is taken (s)")
    legend_outside(figure, _decision_keys(decisions), columns=max(decisions, 3))
    half, found = rows["time_left"].max() / 2, {}
    for name in names:
        some = rows[rows["policy"] == name]
        grows, early = some["action"] < len(actions) - 1, some["time_left"] > half
        found[name] = {"early": grows[early].mean(), "late": grows[~early].mean(), "sure": some["sure"].min()}
    return Drawing(figure, DECISIONS, {"half": half, "policies": found}, left_out=unlike)


def _decision_panel(axes: Axes, rows: pd.DataFrame, decisions: int, actions: int) -> None:
    """A mark a decision, action and time left; each decision has a lane, shape and colour within an action's row."""
    runs = rows.groupby("scenario")[["policy_seed", "unit"]].apply(lambda some: len(some.drop_duplicates()))
    for number in range(decisions):
        some = rows[rows["decision"] == number].groupby(["scenario", "action", "time_left"])["sure"]
        marks = some.agg(["size", "mean"]).reset_index()
        share = (marks["size"] / marks["scenario"].map(runs)).to_numpy()
        lane, colour = 0.27 * (number - (decisions - 1) / 2), theme.colour(number)
        look: dict[str, Any] = {"marker": theme.LEARNED_MARKERS[number], "linewidths": 0.9, "edgecolors": colour}
        faces = np.where(marks["mean"] >= SURE, colour, "white")
        axes.scatter(marks["time_left"], marks["action"] + lane, s=_area(share), facecolors=faces, zorder=3, **look)
    for line in range(actions - 1):
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
    numbers, sizes = [], []
    for number in range(decisions):
        look: dict[str, Any] = {"marker": theme.LEARNED_MARKERS[number], "color": theme.colour(number)}
        numbers.append(key(f"{ORDINALS[number]} decision", linestyle="none", markersize=5.5, **look))
    unsure = f"probability below {SURE:g}"
    for label, share in (("all seeds and replicates", 1.0), ("a third of them", 1 / 3), (unsure, 1.0)):
        look = {"marker": "o", "color": MUTED, "markerfacecolor": "white" if label == unsure else MUTED}
        sizes.append(key(label, linestyle="none", markersize=_area(share) ** 0.5, **look))
    return [entry for pair in zip_longest(numbers, sizes) for entry in pair if entry]  # a legend fills its columns


def draw_trunk(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw results against pinned time: the trunk, the start of each scenario, and the results of the scenario's
    sequences.

    The curve of the trunk needs the input `trunk` of a scenario; without it, starts and ends alone are drawn. It begins
    with the last epoch before the first start: what was before would squeeze all that follows.
    """
    scenarios, unlike = data.alike(
        data.scenarios_of(tables, spec), lambda found: tables.inputs[found.name].get("trunk"), "another trunk"
    )
    columns = settings_of(spec, TrunkSettings).columns or (scenarios[0].column,)
    trunk = _trunk(tables, scenarios)
    across = 2 if len(scenarios) < 8 else 1
    figure, panels, _ = theme.new_panels(len(columns), across, row_mm=62, around_mm=16)
    curve: dict[str, Any] = {"color": INK, "linewidth": 1.0, "marker": "."}
    for axes, column in zip(panels, columns, strict=True):
        for _, job in trunk.groupby("job") if trunk is not None else ():
            axes.plot(job["ends"].to_numpy(), job[column].to_numpy(), markersize=2.5, zorder=3, **curve)
        _starts(axes, scenarios, column)
        axes.set(xlabel="pinned time since the start of training (s)", ylabel=axis_label(data.QUANTITIES[column]))
    keys = [] if trunk is None else [key("no growth, epoch by epoch", markersize=3, **curve)]
    keys.append(key(_NEVER_ENDS, color=MUTED, marker="D", markersize=3.5, **data.DASHED))
    keys.append(key("ends of all sequences that start here", color=theme.colour(0), **_BAR))
    keys.append(key("best of them by what is rewarded", color=theme.colour(0), **_STAR))
    legend_outside(figure, keys, columns=2)
    quantity = data.QUANTITIES[columns[0]]
    facts = {
        "quantity": quantity.label,
        "gains": [{"gain": _gain(found, columns[0]), "start": found.start} for found in scenarios],
        "unit": data.unit_of(quantity),
        "begins": None if trunk is None else float(trunk["ends"].min()),
        "window": scenarios[0].window,
    }
    return Drawing(figure, TRUNK, facts, left_out=unlike)


def _gain(scenario: Shown, column: str) -> float:
    """What the best sequence gains over doing nothing in a column, in its direction."""
    values, sign = scenario.mean(column), 1 if data.QUANTITIES[column].better == "higher" else -1
    return sign * float(values[scenario.best] - values[scenario.nothing])


def _trunk(tables: StudyTables, scenarios: Sequence[Shown]) -> pd.DataFrame | None:
    """The epochs of the trunk from the last one before the first start, with the second at which each `ends`."""
    paths = [tables.inputs[scenario.name]["trunk"] for scenario in scenarios if "trunk" in tables.inputs[scenario.name]]
    if not paths:
        return None
    trunk = read_table(paths[0])
    ends = trunk["time_left"].max() - trunk["time_left"] + trunk["train_seconds"] + trunk["eval_seconds"]
    before = ends[ends <= min(scenario.start for scenario in scenarios)]
    return trunk.assign(ends=ends)[ends >= (before.max() if len(before) else -np.inf)]


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


def draw_moves(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Left: two moves that may widen as well as deepen. Right: sequences where resources stay and are taken away.

    `stay` starts like `down`, without the way back; nothing is done at decisions that `down` has not.
    """
    settings = settings_of(spec, MovesSettings)
    widen, down, stay = data.scenarios_of(tables, spec, (settings.widen, settings.down, settings.stay))
    if widen.problem.tree.decisions != 2:
        where = f"figure {spec.name}: params.widen"
        what = f"{widen.name} has {widen.problem.tree.decisions} decisions"
        raise UserError(what, where=where, expected="a scenario with two")
    quantity = data.one_quantity([widen, down, stay], spec)
    figure, (left, right) = theme.new_figure(1, 2, height_mm=86, width_ratios=[1.05, 1])
    actions, label = widen.action_names, axis_label(quantity)
    square = pd.DataFrame(widen.mean().reshape(len(actions), len(actions)), actions, actions)
    colours = data.HIGH_IS_GOOD if quantity.better == "higher" else data.LOW_IS_GOOD
    heat_map(left, square, form="{:.3f}", label=label, colours=colours)
    left.set(title=f"{widen.label}: means of {widen.replicates} replicates", xlabel="second move", ylabel="first move")
    left.tick_params(axis="x", rotation=30)
    stayed, back = _both(down, stay)
    sides = (
        (stayed, "resources stay", theme.colour(0), "o", -0.14),
        (back, "resources are taken away", theme.colour(3), "D", 0.14),
    )
    keys = []
    for values, name, colour, marker, shift in sides:
        _dumbbells(right, values, shift, colour, marker)
        right.axvline(values.mean(0)[down.nothing], color=colour, **data.DASHED, zorder=1)
        look: dict[str, Any] = {"marker": marker, "color": colour, "linewidth": 0.6, "markersize": 4}
        keys.append(key(f"{name} (line: replicates)", **look))
    name_rows(right, [", ".join(down.moves(name)) for name in down.sequences], below=0.6, above=0.6)
    right.grid(True, axis="x")
    right.set(title=f"{down.label}: taken away at {down.problem.setup.downs[0]:g} s", xlabel=label)
    legend_outside(figure, [*keys, key("no growth, in either case", color=MUTED, **data.DASHED)], columns=3)
    facts = {**_widening(widen), **_way_back(stayed.mean(0), back.mean(0), down)}
    return Drawing(figure, MOVES, facts)


def _both(down: Shown, stay: Shown) -> tuple[np.ndarray, np.ndarray]:
    """Results of each sequence of `down` where the resources stay and are taken away: two of (units, sequences).

    Nothing is done at the further decisions of `stay`.
    """
    tree, units = stay.problem.tree, down.problem.view.units
    rest = tree.nothing[down.problem.tree.decisions :]
    columns = [tree.index(sequence + rest) for sequence in down.sequences]
    rows = [row for row, unit in enumerate(stay.problem.view.units) if unit in units]
    own = [units.index(stay.problem.view.units[row]) for row in rows]
    return stay.values()[np.ix_(rows, columns)], down.values()[own]


def _dumbbells(axes: Axes, values: np.ndarray, shift: float, colour: str, marker: str) -> None:
    """A row a sequence: its mean with the range of its replicates; values (units, sequences)."""
    for row, results in enumerate(values.T):
        axes.plot([results.min(), results.max()], [row + shift] * 2, color=colour, linewidth=0.6, zorder=2)
        axes.plot([results.mean()], [row + shift], marker, color=colour, markersize=4, zorder=3, **data.EDGE)


def _widening(widen: Shown) -> dict[str, Any]:
    """The best moves, the best that only deepen, and no growth, with the noise of a mean."""
    values, sign = widen.mean(), 1 if widen.quantity.better == "higher" else -1
    moves = {place: widen.moves(name) for place, name in enumerate(widen.sequences)}
    deep = [place for place, names in moves.items() if not any("widen" in name for name in names)]
    several = widen.replicates > 1
    noise = reliability(widen.values()).sd_residual / widen.replicates**0.5 if several else None
    gain = sign * (values[widen.best] - values[widen.nothing])
    return {
        "moves": ", then ".join(moves[widen.best]),
        "best": float(values[widen.best]),
        "deepest": float(values[max(deep, key=lambda place: sign * values[place])]),
        "none": float(values[widen.nothing]),
        "noise": noise,
        "unclear": noise is not None and bool(gain < 2 * noise),
        "unit": data.unit_of(widen.quantity),
    }


def _way_back(stay: np.ndarray, back: np.ndarray, down: Shown) -> dict[str, Any]:
    """How many sequences end better than no growth in either case; stay, back: means of the sequences."""
    sign, none = 1 if down.quantity.better == "higher" else -1, down.nothing
    helped = [int((sign * results > sign * results[none]).sum()) for results in (stay, back)]
    counts = {"growing": len(back) - 1, "stay": helped[0], "back": helped[1]}
    return {**counts, "stay_none": float(stay[none]), "back_none": float(back[none])}
