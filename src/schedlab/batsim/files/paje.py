"""A schedule as a trace in the format Paje, which ViTE and other programs draw: the job that each machine computes at
each time.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

_DEFINITIONS: Final = (
    ("DefineContainerType", "Type string", "Alias string", "Name string"),
    ("CreateContainer", "Time date", "Type string", "Alias string", "Name string", "Container string"),
    ("DestroyContainer", "Time date", "Name string", "Type string"),
    ("DefineStateType", "Alias string", "Type string", "Name string"),
    ("DefineEntityValue", "Alias string", "Type string", "Name string", "Color color"),
    ("SetState", "Time date", "Type string", "Container string", "Value string"),
    ("DefineEventType", "Type string", "Alias string", "Name string"),
    ("NewEvent", "Time date", "Type string", "Container string", "Value string"),
)
"""Kinds of lines, numbered from 1, with their fields."""
_CONTAINER_TYPE, _CREATE, _DESTROY, _STATE_TYPE, _VALUE, _SET, _EVENT_TYPE, _EVENT = range(1, 9)
_COLOURS = 64


class PajeTrace:
    """Writes Batsim's `PREFIX_schedule.trace`: machines m0, m1, ... in state `w` (waiting) or `jJOB`.

    Of several jobs on one machine, the trace shows the one that started first. A job that is killed, or reaches its
    walltime, is an event of the killer and of its machines.
    """

    def __init__(self, write: Callable[[str], object], machines: Sequence[str]) -> None:
        self._write, self._machines = write, machines
        self._jobs: list[list[str]] = [[] for _ in machines]
        self._known = 0
        for number, (name, *fields) in enumerate(_DEFINITIONS, start=1):
            lines = [f"%EventDef Paje{name} {number}", *(f"% {field}" for field in fields), "%EndEventDef", "", ""]
            write("\n".join(lines))
        for line in (
            f'{_CONTAINER_TYPE} 0 root_ct "Machines"',
            f'{_CONTAINER_TYPE} root_ct machine_ct "Machine"',
            f'{_CONTAINER_TYPE} 0 scheduler_ct "Scheduler"',
            f'{_CONTAINER_TYPE} scheduler_ct killer_ct "Killer"',
            f'{_EVENT_TYPE} killer_ct kk "Job kill"',
            f'{_EVENT_TYPE} machine_ct km "Job kill"',
            f'{_CREATE} 0.000000 root_ct root "Machines" 0',
            *(f'{_CREATE} 0.000000 machine_ct m{number} "{name}" root' for number, name in enumerate(machines)),
            f'{_CREATE} 0.000000 scheduler_ct sc "Scheduler" 0',
            f'{_CREATE} 0.000000 killer_ct k "Killer" sc',
            f'{_STATE_TYPE} machine_state machine_ct "Machine state"',
            f'{_VALUE} w machine_state "Waiting" "0.0 0.0 0.0"',
        ):
            write(line + "\n")
        for number in range(len(machines)):
            self._set(0.0, number, "w")

    def start(self, now: float, job: str, machines: Iterable[int]) -> None:
        """Write that a job runs on machines from `now` on, in s."""
        colour = " ".join(f"{part:f}" for part in colorsys.hsv_to_rgb(self._known % _COLOURS / _COLOURS, 1.0, 1.0))
        self._known += 1
        self._write(f'{_VALUE} j{job} machine_state "{job}" "{colour}"\n')
        for number in machines:
            self._jobs[number].append(job)
            if len(self._jobs[number]) == 1:
                self._set(now, number, f"j{job}")

    def end(self, now: float, job: str, machines: Iterable[int], killed: bool) -> None:
        """Write that a job has left its machines."""
        numbers = list(machines)
        if killed:
            self._write(f'{_EVENT} {now:f} kk k "{job}"\n')
            for number in numbers:
                self._write(f'{_EVENT} {now:f} km m{number} "{job}"\n')
        for number in numbers:
            on_it = self._jobs[number]
            shown = on_it[0] == job
            on_it.remove(job)
            if shown:
                self._set(now, number, f"j{on_it[0]}" if on_it else "w")

    def finish(self, now: float) -> None:
        """Write the end of the trace for all machines."""
        for number in range(len(self._machines)):
            self._write(f"{_DESTROY} {now:f} m{number} machine_ct\n")
        self._write(f"{_DESTROY} {now:f} root root_ct\n")

    def _set(self, now: float, number: int, state: str) -> None:
        self._write(f"{_SET} {now:f} machine_state m{number} {state}\n")
