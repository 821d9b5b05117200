"""Figures of jobs: graphs, histograms of their ops, a table, and the densities of beta."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.path import Path as Curve

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.figures import theme
from schedlab.figures.captions import number_text
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.panels.axes import key, legend_outside
from schedlab.figures.panels.cells import text_table
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.ramp.figures.settings import BetasSettings, GraphTableSettings
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.graph import TrainingGraph, training_graph
from schedlab.studies.ramp.graphs.statistics import statistics_table
from schedlab.studies.ramp.simulator.distributions import DistributionSettings, of_scenario

GRAPHS = "graphs"  # name of the input that holds them
BACKWARD, LANE = -1.0, 0.42  # height of the backward pass below the forward one, and of ops side by side
SMALLEST_DOT, LARGEST_DOT = 3.0, 120.0  # points squared; the largest for the op that takes most time
WIDTH = 430.0  # width of a drawing, points
SHARES = (0.01, 0.1, 1.0)  # of the slowest op's time, whose dots the key shows
MOST = 8  # graphs shown
KINDS = 6  # number of kinds of ops with a separate colour
BINS = 32
DOT: dict[str, Any] = {"linestyle": "none", "marker": "o"}
SLOWEST = "Share of a step's time that the slowest op takes: {slowest:{kind} {op} of {name} {share:.0%}}."
UNIT = "Times are in the unit of the scenario {scenario}: a 1 in a graph file is 1 {unit}."
COLUMNS = ("run time of an op", "memory of an op", "size of a dep")


def draw_graphs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per graph: ops in layers, forward above backward pass; dot sizes show the share of time."""
    return drawing_of(graphs_shown(tables, spec), left_out=after_the_first(spec))


def drawing_of(
    graphs: Sequence[TrainingGraph], caption: str = "", left_out: Mapping[str, str] | None = None
) -> Drawing:
    """Return the drawing of graphs inside an applied theme; caption: its beginning; left_out: as in Drawing."""
    figure, panels = theme.new_figure(len(graphs), 1, height_mm=12 + 26 * len(graphs), squeeze=False)
    colours = kind_colours(graphs)
    places = [layers(graph) for graph in graphs]
    # so that no dot covers the next
    largest = min(LARGEST_DOT, *((1.4 * WIDTH / (place[:, 0].max() + 1)) ** 2 for place in places))
    for axes, graph, place in zip(panels[:, 0], graphs, places, strict=True):
        _draw_graph(axes, graph, place, largest, colours)
        axes.set_title(f"{graph.name}: {graph.num_ops} ops, {len(graph.edges)} deps")
    legend_outside(figure, _kind_keys(colours) + _size_keys(largest), columns=KINDS - 1)
    facts = {"slowest": {graph.name: _slowest(graph) for graph in graphs}}
    return Drawing(figure, f"{caption} {SLOWEST}", facts, left_out=left_out or {})


