"""Where do learned policies stand among the 36 pairs? One CSV from the tables of a run of the workflow.

    python benchmarks/hetero_places.py results/full/hetero/contended/evaluation [--metric mean_bounded_slowdown]
        [--out
        FILE.csv]
        [--against COMPARISONS.csv]

A line for each rule and each seed of a learned policy, best first: mean and geometric mean over the test workloads;
`place`, 1 + the number of pairs with a lower mean; and against the pair that `best_fixed_pair` chose on validation:
the ratio of means, the share of workloads won (a tie counts half), and the mean difference of the logarithms over
its standard deviation (positive: better), null where all are equal. Of what decides among several actions: how many
of them it took, and the percentage of its decisions that were no pair of the shortest job.

--against writes a second table: each learned policy, all of its seeds, against that pair and against the pair of the
lowest mean on the test, which is known in hindsight alone. Ratio of means with its interval over seeds and workloads
(the bootstrap of schedlab.evaluation.statistics), shares of workloads won and lost (mean over seeds), and the effect
size of the workloads' mean differences of logarithms.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from schedlab.config.files import write_text
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.statistics import (
    SMALLEST,
    TIE,
    draw_counts,
    pair,
    resample,
    sample,
    standardised,
    statistic_of,
)
from schedlab.studies.hetero.env.settings import ALL_PAIRS

CHOSEN, SHORTEST = "best_fixed_pair", "shortest-"
DECISIONS = "decisions.parquet"


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


def comparisons(table: pd.DataFrame, settings: StatisticsSettings) -> pd.DataFrame:
    """Return the lines of the second table from scores of one metric (columns as above, with kind, block and
    weight).
    """
    means = table.groupby("policy")["value"].mean()
    best = means[means.index.isin(ALL_PAIRS)].idxmin()
    lines = []
    for policy in sorted(table.loc[table["kind"] == "learned", "policy"].unique()):
        for against in (CHOSEN, best):
            ours, theirs = pair(*(sample(table[table["policy"] == name]) for name in (policy, against)))
            ratio = statistic_of(ours, "mean") / statistic_of(theirs, "mean")
            low = high = None
            if len(ours.seeds) >= SMALLEST:
                counts = draw_counts(ours, settings.resamples, generator(0, "hetero-places", policy, against))
                drawn = resample(ours, "mean", counts) / resample(theirs, "mean", counts)
                low, high = np.quantile(drawn, [(1 - settings.confidence) / 2, (1 + settings.confidence) / 2])
            gain = np.log(theirs.values / ours.values)
            gain[np.abs(gain) < TIE] = 0.0
            lines.append(
                {
                    "policy": policy,
                    "seeds": len(ours.seeds),
                    "workloads": len(ours.units),
                    "against": against,
                    "ratio": ratio,
                    "ratio_low": low,
                    "ratio_high": high,
                    "won": (gain > 0).mean(),
                    "lost": (gain < 0).mean(),
                    "win_rate": ((np.sign(gain) + 1) / 2).mean(),
                    "effect_size": standardised(gain.mean(axis=0)),
                    "config_hash": table.loc[table["policy"] == policy, "config_hash"].iloc[0],
                }
            )
    return pd.DataFrame(lines)


def choices(decisions: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each policy and seed that decided, from the detail table (columns policy, policy_seed,
    action).
    """
    own = decisions.assign(
        seed=decisions["policy_seed"].astype(int), other=~decisions["action"].str.startswith(SHORTEST)
    )
    each = own.groupby(["policy", "seed"]).agg(actions=("action", "nunique"), percent_other=("other", "mean"))
    return each.assign(percent_other=100 * each["percent_other"]).reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--metric", default="mean_bounded_slowdown")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path, metavar="COMPARISONS.csv")
    given = parser.parse_args()
    files = sorted(given.folder.glob("*.parquet"))
    details = pd.concat(
        [pd.read_parquet(file) for file in sorted(given.folder.glob(f"*/{DECISIONS}"))], ignore_index=True
    )
    table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    table["policy_seed"] = table["policy_seed"].fillna(0).astype(int)
    own = table[(table["metric"] == given.metric) & (table["split"] == "test")]
    lines = places(own).merge(choices(details[details["split"] == "test"]), how="left", on=["policy", "seed"])
    order = [*(name for name in lines if name != "config_hash"), "config_hash"]
    text = lines[order].astype({"actions": "Int64"}).to_csv(index=False, float_format="%.5g")
    if given.out:
        write_text(given.out, text)
    else:
        print(text, end="")
    if given.against:
        write_text(given.against, comparisons(own, StatisticsSettings()).to_csv(index=False, float_format="%.5g"))


if __name__ == "__main__":
    main()
