"""Figures of outcomes compared with a static allocation: time, cost, service levels, and the paper's claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures.captions import filled
from schedlab.figures.drawing import nothing_to_draw, settings_of
from schedlab.figures.order import ranked
from schedlab.figures.panels.bars import grouped_bars
from schedlab.figures.panels.cells import text_table
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import INK
from schedlab.studies.cloud.figures import data
from schedlab.studies.cloud.figures.settings import OutcomesSettings

MEASURES = {"time": "training time", "cost": "cost", "sla_met": "service levels met (of 6)"}
CLAIMS = {"time": ("time", "less time, preference time"), "cost": ("cost", "less cost, preference cost")}
CLAIMS |= {"sla": ("balanced", "more service levels met, balanced")}
NO_CLAIM = "the figure shows no preference on which the paper makes a claim"
DASHED: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": "--"}
GAINS = (
    "Compared with {baseline}: "
    "{gains:{claim}: {mean:.1f} %[ in the mean of workloads, at most {most:.1f} % ({where})]}."
)
Scores = Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]  # measure -> scores of the learned policy and of the baseline


def draw_outcomes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each measure, a group for each workload and a bar for each preference: the learned policy's
    value as a share of the static allocation's, and service levels met of 6. Settings: OutcomesSettings.
    """
    settings = settings_of(spec, OutcomesSettings)
    found = _learned_and_baseline(tables, spec, settings)
    if not found:
        return nothing_to_draw(data.NOT_LEARNED)
    names = {f"learned, {name}": name for name in settings.preferences}
    colours = {
        label: data.preference_colour(*place[::-1])
        for place, label in zip(enumerate(names.values()), names, strict=True)
    }

    def panel(axes: Axes, metric: str) -> None:
        levels, groups = metric == "sla_met", {}
        for place, (scenario, values) in enumerate(found.items()):
            learned, baseline = values[metric]
            groups[scenario] = {
                label: learned[name].to_numpy() / (1.0 if levels else float(baseline[name].mean()))
                for label, name in names.items()
            }
            if levels:
                axes.plot([place - 0.45, place + 0.45], [baseline.to_numpy().mean()] * 2, **DASHED)
        grouped_bars(axes, groups, colours)
        axes.tick_params(axis="x", rotation=20)
        if not levels:
            axes.axhline(1.0, label=f"static allocation ({settings.baseline})", **DASHED)
        axes.set_ylabel("service levels" if levels else "share of the static allocation's")

    groups = [(label, metric) for metric, label in MEASURES.items()]
    figure, _ = facets(groups, panel, Grid(3, 56, 14, each=True, lines="y"), columns=3)
    facts = {**_values(found, settings), "claims": settings.published}
    seeds = "[{several}Bars: means over seeds; thin lines: smallest to largest seed.] [{single}One seed.]"
    claims = "[Claimed reductions (improvement for sla): {claims:{name} {value:.0f} %}.]"
    missing = data.left_out(tables, spec, found, settings.learned, settings.baseline)
    return Drawing(figure, f"{seeds} [{GAINS}] {claims}", facts, left_out=missing)


def draw_headline(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the paper's claims in percent of the static allocation, a column for each workload (OutcomesSettings)."""
    settings = settings_of(spec, OutcomesSettings)
    found, claims = _learned_and_baseline(tables, spec, settings), _claims(settings)
    if not found or not claims:
        return nothing_to_draw(NO_CLAIM if found else data.NOT_LEARNED)
    cells = []
    for claim, (_, words) in claims.items():
        ours = [data.mean_and_range(gains(values, claim), least=0.05) for values in found.values()]
        texts = [filled("{mean:.1f}[ ({low:.1f} to {high:.1f})]", each) for each in ours]
        published = settings.published.get(claim)
        cells.append([words, *texts, "\N{EN DASH}" if published is None else f"{published:.1f}"])
    figure = text_table(cells, ["% of the static allocation", *found, "published"])
    seeds = "[{several}Means of {seeds} seeds, smallest to largest in brackets.] [{single}One seed.]"
    missing = data.left_out(tables, spec, found, settings.learned, settings.baseline)
    return Drawing(figure, f"{seeds} {GAINS}", _values(found, settings), left_out=missing)


def gains(values: Scores, claim: str) -> np.ndarray:
    """Return the improvement over the static allocation in the quantity of a claim, percent, (seeds,)."""
    preference = CLAIMS[claim][0]
    learned, baseline = values["sla_met" if claim == "sla" else claim]
    first = float(baseline[preference].mean())
    change = learned[preference].to_numpy() / first - 1.0
    return 100.0 * (change if claim == "sla" else -change)


def _values(found: Mapping[str, Scores], settings: OutcomesSettings) -> dict[str, Any]:
    """The seeds, and for each claim the mean gain of the workloads and the largest one."""
    seeds = min(len(values["time"][0]) for values in found.values())
    rows = []
    for claim, (_, words) in _claims(settings).items():
        means = {scenario: float(gains(values, claim).mean()) for scenario, values in found.items()}
        most = ranked(means, "higher")[0] if len(means) > 1 else None
        row = {"claim": words, "mean": float(np.mean(list(means.values()))), "where": most}
        rows.append({**row, "most": means[most] if most else None})
    count = {"seeds": seeds, "several": seeds > 1, "single": seeds == 1}
    return {**count, "gains": rows, "baseline": settings.baseline}


def _claims(settings: OutcomesSettings) -> dict[str, tuple[str, str]]:
    """The claims about the preferences that are shown."""
    return {claim: about for claim, about in CLAIMS.items() if about[0] in settings.preferences}


def _learned_and_baseline(tables: StudyTables, spec: FigureSpec, settings: OutcomesSettings) -> dict[str, Scores]:
    """Scenario -> measure -> the learned policy's scores and the baseline's (data.preference_scores)."""
    found: dict[str, Scores] = {}
    for scenario in spec.scenarios:
        learned, baseline = (
            {metric: data.preference_scores(tables, scenario, name, metric) for metric in MEASURES}
            for name in (settings.learned, settings.baseline)
        )
        if len(learned["time"]) and len(baseline["time"]):
            found[scenario] = {metric: (learned[metric], baseline[metric]) for metric in MEASURES}
    return found
