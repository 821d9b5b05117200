"""What holds in every simulation, whatever the jobs, the platform and the scheduler do."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import Message, Run, event, execute, platform, run, workload

from schedlab.batsim.simulator import machines
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation, rounded
from schedlab.platforms.batsim_xml import parse_platform
from schedlab.platforms.platform import Platform

HOSTS = 6
SPEEDS = (1e9, 4e8)
# Idle and epsilon 0 W, full power of as many W as the host computes flop/s: energy in J is work in flop.
WORK_METER = f'<prop id="wattage_per_state" value="0:0:{SPEEDS[0]:.0f},0:0:{SPEEDS[1]:.0f}"/>'
CLUSTER = (
    '<platform version="4.1"><zone id="root" routing="Full"><cluster id="c" prefix="h" suffix="" '
    f'radical="0-{HOSTS - 1}" core="{{cores}}" '
    f'speed="{SPEEDS[0]:.0f}f,{SPEEDS[1]:.0f}f" bw="100MBps" lat="1ms" bb_bw="200MBps" '
    f'bb_lat="1ms">{WORK_METER}</cluster>'
    '<zone id="m" routing="Full"><host id="master_host" speed="1Gf"/></zone></zone></platform>'
)

leaf = st.one_of(
    st.builds(lambda delay: {"type": "delay", "delay": delay}, st.floats(0.01, 20)),
    st.builds(
        lambda cpu, com: {"type": "parallel_homogeneous", "cpu": cpu, "com": com},
        st.sampled_from([0.0, 1e8, 1e9, 3.7e9]),
        st.sampled_from([0.0, 0.0, 1e6, 8e7]),
    ),
    st.builds(lambda cpu: {"type": "parallel_homogeneous_total", "cpu": cpu, "com": 1e6}, st.floats(1e7, 1e10)),
)
profiles = st.lists(leaf, min_size=2, max_size=4).map(
    lambda found: {f"p{index}": profile for index, profile in enumerate(found)}
)
jobs = st.lists(
    st.fixed_dictionaries(
        {
            "subtime": st.floats(0, 30),
            "res": st.integers(1, 4),
            "profile": st.sampled_from(["p0", "p1", "both"]),
            "walltime": st.sampled_from([-1, -1, -1, 5, 20.5]),
        }
    ),
    max_size=12,
)


def cluster(cores: int = 1) -> Platform:
    return parse_platform(CLUSTER.format(cores=cores), "platform.xml")


class RandomScheduler:
    """Starts waiting jobs on random hosts (free ones unless shared), kills, changes pstates and comes late, all from
    one seed.
    """

    def __init__(self, seed: int, shared: bool, interfering: bool) -> None:
        self.draw, self.shared, self.interfering = random.Random(seed), shared, interfering
        self.waiting: list[tuple[str, int]] = []
        self.running: dict[str, set[int]] = {}
        self.pending_calls = 0

    def __call__(self, message: Message) -> list[Message]:
        events: list[Message] = []
        for said in message["events"]:
            data = said["data"]
            if said["type"] == "JOB_SUBMITTED":
                self.waiting.append((data["job_id"], data["job"]["res"]))
            elif said["type"] == "JOB_COMPLETED":
                self.running.pop(data["job_id"])
            elif said["type"] == "REQUESTED_CALL":
                self.pending_calls -= 1
        self.draw.shuffle(self.waiting)
        for job, res in list(self.waiting):
            free = set(range(HOSTS)) - (set() if self.shared else set().union(*self.running.values()))
            if len(free) >= res:
                alloc = set(self.draw.sample(sorted(free), res))
                events.append(execute(message, job, " ".join(map(str, sorted(alloc)))))
                self.running[job] = alloc
                self.waiting.remove((job, res))
        if self.interfering and self.running and self.draw.random() < 0.3:
            events.append(
                event(
                    message,
                    "SET_RESOURCE_STATE",
                    {"resources": str(self.draw.randrange(HOSTS)), "state": str(self.draw.randrange(2))},
                )
            )
        if self.interfering and self.running and self.draw.random() < 0.2:
            events.append(event(message, "KILL_JOB", {"job_ids": [self.draw.choice(sorted(self.running))]}))
        if not self.pending_calls and self.draw.random() < 0.2:
            self.pending_calls += 1
            events.append(event(message, "CALL_ME_LATER", {"timestamp": message["now"] + self.draw.uniform(0.1, 3)}))
        return events


def random_run(drawn_jobs: Any, drawn_profiles: Any, seed: int, shared: bool, interfering: bool, cores: int = 1) -> Run:
    drawn_profiles = {**drawn_profiles, "both": {"type": "composed", "seq": ["p0", "p1"], "repeat": 2}}
    loaded = workload(drawn_jobs, drawn_profiles, nb_res=HOSTS)
    return Run(
        Simulation(cluster(cores), [loaded], Options(energy=True, compute_sharing=shared, round_to_microseconds=False)),
        RandomScheduler(seed, shared, interfering),
    )


@settings(max_examples=150, deadline=None)
@given(jobs, profiles, st.integers(0, 10**6), st.booleans())
def test_dates_hosts_and_completions(drawn_jobs: Any, drawn_profiles: Any, seed: int, shared: bool) -> None:
    done = random_run(drawn_jobs, drawn_profiles, seed, shared, interfering=True)
    dates = [message["now"] for message in done.messages]
    assert dates == sorted(dates)
    assert all(said["timestamp"] <= message["now"] for message in done.messages for said in message["events"])
    told = [data["job_id"] for _, data in done.events("JOB_COMPLETED")]
    assert sorted(told) == sorted(done.jobs) == sorted(f"w0!{index}" for index in range(len(drawn_jobs)))
    for job in done.jobs.values():
        assert job.submission <= job.start <= job.finish
        if job.job.walltime > 0:
            assert job.finish <= job.deadline + 1e-8
    if not shared:
        spans = [(job.start, job.finish, number) for job in done.jobs.values() for number in job.alloc]
        for number in range(HOSTS):
            mine = sorted((start, finish) for start, finish, host in spans if host == number)
            assert all(finish <= start for (_, finish), (start, _) in itertools.pairwise(mine))


@settings(max_examples=150, deadline=None)
@given(jobs, profiles, st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from([1, 3]))
def test_work_done_is_work_asked(
    drawn_jobs: Any, drawn_profiles: Any, seed: int, shared: bool, interfering: bool, cores: int
) -> None:
    """The meter measures flop (per core); a job that ended early did the share of its progress."""
    drawn_jobs = [{**job, "walltime": -1, "profile": "p0"} for job in drawn_jobs]
    done = random_run(drawn_jobs, drawn_profiles, seed, shared, interfering, cores)
    killed = {
        name: tree["progress"] for _, data in done.events("JOB_KILLED") for name, tree in data["job_progress"].items()
    }
    asked = 0.0
    for name, job in done.jobs.items():
        profile = drawn_profiles["p0"]
        flop = profile.get("cpu", 0.0) * (1 if profile["type"].endswith("_total") else job.alloc.size)
        asked += flop * killed.get(name, 1.0)
    measured = done.simulation.meter.total(done.simulation.agenda.now) * cores
    assert measured == pytest.approx(asked, rel=1e-6, abs=10)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, HOSTS), st.floats(1e8, 1e10)), min_size=1, max_size=8),
    st.tuples(st.floats(0, 50), st.floats(50, 80), st.floats(80, 200)),
)
def test_energy_is_the_integral_of_power(
    drawn: list[tuple[float, int, float]], power: tuple[float, float, float]
) -> None:
    """Jobs one after the other, the first executor with full load, the others with half: sum it up by hand."""
    idle, epsilon, full = power
    place = platform(HOSTS, f'<prop id="wattage_per_state" value="{idle!r}:{epsilon!r}:{full!r}"/>')
    profiles = {
        f"p{index}": {"type": "parallel", "cpu": [flop] + [flop / 2] * (width - 1), "com": [0] * width**2}
        for index, (_, width, flop) in enumerate(drawn)
    }
    entries = [{"subtime": date, "res": width, "profile": f"p{index}"} for index, (date, width, _) in enumerate(drawn)]
    waiting: list[tuple[str, int]] = []
    busy = [False]

    def one_at_a_time(message: Message) -> list[Message]:
        for said in message["events"]:
            if said["type"] == "JOB_SUBMITTED":
                waiting.append((said["data"]["job_id"], said["data"]["job"]["res"]))
            busy[0] &= said["type"] != "JOB_COMPLETED"
        if busy[0] or not waiting:
            return []
        busy[0] = True
        job, width = waiting.pop(0)
        return [execute(message, job, f"0-{width - 1}" if width > 1 else "0")]

    done = run(one_at_a_time, entries, profiles, place, energy=True, round_to_microseconds=False)
    first, last = min(date for date, _, _ in drawn), max(job.finish for job in done.jobs.values())
    expected = (last - first) * HOSTS * idle
    for job in done.jobs.values():
        above_idle = (full - idle) + (job.alloc.size - 1) * (epsilon + (full - epsilon) / 2 - idle)
        expected += (job.finish - job.start) * above_idle
        assert job.energy == pytest.approx((job.finish - job.start) * (above_idle + job.alloc.size * idle), rel=1e-9)
    assert done.simulation.schedule()["consumed_joules"] == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(jobs, profiles, st.integers(0, 10**6))
def test_the_same_seed_gives_the_same_run(drawn_jobs: Any, drawn_profiles: Any, seed: int) -> None:
    first, second = (random_run(drawn_jobs, drawn_profiles, seed, shared=True, interfering=True) for _ in range(2))
    assert first.messages == second.messages and first.simulation.schedule() == second.simulation.schedule()


def test_a_finished_job_takes_less_than_a_kilobyte() -> None:
    def growth(count: int) -> int:
        entries = [{"subtime": index * 2.0, "profile": "d"} for index in range(count)]
        simulation = Simulation(platform(), [workload(entries, {"d": {"type": "delay", "delay": 1}})], Options())
        tracemalloc.start()
        while (message := simulation.next_message()) is not None:
            submitted = [said["data"]["job_id"] for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
            simulation.answer({"now": message["now"], "events": [execute(message, job, "0") for job in submitted]})
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return used

    assert growth(6000) - growth(1000) < 5000 * 300


@given(st.one_of(st.floats(), st.integers(0, 10**18).map(lambda units: units / 1e6), st.integers(0, 10**16)))
def test_numbers_in_messages_are_rounded_as_python_does(value: float) -> None:
    assert repr(rounded(float(value))) == repr(round(float(value), 6))


def test_host_seconds_do_not_depend_on_how_often_changes_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def totals() -> dict[str, float]:
        def decide(message: Message) -> list[Message]:
            submitted = [said["data"]["job_id"] for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
            return [execute(message, job, f"{int(job[3:]) % 3}-3") for job in submitted]

        jobs = [{"subtime": 9.3 * number, "res": 4 - number % 3, "profile": "d"} for number in range(20)]
        return run(decide, jobs, {"d": {"type": "delay", "delay": 7.7}}).simulation.schedule()

    expected = totals()
    monkeypatch.setattr(machines, "MOST_CHANGES", 2)
    assert totals() == expected and expected["time_idle"] > 0 < expected["time_computing"]