def draw_op_histograms(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Histograms: one row per graph; columns for run times, memory and dep sizes on logarithmic axes."""
    graphs, units = graphs_shown(tables, spec), (_unit(tables, spec)["unit"], "bytes", "bytes")
    values = [[graph.cost, graph.memory, graph.dep_size] for graph in graphs]
    bins = [_log_bins([row[column] for row in values]) for column in range(len(COLUMNS))]

    def panel(axes: Axes, place: tuple[int, int]) -> None:
        row, column = place
        _histogram(axes, values[row][column], bins[column], theme.colour(column))
        axes.set_ylabel(("", "ops", "deps")[column] or f"{graphs[row].name}\nops")
        if row == len(graphs) - 1:
            axes.set_xlabel(f"{COLUMNS[column]} ({units[column]})")
            axes.set_xscale("log")
            axes.minorticks_off()

    titles = [f"{letter}  {what}" for letter, what in zip("abc", COLUMNS, strict=True)] + [""] * len(values) * 3
    groups = zip(titles, product(range(len(graphs)), range(len(COLUMNS))), strict=False)
    figure, _ = facets(groups, panel, Grid(3, 19, 16, subplots={"sharex": "col"}), keys=())
    free = [{"graph": g.name, "free": int((g.cost == 0).sum()), "ops": g.num_ops} for g in graphs]
    caption = (
        "Dashed: medians of those shown. Ops that cost nothing have no place on a logarithmic axis: "
        f"{{free:{{free}} of {{ops}} in {{graph}}}}. {UNIT}"
    )
    return Drawing(figure, caption, {"free": free, **_unit(tables, spec)}, left_out=after_the_first(spec))


def draw_graph_table(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One row per graph: ops, deps, sequential time, largest op, memory, depth."""
    settings = settings_of(spec, GraphTableSettings)
    table, unit = statistics_table(graphs_shown(tables, spec), settings.training_steps), _unit(tables, spec)["unit"]
    columns = {
        "ops": table["num_ops"].map("{:d}".format),
        "deps": table["num_deps"].map("{:d}".format),
        f"time of {settings.training_steps} steps ({unit})": table["sequential_jct"].map("{:,.1f}".format),
        f"largest op ({unit})": table["max_cost"].map("{:,.2f}".format),
        "memory (GB)": (table["total_memory"] / 1e9).map("{:,.2f}".format),
        "largest memory (MB)": (table["max_memory"] / 1e6).map("{:,.1f}".format),
        "depth": table["depth"].map("{:d}".format),
    }
    header = ["", *(heading.replace(" (", "\n(").replace("largest ", "largest\n") for heading in columns)]
    figure = text_table([list(row) for row in zip(table["name"], *columns.values(), strict=True)], header)
    return Drawing(figure, UNIT, _unit(tables, spec), left_out=after_the_first(spec))


def draw_betas(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One line per scenario: the density of beta. Settings: BetasSettings."""
    settings = settings_of(spec, BetasSettings)
    names = spec.scenarios or tuple(sorted(tables.scenarios))
    figure, axes = theme.new_figure(width=0.62, height_mm=58)
    betas: dict[str, dict[str, float]] = {}
    drawn = set()
    for name in names:
        for number, found in enumerate(_betas(tables.scenarios, name, spec)):
            label = settings.labels.get(name, name.replace("_", " ")) + (f" ({number + 1})" if number else "")
            same = found.values.tobytes() + found.probabilities.tobytes()
            if same in drawn:
                continue  # scenarios that differ in something else
            drawn.add(same)
            edges = _edges(found.values)
            density, colour = found.probabilities / np.diff(edges), theme.colour(len(betas))
            axes.stairs(density, edges, color=colour, label=label, linewidth=1.2)
            betas[label] = {"mean": found.mean, "std": found.std}
    axes.set(xlabel="beta: accepted share of the sequential time", ylabel="density", xlim=(0, None), ylim=(0, None))
    axes.grid(True, axis="y")
    legend_outside(figure)
    return Drawing(figure, "Mean (standard deviation): {betas:{name} {mean:.3f} ({std:.3f})}.", {"betas": betas})


def graphs_shown(tables: StudyTables, spec: FigureSpec) -> list[TrainingGraph]:
    """Return the first graphs of the figure's first scenario."""
    scenario = _unit(tables, spec)["scenario"]
    joined = not tables.scenarios[scenario].get("legacy", {}).get("sinks_unjoined", False)
    return [training_graph(graph, join_sinks=joined) for graph in read_graphs(tables.inputs[scenario][GRAPHS])[:MOST]]


def _unit(tables: StudyTables, spec: FigureSpec) -> dict[str, str]:
    """Return the values of UNIT: the scenario whose graphs are shown, and the unit of the graphs' times in it."""
    scenario = (spec.scenarios or sorted(tables.scenarios))[0]
    return {"scenario": scenario, "unit": str(tables.scenarios[scenario].get("jobs", {}).get("time_unit", "s"))}


def layers(graph: TrainingGraph) -> np.ndarray:
    """Return float64[n, 2], the positions of forward ops: longest path to each, and height within its layer."""
    count = graph.num_forward
    parents: list[list[int]] = [[] for _ in range(count)]
    for source, destination in graph.edges.tolist():
        if destination < count:
            parents[destination].append(source)
    layer, before = np.zeros(count), None
    while before is None or not np.array_equal(before, layer):  # ids need not rise along edges
        before = layer.copy()
        for op in np.argsort(graph.ids[:count]).tolist():
            layer[op] = max((layer[parent] + 1 for parent in parents[op]), default=0)
    heights = np.zeros(count)
    for value in np.unique(layer):
        beside = np.flatnonzero(layer == value)
        # so that fewer edges cross
        above = [np.mean([heights[parent] for parent in parents[op]] or [0.0]) for op in beside.tolist()]
        heights[beside[np.lexsort((graph.ids[beside], above))]] = np.arange(len(beside)) - (len(beside) - 1) / 2
    return np.column_stack([layer, heights])


def kind_colours(graphs: Sequence[TrainingGraph]) -> dict[str, str]:
    """Return a colour for each of the kinds of ops that take most time in these graphs, by name."""
    shares: Counter[str] = Counter()
    for graph in graphs:
        for kind, cost in zip(graph.kinds, (graph.cost / max(graph.step_time, 1e-300)).tolist(), strict=True):
            shares[kind] += cost
    most = [kind for kind in sorted(sorted(shares), key=lambda kind: -shares[kind])[:KINDS] if shares[kind] > 0]
    return {kind: theme.colour(number) for number, kind in enumerate(sorted(most))}


def dot_sizes(shares: np.ndarray, largest: float) -> np.ndarray:
    """Return the areas of dots (points squared) of ops by their share of the time of the graph's slowest op.

    Areas grow with the square root of the share, because the slowest op takes a thousand times as long as most others.
    """
    return SMALLEST_DOT + largest * np.sqrt(shares)


def _draw_graph(
    axes: Axes, graph: TrainingGraph, places: np.ndarray, largest: float, colours: Mapping[str, str]
) -> None:
    wide = max(1.0, 2 * np.abs(places[:, 1]).max())
    forward = np.column_stack([places[:, 0], -BACKWARD / 2 + LANE * places[:, 1] / wide])
    where = np.concatenate([forward, forward * [1, -1]])
    curves = []
    for source, destination in graph.edges.tolist():
        (x0, y0), (x1, y1) = where[source], where[destination]
        if abs(x1 - x0) > 1:  # a shortcut is curved, so that it does not cross the ops in between
            bow = np.sign(y0) * (LANE * 0.35 + 0.02 * min(abs(x1 - x0), 12))
            curves.append(Curve([(x0, y0), (x0, y0 + bow), (x1, y1 + bow), (x1, y1)], [1, 4, 4, 4]))
        else:
            curves.append(Curve([(x0, y0), (x1, y1)]))
    axes.add_collection(PathCollection(curves, facecolors="none", edgecolors=GRID, linewidths=0.7, zorder=1))
    sizes = dot_sizes(graph.cost / max(float(graph.cost.max()), 1e-300), largest)
    inks = [colours.get(kind, MUTED) for kind in graph.kinds]
    axes.scatter(where[:, 0], where[:, 1], s=sizes, c=inks, alpha=0.85, linewidths=0.3, edgecolors="white", zorder=2)
    axes.set(xlim=(-1.5, places[:, 0].max() + 1.5), ylim=(-1.05, 1.05))
    axes.set_yticks([0.5, -0.5], ["forward", "backward"])
    axes.tick_params(length=0, labelbottom=False)
    axes.spines[:].set_visible(False)


def _kind_keys(colours: Mapping[str, str]) -> list[Any]:
    return [key(kind, markersize=4, color=colour, **DOT) for kind, colour in [*colours.items(), ("other", MUTED)]]


def _size_keys(largest: float) -> list[Any]:
    sizes = dot_sizes(np.array(SHARES), largest) ** 0.5
    labels = [number_text(share, "{:.0%}") for share in SHARES]
    labels[-1] += " of the time of the graph's slowest op"
    look: dict[str, Any] = {**DOT, "color": MUTED, "markeredgewidth": 0.3, "markeredgecolor": "white"}
    return [key(label, markersize=size, **look) for size, label in zip(sizes, labels, strict=True)]


def _slowest(graph: TrainingGraph) -> dict[str, Any]:
    """Return the kind and number of the op that takes most time, and its share of the time of a step."""
    slowest = int(graph.cost.argmax())
    share = graph.cost[slowest] / graph.step_time if graph.step_time else 0.0
    return {"kind": graph.kinds[slowest], "op": int(graph.ids[slowest]), "share": float(share)}


def _log_bins(columns: Sequence[np.ndarray]) -> np.ndarray:
    positive = np.concatenate([values[values > 0] for values in columns])
    if not positive.size:
        return np.geomspace(1, 10, BINS)
    low, high = positive.min() * 0.9, positive.max() * 1.1
    return np.geomspace(low, high, BINS + 1)


def _histogram(axes: Axes, values: np.ndarray, bins: np.ndarray, colour: str) -> None:
    shown = values[values > 0]
    axes.hist(shown, bins=bins.tolist(), color=colour, linewidth=0)
    if shown.size:
        axes.axvline(np.median(shown), color=INK, linewidth=0.8, linestyle="--")
    locator: Any = axes.yaxis.get_major_locator()
    locator.set_params(integer=True, nbins=3)


def _betas(scenarios: Mapping[str, Mapping[str, Any]], name: str, spec: FigureSpec) -> tuple[Any, ...]:
    values = scenarios.get(name, {})
    beta = values.get("jobs", {}).get("beta")
    if beta is None:
        what = f"scenario '{name}' has no beta"
        raise UserError(what, where=f"figure {spec.name}: scenarios", expected="scenarios of this study")
    return of_scenario(validate(DistributionSettings, beta), int(values.get("seed", 0)), "beta")


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the edges of bars around values: halfway between neighbours; outermost bars are as wide as the next."""
    if len(values) == 1:
        return values[0] + np.array([-0.01, 0.01])
    inner = (values[1:] + values[:-1]) / 2
    return np.concatenate([[2 * values[0] - inner[0]], inner, [2 * values[-1] - inner[-1]]])
