"""Parallel tasks in progress: which of them contend, the rate of each, and when each ends.

Tasks that share resources, directly or through other tasks, form a *component*. At a start, an end or a change of
speed, only the rates of the component concerned are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from schedlab.batsim.simulator.sharing import fill
from schedlab.platforms.platform import Host
from schedlab.platforms.routes import Channels

NO_HOSTS = np.empty(0, np.int64)
_NO_WEIGHT = np.empty(0)


class Task:
    """A parallel task.

    `flops` are computed on each of `hosts` (numbers, each once) by `cores` cores of it; `bytes` pass each of
    `channels`; `latency` (s) passes before any work is done. `bound` is the largest rate (1/s) that its hosts and
    unshared channels allow, `left` the share of work still to do at the date `since` (s).
    """

    __slots__ = (
        "bound", "bytes", "channel_bound", "channels", "component", "cores", "finish", "flops", "hosts", "latency",
        "left", "owner", "rate", "resources", "since", "weights",
    )  # fmt: skip

    def __init__(
        self, hosts: Any, flops: Any, channels: Any = NO_HOSTS, volumes: Any = _NO_WEIGHT, latency: float = 0.0
    ) -> None:
        self.hosts, self.flops, self.channels, self.bytes, self.latency = hosts, flops, channels, volumes, latency
        self.left, self.rate, self.since, self.finish = 1.0, 0.0, 0.0, math.inf
        self.bound = self.channel_bound = math.inf
        self.owner: Any = None
        self.cores = 1
        self.component: _Component | None = None
        self.resources, self.weights = NO_HOSTS, _NO_WEIGHT

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, nothing to send and no latency."""
        return not len(self.hosts) and not len(self.channels) and self.latency == 0

    def flops_on(self, host: int) -> float:
        """Return the flop on one host."""
        if isinstance(self.flops, float):
            return self.flops
        return float(self.flops[self.hosts == host].sum())

    def progress(self, now: float) -> float:
        """Return the share of the work done, 0 to 1."""
        return min(1.0, max(0.0, 1.0 - self.left + self.rate * (now - self.since)))


