"""The dissertation's tests: what the workflow learned as it did, and rollouts, on its windows, seed by seed, one CSV.

    learned=results/full/batch/policies
    snakemake --cores 1 --config scale=full -- $learned/{ppo-dissertation-hpc2n,rollout-hpc2n}/seed-{0..4}/policy.zip
    python benchmarks/batch_published_tests.py results/full/batch [--out FILE.csv]

The seeds that are there are scored, so that the cells can be made in pieces. Mean and median of the bounded slowdown
and of the wait (s) over the jobs of all windows; on SDSC-SP2 the last window counts four times, as published. The
scenarios `published_test_*` score the same, each window once.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from schedlab.config import experiment
from schedlab.config.schema import validate
from schedlab.evaluation import tables
from schedlab.stages.studies import find_study
from schedlab.studies.batch.learners.policy_files import PREFIX, named_policy
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.workloads.prepare import make_trace

REPOSITORY = Path(__file__).resolve().parents[1]
SCENARIOS = (
    "published_test_hpc2n",
    "published_test_hpc2n_backfill",
    "published_test_sdsc_sp2",
    "published_test_sdsc_sp2_backfill",
)
COUNTED = {"test-049704": 4}  # windows of SDSC-SP2


def rows_of(folder: Path, name: str, record: dict) -> list[dict]:
    """Return a row a seed of each policy of a scenario whose file is there."""
    learned = [
        (policy, file)
        for policy in record["policies"]
        for file in sorted((folder / "policies" / policy).glob("seed-*/policy.zip"))
    ]
    if not learned:
        return []
    scenario = validate(BatchScenario, {"name": name, "seed": record["seed"], **record["problem"]})
    trace, report = make_trace(scenario.workload)
    problem, rows = BatchProblem(scenario, trace, report["cleaning"]["maxima"]), []
    for policy, file in learned:
        acting = named_policy(f"{PREFIX}{file}", problem)
        scored = [(unit.id, problem.rollout(acting, unit).details["jobs"]) for unit in problem.units("test")]
        jobs = pd.concat([job for unit, job in scored for _ in range(COUNTED.get(unit, 1) if "sdsc" in name else 1)])
        curve = tables.read(tables.CURVES, file.parent / "curve.parquet")
        row = {"scenario": name, "policy": policy, "seed": int(file.parent.name.removeprefix("seed-"))}
        row |= {"steps": int(curve["step"].max()), "cpu_seconds": round(_seconds(file.parent))}
        row |= {"mean": jobs["bsld"].mean(), "median": jobs["bsld"].median()}
        rows.append(row | {"wait_mean": jobs["wait"].mean(), "wait_median": jobs["wait"].median()})
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _seconds(learned: Path) -> float:
    """CPU seconds of learning a seed, as the workflow measured them."""
    return float(pd.read_csv(learned / "benchmarks/learn.tsv", sep="\t")["cpu_time"].iloc[0])


def main() -> None:
    """Write the rows of all scenarios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="results of the study at a scale, such as results/full/batch")
    parser.add_argument(
        "--out", type=Path, default=REPOSITORY / "docs/results/batch_published_tests.csv", help="where the rows go"
    )
    arguments = parser.parse_args()
    records = experiment.load(REPOSITORY / "conf", "full", find_study).studies["batch"].scenarios
    rows = [row for name in SCENARIOS for row in rows_of(arguments.folder, name, records[name])]
    pd.DataFrame(rows).to_csv(arguments.out, index=False, float_format="%.10g")


if __name__ == "__main__":
    main()
