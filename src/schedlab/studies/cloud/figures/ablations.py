"""Figures of a learner's parts: ablations, fixed or adapted weights, learning from three beginnings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, Style
from schedlab.studies.cloud.figures.common import nothing, preference_scores
from schedlab.studies.cloud.figures.settings import VariantsSettings

if TYPE_CHECKING:
    import pandas as pd


def episodes_until(
    points: Sequence[tuple[float, float]], random: float, final: float, share: float = 0.95
) -> float | None:
    """Return the episodes after which the objective first is `share` of the way from random actions' down to the final
    one; None: never. points: (episodes, objective), by rising episodes.
    """
    enough = random - share * (random - final)
    return next((episodes for episodes, objective in points if objective <= enough), None)


COLUMNS = {
    "regret": "regret",
    "time": "time (s)",
    "cost": "cost ($)",
    "sla_met": "levels met (of 6)",
    "severity": "severity",
}
WEIGHED = {"regret": "regret", "time": "training time (s)", "cost": "cost ($)", "severity": "severity of violations"}
CURVE = "greedy objective "  # of the learner `reinforce`, with the preference behind it


def draw_ablations(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A table: a row a variant of a learner, a column a measure; mean of preferences and seeds, and the range of the
    seeds. Settings: VariantsSettings.
    """
    settings = helpers.settings_of(spec, VariantsSettings)
    found = {label: _scenario_of(tables, spec, policy) for label, policy in settings.variants.items()}
    shown = {label: scenario for label, scenario in found.items() if scenario}
    if not shown:
        return nothing(spec, "no policy is learned at this scale")
    cells, told = [], []
    for label, scenario in shown.items():
        scores = {
            metric: seed_means(tables, scenario, settings.variants[label], metric, settings.preferences)
            for metric in COLUMNS
        }
        cells.append([label, *(_range_text(metric, values) for metric, values in scores.items())])
        told.append(f"{label} {helpers.number_text(scores['regret'].mean(), '{:.3f}')}")
    figure, axes = theme.new_figure(height_mm=14 + 11 * (len(cells) + 1))
    helpers.text_table(axes, cells, ["", *COLUMNS.values()], row_height=2.6)
    missing = [label for label in settings.variants if label not in shown]
    left_out = f" Not learned at this scale: {', '.join(missing)}." if missing else ""
    return Drawing(figure, f"{spec.caption} Regret: {'; '.join(told)}.{left_out}")


def draw_weights(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a measure, a group a preference, a bar a variant, a line the seeds' range (VariantsSettings)."""
    settings = helpers.settings_of(spec, VariantsSettings)
    shown = {
        label: scenario
        for label, policy in settings.variants.items()
        if (scenario := _scenario_of(tables, spec, policy))
    }
    if not shown:
        return nothing(spec, "no policy is learned at this scale")
    figure, grid = theme.new_figure(2, 2, height_mm=96)
    width, told = 0.8 / len(shown), []
    for axes, (metric, title) in zip(grid.ravel(), WEIGHED.items(), strict=True):
        for place, (label, scenario) in enumerate(shown.items()):
            scores = preference_scores(tables, scenario, settings.variants[label], metric)
            for group, preference in enumerate(settings.preferences):
                heights, x = scores[preference].to_numpy(), group - 0.4 + (place + 0.5) * width
                axes.bar(x, heights.mean(), width * 0.92, color=theme.colour(place), label=label)
                axes.plot([x, x], [heights.min(), heights.max()], color=INK, linewidth=0.8)
            if metric in ("regret", "severity"):
                mean = float(scores[list(settings.preferences)].to_numpy().mean())
                told.append(f"{metric} {label} {helpers.number_text(mean, '{:.3f}')}")
        axes.set_title(title)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(settings.preferences)), list(settings.preferences))
        axes.tick_params(axis="x", length=0)
        axes.grid(True, axis="y")
    helpers.legend_outside(figure, columns=len(shown))
    return Drawing(figure, f"{spec.caption} Mean of preferences and seeds: {'; '.join(told)}.")


