"""The manager: a partitioner and a placer, which make a plan for a job from the number of shards that a policy chose.

See docs/reference/ramp_model.md.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.graphs.graph import TrainingGraph
from schedlab.studies.ramp.placement.blocks import InnerBlocks
from schedlab.studies.ramp.placement.partitioning import Partition, round_down
from schedlab.studies.ramp.placement.placers import (
    Placement,
    Room,
    first_fit,
    fits,
    free_masks,
    place_anywhere,
    place_at_random,
)
from schedlab.studies.ramp.placement.user_managers import UserManagers
from schedlab.studies.ramp.simulator.cluster import Cluster, JobPlan
from schedlab.studies.ramp.simulator.jobs import NO_CHANNEL, NO_PARTITION, NO_PLACEMENT, Job

Shaper = Literal["none", "first_fit", "random"]


@dataclass(frozen=True)
class Manager:
    """A partitioner and a placer.

    partitioner          quantum, or random: a degree is drawn for each forward op
    quantum              s, target run time of a forward shard
    placer               first_fit, any_servers or random
    shaper               how a block for the whole job is chosen before its ops are placed; none: it is not
    random               generator for random partitioners, placers and shapers
    legal                degrees to which other degrees are rounded down; None: no rounding
    forward_memory_only  first fit reserves memory as with LegacySettings.memory_of_forward_only
    inner                first fit places ops with fewer shards than the largest degree inside the block of that degree
    user                 users' classes that replace some of these parts
    """

    quantum: float = 0.01
    placer: Literal["first_fit", "any_servers", "random"] = "first_fit"
    shaper: Shaper = "none"
    random: np.random.Generator | None = None
    legal: tuple[int, ...] | None = None
    partitioner: Literal["quantum", "random"] = "quantum"
    forward_memory_only: bool = False
    inner: InnerBlocks | None = None
    user: UserManagers = field(default_factory=UserManagers)

    @property
    def draws(self) -> bool:
        """Whether some part draws random numbers."""
        return "random" in (self.partitioner, self.placer, self.shaper) or self.user.draw

    def twin(self) -> Manager:
        """Return a copy whose next random numbers are the same."""
        return replace(self, random=deepcopy(self.random), user=self.user.twin())

    def plan(self, cluster: Cluster, job: Job, most: int, block: int | None = None) -> JobPlan | str:
        """Return the plan of a job with at most `most` shards per op, or the part of the action that failed.

        block  number of the block for the job's largest degree among the legal ones (first fit); None: the first free
               one
        Raises UserError if `most` is not a valid action: it is below 0, or odd and not 1.
        """
        if most < 0 or (most > 1 and most % 2):
            what = f"{most} shards of an op"
            raise UserError(what, where=f"job {job.index}", expected="0 (rejected), 1, or an even number")
        if most == 0:
            return NO_PARTITION
        split = self.partition(cluster, job, most)
        if self.user.placer is None:
            plan = self.place(cluster, split, block)
        else:
            placement = self.user.placed(cluster, job, split)
            plan = NO_PLACEMENT if placement is None else self._linked(cluster, JobPlan(split, placement))
        if isinstance(plan, str):
            return plan
        return replace(plan, placement=self.user.scheduled(cluster, job, split, plan.placement))

    def partition(self, cluster: Cluster, job: Job, most: int) -> Partition:
        """Return the partition of a job with at most `most` shards per op. Raises UserError for an invalid result of a
        user's class.
        """
        if self.user.partitioner is None and self.partitioner == "quantum":
            return cluster.times.split_by_quantum(job.graph, most, self.quantum, self.legal)
        if self.user.partitioner is None:
            degrees = random_degrees(job.graph, most, self._draws())
        else:
            degrees = self.user.degrees(cluster, job, most)
        return cluster.times.split(job.graph, degrees if self.legal is None else round_down(degrees, self.legal))

    def place(self, cluster: Cluster, split: Partition, block: int | None = None) -> JobPlan | str:
        """Return the plan of a partitioned job, or the part that failed; block as in `plan`."""
        room = cluster.room()
        if block is not None:
            legal = cluster.rules.blocks(split.max_degree)
            room = replace(room, block=legal[block]) if block < len(legal) else replace(room, allowed=0)
        if self.shaper != "none":
            shaped = self._shape(cluster, split, room)
            if shaped is None:
                return NO_PLACEMENT
            room = replace(room, allowed=shaped)
        placement = self._place(cluster, split, room)
        if placement is None:
            linked = self.placer == "first_fit" and room.links is not None
            return (
                NO_CHANNEL
                if linked and self._place(cluster, split, replace(room, links=None)) is not None
                else NO_PLACEMENT
            )
        plan = JobPlan(split, placement)
        return plan if self.placer == "first_fit" else self._linked(cluster, plan)

    def _linked(self, cluster: Cluster, plan: JobPlan) -> JobPlan | str:
        """Return a plan made without regard to channels if each of its links has a free one, else NO_CHANNEL."""
        return NO_CHANNEL if cluster.free_channels(plan, cluster.held) is None else plan

    def _place(self, cluster: Cluster, split: Partition, room: Room) -> Placement | None:
        if self.placer == "first_fit":
            return first_fit(split, cluster.rules, room, self.forward_memory_only, self.inner)
        any_servers = self.placer == "any_servers"
        placement = place_anywhere(split, room) if any_servers else place_at_random(split, room, self._draws())
        return placement if placement is not None and fits(split, placement, room.memory) else None

    def _shape(self, cluster: Cluster, split: Partition, room: Room) -> int | None:
        masks = free_masks(cluster.rules.blocks(split.max_degree), room)
        if not masks:
            return None
        return masks[0] if self.shaper == "first_fit" else masks[int(self._draws().integers(len(masks)))]

    def _draws(self) -> np.random.Generator:
        if self.random is None:
            raise ValueError("this manager draws and needs a random generator")
        return self.random


def random_degrees(graph: TrainingGraph, most: int, random: np.random.Generator) -> np.ndarray:
    """Return int64[2n]: a random degree of 1 or an even number up to `most` for each forward op and its mate."""
    forward = random.choice([1, *range(2, most + 1, 2)], size=graph.num_forward)
    return np.concatenate([forward, forward]).astype(np.int64)
