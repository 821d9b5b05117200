"""What learned policies of the cloud study came to, as one table: a row for each scenario, policy, seed and preference
of a finished run.

    PYTHONPATH=src python benchmarks/cloud_tables.py results/full/cloud reinforce-fixed reinforce-adapted --out
        table.csv
    PYTHONPATH=src python benchmarks/cloud_tables.py results/full/cloud reinforce-historical --cold reinforce-fixed
        --out table.csv

With --cold, a column more: the episodes until the most probable actions bring 95 % of the final gain over random
actions of that policy with the same seed; empty: never. Printed: means over preferences and seeds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from schedlab.studies.cloud.figures.ablations import CURVE, speed

KEY = ["scenario", "policy", "policy_seed", "preference"]
SCORES = ["regret", "objective", "time", "cost", "waste", "gpu_hours", "sla_met", "severity", "restarts"]


def score_table(results: Path, policies: list[str]) -> pd.DataFrame:
    """Return the scores of policies on test units, a row a unit, with the hash of the configuration."""
    whole = results / "scores.parquet"
    files = (
        [whole] if whole.exists() else sorted(results.glob("*/evaluation/learned*.parquet"))
    )  # where only some were asked for
    scores = pd.concat(pd.read_parquet(file) for file in files)
    scores = scores[scores["policy"].isin(policies) & (scores["split"] == "test")]
    scores = scores.assign(policy_seed=scores["policy_seed"].astype(int))
    wide = scores.pivot(index=[*KEY, "config_hash"], columns="metric", values="value").reset_index()
    return wide[[*KEY, *(name for name in SCORES if name in wide), "config_hash"]]


def episodes_needed(results: Path, table: pd.DataFrame, cold: str) -> list[float | None]:
    """Return for each row of a table the episodes until 95 % of the cold start's final gain."""
    curves = pd.read_parquet(results / "curves.parquet")
    found = []
    for row in table.itertuples():
        oracle = json.loads((results / row.scenario / "inputs" / "oracle.json").read_text(encoding="utf-8"))
        of = curves[(curves["policy_seed"] == row.policy_seed) & (curves["metric"] == CURVE + row.preference)]
        own, of_cold = of[of["policy"] == row.policy], of[of["policy"] == cold]
        found.extend(speed(own, of_cold, {row.preference: oracle["preferences"][row.preference]["random"]}))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder of the study's results at a scale")
    parser.add_argument("policies", nargs="+")
    parser.add_argument("--cold", help="policy that learned from nothing")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    table = score_table(given.results, given.policies)
    if given.cold:
        table.insert(len(table.columns) - 1, "episodes_needed", episodes_needed(given.results, table, given.cold))
    table.to_csv(given.out, index=False, float_format="%.6g", lineterminator="\n")
    print(
        table.drop(columns=["config_hash", "policy_seed"])
        .groupby(["scenario", "policy"])
        .mean(numeric_only=True)
        .round(4)
        .to_string()
    )


if __name__ == "__main__":
    main()
