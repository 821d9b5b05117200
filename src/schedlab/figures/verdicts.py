"""The answers of a run as text: a line for the console, and the table that INDEX.md and the README show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schedlab.config.settings import ALL
from schedlab.evaluation import tables

COLUMNS = {  # heading -> alignment
    "study": "---",
    "question": "---",
    "scenario": "---",
    "policy": "---",
    "best rival": "---",
    "ratio": "--:",
    "units won": "--:",
    "to the best in hindsight": "--:",
    "to the bound": "--:",
    "budget": "--:",
    "of the rival": "--:",
    "seeds": "--:",
    "verdict": "---",
}


def read_answers(file: Path | str) -> list[dict[str, Any]]:
    """Return the rows of a headline table that compare a policy with all rivals, with `rival_group`. A missing number
    is None.

    Questions are in alphabetical order. The row of the mean over scenarios follows those of the single scenarios.
    """
    table = tables.read(tables.HEADLINE, file)
    groups = table[table["group"] != ALL].set_index(["question", "scenario", "rival"])["group"].to_dict()
    rows = table[table["group"] == ALL].astype(object)
    found = rows.where(rows.notna(), None).to_dict("records")
    for row in found:
        names = {groups.get((row["question"], row["scenario"], row["rival"]), "")}
        row["rival_group"] = "".join(names)
    return sorted(found, key=lambda row: (row["question"], row["scenario"].count("+"), row["scenario"]))


def main_answers(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one answer to each question: for several scenarios that of their mean if there is one, else that of each
    scenario.
    """
    most = {row["question"]: row["scenario"].count("+") for row in answers}  # the last row is the mean
    return [row for row in answers if row["scenario"].count("+") == most[row["question"]]]


def lines(file: Path | str) -> Iterator[str]:
    """Yield a line for each question that a study's headline table answers: the comparison and the verdict."""
    study = Path(file).parent.name
    for row in main_answers(read_answers(file)):
        group = f" ({row['rival_group']})" if row["rival_group"] else ""
        ours, theirs = budgets(row)
        yield (
            f"{study}: {row['recipe']} on {row['scenario']}: {row['metric']} {ratio(row)} of "
            f"{row['rival']}{group}{chosen_on(row)}: "
            f"{row['verdict']} (budget: {ours}, rival's: {theirs})"
        )


def markdown(answers: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """Return the lines of a Markdown table of the answers of several studies (study -> `read_answers`)."""
    rows = [_cells(study, row) for study, found in answers.items() for row in found]
    head = ["| " + " | ".join(COLUMNS) + " |", "|" + "|".join(COLUMNS.values()) + "|"]
    return [*head, *("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in rows)]


def ratio(row: Mapping[str, Any]) -> str:
    """Return a ratio with its interval, '0.84 [0.76, 0.93]', with a third digit if two would hide the verdict; 'no
    ratio' if there is none.
    """
    if row["ratio"] is None:
        return "no ratio"
    if row["ci_low"] is None:
        return f"{row['ratio']:.2f}"
    ends = [f"{row[name]:.2f}" for name in ("ci_low", "ci_high")]
    digits = 3 if "1.00" in ends and row["verdict"] in ("better", "worse") else 2
    return f"{row['ratio']:.{digits}f} [{row['ci_low']:.{digits}f}, {row['ci_high']:.{digits}f}]"


def budgets(row: Mapping[str, Any]) -> list[str]:
    """Return the budgets of the policy and of the rival, '9,600 episodes'; '–' for one that is not known."""
    used = (row["budget"], row["rival_budget"])
    return ["–" if each is None else f"{each:,.0f} {row['budget_unit']}" for each in used]


def chosen_on(row: Mapping[str, Any]) -> str:
    """Return ', chosen on test units' if the rival was not chosen on validation units, as it should be; else ''."""
    return "" if row["rival_chosen_on"] == "validation" else f", chosen on {row['rival_chosen_on']} units"


def _cells(study: str, row: Mapping[str, Any]) -> list[str]:
    rival = f"`{row['rival']}`" + (f" ({row['rival_group']})" if row["rival_group"] else "")
    numbers = ["–" if row[name] is None else f"{row[name]:.2f}" for name in ("ratio_to_hindsight", "ratio_to_bound")]
    return [
        f"`{study}`",
        row["question"],
        row["scenario"].replace("+", " + "),
        f"`{row['policy']}`" if " + " not in row["policy"] else f"`{row['recipe']}`",
        rival + chosen_on(row),
        ratio(row),
        f"{row['share_won']:.0%}",
        *numbers,
        *budgets(row),
        str(row["learning_seeds"]),
        row["verdict"],
    ]
