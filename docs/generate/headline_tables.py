"""The answers of the studies, as `schedlab record` wrote them: docs/results/<study>/headline.csv."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from table_parts import REPOSITORY, page

from schedlab.config.readers import read_yaml
from schedlab.evaluation.recorded import read_study_record, recorded_answers, recorded_headline
from schedlab.figures.verdicts import budgets, chosen_on, ratio

STUDIES = ("adaptation", "hetero", "batch", "ramp", "cloud")
NOT_RECORDED = "not recorded yet; `make figures` prints the verdict of scale `small`"


def headlines(results: Path) -> str:
    """A row for each question: the policy against the best of all rivals, over all scenarios of the question."""
    rows = []
    for study in STUDIES:
        found = [[f"`{study}`", *cells] for cells in _answers(study, results)]
        asked = _questions(study) or [""]
        rows += found or [[f"`{study}`", question, "", "", NOT_RECORDED, *[""] * 5] for question in asked[:1]]
    header = ["study", "question", "policy", "best rival", "ratio [95 % interval]", "verdict"]
    header += ["budget", "of the rival", "seeds", "recorded"]
    return page(header, rows)


def _answers(study: str, results: Path) -> Iterator[list[str]]:
    for row in _in_order(study, recorded_answers(results, study)):
        record = read_study_record(results / study)
        cells = [f"`{row['recipe']}`", f"`{row['rival']}`{chosen_on(row)}", ratio(row), row["verdict"], *budgets(row)]
        yield [row["question"], *cells, row["learning_seeds"], f"`{record.run}`, {record.date}"]


def study_headline(results: Path, study: str) -> str:
    """For each question of a study a table of the best rival of each group over all scenarios, and what both have used;
    below it, to unfold, the same in each scenario.
    """
    whole: dict[str, list[list[str]]] = {}
    single: dict[str, list[list[str]]] = {}
    rows = _in_order(study, recorded_headline(results, study))
    several = {row["question"] for row in rows if "+" in row["scenario"]}
    for row in rows:
        bounds = ["" if row[key] is None else f"{row[key]:.2f}" for key in ("ratio_to_hindsight", "ratio_to_bound")]
        rival = f"`{row['rival']}`{chosen_on(row)}"
        found = [rival, ratio(row), row["verdict"], f"{row['share_won']:.0%}", *bounds, *budgets(row)]
        names = [row["scenario"].replace("+", " + "), f"`{row['recipe']}`", row["group"]]
        into = whole if "+" in row["scenario"] or row["question"] not in several else single
        into.setdefault(row["question"], []).append([*names, *found])
    header = ["scenario", "policy", "group", "best rival", "ratio [95 % interval]", "verdict", "units won"]
    header += ["ratio to the best in hindsight", "ratio to the bound", "budget", "of the rival"]
    asked = []
    for question, answers in whole.items():
        asked.append(f"**{question[0].upper()}{question[1:]}**\n\n{page(header, answers)}")
        if each := single.get(question):
            unfolded = f"<summary>in each scenario</summary>\n\n{page(header, each)}"
            asked.append(f'<details markdown="1">\n{unfolded}\n\n</details>')
    return "\n\n".join(asked) or NOT_RECORDED[0].upper() + NOT_RECORDED[1:] + "."


def _questions(study: str) -> list[str]:
    """The questions of a study's configuration."""
    return [asked["question"] for asked in read_yaml(REPOSITORY / f"conf/study/{study}.yaml").get("headline") or ()]


def _in_order(study: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in the order in which the configuration asks the questions; those that it no longer asks come last."""
    asked = {question: place for place, question in enumerate(_questions(study))}
    return sorted(rows, key=lambda row: asked.get(row["question"], len(asked)))


def _named(study: str) -> Callable[[Path], str]:
    table = partial(study_headline, study=study)
    table.__name__ = f"{study}_headline"  # type: ignore[attr-defined]
    return table


TABLES: tuple[Callable[[Path], str], ...] = (headlines, *map(_named, STUDIES))
