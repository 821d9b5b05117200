"""Policies that know the exact state of the cluster and decide by a table of degrees, by rollouts, or by the value of
the afterstate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.studies.ramp.learners.afterstate.kernel import (
    Network,
    Outlook,
    afterstates,
    best_by_network,
    best_linear,
    play_linear,
    play_network,
    summary_size,
)
from schedlab.studies.ramp.learners.afterstate.rollout_kernel import best_return, block_returns, rollout_returns
from schedlab.studies.ramp.learners.afterstate.values import draw_starts
from schedlab.studies.ramp.simulator.compiled import draw_futures
from schedlab.studies.ramp.simulator.compiled_kernel import (
    REJECT,
    Arrivals,
    Futures,
    Rollouts,
    Situation,
    Tables,
    occupy,
    play_table,
    table_action,
)
from schedlab.studies.ramp.simulator.simulation import Simulation

KIND = "ramp-afterstate"
FUTURES = 200_000  # jobs that rollouts draw from


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy from which validation may choose: a table int64[graphs, A + 1], weights float64[F] of a linear value,
    rollouts that continue with either, or a network.

    form     block_rollouts: rollouts of a table that choose the block, too
    samples  samples of a rollout; jobs: arrivals in each
    """

    form: Literal["table", "rollouts", "block_rollouts", "linear", "network"]
    choice: np.ndarray
    samples: int = 0
    jobs: int = 0
    weights: np.ndarray | None = None
    network: Network | None = None

    def rollouts(self, futures: Futures, jobs: int) -> Rollouts:
        """Return rollouts that continue with the linear weights, or with the table if there are none."""
        return Rollouts(self.choice, np.empty(0) if self.weights is None else self.weights, futures, jobs)


def learned_for(simulation: Simulation) -> dict[str, Any]:
    """Return what a policy is learned for, as plain values: the pool's graphs (name, digest) and the topology."""
    cluster = simulation.scenario.cluster
    topology = [getattr(cluster.topology, "target", cluster.topology), cluster.groups, cluster.racks, cluster.servers]
    return {"graphs": [[graph.name, graph.digest] for graph in simulation.pool.graphs], "topology": topology}


def save(path: Path, kept: Candidate, actions: np.ndarray, learned: Mapping[str, Any], **about: Any) -> None:
    """Write the policy, what it was learned for (`learned_for`), and plain values about its learning."""
    arrays = {"choice": kept.choice, "actions": actions}
    if kept.weights is not None:
        arrays["weights"] = kept.weights
    if kept.network is not None:
        arrays |= {f"network/{name}": array for name, array in kept.network._asdict().items()}
    meta = {
        "kind": KIND,
        "form": kept.form,
        "samples": kept.samples,
        "jobs": kept.jobs,
        "learned_for": dict(learned),
        "about": about,
    }
    write_checkpoint(path, meta, arrays)


def load(path: Path, tables: Tables, outlook: Outlook, here: Mapping[str, Any]) -> Candidate:
    """Return the policy of a checkpoint. Raises UserError if it was learned for another cluster or for other graphs
    than `here` (`learned_for`).

    Older checkpoints do not contain the cluster and the graphs. For them, only the numbers of graphs, degrees and
    features are compared.
    """
    checkpoint = read_checkpoint(path, KIND)
    meta, arrays = checkpoint.meta, checkpoint.arrays
    network = Network(**checkpoint.group("network")) if meta["form"] == "network" else None
    expected = (len(tables.sequential), len(tables.actions) + 1)
    size = summary_size(outlook)
    fits = arrays["choice"].shape == expected and arrays["actions"].tolist() == tables.actions.tolist()
    fits &= "weights" not in arrays or len(arrays["weights"]) == size
    fits &= network is None or len(network.first) == size + tables.servers
    if not fits:
        graphs, degrees = arrays["choice"].shape[0], arrays["actions"].tolist()
        what = f"the policy was learned for {graphs} graphs and the degrees {degrees}"
        raise UserError(
            what, where=str(path), expected=f"{expected[0]} graphs and the degrees {tables.actions.tolist()}"
        )
    _require_same(meta.get("learned_for", here), here, str(path))
    return Candidate(meta["form"], arrays["choice"], meta["samples"], meta["jobs"], arrays.get("weights"), network)


