"""The stage `draw`: every figure of a study, from its tables and inputs."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import DrawFigure, Drawing, FigureSpec, Study, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import read_table, write_json, write_text
from schedlab.config.plugins import load_object
from schedlab.config.runtime.parts import configuration_hash, read_part
from schedlab.config.schema import validate
from schedlab.config.settings import StatisticsSettings, ThemeSettings
from schedlab.evaluation import tables
from schedlab.figures import theme
from schedlab.figures.drawing import undrawn
from schedlab.figures.index import report_caption
from schedlab.figures.save import caption_of, save
from schedlab.stages import studies

if TYPE_CHECKING:
    import pandas as pd

MARKS = {"smoke": "scale smoke: sizes of a test, not of results"}  # scale -> text in each of its figures of scores
log = logging.getLogger(__name__)


def draw(part: Path, summary: Path, inputs: Mapping[str, Mapping[str, Path]], out: Path) -> None:
    """Draw the figures of a frozen draw part: <figure>.svg, .pdf, .png, .txt (caption), .rst (caption for the report),
    and figures.json.

    summary  folder with the tables of the stage `summarise`
    inputs   scenario -> input name -> file

    If a figure cannot be drawn, the others are drawn nevertheless. Its picture then contains the reason, and so does
    its entry in figures.json, under `failed` (see figures.index.failures).
    """
    values = read_part(part)
    study = studies.of_part(values)
    settings = validate(ThemeSettings, values.get("theme") or {})
    study_tables = read_tables(study, summary, values, inputs)
    entries = []
    for figure in values["figures"]:
        spec = figure_spec(figure)
        log.info("drawing %s", spec.name)
        with theme.applied(settings):
            make = functools.partial(_drawing, study, study_tables, spec)
            drawing, failed = drawn(make, spec, out, MARKS.get(values["scale"], ""))
        shown = _shown(study_tables.scores, spec, drawing.left_out)
        entry = entry_of(values, spec, caption_of(drawing), shown if drawing.of_scores else shown.iloc[:0])
        write_text(out / f"{spec.name}.rst", report_caption(entry))
        entries.append(entry | {"failed": failed} if failed else entry)
    of_study = {"study": study.name, "question": study.question, "scale": values["scale"]}
    shown_policies = {name for entry in entries for name in entry["policies"]}
    terms = {"terms": dict(study.terms), "policies": _learned(values, study_tables.scores, shown_policies)}
    write_json(out / "figures.json", {**of_study, **terms, "figures": entries})


def _drawing(study: Study, study_tables: StudyTables, spec: FigureSpec) -> Drawing:
    if missing := set(spec.scenarios) - set(study_tables.scores["scenario"]):
        raise UserError(f"there are no scores of {', '.join(sorted(missing))}", where=f"figure {spec.name}: scenarios")
    return drawing_function(study, spec.kind)(study_tables, spec)


def drawn(make: Callable[[], Drawing], spec: FigureSpec, out: Path, mark: str) -> tuple[Drawing, str]:
    """Draw and save a figure or, if it cannot be drawn, a text with the reason. Return the drawing and the reason,
    which is empty after success.

    make: makes the drawing
    mark: words written above a figure of scores, so that they stay in copies of the picture; empty: none
    """
    failed = ""
    try:
        drawing = captioned(make(), spec)
        if mark and drawing.of_scores:
            theme.mark(drawing.figure, mark)
        save(drawing, out / spec.name)
    except Exception as error:  # the other figures are drawn, whatever a drawing raises
        failed = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        log.exception("figure %s could not be drawn", spec.name)
        drawing = undrawn(spec.title, failed)
        save(drawing, out / spec.name)
    return drawing, failed


def captioned(drawing: Drawing, spec: FigureSpec) -> Drawing:
    """Return a drawing with its whole caption: the figure's own, the drawing's, and the scenarios left out, grouped by
    reason, which are also logged as a warning. Raises UserError for a name in the figure's caption that is not a value
    of the drawing.
    """
    reasons: dict[str, list[str]] = {}
    for scenario, why in drawing.left_out.items():
        reasons.setdefault(why, []).append(scenario)
    missing = "; ".join(f"{', '.join(scenarios)} ({why})" for why, scenarios in reasons.items())
    if missing:
        log.warning("figure %s does not show %s", spec.name, missing)
    template = f"{spec.caption} {drawing.caption} [Not shown: {{not_shown}}.]"
    whole = replace(drawing, caption=template, values={**drawing.values, "not_shown": missing})
    caption_of(whole, f"figure {spec.name}: caption")
    return whole


def read_tables(
    study: Study, summary: Path, part: Mapping[str, Any], inputs: Mapping[str, Mapping[str, Path]]
) -> StudyTables:
    """Return everything from which the figures of a draw part are drawn."""
    return StudyTables(
        scores=tables.read(tables.SCORES, summary / "scores.parquet"),
        curves=tables.read(tables.CURVES, summary / "curves.parquet"),
        summary=tables.read(tables.SUMMARY, summary / "summary.parquet"),
        comparisons=tables.read(tables.COMPARISONS, summary / "comparisons.parquet"),
        details=_DetailTables({name: summary / "details" / f"{name}.parquet" for name in study.details}),
        inputs={scenario: {name: Path(path) for name, path in named.items()} for scenario, named in inputs.items()},
        scenarios=part["scenarios"],
        policies=part["policies"],
        statistics=validate(StatisticsSettings, part.get("statistics") or {}),
    )


class _DetailTables(Mapping[str, "pd.DataFrame"]):
    """Detail tables by name, each read when a figure first uses it: they may be large, and most figures use none."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files, self._read = files, functools.cache(read_table)

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self._read(self._files[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def figure_spec(values: Mapping[str, Any]) -> FigureSpec:
    """Return the contract's specification of one item of a draw part's `figures`."""
    given: dict[str, Any] = {name: tuple(values.get(name) or ()) for name in ("scenarios", "policies")}
    given |= {name: values[name] for name in ("name", "kind", "title", "caption")}
    return FigureSpec(**given, published=values.get("published") or "", params=values.get("params") or {})


def drawing_function(study: Study, kind: str) -> DrawFigure:
    """Return the study's drawing function of a kind. Raises UserError for an unknown kind."""
    if kind not in study.figures:
        raise UserError(f"unknown drawing '{kind}' of study '{study.name}'", remedy=did_you_mean(kind, study.figures))
    return load_object(study.figures[kind])


def _shown(scores: pd.DataFrame, spec: FigureSpec, left_out: Iterable[str]) -> pd.DataFrame:
    """Return the rows of the scores for a figure's scenarios and policies (for all, if it names none), without the
    scenarios that are left out.
    """
    shown = scores[scores["scenario"].isin(spec.scenarios)] if spec.scenarios else scores
    shown = shown[~shown["scenario"].isin(list(left_out))]
    return shown[shown["policy"].isin(spec.policies)] if spec.policies else shown


def entry_of(part: Mapping[str, Any], spec: FigureSpec, caption: str, shown: pd.DataFrame) -> dict[str, Any]:
    """Return the entry of a figure for the index and the report. shown: the rows of the scores that the figure
    shows.
    """
    picture = f"plots/{part.get('run', part['scale'])}/{part['study']}/{spec.name}.svg"
    options = part.get("options", f"scale={part['scale']}")
    return {
        "name": spec.name,
        "title": spec.title,
        "caption": caption,
        "published": spec.published,
        "scenarios": _sorted(shown["scenario"]),
        "policies": _sorted(shown["policy"]),
        "seeds": [int(seed) for seed in _sorted(shown["policy_seed"])],
        "config_hash": configuration_hash(part),
        "rests_on": _sorted(shown["config_hash"]),
        "command": f"snakemake --cores all {picture} --config {options}",
    }


def _learned(part: Mapping[str, Any], scores: pd.DataFrame, shown: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the learner, the training scenarios in order, and the parent of each learned policy that some figure
    shows.
    """
    trained_on = dict(zip(scores["policy"], scores["trained_on"], strict=True))
    learned = {name: part["policies"][name]["policy"] for name in sorted(shown) if name in part["policies"]}
    return {
        name: {"learner": own["target"], "trained_on": trained_on[name], "parent": own["parent"]}
        for name, own in learned.items()
    }


def _sorted(values: Iterable[Any]) -> list[Any]:
    return sorted(set(values))
