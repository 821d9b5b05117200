"""Numbers of job graphs that no cluster decides: sums and extremes for the table of graphs, observations and figures.

Source: specification of the ramp study, sections 3, 4 and 15 (table T1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from schedlab.studies.ramp.graphs.graph import TrainingGraph

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class GraphStatistics:
    """One training step of a graph in numbers; times in the unit of its costs, sizes in bytes; ops by id, the first
    where several tie.

    max_throughput  the largest memory / cost of an op, 0 for ops that cost nothing. depth: ops on the longest of the
                    shortest paths
    """

    name: str
    num_ops: int
    num_deps: int
    step_time: float
    max_cost: float
    max_cost_op: int
    total_memory: float
    max_memory: float
    max_memory_op: int
    max_throughput: float
    max_throughput_op: int
    total_dep_size: float
    max_dep_size: float
    max_dep: tuple[int, int]
    depth: int
    mean_cost: float
    median_cost: float
    mean_memory: float
    median_memory: float
    mean_dep_size: float
    median_dep_size: float


def throughput(graph: TrainingGraph) -> np.ndarray:
    """Return memory / cost of each op, float64[2n] in bytes per time unit; 0 for ops that cost nothing."""
    return np.divide(graph.memory, graph.cost, out=np.zeros(graph.num_ops), where=graph.cost > 0)


def statistics(graph: TrainingGraph) -> GraphStatistics:
    """Return the numbers of a graph."""
    rate, longest = throughput(graph), int(graph.dep_size.argmax())
    return GraphStatistics(
        name=graph.name,
        num_ops=graph.num_ops,
        num_deps=len(graph.edges),
        step_time=graph.step_time,
        max_cost=float(graph.cost.max()),
        max_cost_op=int(graph.ids[graph.cost.argmax()]),
        total_memory=graph.total_memory,
        max_memory=float(graph.memory.max()),
        max_memory_op=int(graph.ids[graph.memory.argmax()]),
        max_throughput=float(rate.max()),
        max_throughput_op=int(graph.ids[rate.argmax()]),
        total_dep_size=graph.total_dep_size,
        max_dep_size=float(graph.dep_size[longest]),
        max_dep=(int(graph.ids[graph.edges[longest, 0]]), int(graph.ids[graph.edges[longest, 1]])),
        depth=int(graph.depth.max()),
        mean_cost=float(graph.cost.mean()),
        median_cost=float(np.median(graph.cost)),
        mean_memory=float(graph.memory.mean()),
        median_memory=float(np.median(graph.memory)),
        mean_dep_size=float(graph.dep_size.mean()),
        median_dep_size=float(np.median(graph.dep_size)),
    )


def statistics_table(graphs: Sequence[TrainingGraph], training_steps: int = 1) -> pd.DataFrame:
    """Return a row a graph: GraphStatistics, and the sequential completion time of so many training steps."""
    import pandas as pd

    table = pd.DataFrame([asdict(statistics(graph)) for graph in graphs])
    table.insert(4, "sequential_jct", training_steps * table["step_time"])
    return table
