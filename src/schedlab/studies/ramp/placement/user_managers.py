"""Users' partitioners, placers and schedulers: calls of their methods, and checks of the results.

See docs/reference/ramp_extensions.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.studies.ramp.placement.partitioning import Partition, check_degrees, degrees_of
from schedlab.studies.ramp.placement.placers import Placement, blocks_on, fits, placement_of
from schedlab.studies.ramp.placement.ranks import ranks_of
from schedlab.studies.ramp.scenario import ManagementSettings
from schedlab.studies.ramp.simulator.cluster import Cluster
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.user_classes import Interface, UserClass, UserObject, user_object

INTERFACES = {
    "partitioner": Interface("partitioner", "management.partitioner", ("split",)),
    "placer": Interface("placer", "management.placer", ("place",)),
    "op_scheduler": Interface("scheduler of ops", "management.op_scheduler", ("priorities",)),
    "dep_scheduler": Interface("scheduler of messages", "management.dep_scheduler", ("priorities",)),
}


@dataclass(frozen=True)
class UserManagers:
    """Users' classes that replace parts of the package; None for each part that is not replaced."""

    partitioner: UserObject | None = None
    placer: UserObject | None = None
    op_scheduler: UserObject | None = None
    dep_scheduler: UserObject | None = None

    @property
    def draw(self) -> bool:
        """Whether any of the classes draws random numbers."""
        return any(user.draws for user in self._all())

    def twin(self) -> UserManagers:
        """Return a copy whose next random numbers are the same."""
        return replace(self, **{key: replace(user, made=deepcopy(user.made)) for key, user in self._named().items()})

    def reset(self, seed: int) -> None:
        """Begin the random streams of an episode."""
        for key, user in self._named().items():
            if user.draws:
                user.call("reset", generator(seed, "ramp", key))

    def degrees(self, cluster: Cluster, job: Job, most: int) -> np.ndarray:
        """Return int64[2n], the number of shards of each op, by a user's partitioner. Raises UserError for degrees that
        are invalid or above `most`.
        """
        user = _required(self.partitioner)
        found = user.call("split", cluster, job, most)
        if isinstance(found, Mapping):
            degrees = degrees_of(job.graph, found)
        else:
            degrees = np.tile(_numbers(user, "split", found, job.graph.num_forward, np.int64), 2)
            check_degrees(job.graph, degrees)
        if degrees.max() > most:
            raise UserError(f"{degrees.max()} shards of an op", where=user.where, expected=f"at most {most}")
        return degrees

    def workers(self, cluster: Cluster, job: Job, split: Partition) -> np.ndarray | None:
        """Return int64[shards], the worker of each shard by a user's placer, or None if it finds no placement. Raises
        UserError for workers that do not exist or that execute another job.
        """
        user = _required(self.placer)
        found = user.call("place", cluster, job, split)
        if found is None:
            return None
        workers = _numbers(user, "place", found, split.num_shards, np.int64)
        if workers.min() < 0 or workers.max() >= cluster.num_workers:
            wrong = workers[(workers < 0) | (workers >= cluster.num_workers)][0]
            what, expected = f"there is no worker {wrong}", f"numbers from 0 to {cluster.num_workers - 1}"
            raise UserError(what, where=user.where, expected=expected)
        if taken := [worker for worker in np.unique(workers).tolist() if cluster.taken >> worker & 1]:
            what = f"worker {taken[0]} holds another job"
            raise UserError(what, where=user.where, expected="free workers (`cluster.free_workers()`)")
        return workers

    def scheduled(self, cluster: Cluster, job: Job, split: Partition, placement: Placement) -> Placement:
        """Return the placement with the priorities of the users' schedulers. Raises UserError if they return anything
        but a number for each shard or message.
        """
        if self.op_scheduler is None and self.dep_scheduler is None:
            return placement
        workers, given = cluster.times.workers(split, placement), dict[str, tuple[int, ...]]()
        if user := self.op_scheduler:
            found = user.call("priorities", cluster, job, split, workers)
            priorities = _numbers(user, "priorities", found, split.num_shards, np.float64)
            given["ranks"] = tuple(ranks_of(priorities, split.shards_by_name).tolist())
        if user := self.dep_scheduler:
            found = user.call("priorities", cluster, job, split, workers)
            priorities = _numbers(user, "priorities", found, split.num_deps, np.float64)
            given["dep_ranks"] = tuple(np.unique(priorities, return_inverse=True)[1].reshape(-1).tolist())
        return placement_of(placement.blocks, placement.order, **given)

    def placed(self, cluster: Cluster, job: Job, split: Partition) -> Placement | None:
        """Return the placement of a job by a user's placer; None if it finds none, or if the memory does not
        suffice.
        """
        workers = self.workers(cluster, job, split)
        if workers is None:
            return None
        placement = placement_of(blocks_on(split, workers))
        return placement if fits(split, placement, cluster.memory) else None

    def _named(self) -> dict[str, UserObject]:
        return {field.name: user for field in fields(self) if (user := getattr(self, field.name)) is not None}

    def _all(self) -> list[UserObject]:
        return list(self._named().values())


def user_managers(management: ManagementSettings) -> UserManagers:
    """Return the users' managers of a scenario, newly made. Raises UserError."""
    given = {key: getattr(management, key) for key in INTERFACES}
    made = {key: user_object(one, INTERFACES[key]) for key, one in given.items() if isinstance(one, UserClass)}
    return UserManagers(**made)


def _required(user: UserObject | None) -> UserObject:
    if user is None:
        raise ValueError("no user's class decides this part")
    return user


def _numbers(user: UserObject, method: str, found: Any, count: int, kind: type) -> np.ndarray:
    """Return the result of a method as an array of a kind. Raises UserError for a wrong length or a non-number."""
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(0, np.nan)
    whole = kind is np.float64 or bool((values == np.floor(values)).all())
    if values.shape != (count,) or np.isnan(values).any() or not whole:
        what = f"{method} returned {_shown(found)}"
        numbers = "numbers" if kind is np.float64 else "whole numbers"
        raise UserError(what, where=user.where, expected=f"{count} {numbers}")
    return values.astype(kind)


def _shown(found: Any) -> str:
    shape = getattr(found, "shape", None)
    text = f"an array of shape {shape} and type {found.dtype}" if shape is not None else repr(found)
    return text if len(text) <= 80 else text[:77] + "..."
