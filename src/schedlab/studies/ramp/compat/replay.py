"""Simulates a recorded run of the published system again. The result is a document with the recorded names.

See docs/reference/ramp_model.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.studies.ramp.commands.episode import plain
from schedlab.studies.ramp.compat.case_file import Case, read_case
from schedlab.studies.ramp.compat.draws import DrawnChannels
from schedlab.studies.ramp.compat.replay_job import describe_job
from schedlab.studies.ramp.env.observation import Observer
from schedlab.studies.ramp.legacy import PUBLISHED, LegacySettings
from schedlab.studies.ramp.placement.blocks import RampPlacement, make_block
from schedlab.studies.ramp.placement.managers import Manager, random_degrees
from schedlab.studies.ramp.placement.partitioning import Partition, degrees_of
from schedlab.studies.ramp.placement.placers import fits, placement_of
from schedlab.studies.ramp.rules import Decision
from schedlab.studies.ramp.simulator.cluster import Cluster, ClusterLimits, JobPlan, RunningJob
from schedlab.studies.ramp.simulator.jobs import NO_PARTITION, NO_PLACEMENT, PARTS, REJECTED, Job
from schedlab.studies.ramp.simulator.timing import JobTimes

UNHANDLED = "not_handled_by_action:"
# recorded as lists of one value
LISTED = ("mean_mounted_worker_utilisation_frac", "mean_cluster_worker_utilisation_frac")


def print_replay(arguments: argparse.Namespace) -> int:
    """Print the document of `schedlab ramp replay`; return status 2 if the run stopped with an error."""
    document = plain(replay(arguments.case, arguments.compat))
    print(json.dumps(document, allow_nan=False))
    if document["error"] is None:
        return 0
    # the document contains the results up to the error
    print(f"error: {arguments.case}: {document['error']['message']}", file=sys.stderr)
    return 2


def replay(path: Path | str, compat: bool) -> dict[str, Any]:
    """Return what a recorded run contains under `expected`, simulated from its inputs. compat: with all published
    defects. Raises UserError.
    """
    legacy = PUBLISHED if compat else LegacySettings()
    case = read_case(path, legacy)
    return _Replay(case, legacy).run()


class _Replay:
    """One run: the cluster, and the records of decisions and jobs."""

    def __init__(self, case: Case, legacy: LegacySettings) -> None:
        self.case, self.legacy = case, legacy
        rules = RampPlacement(case.topology)
        memory = np.full(case.topology.num_workers, case.memory)
        times = JobTimes(case.topology, legacy, reuse=case.reuse)
        self.cluster = Cluster(times, rules, memory, case.source, ClusterLimits(case.queue_capacity, case.end))
        self.observer = Observer(case.ranges, case.most, rules, case.topology.num_workers, legacy)
        self.manager = Manager(case.quantum, forward_memory_only=legacy.memory_of_forward_only)
        self.random = generator(0, "ramp", "replay")
        self.channels = DrawnChannels(case.seed, case.topology.channels)
        self.decisions: list[dict[str, Any]] = []
        self.jobs: dict[int, dict[str, Any]] = {}

    def run(self) -> dict[str, Any]:
        """Step the cluster to its end and return the document."""
        error = None
        try:
            while not self.cluster.done:
                self._step()
        except UserError as mistake:
            error = {"type": "UserError", "message": str(mistake)}
        self._finish()
        self._count_last_load()
        return {
            "original_graphs": {
                name: _original(graph, self.case.jobs[0].steps) for name, graph in self.case.graphs.items()
            },
            "decisions": self.decisions,
            "jobs": {str(number): job for number, job in sorted(self.jobs.items())},
            "steps": [step | {name: [step[name]] for name in LISTED} for step in self.cluster.record.steps],
            "episode": self.cluster.statistics(),
            "error": error,
        }

    def _step(self) -> None:
        cluster = self.cluster
        if not cluster.queue:
            cluster.step({})
            return
        job = cluster.queue[0]
        decision, action = self._decide(job)
        self.jobs[job.index] = {}
        self.decisions.append(decision)
        plan, numbers = self._with_channels(self._plan(job, action))
        known = isinstance(plan, JobPlan) and cluster.times.lookahead_is_known(plan.split)
        self.jobs[job.index] |= {"degree": decision.get("action")}
        cluster.step({job.index: plan})
        outcome = cluster.outcome
        if isinstance(plan, JobPlan):
            timing, lookahead = cluster.times.lookahead(plan.split, plan.placement)
            running = outcome if isinstance(outcome, RunningJob) else None
            self.jobs[job.index] |= describe_job(cluster, job, plan, timing, lookahead, running, numbers) | {
                "lookahead_simulated": not known
            }
        if self.case.has_agent:
            decision["reward"] = 1.0 if isinstance(outcome, RunningJob) and not self._blocked(job) else -1.0

    def _decide(self, job: Job) -> tuple[dict[str, Any], int | None]:
        """Return the observation of a job and the action: the recorded one, or else that of the agent's rule; 0 if it
        is not valid.
        """
        cluster, observer = self.cluster, self.observer
        seen: dict[str, Any] = {
            "decision": len(self.decisions),
            "time": cluster.time,
            "job_idx": job.index,
            "model": job.graph.name,
        }
        if not self.case.has_agent:
            return seen, None
        mounted = observer.mounted(cluster)
        mask, graph = observer.mask(mounted), observer.graph(job.graph)
        action = self.case.actions.get(job.index)
        if action is None:
            if self.case.rule is None:
                what = f"job {job.index} has no recorded action"
                raise UserError(
                    what, where="inputs.decisions", expected="an action for each job, or an agent or an op_partitioner"
                )
            action = self.case.rule(Decision(job, mask, self.random))
        if action >= len(mask) or (self.case.strict and not mask[action]):
            valid = ", ".join(map(str, np.flatnonzero(mask).tolist()))
            what = f"action {action} is not valid"
            raise UserError(what, where=f"decision {len(self.decisions)}", expected=f"one of {valid}")
        seen |= {
            "action": action,
            "action_mask": mask.tolist(),
            "num_mounted_workers": mounted,
            "graph_features": observer.features(job, mask, mounted, len(cluster.running)).astype(float).tolist(),
            "node_features": graph.nodes.astype(float).tolist(),
            "edge_features": graph.edges.astype(float).tolist(),
            "edges_src": graph.sources.astype(float).tolist(),
            "edges_dst": graph.destinations.astype(float).tolist(),
        }
        return seen, action if mask[action] else 0

    def _with_channels(self, plan: JobPlan | str) -> tuple[JobPlan | str, np.ndarray]:
        """Return the plan with the channels that are drawn for its flows, and their numbers, int64[deps]."""
        if isinstance(plan, str):
            return plan, np.zeros(0, dtype=np.int64)
        traffic = self.cluster.times.traffic(plan.split, plan.placement)
        numbers = self.channels.of_flows(traffic.remote)
        taken = zip(traffic.link[traffic.remote].tolist(), numbers[traffic.remote].tolist(), strict=True)
        return replace(plan, channels=frozenset(taken)), numbers

    def _plan(self, job: Job, action: int | None) -> JobPlan | str:
        if action == 0:
            return NO_PARTITION
        if action is None and self._was_not_placed(job):
            self.jobs[job.index] |= {"partition_degrees": {}, "placed": False}
            return NO_PLACEMENT
        split = self._split(job, action)
        if split is None:
            return NO_PARTITION
        self.jobs[job.index] |= _partitioned(split)
        plan = (
            self._recorded_placement(job, split)
            if "random" in self.case.placer
            else self.manager.place(self.cluster, split)
        )
        if isinstance(plan, str):
            self.jobs[job.index] |= {"partition_degrees": {}, "placed": False}
        return plan

    def _was_not_placed(self, job: Job) -> bool:
        """Whether the record contains only the largest of a job's random degrees, but no placement."""
        drawn = self.case.drawn.get(job.index, {})
        lost = not drawn.get("partition_degrees") and bool(drawn.get("max_partition_degree"))
        return lost and "random" in self.case.partitioner

    def _split(self, job: Job, action: int | None) -> Partition | None:
        """Return the partition of a job: by its action, by its recorded degrees, or by the partitioner; None if the job
        is not partitioned.
        """
        times, case = self.cluster.times, self.case
        if action is not None:
            return times.split_by_quantum(job.graph, action, case.quantum)
        drawn = case.drawn.get(job.index, {})
        degrees = drawn.get("partition_degrees")
        if degrees:
            try:
                return times.split(job.graph, degrees_of(job.graph, degrees))
            except UserError:
                return None  # odd numbers were drawn, which no action accepts
        if case.drawn and not drawn.get("max_partition_degree"):
            return None
        if "random" in case.partitioner:
            return times.split(job.graph, random_degrees(job.graph, case.most, self.random))
        return times.split_by_quantum(job.graph, drawn.get("max_partition_degree") or case.most, case.quantum)

    def _recorded_placement(self, job: Job, split: Partition) -> JobPlan | str:
        """Return the plan on the recorded servers of a random placer, or on newly drawn servers if none are
        recorded.
        """
        if not self.case.drawn:
            return Manager(self.case.quantum, placer="random", random=self.random).place(self.cluster, split)
        named = self.case.drawn.get(job.index, {}).get("placement")
        if not named:
            return NO_PLACEMENT
        labels = {label: number for number, label in enumerate(self.case.topology.worker_labels)}
        blocks, shards = [], split.named_shards(self.legacy.letters_run_on)
        for op in range(split.graph.num_ops):
            names = [shards[shard] for shard in split.shards(op)]
            missing = [name for name in names if named.get(name) not in labels] + sorted(set(named) - set(shards))
            if missing:
                what = f"shard {missing[0]} has no server or is none"
                raise UserError(what, where=f"expected.jobs.{job.index}.placement", expected="a server each")
            servers = tuple(labels[named[name]] for name in names)
            blocks.append(make_block(servers))
        numbers = {name: shard for shard, name in enumerate(shards)}
        placement = placement_of(blocks, tuple(numbers[name] for name in named))
        return JobPlan(split, placement) if fits(split, placement, self.cluster.memory) else NO_PLACEMENT

    def _blocked(self, job: Job) -> bool:
        return any(blocked.job is job for blocked in self.cluster.record.blocked)

    def _count_last_load(self) -> None:
        """Compute the load of the last arrival with the gap that is not recorded."""
        rates, jobs = self.cluster.record.load_rates, self.case.jobs
        if len(rates) == len(jobs) and math.isfinite(self.case.last_gap):
            rates[-1] = jobs[-1].demand / self.case.last_gap

    def _finish(self) -> None:
        """Record the outcome of each job."""
        for blocked in self.cluster.record.blocked:
            cause = NO_PARTITION if blocked.cause == REJECTED else blocked.cause
            shown = UNHANDLED + cause if cause in PARTS else cause
            described = self.jobs.setdefault(blocked.job.index, {})
            described |= {"status": "blocked", "block_cause": shown, "block_time": blocked.time}
        for done in self.cluster.record.completed:
            self.jobs[done.running.job.index] |= {
                "status": "completed",
                "time_started": done.running.started,
                "time_completed": done.time,
                "jct": done.duration,
            }
        for running in self.cluster.running:
            self.jobs[running.job.index] |= {"status": "running", "time_started": running.started}


def _partitioned(split: Partition) -> dict[str, Any]:
    graph = split.graph
    order = [op for forward in range(graph.num_forward) for op in (forward, forward + graph.num_forward)]
    return {
        "partition_degrees": {str(graph.ids[op]): int(split.degrees[op]) for op in order},
        "max_partition_degree": split.max_degree,
        "num_ops": split.num_shards,
        "num_deps": split.num_deps,
        "sum_dep_size": split.total_dep_size,
        "sum_op_memory": split.total_memory,
    }


def _original(graph: Any, steps: int) -> dict[str, Any]:
    passes = ("forward_pass", "backward_pass")
    ids = graph.ids.tolist()
    return {
        "ops": {
            str(op): [graph.cost[at], graph.memory[at], passes[at >= graph.num_forward]] for at, op in enumerate(ids)
        },
        "deps": [
            [ids[u], ids[v], size] for (u, v), size in zip(graph.edges.tolist(), graph.dep_size.tolist(), strict=True)
        ],
        "depth": {str(op): int(graph.depth[at]) for at, op in enumerate(ids)},
        "sequential_jct": steps * graph.step_time,
    }
