"""Figures of the results of policies: against a baseline, regret by scenario, final result by scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.captions import listed
from schedlab.figures.drawing import settings_of
from schedlab.figures.order import APART, FITTED, kinds_of
from schedlab.figures.panels.axes import (
    BETTER,
    axis_label,
    key,
    legend_outside,
    name_rows,
    policy_handles,
    shared_xlabel,
    short_ticks,
)
from schedlab.figures.panels.points import (
    BAR,
    THIN,
    UNCERTAINTY,
    explain_uncertainty,
    points_with_uncertainty,
    span,
)
from schedlab.figures.theme import GRID, INK, MUTED, Style
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import BEST, NEVER, REPEATED, Shown
from schedlab.studies.adaptation.figures.settings import FinalSettings, VersusSettings

ROW_MM = 4.6  # height of a policy's row
ACROSS = 6  # scenarios that fit into a row as panels
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
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    baseline, kinds = settings_of(spec, VersusSettings).baseline, kinds_of(tables.scores)
    names = [name for name in data.policies(tables, spec) if name not in (baseline, BEST)]
    scores = tables.scores.groupby("scenario")["policy"]
    compared = {name: frozenset(policies) & {*names, baseline} for name, policies in scores}
    scenarios, unlike = data.alike(scenarios, lambda found: compared.get(found.name), "compares other policies")
    losses = data.per_seed(tables, "regret", [*names, baseline], scenarios).dropna()
    reference = losses.loc[baseline].mean(axis=0)
    differences = losses.drop(index=baseline, level="policy") - reference
    means = differences.mean(axis=1)
    by_policy = means.groupby(level="policy").mean()
    order = sorted(by_policy.index, key=lambda name: (kinds[name] not in FITTED, by_policy[name], name))
    looks = data.styles(tables, order)
    noises = np.array([data.noise_of(tables, scenario.name) for scenario in scenarios])
    spreads = noises * np.sqrt(2 / np.array([len(scenario.problem.rows("test")) for scenario in scenarios]))
    of_mean = float(np.sqrt((spreads**2).sum()) / len(spreads))
    look: dict[str, Any] = {"sharey": True, "sharex": True, "width_ratios": [1.6, *[1] * len(scenarios)]}
    row_mm = 14 + ROW_MM * len(order)
    figure, panels, lines = theme.new_panels(len(scenarios) + 1, ACROSS + 1, row_mm=row_mm, around_mm=20, **look)
    shown = [_ranges(means)]
    points_with_uncertainty(panels[0], shown[0], order, looks)
    panels[0].set_title(f"mean of all\n{len(scenarios)} scenarios")
    for axes, scenario in zip(panels[1:], scenarios, strict=True):
        rows = data.summary_rows(tables.comparisons, "regret", scenario.name, order)
        rows = rows[rows["baseline"] == baseline].drop_duplicates("policy")
        shown.append(rows if len(rows) else _ranges(differences[scenario.name]))
        points_with_uncertainty(axes, shown[-1], order, looks)
        _title(axes, scenario, len(scenarios))
    for axes, spread in zip(panels, [of_mean, *spreads], strict=True):
        axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
        if np.isfinite(spread):
            axes.axvspan(-spread, spread, zorder=0, **GREY)
    _finish_rows(lines, order, kinds)
    regret = data.regret_metric(scenarios[0].quantity)
    shared_xlabel(lines[-1], f"difference to {baseline} in {axis_label(regret)}")
    noise = [Patch(label="noise of such a difference (\N{PLUS-MINUS SIGN}1 s.d.)", **GREY)]
    more = noise if np.isfinite(of_mean) else []
    facts: dict[str, Any] = explain_uncertainty(figure, pd.concat(shown), tables.statistics.confidence, more=more)
    facts |= _verdict({name: float(by_policy[name]) for name in order if kinds[name] in FITTED}, of_mean)
    facts |= {"baseline": baseline, "own": float(reference.mean()), "unit": data.unit_of(regret)}
    facts |= data.repetitions(tables, [*order, baseline], scenarios)
    return Drawing(figure, VERSUS, facts, left_out=others | unlike)


GREY: dict[str, Any] = {"color": GRID, "alpha": 0.55, "linewidth": 0}


def _ranges(differences: pd.Series) -> pd.DataFrame:
    """Mean and range over the seeds of each policy: what is shown where there is no interval."""
    rows = differences.groupby(level="policy").agg(["mean", "min", "max"]).reset_index()
    rows = rows.rename(columns={"mean": "difference", "min": "range_low", "max": "range_high"})
    return rows.assign(ci_low=np.nan, ci_high=np.nan)


def _title(axes: Axes, scenario: Shown, count: int) -> None:
    axes.set_title(scenario.tick if count < ACROSS else data.narrow(scenario))


def _finish_rows(lines: Sequence[Sequence[Axes]], order: Sequence[str], kinds: Mapping[str, str]) -> None:
    """Names left of each row of panels, a line between learned policies and rules, few ticks, the better side."""
    name_rows(lines[0][0], order)
    learned = sum(kinds[name] in FITTED for name in order)
    for line in lines:
        for axes in line:
            axes.tick_params(axis="y", length=0, labelleft=axes is line[0])
            short_ticks(axes)
            if 0 < learned < len(order):
                axes.axhline(learned - 0.5, color=MUTED, linewidth=0.5, linestyle=(0, (1, 2)))
        line[0].set_xlabel(BETTER["lower"], loc="left")
        for tick, name in zip(line[0].get_yticklabels(), order, strict=True):
            tick.set_color(INK if kinds[name] in FITTED else MUTED)


def _verdict(differences: Mapping[str, float], noise: float) -> dict[str, Any]:
    """Which learned policies (in order) lose less than the baseline, and whether the noise allows that statement."""
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


def draw_regret(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the regret of each policy in each scenario, with its interval or, without one, its range."""
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    kinds = kinds_of(tables.scores)
    names = [name for name in data.policies(tables, spec) if name != BEST]
    losses = data.per_seed(tables, "regret", names, scenarios)
    # a policy that lacks a scenario has none, and stands last
    average = losses.groupby(level="policy").mean().mean(axis=1, skipna=False)
    order = sorted(average.index, key=lambda name: (np.nan_to_num(average[name], nan=np.inf), name))
    looks, row_mm = data.styles(tables, order), 14 + ROW_MM * len(order)
    figure, panels, lines = theme.new_panels(
        len(scenarios), ACROSS, row_mm=row_mm, around_mm=18, sharey=True, sharex=True
    )
    shown = [data.summary_rows(tables.summary, "regret", scenario.name, order) for scenario in scenarios]
    for axes, scenario, rows in zip(panels, scenarios, shown, strict=True):
        points_with_uncertainty(axes, rows, order, looks)
        axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
        axes.axvspan(0, data.noise_of(tables, scenario.name), zorder=0, **GREY)
        _title(axes, scenario, len(scenarios))
    _finish_rows(lines, order, dict.fromkeys(order, "learned"))
    regret = data.regret_metric(scenarios[0].quantity)
    shared_xlabel(lines[-1], axis_label(regret))
    keys, level = [Patch(label="noise of one result (1 s.d.)", **GREY)], tables.statistics.confidence
    facts: dict[str, Any] = explain_uncertainty(figure, pd.concat(shown), level, more=keys)
    least = next((name for name in order if kinds[name] not in APART), order[0])
    facts |= {"least": least, "regret": float(average[least]), "unit": data.unit_of(regret)}
    facts |= {"never": NEVER if NEVER in average else "", "never_regret": average.get(NEVER)}
    facts |= data.repetitions(tables, order, scenarios)
    return Drawing(figure, REGRET, facts, left_out=others)


