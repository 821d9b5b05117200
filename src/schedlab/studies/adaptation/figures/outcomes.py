"""Figures of the results of policies: against a baseline, regret by scenario, final result by scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.patches import Patch

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures.captions import listed
from schedlab.figures.drawing import settings_of
from schedlab.figures.order import APART, FITTED, kinds_of
from schedlab.figures.panels.axes import BETTER, axis_label, key
from schedlab.figures.panels.facets import Grid
from schedlab.figures.panels.points import UNCERTAINTY, score_panels
from schedlab.figures.selection import select
from schedlab.figures.theme import GRID, INK, MUTED
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import BEST, NEVER, REPEATED, Shown
from schedlab.studies.adaptation.figures.settings import FinalSettings, VersusSettings

ROW_MM = 4.6  # height of a policy's row
ACROSS = 6  # scenarios that fit into a row as panels
GREY: dict[str, Any] = {"color": GRID, "alpha": 0.55, "linewidth": 0}
VERSUS = (
    "[No learned policy has a smaller mean regret than {baseline}; the closest is {closest} ({least:+.3f}[ {unit}]).] "
    "[Learned policies with a smaller mean regret than {baseline}: {ahead:{name} ({value:+.3f}[ {unit}])}"
    "[; {behind} of {learned} learned policies have none].] "
    "[Smaller by more than twice the noise of such a mean difference ({noise:.3f}[ {unit}]): {beyond}.] "
    "[{unknown}The size of the noise cannot be estimated from one replicate.] "
    "The mean regret of {baseline} is {own:.3f}[ {unit}]. "
) + f"{UNCERTAINTY} {REPEATED}"
REGRET = (
    "Smallest mean regret: {least} ({regret:.3f}[ {unit}])[; {never} has {never_regret:.3f}[ {unit}]]. "
    f"Regrets within one standard deviation of one result (grey) can be chance. {UNCERTAINTY} {REPEATED}"
)


def draw_versus(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw every policy's paired difference in regret from one baseline, first over all scenarios, then in each."""
    scenarios, others = data.alike_rewarded(tables, spec)
    baseline, kinds = settings_of(spec, VersusSettings).baseline, kinds_of(tables.scores)
    names = [name for name in data.policies(tables, spec) if name not in (baseline, BEST)]
    scores = tables.scores.groupby("scenario")["policy"]
    compared = {name: frozenset(policies) & {*names, baseline} for name, policies in scores}
    scenarios, unlike = data.alike(scenarios, lambda found: compared.get(found.name), "compares other policies")
    losses = data.per_seed(tables, "regret", [*names, baseline], scenarios).dropna()
    reference = losses.loc[baseline].mean(axis=0)
    differences = losses.drop(index=baseline, level="policy") - reference
    by_policy = differences.mean(axis=1).groupby(level="policy").mean()
    order = sorted(by_policy.index, key=lambda name: (kinds[name] not in FITTED, by_policy[name], name))
    noises = np.array([_noise(tables, scenario) for scenario in scenarios])
    spreads = noises * np.sqrt(2 / np.array([len(scenario.problem.rows("test")) for scenario in scenarios]))
    of_mean = float(np.sqrt((spreads**2).sum()) / len(spreads))
    groups = {f"mean of all\n{len(scenarios)} scenarios": _ranges(differences.mean(axis=1))}
    for scenario in scenarios:
        rows = data.tested(tables.comparisons, "regret", scenario.name, order)
        rows = rows[rows["baseline"] == baseline].drop_duplicates("policy")
        groups[_title(scenario, scenarios)] = rows if len(rows) else _ranges(differences[scenario.name])
    regret, fitted = data.regret_metric(scenarios[0].quantity), [name for name in order if kinds[name] in FITTED]
    label = f"difference to {baseline} in {axis_label(regret)}"
    grey = [(-spread, spread) for spread in (of_mean, *spreads)]
    note, widths = "noise of such a difference (\N{PLUS-MINUS SIGN}1 s.d.)", [1.6, *[1] * len(scenarios)]
    figure, facts = _panels(tables, groups, order, label, grey, note, len(fitted), width_ratios=widths)
    facts |= _verdict({name: float(by_policy[name]) for name in fitted}, of_mean)
    facts |= {"baseline": baseline, "own": float(reference.mean()), "unit": data.unit_of(regret)}
    facts |= data.repetitions(tables, [*order, baseline], scenarios)
    return Drawing(figure, VERSUS, facts, left_out=others | unlike)


