"""Windows of a workload stepped in parallel: the common part of the environments and of runs of learned policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.constraints.dependencies import follow
from schedlab.studies.batch.env import rewards
from schedlab.studies.batch.env.layouts import Layout, Scales, fixed_columns, layout_of
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import (
    Jobs,
    Machine,
    Prefill,
    Schedule,
    prefill,
    require_runnable,
    require_submission_order,
    window,
)
from schedlab.studies.batch.rules import (
    backfill_keys,
    positive_request,
    priority,
    require_fixed_rule,
    require_rule,
)
from schedlab.studies.batch.scenario import STEPPED, TEXTBOOK, Backfill, BackfillOrder, require_order
from schedlab.studies.batch.simulator.blocking import WAITING
from schedlab.studies.batch.simulator.cluster import BEGUN, COUNT
from schedlab.studies.batch.simulator.decision_kernel import open_window, windows_of
from schedlab.studies.batch.simulator.episode_kernel import Episodes, Terms, look, step
from schedlab.studies.batch.simulator.scores import PLANNED_BY, planning_orders
from schedlab.studies.batch.simulator.simulate import scan_of, simulate


class Drawn(NamedTuple):
    """One window: its first job, its length, and the random generator for the rest (warm start, random order)."""

    start: int
    length: int
    rng: np.random.Generator


@dataclass(frozen=True)
class Task:
    """The problem of the decisions: the windows of a workload from which episodes are drawn, and the rules of the
    simulation.

    starts   first jobs that a window may have        lengths  (shortest, longest) window, drawn evenly
    scales   what the published layouts divide by; None: the largest values of all `jobs`
    seed     of what a window draws itself (the jobs that run before it); None: drawn with the window
    backfill_order  as in `simulate`, but not `rule` with legacy: no policy is asked while the chosen job waits
    """

    jobs: Jobs
    machine: Machine
    starts: Sequence[int]
    lengths: tuple[int, int]
    backfill: Backfill = "none"
    kill: bool = False
    warm_start: bool = False
    scales: Scales | None = None
    settings: EnvironmentSettings = field(default_factory=EnvironmentSettings)
    seed: int | None = None
    backfill_order: BackfillOrder = "default"

    def __post_init__(self) -> None:
        shortest, longest = self.lengths
        where = f"{self.machine.source}: window"
        if not len(self.starts):
            raise UserError("no window to draw from", where=where, expected="at least one start")
        if not 0 < shortest <= longest:
            what = f"windows of {shortest} to {longest} jobs"
            raise UserError(what, where=where, expected="at least one job, shortest first")
        window(self.jobs, self.machine, min(self.starts), 1)
        window(self.jobs, self.machine, max(self.starts), longest)
        reached = self.jobs.take(_reached(self.starts, longest, len(self.jobs)))
        require_runnable(reached, self.machine)
        if self.backfill not in STEPPED:
            what = f"a policy that decides job by job cannot have the backfilling '{self.backfill}'"
            raise UserError(what, where="backfill", expected=", ".join(STEPPED))
        require_order(self.backfill, self.backfill_order)
        for setting, given in (
            ("limits", self.machine.limits),
            ("dependencies", follow(reached)),
            ("queue_priority", np.count_nonzero(reached.priority)),
        ):
            if given:
                what = "a policy that decides job by job does not know this setting"
                raise UserError(what, where=setting, expected="none, or a rule, a planner, a search or rollouts")
        if self.backfill in TEXTBOOK:
            require_submission_order(reached, self.machine)
        if self.backfill == "legacy" and self.backfill_order == "rule":
            what = "a policy that decides job by job is not asked which jobs the published backfilling starts"
            raise UserError(what, where="backfill_order", expected="fcfs, sjf or area")
        for rule in self.settings.baselines:
            require_rule(rule, "environment.baseline")
        if self.settings.layout == "shortlist":
            require_fixed_rule(self.settings.order, "environment.order")

    @cached_property
    def layout(self) -> Layout:
        """The layout of the observations."""
        return layout_of(self.settings, self.machine)

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Draw a window."""
        start = int(self.starts[int(rng.integers(len(self.starts)))])
        length = int(rng.integers(self.lengths[0], self.lengths[1] + 1))
        own = int(rng.integers(2**62))
        return Drawn(start, length, np.random.default_rng(own if self.seed is None else self.seed))


