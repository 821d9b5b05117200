"""How much is there to gain on the scenario `contended`? The best pair at each decision, found by trying each of
them on a copy of the run.

    python benchmarks/hetero_hindsight.py [--roots 7 8] [--out docs/results/hetero_hindsight.csv]

Every pair without `random` starts its jobs in a copy of the run, which goes on with `BASE` to the end of the
workload; what ends with the lowest mean bounded slowdown is played, BASE where none is better than it. This knows
run times and arrivals, which no policy does. It is no bound either, as all later decisions are BASE's. `which core`
tries the pairs of BASE's job policy alone, `which job` those of its core policy. A line of the CSV for each way:
means over the validation workloads of the root seeds at scale full, and the share of decisions at which another pair
than BASE was played. All runs are on the compiled kernel; the tests play its decisions on the simulator.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hetero_learning import METRIC, REPOSITORY, problem_of

from schedlab.config import experiment
from schedlab.config.contract import Unit
from schedlab.config.files import write_text
from schedlab.config.runtime.compiled import compiled
from schedlab.stages.studies import find_study
from schedlab.studies.hetero.env.settings import ALL_PAIRS, PAIR_SEPARATOR
from schedlab.studies.hetero.learners.compiled_episodes import CompiledEpisodes
from schedlab.studies.hetero.learners.episode_kernel import (
    DONE,
    RUNNING,
    SUBMITTED,
    WAITING,
    KernelCluster,
    KernelJobs,
    KernelState,
    end_jobs,
    free_state,
    next_date,
    set_speeds,
    start_jobs,
    submit_jobs,
)
from schedlab.studies.hetero.problem import HeteroProblem

OUT = REPOSITORY / "docs/results/hetero_hindsight.csv"
COLUMNS = ("tried", "pairs", "workloads", METRIC, "percent_changed")
BASE = "shortest-low_power"
TRIED = tuple(pair for pair in ALL_PAIRS if "random" not in pair)
JOB, CORE = BASE.split(PAIR_SEPARATOR)
WAYS = {
    "nothing": (BASE,),
    "which job and which core": TRIED,
    "which job": tuple(pair for pair in TRIED if pair.endswith(PAIR_SEPARATOR + CORE)),
    "which core": tuple(pair for pair in TRIED if pair.startswith(JOB + PAIR_SEPARATOR)),
}
BETTER = 1e-9  # of the mean bounded slowdown: less is rounding


class Run(NamedTuple):
    """A run of a workload: its state, and when each job started and ended (s)."""

    state: KernelState
    started: np.ndarray
    ended: np.ndarray


def main() -> None:
    """Write a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--roots", nargs="+", type=int, default=[7, 8], help="root seeds (default: 7 8)")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    loaded = experiment.load(REPOSITORY / "conf", "full", find_study)
    lines = [",".join(COLUMNS)]
    with tempfile.TemporaryDirectory() as name:
        folders = {root: Path(name, str(root)) for root in given.roots}
        for folder in folders.values():
            folder.mkdir()
        problems = [problem_of(loaded, root, folder) for root, folder in folders.items()]
        for way, pairs in WAYS.items():
            found = [play(problem, unit, pairs) for problem in problems for unit in problem.units("validation")]
            mean = np.mean([reached for reached, _ in found])
            changed = np.mean(np.concatenate([played for _, played in found]) != BASE)
            lines.append(f"{way},{len(pairs)},{len(found)},{mean:.5g},{100 * changed:.1f}")
            print(lines[-1], flush=True)
    write_text(given.out, "\n".join([*lines, ""]))


def play(problem: HeteroProblem, unit: Unit, pairs: tuple[str, ...]) -> tuple[float, np.ndarray]:
    """Return the mean bounded slowdown of the best pairs by trying on a workload, and which pair was played at each
    decision.
    """
    kernel = CompiledEpisodes(problem.env(unit, unit.seed))
    codes, base = kernel._pairs[[kernel.action_names.index(pair) for pair in pairs]], pairs.index(BASE)
    threshold = problem.scenario.bounded_slowdown_threshold
    chosen, reached = best_by_trying(kernel._jobs, kernel._cluster, codes, base, threshold, np.random.default_rng(0))
    return reached, np.array(pairs)[chosen]


