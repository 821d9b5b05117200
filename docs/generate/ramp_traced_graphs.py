"""The models that we traced beside the published graphs of the ramp study, in numbers; one CSV.

    SCHEDLAB_DATA=DIR python docs/generate/ramp_traced_graphs.py [--steps 50] [--out FILE.csv]

DIR holds the five PipeDream graphs (graphs/), mirrored as published. Two lines a graph, published and ours: ops and
deps of a training step, sequential completion time of so many steps (ms), the same without the ops that read inputs,
the largest cost of an op (ms), memory and the largest memory of an op (bytes), depth, and the rank correlation of op
times with the published ones, of either pass (inputs and ops that take no time in one of them left out; empty where the
ops are not the same).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from schedlab.config.data_paths import find_data
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.graphs.statistics import statistics_table
from schedlab.studies.ramp.scenario import SHIPPED


def line(graph: ForwardGraph, steps: int, join_sinks: bool) -> dict[str, Any]:
    """Return the numbers of a graph."""
    training = training_graph(graph, join_sinks=join_sinks)
    found = statistics_table([training], steps).iloc[0]
    read = float(training.cost[[kind == "Input" for kind in training.kinds]].sum())
    columns = ("num_ops", "num_deps", "sequential_jct", "max_cost", "total_memory", "max_memory", "depth")
    return {name: found[name] for name in columns} | {"without_input": steps * (training.step_time - read)}


def rank_correlations(published: ForwardGraph, ours: ForwardGraph) -> dict[str, float]:
    """Return how alike the order of op times is, pass by pass; nothing where the ops are not the same."""
    order = np.argsort(published.ids)
    if ours.kinds != tuple(published.kinds[place] for place in order):
        return {}
    found = {}
    for name in ("forward", "backward"):
        measured, reckoned = (getattr(published, f"{name}_cost")[order][1:], getattr(ours, f"{name}_cost")[1:])
        both = (measured > 0) & (reckoned > 0)
        found[f"rank_{name}"] = float(spearmanr(measured[both], reckoned[both]).statistic)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    published, ours = (
        read_graphs(find_data("graphs")),
        {graph.name: graph for graph in read_graphs(find_graphs(SHIPPED))},
    )
    rows = []
    for graph in published:
        mine = ours[graph.name.removesuffix("1_0")]
        rows.append({"graph": mine.name, "from": "published", **line(graph, given.steps, join_sinks=False)})
        rows.append(
            {
                "graph": mine.name,
                "from": "ours",
                **line(mine, given.steps, join_sinks=True),
                **rank_correlations(graph, mine),
            }
        )
    pd.DataFrame(rows).to_csv(given.out or sys.stdout, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
