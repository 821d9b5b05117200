"""Figures of the simulation tables: every sequence in every scenario, rankings, and their reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import settings_of
from schedlab.figures.panels.axes import axis_label, key, legend_outside, shared_xlabel, spread
from schedlab.figures.panels.cells import cells, colour_bar
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import RankingSettings, ReliabilitySettings
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


def draw_sequences(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a heat map of the regret of every sequence (rows) in every scenario (columns), with the best and the chosen
    ones marked.
    """
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    scenarios, unlike = data.alike(scenarios, lambda found: (found.action_names, found.sequences), "other sequences")
    names = data.policies(tables, spec)[: len(MARKS)]
    tree, actions = scenarios[0].problem.tree, scenarios[0].action_names
    regrets = np.stack([scenario.regret() for scenario in scenarios], axis=1)
    rows, most = len(tree.sequences) // tree.actions, max(1, MANY // len(scenarios))
    figure, panels, lines = theme.new_panels(tree.actions, most, row_mm=8 + 4.4 * rows, around_mm=18)
    norm = PowerNorm(0.5, vmin=0.0, vmax=float(regrets.max()))
    for first, axes in enumerate(panels):
        part = slice(first * rows, (first + 1) * rows)
        image = cells(axes, regrets[part], tree.sequences[part], cmap=data.LOW_IS_GOOD, norm=norm)
        data.start_ticks(axes, scenarios)
        axes.set_title(f"{DIGITS[first]}: {actions[first]} first", fontsize="medium")
        for line in range(tree.actions, rows, tree.actions):
            axes.axhline(line, color="white", linewidth=1.8)
    chosen = {name: [data.chosen_sequences(tables, each.name, name) for each in scenarios] for name in names}
    _mark(panels, scenarios, chosen, image)
    regret = data.regret_metric(scenarios[0].quantity)
    colour_bar(panels, image, f"{axis_label(regret)}; square-root scale", pad=0.01)
    shared_xlabel(lines[-1], "time from which growth is possible (s)")
    legend_outside(figure, _mark_keys(names), columns=1 + len(names))
    bests = [scenario.sequences[scenario.best] for scenario in scenarios]
    facts = {
        "digits": [{"digit": DIGITS[number], "action": name} for number, name in enumerate(actions)],
        "best": [{"sequence": b, "scenario": each.label} for b, each in zip(bests, scenarios, strict=True)],
        "ranks": [int(scenario.ranks()[scenario.nothing]) for scenario in scenarios],
        "total": len(tree.sequences),
        "scenarios": len(scenarios),
        "hits": {n: sum(b in c for b, c in zip(bests, chosen[n], strict=True)) for n in names},
    }
    return Drawing(figure, SEQUENCES, facts, left_out=others | unlike)


