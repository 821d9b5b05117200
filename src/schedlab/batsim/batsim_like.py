"""Runs of the command `batsim`, with the scheduler at a socket or in this process or without one, and with a log in
Batsim's form.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from schedlab.batsim.backends.backend import Backend, WrittenConversation, message_text
from schedlab.batsim.backends.json_socket import JsonSocket, serve
from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed, run_pybatsim
from schedlab.batsim.errors import ProtocolError, SimulationDeadlock
from schedlab.batsim.running import Inputs, load_in_time, open_backend
from schedlab.batsim.scheduler_loading import own_events
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.config.errors import UserError
from schedlab.termination import Terminated

Converse = Callable[[Backend], None]
WHILE_RUNNING = (SchedulerFailed, ProtocolError, SimulationDeadlock, Terminated)  # arise during the run, even at date 0


def simulate_like_batsim(inputs: Inputs, converse: Converse, log: Callable[[str], None] | None) -> None:
    """Simulate to the end and write the output files; if the scheduler fails, write those of the jobs that ran
    so far.

    converse  exchanges messages with the simulator until the simulation ends
    log       receives a line for each message; None: no log

    Raises UserError for wrong inputs, and SchedulerFailed, ProtocolError or SimulationDeadlock if the simulation fails.
    """
    with open_backend("embedded", inputs) as simulation:
        backend = simulation if log is None else logged(simulation, log)
        try:
            converse(backend)
        except (UserError, Terminated) as failure:
            assert isinstance(simulation, Simulation)
            if simulation.agenda.now > 0 or isinstance(failure, WHILE_RUNNING):
                simulation.write_outputs()
            raise


def logged(backend: Backend, log: Callable[[str], None]) -> Backend:
    """Return a back end that logs its messages in Batsim's form, which Batsim's tests read."""
    now = 0.0

    def write(sent: bool, message: dict[str, Any]) -> None:
        nonlocal now
        now = message["now"] if sent else now
        place = f"[master_host:Scheduler REQ-REP:(1) {now:.6f}] [network/INFO]"
        log(f"{place} {'Sending' if sent else 'Received'} '{message_text(message)}'")

    return WrittenConversation(backend, write)


def at_socket(endpoint: str, limit: float | None) -> Converse:
    """Return a function that exchanges messages with a scheduler, which binds its REP socket at an endpoint.

    limit  wall-clock seconds for each answer; None: no limit
    """

    def converse(backend: Backend) -> None:
        with JsonSocket("REQ", endpoint, bind=False, anywhere=True) as socket:
            serve(backend, socket, limit)

    return converse


def in_this_process(name: str, options: dict[str, Any], prefix: str, limit: float | None) -> Converse:
    """Return a function that runs a PyBatsim scheduler (see `load_scheduler`), whose output goes to standard error.

    limit  wall-clock seconds to load the scheduler, and for each of its answers; None: no limit
    """

    def converse(backend: Backend) -> None:
        with own_events(prefix) as events, contextlib.redirect_stdout(sys.stderr):
            run_pybatsim(backend, load_in_time(limit, name, options, events), message_limit=limit)

    return converse


def one_by_one(backend: Backend) -> None:
    """Run jobs without a scheduler, one at a time in the order of submission, each on the first hosts."""
    waiting: deque[tuple[str, int]] = deque()
    hosts, busy = 0, False
    while (message := backend.next_message()) is not None:
        for event in message["events"]:
            kind, data = event["type"], event["data"]
            if kind == "SIMULATION_BEGINS":
                hosts = data["nb_compute_resources"]
            elif kind == "JOB_SUBMITTED":
                waiting.append((data["job_id"], data["job"]["res"]))
            elif kind == "JOB_COMPLETED":
                busy = False
        decisions = []
        if waiting and not busy:
            job, size = waiting.popleft()
            if size > hosts:
                raise UserError(f"job '{job}' asks for {size} hosts", expected=f"at most {hosts}, as the platform has")
            alloc = {0: "", 1: "0"}.get(size, f"0-{size - 1}")
            decision = {"timestamp": message["now"], "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}}
            decisions, busy = [decision], True
        backend.answer({"now": message["now"], "events": decisions})
