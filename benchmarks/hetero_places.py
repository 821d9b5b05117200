"""Where do learned policies stand among the 36 pairs? One CSV from the tables of a run of the workflow.

    python benchmarks/hetero_places.py results/full/hetero/contended/evaluation [--metric mean_bounded_slowdown] [--out FILE.csv]

A line for each rule and each seed of a learned policy, best first: mean and geometric mean over the test workloads; `place`, 1 + the number
of pairs with a lower mean; and against the pair that `best_fixed_pair` chose on validation: the ratio of means, the share of workloads won
(a tie counts half), and the mean difference of the logarithms over its standard deviation (positive: better), null where all are equal.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from schedlab.config.files import write_text
from schedlab.studies.hetero.environment_settings import ALL_PAIRS

CHOSEN = "best_fixed_pair"
TIE = 1e-12


def places(table: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the CSV from scores of one metric (columns policy, policy_seed, unit, value, config_hash)."""
    scores = table.pivot_table(index=["policy", "policy_seed"], columns="unit", values="value")
    hashes = table.groupby(["policy", "policy_seed"])["config_hash"].first()
    means = scores.mean(axis=1)
    pairs = means[means.index.get_level_values("policy").isin(ALL_PAIRS)]
    chosen = scores.loc[CHOSEN].iloc[0]
    lines = []
    for key, own in scores.iterrows():
        gain = np.log(chosen / own)
        tied = gain.abs() < TIE
        lines.append(
            {
                "policy": key[0],
                "seed": key[1],
                "workloads": len(own),
                "mean": own.mean(),
                "geometric_mean": np.exp(np.log(own).mean()),
                "place": 1 + int((pairs < own.mean()).sum()),
                "ratio_to_chosen_pair": own.mean() / chosen.mean(),
                "win_rate": float(((gain > 0) & ~tied).mean() + tied.mean() / 2),
                "effect_size": None if tied.all() else gain.mean() / gain.std(ddof=1),
                "config_hash": hashes[key],
            }
        )
    return pd.DataFrame(lines).sort_values(["mean", "policy", "seed"], ignore_index=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--metric", default="mean_bounded_slowdown")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    files = sorted(given.folder.rglob("*.parquet"))
    table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    table["policy_seed"] = table["policy_seed"].fillna(0).astype(int)
    made = places(table[(table["metric"] == given.metric) & (table["split"] == "test")])
    text = made.to_csv(index=False, float_format="%.5g")
    if given.out:
        write_text(given.out, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