def _require_same(learned: Mapping[str, Any], here: Mapping[str, Any], where: str) -> None:
    if learned["topology"] != here["topology"]:
        told, expected = (" ".join(map(str, each["topology"])) for each in (learned, here))
        raise UserError(f"the policy was learned for the cluster {told}", where=where, expected=expected)
    if [digest for _, digest in learned["graphs"]] != [digest for _, digest in here["graphs"]]:
        told, expected = (", ".join(name for name, _ in each["graphs"]) for each in (learned, here))
        same = " of the same names, but with other ops or costs" if told == expected else ""
        raise UserError(f"the policy was learned for the graphs {told}", where=where, expected=f"{expected}{same}")


def play(kept: Candidate, tables: Tables, outlook: Outlook, arrivals: Arrivals, stop: float) -> float:
    """Return the number of jobs that an episode accepts under a table or a value. Rollouts are run by
    values.collect.
    """
    if kept.form == "linear":
        return play_linear(tables, outlook, arrivals, stop, kept.weights)
    if kept.form == "network":
        return play_network(tables, outlook, arrivals, stop, kept.network)
    return play_table(tables, arrivals, stop, kept.choice)


class AfterstatePolicy:
    """Decides on the waiting job of a simulation. Its random draws depend on its seed and the seed of the unit."""

    def __init__(self, kept: Candidate, tables: Tables, outlook: Outlook, seed: int) -> None:
        self._kept, self._tables, self._outlook, self._seed = kept, tables, outlook, seed
        count = len(tables.actions)
        size = summary_size(outlook) + (tables.servers if kept.form == "network" else 0)
        self._rows, self._own, self._masks = (
            np.zeros((count + 1, size)),
            np.empty(count + 1),
            np.empty(count + 1, np.uint64),
        )
        self._blocks = np.empty(count + 1, np.int64)
        self._futures: Futures | None = None

    def reset(self, unit: Unit) -> None:
        """Begin the random stream of an episode."""
        self._random = generator(derive_seed(self._seed, "ramp", "rollouts", unit.seed))

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int | tuple[int, int]:
        """Return a number of shards that the mask (int16[most + 1]) allows, or 0 to reject the job. If rollouts choose
        the block, return a pair: this number and one of `simulation.free_blocks`.
        """
        degree, block = self.choice(simulation, mask)
        return degree if block is None else (degree, block)

    def choice(self, simulation: Simulation, mask: np.ndarray) -> tuple[int, int | None]:
        """Return the number of shards and the block, or None if first fit chooses the block."""
        tables, cluster, job = self._tables, simulation.cluster, simulation.cluster.queue[0]
        ends = np.zeros(tables.servers)
        for running in cluster.running:
            occupy(ends, np.uint64(running.plan.placement.mask), running.started + running.duration)
        graph = simulation.pool.place(job.graph)
        allowed = (tables.durations[graph] <= job.time_limit) & (mask[tables.actions] > 0)
        meets = int(allowed @ (1 << np.arange(len(allowed))))
        action = self._action(simulation, Situation(ends, cluster.time, simulation.scenario.episodes.end, graph, meets))
        if action == REJECT:
            return 0, None
        block = int(self._blocks[action]) if self._kept.form == "block_rollouts" else None
        return int(tables.actions[action]), block

    def _action(self, simulation: Simulation, now: Situation) -> int:
        kept, tables = self._kept, self._tables
        if kept.form == "table":
            return table_action(tables, kept.choice, now.ends, now.time, now.graph, now.meets)
        if kept.form in ("rollouts", "block_rollouts"):
            if self._futures is None:
                self._futures = draw_futures(simulation, tables, generator(self._seed, "ramp", "futures"), FUTURES)
            rollouts = kept.rollouts(self._futures, kept.jobs)
            starts = draw_starts(self._random, rollouts, 1, kept.samples)[0]
            if kept.form == "rollouts":
                rollout_returns(tables, self._outlook, rollouts, now, starts, self._own)
            else:
                block_returns(tables, rollouts, now, starts, self._own, self._blocks)
            return best_return(self._own)
        afterstates(tables, self._outlook, now, self._rows, self._own, self._masks)
        if kept.form == "linear":
            return best_linear(kept.weights, self._rows, self._own)
        return best_by_network(kept.network, self._rows, self._own)