def draw_regret(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the regret of each policy in each scenario, with its interval or, without one, its range."""
    scenarios, others = data.alike_rewarded(tables, spec)
    kinds, names = kinds_of(tables.scores), [name for name in data.policies(tables, spec) if name != BEST]
    losses = data.per_seed(tables, "regret", names, scenarios)
    # a policy without a result in some scenario has no average, and comes last
    average = losses.groupby(level="policy").mean().mean(axis=1, skipna=False)
    order = sorted(average.index, key=lambda name: (np.nan_to_num(average[name], nan=np.inf), name))
    groups = {_title(one, scenarios): data.tested(tables.summary, "regret", one.name, order) for one in scenarios}
    regret, grey = data.regret_metric(scenarios[0].quantity), [(0.0, _noise(tables, one)) for one in scenarios]
    figure, facts = _panels(tables, groups, order, axis_label(regret), grey, "noise of one result (1 s.d.)", len(order))
    least = next((name for name in order if kinds[name] not in APART), order[0])
    facts |= {"least": least, "regret": float(average[least]), "unit": data.unit_of(regret)}
    facts |= {"never": NEVER if NEVER in average else "", "never_regret": average.get(NEVER)}
    return Drawing(figure, REGRET, facts | data.repetitions(tables, order, scenarios), left_out=others)


def _panels(
    tables: StudyTables, groups: Mapping[str, pd.DataFrame], order: Sequence[str], label: str,
    grey: Sequence[tuple[float, float]], note: str, learned: int, **subplots: Any,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Draw a panel of points for each group with its noise in grey, a line below the first `learned` rows, and the
    names of the other rows in grey.
    """
    across = ACROSS + ("width_ratios" in subplots)
    grid = Grid(across, 14 + ROW_MM * len(order), 20, f"{label}   {BETTER['lower']}",
                subplots={"sharex": True, "sharey": True, **subplots})  # fmt: skip
    more = [Patch(label=note, **GREY)] if np.isfinite(grey[0]).all() else []
    looks, level = data.styles(tables, order), tables.statistics.confidence
    figure, facts = score_panels(groups.items(), order, looks, level, grid, more)
    for axes, noise in zip(figure.axes, grey, strict=True):
        axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
        if np.isfinite(noise).all():
            axes.axvspan(*noise, zorder=0, **GREY)
        if 0 < learned < len(order):
            axes.axhline(learned - 0.5, color=MUTED, linewidth=0.5, linestyle=(0, (1, 2)))
        for tick in axes.get_yticklabels()[learned:]:
            tick.set_color(MUTED)
    return figure, dict(facts)


def _title(scenario: Shown, among: Sequence[Shown]) -> str:
    return scenario.tick(narrow=len(among) >= ACROSS)


def _noise(tables: StudyTables, scenario: Shown) -> float:
    """Return the standard deviation of one result in a scenario, in units of the reward; NaN if it is not known."""
    return float(select(tables.scores, scenario=scenario.name, metric="noise")["value"].mean())


def _ranges(differences: pd.Series) -> pd.DataFrame:
    """Return mean and range over the seeds of each policy, which are shown if there is no interval."""
    rows = differences.groupby(level="policy").agg(["mean", "min", "max"]).reset_index()
    rows = rows.rename(columns={"mean": "difference", "min": "range_low", "max": "range_high"})
    return rows.assign(ci_low=np.nan, ci_high=np.nan)


def _verdict(differences: Mapping[str, float], noise: float) -> dict[str, Any]:
    """Return which learned policies (in order) have less regret than the baseline, and which beyond the noise."""
    ahead = {name: value for name, value in differences.items() if round(value, 3) < 0}
    beyond = [name for name, value in ahead.items() if value < -2 * noise]
    closest = next(iter(differences), None) if not ahead else None
    known = bool(ahead) and bool(np.isfinite(noise))
    return {
        "ahead": ahead,
        "learned": len(differences),
        "behind": len(differences) - len(ahead) or None,
        "closest": closest,
        "least": differences[closest] if closest else None,
        "noise": noise,
        "beyond": (listed(beyond) or "none, so no policy is shown to be better") if known else "",
        "unknown": bool(ahead) and not known,
    }


def draw_final(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the final result: a row of panels for each score, a panel for each scenario, a point for each policy."""
    metrics = {metric.name: metric for metric in data.QUANTITIES.values()}
    wanted = [metrics[name] for name in settings_of(spec, FinalSettings).metrics]
    scenarios, names = data.scenarios_of(tables, spec), data.policies(tables, spec)
    fit = len(scenarios) <= ACROSS
    panels = list(product(wanted, scenarios))
    groups = [
        (
            _title(one, scenarios) if metric == wanted[0] or not fit else "",
            data.tested(tables.summary, metric.name, one.name, names),
        )
        for metric, one in panels
    ]
    x: Any = [axis_label(metric) for metric in wanted] if fit else ""
    subplots = {"sharex": "row" if fit else False, "sharey": True}
    grid = Grid(len(scenarios) if fit else ACROSS - 2, 17 + ROW_MM * len(names), 16, x, subplots=subplots)
    more, looks = [key(f"{NEVER}: no growth", color=MUTED, **data.DASHED)], data.styles(tables, names)
    level = tables.statistics.confidence
    figure, uncertainty = score_panels(groups, names, looks, level, grid, more)
    for axes, (metric, _), (_, rows) in zip(figure.axes, panels, groups, strict=True):
        if not fit:
            axes.set_xlabel(axis_label(metric).replace(" ", "\n", 1))
        for value in select(rows, policy=NEVER)["value"]:
            axes.axvline(value, color=MUTED, zorder=1, **data.DASHED)
    means = {}
    for metric in wanted:
        seeds = data.per_seed(tables, metric.name, names, scenarios).groupby(level="policy").mean()
        average = seeds.mean(axis=1).dropna().sort_values(ascending=metric.better == "lower", kind="stable")
        first = "lowest" if metric.better == "lower" else "highest"
        means[metric.label] = {"first": first, "unit": data.unit_of(metric), "means": average.to_dict()}
    caption = (
        f"Means: {{quantities:{{name}}, {{first}} first: {{means:{{name}} {{value:.3f}}[ {{unit}}]}}}}. {UNCERTAINTY} "
    )
    facts = {"quantities": means, **uncertainty, **data.repetitions(tables, names, scenarios)}
    return Drawing(figure, caption + REPEATED, facts)
