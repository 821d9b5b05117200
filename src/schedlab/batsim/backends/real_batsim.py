"""A real `batsim` binary (3.1 to 4.2) as a back end, with the same conversation and the same output files as the
embedded simulator.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.batsim.backends.json_socket import JsonSocket, NoAnswer
from schedlab.batsim.errors import ProtocolError, SimulationDeadlock
from schedlab.config.errors import UserError

if TYPE_CHECKING:
    from schedlab.batsim.simulator.options import Options

log = logging.getLogger(__name__)
OLDEST, FIRST_OF_ANOTHER_PROTOCOL = (3, 1), (5, 0)
TAIL_LINES = 12
SECONDS_TO_END = 5.0


class BatsimFailed(UserError):
    """The Batsim process failed, sent nothing in time, or sent something that is no message; for a failure and a
    time-out the error contains the last lines that the process wrote.
    """


class RealBatsim:
    """A Batsim process. Entering the block starts it; leaving the block ends it and its child processes, even after an
    error.

    It connects to a port of this machine that the operating system chose. Its files are written to a temporary folder
    and get their names (PREFIX_jobs.csv, ...) only after it has ended without an error.

    binary     path of the binary, or its name on PATH
    prefix     path prefix of the output files
    seconds    wall-clock time for each message of Batsim, the first included; None: no limit

    Raises UserError if the binary is missing, is of another version, or does not support the options.
    """

    def __init__(
        self,
        binary: str,
        platform: Path | str,
        workloads: Sequence[Path | str],
        options: Options,
        prefix: str,
        seconds: float | None = 60.0,
    ) -> None:
        self._binary = find_binary(binary)
        self._arguments = ["-p", str(Path(platform).resolve())]
        for workload in workloads:
            self._arguments += ["-w", str(Path(workload).resolve())]
        self._arguments += command_line_options(options)
        self._stem, self._seconds = Path(f"{prefix}_").absolute(), seconds  # `_`, as PREFIX may be a folder
        self._waiting: dict[str, None] = {}  # in the order of arrival
        self._ends = False

    def __enter__(self) -> RealBatsim:
        check_version(self._binary)
        self._stem.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as cleaning:
            self._folder = Path(tempfile.mkdtemp(prefix=".batsim.", dir=self._stem.parent))
            cleaning.callback(shutil.rmtree, self._folder, ignore_errors=True)
            self._socket = cleaning.enter_context(JsonSocket("REP", "tcp://127.0.0.1:*", bind=True))
            self._process = self._start(
                [*self._arguments, "-e", str(self._folder / "out"), "-s", self._socket.endpoint]
            )
            cleaning.callback(self._end_process)
            self._cleaning = cleaning.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._cleaning.close()

    def _start(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("wb") as output:
            return subprocess.Popen(
                [self._binary, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )

    def next_message(self) -> dict[str, Any] | None:
        """Wait for Batsim's next message and return it; return None when Batsim has ended without an error and its
        files have their names.
        """
        if self._ends:
            self._finish()
            return None
        try:
            message = self._socket.receive(self._seconds, self._check_alive)
        except NoAnswer:
            raise BatsimFailed(self._with_tail(f"batsim said nothing for {self._seconds:g} s")) from None
        except ProtocolError as error:
            raise BatsimFailed(
                f"{self._binary} speaks another protocol: {error}; Batsim 3.1 to 4.2 is needed"
            ) from None
        if not all(_is_event(event) for event in message["events"]):
            raise BatsimFailed(
                f"{self._binary} speaks another protocol: {str(message)[:200]}; Batsim 3.1 to 4.2 is needed"
            )
        for event in message["events"]:
            if event["type"] == "JOB_SUBMITTED":
                self._waiting[event["data"]["job_id"]] = None
        self._ends = any(event["type"] == "SIMULATION_ENDS" for event in message["events"])
        return message

    def answer(self, message: dict[str, Any]) -> None:
        """Pass the scheduler's reply to Batsim."""
        for event in message["events"]:
            if event["type"] in ("EXECUTE_JOB", "REJECT_JOB"):
                self._waiting.pop(event["data"]["job_id"], None)
        self._socket.send(message, self._seconds)

    def _finish(self) -> None:
        try:
            status = self._process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            raise BatsimFailed(
                self._with_tail(f"batsim did not end within {self._seconds:g} s of the simulation's end")
            ) from None
        if status != 0:
            raise BatsimFailed(self._with_tail(f"batsim ended with {_status(status)} after the simulation"))
        files = sorted(self._folder.glob("out_*"), key=lambda file: (file.name == "out_schedule.csv", file.name))
        if not files:
            raise BatsimFailed(self._with_tail("batsim ended well but wrote no output file"))
        for file in files:
            file.replace(f"{self._stem}{file.name.removeprefix('out_')}")

    def _check_alive(self) -> None:
        status = self._process.poll()
        if status is None:
            return
        if re.search("deadlock", self._tail(), re.IGNORECASE) and self._waiting:
            some = ", ".join(list(self._waiting)[:10]) + (", ..." if len(self._waiting) > 10 else "")
            raise SimulationDeadlock(
                f"deadlock: Batsim ended while jobs wait and nothing can happen any more: {some}", tuple(self._waiting)
            )
        raise BatsimFailed(self._with_tail(f"batsim ended with {_status(status)} in the middle of the simulation"))

    def _end_process(self) -> None:
        """End the process and its child processes, first by SIGTERM and then by SIGKILL."""
        for number, seconds in ((signal.SIGTERM, SECONDS_TO_END), (signal.SIGKILL, None)):
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):  # none is left (macOS: PermissionError for zombies)
                break
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()

    def _tail(self) -> str:
        text = (self._folder / "log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-TAIL_LINES:])

    def _with_tail(self, what: str) -> str:
        tail = self._tail()
        return f"{what}; the last that it wrote:\n{tail}" if tail else f"{what}; it wrote nothing"


def command_line_options(options: Options) -> list[str]:
    """Return the options of a simulation as arguments of Batsim 3.1 to 4.2. Raises UserError for options that no Batsim
    has.
    """
    if options.network == "ignore":
        raise UserError(
            "a real Batsim cannot ignore the network", remedy="leave the network in, or use the embedded simulator"
        )
    flags = {
        "--energy": options.energy,
        "--forward-unknown-events": options.forward_unknown_events,
        "--enable-dynamic-jobs": options.dynamic_jobs,
        "--acknowledge-dynamic-jobs": options.acknowledge_dynamic_jobs,
        "--enable-profile-reuse": options.profile_reuse,
        "--forward-profiles-on-submission": options.forward_profiles,
        "--enable-compute-sharing": options.compute_sharing,
        "--disable-storage-sharing": not options.storage_sharing,
        "--mmax-workload": options.mmax_workload,
    }
    arguments = [
        "--disable-schedule-tracing",
        *(flag for flag, wanted in flags.items() if wanted),
        "-m",
        options.master_host,
    ]
    for file in options.events_files:
        arguments += ["--events", str(Path(file).resolve())]
    for host, role in options.roles.items():
        arguments += ["-r", f"{host}:{role}"]
    if options.mmax:
        arguments += ["--mmax", str(options.mmax)]
    if options.scheduler_config:
        arguments += ["--sched-cfg", options.scheduler_config]
    return arguments


def find_binary(binary: str) -> str:
    """Return the path of a binary, given by path or name. Raises UserError if it cannot be run."""
    found = shutil.which(binary)
    if found is None:
        raise UserError(
            f"no program '{binary}'",
            expected="a Batsim binary, 3.1 to 4.2",
            remedy="name its path with --batsim, put it on PATH, or use --backend embedded, which needs none",
        )
    return str(Path(found).resolve())


def check_version(binary: str) -> None:
    """Raise UserError for a binary whose version uses another protocol. A binary that does not report its version is
    accepted.
    """
    try:
        answer = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(
            f"'{binary} --version' does not work: {error}", expected="a Batsim binary, 3.1 to 4.2"
        ) from error
    if "schedlab" in answer.stdout:
        raise UserError(
            f"{binary} is the embedded simulator itself",
            expected="a Batsim binary, 3.1 to 4.2",
            remedy="name its path with --batsim, or use --backend embedded",
        )
    match = re.search(r"(\d+)\.(\d+)(?:\.\d+)?", answer.stdout)
    if match is None:
        log.warning("%s does not tell its version (%r); trying it", binary, answer.stdout.strip()[:80])
        return
    version = int(match[1]), int(match[2])
    if not OLDEST <= version < FIRST_OF_ANOTHER_PROTOCOL:
        raise UserError(
            f"{binary} is Batsim {match[0]}, which speaks another protocol",
            expected="Batsim 3.1 to 4.2",
            remedy="install one of these, or use --backend embedded",
        )


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not isinstance(event.get("data"), dict):
        return False
    return event["type"] != "JOB_SUBMITTED" or isinstance(event["data"].get("job_id"), str)


def _status(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def _end_with_parent() -> None:
    """Make the kernel end this child process with its parent, in case the parent is killed and cannot clean up (Linux
    only).
    """
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
