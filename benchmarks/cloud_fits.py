"""How well the performance model fits the recorded step times of the four models, with every placement left out in
turn.

    OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/cloud_fits.py FOLDER --out docs/results/cloud_fits.csv

FOLDER holds <model>/placements.csv and <model>/scalability.csv, from the traces of Pollux (branch osdi21-artifact of
petuum/adaptdl).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from schedlab.studies.cloud.model.fit_report import fit_report

MODELS = ("cifar10", "imagenet", "ncf", "bert")


def row_of(folder: Path, model: str) -> dict:
    """Return what is told of a model's fit; errors as shares."""
    found = fit_report([folder / model / f"{name}.csv" for name in ("placements", "scalability")], leave_out=True)
    told = {name: found[name] for name in ("rows", "placements", "median_relative_error", "largest_relative_error")}
    left = {name: value for name, value in found["left_out"].items() if name != "placements"}
    return {"model": model, **told, **left}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    table = pd.DataFrame([row_of(given.folder, model) for model in MODELS])
    table.to_csv(given.out, index=False, float_format="%.6g", lineterminator="\n")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
