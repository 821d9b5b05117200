"""Time of an episode of the hetero study, and its decisions per second with observations, on one core.

    python benchmarks/hetero.py [CASE ...] [--times N]

CPU seconds of a process of its own for each case, reading of the inputs and the first use of compiled code excluded;
the median of several runs. `episode` cases play one pair to the end without observing; `observe` cases step the
Gymnasium environment, which observes at each decision, and report how much of the time the observations take. The 1,000
jobs come from the model of Lublin and Feitelson at an offered load of `LOAD`, for a machine of the platform's size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

JOBS, LOAD = 1_000, 1.2
PAIRS = ("shortest-high_gflops", "shortest-high_mem_bw", "random-random")
OBSERVATIONS = ("small", "normal")
CASES = (
    *(f"episode gaia {pair}" for pair in PAIRS),
    *(f"episode mixed {pair}" for pair in PAIRS),
    *(f"observe gaia {kind}" for kind in OBSERVATIONS),
)


def main() -> None:
    """Run the cases named on the command line, by default all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="cases: " + ", ".join(CASES))
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: all")
    parser.add_argument("--times", type=int, default=5, metavar="N", help="runs whose median is told (default: 5)")
    parser.add_argument("--here", action="store_true", help="one case in this process, as JSON")
    arguments = parser.parse_args()
    names = arguments.cases or CASES
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"no case '{unknown[0]}'; there are: {', '.join(CASES)}")
    if arguments.here:
        print(json.dumps(measure(names[0], arguments.times)))
        return
    print(
        f"{'case':34} {'CPU s':>7} {'fastest':>8} {'decisions':>10} {'decisions/s':>12} {'observing':>10}", flush=True
    )
    for name in names:
        command = [sys.executable, __file__, "--here", "--times", str(arguments.times), name]
        row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        seconds, decisions = median(row["seconds"]), row["decisions"]
        observing = f"{median(row['observing']) / seconds:10.0%}" if row["observing"] else f"{'':10}"
        print(
            f"{name:34} {seconds:7.2f} {min(row['seconds']):8.2f} {decisions:10,} {decisions / seconds:12,.0f} "
            f"{observing}",
            flush=True,
        )


def measure(name: str, times: int) -> dict[str, object]:
    """Run one case in this process, once more than it counts: CPU seconds of each run, decisions of one, seconds spent
    observing.
    """
    kind, platform, choice = name.split()
    cluster, jobs = inputs(platform)
    run = play_pair(cluster, jobs, choice) if kind == "episode" else step_environment(cluster, jobs, choice)
    rows = [run() for _ in range(times + 1)][1:]
    seconds, decisions, observing = zip(*rows, strict=True)
    return {
        "seconds": seconds,
        "decisions": decisions[0],
        "observing": [value for value in observing if value is not None],
    }


def inputs(platform: str, jobs: int = JOBS) -> tuple[object, object]:
    """Return the cluster and that many jobs drawn for it."""
    from schedlab.platforms.settings import PlatformSettings
    from schedlab.studies.hetero.simulator.episode import make_cluster, make_jobs
    from schedlab.workloads.estimates import EstimateSettings
    from schedlab.workloads.lublin import LublinSettings
    from schedlab.workloads.prepare import make_batsim
    from schedlab.workloads.settings import WorkloadSettings
    from schedlab.workloads.to_batsim import BatsimSettings

    cluster = make_cluster(PlatformSettings(name=platform, file=platform))
    model = LublinSettings(
        jobs=jobs, processors=cluster.hierarchy.cores, load=LOAD, estimates=EstimateSettings(model="menu")
    )
    batsim = BatsimSettings(runtime="trace", missing_memory=(500, 1000, 2000, 4000))
    settings = WorkloadSettings(name="benchmark", source="lublin", seed=1, lublin=model, batsim=batsim)
    workload, _ = make_batsim(settings, cluster.hierarchy)
    return cluster, make_jobs(workload)


Run = Callable[[], tuple[float, int, float | None]]


def play_pair(cluster: object, jobs: object, pair: str) -> Run:
    """Return a run of one pair: CPU seconds, decisions, None."""
    from schedlab.studies.hetero.env.settings import DecisionSettings
    from schedlab.studies.hetero.simulator.episode import Episode, play

    def run() -> tuple[float, int, None]:
        begin = time.process_time()
        episode = Episode(cluster, jobs, DecisionSettings(selection=(pair,), void=False), 0)
        play(episode)
        return time.process_time() - begin, len(episode.history.actions), None

    return run


def step_environment(cluster: object, jobs: object, observation: str) -> Run:
    """Return a run of the environment under the first of PAIRS: CPU seconds, decisions, seconds of them spent
    observing.
    """
    from schedlab.studies.hetero.env.env import HeteroEnv
    from schedlab.studies.hetero.env.settings import DecisionSettings

    env = HeteroEnv(cluster, [jobs], DecisionSettings(selection=PAIRS[:1], void=False, observation=observation), seed=0)

    def run() -> tuple[float, int, float]:
        begin, steps = time.process_time(), 0
        env.reset()
        observer, observing = env.episode.system.observer, 0.0
        observe = observer.observe

        def watched(queue: object) -> object:
            nonlocal observing
            start = time.perf_counter()
            seen = observe(queue)
            observing += time.perf_counter() - start
            return seen

        observer.observe = watched
        ended = False
        while not ended:
            _, _, ended, _, _ = env.step(0)
            steps += 1
        return time.process_time() - begin, steps, observing

    return run


if __name__ == "__main__":
    main()