def draw_final(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the final result by scenario: no adaptation, random sequences, policies and the best sequence."""
    settings = settings_of(spec, FinalSettings)
    scenarios, names = data.scenarios_of(tables, spec), data.policies(tables, spec)
    looks = data.styles(tables, names)
    known = {metric.name: metric for metric in data.QUANTITIES.values()}
    metrics = [known[name] for name in settings.metrics]
    figure, panels = theme.new_figure(len(metrics), 1, height_mm=28 + 42 * len(metrics), squeeze=False, sharex=True)
    means, drawn = {}, []
    for axes, metric in zip(panels[:, 0], metrics, strict=True):
        rows = [data.summary_rows(tables.summary, metric.name, scenario.name, names) for scenario in scenarios]
        _final_panel(axes, scenarios, rows, names, looks)
        axes.set_ylabel(axis_label(metric))
        if settings.range and metric.unit == "fraction":
            axes.set_ylim(*settings.range)
        seeds = data.per_seed(tables, metric.name, names, scenarios).groupby(level="policy").mean()
        average = seeds.mean(axis=1).dropna().sort_values(ascending=metric.better == "lower", kind="stable")
        first = "lowest" if metric.better == "lower" else "highest"
        means[metric.label] = {"first": first, "unit": data.unit_of(metric), "means": average.to_dict()}
        drawn += rows
    panels[-1, 0].set_xlabel("scenario and time from which growth is possible")
    keys = _final_keys(pd.concat(drawn), tables.statistics.confidence)
    legend_outside(figure, [*policy_handles(looks, names), *keys], columns=4)
    caption = "Means: {quantities:{name}, {first} first: {means:{name} {value:.3f}[ {unit}]}}. "
    facts = {"quantities": means, **data.repetitions(tables, names, scenarios)}
    return Drawing(figure, caption + REPEATED, facts)


def _final_panel(
    axes: Axes,
    scenarios: Sequence[Shown],
    found: Sequence[pd.DataFrame],
    names: Sequence[str],
    looks: Mapping[str, Style],
) -> None:
    """A group of upright points a scenario, and a dashed line at the mean without adaptation."""
    for place, rows in enumerate(found):
        for row in rows.to_dict("records"):
            x = place + 0.85 * ((names.index(row["policy"]) + 0.5) / len(names) - 0.5)
            span(axes, row, x, colour=looks[row["policy"]].colour, upright=True)
            axes.plot([x], [row["value"]], zorder=3, **looks[row["policy"]].point())
        if place:
            axes.axvline(place - 0.5, color=GRID, linewidth=0.5)
    never = pd.concat([rows.loc[rows["policy"] == NEVER, "value"] for rows in found])
    axes.axhline(never.mean(), color=MUTED, **data.DASHED)
    ticks = [scenario.tick if len(scenarios) < ACROSS else data.narrow(scenario) for scenario in scenarios]
    axes.set_xticks(range(len(scenarios)), ticks)
    axes.set_xlim(-0.5, len(scenarios) - 0.5)
    axes.tick_params(axis="x", length=0)


def _final_keys(rows: pd.DataFrame, level: float) -> list[Any]:
    """Keys of the dashed line and of the uncertainty: interval or range over seeds."""
    given = np.isfinite(rows["ci_low"])
    keys = [key(f"mean of {NEVER}", color=MUTED, **data.DASHED)]
    if given.any():
        keys.append(key(f"{100 * level:g} % interval (bootstrap)", color=MUTED, **BAR))
    if (~given & (rows["range_high"] > rows["range_low"])).any():
        keys.append(key("lowest to highest seed", color=MUTED, marker="|", **THIN))
    return keys