class Stepper:
    """A number of windows of a task, stepped by one call.

    observations (N, size) float32; masks (N, rows) bool: rows that may be chosen; rewards (N,) float64; ended (N,) bool
    """

    def __init__(self, task: Task, number: int) -> None:
        self.task, self.layout = task, task.layout
        settings, machine, longest = task.settings, task.machine, task.lengths[1]
        self._first = min(task.starts)
        # All that windows hold, not the whole workload: there may be an environment for each of many windows.
        reached = self._cut(slice(self._first, max(task.starts) + longest))
        size = longest + (min(machine.nodes, 2 * longest) if task.warm_start else 0)
        track = settings.track_nodes or settings.layout == "dissertation"
        held = most_nodes(reached, longest) + machine.nodes if track else 0
        backfill, scan = STEPPED.index(task.backfill), scan_of(task.backfill, task.backfill_order)
        self.windows = windows_of(number, size, machine.nodes, held, backfill, scan)
        scales = task.scales or Scales.of(task.jobs)
        self._rules = settings.visible_rules
        fixed = fixed_columns(self.layout, reached, machine, scales, oracle=settings.oracle_runtime)
        self.episodes = _episodes(number, size, self.layout.rows, len(self._rules), fixed, plan=settings.plan)
        self.terms = _terms(settings, self.layout, machine, scales)
        self.observations = np.zeros((number, self.layout.size), dtype=np.float32)
        self.masks = np.zeros((number, self.layout.rows), dtype=np.bool_)
        self.rewards = np.zeros(number)
        self.ended = np.ones(number, dtype=np.bool_)
        self.drawn: list[Drawn | None] = [None] * number
        self.before: list[Prefill | None] = [None] * number  # what runs at the begin of each window

    def open(self, place: int, drawn: Drawn) -> None:
        """Begin a window in a place, instead of the one there."""
        task, windows, episodes = self.task, self.windows, self.episodes
        start, length = drawn.start, drawn.length
        jobs = self._cut(slice(start, start + length))
        before = prefill(task.jobs, task.machine, start, length, drawn.rng) if task.warm_start else None
        self.drawn[place], self.before[place] = drawn, before
        end = length + (len(before.start) if before else 0)
        for name in ("run", "requested", "nodes"):
            getattr(windows, name)[place, :length] = getattr(jobs, name)
        episodes.job_id[place, :length], episodes.procs[place, :length] = jobs.job_id, jobs.procs
        if before is not None:
            for name in ("run", "requested", "nodes"):
                getattr(windows, name)[place, length:end] = getattr(before.jobs, name)
            episodes.job_id[place, length:end] = before.jobs.job_id
        windows.submit[place, :length] = jobs.submit
        if windows.keys.shape[1]:
            windows.keys[place, :length] = backfill_keys(task.backfill_order, jobs)
        windows.rank[place, :length] = np.arange(length)
        windows.length[place], windows.prefilled[place] = length, end - length
        open_window(windows, place, task.machine.nodes, before.start if before else np.empty(0))
        self._begin_scores(place, jobs)
        for number, rule in enumerate(self._rules):
            if rule != "random" and (length > self.layout.rows or self.layout.name == "shortlist"):
                episodes.orders[place, number, :length] = np.argsort(priority(rule, jobs).ranks())
        if self.task.settings.plan:
            episodes.request[place, :length] = positive_request(jobs)
            episodes.plans[place] = -1  # no job
            episodes.plans[place, :, :length] = planning_orders(jobs)
        episodes.random[place] = drawn.rng.integers(2**63)
        self.ended[place], self.rewards[place] = False, 0.0
        look(windows, episodes, self.terms, place, self.observations[place], self.masks[place])

    def step(self, actions: np.ndarray) -> None:
        """Choose a row (N,) in each window that has not ended.

        Raises ValueError as `rows_of`, RuntimeError where all have ended, UserError where empty rows are refused.
        """
        actions = rows_of(actions, len(self.ended), self.layout.rows)
        if self.ended.all():
            raise RuntimeError("the episode has ended: call reset")
        if self.task.settings.on_empty_row == "error":
            self._require_rows(actions)
        step(self.windows, self.episodes, self.terms, actions, self.observations, self.masks, self.rewards, self.ended)

    def schedule(self, place: int) -> Schedule:
        """Return the schedule of a window; a job that has not started has the start NaN."""
        start, length, _ = self._window(place)
        held: tuple[np.ndarray, ...] = ()
        if self.windows.owner.shape[1]:
            first = self.windows.first[place]
            nodes = self.windows.nodes[place]
            held = tuple(self.windows.held[place, first[job] : first[job] + nodes[job]].copy() for job in range(length))
        return Schedule(self._cut(slice(start, start + length)), self.windows.start[place, :length].copy(), held)

    def schedule_under(self, place: int, rule: str) -> Schedule:
        """Return the schedule of a window under a rule, with the jobs that run at its beginning."""
        task, (start, length, _), before = self.task, self._window(place), self.before[place]
        jobs, order = self._cut(slice(start, start + length)), task.backfill_order
        return simulate(jobs, task.machine, rule, task.backfill, backfill_order=order, prefill=before)

    def infos(self) -> dict[str, np.ndarray]:
        """Return the state of each window (N,): time (s), jobs waiting, running, started, rows replaced, and B."""
        windows, episodes = self.windows, self.episodes
        return {
            "time": windows.clock[:, 0].copy(),
            "waiting": windows.counts[:, WAITING].copy(),
            "running": windows.size[:, COUNT].copy(),
            "started": windows.size[:, BEGUN] - windows.prefilled,
            "replaced": episodes.replaced.copy(),
            "score": episodes.now.copy(),
        }

    def info(self, place: int) -> dict[str, Any]:
        """Return the same of one window as plain numbers; at its end, where asked for, with the scores of rules."""
        ending = self._compared(place) if self.ended[place] and self.task.settings.compare else {}
        return ending | {name: values[place].item() for name, values in self.infos().items()}

    def _window(self, place: int) -> Drawn:
        drawn = self.drawn[place]
        assert drawn is not None
        return drawn

    def _cut(self, places: slice) -> Jobs:
        """Some jobs of the workload, as they run."""
        jobs = self.task.jobs.take(places)
        return jobs.killed_at_request() if self.task.kill else jobs

    def _under_baselines(self, place: int) -> dict[str, float]:
        """B of a window under each rule to improve on."""
        task = self.task
        schedules = {rule: self.schedule_under(place, rule) for rule in task.settings.baselines}
        return {rule: score_of(schedule, task.machine, task.settings) for rule, schedule in schedules.items()}

    def _compared(self, place: int) -> dict[str, float]:
        """What RLScheduler logged at the end of a window: B under the rules, and the best of them less B."""
        found = self._under_baselines(place)
        named = {f"score_{rule}": score for rule, score in found.items()}
        return named | {"improvement": min(found.values()) - float(self.episodes.now[place])}

    def _begin_scores(self, place: int, jobs: Jobs) -> None:
        episodes, settings, before = self.episodes, self.task.settings, self.before[place]
        episodes.offset[place] = self._window(place).start - self._first
        episodes.seen[place] = len(before.start) if before else 0
        scores = (episodes.total, episodes.work, episodes.user_total, episodes.user_started)
        for array in (*scores, episodes.waited, episodes.accrued, episodes.now, episodes.replaced):
            array[place] = 0
        if settings.users != "none" or settings.fairness:
            users, numbers = np.unique(jobs.user, return_inverse=True)
            episodes.user[place, : len(jobs)], episodes.users[place] = numbers, len(users)
            episodes.known[place, : len(jobs)] = np.where(jobs.user == -1, -1, numbers)
        if settings.reward == "improvement":
            episodes.baseline[place] = min(self._under_baselines(place).values())

    def _require_rows(self, actions: np.ndarray) -> None:
        wrong = ~self.masks[np.arange(len(actions)), actions] & ~self.ended
        if wrong.any():
            place = int(np.argmax(wrong))
            rows = np.flatnonzero(self.masks[place])
            raise UserError(
                f"row {actions[place]} holds no job that may be chosen",
                where=f"window from job {self._window(place).start} on, {self.windows.clock[place, 0]:g} s",
                expected="one of the rows " + ", ".join(map(str, rows[:10])) + (" ..." if len(rows) > 10 else ""),
                remedy="heed the mask",
            )


