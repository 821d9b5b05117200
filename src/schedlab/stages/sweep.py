"""The stage `sweep`: joins the tables of runs that differ in single values, and draws a figure over these values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Drawing, FigureSpec, Metric
from schedlab.config.files import read_table, write_json, write_table, write_text
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.config.settings import StatisticsSettings, ThemeSettings
from schedlab.config.variations import value_text
from schedlab.evaluation import tables
from schedlab.figures import theme
from schedlab.figures.drawing import nothing_to_draw
from schedlab.figures.index import report_caption
from schedlab.figures.panels.axes import axis_label
from schedlab.figures.panels.curves import sweep
from schedlab.figures.panels.facets import Grid
from schedlab.figures.panels.points import UNCERTAINTY
from schedlab.figures.save import caption_of
from schedlab.stages import studies
from schedlab.stages.draw import MARKS, drawn, entry_of

if TYPE_CHECKING:
    import pandas as pd

MOST_PANELS = 12
NAME = "sweep"  # name of the figure


def join(part: Path, scores: Sequence[str], summaries: Sequence[str], out: Path) -> None:
    """Write scores.parquet and summary.parquet of all runs into `out`, with a column for each swept key.

    scores, summaries: the tables of the runs, in the order of the frozen part

    A column contains numbers if all values of its key are numbers, else their text.
    """
    import pandas as pd

    runs = read_part(part)["runs"]
    for kind, files in ((tables.SCORES, scores), (tables.SUMMARY, summaries)):
        found = [
            read_table(file).assign(**_columns(run["values"], runs)) for file, run in zip(files, runs, strict=True)
        ]
        write_table(out / f"{kind.name}.parquet", pd.concat(found, ignore_index=True))


def _columns(values: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> dict[str, float | str]:
    return {key: float(value) if _numeric(runs, key) else value_text(value) for key, value in values.items()}


def _numeric(runs: Sequence[Mapping[str, Any]], key: str) -> bool:
    return all(type(run["values"][key]) in (int, float) for run in runs)


def draw(part: Path, folder: Path, out: Path) -> None:
    """Draw the study's leading metric on test units over the swept values; write the caption and figures.json like the
    stage `draw`. folder: output folder of `join`.
    """
    values = read_part(part)
    study = studies.of_part(values)
    metric = study.leading_metric
    scores, summary = (read_table(folder / f"{name}.parquet") for name in ("scores", "summary"))
    tested = summary[(summary["metric"] == metric.name) & (summary["split"] == "test")]
    title = f"{metric.label or metric.name} over {', '.join(values['runs'][0]['values'])}"
    level = validate(StatisticsSettings, values.get("statistics") or {}).confidence
    spec = FigureSpec(NAME, NAME, title, "Each point of a line is a run with another value.")
    with theme.applied(validate(ThemeSettings, values.get("theme") or {})):
        make = partial(_drawing, tested, metric, values["runs"], level)
        drawing, failed = drawn(make, spec, out, MARKS.get(values["scale"], ""))
    shown = scores[~scores["scenario"].isin(list(drawing.left_out))]
    entry = entry_of(values, spec, caption_of(drawing), shown) | ({"failed": failed} if failed else {})
    write_text(out / f"{NAME}.rst", report_caption(entry))
    of_study = {"study": study.name, "question": study.question, "scale": values["scale"]}
    write_json(out / "figures.json", {**of_study, "figures": [entry]})


def _drawing(tested: pd.DataFrame, metric: Metric, runs: Sequence[Mapping[str, Any]], level: float) -> Drawing:
    """Return a drawing with a panel for each scenario in which the runs differ, and for each combination of the keys
    except the one with most values, which is the horizontal axis. A panel has a line for each policy.
    """
    values = {key: list(dict.fromkeys(_columns(run["values"], runs)[key] for run in runs)) for key in runs[0]["values"]}
    across = max(values, key=lambda key: len(values[key]))
    others = [key for key in values if key != across]
    left_out = _alike(tested)
    groups: dict[str, pd.DataFrame] = {}
    for (scenario, rows), combination in itertools.product(
        tested[~tested["scenario"].isin(list(left_out))].groupby("scenario"),
        itertools.product(*(values[key] for key in others)),
    ):
        fixed = dict(zip(others, combination, strict=True))
        title = ", ".join([scenario, *(f"{key.rpartition('.')[2]} {value_text(it)}" for key, it in fixed.items())])
        for key, value in fixed.items():
            rows = rows[rows[key] == value]
        groups[title] = rows
    if not groups or len(groups) > MOST_PANELS:
        return nothing_to_draw(f"{len(groups)} panels would be too many; the table holds all" if groups else "no rows")
    styles = theme.styles_of(tested)
    grid = Grid(around_mm=18, x=across, y=axis_label(metric))
    figure, explained = sweep(groups.items(), across, values[across], styles, level, grid)
    return Drawing(figure, UNCERTAINTY, explained, left_out=left_out)


def _alike(tested: pd.DataFrame) -> dict[str, str]:
    """Return scenario -> the reason for leaving it out, for scenarios with the same results in all runs; empty if that
    is all of them.
    """
    distinct = tested.groupby(["scenario", "policy", "mode"])["value"].nunique()
    changed = distinct[distinct > 1].index.get_level_values("scenario")
    alike = sorted(set(tested["scenario"]) - set(changed)) if len(changed) else []
    return dict.fromkeys(alike, "equal in all runs")
