"""The figure of time against cost: the front of all plans, constant allocations, rules and learned policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.cloud.figures.common import (
    PREFERENCES,
    learned_name,
    left_out,
    nothing,
    preference_colour,
    preference_scores,
)
from schedlab.studies.cloud.figures.settings import ShownSettings
from schedlab.studies.cloud.rules.pareto import attainment_surface, measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RULES = {"static_start": "s", "static_max": "^", "static_min": "v", "threshold": "X"}
ATTAINED = ((0.5, "-", "attained by half of the seeds"), (1.0, ":", "attained by all seeds"))
RULE_RANGE = 3.0  # a rule farther than this many ranges of the front is left out, and named in the caption


def draw_pareto(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a workload with a front: time against cost; the caption holds the measures (ShownSettings)."""
    settings = helpers.settings_of(spec, ShownSettings)
    learned = [
        name
        for name in spec.scenarios
        if len(preference_scores(tables, name, learned_name(settings.learned, name), "time"))
    ]
    oracles = {name: json.loads(tables.inputs[name]["oracle"].read_text(encoding="utf-8")) for name in learned}
    shown = [name for name in learned if "front" in oracles[name]]
    if not shown:
        return nothing(spec, "no policy is learned at this scale where there is a front")
    figure, lines = theme.new_grid(len(shown), 2, row_mm=62, around_mm=18)
    told, many = [], len(settings.preferences) > len(PREFERENCES)
    for axes, scenario in zip([axes for line in lines for axes in line], shown, strict=True):
        front, static = (np.array(oracles[scenario][name]) for name in ("front", "static_front"))
        axes.step(
            static[:, 0],
            static[:, 1],
            where="post",
            color=MUTED,
            linewidth=0.9,
            linestyle="--",
            label="best constant allocations",
        )
        axes.step(front[:, 0], front[:, 1], where="post", color=INK, linewidth=1.1, label="front of all plans")
        far, limits = [], front.min(axis=0) + RULE_RANGE * np.maximum(np.ptp(front, axis=0), 0.15 * front.min(axis=0))
        for rule, marker in _rules_of(tables, scenario):
            point = _point(tables, scenario, rule, settings.preferences[0])
            if (point > limits).any():
                far.append(rule)
            else:
                axes.plot(*point, marker, color=theme.RULE_GREYS[1], markersize=5, label=rule, zorder=3)
        found = points_by_seed(tables, scenario, learned_name(settings.learned, scenario), settings.preferences)
        best = points_by_seed(tables, scenario, "oracle_dynamic", settings.preferences)[0]
        for share, style, label in ATTAINED:
            _draw_attained(axes, attainment_surface(found, share), linestyle=style, label=label)
        (_draw_many if many else _draw_few)(axes, found, best, settings.preferences)
        axes.set_title(scenario)
        axes.margins(0.08)
        far_text = f"; out of view: {', '.join(far)}" if far else ""
        measured = _told_measures([measures(points, front) for points in found], measures(best, front))
        told.append(f"{scenario} {measured}{far_text}")
    for line in lines:
        line[0].set_ylabel("cost ($)")
    helpers.shared_xlabel(lines[-1], "training time (s)")
    helpers.legend_outside(figure, columns=3 if many else 4)
    names = "hypervolume as a share of the front's (seeds from, to; of the best plans for the same preferences)"
    more = "IGD+, additive epsilon, loss of utility, means of seeds"
    missing = left_out(tables, spec, learned, settings.learned) | {
        name: "no front" for name in learned if name not in shown
    }
    return Drawing(figure, f"{spec.caption} Learned policies, {names}, {more}: {'; '.join(told)}.", left_out=missing)


def points_by_seed(tables: StudyTables, scenario: str, policy: str, preferences: Sequence[str]) -> list[np.ndarray]:
    """Return time and cost of a policy for each preference, (preferences, 2), a seed an entry."""
    scores = [
        preference_scores(tables, scenario, policy, metric)[list(preferences)].to_numpy() for metric in ("time", "cost")
    ]
    return list(np.stack(scores, axis=-1))


def _draw_attained(axes: Axes, corners: np.ndarray, **style: Any) -> None:
    """A stair through the corners of a surface, in the colour of learned policies."""
    axes.step(corners[:, 0], corners[:, 1], where="post", color=theme.colour(len(PREFERENCES)), linewidth=0.9, **style)


def _draw_few(axes: Axes, found: Sequence[np.ndarray], best: np.ndarray, preferences: Sequence[str]) -> None:
    """The points of each preference in its colour: rings, as many policies and seeds agree."""
    for number, preference in enumerate(preferences):
        ring: dict[str, Any] = {
            "markeredgecolor": preference_colour(preference, number),
            "markeredgewidth": 1.6,
            "markersize": 12 - 3 * number,
        }
        points = np.array([of_seed[number] for of_seed in found])
        axes.plot(*points.T, "o", color="none", label=f"learned, {preference}", zorder=4, **ring)
        axes.plot(
            *best[number],
            "+",
            color=INK,
            markersize=6,
            markeredgewidth=0.8,
            label="best plan of a preference",
            zorder=5,
        )


def _draw_many(axes: Axes, found: Sequence[np.ndarray], best: np.ndarray, preferences: Sequence[str]) -> None:
    """The points of all preferences in one colour, as a list of so many tells nothing."""
    ring: dict[str, Any] = {"markeredgecolor": theme.colour(len(PREFERENCES)), "markeredgewidth": 0.9, "markersize": 5}
    axes.plot(
        *np.concatenate(found).T,
        "o",
        color="none",
        label=f"learned for {len(preferences)} preferences",
        zorder=4,
        **ring,
    )
    axes.plot(
        *best.T, "+", color=INK, markersize=6, markeredgewidth=0.8, label="best plan for a weighted sum", zorder=5
    )


def _rules_of(tables: StudyTables, scenario: str) -> list[tuple[str, str]]:
    """The rules that a scenario compares, of those that are drawn, each with its marker."""
    return [(rule, marker) for rule, marker in RULES.items() if len(preference_scores(tables, scenario, rule, "time"))]


def _told_measures(seeds: Sequence[Mapping[str, float]], best: Mapping[str, float]) -> str:
    """The measures of a policy's seeds beside the hypervolume of the best plans, as the caption has them."""
    volumes = [found["hypervolume"] for found in seeds]
    means = {name: float(np.mean([found[name] for found in seeds])) for name in best}
    spread = f"{min(volumes):.2f} to {max(volumes):.2f}; " if len(seeds) > 1 else ""
    return (
        f"{means['hypervolume']:.2f} ({spread}{best['hypervolume']:.2f}), {means['igd_plus']:.3f}, "
        f"{means['additive_epsilon']:.2f}, "
        f"{means['utility']:.3f}"
    )


def _point(tables: StudyTables, scenario: str, policy: str, preference: str) -> np.ndarray:
    """Time and cost of a policy, mean of its seeds."""
    return np.array(
        [float(preference_scores(tables, scenario, policy, metric)[preference].mean()) for metric in ("time", "cost")]
    )
