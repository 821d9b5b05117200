"""How the fit of step times does on what it was not made on: rows, batches and a whole file left out, and constants
chosen on other logs.

    OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/cloud_fit_held_out.py FOLDER --out
        docs/results/cloud_fit_held_out.csv

FOLDER holds throughput/<model>/placements.csv and scalability.csv, and derived/log-*.csv. A row for each check and
model:

rows         a fifth of the rows at a time is left out, drawn from a seed, and predicted
batches      each batch on a GPU is left out in turn and predicted
scalability  fitted to placements.csv alone, scalability.csv is predicted: up to 64 GPUs where 16 were measured
alone        fitted to all rows without their time in synchronisation, by the absolute error: what a log with a
             contradicted one gets
constants    fitted to all rows with those penalties on overlap and growth that are best on the other three logs
any constant the largest error of all those penalties
epochs       of a training log of four placements, a batch each: each placement left out in turn and predicted
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from schedlab.studies.cloud.model import fit as fitting
from schedlab.studies.cloud.model.fit import fit, relative_errors
from schedlab.studies.cloud.model.logs import read_step_times

MODELS = {
    "cifar10": "cifar10-resnet18",
    "imagenet": "imagenet-resnet50",
    "ncf": "movielens1m-neumf",
    "bert": "squad-bert-base",
}
OVERLAPS, GROWTHS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1), (0.0, 1e-3, 1e-2, 1e-1)
SEED, FOLDS = 0, 5


def predicted(rows: pd.DataFrame, folds: np.ndarray) -> tuple[int, float]:
    """Return how many rows were predicted by fits without their fold, and the median relative error over them."""
    errors = [relative_errors(fit(rows[folds != fold]).parameters, rows[folds == fold]) for fold in np.unique(folds)]
    return len(rows), float(np.median(np.concatenate(errors)))


def checks_of(tables: dict[str, pd.DataFrame], log: pd.DataFrame) -> Iterator[tuple[str, int, float]]:
    """Yield (check, rows predicted, median relative error) of one model."""
    rows = pd.concat(tables.values(), ignore_index=True)
    yield "rows", *predicted(rows, np.random.default_rng(SEED).permutation(len(rows)) % FOLDS)
    yield "batches", *predicted(rows, rows["batch"].to_numpy())
    errors = relative_errors(fit(tables["placements"]).parameters, tables["scalability"])
    yield "scalability", len(errors), float(np.median(errors))
    with mock.patch.object(fitting, "CONTRADICTED", 0.0):
        yield "alone", len(rows), fit(rows).median_error
    yield "epochs", *predicted(log, np.arange(len(log)))


def of_constants(rows: dict[str, pd.DataFrame]) -> Iterator[tuple[str, str, int, float]]:
    """Yield (check, model, rows, median relative error) of penalties chosen on the other logs, and of the worst
    ones.
    """
    errors = {}
    for overlap, growth in itertools.product(OVERLAPS, GROWTHS):
        with mock.patch.multiple(fitting, OVERLAP_PENALTY=overlap, GROWTH_PENALTY=growth):
            errors[overlap, growth] = {model: fit(of_model).median_error for model, of_model in rows.items()}
    table = pd.DataFrame(errors).T
    for model, of_model in rows.items():
        best = table.drop(columns=model).mean(axis=1).idxmin()
        yield "constants", model, len(of_model), float(table.loc[best, model])
        yield "any constant", model, len(of_model), float(table[model].max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found, whole = [], {}
    for model, name in MODELS.items():
        places = {kind: given.folder / "throughput" / model / f"{kind}.csv" for kind in ("placements", "scalability")}
        tables = {kind: read_step_times(place) for kind, place in places.items()}
        whole[model] = pd.concat(tables.values(), ignore_index=True)
        checks = checks_of(tables, read_step_times(given.folder / "derived" / f"log-{name}.csv"))
        found += [(check, model, *numbers) for check, *numbers in checks]
    found += of_constants(whole)
    table = pd.DataFrame(found, columns=["check", "model", "rows", "median_relative_error"])
    table.to_csv(given.out, index=False, float_format="%.6g", lineterminator="\n")
    print(table.pivot(index="check", columns="model", values="median_relative_error").round(3).to_string())


if __name__ == "__main__":
    main()