def draw_beginnings(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a preference, a line a beginning: the objective of the most probable actions over episodes. Settings:
    VariantsSettings. The first variant is the cold start, whose final gain over random actions the others are counted
    against.
    """
    settings = helpers.settings_of(spec, VariantsSettings)
    curves = {
        label: tables.curves[tables.curves["policy"] == policy]
        for label, policy in settings.variants.items()
        if len(tables.curves)
    }
    curves = {label: rows for label, rows in curves.items() if len(rows)}
    cold = next(iter(settings.variants))
    scenario = _scenario_of(tables, spec, settings.variants[cold])
    if cold not in curves or scenario is None:
        return nothing(spec, "no policy is learned at this scale")
    oracle = json.loads(tables.inputs[scenario]["oracle"].read_text(encoding="utf-8"))["preferences"]
    figure, lines = theme.new_grid(len(settings.preferences), 2, row_mm=46, around_mm=20)
    first, last = (float(end(end(rows["episode"]) for rows in curves.values())) for end in (min, max))
    for axes, preference in zip([axes for line in lines for axes in line], settings.preferences, strict=True):
        for number, (label, rows) in enumerate(curves.items()):
            style = Style(theme.colour(number), "o", theme.DASHES[number % len(theme.DASHES)])
            helpers.learning_curve(axes, rows[rows["metric"] == CURVE + preference], style, x="episode", label=label)
        axes.axhline(oracle[preference]["random"], color=INK, linewidth=0.7, linestyle=":", label="random actions")
        axes.axhline(oracle[preference]["dynamic"], color=INK, linewidth=0.7, label="best plan")
        axes.set_xscale("log")
        helpers.log_ticks(axes.xaxis, first, last)
        axes.set_title(preference)
    for line in lines:
        line[0].set_ylabel("objective")
    helpers.shared_xlabel(lines[-1], "episodes")
    helpers.legend_outside(figure, columns=5)
    randoms = {preference: oracle[preference]["random"] for preference in settings.preferences}
    told = [f"{label} {_steps_text(speed(rows, curves[cold], randoms))}" for label, rows in curves.items()]
    return Drawing(
        figure,
        f"{spec.caption} Episodes to 95 % of the {cold} start's final gain over random actions: {'; '.join(told)}.",
    )


def speed(rows: pd.DataFrame, cold: pd.DataFrame, randoms: dict[str, float]) -> list[float | None]:
    """Return for each seed and preference the episodes until 95 % of the final gain of the cold start with the same
    seed. rows, cold: points of the curves table of two policies; randoms: preference -> objective of random actions.
    None: never.
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
    """Return the mean of preferences of each seed, (seeds,)."""
    scores = preference_scores(tables, scenario, policy, metric)
    return scores[[name for name in preferences if name in scores]].mean(axis=1).to_numpy()


def _points(rows: pd.DataFrame, seed: int, preference: str) -> list[tuple[float, float]]:
    rows = rows[(rows["policy_seed"] == seed) & (rows["metric"] == CURVE + preference)].sort_values("episode")
    return list(zip(rows["episode"].astype(float), rows["value"].astype(float), strict=True))


def _steps_text(found: list[float | None]) -> str:
    reached = [value for value in found if value is not None]
    if not reached:
        return "not reached"
    missed = len(found) - len(reached)
    return f"{np.mean(reached):,.0f}" + (f" (and {missed} of {len(found)} courses never)" if missed else "")


def _scenario_of(tables: StudyTables, spec: FigureSpec, policy: str) -> str | None:
    """The first scenario of the figure in which a policy was scored."""
    return next((name for name in spec.scenarios if len(preference_scores(tables, name, policy, "time"))), None)


def _range_text(metric: str, values: np.ndarray) -> str:
    if not len(values):
        return "\N{EN DASH}"
    form = {"time": "{:.0f}", "sla_met": "{:.1f}"}.get(metric, "{:.3f}")
    mean = helpers.number_text(float(values.mean()), form)
    ends = [helpers.number_text(float(end), form) for end in (values.min(), values.max())]
    # beside each other they are wider than a page
    return mean if ends[0] == ends[1] else f"{mean}\n({ends[0]} to {ends[1]})"
