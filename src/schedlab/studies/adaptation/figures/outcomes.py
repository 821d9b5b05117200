"""Figures of what policies reach: against a baseline, regret by scenario, final result by scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import GRID, INK, MUTED, Style
from schedlab.studies.adaptation.figures import data
from schedlab.studies.adaptation.figures.data import BEST, NEVER, Shown
from schedlab.studies.adaptation.figures.settings import FinalSettings, VersusSettings

ROW_MM = 4.6  # height of a policy's row
ACROSS = 6  # scenarios that fit beside each other as panels


def draw_versus(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Every policy's paired difference in regret to one baseline: over all scenarios first, then in each."""
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    baseline = helpers.settings_of(spec, VersusSettings).baseline
    names = [name for name in data.policies(tables, spec) if name not in (baseline, BEST)]
    scenarios, unlike = data.alike(
        scenarios, lambda found: _compared(tables, found, [*names, baseline]), "compares other policies"
    )
    quantity = scenarios[0].quantity
    losses = data.per_seed(tables, "regret", [*names, baseline], scenarios).dropna()
    reference = losses.loc[baseline].mean(axis=0)
    means = (losses.drop(index=baseline, level="policy") - reference).mean(axis=1)
    order = _learned_first(means, data.kinds(tables))
    looks = data.styles(tables, order)
    noises = np.array([data.noise_of(tables, scenario.name) for scenario in scenarios])
    units = [len(scenario.problem.rows("test")) for scenario in scenarios]
    spreads = noises * np.sqrt(2 / np.array(units))
    look: dict[str, Any] = {"sharey": True, "sharex": True, "width_ratios": [1.6, *[1] * len(scenarios)]}
    height = 14 + ROW_MM * len(order)
    figure, lines = theme.new_grid(len(scenarios) + 1, ACROSS + 1, row_mm=height, around_mm=20, **look)
    panels = data.flat(lines)
    _mean_points(panels[0], means, order, looks)
    panels[0].set_title(f"mean of all\n{len(scenarios)} scenarios")
    for axes, scenario in zip(panels[1:], scenarios, strict=True):
        rows = data.summary_rows(tables.comparisons, "regret", scenario.name, order)
        rows = rows[rows["baseline"] == baseline].drop_duplicates("policy")
        rows = rows if len(rows) else _ranges(losses[scenario.name] - reference[scenario.name])
        helpers.points_with_uncertainty(axes, rows, order, looks)
        axes.set_title(scenario.tick if len(scenarios) < ACROSS else data.narrow(scenario))
    of_mean = float(np.sqrt((spreads**2).sum()) / len(spreads))
    for axes, spread in zip(panels, [of_mean, *spreads], strict=True):
        _difference_axes(axes, spread)
    _finish_rows(lines, order, data.kinds(tables))
    helpers.shared_xlabel(lines[-1], f"difference to {baseline} in {helpers.axis_label(data.regret_metric(quantity))}")
    figure.legend(handles=_keys(of_mean), loc="outside lower center", ncols=3)
    told = _versus_caption(means, order, data.kinds(tables), baseline, quantity, of_mean)
    mean_loss = data.amount(float(reference.mean()), quantity.unit)
    mean_loss = f"{baseline} itself loses {mean_loss} to the best sequence on average."
    texts = [spec.caption, told, mean_loss, data.repetitions(tables, [*order, baseline], scenarios)]
    return Drawing(figure, data.caption(*texts), left_out=others | unlike)


def _compared(tables: StudyTables, scenario: Shown, names: Sequence[str]) -> frozenset[str]:
    """Which of some policies a scenario compares."""
    return frozenset(tables.scores[tables.scores["scenario"] == scenario.name]["policy"]) & frozenset(names)


def _learned_first(means: pd.Series, known: Mapping[str, str]) -> list[str]:
    """Policies with the learned ones first, each group from best to worst by its mean over seeds."""
    by_policy = means.groupby(level="policy").mean()
    return sorted(by_policy.index, key=lambda name: (known[name] != "learned", by_policy[name], name))


def _ranges(differences: pd.Series) -> pd.DataFrame:
    """Mean and range over the seeds of each policy: what is shown where the study compares with another baseline."""
    rows = differences.groupby(level="policy").agg(["mean", "min", "max"]).reset_index()
    rows = rows.rename(columns={"mean": "difference", "min": "range_low", "max": "range_high"})
    return rows.assign(ci_low=np.nan, ci_high=np.nan)


def _mean_points(axes: Axes, means: pd.Series, order: Sequence[str], looks: Mapping[str, Style]) -> None:
    """A point a policy: its mean over seeds and scenarios; a thin line from its lowest to its highest seed."""
    for height, name in enumerate(order):
        seeds, look = means.loc[name].to_numpy(), looks[name]
        if len(seeds) > 1 and seeds.max() > seeds.min():
            axes.plot(
                [seeds.min(), seeds.max()], [height] * 2, color=look.colour, linewidth=0.7, marker="|", markersize=4
            )
        axes.plot([seeds.mean()], [height], zorder=3, **look.point())


