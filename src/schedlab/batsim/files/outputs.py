"""Batsim's output files, written row by row under temporary names; they get their final names when the simulation is
over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from schedlab.batsim.files.paje import PajeTrace
from schedlab.config.files import atomic_path

JOBS_HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,"
    "execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata\n"
)
MACHINE_STATES_HEADER = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"
PSTATE_CHANGES_HEADER = "time,machine_id,new_pstate\n"
CONSUMED_ENERGY_HEADER = "time,energy,event_type,wattmin,epower\n"


class Outputs:
    """The files `PREFIX_jobs.csv`, `_schedule.csv`, `_machine_states.csv` (unless left out), with energy
    `_consumed_energy.csv` and `_pstate_changes.csv`, and on request `_schedule.trace`.

    A context manager: rows go to temporary files; `commit`, which the simulation calls at its end, gives the files
    their names, and leaving the block without it removes them. Rows are written at once, so that a finished job takes
    no memory.
    """

    def __init__(self, prefix: Path | str, machine_states: bool = True, trace: bool = False) -> None:
        self._prefix, self._with_machine_states, self._with_trace = prefix, machine_states, trace
        self.trace: PajeTrace | None = None
        self._stack = ExitStack()
        self._files: dict[str, TextIO] = {}
        self.job: Callable[[str], Any] = len
        """Writes the row of a finished or rejected job."""

    def open(self, energy: bool, hosts: Sequence[str]) -> None:
        """Begin the files; the simulation calls it with the names of the compute hosts."""
        self._begin("schedule", "")  # first in, last out: the summary gets its name after all other files
        self._begin("jobs", JOBS_HEADER)
        if self._with_machine_states:
            self._begin("machine_states", MACHINE_STATES_HEADER)
        if energy:
            self._begin("pstate_changes", PSTATE_CHANGES_HEADER)
            self._begin("consumed_energy", CONSUMED_ENERGY_HEADER)
        if self._with_trace:
            self._begin("schedule.trace", "")
            self.trace = PajeTrace(self._files["schedule.trace"].write, hosts)
        self.job = self._files["jobs"].write
        self._write_machine_states = self._files["machine_states"].write if self._with_machine_states else None

    def machine_states(self, now: float, counts: list[int]) -> None:
        """Write how many hosts sleep, switch on, switch off, idle and compute from the date `now` (s) on."""
        if self._write_machine_states is not None:
            sleeping, switching_on, switching_off, idle, computing, _ = counts
            self._write_machine_states(f"{now:g},{sleeping},{switching_on},{switching_off},{idle},{computing}\n")

    def pstate_change(self, now: float, machines: str, pstate: int) -> None:
        """Write a request (-1 towards a compute state, -2 towards sleep) or the pstate reached."""
        self._files["pstate_changes"].write(f"{now:g},{machines},{pstate}\n")

    def consumed_energy(
        self, now: float, energy: float, kind: str, least_power: float, mean_power: float | None
    ) -> None:
        """Write the energy so far (J) at a job's start (kind s) or end (e) or a change of pstate (p); powers in W."""
        mean = "NA" if mean_power is None else f"{mean_power:.6f}"
        self._files["consumed_energy"].write(f"{now:.6f},{energy:.6f},{kind},{least_power:.6f},{mean}\n")

    def commit(self, schedule: dict[str, str]) -> None:
        """Write the summary and give every file its final name."""
        names = sorted(schedule)
        self._files["schedule"].write(",".join(names) + "\n" + ",".join(schedule[name] for name in names) + "\n")
        for file in self._files.values():
            file.close()  # so that a full disk raises an error before any file has its name
        self._stack.close()
        self._files.clear()

    def discard(self) -> None:
        """Remove what was written; harmless after `commit`."""
        if self._files:
            self._stack.__exit__(InterruptedError, InterruptedError("discarded"), None)
            self._files.clear()

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def _begin(self, name: str, header: str) -> None:
        temporary = self._stack.enter_context(atomic_path(f"{self._prefix}_{name}" + ("" if "." in name else ".csv")))
        # half a surrogate pair is valid in JSON but not in UTF-8
        file = self._stack.enter_context(temporary.open("w", encoding="utf-8", errors="backslashreplace", newline=""))
        file.write(header)
        self._files[name] = file
