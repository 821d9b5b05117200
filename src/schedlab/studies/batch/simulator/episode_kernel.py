"""Many windows in parallel as episodes: one call steps all, and writes rewards and observations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.env.layouts import RLSCHEDULER
from schedlab.studies.batch.env.observe import EMPTY, NOOP, fill_rows, observe, show_fairness
from schedlab.studies.batch.env.rewards import (
    ACCRUED,
    UTILISATION,
    average,
    job_score,
    reward,
    score_of_wait,
    user_average,
)
from schedlab.studies.batch.simulator.blocking import ARRIVED
from schedlab.studies.batch.simulator.cluster import BEGUN, Array, Running, uncounted
from schedlab.studies.batch.simulator.decision_kernel import Window, Windows, decide, done, may_wait, wait, window_at
from schedlab.studies.batch.simulator.scores import excess_costs


class Episodes(NamedTuple):
    """The state of N windows of up to J jobs besides their simulation; the first axis is the window.

    fixed (T, k)           layouts.fixed_columns of all jobs that windows may hold; the window's begin at `offset` (N,)
    procs, user (N, J)     processors; users, numbered within the window
    known (N, J)           the same for the feature of fairness, -1 where a job has no user
    job_id (N, J)          of the window's jobs and of its prefill
    request (N, J), plans (N, rules, J), excess (N, J)   of scores.excess_costs, where it is seen; else the last
    axis is 0 orders (N, rules, J), random (N, 1) uint64, stamp (N, J)   of observe.fill_rows
    rows (N, 128), found (N,)   the job of each row, and how many rows hold one
    seen (N,)              how many of the jobs begun have been scored
    total, work (N,)       sums of rewards.job_score and of processor seconds over the started jobs
    waited, accrued (N,)   sums of rewards.score_of_wait over the started jobs, and over those that wait, too
    user_total, user_started (N, J)   the same of each user; users (N,): how many there are
    now, baseline (N,)     B, and that of the rule to improve on
    replaced (N,)          rows without a job that were chosen and replaced
    """

    fixed: np.ndarray
    offset: np.ndarray
    procs: np.ndarray
    user: np.ndarray
    known: np.ndarray
    job_id: np.ndarray
    request: np.ndarray
    plans: np.ndarray
    excess: np.ndarray
    orders: np.ndarray
    random: np.ndarray
    stamp: np.ndarray
    rows: np.ndarray
    found: np.ndarray
    seen: np.ndarray
    total: np.ndarray
    work: np.ndarray
    waited: np.ndarray
    accrued: np.ndarray
    user_total: np.ndarray
    user_started: np.ndarray
    users: np.ndarray
    now: np.ndarray
    baseline: np.ndarray
    replaced: np.ndarray


class Terms(NamedTuple):
    """The settings of an environment as numbers, as in rewards.py; shuffled: place of the random order or -1."""

    layout: int
    processors: float
    largest_id: float
    shuffled: int
    noop_seconds: float
    noop_ends: bool
    noop_replaces: bool
    reward: int
    measure: int
    users: int
    scale: float
    fairness: bool


@compiled(error_model="numpy")
def look(windows: Windows, episodes: Episodes, terms: Terms, place: int, observation: Array, mask: Array) -> None:
    """Write the observation of one window and the rows that may be chosen."""
    window = window_at(windows, place)
    rows = episodes.rows[place]
    orders, stamp = episodes.orders[place], episodes.stamp[place]
    found = fill_rows(window, orders, terms, episodes.random[place], stamp, rows)
    episodes.found[place] = found
    mask[:found] = True
    mask[found:] = False
    if found < len(rows) and rows[found] == NOOP:
        mask[found] = _may_wait(window, terms)
    fixed = episodes.fixed[episodes.offset[place] :]
    excess = episodes.excess[place]
    if len(excess) and found:
        waiting = np.flatnonzero(window.queue.waits[: window.queue.counts[ARRIVED]])
        clock = window.queue.clock[0]
        excess_costs(
            window.columns, episodes.request[place], episodes.plans[place], window.running, waiting, clock, excess
        )
    observe(window, terms, fixed, rows, found, excess, episodes.job_id[place], observation)
    if terms.fairness:
        users = episodes.users[place]
        total, started = episodes.user_total[place, :users], episodes.user_started[place, :users]
        show_fairness(episodes.known[place], total, started, rows, found, observation)


@uncounted
def _may_wait(window: Window, terms: Terms) -> bool:
    if terms.layout == RLSCHEDULER:
        return window.queue.counts[ARRIVED] < len(
            window.columns.submit
        )  # published: the row is masked after the last arrival
    return terms.noop_ends or may_wait(window)


@compiled(error_model="numpy")
def step(
    windows: Windows,
    episodes: Episodes,
    terms: Terms,
    actions: Array,
    observations: Array,
    masks: Array,
    rewards: Array,
    ended: Array,
) -> None:
    """Step all windows that have not ended, a row each; write observations, masks, rewards, and which ended."""
    for place in range(len(actions)):
        rewards[place] = 0.0
        if ended[place]:
            continue
        window = window_at(windows, place)
        ended[place], real = _act(window, episodes, terms, place, actions[place], masks[place])
        rewards[place] = _pay(window, episodes, terms, place, ended[place], real)
        look(windows, episodes, terms, place, observations[place], masks[place])


@compiled(error_model="numpy")
def _act(window: Window, episodes: Episodes, terms: Terms, place: int, row: int, mask: Array) -> tuple[bool, bool]:
    """Choose a row; return (whether the window ends, whether the row was real)."""
    job, real = episodes.rows[place, row], mask[row]
    if job == EMPTY and terms.noop_replaces and _may_wait(window, terms):
        job = NOOP
    elif not mask[row]:
        job = episodes.rows[place, 0]
        episodes.replaced[place] += 1
    if job != NOOP:
        decide(window, job)
        return done(window), real
    if not may_wait(window):
        return True, real
    wait(window, terms.noop_seconds)
    return False, real


@compiled(error_model="numpy")
def _pay(window: Window, episodes: Episodes, terms: Terms, place: int, last: bool, real: bool) -> float:
    """Take in the jobs that started; return the reward."""
    columns, running = window.columns, window.running
    first, before, added = columns.submit[0], episodes.now[place], 0.0
    count = len(columns.submit)
    for number in range(episodes.seen[place], running.size[BEGUN]):
        job = running.begun[number]
        score = job_score(terms.measure, running.start[job] - columns.submit[job], columns.run[job])
        added += score
        episodes.waited[place] += score_of_wait(
            terms.measure, running.start[job] - columns.submit[job], columns.run[job]
        )
        episodes.work[place] += columns.run[job] * episodes.procs[place, job]
        user = episodes.user[place, job]
        episodes.user_total[place, user] += score
        episodes.user_started[place, user] += 1
    started = running.size[BEGUN] - (len(columns.run) - count)
    episodes.seen[place] = running.size[BEGUN]
    episodes.total[place] += added
    mean = episodes.total[place] / started if started else 0.0
    if terms.users:
        users = episodes.users[place]
        mean = user_average(terms.users, episodes.user_total[place, :users], episodes.user_started[place, :users])
    offered = (_last_start(running) - first) * terms.processors
    now = average(terms.measure, mean, episodes.work[place], offered)
    episodes.now[place] = now
    change = added / count if terms.users == 0 and terms.measure < UTILISATION else now - before
    if terms.reward == ACCRUED and terms.users == 0 and terms.measure < UTILISATION:
        earlier = episodes.accrued[place]
        episodes.accrued[place] = episodes.waited[place] + _pending(window, terms.measure)
        change = (episodes.accrued[place] - earlier) / count
    return reward(terms.reward, now, change, last, real, terms.scale, episodes.baseline[place])


@uncounted
def _pending(window: Window, measure: int) -> float:
    """What the jobs that wait now have added to the sum of scores."""
    columns, queue, total = window.columns, window.queue, 0.0
    for job in range(queue.counts[ARRIVED]):
        if queue.waits[job]:
            total += score_of_wait(measure, queue.clock[0] - columns.submit[job], columns.run[job])
    return total


@uncounted
def _last_start(running: Running) -> float:
    """The last start so far: jobs start in order of time, and those of a prefill come before."""
    return running.start[running.begun[running.size[BEGUN] - 1]] if running.size[BEGUN] else 0.0