class _Component:
    """Tasks that share resources, directly or through other tasks (or did so until one ended); `largest`: the largest
    number of tasks so far.
    """

    __slots__ = ("largest", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[Task, None] = {}
        self.largest = 0


class TaskPool:
    """All running tasks. Resources are numbered: first the hosts, then the channels of links.

    contended_hosts  whether several tasks may compute on one host; otherwise a host's speed bounds its only task
    changing_speeds  whether `change_speeds` will be called
    """

    def __init__(self, hosts: Sequence[Host], channels: Channels, contended_hosts: bool, changing_speeds: bool) -> None:
        speeds = [host.speeds[host.pstate] for host in hosts]
        self.speeds = np.array(speeds)
        self._uniform_speed = speeds[0] if len(set(speeds)) == 1 else None
        self._cores = np.array([host.cores for host in hosts], np.float64)
        self._contended_hosts = contended_hosts
        self._nb_hosts = len(speeds)
        self._capacity = np.concatenate([self.speeds * self._cores, np.array(channels.bandwidth, np.float64)])
        self._shared = np.array(channels.shared, bool)
        self._components: dict[int, _Component] = {}  # by resource in use
        self._users: dict[int, dict[Task, None]] = {}
        self._alone: dict[Task, None] = {}  # tasks that share nothing
        self.stale: dict[_Component, None] = {}
        self._task_on = (
            np.full(len(speeds), None) if changing_speeds and not contended_hosts else None
        )  # the task or None, by host

    def start(self, task: Task, now: float) -> None:
        """Start a task, whose latency is over; `settle` computes its rate."""
        task.since = now
        if not len(task.channels) and not self._contended_hosts:  # the most frequent case: the task only computes
            task.bound = self._host_bound(task)
            self._begin_alone(task, now)
            return
        shared = self._shared[task.channels] if len(task.channels) else NO_HOSTS
        task.channel_bound = math.inf
        if len(task.channels) and not shared.all():
            bandwidth = self._capacity[self._nb_hosts + task.channels]
            task.channel_bound = float((bandwidth[~shared] / task.bytes[~shared]).min())
        task.bound = min(task.channel_bound, self._host_bound(task))
        resources, weights = NO_HOSTS, _NO_WEIGHT
        if len(task.channels):
            resources, weights = self._nb_hosts + task.channels[shared], task.bytes[shared]
        if self._contended_hosts and len(task.hosts):
            resources = np.concatenate([task.hosts, resources])
            weights = np.concatenate([np.broadcast_to(task.flops, len(task.hosts)), weights])
        task.resources, task.weights = resources, weights
        if not len(resources):
            self._begin_alone(task, now)
            return
        if self._task_on is not None:
            self._task_on[task.hosts] = task
        self._join(task)

    def _begin_alone(self, task: Task, now: float) -> None:
        if self._task_on is not None:
            self._task_on[task.hosts] = task
        self._alone[task] = None
        self._set_rate(task, task.bound, now)

    def stop(self, task: Task, now: float) -> bool:
        """Remove a task, finished or not; return False if it had not started."""
        if task.component is None and task not in self._alone:
            return False
        self._account(task, now)
        task.rate = 0.0
        if self._task_on is not None:
            self._task_on[task.hosts] = None
        component = task.component
        if component is None:
            del self._alone[task]
            return True
        task.component = None
        del component.tasks[task]
        for resource in task.resources.tolist():
            users = self._users[resource]
            del users[task]
            if not users:
                del self._users[resource]
                del self._components[resource]
        if not component.tasks:
            self.stale.pop(component, None)
        elif 2 * len(component.tasks) <= component.largest:
            self._split(component)
        else:
            self.stale[component] = None
        return True

    def load_of(self, task: Task, nb_hosts: int) -> tuple[Any, Any]:
        """Return the task's hosts with a number below `nb_hosts`, and the flop/s that all tasks compute on each."""
        if not self._contended_hosts:
            return task.hosts, task.rate * task.flops
        hosts = [host for host in task.hosts.tolist() if host < nb_hosts]
        loads = [sum((other.rate * other.flops_on(host) for other in self._users.get(host, ())), 0.0) for host in hosts]
        return np.array(hosts, np.int64), np.array(loads)

    def settle(self, now: float) -> list[Task]:
        """Compute the rates of all components that changed; return the tasks whose rate has changed."""
        changed = []
        for component in self.stale:
            tasks = list(component.tasks)
            rates = fill(
                [task.resources for task in tasks],
                [task.weights for task in tasks],
                [task.bound for task in tasks],
                self._capacity,
            )
            for task, rate in zip(tasks, rates, strict=True):
                if rate != task.rate:
                    self._set_rate(task, rate, now)
                    changed.append(task)
        self.stale.clear()
        return changed

    def change_speeds(
        self, hosts: Sequence[int] | np.ndarray, speeds: Sequence[float] | np.ndarray, now: float
    ) -> list[Task]:
        """Set the speeds of hosts (flop/s); return the tasks without shared resources whose rate changes now (`settle`
        returns the others).
        """
        hosts = np.asarray(hosts, np.int64)
        self.speeds[hosts] = speeds
        self._capacity[hosts] = self.speeds[hosts] * self._cores[hosts]
        self._uniform_speed = float(self.speeds[0]) if (self.speeds == self.speeds[0]).all() else None
        touched: dict[Any, None] = {}
        if self._task_on is not None:
            touched = dict.fromkeys(self._task_on[hosts].tolist())
            touched.pop(None, None)
        else:
            for host in hosts.tolist():
                touched.update(self._users.get(host, {}))
        changed = []
        for task in touched:
            task.bound = min(task.channel_bound, self._host_bound(task))
            if task.component is not None:
                self.stale[task.component] = None
            elif task.bound != task.rate:
                self._set_rate(task, task.bound, now)
                changed.append(task)
        return changed

    def _host_bound(self, task: Task) -> float:
        """Return the largest rate (1/s) that a task's hosts allow, as it uses at most `cores` cores of each."""
        if not len(task.hosts):
            return math.inf
        if isinstance(task.flops, float):
            speed = self._uniform_speed or float(self.speeds[task.hosts].min())
            return speed * task.cores / task.flops
        return float((self.speeds[task.hosts] / task.flops).min())

    def _join(self, task: Task) -> None:
        numbers = task.resources.tolist()
        met = {id(component): component for component in map(self._components.get, numbers) if component is not None}
        component = max(met.values(), key=lambda one: len(one.tasks), default=None) or _Component()
        for other in met.values():
            if other is not component:
                self.stale.pop(other, None)
                for moved in other.tasks:
                    self._assign(moved, component)
        self._assign(task, component)
        for number in numbers:
            self._users.setdefault(number, {})[task] = None
        component.largest = max(component.largest, len(component.tasks))
        self.stale[component] = None

    def _assign(self, task: Task, component: _Component) -> None:
        task.component = component
        component.tasks[task] = None
        for number in task.resources.tolist():
            self._components[number] = component

    def _split(self, component: _Component) -> None:
        """Split a component into its connected parts, as tasks that connected others may have ended."""
        self.stale.pop(component, None)
        waiting = dict(component.tasks)
        while waiting:
            part, reached = _Component(), [next(iter(waiting))]
            del waiting[reached[0]]
            while reached:
                task = reached.pop()
                self._assign(task, part)
                for number in task.resources.tolist():
                    for neighbour in self._users[number]:
                        if neighbour in waiting:
                            del waiting[neighbour]
                            reached.append(neighbour)
            part.largest = len(part.tasks)
            self.stale[part] = None

    def _account(self, task: Task, now: float) -> None:
        if now > task.since:
            task.left = max(0.0, task.left - task.rate * (now - task.since)) if task.rate < math.inf else 0.0
            task.since = now

    def _set_rate(self, task: Task, rate: float, now: float) -> None:
        self._account(task, now)
        task.rate = rate
        task.finish = now + task.left / rate if rate > 0 else math.inf
