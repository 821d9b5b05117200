"""The records of a simulation: rows of the output files, and totals."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from schedlab.batsim.files.outputs import Outputs
from schedlab.batsim.resource_set import ResourceSet, from_mask
from schedlab.batsim.simulator.agenda import Agenda
from schedlab.batsim.simulator.energy import EnergyMeter
from schedlab.batsim.simulator.live_job import KILLED, SUCCESS, WALLTIME_REACHED, LiveJob
from schedlab.batsim.simulator.machines import Machines, State
from schedlab.config.errors import counted, shortened

BATSIM_VERSION = "embedded-4.2"
_log = logging.getLogger(__name__)


class Summary:
    """Counts, means and largest values over the jobs; rejected jobs count as 0 in the means."""

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
        waiting, turnaround, slowdown = job.waiting, job.turnaround, job.slowdown
        self._waiting += waiting
        self._turnaround += turnaround
        self._slowdown += slowdown
        if job.start + job.runtime > self.makespan:
            self.makespan = job.start + job.runtime
        if waiting > self._most_waiting:
            self._most_waiting = waiting
        if turnaround > self._most_turnaround:
            self._most_turnaround = turnaround
        if slowdown > self._most_slowdown:
            self._most_slowdown = slowdown

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
            "scheduling_time": 0.0,  # Batsim writes wall-clock times here, which differ between equal runs
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


class Records:
    """The rows and totals of a run; `job_listener` is called with each job that ends (finished or rejected)."""

    def __init__(self, agenda: Agenda, machines: Machines, meter: EnergyMeter | None, outputs: Outputs | None) -> None:
        self._agenda, self._machines, self._meter, self._outputs = agenda, machines, meter, outputs
        self.summary = Summary()
        self.job_listener: Callable[[LiveJob], None] | None = None
        self._first_energy: float | None = None
        self._last_energy = 0.0
        self._last_row: tuple[float, float] | None = None
        self._too_short: list[tuple[str, float]] = []
        self._too_large: list[str] = []
        if outputs is not None:
            outputs.open(meter is not None, [host.name for host in machines.hosts])
            if meter is not None:
                masks: dict[int, int] = {}
                for number, pstate in enumerate(machines.pstates):
                    masks[pstate] = masks.get(pstate, 0) | 1 << number
                for pstate in sorted(masks):
                    outputs.pstate_change(0.0, str(from_mask(masks[pstate])), pstate)

    def job_submitted(self) -> None:
        """Note the energy at the first submission."""
        if self._meter is not None and self._first_energy is None:
            self._first_energy = self._last_energy = self._meter.total(self._agenda.now)

    def job_started(self, job: LiveJob) -> None:
        """Note the states of the machines and the energy that the job's hosts have used so far."""
        if self._meter is not None:
            job.energy = self._meter.of(self.hosts_index(job.alloc), self._agenda.now)
            self._energy_row("s")
        if self._outputs is not None:
            self._outputs.machine_states(self._agenda.now, self._machines.counts)
            if self._outputs.trace is not None:
                self._outputs.trace.start(self._agenda.now, job.job.id, self._compute_hosts(job))

    def job_ended(self, job: LiveJob) -> None:
        """Note a job that ran."""
        if self._meter is not None:
            now = self._agenda.now
            job.energy = self._meter.of(self.hosts_index(job.alloc), now) - job.energy
            self._last_energy = self._meter.total(now)
            self._energy_row("e")
        if self._outputs is not None:
            self._outputs.machine_states(self._agenda.now, self._machines.counts)
            if self._outputs.trace is not None:
                killed = job.state in (WALLTIME_REACHED, KILLED)
                self._outputs.trace.end(self._agenda.now, job.job.id, self._compute_hosts(job), killed)
        self.summary.add(job)
        self._job_row(job)

    def job_too_short(self, job: LiveJob, now: float) -> None:
        """Note a job that took less time than dates near `now` can distinguish."""
        self._too_short.append((job.job.id, now))

    def job_rejected(self, job: LiveJob) -> None:
        """Note a job that never ran."""
        self.summary.rejected += 1
        if job.job.resources > len(self._machines.hosts):
            self._too_large.append(job.job.id)
        self._job_row(job)

    def switch_requested(self, hosts: ResourceSet, to_sleep: bool) -> None:
        """Note a request for another pstate, before anything changes."""
        self.summary.grouped_switches += 1
        self.summary.machine_switches += hosts.size
        self._energy_row("p")
        if self._outputs is not None:
            self._outputs.pstate_change(self._agenda.now, str(hosts), -2 if to_sleep else -1)

    def switch_began(self) -> None:
        """Note the states of the machines at the beginning of a transition."""
        self._states_row()

    def switch_done(self, hosts: ResourceSet, pstate: int) -> None:
        """Note that all hosts of a request reached the pstate."""
        self._energy_row("p")
        self._states_row()
        if self._outputs is not None:
            self._outputs.pstate_change(self._agenda.now, str(hosts), pstate)

    def totals(self) -> dict[str, float]:
        """Return the numbers of `_schedule.csv` so far, by column."""
        joules = 0.0 if self._first_energy is None else self._last_energy - self._first_energy
        return self.summary.values(len(self._machines.hosts), joules, self._machines.host_seconds())

    def commit(self) -> None:
        """Give the output files their names. Logs a warning if jobs were too short for the precision of dates, or
        requested more hosts than there are.
        """
        if self._too_short:
            (first, date), count = self._too_short[0], len(self._too_short)
            _log.warning(
                "warning: %d jobs, the first '%s', are too short for dates such as %g s, which are exact to %.1g s: "
                "their waiting times and slowdowns are wrong; subtract the first submission from all dates",
                *(count, first, date, max(1e-9, math.ulp(date))),
            )
        if self._too_large:
            _log.warning(
                "warning: %s more than %s, as many as this run has, and the scheduler rejected them: %s",
                counted(len(self._too_large), "job requests", "jobs request"),
                counted(len(self._machines.hosts), "compute host"),
                shortened(self._too_large),
            )
        if self._outputs is not None:
            if self._outputs.trace is not None:
                self._outputs.trace.finish(self._agenda.now)
            self._outputs.commit(schedule_row(self.totals()))

    def hosts_index(self, hosts: ResourceSet) -> Any:
        """Return the compute hosts of a set as an index of arrays."""
        if len(hosts.intervals) == 1 and hosts.mask <= self._machines.everyone:
            first, last = hosts.intervals[0]
            return slice(first, last + 1)
        numbers = hosts.numbers
        return numbers if hosts.mask <= self._machines.everyone else numbers[numbers < len(self._machines.hosts)]

    def _compute_hosts(self, job: LiveJob) -> list[int]:
        return [number for number in job.alloc if number < len(self._machines.hosts)]

    def _job_row(self, job: LiveJob) -> None:
        if self._outputs is not None:
            self._outputs.job(job.row())
        if self.job_listener is not None:
            self.job_listener(job)

    def _states_row(self) -> None:
        if self._outputs is not None:
            self._outputs.machine_states(self._agenda.now, self._machines.counts)

    def _energy_row(self, kind: str) -> None:
        if self._meter is None:
            return
        now = self._agenda.now
        self._meter.look(now)  # the reading affects the meter even if no row is written
        if self._outputs is None:
            return
        energy, mean = self._meter.total(now), None
        if self._last_row is not None and now > self._last_row[0]:
            mean = (energy - self._last_row[1]) / (now - self._last_row[0])
        self._outputs.consumed_energy(now, energy, kind, self._meter.least_power(), mean)
        self._last_row = (now, energy)
