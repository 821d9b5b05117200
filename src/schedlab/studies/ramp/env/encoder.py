"""Observations in the forms that settings name: Gymnasium spaces, and arrays for the waiting job of a simulation.

See docs/reference/ramp_model.md.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.env.observation import JOB_FEATURES, GraphFeatures
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.simulator.compiled import compiled_tables
from schedlab.studies.ramp.simulator.compiled_kernel import Tables
from schedlab.studies.ramp.simulator.simulation import Simulation


class GraphNumber(gym.spaces.Box):
    """The space of a graph's number. It contains the graphs, so that networks can find the graph with a number."""

    def __init__(self, graphs: tuple[GraphFeatures, ...]) -> None:
        super().__init__(0, len(graphs) - 1, (1,), np.int64)
        self.graphs = graphs


class ObservationEncoder:
    """Encodes observations of a simulation. Its construction resets the simulation.

    graphs  features of the graphs of the pool
    tables  durations of the pool's jobs, for the observation `durations`; None: they are computed if needed
    """

    def __init__(self, simulation: Simulation, settings: EnvironmentSettings, tables: Tables | None = None) -> None:
        self.simulation, self.settings = simulation, settings
        self._absolute = settings.scale == "absolute"
        self._speedups: np.ndarray | None = None
        if settings.observation == "durations":
            self._speedups = _speedups(tables or compiled_tables(simulation), simulation.scenario.management.most)
        simulation.reset(0)
        self.graphs: tuple[GraphFeatures, ...] = tuple(
            simulation.observer.graph(graph, self._absolute) for graph in simulation.pool.graphs
        )
        self.space: Any = self._space(simulation.scenario.management.most + 1)

    def mask(self) -> np.ndarray:
        """Return int16[most + 1]: 1 for the actions that are valid for the waiting job."""
        return self.simulation.mask(blocks=self.settings.mask == "blocks")

    def features(self, mask: np.ndarray) -> np.ndarray:
        """Return float32 features of the waiting job, its graph and the cluster, and the mask; for the observation
        `durations` also the speed-up at each degree, and whether it meets the limit.
        """
        seen = self.simulation.features(mask, self._absolute, self.settings.partitions)
        if self._speedups is None:
            return seen
        job = self.simulation.cluster.queue[0]
        speedups = self._speedups[self.simulation.pool.place(job.graph)]
        meets = speedups * job.beta >= 1 - 1e-12
        return np.concatenate([seen, speedups / self.simulation.scenario.management.most, meets]).astype(np.float32)

    def number(self) -> int:
        """Return the number of the waiting job's graph in `graphs`."""
        return self.simulation.pool.place(self.simulation.cluster.queue[0].graph)

    def observation(self, features: np.ndarray, mask: np.ndarray, number: int) -> Any:
        """Return the observation made of `features()`, `mask()` and `number()`."""
        if self.settings.observation in ("vector", "durations"):
            return features.copy()
        if self.settings.observation == "graph_id":
            return {"features": features.copy(), "graph": np.array([number], dtype=np.int64)}
        graph = self.graphs[number]
        arrays = {
            "node_features": graph.nodes,
            "edge_features": graph.edges,
            "edges_src": graph.sources,
            "edges_dst": graph.destinations,
        }
        return {
            **{name: self._padded(name, values) for name, values in arrays.items()},
            "node_split": np.array([len(graph.nodes)], dtype=np.float32),
            "edge_split": np.array([len(graph.edges)], dtype=np.float32),
            "graph_features": features.copy(),
            "action_set": np.arange(len(mask), dtype=np.int16),
            "action_mask": mask.copy(),
        }

    def _space(self, actions: int) -> gym.Space:
        box = gym.spaces.Box
        size = JOB_FEATURES + actions + (0 if self._speedups is None else 2 * self._speedups.shape[1])
        most = np.inf if self._absolute else 1.0
        features = box(0.0, most, (size,), np.float32)
        if self.settings.observation in ("vector", "durations"):
            return features
        if self.settings.observation == "graph_id":
            return gym.spaces.Dict({"features": features, "graph": GraphNumber(self.graphs)})
        nodes, edges = self._padding()
        return gym.spaces.Dict(
            {
                "node_features": box(0.0, most, (nodes, 5), np.float32),
                "edge_features": box(0.0, most, (edges, 2), np.float32),
                "edges_src": box(0.0, nodes, (edges,), np.float32),
                "edges_dst": box(0.0, nodes, (edges,), np.float32),
                "node_split": box(0.0, nodes, (1,), np.float32),
                "edge_split": box(0.0, edges, (1,), np.float32),
                "graph_features": features,
                "action_set": box(0, actions, (actions,), np.int16),
                "action_mask": box(0, 1, (actions,), np.int16),
            }
        )

    def _padding(self) -> tuple[int, int]:
        """Return the numbers of ops and deps of a padded graph. Raises UserError if a graph is larger."""
        ops, deps = (max(len(getattr(graph, name)) for graph in self.graphs) for name in ("nodes", "edges"))
        most = self.settings.max_nodes
        if most is None:
            return ops, deps
        if ops > most:
            name = next(graph.name for graph in self.simulation.pool.graphs if graph.num_ops == ops)
            what = f"graph '{name}' has {ops} ops in a training step"
            raise UserError(what, where="environment.max_nodes", expected=f"at least {ops}")
        return most, most * (most - 1) // 2

    def _padded(self, name: str, values: np.ndarray) -> np.ndarray:
        padded = np.zeros(self.space[name].shape, dtype=np.float32)
        padded[: len(values)] = values
        return padded


def _speedups(tables: Tables, most: int) -> np.ndarray:
    """Return float64[graphs, most], the speed-up of each graph at degrees 1 to `most` on an empty cluster; 0 if it
    cannot be placed.
    """
    found = np.zeros((len(tables.sequential), most))
    found[:, tables.actions - 1] = tables.sequential[:, None] / tables.durations
    return found