@compiled
def best_by_trying(
    jobs: KernelJobs, cluster: KernelCluster, pairs: np.ndarray, base: int, threshold: float, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Return which of the pairs (actions, 2) was played at each decision, and the mean bounded slowdown."""
    none = np.full(len(jobs.time), np.nan)
    run = Run(free_state(cluster, len(jobs.time)), none, none.copy())
    chosen, decisions, now = np.zeros(2 * len(jobs.time), np.int64), 0, 0.0
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return chosen[:decisions], slowdown(run, jobs, threshold)
        best, lowest = base, outcome(copied(run), jobs, cluster, now, pairs[base], pairs[base], threshold, rng)
        for action in range(len(pairs)):
            reached = outcome(copied(run), jobs, cluster, now, pairs[action], pairs[base], threshold, rng)
            if reached < lowest * (1.0 - BETTER):
                best, lowest = action, reached
        chosen[decisions] = best
        decisions += 1
        decide(run, jobs, cluster, now, pairs[best], rng)


@compiled
def outcome(
    run: Run,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    pair: np.ndarray,
    base: np.ndarray,
    threshold: float,
    rng: np.random.Generator,
) -> float:
    """Return the mean bounded slowdown of a run that is at a decision, with a pair there and another one from then
    on.
    """
    decide(run, jobs, cluster, now, pair, rng)
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return slowdown(run, jobs, threshold)
        decide(run, jobs, cluster, now, base, rng)


@compiled
def copied(run: Run) -> Run:
    """Return a run that can go on by itself."""
    state = run.state
    own = KernelState(
        state.cores.copy(),
        state.bandwidth.copy(),
        state.memory.copy(),
        state.taken.copy(),
        state.done.copy(),
        state.speed.copy(),
        state.queue.copy(),
        state.running.copy(),
        state.counts.copy(),
    )
    return Run(own, run.started.copy(), run.ended.copy())


@compiled
def to_decision(run: Run, jobs: KernelJobs, cluster: KernelCluster, now: float) -> tuple[bool, float]:
    """Go on to the next decision, as `play_compiled` does; return whether there is one, and when."""
    state = run.state
    while state.counts[SUBMITTED] < len(jobs.time) or state.counts[RUNNING]:
        soonest = next_date(state, jobs, now)
        for job in state.running[: state.counts[RUNNING]]:
            state.done[job] += state.speed[job] * (soonest - now)
            if jobs.flops[job] - state.done[job] <= DONE * state.speed[job]:
                run.ended[job] = soonest
        now = soonest
        ended, _ = end_jobs(state, jobs, cluster, 0.0)
        came, _ = submit_jobs(state, jobs, now, 0.0)
        set_speeds(state, cluster)
        if (ended or came) and state.counts[WAITING]:
            return True, now
    return False, now


@compiled
def decide(
    run: Run, jobs: KernelJobs, cluster: KernelCluster, now: float, pair: np.ndarray, rng: np.random.Generator
) -> None:
    """Start what a pair starts."""
    state = run.state
    before = state.counts[RUNNING]
    start_jobs(state, jobs, cluster, pair, rng)
    set_speeds(state, cluster)
    for job in state.running[before : state.counts[RUNNING]]:
        run.started[job] = now


@compiled
def slowdown(run: Run, jobs: KernelJobs, threshold: float) -> float:
    """Return the mean bounded slowdown of a run that has ended."""
    turnaround = run.ended - jobs.submitted
    return np.maximum(turnaround / np.maximum(run.ended - run.started, threshold), 1.0).mean()


if __name__ == "__main__":
    main()
