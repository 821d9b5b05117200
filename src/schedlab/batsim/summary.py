"""Totals over the finished jobs: the row of `_schedule.csv`."""

from __future__ import annotations

from schedlab.batsim.live_job import SUCCESS, LiveJob
from schedlab.batsim.machines import State

BATSIM_VERSION = "embedded-4.2"


class Summary:
    """Counts, means and largest values; rejected jobs count in the means with a term of 0."""

    def __init__(self) -> None:
        self.finished = self.rejected = self.successful = 0
        self.makespan = 0.0
        self.grouped_switches = self.machine_switches = 0
        self._waiting = self._turnaround = self._slowdown = 0.0
        self._most_waiting = self._most_turnaround = self._most_slowdown = 0.0

    def add(self, job: LiveJob) -> None:
        """Count a finished job."""
        self.finished += 1
        self.successful += job.state == SUCCESS
        runtime, waiting = job.runtime, job.start - job.submission
        turnaround = waiting + runtime
        slowdown = turnaround / runtime
        self._waiting += waiting
        self._turnaround += turnaround
        self._slowdown += slowdown
        self.makespan = max(self.makespan, job.start + runtime)
        self._most_waiting = max(self._most_waiting, waiting)
        self._most_turnaround = max(self._most_turnaround, turnaround)
        self._most_slowdown = max(self._most_slowdown, slowdown)

    def values(self, nb_machines: int, joules: float, host_seconds: dict[State, float]) -> dict[str, float]:
        """Return the numbers of `_schedule.csv` by column; times in s, energy in J."""
        jobs = self.finished + self.rejected
        return {
            "consumed_joules": joules,
            "makespan": self.makespan,
            "nb_computing_machines": nb_machines,
            "nb_grouped_switches": self.grouped_switches,
            "nb_jobs": jobs,
            "nb_jobs_finished": self.finished,
            "nb_jobs_killed": self.finished - self.successful,
            "nb_jobs_rejected": self.rejected,
            "nb_jobs_success": self.successful,
            "nb_machine_switches": self.machine_switches,
            "scheduling_time": 0.0,  # Batsim writes wall-clock times here; ours must not differ between two runs
            "simulation_time": 0.0,
            "success_rate": self.successful / jobs if jobs else 0.0,
            "max_slowdown": self._most_slowdown,
            "max_turnaround_time": self._most_turnaround,
            "max_waiting_time": self._most_waiting,
            "mean_slowdown": self._slowdown / max(1, jobs),
            "mean_turnaround_time": self._turnaround / max(1, jobs),
            "mean_waiting_time": self._waiting / max(1, jobs),
            **{f"time_{state.name.lower()}": seconds for state, seconds in host_seconds.items()},
        }


def schedule_row(values: dict[str, float]) -> dict[str, str]:
    """Return the cells of `_schedule.csv` by column."""
    cells = {name: str(value) if isinstance(value, int) else f"{value:.6f}" for name, value in values.items()}
    return {"batsim_version": BATSIM_VERSION, **cells}
