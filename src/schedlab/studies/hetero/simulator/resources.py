"""The resources of a heterogeneous cluster (memory, bandwidth, pstates, progress of jobs), and the queue for them.

The model (docs/reference/hetero_model.md): each core of a job takes the job's memory from its node, which is a hard
limit, and the job's bandwidth from its processor, which may be over-subscribed: then all busy cores of that processor
run in pstate 1, or as fast as another rule lets them (`physics`). A free core is in pstate 2 if another core of its
processor is busy, otherwise in pstate 3. A job is as fast as its slowest core. Memory and bandwidth are whole numbers
(kB, kB/s), so that sums are exact in any order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schedlab.platforms.hierarchy import Hierarchy
from schedlab.studies.hetero.simulator.physics import HDEEPRM, STEP, PhysicsSettings, bandwidth_shares

KB_PER_MB, KB_PER_GB = 1_000, 1_000_000
GIGA = 1e9
FULL_SPEED, OVERSUBSCRIBED, NEIGHBOUR_BUSY, IDLE = range(4)
ROUNDING = 1e-9  # share of a power cap within which sums of floats count as equal to it


@dataclass(slots=True)
class JobRequest:
    """The request of a job.

    order      number in the order of submission        submitted  date of submission, s
    time       requested time, s                        cores      number of cores
    memory, bandwidth, flops   kB, kB/s and flop per core
    """

    id: str
    order: int
    submitted: float
    time: float
    cores: int
    memory: int
    bandwidth: int
    flops: float

    @property
    def area(self) -> float:
        """Requested time x cores, s."""
        return self.time * self.cores


@dataclass(slots=True)
class Placement:
    """A running job: its cores in the order taken, the same by processor, and its slot among the running jobs."""

    job: JobRequest
    cores: np.ndarray
    by_processor: dict[int, list[int]]
    slot: int


@dataclass
class Overuse:
    """The times at which resources did not suffice.

    core, memory, power  dates (s) at which the next job lacked cores or memory, or would have exceeded the power cap
    bandwidth     processor -> spans [start, duration] (s) in which its bandwidth was over-subscribed
    open          processor -> start (s) of the span that still lasts
    """

    core: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    power: list[float] = field(default_factory=list)
    bandwidth: dict[int, list[list[float]]] = field(default_factory=dict)
    open: dict[int, float] = field(default_factory=dict)

    def close(self, processor: int, now: float) -> None:
        """End the open span of a processor at a date (s)."""
        begin = self.open.pop(processor)
        self.bandwidth.setdefault(processor, []).append([begin, now - begin])

    def values(self, processors: int, now: float) -> dict[str, Any]:
        """Return the content of overutilizations.json at a date; spans that still last end there."""
        procs = {}
        for number in range(processors):
            lasting = [[self.open[number], now - self.open[number]]] if number in self.open else []
            spans = self.bandwidth.get(number, []) + lasting
            procs[str(number)] = {"state": number in self.open, "values": spans}
        return {"core": self.core, "mem": self.memory, "mem_bw": {"nb_procs": processors, "procs": procs}}


class ResourceModel:
    """The state of all cores. `take` and `give_back` note what changed; `refresh` brings pstates and speeds up to date.

    free_memory  kB by node                      free_bandwidth  kB/s by processor, below 0 if over-subscribed
    free_cores   by processor, ascending lists   free_in_node    free cores by node    free_in_all  of the platform
    busy         busy cores by processor         pstate          (cores,) int8
    served       (cores,) slot of the job that a core runs, 0 for none
    down         (cores,) whether a core's node has failed; it then counts as without memory and bandwidth
    shares       (cores,) shares of full speed at which busy cores run, if a rule shares the bandwidth; otherwise zeros
    """

    def __init__(
        self, hierarchy: Hierarchy, flops_scale: float = 1.0, physics: PhysicsSettings = HDEEPRM.settings
    ) -> None:
        processors = list(hierarchy.processors())
        nodes = list(hierarchy.nodes())
        self.hierarchy = hierarchy
        self.node_of = [node.id for node in nodes for _ in node.processors]
        self.processors_of = [[processor.id for processor in node.processors] for node in nodes]
        self.processor_of = hierarchy.processor_of_core.tolist()
        self.memory = [round(node.memory * KB_PER_MB) for node in nodes]
        self.bandwidth = [round(processor.mem_bw * KB_PER_GB) for processor in processors]
        self.size = np.array([processor.cores for processor in processors])
        self.gflops_per_core = np.array([processor.gflops_per_core for processor in processors])
        self.power_per_core = np.array([processor.power_per_core for processor in processors])
        self.speed_share = np.array([state.speed for state in hierarchy.states])
        self.power_share = np.array([state.model_power for state in hierarchy.states])
        self._cores_of = [np.arange(one.first_core, one.first_core + one.cores) for one in processors]
        self._processor_of = hierarchy.processor_of_core
        self._flops_scale = flops_scale
        nodes_with_memory = zip(self.processors_of, self.memory, strict=True)
        self._kinds = Counter((int(sum(self.size[inside])), size) for inside, size in nodes_with_memory)
        self._rooms: dict[int, int] = {}
        self.now = 0.0
        self.free_memory, self.free_bandwidth = list(self.memory), list(self.bandwidth)
        self.free_cores = [cores.tolist() for cores in self._cores_of]
        self.free_in_node = [sum(len(self.free_cores[number]) for number in inside) for inside in self.processors_of]
        self.free_in_all = self.hierarchy.cores
        self.busy = [0] * len(processors)
        self.pstate = np.full(self.hierarchy.cores, IDLE, np.int8)
        self.served = np.zeros(self.hierarchy.cores, np.int32)
        self.down, self._down_cores = np.zeros(self.hierarchy.cores, bool), 0
        self.shares = np.zeros(self.hierarchy.cores)
        self.sharing, self._power_cap = physics.bandwidth, physics.power_cap
        self.running: dict[str, Placement] = {}
        self.overuse = Overuse()
        self._busy_state = np.full(len(processors), FULL_SPEED, np.int8)
        self._free_state = np.full(len(processors), IDLE, np.int8)
        self._speed = self.gflops_per_core.copy()  # of a busy core, by processor
        self._gflops = np.zeros(len(processors))
        self._watts = self.power_per_core * self.size * self.power_share[IDLE]
        self._touched: dict[int, None] = {}
        self._started: list[Placement] = []
        # by slot of a running job; slot 0 means "no job"
        self._slots: list[Placement | None] = [None]
        self._unused: list[int] = []
        self._flops, self._done, self._rate = np.ones(1), np.ones(1), np.zeros(1)

    @property
    def busy_cores(self) -> int:
        """Cores that run a job."""
        return self.hierarchy.cores - self.free_in_all - self._down_cores

    @property
    def gflops(self) -> float:
        """Sum of the cores' current speeds, Gflop/s; a free core counts 0."""
        return float(self._gflops.sum())

    @property
    def power(self) -> float:
        """Sum of the cores' current powers, W."""
        return float(self._watts.sum())

    def remaining(self) -> np.ndarray:
        """Return the remaining share of each running job's requested flop, in [0, 1], by slot."""
        return np.clip(1.0 - self._done / self._flops, 0.0, 1.0)

    def room_for(self, memory: int) -> int:
        """Return the number of cores that a job can have on the free platform if each needs `memory` kB of its node."""
        if memory not in self._rooms:
            kinds = self._kinds.items()
            fitting = (min(cores, size // memory if memory else cores) * count for (cores, size), count in kinds)
            self._rooms[memory] = sum(fitting)
        return self._rooms[memory]

    def lacks(self, job: JobRequest) -> str:
        """Return the resource that a job lacks to start: 'core', 'memory' or, if it fits, ''."""
        if job.cores > self.free_in_all:
            return "core"
        if not job.memory:
            return ""
        missing = job.cores
        for free, memory in zip(self.free_in_node, self.free_memory, strict=True):
            if free:
                missing -= min(free, memory // job.memory)
                if missing <= 0:
                    return ""
        return "memory"

    def place(
        self, job: JobRequest, choose: Callable[[ResourceModel, JobRequest, np.random.Generator], list[int]], rng: Any
    ) -> tuple[list[int], str]:
        """Return the cores that a core policy chooses for a job, and the resource that the job lacks to start on them:
        'core', 'memory' (then no cores are chosen), 'power' or, if nothing is lacking, ''.
        """
        lacking = self.lacks(job)
        cores = [] if lacking else choose(self, job, rng)
        return cores, lacking or ("" if self.power_suffices(cores) else "power")

    def power_suffices(self, cores: Sequence[int]) -> bool:
        """Return whether the power of all cores stays within the cap if so many more of them are busy."""
        if self._power_cap is None:
            return True
        busy = np.array(self.busy)
        np.add.at(busy, self._processor_of[np.array(cores)], 1)
        free = self.power_share[np.where(busy > 0, NEIGHBOUR_BUSY, IDLE)]
        watts = self.power_per_core * (busy * self.power_share[FULL_SPEED] + (self.size - busy) * free)
        return bool(watts.sum() <= self._power_cap * (1 + ROUNDING))

    def exceeds_cap_alone(self, job: JobRequest) -> bool:
        """Return whether a job might exceed the cap even if no other job runs, on the cores that take the most power.

        The first busy core of a processor also raises the power of its neighbours.
        """
        if self._power_cap is None:
            return False
        return self.most_power(job.cores) > self._power_cap * (1 + ROUNDING)

    def most_power(self, cores: int) -> float:
        """Return the largest power (W) of the platform if so many cores are busy."""
        busy, waking, idle = (self.power_share[state] for state in (FULL_SPEED, NEIGHBOUR_BUSY, IDLE))
        first = self.power_per_core * (busy - idle + (self.size - 1) * (waking - idle))
        later = np.repeat(self.power_per_core * (busy - waking), self.size - 1)
        raised = np.sort(np.concatenate((first, later)))[::-1][:cores].sum()
        return float((self.power_per_core * self.size).sum() * idle + raised)

    def expected_wait(self, cores: int) -> float:
        """Return the time (s) until so many cores are free at the current speed of the running jobs; infinite if they
        never are.
        """
        missing = cores - self.free_in_all
        if missing <= 0:
            return 0.0
        for end, placement in self.expected_ends():
            missing -= len(placement.cores)
            if missing <= 0:
                return end
        return float("inf")

    def expected_ends(self) -> list[tuple[float, Placement]]:
        """Return the running jobs, each with the time (s) until it ends if it does its requested work at its current
        speed; sorted by this time.
        """
        left = np.maximum(self._flops - self._done, 0.0)
        ends = ((float(left[job.slot] / (self._rate[job.slot] * GIGA)), job) for job in self.running.values())
        return sorted(ends, key=lambda end: end[0])

    def advance(self, now: float) -> None:
        """Let time pass until `now` (s), the date of all later changes."""
        if now > self.now:
            self._done += self._rate * ((now - self.now) * GIGA * self._flops_scale)
            self.now = now

    def take(self, job: JobRequest, cores: Sequence[int]) -> None:
        """Start a job on free cores whose nodes have the memory."""
        by_processor: dict[int, list[int]] = {}
        for core in cores:
            by_processor.setdefault(self.processor_of[core], []).append(core)
        placement = Placement(job, np.array(cores), by_processor, self._slot())
        for processor, taken in by_processor.items():
            count, free = len(taken), self.free_cores[processor]
            if free[:count] == taken:  # as all core policies but `random` take them
                self.free_cores[processor] = free[count:]
            else:
                chosen = set(taken)
                self.free_cores[processor] = [core for core in free if core not in chosen]
            self._book(processor, count, job)
        self.served[placement.cores] = placement.slot
        self._flops[placement.slot], self._done[placement.slot] = max(job.flops, 1.0), 0.0
        self._slots[placement.slot] = placement
        self.running[job.id] = placement
        self._started.append(placement)

    def give_back(self, job_id: str) -> JobRequest:
        """End a running job and return its request."""
        placement = self.running.pop(job_id)
        for processor, taken in placement.by_processor.items():
            self.free_cores[processor] = sorted(self.free_cores[processor] + taken)
            self._book(processor, -len(taken), placement.job)
        self.served[placement.cores] = 0
        slot = placement.slot
        self._slots[slot] = None
        self._flops[slot], self._done[slot], self._rate[slot] = 1.0, 1.0, 0.0
        self._unused.append(slot)
        return placement.job

    def jobs_on(self, node: int) -> list[str]:
        """Return the running jobs that have a core of a node."""
        inside = set(self.processors_of[node])
        return [job for job, placement in self.running.items() if not inside.isdisjoint(placement.by_processor)]

    def fail(self, node: int) -> None:
        """Withdraw a node on which no job runs."""
        for number in self.processors_of[node]:
            self.free_cores[number], self.free_bandwidth[number] = [], 0
        self._set_down(node, True)
        self.free_memory[node] = self.free_in_node[node] = 0

    def repair(self, node: int) -> None:
        """Return a withdrawn node, free."""
        for number in self.processors_of[node]:
            self.free_cores[number], self.free_bandwidth[number] = (
                self._cores_of[number].tolist(),
                self.bandwidth[number],
            )
        self._set_down(node, False)
        self.free_memory[node] = self.memory[node]
        self.free_in_node[node] = sum(len(self.free_cores[number]) for number in self.processors_of[node])

    def refresh(self) -> np.ndarray:
        """Update pstates, speeds, powers and rates; return the numbers of the processors that changed."""
        if not self._touched:
            return np.empty(0, np.int64)
        processors = np.array(list(self._touched))
        self._touched = {}
        cores = self.cores_of(processors)
        busy = np.array([self.busy[number] for number in processors])
        over = np.array([self.free_bandwidth[number] < 0 for number in processors])
        before = self._busy_state[processors]
        self._busy_state[processors] = np.where(over, OVERSUBSCRIBED, FULL_SPEED)
        self._free_state[processors] = np.where(busy > 0, NEIGHBOUR_BUSY, IDLE)
        owner = self._processor_of[cores]
        self.pstate[cores] = np.where(self.served[cores] > 0, self._busy_state[owner], self._free_state[owner])
        self._speed[processors] = self.gflops_per_core[processors] * self.speed_share[self._busy_state[processors]]
        self._gflops[processors] = busy * self._speed[processors]
        shares = busy * self.power_share[self._busy_state[processors]]
        shares = shares + (self.size[processors] - busy) * self.power_share[self._free_state[processors]]
        self._watts[processors] = self.power_per_core[processors] * shares
        self._set_rates(processors[before != self._busy_state[processors]])
        if self.sharing != STEP:
            self._share_bandwidth(processors)
        return processors

    def speed_shares(self, cores: np.ndarray) -> np.ndarray:
        """Return the shares of full speed at which cores run; 0 for free ones."""
        return self.speed_share[self.pstate[cores]] if self.sharing == STEP else self.shares[cores]

    def shares_with(self, job: JobRequest, processors: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """Return the share of full speed at which a job's cores would run on each of some processors if it took `taken`
        (processors,) more cores of each.
        """
        if self.sharing == STEP:
            crowded = np.array(self.free_bandwidth)[processors] < taken * job.bandwidth
            return np.where(crowded, self.speed_share[OVERSUBSCRIBED], 1.0)
        found = []
        for number, count in zip(processors.tolist(), taken.tolist(), strict=True):
            demand = np.concatenate((self._demand(number), np.full(count, float(job.bandwidth))))
            found.append(bandwidth_shares(self.sharing, demand, self.bandwidth[number])[-1])
        return np.array(found)

    def cores_of(self, processors: np.ndarray) -> np.ndarray:
        """Return the numbers of all cores of some processors."""
        found = [self._cores_of[number] for number in processors]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _set_down(self, node: int, down: bool) -> None:
        """Count the cores of a node as withdrawn or as returned."""
        cores = self.cores_of(np.array(self.processors_of[node]))
        self.down[cores] = down
        change = len(cores) if down else -len(cores)
        self._down_cores += change
        self.free_in_all -= change
        self._touched.update(dict.fromkeys(self.processors_of[node]))

    def _book(self, processor: int, count: int, job: JobRequest) -> None:
        """Take the resources of `count` cores of a job, or give them back if `count` is negative."""
        node = self.node_of[processor]
        self.free_memory[node] -= count * job.memory
        self.free_bandwidth[processor] -= count * job.bandwidth
        self.busy[processor] += count
        self.free_in_node[node] -= count
        self.free_in_all -= count
        self._touched[processor] = None

    def _set_rates(self, flipped: np.ndarray) -> None:
        """Set the rates of new jobs and of jobs on processors that became over-subscribed or ceased to be."""
        for number in flipped.tolist():
            if self._busy_state[number] == OVERSUBSCRIBED:
                self.overuse.open[number] = self.now
            else:
                self.overuse.close(number, self.now)
        affected = {placement.slot for placement in self._started} | set(self.served[self.cores_of(flipped)].tolist())
        self._started = []
        for slot in affected:
            placement = self._slots[slot]
            if placement is not None:
                self._rate[slot] = self._speed[list(placement.by_processor)].min()

    def _share_bandwidth(self, processors: np.ndarray) -> None:
        """Set the speeds of the busy cores of processors and of the jobs on them by the rule that shares bandwidth."""
        for number in processors.tolist():
            cores = self._cores_of[number]
            shares = bandwidth_shares(self.sharing, self._demand(number), self.bandwidth[number])
            self.shares[cores] = np.where(self.served[cores] > 0, shares, 0.0)
            self._gflops[number] = self.gflops_per_core[number] * self.shares[cores].sum()
        for slot in set(self.served[self.cores_of(processors)].tolist()):
            placement = self._slots[slot]
            if placement is not None:
                self._rate[slot] = (self.hierarchy.gflops[placement.cores] * self.shares[placement.cores]).min()

    def _demand(self, processor: int) -> np.ndarray:
        """Return the bandwidth that the job of each core of a processor requests, (cores,), kB/s; 0 for free cores."""
        jobs = [self._slots[slot] for slot in self.served[self._cores_of[processor]].tolist()]
        return np.array([placement.job.bandwidth if placement else 0 for placement in jobs], float)

    def _slot(self) -> int:
        if self._unused:
            return self._unused.pop()
        self._slots.append(None)
        if len(self._slots) > len(self._rate):
            more = len(self._rate)
            self._flops = np.append(self._flops, np.ones(more))
            self._done = np.append(self._done, np.ones(more))
            self._rate = np.append(self._rate, np.zeros(more))
        return len(self._slots) - 1


# job policy -> the attribute whose smallest value comes first; ties keep the order of submission
ORDERS = {"first": "submitted", "shortest": "time", "smallest": "cores", "low_mem": "memory", "low_mem_bw": "bandwidth"}
JOB_POLICIES = ("random", *ORDERS)
MORE_ORDERS = {"saf": "area"}  # smallest area first; not in HDeepRM
ALL_ORDERS = {**ORDERS, **MORE_ORDERS}
BACKFILLING = {f"easy_{policy}": policy for policy in (*JOB_POLICIES, *MORE_ORDERS)}  # not in HDeepRM
ALL_JOB_POLICIES = (*JOB_POLICIES, *MORE_ORDERS, *BACKFILLING)
COLUMNS = ("time", "cores", "memory", "bandwidth")  # attributes of waiting jobs in the observation
QUARTERS = 4


class JobQueue:
    """Jobs that were submitted and neither started nor rejected."""

    def __init__(self) -> None:
        self._jobs: dict[int, JobRequest] = {}
        self._sorted: dict[str, list[tuple[float, int]]] = {column: [] for column in ALL_ORDERS.values()}

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: JobRequest) -> None:
        """Add a waiting job."""
        self._jobs[job.order] = job
        for column, entries in self._sorted.items():
            insort(entries, (getattr(job, column), job.order))

    def remove(self, job: JobRequest) -> None:
        """Remove a job."""
        del self._jobs[job.order]
        for column, entries in self._sorted.items():
            del entries[bisect_left(entries, (getattr(job, column), job.order))]

    def named(self, job_id: str) -> JobRequest | None:
        """Return the waiting job with an identifier; None if it does not wait."""
        return next((job for job in self._jobs.values() if job.id == job_id), None)

    def first(self, policy: str, rng: np.random.Generator) -> JobRequest:
        """Return the job that a policy puts first; `random` draws a new one each time."""
        if policy == "random":
            entries = self._sorted["submitted"]
            return self._jobs[entries[int(rng.integers(len(entries)))][1]]
        return self._jobs[self._sorted[ALL_ORDERS[policy]][0][1]]

    def in_order(self, policy: str, rng: np.random.Generator) -> list[JobRequest]:
        """Return all waiting jobs in the order of a policy; `random` draws an order."""
        entries = self._sorted[ALL_ORDERS.get(policy, "submitted")]
        ordered = [self._jobs[order] for _, order in entries]
        return [ordered[number] for number in rng.permutation(len(ordered))] if policy == "random" else ordered

    def head(self, policy: str) -> JobRequest | None:
        """Return the job that a policy other than `random` puts first; None if no job waits."""
        entries = self._sorted[ALL_ORDERS[policy]]
        return self._jobs[entries[0][1]] if entries else None

    def quartiles(self, column: str) -> list[float]:
        """Return minimum, quartiles and maximum of a column, interpolated linearly; zeros if no job waits."""
        entries = self._sorted[column]
        if not entries:
            return [0.0] * (QUARTERS + 1)
        found = []
        for number in range(QUARTERS + 1):
            place, rest = divmod(number * (len(entries) - 1), QUARTERS)
            low = entries[place][0]
            found.append(low if not rest else low + (entries[place + 1][0] - low) * rest / QUARTERS)
        return found
