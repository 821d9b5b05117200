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
from schedlab.figures import helpers, theme
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import Shown
from schedlab.studies.adaptation.figures.settings import RankingSettings, ReliabilitySettings
from schedlab.studies.adaptation.simulator.ranking import noise_from_tail, reliability
from schedlab.studies.adaptation.simulator.table import DIGITS

# marker and size of the policies whose choices are shown, around the star of the best
MARKS = (("o", 8.0), ("s", 10.5), ("D", 6.5))
MANY = 44  # columns of cells that fit beside each other


def draw_sequences(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Heat map of the regret of every sequence (rows) in every scenario (columns), best and chosen ones marked."""
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    scenarios, unlike = data.alike(scenarios, lambda found: (found.action_names, found.sequences), "other sequences")
    quantity = scenarios[0].quantity
    names = data.policies(tables, spec)[: len(MARKS)]
    tree, actions = scenarios[0].problem.tree, scenarios[0].action_names
    regrets = np.stack([scenario.regret() for scenario in scenarios], axis=1)
    rows = len(tree.sequences) // tree.actions
    most = max(1, MANY // len(scenarios))
    figure, lines = theme.new_grid(tree.actions, most, row_mm=8 + 4.4 * rows, around_mm=18)
    panels = data.flat(lines)
    norm = PowerNorm(0.5, vmin=0.0, vmax=float(regrets.max()))
    for first, axes in enumerate(panels):
        part = slice(first * rows, (first + 1) * rows)
        image = axes.pcolormesh(regrets[part], cmap=data.LOW_IS_GOOD, norm=norm, edgecolors="white", linewidth=0.6)
        axes.set_yticks(np.arange(rows) + 0.5, tree.sequences[part])
        data.start_ticks(axes, scenarios)
        axes.set_title(f"{DIGITS[first]}: {actions[first]} first", fontsize="medium")
        axes.invert_yaxis()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for line in range(tree.actions, rows, tree.actions):
            axes.axhline(line, color="white", linewidth=1.8)
    _mark(panels, scenarios, tables, names, image)
    label = f"{helpers.axis_label(data.regret_metric(quantity))}; square-root scale"
    bar = figure.colorbar(image, ax=panels, aspect=30, pad=0.01, label=label)
    bar.outline.set_visible(False)
    helpers.shared_xlabel(lines[-1], "time from which growth is possible (s)")
    helpers.legend_outside(figure, _mark_keys(names), columns=1 + len(names))
    codes = ", ".join(f"{DIGITS[number]} {name}" for number, name in enumerate(actions))
    scale = "Colours follow the square root of the regret, so that small ones can be told apart."
    told = [spec.caption, f"Digits: {codes}.", scale, _sequences_caption(tables, scenarios, names)]
    return Drawing(figure, data.caption(*told), left_out=others | unlike)


def _mark(
    panels: Sequence[Axes], scenarios: Sequence[Shown], tables: StudyTables, names: Sequence[str], image: Any
) -> None:
    """A star at the best mean of each scenario, and an open mark at what each policy came to on the test units."""
    tree = scenarios[0].problem.tree
    rows = len(tree.sequences) // tree.actions
    for column, scenario in enumerate(scenarios):
        regrets = scenario.regret()
        marks = [(scenario.best, "*", 5.5, True)]
        for name, (marker, size) in zip(names, MARKS, strict=False):
            chosen = data.chosen_sequences(tables, scenario.name, name)
            marks += [(tree.index(sequence), marker, size, False) for sequence in chosen]
        for position, marker, size, filled in marks:
            ink = theme.ink_on(image.cmap(image.norm(regrets[position])))
            look: dict[str, Any] = {"color": ink, "markersize": size, "markerfacecolor": ink if filled else "none"}
            look |= {"markeredgewidth": 0.9, "clip_on": False, "label": "_mark"}
            panels[position // rows].plot([column + 0.5], [position % rows + 0.5], marker, **look)


def _mark_keys(names: Sequence[str]) -> list[Any]:
    keys = [data.key(color=INK, marker="*", linestyle="none", markersize=5.5, label="best mean of all replicates")]
    for name, (marker, size) in zip(names, MARKS, strict=False):
        look = {"marker": marker, "linestyle": "none", "markersize": size * 0.8, "markerfacecolor": "none"}
        keys.append(data.key(color=INK, label=name, **look))
    return keys


def _sequences_caption(tables: StudyTables, scenarios: Sequence[Shown], names: Sequence[str]) -> str:
    bests = [f"{scenario.sequences[scenario.best]} ({scenario.label})" for scenario in scenarios]
    nothing = [f"{scenario.ranks()[scenario.nothing]}" for scenario in scenarios]
    total = len(scenarios[0].sequences)
    told = f"Best by the mean: {', '.join(bests)}. Doing nothing has rank {', '.join(nothing)} of {total}."
    for name in names:
        hits = sum(
            scenario.sequences[scenario.best] in data.chosen_sequences(tables, scenario.name, name)
            for scenario in scenarios
        )
        told += f" {name} comes to the sequence with the best mean in {hits} of {len(scenarios)} scenarios."
    return told


def draw_ranking(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Results of all sequences by scenario, with best, mean, worst and no adaptation, and the noise."""
    scenarios = data.scenarios_of(tables, spec)
    columns = helpers.settings_of(spec, RankingSettings).columns or (scenarios[0].column,)
    beside = 1 if len(scenarios) > 7 else 2
    width = 1.0 if len(columns) > 1 or beside == 1 else 0.6
    figure, lines = theme.new_grid(len(columns), beside, row_mm=56, around_mm=24, width=width)
    for axes, column in zip(data.flat(lines), columns, strict=True):
        axes.margins(y=0.05)
        for place, scenario in enumerate(scenarios):
            _ranking_dots(axes, place, scenario, column)
        axes.set_xticks(range(len(scenarios)), [data.narrow(scenario) for scenario in scenarios])
        axes.set(xlim=(-0.55, len(scenarios) - 0.35), ylabel=helpers.axis_label(data.QUANTITIES[column]))
        axes.tick_params(axis="x", length=0)
        axes.grid(True, axis="y")
        for place, scenario in enumerate(scenarios):
            _ranking_notes(axes, place, scenario, column)
    helpers.shared_xlabel(lines[-1], "scenario and time from which growth is possible")
    noisy = any(np.isfinite(_noise(scenario, column)) for scenario in scenarios for column in columns)
    helpers.legend_outside(figure, _ranking_keys(noisy=noisy), columns=3 if width == 1.0 else 2)
    return Drawing(figure, f"{spec.caption} {_ranking_caption(scenarios, columns)}")


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
    return SequenceRanking(
        values, int(better.argmax()), int(better.argmin()), none, 1 + int((better > better[none]).sum())
    )


def _ranking_dots(axes: Axes, place: int, scenario: Shown, column: str) -> None:
    """A dot a sequence, marks for best and worst, a bar for the mean; left: the noise, right: no adaptation."""
    found, middle = sequence_ranking(scenario, column), place - 0.17
    axes.scatter(
        np.full(len(found.values), middle), found.values, s=5, color=GRID, edgecolors=MUTED, linewidths=0.3, zorder=2
    )
    axes.plot([middle - 0.12, middle + 0.12], [found.values.mean()] * 2, color=INK, linewidth=1.2, zorder=3)
    for position, look, x in (
        (found.worst, "worst", middle),
        (found.best, "best", middle),
        (found.none, "none", place + 0.03),
    ):
        axes.plot([x], [found.values[position]], zorder=4, **_RANKING_LOOKS[look], color=_ranking_colour(look))
    noise = _noise(scenario, column)
    if np.isfinite(noise):
        axes.errorbar(
            [place - 0.42], [found.values.mean()], [noise], color=MUTED, linewidth=0.9, capsize=1.8, capthick=0.7
        )


def _ranking_notes(axes: Axes, place: int, scenario: Shown, column: str) -> None:
    """Right of the marks, moved apart: the best and the worst sequence, and the rank of no growth."""
    found = sequence_ranking(scenario, column)
    notes = [
        (position, scenario.sequences[position], look)
        for position, look in ((found.worst, "worst"), (found.best, "best"))
    ]
    notes.append((found.none, f"#{found.rank}", "none"))
    low, high = axes.get_ylim()
    heights = helpers.spread([(found.values[position] - low) / (high - low) for position, _, _ in notes], 0.048)
    for height, (_, note, look) in zip(heights, notes, strict=True):
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
    """Standard deviation of the mean that is shown; NaN where nothing tells it."""
    values = scenario.values(column)
    if len(values) > 1:
        return reliability(values).sd_residual / np.sqrt(len(values))
    if column == "test_accuracy" and "test_accuracy_last3" in scenario.table:
        return noise_from_tail(*(scenario.table[name].to_numpy() for name in ("test_accuracy", "test_accuracy_last3")))
    return float("nan")


def _ranking_keys(*, noisy: bool) -> list[Any]:
    """What the marks are; noisy: whether the noise of a dot is drawn, which a single replicate leaves open."""
    labels = {"best": "best", "worst": "worst", "none": "no adaptation (#: its rank)"}
    keys = [
        data.key(linestyle="none", color=_ranking_colour(n), label=text, **_RANKING_LOOKS[n])
        for n, text in labels.items()
    ]
    dot = {"marker": "o", "color": GRID, "markeredgecolor": MUTED, "markeredgewidth": 0.3, "markersize": 2.5}
    keys.append(data.key(linestyle="none", label="each sequence", **dot))
    keys.append(data.key(color=INK, linewidth=1.2, label="mean"))
    label = "\N{PLUS-MINUS SIGN}1 s.d. of the noise of a dot"
    return [*keys, *([data.key(color=MUTED, marker="|", linewidth=0.9, markersize=4, label=label)] if noisy else ())]


def _ranking_caption(scenarios: Sequence[Shown], columns: Sequence[str]) -> str:
    """The ranking in words, by the first column: best, mean, worst and none of each scenario."""
    column = columns[0]
    quantity = data.QUANTITIES[column]
    told = []
    for scenario in scenarios:
        found, values = sequence_ranking(scenario, column), scenario.mean(column)
        best, worst = (
            f"{values[position]:.3f} ({scenario.sequences[position]})" for position in (found.best, found.worst)
        )
        told.append(
            f"{scenario.label} {best} / {values.mean():.3f} / {worst} / {values[found.none]:.3f} (rank {found.rank})"
        )
    units = scenarios[0].replicates
    what = f"means over {units} replicates" if units > 1 else "one replicate each"
    return f"{quantity.label.capitalize()}, best / mean / worst / none ({what}): {'; '.join(told)}."


def draw_reliability(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Share of the variance due to the sequence by number of replicates; then the cost of choosing on few."""
    settings = helpers.settings_of(spec, ReliabilitySettings)
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    single = {scenario.name: "one replicate" for scenario in scenarios if scenario.replicates < 2}
    scenarios = [scenario for scenario in scenarios if scenario.name not in single]
    columns, furthest = settings.columns, settings.replicates
    figure, panels = theme.new_figure(1, len(columns) + 1, height_mm=72, squeeze=False)
    shares: dict[str, list[float]] = {}
    for axes, column in zip(panels[0], columns, strict=False):
        shares[column] = [
            _reliability_line(axes, look, scenario, column, furthest) for look, scenario in _scenario_looks(scenarios)
        ]
        axes.set(
            title=data.QUANTITIES[column].label,
            xlabel="replicates averaged",
            ylim=(None, 1.02),
            xlim=(0.6, furthest + 0.4),
        )
        axes.set_ylim(bottom=min(-0.04, axes.dataLim.y0 - 0.05))
        axes.set_ylabel("variance due to the sequence (share)" if axes is panels[0][0] else "")
        axes.grid(True, axis="y")
    _selection_panel(panels[0][-1], scenarios)
    handles = panels[0][0].get_legend_handles_labels()[0]
    helpers.legend_outside(figure, [*handles, *_reliability_keys()], columns=4)
    return Drawing(
        figure, f"{spec.caption} {_reliability_caption(scenarios, columns, shares)}", left_out=others | single
    )


def _scenario_looks(scenarios: Sequence[Shown]) -> list[tuple[dict[str, Any], Shown]]:
    """Keywords of a line for each scenario: colours in the order of time, a marker of its own."""
    marks, count = theme.LEARNED_MARKERS, len(scenarios)
    looks = [
        {"color": data.scenario_colour(n, count), "marker": marks[n % len(marks)], "markersize": 3.5}
        for n in range(count)
    ]
    return list(zip(looks, scenarios, strict=True))


def _reliability_line(axes: Axes, look: dict[str, Any], scenario: Shown, column: str, furthest: int) -> float:
    """Draw sd_sequence^2 / (sd_sequence^2 + sd_residual^2 / n); return it for one replicate."""
    values = _first_job(scenario, column)
    parts = reliability(values)
    counts = np.arange(1, furthest + 1)
    between, rest = parts.sd_sequence**2, parts.sd_residual**2
    share = between / (between + rest / counts) if between + rest > 0 else np.zeros(len(counts))
    there = min(len(values), furthest)
    axes.plot(counts[:there], share[:there], label=scenario.tick.replace("\n", ", "), **look)
    axes.plot(counts[there - 1 :], share[there - 1 :], color=look["color"], linestyle=(0, (1, 1.5)), linewidth=0.9)
    axes.plot([1], [parts.correlation], marker="x", color=look["color"], markersize=5, linestyle="none", zorder=4)
    return float(share[0])


def _first_job(scenario: Shown, column: str) -> np.ndarray:
    """A metric of the first job's replicates: (replicates, sequences)."""
    units = scenario.problem.view.units
    return scenario.values(column)[[row for row, unit in enumerate(units) if unit[0] == units[0][0]]]


def _selection_panel(axes: Axes, scenarios: Sequence[Shown]) -> None:
    """Mean regret on a further replicate of the sequence that is best on n others, over all choices of these."""
    for number, (look, scenario) in enumerate(_scenario_looks(scenarios)):
        losses = selection_regret(_first_job(scenario, scenario.column), scenario.quantity)
        beside = 0.5 * ((number + 0.5) / len(scenarios) - 0.5)  # so that equal losses do not hide each other
        counts = np.arange(1, len(losses) + 1) + beside
        for count, several in zip(counts, losses, strict=True):
            axes.plot([count] * len(several), several, "_", color=look["color"], markersize=4, alpha=0.7)
        axes.plot(counts, [np.mean(several) for several in losses], **look)
    most = max((scenario.replicates for scenario in scenarios), default=2)
    axes.set(title="cost of choosing on few", xlabel="replicates chosen on", xlim=(0.5, most - 0.5))
    axes.set_xticks(range(1, max(most, 2)))
    if scenarios:
        axes.set_ylabel(helpers.axis_label(data.regret_metric(scenarios[0].quantity)))
    axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
    axes.grid(True, axis="y")


def selection_regret(values: np.ndarray, quantity: Metric) -> list[list[float]]:
    """Return for n = 1, 2 ... the regrets, on each other replicate, of the best sequence by the mean of n.

    values  (replicates, sequences), in the direction of `quantity`
    """
    reward = values if quantity.better == "higher" else -values
    found = []
    for count in range(1, len(reward)):
        several = []
        for group in combinations(range(len(reward)), count):
            chosen = int(reward[list(group)].mean(0).argmax())
            several += [
                float(reward[row].max() - reward[row, chosen]) for row in range(len(reward)) if row not in group
            ]
        found.append(several)
    return found


def _reliability_keys() -> list[Any]:
    return [
        data.key(color=MUTED, linestyle=(0, (1, 1.5)), linewidth=0.9, label="beyond the replicates simulated"),
        data.key(color=MUTED, marker="x", linestyle="none", markersize=5, label="correlation of two replicates"),
        data.key(color=MUTED, marker="_", linestyle="none", markersize=5, label="single choices (right panel)"),
    ]


def _reliability_caption(scenarios: Sequence[Shown], columns: Sequence[str], shares: dict[str, list[float]]) -> str:
    if not scenarios:
        return "No scenario here has two replicates, so nothing can be said."
    told = []
    for column in columns:
        numbers = ", ".join(
            f"{share:.2f} ({scenario.label})" for share, scenario in zip(shares[column], scenarios, strict=True)
        )
        told.append(f"One replicate's {data.QUANTITIES[column].label} is due to the sequence by a share of {numbers}.")
    losses = [
        np.mean(selection_regret(_first_job(scenario, scenario.column), scenario.quantity)[-1])
        for scenario in scenarios
    ]
    unit = scenarios[0].quantity.unit
    counts = {len(_first_job(scenario, scenario.column)) - 1 for scenario in scenarios}
    costs = f"{data.amount(float(min(losses)), unit)} to {data.amount(float(max(losses)), unit)}"
    of = f"{max(counts)} replicates" if max(counts) > 1 else "one replicate"
    noise = np.mean([reliability(_first_job(scenario, scenario.column)).sd_residual for scenario in scenarios])
    why = "That best is partly luck, so the loss does not fall to nothing however many replicates are chosen on"
    luck = f"{why}; few choices stand behind a mean, so it may even rise."
    luck += f" Noise of one result: {data.amount(float(noise), unit)} (1 s.d.)."
    return f"{' '.join(told)} The sequence chosen on {of} loses {costs} to the best of another. {luck}"
