"""Figures of outcomes: time, money and service levels beside a static allocation; the headline claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK
from schedlab.studies.cloud.figures.common import learned_name, left_out, nothing, preference_colour, preference_scores
from schedlab.studies.cloud.figures.settings import OutcomesSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURES = {"time": "training time", "cost": "cost", "sla_met": "service levels met"}
CLAIMS = {"time": ("time", "less time, preference time"), "cost": ("cost", "less cost, preference cost")}
CLAIMS |= {"sla": ("balanced", "more service levels met, balanced")}


def draw_outcomes(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a measure, a group a workload, a bar a preference: learned, as a share of the static allocation; service
    levels of 6. Settings: OutcomesSettings.
    """
    settings = helpers.settings_of(spec, OutcomesSettings)
    found = _learned_and_baseline(tables, spec, settings)
    if not found:
        return nothing(spec, "no policy is learned at this scale")
    figure, panels = theme.new_figure(1, len(MEASURES), height_mm=70)
    for axes, (metric, label) in zip(panels, MEASURES.items(), strict=True):
        for group, scenario in enumerate(found):
            _bars(axes, group, found[scenario][metric], settings, shares=metric != "sla_met")
        axes.set_xticks(range(len(found)), list(found), rotation=20)
        axes.set_title(f"{label} (of 6)" if metric == "sla_met" else label)
        axes.set_ylabel("service levels" if metric == "sla_met" else "share of the static allocation's")
        axes.grid(True, axis="y")
        axes.tick_params(axis="x", length=0)
        if metric != "sla_met":
            axes.axhline(
                1.0, color=INK, linewidth=0.8, linestyle="--", label=f"static allocation ({settings.baseline})"
            )
    helpers.legend_outside(figure, columns=3)
    told = "; ".join(f"{name} {value:.0f} %" for name, value in settings.published.items())
    shown = "Bars: means over seeds; thin lines: smallest to largest seed." if _seeds(found) > 1 else "One seed."
    caption = (
        f"{spec.caption} {shown} {_best_gains_text(found, settings)} Claimed reductions (improvement for sla): {told}."
    )
    return Drawing(figure, caption, left_out=left_out(tables, spec, found, settings.learned, settings.baseline))


def draw_headline(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """The paper's claims in percent of the static allocation, a column a workload (OutcomesSettings)."""
    settings = helpers.settings_of(spec, OutcomesSettings)
    found = _learned_and_baseline(tables, spec, settings)
    if not found:
        return nothing(spec, "no policy is learned at this scale")
    claims = _claims(settings)
    if not claims:
        return nothing(spec, "no preference that the paper's claims are about is shown")
    figure, axes = theme.new_figure(height_mm=14 + 9 * (len(claims) + 1))
    cells = [
        [words, *(gain_text(found[scenario], claim) for scenario in found), _percent(settings.published.get(claim))]
        for claim, (_, words) in claims.items()
    ]
    helpers.text_table(axes, cells, ["% of the static allocation", *found, "published"], row_height=1.7)
    seeds = _seeds(found)
    shown = f"Means of {seeds} seeds, smallest to largest in brackets." if seeds > 1 else "One seed."
    caption = f"{spec.caption} {shown} {_best_gains_text(found, settings)}"
    return Drawing(figure, caption, left_out=left_out(tables, spec, found, settings.learned, settings.baseline))


def _claims(settings: OutcomesSettings) -> dict[str, tuple[str, str]]:
    """The claims about the preferences that are shown."""
    return {claim: about for claim, about in CLAIMS.items() if about[0] in settings.preferences}


def gains(values: dict[str, tuple], claim: str) -> np.ndarray:
    """Return by how many percent each seed is better than the static allocation in what a claim is about."""
    preference = CLAIMS[claim][0]
    learned, baseline = values["sla_met" if claim == "sla" else claim]
    first = float(baseline[preference].mean())
    change = learned[preference].to_numpy() / first - 1.0
    return 100.0 * (change if claim == "sla" else -change)


def gain_text(values: dict[str, tuple], claim: str) -> str:
    """Return the mean gain of the seeds, and their range where they differ."""
    found = gains(values, claim)
    mean = helpers.number_text(float(found.mean()), "{:.1f}")
    if np.ptp(found) < 0.05:
        return mean
    return f"{mean} ({helpers.number_text(found.min(), '{:.1f}')} to {helpers.number_text(found.max(), '{:.1f}')})"


def _learned_and_baseline(
    tables: StudyTables, spec: FigureSpec, settings: OutcomesSettings
) -> dict[str, dict[str, tuple]]:
    """Scenario -> measure -> the learned policy's scores and the baseline's (preference_scores)."""
    found = {}
    for scenario in spec.scenarios:
        names = learned_name(settings.learned, scenario), settings.baseline
        values = {
            metric: tuple(preference_scores(tables, scenario, name, metric) for name in names) for metric in MEASURES
        }
        if all(len(table) for table in values["time"]):
            found[scenario] = values
    return found


def _seeds(found: Mapping[str, Mapping[str, tuple]]) -> int:
    """Return how many seeds every workload has at least."""
    return min(len(values["time"][0]) for values in found.values())


def _bars(axes: Axes, group: int, values: tuple, settings: OutcomesSettings, shares: bool) -> None:
    """A workload's bars: the mean of the seeds, a line from the smallest to the largest."""
    learned, baseline = values
    width = 0.8 / len(settings.preferences)
    for place, preference in enumerate(settings.preferences):
        heights = learned[preference].to_numpy() / (float(baseline[preference].mean()) if shares else 1.0)
        x = group - 0.4 + (place + 0.5) * width
        axes.bar(
            x, heights.mean(), width * 0.92, color=preference_colour(preference, place), label=f"learned, {preference}"
        )
        if np.ptp(heights) > 1e-9:
            axes.plot([x, x], [heights.min(), heights.max()], color=INK, linewidth=0.8)
    if not shares:
        first = float(baseline.to_numpy().mean())
        axes.plot([group - 0.45, group + 0.45], [first, first], color=INK, linewidth=0.8, linestyle="--")


def _best_gains_text(found: dict[str, dict[str, tuple]], settings: OutcomesSettings) -> str:
    told = []
    for claim, (_, words) in _claims(settings).items():
        mean = {scenario: float(gains(values, claim).mean()) for scenario, values in found.items()}
        best = max(mean, key=lambda scenario: (mean[scenario], scenario))
        overall = helpers.number_text(float(np.mean(list(mean.values()))), "{:.1f}")
        if len(mean) == 1:
            told.append(f"{words}: {overall} %")
        else:
            told.append(
                f"{words}: {overall} % in the mean of workloads, at best "
                f"{helpers.number_text(mean[best], '{:.1f}')} % ({best})"
            )
    return f"Here, beside {settings.baseline}: {'; '.join(told) or 'no preference that the claims are about'}."


def _percent(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.1f}"
