"""First come, first served: jobs start in the order of arrival; the first that does not fit blocks all behind it."""

from __future__ import annotations

from collections import deque

from batsim.batsim import Job

from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler


class Fcfs(QueueScheduler):
    """First come, first served: the job that arrived first starts as soon as enough hosts are free."""

    def onSimulationBegins(self) -> None:
        """Begin with an empty queue."""
        super().onSimulationBegins()
        self.waiting: deque[Job] = deque()

    def enqueue(self, job: Job) -> None:
        """Append the job."""
        self.waiting.append(job)

    def schedule(self) -> None:
        """Start jobs from the front while they fit."""
        while self.waiting and self.waiting[0].requested_resources <= len(self.free):
            self.start(self.waiting.popleft())
