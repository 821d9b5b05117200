"""Our schedulers against plain statements of what they promise."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_simulator import TinySimulator

from oracles.batsim_availability import PlainAvailability
from schedlab.batsim.backends.pybatsim_bus import PyBatsimRun, run_pybatsim
from schedlab.batsim.errors import SimulationDeadlock
from schedlab.batsim.scheduler_loading import OURS, load_scheduler
from schedlab.batsim.schedulers import conservative
from schedlab.batsim.schedulers.queue_scheduler import HostSet
from schedlab.config.errors import UserError

HOSTS = 6
job = st.tuples(st.integers(0, 20), st.integers(1, HOSTS), st.integers(1, 12), st.integers(1, 15)).map(
    lambda j: tuple(map(float, j))
)
whole = st.lists(job, min_size=1, max_size=25).map(lambda jobs: [(s, int(n), w, r) for s, n, w, r in sorted(jobs)])
machine_events = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["0", "1-3", "2 5"])), max_size=2, unique_by=lambda event: event[1]
).map(
    lambda outages: [
        (float(date + delay), f"event_machine_{kind}", hosts)
        for date, hosts in outages
        for delay, kind in ((0, "unavailable"), (9, "available"))
        if hosts != "2 5"
        or len(outages) == 1  # outages that overlap in hosts mean different things to different simulators
    ]
)


def simulate(name, jobs, options=None, events=(), hosts=HOSTS):
    simulation = TinySimulator(hosts, jobs, list(events))
    run_pybatsim(simulation, load_scheduler(name, options))
    return simulation


def used(simulation, date, but=None):
    """Hosts in use just after a date."""
    return sum(
        simulation.jobs[i][1]
        for i in simulation.starts
        if i != but and simulation.starts[i] <= date < simulation.ends[i]
    )


@pytest.mark.parametrize("name", OURS)
@given(jobs=whole, events=machine_events)
@settings(max_examples=60, deadline=None)
def test_every_job_runs_once_on_idle_available_hosts(name, jobs, events):
    simulation = simulate(name, jobs, events=events)  # TinySimulator asserts the rest
    assert set(simulation.ends) == set(range(len(jobs)))
    assert all(simulation.starts[i] >= jobs[i][0] for i in simulation.starts)


@pytest.mark.parametrize("name", OURS)
def test_a_job_wider_than_the_platform_is_rejected_and_the_others_run(name):
    simulation = simulate(name, [(0.0, HOSTS + 1, 5.0, 5.0), (0.0, HOSTS, 5.0, 5.0)])
    assert simulation.rejected == {0}
    assert simulation.starts == {1: 0.0}


@pytest.mark.parametrize("name", ["easy", "conservative", "sjf"])
def test_a_missing_walltime_is_refused_by_those_that_plan_with_it(name):
    with pytest.raises(UserError, match=r"job 'w0!0' has no walltime"):
        simulate(name, [(0.0, 1, 0.0, 5.0)])


@pytest.mark.parametrize("name", ["fcfs", "filler"])
def test_a_missing_walltime_is_nothing_to_the_others(name):
    assert simulate(name, [(0.0, 1, 0.0, 5.0)]).ends == {0: 5.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"priorty": "sjf"}, "did you mean 'priority'"), ({"priority": "sfj"}, "did you mean 'sjf'")],
)
def test_a_wrong_option_is_told(options, message):
    with pytest.raises(UserError, match=message):
        load_scheduler("easy", options)


@given(jobs=whole)
@settings(max_examples=150, deadline=None)
def test_fcfs_starts_in_the_order_of_arrival_and_as_soon_as_the_first_fits(jobs):
    simulation = simulate("fcfs", jobs)
    starts = [simulation.starts[i] for i in range(len(jobs))]
    assert starts == sorted(starts)
    for i, start in enumerate(starts):
        ready = max(jobs[i][0], starts[i - 1] if i else 0.0)
        dates = sorted({ready, *(end for end in simulation.ends.values() if ready < end)})
        earlier = range(i)
        fitting = next(
            date
            for date in dates
            if sum(jobs[j][1] for j in earlier if starts[j] <= date < simulation.ends[j]) + jobs[i][1] <= HOSTS
        )
        assert start == fitting


@given(jobs=whole)
@settings(max_examples=100, deadline=None)
def test_sjf_never_starts_a_job_while_a_shorter_one_waits(jobs):
    simulation = simulate("sjf", jobs)
    for i, start in simulation.starts.items():
        assert not [
            j
            for j in simulation.starts
            if jobs[j][0] <= start < simulation.starts[j] and (jobs[j][2], j) < (jobs[i][2], i)
        ]


@given(jobs=whole)
@settings(max_examples=100, deadline=None)
def test_filler_lets_no_job_wait_that_fits(jobs):
    simulation = simulate("filler", jobs)
    for date in {*simulation.ends.values(), *(job[0] for job in jobs)}:
        idle = HOSTS - used(simulation, date)
        assert not [i for i, job in enumerate(jobs) if job[0] <= date < simulation.starts[i] and job[1] <= idle]


def shadow_of(hosts, running, width, now):
    """Say it plainly: the first date at which `width` hosts are free if every running job takes its whole walltime."""
    return min(
        date
        for date in {now, *(end for end, _ in running)}
        if sum(n for end, n in running if end > date) + width <= hosts and date >= now
    )


@given(jobs=whole)
@settings(max_examples=200, deadline=None)
def test_easy_never_delays_the_first_job_and_overlooks_no_job_that_could_start(jobs):
    """At each date, the first waiting job can start as early with all that runs as without those that overtook it."""
    simulation = TinySimulator(HOSTS, jobs)
    with PyBatsimRun(simulation, load_scheduler("easy")) as run:
        before = set(simulation.starts)
        while run.step():
            now = simulation.now
            waiting = [i for i, job in enumerate(jobs) if job[0] <= now and i not in simulation.starts]
            new = [i for i in simulation.starts if i not in before]
            before = set(simulation.starts)
            if not waiting:
                continue
            head = waiting[0]
            active = {
                i: (simulation.starts[i] + jobs[i][2], jobs[i][1])
                for i in simulation.starts
                if i not in simulation.ends
            }
            in_order = [i for i in new if i < head]
            without = [end_and_hosts for i, end_and_hosts in active.items() if i not in new or i in in_order]
            shadow = shadow_of(HOSTS, list(active.values()), jobs[head][1], now)
            assert shadow == shadow_of(HOSTS, without, jobs[head][1], now), "overtaking jobs delayed the first"
            assert shadow > now, "the first job could have started"
            for i in waiting[1:]:
                with_it = [*active.values(), (now + jobs[i][2], jobs[i][1])]
                fits = sum(n for _, n in with_it) <= HOSTS
                assert not (fits and shadow_of(HOSTS, with_it, jobs[head][1], now) == shadow), (
                    f"job {i} could have started"
                )


@given(
    jobs=whole, priority=st.sampled_from(["sjf", "ljf", "smallest", "largest", "smallest_area", "f1", "wfp3", "unicep"])
)
@settings(max_examples=100, deadline=None)
def test_easy_with_a_priority_runs_every_job(jobs, priority):
    assert len(simulate("easy", jobs, {"priority": priority}).ends) == len(jobs)


def test_priorities_order_the_queue():
    jobs = [(0.0, 6, 10.0, 10.0), (1.0, 6, 9.0, 9.0), (2.0, 6, 3.0, 3.0), (3.0, 5, 5.0, 5.0)]
    orders = {
        "fcfs": [0, 1, 2, 3],
        "sjf": [0, 2, 3, 1],
        "ljf": [0, 1, 3, 2],
        "smallest": [0, 3, 1, 2],
        "largest": [0, 1, 2, 3],
        "smallest_area": [0, 2, 3, 1],
        "wfp3": [0, 2, 3, 1],  # at 10 s: -(9/9)^3*6, -(8/3)^3*6, -(7/5)^3*5; at 13 s: -(12/9)^3*6 > -(10/5)^3*5
        "unicep": [0, 2, 3, 1],
    }
    for priority, order in orders.items():
        starts = simulate("easy", jobs, {"priority": priority}).starts
        assert sorted(starts, key=starts.get) == order, priority


def first_plan(hosts, jobs):
    """Plainly: reservations in the order of arrival, each at the first date at which it fits among those before it, by
    walltimes.
    """
    planned = []
    for submission, width, walltime, _ in jobs:
        dates = sorted({submission, *(begin + length for begin, _, length in planned if begin + length > submission)})
        for begin in dates:
            moments = [begin, *(b for b, _, _ in planned if begin < b < begin + walltime)]
            if all(
                sum(n for b, n, length in planned if b <= moment < b + length) + width <= hosts for moment in moments
            ):
                planned.append((begin, width, walltime))
                break
    return [begin for begin, _, _ in planned]


@given(jobs=whole)
@settings(max_examples=150, deadline=None)
def test_conservative_keeps_the_plan_where_walltimes_are_exact(jobs):
    exact = [(submission, width, walltime, walltime) for submission, width, walltime, _ in jobs]
    simulation = simulate("conservative", exact)
    assert [simulation.starts[i] for i in range(len(jobs))] == first_plan(HOSTS, exact)


@given(jobs=whole)
@settings(max_examples=150, deadline=None)
def test_conservative_moves_no_reservation_later_and_no_start_behind_its_reservation(jobs):
    simulation = TinySimulator(HOSTS, jobs)
    scheduler = load_scheduler("conservative")
    reserved = {}
    with PyBatsimRun(simulation, scheduler) as run:
        going = True
        while going:
            going = run.step()
            now_planned = dict(
                zip((job.id for job in scheduler.waiting.jobs), scheduler.waiting.row("start"), strict=True)
            )
            now_planned |= {f"w0!{i}": start for i, start in simulation.starts.items()}
            assert all(now_planned[name] <= date for name, date in reserved.items())
            reserved = now_planned
    assert len(simulation.ends) == len(jobs)


def with_plain_plan(jobs, events=(), hosts=HOSTS):
    with mock.patch.object(conservative, "Availability", PlainAvailability):
        return simulate("conservative", jobs, events=events, hosts=hosts)


@given(jobs=whole, events=machine_events)
@settings(max_examples=150, deadline=None)
def test_the_compiled_plan_of_conservative_gives_the_schedule_of_the_plain_one(jobs, events):
    assert simulate("conservative", jobs, events=events).starts == with_plain_plan(jobs, events).starts


@pytest.mark.parametrize("seed", range(2))
def test_the_compiled_plan_is_the_plain_one_where_many_jobs_wait(seed):
    random = np.random.default_rng(seed)
    walltimes = random.exponential(100, 45) + 1
    columns = (
        random.exponential(5, 45).cumsum(),
        random.integers(1, 13, 45),
        walltimes,
        walltimes * random.uniform(0.05, 1, 45),
    )
    jobs = list(zip(*(column.tolist() for column in columns), strict=True))
    ours, plain = simulate("conservative", jobs, hosts=16), with_plain_plan(jobs, hosts=16)
    assert ours.starts == plain.starts
    assert max(ours.starts[i] - jobs[i][0] for i in ours.starts) > 1000, "the queue is deep"


def test_conservative_differs_from_easy_where_a_later_job_would_delay_the_second():
    jobs = [(0.0, 4, 10.0, 10.0), (1.0, 6, 10.0, 10.0), (2.0, 2, 20.0, 20.0), (3.0, 2, 7.0, 7.0)]
    for name, starts in (
        ("easy", {0: 0, 3: 3, 1: 10, 2: 20}),
        ("conservative", {0: 0, 3: 3, 1: 10, 2: 20}),
        ("filler", {0: 0, 2: 2, 3: 10, 1: 22}),
    ):
        assert simulate(name, jobs).starts == starts, name


def test_fcfs_that_can_never_go_on_is_a_deadlock():
    with pytest.raises(SimulationDeadlock, match=r"waiting: \[0\]"):
        simulate("fcfs", [(1.0, HOSTS, 5.0, 5.0)], events=[(0.0, "event_machine_unavailable", "0")])


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_host_set_is_a_set_of_ids(steps):
    free, ids, taken = HostSet([(0, 40)]), set(range(41)), []
    for count, give_back in steps:
        if give_back and taken:
            back = taken.pop(count % len(taken))
            free.add(back)
            ids |= members(back)
        elif count <= len(free):
            lowest = set(sorted(ids)[:count])
            got = free.take_lowest(count)
            assert members(got) == lowest
            ids -= lowest
            taken.append(got)
        assert members(free) == ids
        assert len(free) == len(ids)
        firsts = free.intervals()
        assert all(b + 1 < c for (_, b), (c, _) in itertools.pairwise(firsts)), "intervals that touch are joined"


def members(hosts):
    return {n for first, last in hosts.intervals() for n in range(first, last + 1)}


def test_a_host_set_refuses_what_it_does_not_have_and_what_it_has():
    free = HostSet([(0, 2), (5, 5)])
    assert str(free) == "0-2 5"
    with pytest.raises(ValueError, match="5 hosts asked of 4"):
        free.take_lowest(5)
    with pytest.raises(ValueError, match="hosts 2-4 are in the set already"):
        free.add(HostSet([(2, 4)]))
