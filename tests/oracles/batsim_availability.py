"""The rule of `schedlab.batsim.schedulers.availability`, stated plainly: the oracle of the compiled one."""

from __future__ import annotations

import itertools
import math
from collections import Counter


class PlainAvailability:
    """Free hosts as a sum of changes by date; every question looks at all of them."""

    def __init__(self, now: float, hosts: int) -> None:
        self._changes = Counter({now: hosts})

    def advance(self, now: float) -> None:
        past = [date for date in self._changes if date <= now]
        self._changes[now] = sum(self._changes.pop(date) for date in past)

    def steps(self) -> list[tuple[float, int]]:
        dates = sorted(self._changes)
        return list(zip(dates, itertools.accumulate(self._changes[date] for date in dates), strict=True))

    def reserve(self, hosts: int, duration: float) -> float:
        steps = self.steps()
        for begin, _ in steps:
            if all(free >= hosts for date, free in steps if begin <= date < begin + duration):
                self.occupy(begin, begin + duration, hosts)
                return begin
        return math.inf

    def occupy(self, begin: float, end: float, hosts: int) -> None:
        now = min(self._changes)
        self._changes[max(begin, now)] -= hosts
        self._changes[max(end, now)] += hosts

    def bring_forward(self, opened, hosts, durations, starts) -> None:
        stretches = list(opened)
        for begin, end in stretches:
            for job, start in enumerate(starts.tolist()):
                steps = self.steps()
                ends = [date for date, _ in steps[1:]] + [math.inf]
                room = max(free for (date, free), last in zip(steps, ends, strict=True) if date < end and last > begin)
                if hosts[job] > room or not begin < start < math.inf:
                    continue
                self.occupy(start, start + durations[job], -int(hosts[job]))
                starts[job] = self.reserve(int(hosts[job]), durations[job])
                if starts[job] < start:
                    stretches.append((start, start + durations[job]))
