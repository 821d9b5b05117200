"""The published system's simulations: one CSV of ten experiments (the published record), read as simulation tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError, did_you_mean
from schedlab.studies.adaptation.simulator.table import named_sequences, need_columns, read_rows, with_numbers

if TYPE_CHECKING:
    import pandas as pd

NOTHING = "3"  # the digit for doing nothing: the published system always has three growth actions
PUBLISHED = {  # columns of the record -> those of a simulation table
    "experiment": "experiment",
    "scenario": "scenario",
    "model": "model",
    "dataset": "data",
    "seq": "sequence",
    "adapt_start_s": "start",
    "budget_s": "total_time",
    "epochs": "epochs",
    "params_final": "parameters",
    "train_acc_final": "train_accuracy",
    "test_acc_final": "test_accuracy",
}
SECONDS = ("train_epoch_s_mean", "eval_s_mean")  # of an epoch: training, evaluation
TEXTS = ("experiment", "scenario", "model", "dataset", "seq")
NUMBERS = (*(name for name in PUBLISHED if name not in TEXTS), *SECONDS, "test_acc_mean_last3")


def read_own_or_published(path: Path | str) -> pd.DataFrame:
    """Return a simulation table from a file: a table of schedlab (CSV or Parquet) or the published record.

    Raises UserError if the file is unreadable or invalid.
    """
    table = read_rows(Path(path))
    if "seq" in table and "sequence" not in table:
        return _of_record(_with_numbers(table, path), path)
    return named_sequences(table, path)


def import_published(path: Path | str, experiment: str | None = None) -> pd.DataFrame:
    """Return the published record, or one experiment of it, as a simulation table.

    Metrics are those of the last finished epoch. There is one job and one replicate, no validation set and no loss.
    `seconds_charged` is the number of epochs times their mean seconds. Raises UserError for a missing file or column,
    an unknown experiment, and an experiment in which no sequence ever does nothing.
    """
    published = _with_numbers(read_rows(Path(path)), path)
    need_columns(published, (*PUBLISHED, *SECONDS, "timeleft1_s"), str(path))
    if experiment is not None:
        known = list(dict.fromkeys(published["experiment"].astype(str)))
        if experiment not in known:
            remedy = did_you_mean(experiment, known)
            raise UserError(f"unknown experiment '{experiment}'", where=str(path), remedy=remedy)
        published = published[published["experiment"].astype(str) == experiment]
    return _of_record(published, path)


def _with_numbers(published: pd.DataFrame, path: Path | str) -> pd.DataFrame:
    numbers = [str(name) for name in published if name in NUMBERS or str(name).startswith("timeleft")]
    return with_numbers(published, numbers, path)


def _of_record(published: pd.DataFrame, path: Path | str) -> pd.DataFrame:
    """Return rows of the record as rows of a simulation table; columns experiment, seq, test_acc_final are required."""
    need_columns(published, ("experiment", "seq", "test_acc_final"), str(path))
    for name, rows in published.groupby("experiment", sort=False):
        if not rows["seq"].str.contains(NOTHING).any():
            what = f"no sequence does nothing (digit {NOTHING}), so there is nothing to compare growth with"
            expected = f"all sequences of digits 0 to {NOTHING}"
            raise UserError(what, where=f"{path}, {name}: seq", expected=expected, remedy="take the whole file")
    table = published[[name for name in PUBLISHED if name in published]].rename(columns=PUBLISHED)
    table = table.reset_index(drop=True)
    if "model" in table:
        table["model"] = table["model"].astype(str).str.lower()
    for number, name in enumerate(sorted(name for name in published if name.startswith("timeleft"))):
        table[f"time_left_{number + 1}"] = published[name].to_numpy()
    training, evaluation = SECONDS
    if {"epochs", training, evaluation} <= set(published):
        table["seconds_charged"] = (published["epochs"] * (published[training] + published[evaluation])).to_numpy()
    if "test_acc_mean_last3" in published:
        table["test_accuracy_last3"] = published["test_acc_mean_last3"].to_numpy()
    return table.assign(timing="gv100gl", job=0, replicate=0)
