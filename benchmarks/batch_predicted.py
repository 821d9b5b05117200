"""Predicting without learning: bases of the rollouts, not searched for, over the predictions that rollouts have, beside
rules by requests.

    python benchmarks/batch_predicted.py [--out FILE.csv]

Mean bounded slowdown on the windows of the validation part, by which one would have to choose, and of the test part, at
the scale full. The scenarios score the same rules among others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from schedlab.config import experiment
from schedlab.config.schema import validate
from schedlab.stages.studies import find_study
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.workloads.prepare import make_trace

REPOSITORY = Path(__file__).resolve().parents[1]
SCENARIOS = ("sdsc_sp2", "hpc2n", "sdsc_sp2_easy", "hpc2n_easy")
SHOWN = (
    "sjf",
    "f1",
    "smallest_area",
    "planner",
    "shortest_predicted",
    "f1_predicted",
    "smallest_area_predicted",
    "costly_per_area_predicted",
)


def main() -> None:
    """Write a row a scenario and rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=REPOSITORY / "docs/results/batch_predicted.csv", help="where the rows go"
    )
    arguments = parser.parse_args()
    records, rows = experiment.load(REPOSITORY / "conf", "full", find_study).studies["batch"].scenarios, []
    for name in SCENARIOS:
        scenario = validate(BatchScenario, {"name": name, "seed": records[name]["seed"], **records[name]["problem"]})
        problem = BatchProblem(scenario, make_trace(scenario.workload)[0])
        for rule in SHOWN:
            policy, row = (
                RULE_MAKERS[rule]({}, problem, 0),
                {"scenario": name, "rule": rule, "windows": len(problem.units("test"))},
            )
            for split in ("validation", "test"):
                row[split] = float(
                    np.mean([problem.rollout(policy, unit).scores["avg_bsld"] for unit in problem.units(split)])
                )
            rows.append(row)
            print(row, flush=True)
    pd.DataFrame(rows).to_csv(arguments.out, index=False, float_format="%.10g")


if __name__ == "__main__":
    main()