def _difference_axes(axes: Axes, spread: float) -> None:
    axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
    axes.grid(True, axis="x")
    if np.isfinite(spread):
        axes.axvspan(-spread, spread, color=GRID, alpha=0.55, linewidth=0, zorder=0)


def _finish_rows(lines: Sequence[Sequence[Axes]], order: Sequence[str], known: Mapping[str, str]) -> None:
    """Names left of each row of panels, a line between learned policies and rules, few ticks, the better side."""
    lines[0][0].set_yticks(range(len(order)), order)
    lines[0][0].set_ylim(len(order) - 0.5, -0.5)
    learned = sum(known[name] == "learned" for name in order)
    for axes in data.flat(lines):
        axes.tick_params(axis="y", length=0, labelleft=any(axes is line[0] for line in lines))
        helpers.short_ticks(axes)
        if 0 < learned < len(order):
            axes.axhline(learned - 0.5, color=MUTED, linewidth=0.5, linestyle=(0, (1, 2)))
    for line in lines:
        line[0].set_xlabel("\N{LEFTWARDS ARROW} better", loc="left")
        for tick, name in zip(line[0].get_yticklabels(), order, strict=True):
            tick.set_color(INK if known[name] == "learned" else MUTED)


def _keys(spread: float) -> list[Any]:
    keys: list[Any] = [data.key(color=MUTED, linewidth=0.7, marker="|", markersize=4, label="lowest to highest seed")]
    if np.isfinite(spread):
        keys += _grey("noise of such a difference (\N{PLUS-MINUS SIGN}1 s.d.)")
    return keys


def _grey(label: str) -> list[Any]:
    return [Patch(color=GRID, alpha=0.55, linewidth=0, label=label)]


def _versus_caption(
    means: pd.Series, order: Sequence[str], known: Mapping[str, str], baseline: str, quantity: Metric, spread: float
) -> str:
    """Which learned policies lose less than the baseline, and whether the noise allows that statement."""
    learned = [name for name in order if known[name] == "learned"]
    if not learned:
        return ""
    value = {name: float(means.loc[name].mean()) for name in learned}
    texts = {name: f"{name} ({data.amount(value[name], quantity.unit, signed=True)})" for name in learned}
    ahead = [name for name in learned if round(value[name], 3) < 0]
    if not ahead:
        return f"No learned policy loses less than {baseline} on average; the closest is {texts[learned[0]]}."
    told = f"On average {data.listed([texts[name] for name in ahead])} lose less than {baseline}"
    told = told.replace(" lose ", " loses ") if len(ahead) == 1 else told
    behind = (
        f"; {len(learned) - len(ahead)} of {len(learned)} learned policies do not" if len(ahead) < len(learned) else ""
    )
    if not np.isfinite(spread):
        return f"{told}{behind}; how large the noise is cannot be told from one replicate."
    beyond = [name for name in ahead if value[name] < -2 * spread]
    size = f"the noise of such a mean difference ({data.amount(spread, quantity.unit)})"
    none = f"none by more than twice {size}, so none is shown to be better"
    verdict = f"{data.listed(beyond)} by more than twice {size}" if beyond else none
    return f"{told}{behind}; {verdict}."


