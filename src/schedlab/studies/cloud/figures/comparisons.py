"""Figures of learners and searches compared: ablations, weights, ways to begin learning, searches at equal budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.captions import filled
from schedlab.figures.drawing import nothing_to_draw, settings_of
from schedlab.figures.panels.axes import log_ticks
from schedlab.figures.panels.bars import grouped_bars
from schedlab.figures.panels.cells import text_table
from schedlab.figures.panels.curves import Curve, learning_curve
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import policy_of, select
from schedlab.figures.theme import INK, Style
from schedlab.studies.cloud.figures import data
from schedlab.studies.cloud.figures.settings import SearchesSettings, VariantsSettings

LEAST = 0.1  # where the axis begins, trainings; policies that know the model need none and are drawn here
SHARE = 0.95  # share of a gain at which it counts as reached
COLUMNS = {  # measure -> heading and decimals
    "regret": ("regret", 3),
    "time": ("time (s)", 0),
    "cost": ("cost ($)", 3),
    "sla_met": ("levels met (of 6)", 1),
    "severity": ("severity", 3),
}
WEIGHED = {"regret": "regret", "time": "training time (s)", "cost": "cost ($)", "severity": "severity of violations"}


def draw_ablations(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a table with a row for each variant of a learner and a column for each measure: the mean over preferences
    and seeds, and the range over seeds. Settings: VariantsSettings.
    """
    settings = settings_of(spec, VariantsSettings)
    found = _variants(tables, spec, settings)
    if not found:
        return nothing_to_draw(data.NOT_LEARNED)
    cells, regrets = [], dict[str, Any]()
    for label, scenario in found.items():
        policy, cell = settings.variants[label], [label]
        for metric, (_, decimals) in COLUMNS.items():
            values = data.mean_and_range(seed_means(tables, scenario, policy, metric, settings.preferences))
            number = f":.{decimals}f}}"
            cell.append(filled(f"{{mean{number}[\n({{low{number} to {{high{number})]", values))
            regrets[label] = values["mean"] if metric == "regret" else regrets[label]
        cells.append(cell)
    figure = text_table(cells, ["", *(heading for heading, _ in COLUMNS.values())])
    missing = [label for label in settings.variants if label not in found]
    caption = "Regret: {regrets:{name} {value:.3f}}. [Not learned at this scale: {missing}.]"
    return Drawing(figure, caption, {"regrets": regrets, "missing": missing})


