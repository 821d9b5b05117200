"""Scores of the rules of some scenarios of the hetero study as one CSV, from the summary of a run of the workflow.

    python benchmarks/hetero_rules.py results/small/hetero/summary.parquet [--out FILE.csv]

A line for each rule of the scenarios `SCENARIOS`: means over the test workloads, in the units that the columns name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from schedlab.config.files import write_text

SCENARIOS = ("alike", "trio", "primer_gaia", "primer_mixed", "consequences_gaia")
UNITS = {"-": "", "fraction": "", "s": "_s", "J": "_j"}
METRICS = ("mean_bounded_slowdown", "mean_wait", "makespan", "utilisation", "energy", "oversubscription")


def scores(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the CSV from a summary (columns scenario, policy, metric, unit, value, units, split,
    statistic, config_hash).
    """
    wanted = summary["scenario"].isin(SCENARIOS) & summary["metric"].isin(METRICS)
    own = summary[wanted & (summary["split"] == "test") & (summary["statistic"] == "mean")]
    named = own.assign(column=own["metric"].astype(str) + own["unit"].astype(str).map(UNITS), workloads=own["units"])
    table = named.pivot(
        index=["scenario", "policy", "workloads", "config_hash"], columns="column", values="value"
    ).reset_index()
    order = [
        column for metric in METRICS for column in table.columns if column in (metric, f"{metric}_s", f"{metric}_j")
    ]
    table["scenario"] = pd.Categorical(table["scenario"].astype(str), SCENARIOS)
    lines = table[["scenario", "policy", "workloads", *order, "config_hash"]]
    return lines.sort_values(["scenario", "mean_bounded_slowdown"], ignore_index=True)


def main() -> None:
    """Print or write the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("summary", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    text = scores(pd.read_parquet(given.summary)).to_csv(index=False, float_format="%.8g")
    if given.out:
        write_text(given.out, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
