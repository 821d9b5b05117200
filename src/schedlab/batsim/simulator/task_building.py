"""The construction of a job's parallel task from its profile and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedlab.batsim.errors import ProtocolError, UnsupportedProfile
from schedlab.batsim.files.profiles import Composed, Homogeneous, Parallel, Profile, SharedStorage, Staging
from schedlab.batsim.simulator.live_job import LiveJob
from schedlab.batsim.simulator.network import Network
from schedlab.batsim.simulator.tasks import NO_HOSTS, Task
from schedlab.config.errors import did_you_mean


class TaskBuilder:
    """Builds tasks; `names` are those of all hosts, `storage` maps the name of each storage host to its number."""

    def __init__(self, network: Network, names: Sequence[str], storage: Mapping[str, int]) -> None:
        self._network, self._names, self._storage = network, names, storage

    def build(self, job: LiveJob, profile: Profile) -> Task:
        """Return the task of a profile that is no delay, message or sequence, with the traffic that the scheduler has
        added.
        """
        if job.extra_profile is None and isinstance(profile, Homogeneous):
            share = (job.alloc.size if job.executors is None else len(job.executors)) if profile.total else 1
            if job.executors is None and (profile.com == 0 or job.alloc.size < 2):
                return (
                    Task(job.alloc.numbers, profile.cpu / share)
                    if profile.cpu > 0 and job.alloc.size
                    else Task(NO_HOSTS, 0.0)
                )
            executors = list(job.alloc) if job.executors is None else job.executors
            return self._network.homogeneous(executors, profile.cpu / max(1, share), profile.com / max(1, share))
        hosts, cpu, com = self._demand(job, profile, list(job.alloc) if job.executors is None else job.executors)
        if job.extra_profile is not None:
            extra, extra_hosts = job.extra_profile
            if isinstance(extra, Composed):  # part by part, along with the job's sequence
                extra = extra.parts[job.frames[0][1] % len(extra.parts)]
            hosts, cpu, com = _side_by_side((hosts, cpu, com), self._demand(job, extra, extra_hosts))
        return self._network.matrix(hosts, cpu, com)

    def share_of_cores(self, host: int, usage: float, flops: float) -> Task:
        """Return the task of one step of a usage trace."""
        return self._network.share_of_cores(host, usage, flops)

    def _demand(
        self, job: LiveJob, profile: Profile, executors: Sequence[int]
    ) -> tuple[list[int], list[float], list[float]]:
        """Return the hosts (n), the flop of each and the bytes from each to each (n * n, row-major)."""
        hosts = list(executors)
        n = len(hosts)
        if isinstance(profile, Parallel):
            return hosts, list(profile.cpu), list(profile.com)
        if isinstance(profile, Homogeneous):
            share = n if profile.total and n else 1
            com = profile.com / share
            return hosts, [profile.cpu / share] * n, [0.0 if i == j else com for i in range(n) for j in range(n)]
        if isinstance(profile, SharedStorage):
            rows = [[0.0] * n + [profile.write] for _ in hosts] + [[profile.read] * n + [0.0]]
            return (
                [*hosts, self._storage_host(job, profile.storage)],
                [0.0] * (n + 1),
                [size for row in rows for size in row],
            )
        if isinstance(profile, Staging):
            ends = [self._storage_host(job, profile.source), self._storage_host(job, profile.target)]
            return ends, [0.0, 0.0], [0.0, profile.size, 0.0, 0.0]
        raise UnsupportedProfile(
            f"profile '{profile.name}' is no parallel task", expected="a profile of a parallel task"
        )

    def _storage_host(self, job: LiveJob, label: str) -> int:
        """Return the storage host to which the scheduler mapped the label, otherwise the one of that name, otherwise
        the only one. Raises ProtocolError if there is none of these.
        """
        if label in job.storage:
            return job.storage[label]
        if label in self._storage:
            return self._storage[label]
        if len(self._storage) == 1:
            return next(iter(self._storage.values()))
        host = next((name for name in self._names if label in name), "HOST")
        role = f"give a host of the platform the role storage: batsim -r {host}:storage"
        raise ProtocolError(
            f"job '{job.job.id}' uses the storage '{label}', which is mapped to no storage host",
            expected="a storage_mapping in EXECUTE_JOB, a storage host of that name, or just one storage host",
            remedy=did_you_mean(label, self._storage) if self._storage else role,
        )


def is_void(profile: Profile) -> bool:
    """Return whether no part of a profile computes, sends, waits or fails."""
    waiting: list[Profile] = [profile]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if part.return_code and part is not profile:
            return False
        if isinstance(part, Composed):
            waiting.extend(other for other in part.parts if id(other) not in seen)
            seen.update(map(id, part.parts))
        elif isinstance(part, Homogeneous):
            if part.cpu or part.com:
                return False
        elif not isinstance(part, Parallel) or any(part.cpu) or any(part.com):
            return False
    return True


def _side_by_side(
    one: tuple[list[int], list[float], list[float]], two: tuple[list[int], list[float], list[float]]
) -> tuple[list[int], list[float], list[float]]:
    """Return two demands as one, with the executors of both; the bytes of each demand are a block of the matrix."""
    n, m = len(one[0]), len(two[0])
    com = [0.0] * (n + m) ** 2
    for (size, volumes), offset in (((n, one[2]), 0), ((m, two[2]), n)):
        for i in range(size):
            start = (offset + i) * (n + m) + offset
            com[start : start + size] = volumes[i * size : (i + 1) * size]
    return one[0] + two[0], one[1] + two[1], com
