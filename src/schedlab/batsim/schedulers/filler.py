"""Filling: in the order of arrival, every waiting job that fits into the free hosts starts; wide jobs may starve."""

from __future__ import annotations

from batsim.batsim import Job

from schedlab.batsim.schedulers.job_columns import JobColumns
from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler


class Filler(QueueScheduler):
    """Start whatever fits, first come first considered, with no reservation for what does not."""

    def onSimulationBegins(self) -> None:
        """Begin with an empty queue."""
        super().onSimulationBegins()
        self.waiting = JobColumns(("hosts",))

    def enqueue(self, job: Job) -> None:
        """Put the job last."""
        self.waiting.insert(len(self.waiting), job, (job.requested_resources,))

    def schedule(self) -> None:
        """Walk along the queue and start each job that fits."""
        at = 0
        while self.free and at < len(self.waiting):
            fits = self.waiting.row("hosts")[at:] <= len(self.free)
            ahead = int(fits.argmax())
            if not fits[ahead]:
                return
            at += ahead
            self.start(self.waiting.remove(at))
