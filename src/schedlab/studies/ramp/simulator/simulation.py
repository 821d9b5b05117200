"""The simulation of a scenario, on which rules and environments act: the cluster, its manager, and masks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.studies.ramp.env.observation import Observer
from schedlab.studies.ramp.graphs.graph import ForwardGraph
from schedlab.studies.ramp.placement.blocks import InnerBlocks
from schedlab.studies.ramp.placement.managers import Manager
from schedlab.studies.ramp.placement.user_managers import user_managers
from schedlab.studies.ramp.rules import Decision, Rule
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.arrivals import JobPool
from schedlab.studies.ramp.simulator.cluster import Cluster, ClusterLimits, JobPlan
from schedlab.studies.ramp.simulator.hardware import legal_degrees, memory_of, network, speeds_of
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.simulator.timing import JobTimes


class Simulation:
    """Simulation of one scenario; its episodes share computed durations. Raises UserError for an invalid scenario."""

    def __init__(self, scenario: RampScenario, graphs: Sequence[ForwardGraph]) -> None:
        self.scenario = scenario
        cluster, management, legacy = scenario.cluster, scenario.management, scenario.legacy
        self.topology, self.rules = network(scenario)
        self.pool = JobPool(graphs, scenario.jobs, scenario.seed, join_sinks=not legacy.sinks_unjoined)
        workers = self.topology.num_workers
        self._times = JobTimes(self.topology, legacy, speeds_of(cluster, workers), management.contention)
        self._memory = memory_of(cluster, workers)
        self._inner = InnerBlocks(self.rules) if management.whole_ops == "inside" else None
        self._legal = None
        if management.illegal_degrees == "round_down":
            self._legal = tuple(self.degrees)
        self._limits = ClusterLimits(scenario.episodes.queue_capacity, scenario.episodes.end)

    def twin(self) -> Simulation:
        """Return a second simulation that shares durations, for other episodes at the same time. Reset it first."""
        return copy(self)

    def reset(self, seed: int) -> None:
        """Start an episode: all its random streams depend on the seed."""
        source = self.pool.episode(seed)
        self.cluster = Cluster(self._times.for_episode(), self.rules, self._memory, source, self._limits)
        management, legacy = self.scenario.management, self.scenario.legacy
        user = user_managers(management)
        user.reset(seed)
        self.manager = Manager(
            management.quantum,
            management.placer if isinstance(management.placer, str) else "first_fit",
            management.shaper,
            generator(seed, "ramp", "manager"),
            self._legal,
            management.partitioner if isinstance(management.partitioner, str) else "quantum",
            legacy.memory_of_forward_only,
            self._inner,
            user,
        )
        self.observer = Observer(source.ranges, management.most, self.rules, self.topology.num_workers, legacy)
        # job index -> degree, and number of valid degrees, where a mask was given
        self.decided: dict[int, tuple[int, int]] = {}
        self._to_next_job()

    @property
    def degrees(self) -> list[int]:
        """Numbers of shards for which an empty cluster has a block."""
        return legal_degrees(self.rules, self.scenario.management.most)

    @property
    def waiting(self) -> Job | None:
        """The job that awaits a decision; None at the end of the episode."""
        return self.cluster.queue[0] if self.cluster.queue and not self.cluster.done else None

    def mask(self, blocks: bool = False) -> np.ndarray:
        """Return int16[most + 1]: 1 for the waiting job's valid actions; blocks: only those with a free block."""
        mask = self.observer.mask(self.observer.mounted(self.cluster))
        if blocks or self.scenario.management.mask == "blocks":
            for degree in np.flatnonzero(mask[1:]).tolist():
                if not self._has_block(degree + 1):
                    mask[degree + 1] = 0
        return mask

    def _has_block(self, degree: int) -> bool:
        """Whether the waiting job could be placed at a degree now, with the manager's next random numbers."""
        manager = self.manager.twin() if self.manager.draws else self.manager
        return isinstance(manager.plan(self.cluster, self.cluster.queue[0], degree), JobPlan)

    def observation(self) -> dict[str, np.ndarray]:
        """Return the observation of the waiting job without padding, with the published keys; shapes as in
        GraphFeatures.
        """
        job, mounted = self.cluster.queue[0], self.observer.mounted(self.cluster)
        graph, mask = self.observer.graph(job.graph), self.mask()
        return {
            "node_features": graph.nodes,
            "edge_features": graph.edges,
            "edges_src": graph.sources,
            "edges_dst": graph.destinations,
            "graph_features": self.observer.features(job, mask, mounted, len(self.cluster.running)),
            "action_mask": mask,
        }

    def features(self, mask: np.ndarray, absolute: bool = False, partitions: int = 1) -> np.ndarray:
        """Return float32[17 + most + 1]: features of the waiting job and the cluster, followed by the given mask
        (int16[most + 1]).
        """
        job, mounted = self.cluster.queue[0], self.observer.mounted(self.cluster)
        return self.observer.features(job, mask, mounted, len(self.cluster.running), absolute, partitions)

    def plan(self, degree: int, block: int | None = None) -> JobPlan | str:
        """Return the plan of the waiting job at a degree, or the part of the action that fails; block as in `act`."""
        return self.manager.plan(self.cluster, self.cluster.queue[0], degree, block)

    def free_blocks(self, degree: int) -> list[int]:
        """Return the indices of the free blocks among the legal blocks of the waiting job at a degree (see `act`).

        The blocks are those of its largest degree, which may be lower. Raises UserError for random partitions.
        """
        if self.manager.user.placer is not None or self.manager.placer == "any_servers":
            what, expected = "servers are no blocks", "first_fit, where blocks are chosen"
            raise UserError(what, where="management.placer", expected=expected)
        if self.manager.draws:
            raise UserError("blocks are chosen by a draw", where="management", expected="nothing that is drawn")
        job = self.cluster.queue[0]
        split = self.manager.partition(self.cluster, job, degree)
        blocks, taken = self.rules.blocks(split.max_degree), self.cluster.taken
        return [place for place, block in enumerate(blocks) if not block.mask & taken]

    def act(self, degree: int, mask: np.ndarray | None = None, block: int | None = None) -> None:
        """Decide on the waiting job and advance to the next one, or to the end.

        degree  number of shards; 0 rejects the job
        mask    int16[most + 1], the valid actions; if given, the degree is checked and recorded in `decided`
        block   number of the block for the job's largest degree, among the legal ones; None: the first free one
        Raises UserError for a degree that the mask does not allow.
        """
        job = self.cluster.queue[0]
        if mask is not None:
            if not 0 <= degree < len(mask) or not mask[degree]:
                valid = ", ".join(map(str, np.flatnonzero(mask).tolist()))
                raise UserError(f"the policy chose {degree}", where=f"job {job.index}", expected=f"one of {valid}")
            self.decided[job.index] = degree, int(mask[1:].sum())
        self.cluster.step({job.index: self.plan(degree, block)} if degree else {})
        self._to_next_job()

    def _to_next_job(self) -> None:
        while not self.cluster.queue and not self.cluster.done:
            self.cluster.step({})


def run_episode(simulation: Simulation, rule: Rule, seed: int) -> dict[str, Any]:
    """Run an episode under a rule and return its statistics."""
    simulation.reset(seed)
    draws = generator(seed, "ramp", "rule")
    while simulation.waiting is not None:
        mask = simulation.mask()
        simulation.act(rule(Decision(simulation.waiting, mask, draws)), mask)
    return simulation.cluster.statistics()
