"""Numbers of job graphs that do not depend on a cluster: sums and extremes for the table of graphs, observations
and figures.

See docs/reference/ramp_graphs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.studies.ramp.graphs.graph import TrainingGraph

if TYPE_CHECKING:
    import pandas as pd


def throughput(graph: TrainingGraph) -> np.ndarray:
    """Return memory / cost of each op, float64[2n] in bytes per time unit; 0 for ops that cost nothing."""
    return np.divide(graph.memory, graph.cost, out=np.zeros(graph.num_ops), where=graph.cost > 0)


def statistics(graph: TrainingGraph) -> dict[str, Any]:
    """Return one training step of a graph in numbers: times in the unit of its costs, sizes in bytes.

    Ops are named by their ids; of equal values, the first op counts. max_throughput: largest memory / cost; depth:
    largest number of ops on a shortest path from the first source.
    """
    found: dict[str, Any] = {"name": graph.name, "num_ops": graph.num_ops, "num_deps": len(graph.edges)}
    found["step_time"] = graph.step_time
    rate, longest = throughput(graph), int(graph.dep_size.argmax())
    for name, values in (("cost", graph.cost), ("memory", graph.memory), ("throughput", rate)):
        if name == "memory":
            found["total_memory"] = graph.total_memory
        found[f"max_{name}"] = float(values.max())
        found[f"max_{name}_op"] = int(graph.ids[values.argmax()])
    found |= {
        "total_dep_size": graph.total_dep_size,
        "max_dep_size": float(graph.dep_size[longest]),
        "max_dep": tuple(graph.ids[graph.edges[longest]].tolist()),
        "depth": int(graph.depth.max()),
    }
    for name, values in (("cost", graph.cost), ("memory", graph.memory), ("dep_size", graph.dep_size)):
        found |= {f"mean_{name}": float(values.mean()), f"median_{name}": float(np.median(values))}
    return found


def statistics_table(graphs: Sequence[TrainingGraph], training_steps: int = 1) -> pd.DataFrame:
    """Return a table with a row for each graph: its statistics, and the sequential completion time of so many training
    steps.
    """
    import pandas as pd

    table = pd.DataFrame([statistics(graph) for graph in graphs])
    table.insert(4, "sequential_jct", training_steps * table["step_time"])
    return table
