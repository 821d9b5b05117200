"""Simulated jobs per second and peak memory of the embedded simulator.

    python benchmarks/simulator.py [CASE ...]
    python benchmarks/simulator.py CASE --profile FILE.csv     # where the time of one case goes

Each case runs in a process of its own and prints a line of a table. `jobs/s` counts wall-clock time from the first
message to the last answer, reading of the inputs excluded, and `per CPU s` the process's own time in between, for
machines that are busy; `memory` is the peak of resident memory above that after the imports.
The workloads are made here from fixed seeds: arrivals at random, sizes and runtimes log-uniform, walltimes one to
three times the runtime, so that the hosts would be busy for `LOAD` of the time. Those of `lublin` cases come from
the model of Lublin and Feitelson at that load: many arrive at some times of the day, and walltimes are up to five
times the runtime. In `once` cases fewer of these come, all together.
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import json
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path

import numpy as np

LOAD = 0.9
SPEED = 1e9  # flop/s of a host
ONCE = 2_000  # jobs that arrive together
CASES = (
    *(
        f"{kind}-{hosts}-{scheduler}"
        for kind in ("delay", "cpu")
        for hosts in (128, 2280)
        for scheduler in ("fcfs", "easy")
    ),
    *(f"lublin-{hosts}-{scheduler}" for hosts in (128, 2280) for scheduler in ("easy", "conservative")),
    "once-128-conservative",
    "communication",
    "million",
    "million-core",
)


OURS = {  # parts of the embedded simulator by module; the others are its core
    **dict.fromkeys(("pybatsim_bus", "time_limit", "messages"), "messages"),
    **dict.fromkeys(("outputs", "records", "live_job", "results"), "job states and output files"),
    **dict.fromkeys(("resource_set", "machines", "decisions"), "decisions and hosts"),
    **dict.fromkeys(("tasks", "task_building", "execution", "sharing"), "tasks"),
    **dict.fromkeys(("agenda", "simulation", "registry"), "events"),
}


def main() -> None:
    """Run the cases named on the command line, by default all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="cases: " + ", ".join(CASES))
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: all")
    parser.add_argument("--here", action="store_true", help="one case in this process, as JSON")
    parser.add_argument(
        "--profile", type=Path, metavar="FILE.csv", help="write where one case's time goes, by part of the code"
    )
    arguments = parser.parse_args()
    names = arguments.cases or CASES
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"no case '{unknown[0]}'; there are: {', '.join(CASES)}")
    if arguments.here:
        print(json.dumps(measure(names[0])))
        return
    if arguments.profile:
        if len(names) != 1:
            parser.error("--profile takes one case")
        write_profile(names[0], arguments.profile)
        return
    print(
        f"{'case':22} {'jobs':>9} {'seconds':>8} {'jobs/s':>8} {'per CPU s':>10} {'memory MB':>10} {'bytes/job':>10}",
        flush=True,
    )
    for name in names:
        done = subprocess.run([sys.executable, __file__, "--here", name], stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout)
        jobs, seconds, memory, per_job = row["jobs"], row["seconds"], row["memory"] / 1e6, row["growth"] / row["jobs"]
        rates = f"{jobs / seconds:8,.0f} {jobs / row['cpu_seconds']:10,.0f}"
        print(f"{name:22} {jobs:9,} {seconds:8.2f} {rates} {memory:10.1f} {per_job:10.0f}", flush=True)


def measure(name: str) -> dict[str, float]:
    """Run one case in this process."""
    from schedlab.batsim.running import Inputs, open_backend

    # Imports are not part of what is measured.
    from schedlab.batsim.schedulers import conservative, easy, fcfs  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        jobs, hosts, scheduler = inputs(name, Path(folder))
        imported = resident()
        with open_backend(
            "embedded", Inputs(Path(folder, "p.xml"), (Path(folder, "w.json"),), f"{folder}/out")
        ) as simulation:
            read = resident()
            begin, computed = time.perf_counter(), time.process_time()
            schedule(simulation, hosts, scheduler)
            seconds, cpu = time.perf_counter() - begin, time.process_time() - computed
        finished = len(Path(folder, "out_jobs.csv").read_text().splitlines()) - 1
        assert finished == jobs, f"{finished} of {jobs} jobs finished"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"jobs": jobs, "seconds": seconds, "cpu_seconds": cpu, "memory": peak - imported, "growth": peak - read}


