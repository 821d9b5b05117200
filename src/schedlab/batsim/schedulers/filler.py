"""Filling: every waiting job that fits into the free hosts starts, in the order of arrival; wide jobs may starve."""

from __future__ import annotations

from batsim.batsim import Job

from schedlab.batsim.schedulers.job_columns import JobColumns
from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler


class Filler(QueueScheduler):
    """Filling: every job that fits starts, in the order of arrival, without a reservation for the others."""

    def onSimulationBegins(self) -> None:
        """Begin with an empty queue."""
        super().onSimulationBegins()
        self.waiting = JobColumns(("hosts",))

    def enqueue(self, job: Job) -> None:
        """Append the job."""
        self.waiting.insert(len(self.waiting), job, (job.requested_resources,))

    def schedule(self) -> None:
        """Go through the queue and start each job that fits."""
        at = 0
        while self.free and at < len(self.waiting):
            fits = self.waiting.row("hosts")[at:] <= len(self.free)
            ahead = int(fits.argmax())
            if not fits[ahead]:
                return
            at += ahead
            self.start(self.waiting.remove(at))
