"""The figure of time against cost: the front of all plans, constant allocations, rules and learned policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import nothing_to_draw, settings_of
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.cloud.figures import data
from schedlab.studies.cloud.figures.settings import ShownSettings
from schedlab.studies.cloud.rules.pareto import attainment_surface, measures

RULES = {"static_start": "s", "static_max": "^", "static_min": "v", "threshold": "X"}
ATTAINED = ((0.5, "-", "attained by half of the seeds"), (1.0, ":", "attained by all seeds"))
RULE_RANGE = 3.0  # a rule farther than this many ranges of the front is left out, and named in the caption
CAPTION = (
    "Learned policies, means over seeds: hypervolume as a share of the front's (smallest to largest seed; that of the "
    "optimal plans for the same preferences), IGD+, additive epsilon, loss of utility: {fronts:{name} "
    "{hypervolume:.2f} ([{least:.2f} to {most:.2f}, ]{optimal:.2f}), {igd_plus:.3f}, {additive_epsilon:.2f}, "
    "{utility:.3f}[, out of view: {far}]}."
)


def draw_pareto(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each workload with a front: time against cost. The caption has the measures (ShownSettings)."""
    settings = settings_of(spec, ShownSettings)
    learned = [n for n in spec.scenarios if len(data.preference_scores(tables, n, settings.learned, "time"))]
    oracles = {name: data.oracle_of(tables, name) for name in learned}
    shown = [name for name in learned if "front" in oracles[name]]
    if not shown:
        return nothing_to_draw("no policy is learned at this scale where there is a front")
    many = len(settings.preferences) > len(data.PREFERENCES)

    def panel(axes: Axes, scenario: str) -> dict[str, Any]:
        front, constant = (np.array(oracles[scenario][name]) for name in ("front", "static_front"))
        _stair(axes, constant, color=MUTED, linestyle="--", label="front of constant allocations")
        _stair(axes, front, color=INK, linewidth=1.1, label="front of all plans")
        far = _draw_rules(axes, tables, scenario, settings.preferences[0], front)
        found = points_by_seed(tables, scenario, settings.learned, settings.preferences)
        optimal = points_by_seed(tables, scenario, "oracle_dynamic", settings.preferences)[0]
        for share, dashes, label in ATTAINED:
            colour = theme.colour(len(data.PREFERENCES))
            _stair(axes, attainment_surface(found, share), color=colour, linestyle=dashes, label=label)
        (_draw_many if many else _draw_few)(axes, found, settings.preferences)
        label = "optimum for a weighted sum" if many else "optimum for a preference"
        axes.plot(*optimal.T, "+", color=INK, markersize=6, markeredgewidth=0.8, label=label, zorder=5)
        axes.margins(0.08)
        seeds = [measures(points, front) for points in found]
        return {**_measured(seeds, measures(optimal, front)), "far": far}

    grid = Grid(2, 62, 18, "training time (s)", "cost ($)")
    figure, measured = facets([(name, name) for name in shown], panel, grid, columns=3 if many else 4)
    fronts = dict(zip(shown, measured, strict=True))
    missing = data.left_out(tables, spec, learned, settings.learned)
    missing |= {name: "no front" for name in learned if name not in shown}
    return Drawing(figure, CAPTION, {"fronts": fronts}, left_out=missing)


def points_by_seed(tables: StudyTables, scenario: str, policy: str, preferences: Sequence[str]) -> list[np.ndarray]:
    """Return for each seed the time and cost of a policy for each preference, (preferences, 2)."""
    found = [data.preference_scores(tables, scenario, policy, metric) for metric in ("time", "cost")]
    scores = [table[list(preferences)].to_numpy() for table in found]
    return list(np.stack(scores, axis=-1))


def _stair(axes: Axes, corners: np.ndarray, **look: Any) -> None:
    """Draw a staircase through the corners (n, 2) of a front or surface."""
    axes.step(corners[:, 0], corners[:, 1], where="post", **{"linewidth": 0.9, **look})


def _draw_rules(axes: Axes, tables: StudyTables, scenario: str, preference: str, front: np.ndarray) -> list[str]:
    """Draw a grey mark for each rule that the scenario compares; return the rules that are too far from the front."""
    limits = front.min(axis=0) + RULE_RANGE * np.maximum(np.ptp(front, axis=0), 0.15 * front.min(axis=0))
    far = []
    for rule, marker in RULES.items():
        if not len(data.preference_scores(tables, scenario, rule, "time")):
            continue
        point = np.mean(points_by_seed(tables, scenario, rule, [preference]), axis=0)[0]
        if (point > limits).any():
            far.append(rule)
        else:
            axes.plot(*point, marker, color=theme.RULE_GREYS[1], markersize=5, label=rule, zorder=3)
    return far


def _draw_few(axes: Axes, found: Sequence[np.ndarray], preferences: Sequence[str]) -> None:
    """Draw the points of each preference in its colour, as rings, because many policies and seeds coincide."""
    for number, preference in enumerate(preferences):
        ring: dict[str, Any] = {"markeredgecolor": data.preference_colour(preference, number), "markeredgewidth": 1.6}
        points, label = np.array([of_seed[number] for of_seed in found]), f"learned, {preference}"
        axes.plot(*points.T, "o", color="none", label=label, zorder=4, markersize=12 - 3 * number, **ring)


def _draw_many(axes: Axes, found: Sequence[np.ndarray], preferences: Sequence[str]) -> None:
    """Draw the points of all preferences in one colour, because a legend of so many would not help."""
    ring: dict[str, Any] = {"markeredgecolor": theme.colour(len(data.PREFERENCES)), "markeredgewidth": 0.9}
    label = f"learned for {len(preferences)} preferences"
    axes.plot(*np.concatenate(found).T, "o", color="none", label=label, zorder=4, markersize=5, **ring)


def _measured(seeds: Sequence[Mapping[str, float]], optimal: Mapping[str, float]) -> dict[str, float | None]:
    """Return the measures over a policy's seeds, and the hypervolume of the optimal plans."""
    volumes = [found["hypervolume"] for found in seeds]
    ends = (min(volumes), max(volumes)) if len(seeds) > 1 else (None, None)
    means = {name: float(np.mean([found[name] for found in seeds])) for name in optimal}
    return {**means, "least": ends[0], "most": ends[1], "optimal": optimal["hypervolume"]}