def draw_weights(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw for each measure and preference a bar for each variant with the range over seeds (VariantsSettings)."""
    settings = settings_of(spec, VariantsSettings)
    found = _variants(tables, spec, settings)
    if not found:
        return nothing_to_draw(data.NOT_LEARNED)
    colours, means = {label: theme.colour(place) for place, label in enumerate(found)}, {}

    def panel(axes: Axes, metric: str) -> None:
        scores = {}
        for label, scenario in found.items():
            table = data.preference_scores(tables, scenario, settings.variants[label], metric)
            scores[label] = table[list(settings.preferences)]
        groups = {name: {label: table[name] for label, table in scores.items()} for name in settings.preferences}
        grouped_bars(axes, groups, colours)
        means[metric] = {label: float(table.to_numpy().mean()) for label, table in scores.items()}

    groups = [(title, metric) for metric, title in WEIGHED.items()]
    figure, _ = facets(groups, panel, Grid(2, 43, 10, lines="y", zero=True), columns=len(found))
    both = "regret: {regret:{name} {value:.3f}}; severity: {severity:{name} {value:.3f}}"
    return Drawing(figure, f"Mean of preferences and seeds: {both}.", means)


def draw_beginnings(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each preference and a line for each beginning: the objective of the most probable actions over
    episodes. Settings: VariantsSettings. The first variant is the cold start; the others are compared with its final
    gain over random actions.
    """
    settings = settings_of(spec, VariantsSettings)
    curves = {label: tables.curves[tables.curves["policy"] == policy] for label, policy in settings.variants.items()}
    curves = {label: rows for label, rows in curves.items() if len(rows)}
    cold = next(iter(settings.variants))
    scenario = data.scored_in(tables, spec, settings.variants[cold])
    if cold not in curves or scenario is None:
        return nothing_to_draw(data.NOT_LEARNED)
    objectives = data.oracle_of(tables, scenario)["preferences"]
    first, last = (float(end(end(rows["episode"]) for rows in curves.values())) for end in (min, max))

    def panel(axes: Axes, preference: str) -> None:
        for number, (label, rows) in enumerate(curves.items()):
            style = Style(theme.colour(number), "o", theme.DASHES[number % len(theme.DASHES)])
            learning_curve(axes, Curve(_reached_with(rows, preference), style), x="episode", label=label)
        axes.axhline(objectives[preference]["random"], color=INK, linewidth=0.7, linestyle=":", label="random actions")
        axes.axhline(objectives[preference]["dynamic"], color=INK, linewidth=0.7, label="optimal plan")
        axes.set_xscale("log")
        log_ticks(axes.xaxis, first, last)

    groups = [(preference, preference) for preference in settings.preferences]
    figure, _ = facets(groups, panel, Grid(2, 46, 20, "episodes", "objective"), columns=5)
    randoms = {preference: objectives[preference]["random"] for preference in settings.preferences}
    found = {label: _reached(speed(rows, curves[cold], randoms)) for label, rows in curves.items()}
    one = "{name} [{episodes:,.0f}][{unreached}][ (and {missed} of {courses} courses never)]"
    caption = f"Episodes to {{share:.0%}} of the final gain over random actions of {{cold}}: {{found:{one}}}."
    return Drawing(figure, caption, {"found": found, "cold": cold, "share": SHARE})


def draw_trainings(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each scenario of several jobs and a line for each search: the share of jobs (and seeds) whose
    allocation is found, by trainings of the job. Settings: SearchesSettings.
    """
    settings = settings_of(spec, SearchesSettings)
    scores = tables.scores
    of_jobs = set(scores.loc[scores["metric"] == "found", "scenario"])
    shown = [name for name in spec.scenarios if name in of_jobs]
    if not shown:
        return nothing_to_draw("no scenario of several jobs is scored at this scale")
    most = float(scores.loc[scores["metric"] == "trainings_used", "value"].max())

    def panel(axes: Axes, scenario: str) -> dict[str, Any]:
        found = {}
        for place, (label, name) in enumerate(settings.searches.items()):
            policy = policy_of(scores, name, scenario) or name
            rows = select(scores, scenario=scenario, policy=policy, split="test")
            if not len(rows):
                continue
            needed = found_after(rows)
            found[label] = len(needed[np.isfinite(needed)]) / len(needed)
            line = {"color": theme.colour(place), "linestyle": theme.DASHES[place % len(theme.DASHES)]}
            steps = np.sort(np.maximum(needed[np.isfinite(needed)], LEAST))
            x = np.concatenate([[LEAST], steps, [max(most, LEAST)]])
            y = np.concatenate([[0.0], np.arange(1, len(steps) + 1), [len(steps)]]) / len(needed)
            axes.step(x, y, where="post", label=label, **line)
        axes.set_xscale("log")
        axes.set_ylim(-0.03, 1.03)
        return found

    grid = Grid(3, 55, 22, "trainings of the job", "share of jobs whose allocation is found", lines="y")
    figure, shares = facets([(name.replace("_", " "), name) for name in shown], panel, grid, columns=4)
    caption = "Share found in the end: {found:{name}: {shares:{name} {value:.2f}}}."
    found = {name: {"shares": values} for name, values in zip(shown, shares, strict=True)}
    left_out = {name: "it is not scored at this scale" for name in spec.scenarios if name not in shown}
    return Drawing(figure, caption, {"found": found}, left_out=left_out)


def episodes_until(
    points: Sequence[tuple[float, float]], random: float, final: float, share: float = SHARE
) -> float | None:
    """Return the number of episodes after which the objective has first fallen by `share` of the difference between
    random actions and the final objective; None if it never has.

    points: (episodes, objective), by rising episodes
    """
    enough = random - share * (random - final)
    return next((episodes for episodes, objective in points if objective <= enough), None)


def speed(rows: pd.DataFrame, cold: pd.DataFrame, randoms: dict[str, float]) -> list[float | None]:
    """Return, for each seed and preference, the number of episodes until 95 % of the final gain of the cold start with
    the same seed (None: never).

    rows, cold  points of the curves of two policies
    randoms     preference -> objective of random actions
    """
    found = []
    for seed in sorted(set(rows["policy_seed"]) & set(cold["policy_seed"])):
        for preference, random in randoms.items():
            own, of_cold = (_points(each, seed, preference) for each in (rows, cold))
            found.append(episodes_until(own, random, of_cold[-1][1]) if of_cold else None)
    return found


def seed_means(
    tables: StudyTables, scenario: str, policy: str, metric: str, preferences: tuple[str, ...]
) -> np.ndarray:
    """Return the mean over preferences for each seed, (seeds,)."""
    scores = data.preference_scores(tables, scenario, policy, metric)
    return scores[[name for name in preferences if name in scores]].mean(axis=1).to_numpy()


def found_after(rows: pd.DataFrame) -> np.ndarray:
    """Return, for each job and seed, the trainings after which the allocation was found; infinite if never."""
    table = rows.pivot_table(index=["policy_seed", "unit"], columns="metric", values="value", aggfunc="mean")
    needed = table["trainings_needed"] if "trainings_needed" in table else pd.Series(np.inf, index=table.index)
    return np.where(table["found"] > 0, needed, np.inf)


def _variants(tables: StudyTables, spec: FigureSpec, settings: VariantsSettings) -> dict[str, str]:
    """Return label of a variant -> the scenario in which it was scored, for the variants that were scored."""
    found = {label: data.scored_in(tables, spec, policy) for label, policy in settings.variants.items()}
    return {label: scenario for label, scenario in found.items() if scenario}


def _reached_with(rows: pd.DataFrame, preference: str) -> pd.DataFrame:
    """Return the points of the curves at which the most probable actions were evaluated with a preference; for a policy
    without such points, those of its training episodes.
    """
    found = select(rows, metric="objective", preference=preference)
    greedy = found[found["acting"] == "greedy"]
    return greedy if len(greedy) else found


def _points(rows: pd.DataFrame, seed: int, preference: str) -> list[tuple[float, float]]:
    rows = _reached_with(rows[rows["policy_seed"] == seed], preference).sort_values("episode")
    return list(zip(rows["episode"].astype(float), rows["value"].astype(float), strict=True))


def _reached(found: list[float | None]) -> dict[str, object]:
    """Return the mean number of episodes over the runs that reach the share, and the number of runs that do not."""
    reached = [value for value in found if value is not None]
    missed = len(found) - len(reached)
    return {
        "episodes": float(np.mean(reached)) if reached else None,
        "unreached": "" if reached else "not reached",
        "missed": missed if reached and missed else None,
        "courses": len(found),
    }