def _reached(starts: Sequence[int], longest: int, count: int) -> np.ndarray:
    """Which of `count` jobs (count,) some window holds; the others are never simulated."""
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, np.asarray(starts), 1)
    np.add.at(change, np.asarray(starts) + longest, -1)
    return np.cumsum(change[:-1]) > 0


def rows_of(actions: Any, number: int, shown: int) -> np.ndarray:
    """Return actions as rows (number,) int64, below `shown`. Raises ValueError for another number, for no integers, and
    no rows.
    """
    rows = np.asarray(actions)
    if rows.shape != (number,):
        what = f"actions of shape {rows.shape} for {number} windows"
        raise ValueError(f"{what}: expected one row for each, shape ({number},)")
    if rows.dtype.kind not in "iu":
        raise ValueError(f"actions of type {rows.dtype}: expected numbers of rows, integers from 0 to {shown - 1}")
    if (wrong := (rows < 0) | (rows >= shown)).any():
        raise ValueError(f"row {rows[wrong][0]} is not one of 0 to {shown - 1}")
    return rows.astype(np.int64, copy=False)


def most_nodes(jobs: Jobs, length: int) -> int:
    """Return the most nodes that `length` jobs in a row take together."""
    total = np.concatenate([[0], np.cumsum(jobs.nodes)])
    return int((total[length:] - total[:-length]).max()) if len(jobs) > length else int(total[-1])


