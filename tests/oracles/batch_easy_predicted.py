"""EASY++ in plain Python: what the compiled kernel is compared with, and predictions of run times for it.

Sources: Tsafrir, Etsion, Feitelson, IEEE TPDS 18(6), 2007; Gaussier, Glesser, Reis, Trystram, SC15.
"""

from __future__ import annotations

from itertools import combinations
from math import cos, log, pi, sin, sqrt
from typing import Any

import numpy as np

from schedlab.studies.batch.jobs import Jobs, Machine
from schedlab.studies.batch.rules import priority

INCREMENTS = [60.0 * minutes for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)]


class LastTwo:
    """The mean run time of the user's last two ended jobs; None where none has ended."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.last = jobs, dict[int, list[float]]()

    def ended(self, job: int, now: float) -> None:
        """Take in the end of a job."""
        del now
        user = int(self.jobs.user[job])
        if user >= 0:
            self.last[user] = [float(self.jobs.run[job]), *self.last.get(user, [])][:2]

    def predicted(self, job: int, now: float, running: list[int], start: dict[int, float]) -> float | None:
        """Return the prediction for a job when it is submitted."""
        del now, running, start
        known = self.last.get(int(self.jobs.user[job]))
        return float(np.mean(known)) if known else None


def plain_starts(jobs: Jobs, machine: Machine, rule: str, predictor: Any = None) -> list[float]:
    """Return the start times of EASY++, by lists and sorting."""
    predictor = predictor or LastTwo(jobs)
    order = priority(rule, jobs)
    limit = [float(value) if value > 0 else np.inf for value in jobs.requested]
    start: dict[int, float] = {}
    expected: dict[int, float] = {}
    raised = dict.fromkeys(range(len(jobs)), 0)
    predicted: dict[int, float] = {}
    running: list[int] = []
    waiting: list[int] = []
    coming = list(range(len(jobs)))
    while waiting or coming:
        ends = [start[job] + jobs.run[job] for job in running]
        now = min([*ends, *(jobs.submit[job] for job in coming[:1])])
        for job in sorted(running, key=lambda job: (start[job] + jobs.run[job], running.index(job))):
            if start[job] + jobs.run[job] <= now:
                running.remove(job)
                predictor.ended(job, start[job] + jobs.run[job])
        while coming and jobs.submit[coming[0]] <= now:
            job = coming.pop(0)
            found = predictor.predicted(job, float(jobs.submit[job]), running, start)
            predicted[job] = limit[job] if found is None else max(1.0, min(found, limit[job]))
            if predicted[job] == np.inf:
                predicted[job] = 1.0
            waiting.append(job)
        for job in running:
            while expected[job] <= now < start[job] + limit[job]:
                expected[job] = min(start[job] + limit[job], expected[job] + INCREMENTS[min(raised[job], 10)])
                raised[job] += 1

        def begin(job: int, now: float = now) -> None:
            waiting.remove(job)
            running.append(job)
            start[job], expected[job] = now, now + predicted[job]

        free = machine.nodes - sum(jobs.nodes[job] for job in running)
        ranked = sorted(waiting, key=lambda job: (order.at(job, now), jobs.submit[job], job))
        while ranked and jobs.nodes[ranked[0]] <= free:
            free -= jobs.nodes[ranked[0]]
            begin(ranked.pop(0))
        if not ranked:
            continue
        head, room, shadow = ranked[0], free, now
        for job in sorted(running, key=lambda job: (max(expected[job], now + 1.0), expected[job])):
            if room >= jobs.nodes[head] and max(expected[job], now + 1.0) > shadow:
                break
            shadow = max(expected[job], now + 1.0)
            room += jobs.nodes[job]
        extra = room - jobs.nodes[head]
        for job in sorted(ranked[1:], key=lambda job: (predicted[job], job)):
            short = now + predicted[job] <= shadow
            if jobs.nodes[job] <= free and (short or jobs.nodes[job] <= extra):
                free -= jobs.nodes[job]
                extra -= 0 if short else jobs.nodes[job]
                begin(job)
    return [start[job] for job in range(len(jobs))]


class PlainRegression:
    """The regression of Gaussier et al. as its formulas say: features, E-loss, normalised adaptive gradients."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs, self.seen = jobs, dict[int, list[float]]()
        self.history: dict[int, list[tuple[float, float, float]]] = {}  # user -> (run, processors, end) of ended jobs
        self.weights, self.largest, self.squares = [0.0] * 157, [0.0] * 157, [0.0] * 157
        self.samples, self.norm = 1.0, 0.0

    def predicted(self, job: int, now: float, running: list[int], start: dict[int, float]) -> float:
        """Return the prediction for a job when it is submitted."""
        request, procs, user = float(self.jobs.requested[job]), float(self.jobs.procs[job]), int(self.jobs.user[job])
        request = request if request > 0 else 86400.0
        history = self.history.get(user, [])
        last = [min(request, run) for run, _, _ in reversed(history[-3:])]
        runs = (last + [request] * 3)[:3]
        two = request if not last else runs[0] if len(last) == 1 else 0.5 * (runs[0] + runs[1])
        three = (runs[0] + runs[1] + runs[2]) / 3.0 if len(last) == 3 else two
        x = [1.0, *runs, request, two, three]
        if history:
            mean = sum(procs for _, procs, _ in history) / len(history)
            x += [sum(run for run, _, _ in history) / len(history), now - history[-1][2], procs / mean]
        else:
            x += [0.0, 0.0, 0.0]
        ours = [other for other in running if user >= 0 and self.jobs.user[other] == user]
        ages = [now - start[other] for other in ours]
        x += [float(sum(self.jobs.procs[other] for other in ours)), sum(ages), float(len(ours)), max([0.0, *ages])]
        for period in (86400.0, 604800.0):
            angle = 2.0 * pi * (now % period) / period
            x += [cos(angle), sin(angle)]
        x.append(procs)
        self.seen[job] = [*x, *(a * b for a, b in combinations(x[1:17], 2)), *(a * a for a in x[1:])]
        return float(np.floor(abs(sum(w * f for w, f in zip(self.weights, self.seen[job], strict=True)))))

    def ended(self, job: int, now: float) -> None:
        """Learn from the end of a job."""
        run, procs, x = float(self.jobs.run[job]), float(self.jobs.procs[job]), self.seen[job]
        if self.jobs.user[job] >= 0:
            self.history.setdefault(int(self.jobs.user[job]), []).append((run, procs, now))
        for place, value in enumerate(x):
            if abs(value) > self.largest[place]:
                self.weights[place] *= self.largest[place] / abs(value)
                self.largest[place] = abs(value)
        self.norm += sum((value / most) ** 2 for value, most in zip(x, self.largest, strict=True) if most)
        error = sum(w * value for w, value in zip(self.weights, x, strict=True)) - run
        slope = (1.0 + log(max(procs * run, 1.0))) * (2.0 * error if error > 0 else -1.0 if error < 0 else 0.0)
        for place, value in enumerate(x):
            gradient = slope * value + 4e9 * self.weights[place]
            self.squares[place] += gradient * gradient
            if self.squares[place]:
                scale = sqrt(self.norm * self.squares[place] / self.samples) * self.largest[place]
                self.weights[place] -= 5000.0 * gradient / scale
        self.samples += 1.0
