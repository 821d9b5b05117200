"""HDeepRM's decision system in plain objects: it takes Batsim's messages, makes decisions, and gives orders.

`Episode` steps it on the embedded simulator, `DecisionScheduler` on PyBatsim.
See docs/reference/hetero_model.md; LegacySettings lists each deviation from HDeepRM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.studies.hetero.env.objectives import OBJECTIVES, Load
from schedlab.studies.hetero.env.observation import HeadsObserver, Observer
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR, DecisionSettings
from schedlab.studies.hetero.simulator.backfilling import reserve
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES, Choice, pack_cores
from schedlab.studies.hetero.simulator.failures import Failures
from schedlab.studies.hetero.simulator.physics import HDEEPRM, STEP, Physics
from schedlab.studies.hetero.simulator.resources import (
    BACKFILLING,
    GIGA,
    IDLE,
    KB_PER_GB,
    KB_PER_MB,
    OVERSUBSCRIBED,
    JobQueue,
    JobRequest,
    ResourceModel,
)


@dataclass
class Orders:
    """Jobs to start on hosts, jobs to reject, pstates of hosts; hosts are Batsim's numbers, ascending.

    speeds          shares of full speed of hosts in pstate OVERSUBSCRIBED, if a rule shares the bandwidth
    kill, register  jobs that a failure ends, and their next attempts
    call, finished  date (s) at which the next node fails or is repaired; whether no attempt will be registered any more
    """

    start: list[tuple[str, list[int]]] = field(default_factory=list)
    reject: list[str] = field(default_factory=list)
    pstates: list[tuple[int, list[int]]] = field(default_factory=list)
    speeds: list[tuple[float, list[int]]] = field(default_factory=list)
    kill: list[str] = field(default_factory=list)
    register: list[dict[str, Any]] = field(default_factory=list)
    call: float | None = None
    finished: bool = False


@dataclass
class History:
    """Date (s), action, number of waiting jobs and reward of each decision; a reward is noted at the next decision or
    at the end.
    """

    times: list[float] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class DecisionSystem:
    """The state of one run.

    arrived   jobs that were submitted and not rejected, in order
    rejected  number of jobs that the empty platform cannot run        due   whether an action is due now
    replaced  number of voids in place of which the first action was taken   over  whether the simulation has ended
    reward    of the last action, complete once the next one is due or the run is over; None before the first action
    random    generator from which random policies draw
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        limits: Mapping[str, float],
        settings: DecisionSettings,
        seed: int,
        physics: Physics = HDEEPRM,
    ) -> None:
        legacy = settings.legacy
        self.hierarchy, self.settings = hierarchy, settings
        scale = 1 / GIGA if legacy.remaining_in_gigaflop else 1.0
        self.model = ResourceModel(hierarchy, scale, physics.settings)
        fails = physics.settings.mean_time_to_failure is not None
        self.failures = Failures(physics, len(self.model.memory)) if fails else None
        if settings.observation == "heads":
            self.observer: Observer | HeadsObserver = HeadsObserver(self.model, limits)
        else:
            clipped = not legacy.unclipped_observation
            self.observer = Observer(self.model, settings.observation, limits, settings.queue_sensitivity, clipped)
        self.queue, self.load, self.arrived = JobQueue(), Load(), list[JobRequest]()
        self.history = History()
        self.rejected = self.replaced = 0
        self.due = self.over = False
        self.reward: float | None = None
        self._pairs = [_pair(name, legacy.high_cores_packs) for name in settings.selection]
        self._void_actions = {len(settings.selection), *([settings.actions - 1] if legacy.last_action_is_void else [])}
        self._rewarded_late = legacy.late_reward and not settings.time_weighted
        # In HDeepRM, voids may follow each other without end; here their limit ends them.
        self._asks_after_void = self._within_void_limit if legacy.void_asks_again else self._stuck
        self._rejects_infeasible, self._sends_first_states = not legacy.keep_infeasible, not legacy.silent_begin
        self._hosts_by_creation = legacy.hosts_by_creation
        self._objective = OBJECTIVES[settings.objective]
        self.random = random_policies(seed)
        self._profiles: dict[str, Any] = {}
        self._host_of = self._core_of = np.empty(0, np.int64)
        self._static_over = self._changed = self._void_taken = False
        self._submitted = self._voids = 0
        self._value = 0.0  # of the objective, between messages
        self._awaiting_reward = False
        self._orders = Orders()
        self._sent, self._sent_shares = self.model.pstate.copy(), self.model.shares.copy()
        self._to_send: dict[int, None] = {}

    def take(self, message: Mapping[str, Any]) -> None:
        """Process a message of Batsim. Raises UserError for hosts and profiles of another platform or study."""
        now = message["now"]
        working = (
            self.failures is None or not self.failures.over
        )  # a call that is still to come prolongs the simulation
        if self.reward is not None and self.settings.time_weighted and working:
            self.reward += self._value * (now - self.model.now)
        self.model.advance(now)
        if self.failures is not None:
            self.failures.begin()
        for event in message["events"]:
            handle = self._handlers.get(event["type"])
            if handle:
                handle(self, event["data"])
        if self.failures is not None:
            self._fail_and_repair(self.failures)
        self.refresh()
        if self._changed:
            self._voids = 0
        if self._awaiting_reward:
            self.reward, self._awaiting_reward = (0.0 if self.over else self._value), False
        self.due = bool(len(self.queue)) and (self._changed or self._ask_again())
        if self.over:
            self._note_reward()

    def observe(self) -> np.ndarray:
        """Return the observation, (size,) float32; call it once for each decision."""
        return self.observer.observe(self.queue)

    def masks(self) -> np.ndarray:
        """Return which actions are valid, (actions,) bool; void is not if nothing can happen unless a job starts."""
        valid = np.ones(self.settings.actions, bool)
        if self.settings.void and self._stuck():
            valid[-1] = False
        return valid

    def act(self, action: int) -> None:
        """Carry out an action and note its reward. Raises UserError for an action that is not offered."""
        settings = self.settings
        if not 0 <= action < settings.actions:
            raise UserError(f"action {action}", where="decision", expected=f"one of 0 to {settings.actions - 1}")
        self._note_decision(action)
        void = action == len(self._pairs)
        if void and self._stuck() and self._voids >= settings.void_limit:
            action, void, self.replaced = 0, False, self.replaced + 1
        if not void:
            job_policy, choose = self._pairs[action]
            if job_policy in BACKFILLING:
                self._start_and_backfill(BACKFILLING[job_policy], choose)
            else:
                self._start_jobs(job_policy, choose)
        self.refresh()
        self._changed = False
        self._void_taken = action in self._void_actions
        self._voids = self._voids + 1 if self._void_taken else 0
        self._awaiting_reward = self._rewarded_late
        self.reward = 0.0 if settings.time_weighted or self._awaiting_reward else self._value
        self.due = bool(len(self.queue)) and self._ask_again()

    def act_by(self, start_jobs: Callable[[DecisionSystem], None]) -> None:
        """Let a policy start jobs itself (`start`) instead of choosing an action; the history notes the action 0."""
        self._note_decision(0)
        start_jobs(self)
        self.refresh()
        self._changed = self._void_taken = self._awaiting_reward = False
        self._voids, self.reward, self.due = 0, 0.0 if self.settings.time_weighted else self._value, False

    def orders(self) -> Orders:
        """Return the orders since the last call. The pstates of several changes are merged, and only those that differ
        from the last ones returned are included.
        """
        orders, self._orders = self._orders, Orders()
        if self._to_send:
            cores = self.model.cores_of(np.array(list(self._to_send)))
            self._to_send = {}
            changed = self.model.pstate[cores] != self._sent[cores]
            if self.model.sharing != STEP:
                changed |= self.model.shares[cores] != self._sent_shares[cores]
            cores = cores[changed]
            state = self.model.pstate[cores]
            self._sent[cores] = state
            if self.model.sharing != STEP:
                cores, state = self._order_speeds(orders, cores, state)
            for pstate in range(IDLE + 1):
                if (state == pstate).any():
                    orders.pstates.append((pstate, np.sort(self._host_of[cores[state == pstate]]).tolist()))
        if self.failures is not None:
            work_left = bool(len(self.queue) or self.model.running) or not self._static_over
            orders.call, orders.finished = self.failures.orders(work_left)
        return orders

    def _order_speeds(self, orders: Orders, cores: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add the shares of full speed of cores that lack bandwidth; return the other cores with their pstates."""
        share, slowed = self.model.shares[cores], state == OVERSUBSCRIBED
        self._sent_shares[cores] = share
        for value in np.unique(share[slowed]).tolist():
            orders.speeds.append((value, self.hosts_of_cores(cores[slowed & (share == value)])))
        return cores[~slowed], state[~slowed]

    def start(self, job: JobRequest, cores: Sequence[int]) -> None:
        """Start a waiting job on free cores; the caller calls `refresh` after the last job. Raises UserError if this
        exceeds the power cap.
        """
        if not self.model.power_suffices(cores):
            what = f"a policy starts job {job.id} although the cluster would take more than the cap"
            raise UserError(
                what, where="physics.power_cap", expected="starts for which ResourceModel.place lacks nothing"
            )
        self.model.take(job, cores)
        self.queue.remove(job)
        self._orders.start.append((job.id, np.sort(self._host_of[cores]).tolist()))

    def refresh(self) -> None:
        """Update pstates, the objective's value and the observation."""
        processors = self.model.refresh()
        self.observer.touch(processors)
        self._to_send.update(dict.fromkeys(processors.tolist()))
        self._value = self._objective(self.model, self.load)

    def forget(self, job: JobRequest) -> None:
        """Remove a waiting job that a scheduler rejects."""
        self.queue.remove(job)
        self.load.leave(job)
        if self.failures is not None:
            self.failures.forget(job.id)

    def cores_of_hosts(self, hosts: Sequence[int]) -> list[int]:
        """Return the numbers of the cores that correspond to Batsim's hosts."""
        if not len(self._core_of):
            self._core_of = np.argsort(self._host_of)
        return self._core_of[hosts].tolist()

    def hosts_of_cores(self, cores: np.ndarray) -> list[int]:
        """Return the numbers of Batsim's hosts that correspond to cores, ascending."""
        return np.sort(self._host_of[cores]).tolist()

    def _start_jobs(self, job_policy: str, choose: Choice) -> None:
        """Start jobs in the policy's order until one does not fit."""
        while len(self.queue):
            job = self.queue.first(job_policy, self.random)
            cores, lacking = self.model.place(job, choose, self.random)
            if lacking:
                getattr(self.model.overuse, lacking).append(self.model.now)
                return
            self.start(job, cores)

    def _start_and_backfill(self, job_policy: str, choose: Choice) -> None:
        """Start jobs in the policy's order; jobs behind the first that does not fit start only if they do not delay
        it.
        """
        reservation = None
        for job in self.queue.in_order(job_policy, self.random):
            cores, lacking = self.model.place(job, choose, self.random)
            if not lacking:
                if reservation is None or reservation.admits(self.model, job, cores):
                    self.start(job, cores)
            elif reservation is None:
                getattr(self.model.overuse, lacking).append(self.model.now)
                self.refresh()  # the speeds of the jobs just started
                reservation = reserve(self.model, job)

    def _note_decision(self, action: int) -> None:
        self._note_reward()
        self.history.times.append(self.model.now)
        self.history.actions.append(action)
        self.history.waiting.append(len(self.queue))

    def _note_reward(self) -> None:
        if self.reward is not None:
            self.history.rewards.append(self.reward)

    def _stuck(self) -> bool:
        """Return whether nothing can happen any more unless a job is started."""
        return self._static_over and not self.model.running

    def _ask_again(self) -> bool:
        """Return whether a void is followed by another decision although nothing has happened."""
        return self._void_taken and self._static_over and self._asks_after_void()

    def _within_void_limit(self) -> bool:
        return self._voids < self.settings.void_limit

    def _begin(self, data: Mapping[str, Any]) -> None:
        self._profiles = data["profiles"]
        hosts = {host["name"]: host["id"] for host in data["compute_resources"]}
        names = self.hierarchy.core_names()
        missing = [name for name in names if name not in hosts]
        if missing or len(hosts) != len(names):
            what = f"{len(hosts)} hosts" + (f", and none is called {missing[0]}" if missing else "")
            expected = f"the {len(names)} cores of platform {self.hierarchy.name}, by their names"
            raise UserError(what, where="platform of the simulator", expected=expected)
        by_name = np.array([hosts[name] for name in names])
        self._host_of = np.arange(len(names)) if self._hosts_by_creation else by_name
        if self._sends_first_states:
            self._sent[:] = -1  # so that every host gets an order for its first pstate
            self._to_send = dict.fromkeys(range(len(self.model.busy)))

    def _fail_and_repair(self, failures: Failures) -> None:
        """Withdraw the nodes that fail at this date, and the jobs on them; return those that are repaired."""
        for node, works in failures.changes:
            if works:
                self.model.repair(node)
                self._changed = True
                continue
            for job_id in self.model.jobs_on(node):
                self.load.leave(self.model.give_back(job_id))
                self._orders.kill.append(job_id)
                if again := failures.next_attempt(job_id, self.model.now):
                    self._orders.register.append(again)
            self.model.fail(node)

    def _call(self, _: Mapping[str, Any]) -> None:
        if self.failures is not None:
            self.failures.take_call(self.model.now)

    def _submit(self, data: Mapping[str, Any]) -> None:
        job = self._request(data["job"])
        if self.failures is not None:
            self.failures.submitted(data["job"])
        infeasible = job.cores > self.model.room_for(job.memory) or self.model.exceeds_cap_alone(job)
        if job.cores < 1 or (self._rejects_infeasible and infeasible):
            self._orders.reject.append(job.id)
            self.rejected += 1
            return
        self.queue.add(job)
        self.arrived.append(job)
        self.load.enter(job)
        self._changed = True

    def _request(self, job: Mapping[str, Any]) -> JobRequest:
        workload = job["id"].partition("!")[0]
        profile = self._profiles[workload][job["profile"]]
        values = [_number(profile, key, job) for key in ("req_time", "req_ops", "mem", "mem_bw")]
        time, flops, memory, bandwidth = values
        if time <= 0:
            where = f"profile {job['profile']} of job {job['id']}"
            raise UserError(f"req_time is {time:g}", where=where, expected="seconds, above 0")
        self._submitted += 1
        submitted, demand = job["subtime"], (round(memory * KB_PER_MB), round(bandwidth * KB_PER_GB))
        return JobRequest(job["id"], self._submitted, submitted, time, job["res"], *demand, flops)

    def _complete(self, data: Mapping[str, Any]) -> None:
        if data["job_id"] in self.model.running:
            self.load.leave(self.model.give_back(data["job_id"]))
            self._changed = True
            if self.failures is not None:
                self.failures.forget(data["job_id"])
        elif self.failures is not None:
            self._changed = True  # a failure ended the job, whose cores on other nodes are free

    def _notice(self, data: Mapping[str, Any]) -> None:
        if data.get("type") == "no_more_static_job_to_submit":
            self._static_over = True

    def _end(self, _: Mapping[str, Any]) -> None:
        self.over = True

    _handlers = {  # noqa: RUF012  (a table, not a default)
        "SIMULATION_BEGINS": _begin,
        "JOB_SUBMITTED": _submit,
        "JOB_COMPLETED": _complete,
        "NOTIFY": _notice,
        "REQUESTED_CALL": _call,
        "SIMULATION_ENDS": _end,
    }


def random_policies(seed: int) -> np.random.Generator:
    """Return the generator from which the random policies of an episode draw."""
    return generator(seed, "hetero", "random policies")


def _pair(name: str, high_cores_packs: bool) -> tuple[str, Choice]:
    job, _, core = name.partition(PAIR_SEPARATOR)
    if core == "high_cores" and high_cores_packs:
        return job, pack_cores
    return job, ALL_CORE_POLICIES[core]


def _number(profile: Mapping[str, Any], key: str, job: Mapping[str, Any]) -> float:
    value = profile.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        where = f"profile {job['profile']} of job {job['id']}"
        raise UserError(f"{key} is {value!r}", where=where, expected="a number, 0 or more")
    return value


def intervals(numbers: Sequence[int]) -> str:
    """Return ascending numbers as Batsim writes a set: closed intervals separated by spaces."""
    parts, first, last = [], numbers[0], numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            parts.append((first, last))
            first = number
        last = number
    parts.append((first, last))
    return " ".join([str(first) if first == last else f"{first}-{last}" for first, last in parts])


def protocol_event(now: float, kind: str, **data: Any) -> dict[str, Any]:
    """Return an event of Batsim's protocol."""
    return {"timestamp": now, "type": kind, "data": data}


def failure_events(orders: Orders, now: float) -> list[dict[str, Any]]:
    """Return the orders that failures of nodes cause as events of Batsim's protocol."""
    events = [protocol_event(now, "KILL_JOB", job_ids=orders.kill)] if orders.kill else []
    events += [protocol_event(now, "REGISTER_JOB", job_id=job["id"], job=job) for job in orders.register]
    events += [protocol_event(now, "CALL_ME_LATER", timestamp=orders.call)] if orders.call is not None else []
    return events + ([protocol_event(now, "NOTIFY", type="registration_finished")] if orders.finished else [])


def pstate_events(orders: Orders, now: float) -> list[dict[str, Any]]:
    """Return the orders to set pstates as events of Batsim's protocol, and those to set speeds, which only the embedded
    simulator knows.
    """
    states: list[dict[str, Any]] = [
        {"resources": intervals(hosts), "state": str(pstate)} for pstate, hosts in orders.pstates
    ]
    slowed = str(OVERSUBSCRIBED)
    states += [{"resources": intervals(hosts), "state": slowed, "share": share} for share, hosts in orders.speeds]
    return [protocol_event(now, "SET_RESOURCE_STATE", **state) for state in states]
