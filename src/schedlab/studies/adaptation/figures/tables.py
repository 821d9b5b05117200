"""Figures of the simulation tables: every sequence in every scenario, rankings, and their reliability."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm, to_hex

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import settings_of
from schedlab.figures.panels.axes import axis_label, key, legend_outside, spread
from schedlab.figures.panels.cells import cells, colour_bar
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import EDGE, Shown
from schedlab.studies.adaptation.figures.settings import ColumnsSettings, ReliabilitySettings
from schedlab.studies.adaptation.simulator.ranking import noise_from_tail, reliability
from schedlab.studies.adaptation.simulator.table import DIGITS

# marker and size of the policies whose choices are shown, around the star of the best
MARKS = (("o", 8.0), ("s", 10.5), ("D", 6.5))
MANY = 44  # columns of cells that fit into a row of panels
SEQUENCES = (
    "Digits: {digits:{digit} {action}}. Colours follow the square root of the regret, so that small regrets differ "
    "visibly. Best by the mean: {best:{sequence} ({scenario})}. Doing nothing has rank {ranks} of {total}. "
    "[Scenarios, of {scenarios}, in which a policy chose the sequence with the best mean: {hits:{name} {value}}.]"
)
RANKING = (
    "{quantity}, best / mean / worst / none ({several}[means over {replicates} replicates]): "
    "{ends:{name} {best:.3f} ({best_sequence}) / {mean:.3f} / {worst:.3f} ({worst_sequence}) / {none:.3f} "
    "(rank {rank})}."
)
RELIABILITY = (
    "[{empty}No scenario here has two replicates, so the noise cannot be estimated.] "
    "[Share of one replicate's result that is due to the sequence: {shares:{quantity} {shares:{value:.2f} ({name})}}.] "
    "[The sequence chosen on {chosen_on:replicate|replicates} loses {least:.3f}[ {unit}] to {most:.3f}[ {unit}] to the "
    "best of another replicate. That best is partly chance, so the loss stays above 0 however many replicates the "
    "choice uses; it may even rise, because a mean is over few choices. Noise of one result: {noise:.3f}[ {unit}] "
    "(1 s.d.).]"
)
LOOKS: dict[str, dict[str, Any]] = {  # looks and labels of marked sequences
    "best": {"marker": "*", "markersize": 7.5, "label": "best", **EDGE},
    "worst": {"marker": "X", "markersize": 5, "label": "worst", **EDGE},
    "none": {"marker": "D", "markersize": 4, "label": "no adaptation (#: its rank)", **EDGE},
}
BEYOND: dict[str, Any] = {"linestyle": (0, (1, 1.5)), "linewidth": 0.9}


def draw_sequences(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the regret of every sequence (rows) in every scenario (columns), and mark the best and the chosen ones."""
    scenarios, others = data.alike_rewarded(tables, spec)
    scenarios, unlike = data.alike(scenarios, lambda found: (found.action_names, found.sequences), "other sequences")
    names, tree, actions = (
        data.policies(tables, spec)[: len(MARKS)],
        scenarios[0].problem.tree,
        scenarios[0].action_names,
    )
    regrets = np.stack([scenario.better().max() - scenario.better() for scenario in scenarios], axis=1)
    rows, norm = len(tree.sequences) // tree.actions, PowerNorm(0.5, vmin=0.0, vmax=float(regrets.max()))
    chosen = {name: [chosen_sequences(tables, each.name, name) for each in scenarios] for name in names}
    starts = [f"{scenario.start:g}" for scenario in scenarios]
    apart = len(set(starts)) == len(starts)
    ticks = starts if apart else [f"{scenario.start:g} {scenario.label}" for scenario in scenarios]

    def panel(axes: Axes, first: int) -> Any:
        part = slice(first * rows, (first + 1) * rows)
        image = cells(axes, regrets[part], tree.sequences[part], cmap=data.LOW_IS_GOOD, norm=norm)
        turned = 0 if apart and len(starts) < 7 else 90
        axes.set_xticks(np.arange(len(starts)) + 0.5, ticks, rotation=turned)
        for line in range(tree.actions, rows, tree.actions):
            axes.axhline(line, color="white", linewidth=1.8)
        for column, scenario in enumerate(scenarios):
            marks = [(scenario.best, "*", 5.5, True)]
            for choices, (marker, size) in zip(chosen.values(), MARKS, strict=False):
                marks += [(tree.index(sequence), marker, size, False) for sequence in choices[column]]
            for position, marker, size, filled in marks:
                if position // rows == first:
                    ink = theme.ink_on(image.cmap(image.norm(regrets[position, column])))
                    look: dict[str, Any] = {"color": ink, "markersize": size, "markeredgewidth": 0.9, "label": "_mark"}
                    look |= {"markerfacecolor": ink if filled else "none", "clip_on": False}
                    axes.plot([column + 0.5], [position % rows + 0.5], marker, **look)
        return image

    groups = {f"{DIGITS[first]}: {actions[first]} first": first for first in range(tree.actions)}
    grid = Grid(max(1, MANY // len(scenarios)), 8 + 4.4 * rows, 18, "time from which growth is possible (s)")
    look: dict[str, Any] = {"color": INK, "linestyle": "none"}
    keys = [key("best mean of all replicates", marker="*", markersize=5.5, **look)]
    for name, (marker, size) in zip(names, MARKS, strict=False):
        keys.append(key(name, marker=marker, markersize=size * 0.8, markerfacecolor="none", **look))
    figure, images = facets(groups, panel, grid, keys=keys, columns=len(keys))
    regret = axis_label(data.regret_metric(scenarios[0].quantity))
    colour_bar(list(figure.axes), images[0], f"{regret}; square-root scale", pad=0.01)
    bests = [scenario.sequences[scenario.best] for scenario in scenarios]
    facts = {
        "digits": [{"digit": DIGITS[number], "action": name} for number, name in enumerate(actions)],
        "best": [{"sequence": b, "scenario": each.label} for b, each in zip(bests, scenarios, strict=True)],
        "ranks": [rank_of_none(scenario, scenario.column) for scenario in scenarios],
        "total": len(tree.sequences),
        "scenarios": len(scenarios),
        "hits": {n: sum(b in c for b, c in zip(bests, chosen[n], strict=True)) for n in names},
    }
    return Drawing(figure, SEQUENCES, facts, left_out=others | unlike)


def chosen_sequences(tables: StudyTables, scenario: str, policy: str) -> list[str]:
    """Return the sequences that a policy chooses on a scenario's test units."""
    rows = select(tables.details["sequences"], scenario=scenario, policy=policy, split="test")
    return sorted(map(str, set(rows["sequence"])))


def rank_of_none(scenario: Shown, column: str) -> int:
    """Return the rank of the sequence that never grows, by its mean in a column of the table; 1 is best."""
    better = scenario.better(column)
    return 1 + int((better > better[scenario.nothing]).sum())


def draw_ranking(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the results of all sequences by scenario, with best, mean, worst and no adaptation, and the noise."""
    scenarios = data.scenarios_of(tables, spec)
    columns = settings_of(spec, ColumnsSettings).columns or (scenarios[0].column,)

    def panel(axes: Axes, column: str) -> None:
        axes.margins(y=0.05)
        for place, scenario in enumerate(scenarios):
            _ranking_dots(axes, place, scenario, column)
        axes.set_xticks(range(len(scenarios)), [scenario.tick(narrow=True) for scenario in scenarios])
        axes.set(xlim=(-0.55, len(scenarios) - 0.35), ylabel=axis_label(data.QUANTITIES[column]))
        axes.tick_params(axis="x", length=0)
        for place, scenario in enumerate(scenarios):
            _ranking_notes(axes, place, scenario, column)

    most, x = 1 if len(scenarios) > 7 else 2, "scenario and time from which growth is possible"
    figure, _ = facets([("", column) for column in columns], panel, Grid(most, 56, 24, x, lines="y"), columns=3)
    count = scenarios[0].replicates
    facts = {
        "quantity": data.QUANTITIES[columns[0]].label.capitalize(),
        "several": "" if count > 1 else "one replicate each",
        "replicates": count if count > 1 else None,
        "ends": {scenario.label: _ends(scenario, columns[0]) for scenario in scenarios},
    }
    return Drawing(figure, RANKING, facts)


def _marked(scenario: Shown, column: str) -> dict[str, int]:
    """Return the positions of the marked sequences, by their means in a column of the table."""
    better = scenario.better(column)
    return {"best": int(better.argmax()), "worst": int(better.argmin()), "none": scenario.nothing}


def _ends(scenario: Shown, column: str) -> dict[str, Any]:
    """Return the best, mean and worst result of a scenario in one column, and the result without growth."""
    values, marked = scenario.mean(column), _marked(scenario, column)
    named = {f"{look}_sequence": scenario.sequences[marked[look]] for look in ("best", "worst")}
    ends = {look: float(values[place]) for look, place in marked.items()}
    return {**ends, **named, "mean": float(values.mean()), "rank": rank_of_none(scenario, column)}


def _ranking_dots(axes: Axes, place: int, scenario: Shown, column: str) -> None:
    """Draw a dot for each sequence, marks of the best, the worst and no growth, a bar for the mean, and the noise."""
    values, middle, noise = scenario.mean(column), place - 0.17, _noise(scenario, column)
    for look, position in _marked(scenario, column).items():
        x = place + 0.03 if look == "none" else middle
        axes.plot([x], [values[position]], zorder=4, linestyle="none", color=_colour(look), **LOOKS[look])
    dots: dict[str, Any] = {"s": 5, "color": GRID, "edgecolors": MUTED, "linewidths": 0.3, "zorder": 2}
    axes.scatter(np.full(len(values), middle), values, label="each sequence", **dots)
    mean: dict[str, Any] = {"color": INK, "linewidth": 1.2, "zorder": 3, "label": "mean"}
    axes.plot([middle - 0.12, middle + 0.12], [values.mean()] * 2, **mean)
    if np.isfinite(noise):
        bar: dict[str, Any] = {"color": MUTED, "linewidth": 0.9, "capsize": 1.8, "capthick": 0.7}
        label = "\N{PLUS-MINUS SIGN}1 s.d. of the noise of a dot"
        axes.errorbar([place - 0.42], [values.mean()], [noise], linestyle="none", label=label, **bar)


def _ranking_notes(axes: Axes, place: int, scenario: Shown, column: str) -> None:
    """Write right of the marks, without overlap, the best and the worst sequence and the rank of no growth."""
    values, marked, (low, high) = scenario.mean(column), _marked(scenario, column), axes.get_ylim()
    heights = spread([(values[position] - low) / (high - low) for position in marked.values()], 0.048)
    for height, (look, position) in zip(heights, marked.items(), strict=True):
        note = f"#{rank_of_none(scenario, column)}" if look == "none" else scenario.sequences[position]
        style: dict[str, Any] = {"va": "center", "fontsize": "x-small", "color": _colour(look)}
        axes.text(place + 0.13, low + height * (high - low), note, **style)


def _colour(look: str) -> str:
    return {"best": theme.colour(0), "worst": theme.colour(3), "none": INK}[look]


def _noise(scenario: Shown, column: str) -> float:
    """Return the standard deviation of the mean that is shown; NaN if it cannot be estimated."""
    values = scenario.values(column)
    if len(values) > 1:
        return reliability(values).sd_residual / np.sqrt(len(values))
    if column == "test_accuracy" and "test_accuracy_last3" in scenario.table:
        return noise_from_tail(*(scenario.table[name].to_numpy() for name in ("test_accuracy", "test_accuracy_last3")))
    return float("nan")


def draw_reliability(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the share of the variance due to the sequence by number of replicates, and the cost of choosing on few."""
    settings = settings_of(spec, ReliabilitySettings)
    scenarios, others = data.alike_rewarded(tables, spec)
    single = {scenario.name: "one replicate" for scenario in scenarios if scenario.replicates < 2}
    scenarios = [scenario for scenario in scenarios if scenario.name not in single]
    figure, panels = theme.new_figure(1, len(settings.columns) + 1, height_mm=72, squeeze=False)
    count, marks, shares = len(scenarios), theme.LEARNED_MARKERS, []
    colours = [to_hex(mpl.colormaps["viridis"](0.78 * number / max(count - 1, 1))) for number in range(count)]
    looks: list[dict[str, Any]]  # colours in the order of time, from dark to light
    looks = [{"color": each, "marker": marks[n % len(marks)], "markersize": 3.5} for n, each in enumerate(colours)]
    for axes, column in zip(panels[0], settings.columns, strict=False):
        label, most = data.QUANTITIES[column].label, settings.replicates
        pairs = zip(looks, scenarios, strict=True)
        drawn = {each.label: _reliability_line(axes, look, each, column, most) for look, each in pairs}
        shares.append({"quantity": label, "shares": drawn})
        axes.set(title=label, xlabel="replicates averaged", xlim=(0.6, most + 0.4))
        axes.set_ylim(min(-0.04, axes.dataLim.y0 - 0.05), 1.02)
        axes.grid(True, axis="y")
    panels[0][0].set_ylabel("variance due to the sequence (share)")
    facts = _selection_panel(panels[0][-1], scenarios, looks)
    mark: dict[str, Any] = {"color": MUTED, "linestyle": "none", "markersize": 5}
    keys = [key("beyond the replicates simulated", color=MUTED, **BEYOND)]
    keys += [key("correlation of two replicates", marker="x", **mark)]
    keys += [key("single choices (right panel)", marker="_", **mark)]
    legend_outside(figure, [*panels[0][0].get_legend_handles_labels()[0], *keys], columns=4)
    facts |= {"empty": not scenarios, "shares": shares if scenarios else []}
    return Drawing(figure, RELIABILITY, facts, left_out=others | single)


def _reliability_line(axes: Axes, look: dict[str, Any], scenario: Shown, column: str, furthest: int) -> float:
    """Draw sd_sequence^2 / (sd_sequence^2 + sd_residual^2 / n); return it for one replicate."""
    values = _first_job(scenario, column)
    parts, counts = reliability(values), np.arange(1, furthest + 1)
    between, rest = parts.sd_sequence**2, parts.sd_residual**2
    share = between / (between + rest / counts) if between + rest > 0 else np.zeros(len(counts))
    there = min(len(values), furthest)
    axes.plot(counts[:there], share[:there], label=scenario.tick().replace("\n", ", "), **look)
    axes.plot(counts[there - 1 :], share[there - 1 :], color=look["color"], **BEYOND)
    axes.plot([1], [parts.correlation], marker="x", color=look["color"], markersize=5, linestyle="none", zorder=4)
    return float(share[0])


def _first_job(scenario: Shown, column: str) -> np.ndarray:
    """Return a column of the first job's replicates: (replicates, sequences)."""
    units = scenario.problem.view.units
    return scenario.values(column)[[row for row, unit in enumerate(units) if unit[0] == units[0][0]]]


def _selection_panel(axes: Axes, scenarios: Sequence[Shown], looks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Draw the mean regret, on a further replicate, of the best sequence of n others, over all choices of them.

    Returns the lowest and the highest regret of a choice on all replicates but one, over the scenarios, and the noise
    of one result.
    """
    most = max((scenario.replicates for scenario in scenarios), default=2)
    axes.set(title="cost of choosing on few", xlabel="replicates chosen on", xlim=(0.5, most - 0.5))
    axes.set_xticks(range(1, max(most, 2)))
    axes.grid(True, axis="y")
    if not scenarios:
        return dict.fromkeys(("chosen_on", "least", "most", "unit", "noise"))
    quantity, last = scenarios[0].quantity, []
    values = [_first_job(scenario, scenario.column) for scenario in scenarios]
    for number, (look, own) in enumerate(zip(looks, values, strict=True)):
        losses = selection_regret(own, quantity)
        shift = 0.5 * ((number + 0.5) / len(scenarios) - 0.5)  # so that equal losses do not hide each other
        counts = np.arange(1, len(losses) + 1) + shift
        for count, several in zip(counts, losses, strict=True):
            axes.plot([count] * len(several), several, "_", color=look["color"], markersize=4, alpha=0.7)
        axes.plot(counts, means := [float(np.mean(several)) for several in losses], **look)
        last.append(means[-1])
    axes.set_ylabel(axis_label(data.regret_metric(quantity)))
    axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
    noise = float(np.mean([reliability(own).sd_residual for own in values]))
    facts = {"least": min(last), "most": max(last), "unit": data.unit_of(quantity), "noise": noise}
    return {"chosen_on": max(len(own) - 1 for own in values), **facts}


def selection_regret(values: np.ndarray, quantity: Metric) -> list[list[float]]:
    """Return for n = 1, 2 ... the regrets, on each other replicate, of the best sequence by the mean of n replicates.

    values  (replicates, sequences), better as `quantity` specifies
    """
    reward = values if quantity.better == "higher" else -values
    found = []
    for count in range(1, len(reward)):
        several = []
        for group in combinations(range(len(reward)), count):
            chosen = int(reward[list(group)].mean(0).argmax())
            rest = [row for row in range(len(reward)) if row not in group]
            several += [float(reward[row].max() - reward[row, chosen]) for row in rest]
        found.append(several)
    return found