def draw_regret(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """The regret of each policy in each scenario, with its interval, or its range where there is none."""
    scenarios, others = data.alike_rewarded(data.scenarios_of(tables, spec))
    quantity = scenarios[0].quantity
    names = [name for name in data.policies(tables, spec) if name != BEST]
    losses = data.per_seed(tables, "regret", names, scenarios)
    # a policy that lacks a scenario has none, and stands last
    average = losses.groupby(level="policy").mean().mean(axis=1, skipna=False)
    order = sorted(average.index, key=lambda name: (np.nan_to_num(average[name], nan=np.inf), name))
    looks = data.styles(tables, order)
    figure, lines = theme.new_grid(
        len(scenarios), ACROSS, row_mm=14 + ROW_MM * len(order), around_mm=18, sharey=True, sharex=True
    )
    shown_rows = []
    for axes, scenario in zip(data.flat(lines), scenarios, strict=True):
        rows = data.summary_rows(tables.summary, "regret", scenario.name, order)
        helpers.points_with_uncertainty(axes, rows, order, looks)
        axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
        axes.axvspan(0, data.noise_of(tables, scenario.name), color=GRID, alpha=0.55, linewidth=0, zorder=0)
        axes.set_title(scenario.tick if len(scenarios) < ACROSS else data.narrow(scenario))
        shown_rows.append(rows)
    _finish_rows(lines, order, dict.fromkeys(order, "learned"))
    helpers.shared_xlabel(lines[-1], helpers.axis_label(data.regret_metric(quantity)))
    explained = helpers.explain_uncertainty(figure, pd.concat(shown_rows), more=_grey("noise of one result (1 s.d.)"))
    best = f"Smallest on average: {order[0]} ({data.amount(average[order[0]], quantity.unit)})"
    never = f"; {NEVER} loses {data.amount(average[NEVER], quantity.unit)}" if NEVER in average else ""
    noise = "Regrets within one standard deviation of one result (grey) can be luck."
    texts = [spec.caption, f"{best}{never}.", noise, explained, data.repetitions(tables, order, scenarios)]
    return Drawing(figure, data.caption(*texts), left_out=others)


def draw_final(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """The final result by scenario: no adaptation, random sequences, policies and the best sequence."""
    settings = helpers.settings_of(spec, FinalSettings)
    scenarios = data.scenarios_of(tables, spec)
    names = data.policies(tables, spec)
    looks = data.styles(tables, names)
    known = {metric.name: metric for metric in data.QUANTITIES.values()}
    metrics = [known[name] for name in settings.metrics]
    figure, panels = theme.new_figure(len(metrics), 1, height_mm=28 + 42 * len(metrics), squeeze=False, sharex=True)
    texts = []
    for axes, metric in zip(panels[:, 0], metrics, strict=True):
        _final_panel(axes, tables, scenarios, names, looks, metric)
        if settings.range and metric.unit == "fraction":
            axes.set_ylim(*settings.range)
        texts.append(_final_caption(tables, scenarios, names, metric))
    panels[-1, 0].set_xlabel("scenario and time from which growth is possible")
    helpers.legend_outside(
        figure, [*helpers.policy_handles(looks, names), *_final_keys(tables, scenarios, names)], columns=4
    )
    return Drawing(figure, f"{spec.caption} {' '.join(texts)} {data.repetitions(tables, names, scenarios)}")


def _final_panel(
    axes: Axes,
    tables: StudyTables,
    scenarios: Sequence[Shown],
    names: Sequence[str],
    looks: Mapping[str, Style],
    metric: Metric,
) -> None:
    found = {
        scenario.name: data.summary_rows(tables.summary, metric.name, scenario.name, names) for scenario in scenarios
    }
    for place, scenario in enumerate(scenarios):
        rows = {row["policy"]: row for _, row in found[scenario.name].iterrows()}
        for number, name in enumerate(names):
            if name not in rows:
                continue
            row, x = rows[name], place + 0.85 * ((number + 0.5) / len(names) - 0.5)
            low, high = ("ci_low", "ci_high") if np.isfinite(row["ci_low"]) else ("range_low", "range_high")
            ends = {"linewidth": 2.2} if low == "ci_low" else {"linewidth": 0.7, "marker": "_", "markersize": 4}
            if row[high] > row[low]:
                axes.plot([x, x], [row[low], row[high]], color=looks[name].colour, **ends)
            axes.plot([x], [row["value"]], zorder=3, **looks[name].point())
        if place:
            axes.axvline(place - 0.5, color=GRID, linewidth=0.5)
    never = [float(rows.loc[rows["policy"] == NEVER, "value"].mean()) for rows in found.values()]
    height = float(np.nanmean(never)) if np.isfinite(never).any() else np.nan
    axes.axhline(height, color=MUTED, **data.DASHED)
    ticks = [scenario.tick if len(scenarios) < ACROSS else data.narrow(scenario) for scenario in scenarios]
    axes.set_xticks(range(len(scenarios)), ticks)
    axes.set(xlim=(-0.5, len(scenarios) - 0.5), ylabel=helpers.axis_label(metric))
    axes.tick_params(axis="x", length=0)


def _final_keys(tables: StudyTables, scenarios: Sequence[Shown], names: Sequence[str]) -> list[Any]:
    """Keys of the dashed line and of the uncertainty: interval or range over seeds."""
    rows = tables.summary[tables.summary["scenario"].isin([scenario.name for scenario in scenarios])]
    rows = rows[rows["policy"].isin(names) & (rows["split"] == "test")]
    given = np.isfinite(rows["ci_low"])
    keys = [data.key(color=MUTED, **data.DASHED, label=f"mean of {NEVER}")]
    if given.any():
        keys.append(data.key(color=MUTED, linewidth=2.2, marker="|", label="interval (bootstrap)"))
    if (~given & (rows["range_high"] > rows["range_low"])).any():
        keys.append(data.key(color=MUTED, linewidth=0.7, marker="|", markersize=4, label="lowest to highest seed"))
    return keys


def _final_caption(tables: StudyTables, scenarios: Sequence[Shown], names: Sequence[str], metric: Metric) -> str:
    """The mean over the scenarios of each policy, best first."""
    losses = data.per_seed(tables, metric.name, names, scenarios).groupby(level="policy").mean().mean(axis=1).dropna()
    order = losses.sort_values(ascending=metric.better == "lower", kind="stable")
    told = [f"{name} {data.amount(value, metric.unit)}" for name, value in order.items()]
    return f"Mean {metric.label}, best first: {', '.join(told)}." if told else ""
