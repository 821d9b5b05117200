"""The figure of time against cost: the front of all plans, constant allocations, rules and learned policies."""

from __future__ import annotations

import json

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.cloud.figure_settings import ShownSettings
from schedlab.studies.cloud.figures_common import learned_name, nothing, preference_colour, preference_scores
from schedlab.studies.cloud.pareto import measures

RULES = {"static_start": "s", "static_max": "^", "static_min": "v", "threshold": "X"}
RULE_RANGE = 3.0  # a rule farther than this many ranges of the front is left out, and named in the caption


def draw_pareto(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a workload: training time against cost, with the front; the caption tells the measures. Settings: ShownSettings."""
    settings = helpers.settings_of(spec, ShownSettings)
    shown = [name for name in spec.scenarios if len(preference_scores(tables, name, learned_name(settings.learned, name), "time"))]
    if not shown:
        return nothing(spec, "no policy is learned at this scale")
    figure, lines = theme.new_grid(len(shown), 2, row_mm=62, around_mm=18)
    told = []
    for axes, scenario in zip([axes for line in lines for axes in line], shown, strict=True):
        oracle = json.loads(tables.inputs[scenario]["oracle"].read_text(encoding="utf-8"))
        front, static = np.array(oracle["front"]), np.array(oracle["static_front"])
        axes.step(static[:, 0], static[:, 1], where="post", color=MUTED, linewidth=0.9, linestyle="--", label="best constant allocations")
        axes.step(front[:, 0], front[:, 1], where="post", color=INK, linewidth=1.1, label="front of all plans")
        far, limits = [], front.min(axis=0) + RULE_RANGE * np.maximum(np.ptp(front, axis=0), 0.15 * front.min(axis=0))
        for rule, marker in RULES.items():
            point = _point(tables, scenario, rule, "balanced")
            if (point > limits).any():
                far.append(rule)
            else:
                axes.plot(*point, marker, color=theme.RULE_GREYS[1], markersize=5, label=rule, zorder=3)
        learned, best = [], []
        for number, preference in enumerate(settings.preferences):
            point = _point(tables, scenario, learned_name(settings.learned, scenario), preference)
            ring = {"markeredgecolor": preference_colour(preference), "markeredgewidth": 1.6, "markersize": 12 - 3 * number}
            axes.plot(*point, "o", color="none", label=f"learned, {preference}", zorder=4, **ring)  # rings, as many policies agree
            learned.append(point)
            best.append(_point(tables, scenario, "oracle_dynamic", preference))
            axes.plot(*best[-1], "+", color=INK, markersize=6, markeredgewidth=0.8, label="best plan of a preference", zorder=5)
        axes.set_title(scenario)
        axes.margins(0.08)
        of_learned, of_best = measures(np.array(learned), front), measures(np.array(best), front)
        told.append(
            f"{scenario} {of_learned['hypervolume']:.2f} ({of_best['hypervolume']:.2f}), {of_learned['igd_plus']:.3f}, "
            f"{of_learned['additive_epsilon']:.2f}, {of_learned['utility']:.3f}" + (f"; out of view: {', '.join(far)}" if far else "")
        )
    for line in lines:
        line[0].set_ylabel("cost ($)")
    helpers.shared_xlabel(lines[-1], "training time (s)")
    helpers.legend_outside(figure, columns=4)
    names = "hypervolume as a share of the front's (of the best plans for the same preferences), IGD+, additive epsilon, loss of utility"
    return Drawing(figure, f"{spec.caption} Learned policies, {names}: {'; '.join(told)}.")


def _point(tables: StudyTables, scenario: str, policy: str, preference: str) -> np.ndarray:
    """Time and cost of a policy, mean of its seeds."""
    return np.array([float(preference_scores(tables, scenario, policy, metric)[preference].mean()) for metric in ("time", "cost")])
