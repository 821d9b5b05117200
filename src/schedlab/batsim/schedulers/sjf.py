"""Shortest job first, by walltime: the shortest waiting job starts next; if it does not fit, all others wait for it."""

from __future__ import annotations

from heapq import heappop, heappush

from batsim.batsim import Job

from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler


class Sjf(QueueScheduler):
    """Shortest job first: the waiting job with the smallest walltime starts as soon as enough hosts are free; ties in
    the order of arrival.
    """

    needs_walltime = "by which shortest job first orders the queue"

    def onSimulationBegins(self) -> None:
        """Begin with an empty queue."""
        super().onSimulationBegins()
        self.waiting: list[tuple[float, int, Job]] = []
        self._arrivals = 0

    def enqueue(self, job: Job) -> None:
        """Insert the job by its walltime."""
        heappush(self.waiting, (job.requested_time, self._arrivals, job))
        self._arrivals += 1

    def schedule(self) -> None:
        """Start the shortest waiting jobs while they fit."""
        while self.waiting and self.waiting[0][2].requested_resources <= len(self.free):
            self.start(heappop(self.waiting)[2])