def write_profile(name: str, out: Path) -> None:
    """Write the share of each part of the code in a case's time, as cProfile counts it: small functions look dearer
    than they are.
    """
    from schedlab.batsim.running import Inputs, open_backend
    from schedlab.config.files import write_text

    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        _, hosts, scheduler = inputs(name, Path(folder))
        for counted in (False, True):
            with open_backend(
                "embedded", Inputs(Path(folder, "p.xml"), (Path(folder, "w.json"),), f"{folder}/out")
            ) as simulation:
                if counted:
                    profile.enable()
                schedule(simulation, hosts, scheduler)
                profile.disable()
    seconds: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():
        if file == "~":  # built in: part of what called it
            for caller, (_, _, taken, _) in callers.items():
                seconds[part_of(caller[0])] += taken
        else:
            seconds[part_of(file)] += own
    lines = [f"{name},{part},{taken / seconds.total():.3f}" for part, taken in seconds.most_common()]
    write_text(out, "\n".join(["case,part,share", *lines, ""]))


def part_of(file: str) -> str:
    """Return the part of the code that a source file belongs to."""
    path = Path(file)
    if path.parent.name == "schedulers":
        return "scheduler"
    if path.parts[-2:] == ("batsim", "batsim.py"):
        return "PyBatsim"
    return OURS.get(path.stem, "simulator") if "schedlab" in path.parts else "Python and NumPy"


def schedule(simulation: object, hosts: int, scheduler: str | None) -> None:
    """Run a simulation to its end under one of our schedulers, or without PyBatsim (None)."""
    from schedlab.batsim.backends.pybatsim_bus import run_pybatsim
    from schedlab.batsim.scheduler_loading import load_scheduler

    if scheduler is None:
        first_come_first_served(simulation, hosts)
    else:
        run_pybatsim(simulation, load_scheduler(scheduler))


class Repeated:
    """A back end that repeats recorded messages and ignores the answers, so that what is measured is PyBatsim's and the
    scheduler's: no simulator can be faster.
    """

    def __init__(self, messages: list[dict]) -> None:
        self._messages = iter(copy.deepcopy(messages))

    def next_message(self) -> dict | None:
        """Return the next recorded message."""
        return next(self._messages, None)

    def answer(self, message: dict) -> None:
        """Do nothing."""


def recorded_messages(simulation: object, scheduler: str) -> list[dict]:
    """Return all messages of a simulation to a scheduler."""
    from schedlab.batsim.backends.backend import WrittenConversation
    from schedlab.batsim.backends.pybatsim_bus import run_pybatsim
    from schedlab.batsim.scheduler_loading import load_scheduler

    messages = []
    backend = WrittenConversation(
        simulation, lambda sent, message: messages.append(copy.deepcopy(message)) if sent else None
    )
    run_pybatsim(backend, load_scheduler(scheduler))
    return messages


def resident() -> int:
    """Return the resident memory of this process in bytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def inputs(name: str, folder: Path) -> tuple[int, int, str | None]:
    """Write the platform and the workload of a case; return the numbers of jobs and hosts, and the scheduler (None:
    no PyBatsim).
    """
    if name == "communication":
        write_platform(folder / "p.xml", 64, backbone=True)
        write_communication(folder / "w.json", 200, 64)
        return 200, 64, "fcfs"
    if name.startswith("million"):
        write_platform(folder / "p.xml", 128)
        write_workload(folder / "w.json", 1_000_000, 128, "delay")
        return 1_000_000, 128, None if name == "million-core" else "fcfs"
    kind, hosts, scheduler = name.split("-")
    write_platform(folder / "p.xml", int(hosts))
    if kind == "once":
        write_lublin(folder / "w.json", ONCE, int(hosts), spread=0.0)
        return ONCE, int(hosts), scheduler
    if kind == "lublin":
        write_lublin(folder / "w.json", 10_000, int(hosts))
    else:
        write_workload(folder / "w.json", 10_000, int(hosts), kind)
    return 10_000, int(hosts), scheduler


def write_platform(path: Path, hosts: int, backbone: bool = False) -> None:
    """Write a cluster of equal hosts, with links and a backbone where asked for."""
    network = 'bw="125MBps" lat="50us" bb_bw="1250MBps" bb_lat="10us"' if backbone else 'bw="125MBps" lat="0us"'
    path.write_text(
        f"""<?xml version='1.0'?>