def _mark(panels: Sequence[Axes], scenarios: Sequence[Shown], chosen: dict[str, list[dict]], image: Any) -> None:
    """A star at the best mean of each scenario, and an open mark at what each policy chose on the test units."""
    tree = scenarios[0].problem.tree
    rows = len(tree.sequences) // tree.actions
    for column, scenario in enumerate(scenarios):
        regrets = scenario.regret()
        marks = [(scenario.best, "*", 5.5, True)]
        for choices, (marker, size) in zip(chosen.values(), MARKS, strict=False):
            marks += [(tree.index(sequence), marker, size, False) for sequence in choices[column]]
        for position, marker, size, filled in marks:
            ink = theme.ink_on(image.cmap(image.norm(regrets[position])))
            look: dict[str, Any] = {"color": ink, "markersize": size, "markerfacecolor": ink if filled else "none"}
            look |= {"markeredgewidth": 0.9, "clip_on": False, "label": "_mark"}
            panels[position // rows].plot([column + 0.5], [position % rows + 0.5], marker, **look)


def _mark_keys(names: Sequence[str]) -> list[Any]:
    look: dict[str, Any] = {"color": INK, "linestyle": "none"}
    keys = [key("best mean of all replicates", marker="*", markersize=5.5, **look)]
    for name, (marker, size) in zip(names, MARKS, strict=False):
        keys.append(key(name, marker=marker, markersize=size * 0.8, markerfacecolor="none", **look))
    return keys


def draw_ranking(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the results of all sequences by scenario, with best, mean, worst and no adaptation, and the noise."""
    scenarios = data.scenarios_of(tables, spec)
    columns = settings_of(spec, RankingSettings).columns or (scenarios[0].column,)
    across = 1 if len(scenarios) > 7 else 2
    width = 1.0 if len(columns) > 1 or across == 1 else 0.6
    figure, panels, lines = theme.new_panels(len(columns), across, row_mm=56, around_mm=24, width=width)
    for axes, column in zip(panels, columns, strict=True):
        axes.margins(y=0.05)
        for place, scenario in enumerate(scenarios):
            _ranking_dots(axes, place, scenario, column)
        axes.set_xticks(range(len(scenarios)), [data.narrow(scenario) for scenario in scenarios])
        axes.set(xlim=(-0.55, len(scenarios) - 0.35), ylabel=axis_label(data.QUANTITIES[column]))
        axes.tick_params(axis="x", length=0)
        axes.grid(True, axis="y")
        for place, scenario in enumerate(scenarios):
            _ranking_notes(axes, place, scenario, column)
    shared_xlabel(lines[-1], "scenario and time from which growth is possible")
    noisy = any(np.isfinite(_noise(scenario, column)) for scenario in scenarios for column in columns)
    legend_outside(figure, _ranking_keys(noisy=noisy), columns=3 if width == 1.0 else 2)
    several = scenarios[0].replicates > 1
    facts = {
        "quantity": data.QUANTITIES[columns[0]].label.capitalize(),
        "several": "" if several else "one replicate each",
        "replicates": scenarios[0].replicates if several else None,
        "ends": {scenario.label: _ends(scenario, columns[0]) for scenario in scenarios},
    }
    return Drawing(figure, RANKING, facts)


@dataclass(frozen=True)
class SequenceRanking:
    """The sequences of a scenario in one quantity: places of best, worst and no growth, the rank of the last."""

    values: np.ndarray
    best: int
    worst: int
    none: int
    rank: int


def sequence_ranking(scenario: Shown, column: str) -> SequenceRanking:
    """Return the ranking of a scenario's sequences by their mean over jobs and replicates in a column of its table."""
    values, none = scenario.mean(column), scenario.nothing
    better = values if data.QUANTITIES[column].better == "higher" else -values
    rank = 1 + int((better > better[none]).sum())
    return SequenceRanking(values, int(better.argmax()), int(better.argmin()), none, rank)


def _ends(scenario: Shown, column: str) -> dict[str, Any]:
    """Best, mean, worst and no growth of a scenario in one quantity."""
    found = sequence_ranking(scenario, column)
    marked = {look: float(found.values[getattr(found, look)]) for look in _RANKING_LOOKS}
    named = {f"{look}_sequence": scenario.sequences[getattr(found, look)] for look in ("best", "worst")}
    return {**marked, **named, "mean": float(found.values.mean()), "rank": found.rank}


def _ranking_dots(axes: Axes, place: int, scenario: Shown, column: str) -> None:
    """A dot a sequence, marks for best and worst, a bar for the mean; left: the noise, right: no adaptation."""
    found, middle = sequence_ranking(scenario, column), place - 0.17
    dots: dict[str, Any] = {"s": 5, "color": GRID, "edgecolors": MUTED, "linewidths": 0.3, "zorder": 2}
    axes.scatter(np.full(len(found.values), middle), found.values, **dots)
    axes.plot([middle - 0.12, middle + 0.12], [found.values.mean()] * 2, color=INK, linewidth=1.2, zorder=3)
    for look, x in (("worst", middle), ("best", middle), ("none", place + 0.03)):
        height = found.values[getattr(found, look)]
        axes.plot([x], [height], zorder=4, **_RANKING_LOOKS[look], color=_ranking_colour(look))
    noise = _noise(scenario, column)
    if np.isfinite(noise):
        bar: dict[str, Any] = {"color": MUTED, "linewidth": 0.9, "capsize": 1.8, "capthick": 0.7}
        axes.errorbar([place - 0.42], [found.values.mean()], [noise], **bar)


def _ranking_notes(axes: Axes, place: int, scenario: Shown, column: str) -> None:
    """Right of the marks, moved apart: the best and the worst sequence, and the rank of no growth."""
    found = sequence_ranking(scenario, column)
    notes = {"worst": scenario.sequences[found.worst], "best": scenario.sequences[found.best], "none": f"#{found.rank}"}
    low, high = axes.get_ylim()
    heights = spread([(found.values[getattr(found, look)] - low) / (high - low) for look in notes], 0.048)
    for height, (look, note) in zip(heights, notes.items(), strict=True):
        y = low + height * (high - low)
        axes.text(place + 0.13, y, note, va="center", fontsize="x-small", color=_ranking_colour(look), clip_on=False)


_RANKING_LOOKS: dict[str, dict[str, Any]] = {
    "best": {"marker": "*", "markersize": 7.5, **data.EDGE},
    "worst": {"marker": "X", "markersize": 5, **data.EDGE},
    "none": {"marker": "D", "markersize": 4, **data.EDGE},
}


def _ranking_colour(look: str) -> str:
    return {"best": theme.colour(0), "worst": theme.colour(3), "none": INK}[look]


def _noise(scenario: Shown, column: str) -> float:
    """Standard deviation of the mean that is shown; NaN where nothing gives it."""
    values = scenario.values(column)
    if len(values) > 1:
        return reliability(values).sd_residual / np.sqrt(len(values))
    if column == "test_accuracy" and "test_accuracy_last3" in scenario.table:
        return noise_from_tail(*(scenario.table[name].to_numpy() for name in ("test_accuracy", "test_accuracy_last3")))
    return float("nan")


def _ranking_keys(*, noisy: bool) -> list[Any]:
    """What the marks are; noisy: whether the noise of a dot is drawn, which a single replicate leaves open."""
    labels = {"best": "best", "worst": "worst", "none": "no adaptation (#: its rank)"}
    keys = [key(text, linestyle="none", color=_ranking_colour(n), **_RANKING_LOOKS[n]) for n, text in labels.items()]
    dot: dict[str, Any] = {"marker": "o", "color": GRID, "markeredgecolor": MUTED, "markeredgewidth": 0.3}
    keys += [key("each sequence", linestyle="none", markersize=2.5, **dot), key("mean", color=INK, linewidth=1.2)]
    noise = key("\N{PLUS-MINUS SIGN}1 s.d. of the noise of a dot", color=MUTED, marker="|", linewidth=0.9, markersize=4)
    return [*keys, *([noise] if noisy else [])]


def draw_reliability(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the share of the variance that is due to the sequence, by number of replicates, and the cost of choosing on
    few replicates.
    """
    settings = settings_of(spec, ReliabilitySettings)
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    single = {scenario.name: "one replicate" for scenario in scenarios if scenario.replicates < 2}
    scenarios = [scenario for scenario in scenarios if scenario.name not in single]
    columns, furthest = settings.columns, settings.replicates
    figure, panels = theme.new_figure(1, len(columns) + 1, height_mm=72, squeeze=False)
    looks, shares = _scenario_looks(scenarios), []
    for axes, column in zip(panels[0], columns, strict=False):
        found = {each.label: _reliability_line(axes, look, each, column, furthest) for look, each in looks}
        shares.append({"quantity": data.QUANTITIES[column].label, "shares": found})
        axes.set(title=data.QUANTITIES[column].label, xlabel="replicates averaged", xlim=(0.6, furthest + 0.4))
        axes.set_ylim(min(-0.04, axes.dataLim.y0 - 0.05), 1.02)
        axes.grid(True, axis="y")
    panels[0][0].set_ylabel("variance due to the sequence (share)")
    _selection_panel(panels[0][-1], scenarios)
    handles = panels[0][0].get_legend_handles_labels()[0]
    legend_outside(figure, [*handles, *_reliability_keys()], columns=4)
    facts = {"empty": not scenarios, "shares": shares if scenarios else [], **_selection(scenarios)}
    return Drawing(figure, RELIABILITY, facts, left_out=others | single)


def _scenario_looks(scenarios: Sequence[Shown]) -> list[tuple[dict[str, Any], Shown]]:
    """Keywords of a line for each scenario: colours in the order of time, a marker for each."""
    marks, count = theme.LEARNED_MARKERS, len(scenarios)
    return [
        ({"color": data.scenario_colour(n, count), "marker": marks[n % len(marks)], "markersize": 3.5}, scenario)
        for n, scenario in enumerate(scenarios)
    ]


def _reliability_line(axes: Axes, look: dict[str, Any], scenario: Shown, column: str, furthest: int) -> float:
    """Draw sd_sequence^2 / (sd_sequence^2 + sd_residual^2 / n); return it for one replicate."""
    values = _first_job(scenario, column)
    parts = reliability(values)
    counts = np.arange(1, furthest + 1)
    between, rest = parts.sd_sequence**2, parts.sd_residual**2
    share = between / (between + rest / counts) if between + rest > 0 else np.zeros(len(counts))
    there = min(len(values), furthest)
    axes.plot(counts[:there], share[:there], label=scenario.tick.replace("\n", ", "), **look)
    axes.plot(counts[there - 1 :], share[there - 1 :], color=look["color"], **_BEYOND)
    axes.plot([1], [parts.correlation], marker="x", color=look["color"], markersize=5, linestyle="none", zorder=4)
    return float(share[0])


_BEYOND: dict[str, Any] = {"linestyle": (0, (1, 1.5)), "linewidth": 0.9}


def _first_job(scenario: Shown, column: str) -> np.ndarray:
    """A metric of the first job's replicates: (replicates, sequences)."""
    units = scenario.problem.view.units
    return scenario.values(column)[[row for row, unit in enumerate(units) if unit[0] == units[0][0]]]


def _selection_panel(axes: Axes, scenarios: Sequence[Shown]) -> None:
    """Mean regret on a further replicate of the sequence that is best on n others, over all choices of these."""
    for number, (look, scenario) in enumerate(_scenario_looks(scenarios)):
        losses = selection_regret(_first_job(scenario, scenario.column), scenario.quantity)
        shift = 0.5 * ((number + 0.5) / len(scenarios) - 0.5)  # so that equal losses do not hide each other
        counts = np.arange(1, len(losses) + 1) + shift
        for count, several in zip(counts, losses, strict=True):
            axes.plot([count] * len(several), several, "_", color=look["color"], markersize=4, alpha=0.7)
        axes.plot(counts, [np.mean(several) for several in losses], **look)
    most = max((scenario.replicates for scenario in scenarios), default=2)
    axes.set(title="cost of choosing on few", xlabel="replicates chosen on", xlim=(0.5, most - 0.5))
    axes.set_xticks(range(1, max(most, 2)))
    if scenarios:
        axes.set_ylabel(axis_label(data.regret_metric(scenarios[0].quantity)))
    axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
    axes.grid(True, axis="y")


def selection_regret(values: np.ndarray, quantity: Metric) -> list[list[float]]:
    """Return for n = 1, 2 ... the regrets of choosing the best sequence by the mean of n replicates, on each other
    replicate.

    values  (replicates, sequences), in the direction of `quantity`
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


def _reliability_keys() -> list[Any]:
    look: dict[str, Any] = {"color": MUTED, "linestyle": "none", "markersize": 5}
    return [
        key("beyond the replicates simulated", color=MUTED, **_BEYOND),
        key("correlation of two replicates", marker="x", **look),
        key("single choices (right panel)", marker="_", **look),
    ]


def _selection(scenarios: Sequence[Shown]) -> dict[str, Any]:
    """What choosing on all replicates but one costs, over the scenarios, and the noise of one result."""
    if not scenarios:
        return dict.fromkeys(("chosen_on", "least", "most", "unit", "noise"))
    values = [_first_job(scenario, scenario.column) for scenario in scenarios]
    losses = [np.mean(selection_regret(own, scenarios[0].quantity)[-1]) for own in values]
    return {
        "chosen_on": max(len(own) - 1 for own in values),
        "least": float(min(losses)),
        "most": float(max(losses)),
        "unit": data.unit_of(scenarios[0].quantity),
        "noise": float(np.mean([reliability(own).sd_residual for own in values])),
    }