def score_of(schedule: Schedule, machine: Machine, settings: EnvironmentSettings) -> float:
    """Return B of a finished window, as at the end of an episode with the same decisions."""
    jobs, measure = schedule.jobs, rewards.MEASURES.index(settings.measure)
    waits = zip(schedule.start - jobs.submit, jobs.run, strict=True)
    scores = np.array([rewards.job_score(measure, wait, run) for wait, run in waits])
    mean = float(scores.mean())
    if settings.users != "none":
        _, numbers = np.unique(jobs.user, return_inverse=True)
        total, started = np.bincount(numbers, scores), np.bincount(numbers)
        mean = float(rewards.user_average(rewards.USERS.index(settings.users), total, started))
    offered = float(schedule.start.max() - jobs.submit[0]) * machine.processors
    return float(rewards.average(measure, mean, float(jobs.run @ jobs.procs), offered))


def _episodes(number: int, size: int, rows: int, rules: int, fixed: np.ndarray, *, plan: bool) -> Episodes:
    by_job = ("procs", "user", "known", "job_id", "stamp", "user_started")
    counts, sums = (
        ("offset", "found", "seen", "users", "replaced"),
        ("total", "work", "waited", "accrued", "now", "baseline"),
    )
    return Episodes(
        **{name: np.zeros((number, size), dtype=np.int64) for name in by_job},
        **{name: np.zeros(number, dtype=np.int64) for name in counts},
        **{name: np.zeros(number) for name in sums},
        fixed=np.ascontiguousarray(fixed),
        request=np.zeros((number, size * plan)),
        plans=np.zeros((number, len(PLANNED_BY), size * plan), dtype=np.int64),
        excess=np.zeros((number, size * plan)),
        orders=np.zeros((number, rules, size), dtype=np.int64),
        random=np.zeros((number, 1), dtype=np.uint64),
        rows=np.full((number, rows), -1, dtype=np.int64),
        user_total=np.zeros((number, size)),
    )


def _terms(settings: EnvironmentSettings, layout: Layout, machine: Machine, scales: Scales) -> Terms:
    rules = settings.visible_rules
    return Terms(
        layout=layout.code,
        processors=float(machine.processors),
        largest_id=scales.job_id or 1.0,
        shuffled=rules.index("random") if "random" in rules else -1,
        noop_seconds=float(settings.waiting_seconds),
        noop_ends=settings.noop_ends,
        noop_replaces=settings.on_empty_row == "noop",
        reward=rewards.REWARDS.index(settings.reward),
        measure=rewards.MEASURES.index(settings.measure),
        users=rewards.USERS.index(settings.users),
        scale=float(settings.sigmoid_scale),
        fairness=settings.fairness,
    )