<platform version="4.1"><zone id="world" routing="Full">
<cluster id="main" prefix="host_" suffix="" radical="{10_000}-{10_000 + hosts - 1}" speed="{SPEED:.0f}f" {network}/>
<zone id="out" routing="Full"><host id="master_host" speed="1Gf"/></zone>
<link id="wire" bandwidth="125MBps" latency="0us"/>
<zoneRoute src="main" dst="out" gw_src="host_main_router" gw_dst="master_host"><link_ctn id="wire"/></zoneRoute>
</zone></platform>
"""
    )


def write_workload(path: Path, count: int, hosts: int, kind: str) -> None:
    """Write jobs with one profile for each of a thousand runtimes; cpu jobs compute on all their hosts."""
    random = np.random.default_rng(1)
    runtimes = np.exp(random.uniform(np.log(10), np.log(10_000), 1000)).round()
    profiles = {
        str(number): {"type": "delay", "delay": runtime}
        if kind == "delay"
        else {"type": "parallel_homogeneous", "cpu": runtime * SPEED, "com": 0}
        for number, runtime in enumerate(runtimes.tolist())
    }
    which = random.integers(1000, size=count)
    sizes = np.ceil(np.exp(random.uniform(0, np.log(hosts / 4), count))).astype(int)
    walltimes = (runtimes[which] * random.uniform(1.05, 3, count)).round()
    span = (sizes * runtimes[which]).sum() / hosts / LOAD
    submissions = np.sort(random.uniform(0, span, count)).round(2)
    columns = (submissions.tolist(), sizes.tolist(), walltimes.tolist(), which.tolist())
    jobs = [
        {"id": number, "subtime": submission, "res": size, "walltime": walltime, "profile": str(profile)}
        for number, (submission, size, walltime, profile) in enumerate(zip(*columns, strict=True))
    ]
    path.write_text(json.dumps({"nb_res": hosts, "jobs": jobs, "profiles": profiles}))


def write_lublin(path: Path, count: int, hosts: int, spread: float = 1.0) -> None:
    """Write delay jobs of the Lublin-Feitelson model, their arrivals so much farther apart; a job gets a second more
    than it asks for.
    """
    from schedlab.workloads.estimates import EstimateSettings
    from schedlab.workloads.lublin import LublinSettings, lublin

    settings = LublinSettings(jobs=count, processors=hosts, load=LOAD, estimates=EstimateSettings(model="factor"))
    trace = lublin(settings, seed=1).jobs
    runtimes = trace["run"].clip(lower=1.0)
    submissions, asked = trace["submit"] * spread, trace["time_requested"] + 1
    columns = (submissions.tolist(), trace["procs_allocated"].tolist(), asked.tolist(), runtimes.tolist())
    jobs = [
        {"id": number, "subtime": submission, "res": size, "walltime": walltime, "profile": f"{runtime:g}"}
        for number, (submission, size, walltime, runtime) in enumerate(zip(*columns, strict=True))
    ]
    profiles = {f"{runtime:g}": {"type": "delay", "delay": runtime} for runtime in sorted(set(runtimes))}
    path.write_text(json.dumps({"nb_res": hosts, "jobs": jobs, "profiles": profiles}))


def write_communication(path: Path, count: int, hosts: int) -> None:
    """Write jobs whose hosts all exchange data with each other over the backbone, many at a time."""
    random = np.random.default_rng(2)
    profiles, jobs = {}, []
    for number in range(count):
        cpu, com = random.uniform(1e9, 1e11), random.uniform(1e6, 1e9)
        profiles[str(number)] = {"type": "parallel_homogeneous", "cpu": cpu, "com": com}
        jobs.append(
            {
                "id": number,
                "subtime": number * 0.5,
                "res": int(random.integers(2, 9)),
                "walltime": 1e6,
                "profile": str(number),
            }
        )
    path.write_text(json.dumps({"nb_res": hosts, "jobs": jobs, "profiles": profiles}))


def first_come_first_served(simulation: object, hosts: int) -> None:
    """Schedule without PyBatsim, so that what is measured is the simulator's."""
    from schedlab.batsim.schedulers.queue_scheduler import HostSet

    free, waiting, running = HostSet([(0, hosts - 1)]), deque(), {}
    while (message := simulation.next_message()) is not None:
        now, decisions = message["now"], []
        for event in message["events"]:
            if event["type"] == "JOB_SUBMITTED":
                waiting.append((event["data"]["job_id"], event["data"]["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                free.add(running.pop(event["data"]["job_id"]))
        while waiting and waiting[0][1] <= len(free):
            job, size = waiting.popleft()
            running[job] = free.take_lowest(size)
            decisions.append(
                {"timestamp": now, "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": str(running[job])}}
            )
        simulation.answer({"now": now, "events": decisions})


if __name__ == "__main__":
    main()
