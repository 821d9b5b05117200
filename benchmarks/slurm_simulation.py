"""A study of many scenarios on a Slurm partition, simulated: when it ends, how busy the slots are, and what holds it
up.

    python benchmarks/slurm_simulation.py

What profiles/slurm does: each scenario's policies are learned (a job a seed) and scored, `group-components` jobs of a
kind are one Slurm job, at most `jobs` of them are in the queue, `max-jobs-per-timespan` are submitted, and their end is
seen at the next look. A Slurm job starts Snakemake twice and then runs its jobs: learning jobs one after another on its
slot's GPU (`resources`, `set-resource-scopes`), others on its `cores`. How Slurm jobs come to their slots is in
Partition, what they work in Study, where the seconds of a job of scoring and of the summary are assumed. Nothing is
random.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

CHAIN = 0.8  # share of the whole from which on the longest chain is what there is to wait for
PROFILE = Path(__file__).resolve().parent.parent / "profiles/slurm/config.yaml"


@dataclass(frozen=True)
class Partition:
    """Slots and how the workflow fills them; times in s.

    slots      Slurm jobs that run at once (a GPU each)
    queued     Slurm jobs that Snakemake keeps in the queue, running ones included (profile: jobs)
    gap        least time between two submissions (profile: max-jobs-per-timespan)
    look       time between two looks at the queue; an end is seen at the next (profile: seconds-between-status-checks)
    start      from a Slurm job's start to that of its first job: two starts of Snakemake
    """

    slots: int = 100
    queued: int = 100
    gap: float = 0.6
    look: float = 20.0
    start: float = 10.0


@dataclass(frozen=True)
class Study:
    """Scenarios, each with one learned policy of some seeds; seconds of a job of each kind (defaults: assumed), jobs in
    one Slurm job, and how many jobs of scoring run side by side there.
    """

    scenarios: int
    seeds: int
    learn: float
    evaluate: float = 5.0
    summarise: float = 60.0
    learn_together: int = 5
    evaluate_together: int = 20
    side_by_side: int = 2

    def scoring(self, count: int) -> Job:
        """A Slurm job that scores so many times, of no learned policy."""
        return Job("evaluate", self.evaluate * math.ceil(count / self.side_by_side))


@dataclass(frozen=True)
class Job:
    """A Slurm job: its kind, its seconds of work, and the Slurm jobs whose end must have been seen before it is
    submitted.
    """

    kind: str
    work: float
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Slurm jobs submitted, when the last of them ended (s), and the share of the slots' time until then that jobs
    worked.
    """

    slurm_jobs: int
    makespan: float
    busy: float


def jobs_of(study: Study) -> list[Job]:
    """Return the Slurm jobs of a study, every one after those that it needs: learning, scoring of rules and policies,
    the summary.
    """
    learning = study.scenarios * study.seeds
    found = [Job("learn", study.learn * count) for count in _parts(learning, study.learn_together)]
    learned = len(found)
    scored = 0
    for count in _parts(study.scenarios, study.evaluate_together):
        first, last = (
            scored * study.seeds // study.learn_together,
            ((scored + count) * study.seeds - 1) // study.learn_together,
        )
        found.append(replace(study.scoring(count), after=tuple(range(first, last + 1))))
        scored += count
    found += [study.scoring(count) for count in _parts(study.scenarios, study.evaluate_together)]  # their rules
    return [*found, Job("summarise", study.summarise, tuple(range(learned, len(found))))]


def _parts(count: int, size: int) -> list[int]:
    return [min(size, count - start) for start in range(0, count, size)]


def run(jobs: Iterable[Job], partition: Partition) -> Outcome:
    """Simulate until the last job has ended; jobs are submitted in order as soon as what they come after has been seen
    to end.
    """
    jobs = list(jobs)
    missing = [len(job.after) for job in jobs]
    followers: list[list[int]] = [[] for _ in jobs]
    for number, job in enumerate(jobs):
        for before in job.after:
            followers[before].append(number)
    ready = deque(number for number, count in enumerate(missing) if not count)
    free = [0.0] * partition.slots  # when each slot is free, a heap
    seen: list[tuple[float, int]] = []  # when the end of each Slurm job in the queue is seen, a heap
    now = last = 0.0
    while ready or seen:
        while seen and seen[0][0] <= now:
            _, number = heapq.heappop(seen)
            for follower in followers[number]:
                missing[follower] -= 1
                if not missing[follower]:
                    ready.append(follower)
        if ready and len(seen) < partition.queued:
            number = ready.popleft()
            end = max(now, heapq.heappop(free)) + partition.start + jobs[number].work
            heapq.heappush(free, end)
            heapq.heappush(seen, (math.ceil(end / partition.look) * partition.look if partition.look else end, number))
            now, last = now + partition.gap, max(last, end)
        elif seen:
            now = max(now, seen[0][0])
    work = sum(job.work for job in jobs)
    return Outcome(len(jobs), last, work / (partition.slots * last))


def profile() -> Partition:
    """Return a partition of 100 slots as profiles/slurm fills it."""
    values = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))
    number, minutes = values["max-jobs-per-timespan"].removesuffix("m").split("/")
    return Partition(
        queued=values["jobs"],
        gap=60 * float(minutes) / float(number),
        look=float(values["seconds-between-status-checks"]),
    )


def without(partition: Partition) -> dict[str, Partition]:
    """Return the partition without one of the things that hold it up, by their names."""
    return {
        "starts of Snakemake": replace(partition, start=0.0),
        "looks at the queue": replace(partition, look=0.0),
        "rate of submission": replace(partition, gap=0.0),
        "length of the queue": replace(partition, queued=10**9),
    }


def cases(
    start_a_scenario: float, start: float = 10.0, sizes: Sequence[int] = (100, 1_000, 10_000)
) -> list[dict[str, float | str]]:
    """Return outcomes of studies of 20 seeds on 100 GPUs, with 1, 5 (as in the profile) and 50 learning jobs together.

    start             seconds from a Slurm job's start to its first job in a small study
    start_a_scenario  seconds that each scenario adds to that
    """
    found = []
    for scenarios in sizes:
        partition = replace(profile(), start=start + start_a_scenario * scenarios)
        for learn in (60.0, 1_200.0):
            for together in (1, 5, 50):
                jobs = jobs_of(Study(scenarios, 20, learn, learn_together=together))
                outcome = run(jobs, partition)
                others = {name: run(jobs, other).makespan for name, other in without(partition).items()}
                unbounded = replace(partition, slots=len(jobs), queued=len(jobs), gap=0.0, look=0.0)
                if (chain := run(jobs, unbounded).makespan) > CHAIN * outcome.makespan:
                    others = {"longest chain of Slurm jobs": chain}
                worst = min(others, key=others.__getitem__)
                entry = {
                    "scenarios": scenarios,
                    "learn_s": learn,
                    "learn_together": together,
                    "start_s": round(partition.start, 1),
                }
                hours = {
                    "hours": round(outcome.makespan / 3600, 2),
                    "least_hours": round(outcome.makespan * outcome.busy / 3600, 2),
                }
                entry |= {"slurm_jobs": outcome.slurm_jobs, **hours, "busy": round(outcome.busy, 3)}
                found.append(entry | {"held_up_by": worst, "hours_without": round(others[worst] / 3600, 2)})
    return found


if __name__ == "__main__":
    for one in cases(0.0):
        print(", ".join(f"{name} {value}" for name, value in one.items()))
