"""PyBatsim schedulers on a back end in the same process."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time

import batsim.batsim
import pytest
from batsim.batsim import BatsimScheduler
from tiny_simulator import TinySimulator

from conformance.batsim_backend import Replay
from conformance.batsim_cases import CASES, FOLDER, conversation
from schedlab.batsim.backends.backend import recorded
from schedlab.batsim.backends.pybatsim_bus import PyBatsimRun, SchedulerFailed, run_pybatsim
from schedlab.batsim.backends.time_limit import TimeIsUp, TimeLimit
from schedlab.batsim.errors import SimulationDeadlock
from schedlab.batsim.scheduler_loading import load_scheduler
from schedlab.config.errors import UserError

ONE_JOB = [(1.0, 1, 10.0, 5.0)]


class Recorder(BatsimScheduler):
    """Starts each job on host 0 and remembers the order of calls."""

    def __init__(self, action=lambda: None):
        super().__init__({})
        self.calls = []
        self.action = action

    def onJobSubmission(self, job):
        self.calls.append("submission")
        self.action()
        job.allocation = "0"
        self.bs.execute_job(job)

    def onJobCompletion(self, job):  # noqa: ARG002
        self.calls.append("completion")

    def onSimulationEnds(self):
        self.calls.append("ends")

    def onDeadlock(self):
        self.calls.append("deadlock")


SUCCESSFUL = [case for case in CASES if json.loads((case / "case.json").read_text())["status"] == "ok"]


@pytest.mark.parametrize("case", SUCCESSFUL, ids=lambda case: case.name)
def test_a_recorded_scheduler_answers_as_recorded(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # PyBatsim's high-level API writes out_events.csv
    facts = json.loads((case / "case.json").read_text())
    pairs = list(conversation(case))
    own = facts["scheduler"][0].isupper()
    name = f"{FOLDER}/schedulers_used.py:{facts['scheduler']}" if own else facts["scheduler"]
    replay = Replay([said for said, _ in pairs])
    run_pybatsim(replay, load_scheduler(name, facts["options"]))
    assert replay.answers == [answered for _, answered in pairs]


def test_it_goes_one_message_at_a_time():
    simulation, scheduler = TinySimulator(1, ONE_JOB), Recorder()
    with PyBatsimRun(simulation, scheduler) as run:
        assert scheduler.calls == []
        assert run.step()
        assert scheduler.calls == ["submission"]
        assert run.batsim.time() == 1.0
        assert run.step()
        assert not run.step()
        assert not run.step(), "over stays over"
    assert scheduler.calls == ["submission", "completion", "ends"]


def test_nothing_of_pybatsim_stays_changed():
    handler, limit = batsim.batsim.NetworkHandler, sys.getrecursionlimit()
    run_pybatsim(TinySimulator(1, ONE_JOB), Recorder())
    assert batsim.batsim.NetworkHandler is handler
    assert sys.getrecursionlimit() == limit


def test_a_scheduler_that_raises_is_told_with_place_and_message():
    with pytest.raises(
        SchedulerFailed, match=r"Recorder raised KeyError: 'x', in .*test_pybatsim_bus.py:\d+.*at 1 s \(JOB_SUBMITTED\)"
    ):
        run_pybatsim(TinySimulator(1, ONE_JOB), Recorder(action=lambda: {}["x"]))


def test_a_scheduler_that_leaves_the_program_does_not_take_us_along():
    with pytest.raises(SchedulerFailed, match="SystemExit"):
        run_pybatsim(TinySimulator(1, ONE_JOB), Recorder(action=sys.exit))


def hang():
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def test_a_scheduler_that_hangs_is_stopped():
    with pytest.raises(SchedulerFailed, match=r"Recorder .*\b0\.2 s.*\b1 s \(JOB_SUBMITTED\)"):
        run_pybatsim(TinySimulator(1, ONE_JOB), Recorder(action=hang), message_limit=0.2)


def test_a_deadlock_reaches_the_scheduler_and_then_us():
    scheduler = Recorder()
    begins = TinySimulator(1, ONE_JOB).next_message()
    with pytest.raises(SimulationDeadlock, match="w0!1 waits"):
        run_pybatsim(Replay([begins], deadlock=True), scheduler)
    assert scheduler.calls == ["deadlock"]


def test_a_deadlock_is_told_as_such_where_the_scheduler_raises_on_it():
    begins = TinySimulator(1, ONE_JOB).next_message()
    with pytest.raises(SimulationDeadlock, match="w0!1 waits"):
        run_pybatsim(Replay([begins], deadlock=True), load_scheduler("easyBackfill"))


def test_what_a_scheduler_does_to_a_registered_profile_later_does_not_reach_the_simulator():
    class Registers(Recorder):
        def onSimulationBegins(self):
            self.mine = {"p": {"type": "delay", "delay": 3}}
            self.bs.register_profiles("dyn", self.mine)

    taken = []

    class Takes(Replay):
        def answer(self, message):
            taken.append(message)

    scheduler = Registers()
    begins = TinySimulator(1, ONE_JOB).next_message()
    with PyBatsimRun(Takes([begins], deadlock=True), scheduler):
        scheduler.mine["p"]["delay"] = 99
    assert taken[0]["events"][0]["data"]["profile"]["delay"] == 3


def test_published_events_arrive():
    texts = []
    scheduler = Recorder(action=lambda: scheduler.bs.publish_event("hello"))
    run_pybatsim(TinySimulator(1, ONE_JOB), scheduler, publish=texts.append)
    assert texts == ["hello"]


def test_a_conversation_is_recorded_in_the_form_of_the_reference_runs(tmp_path):
    file = tmp_path / "messages.jsonl"
    with recorded(TinySimulator(1, ONE_JOB), file) as backend:
        run_pybatsim(backend, Recorder())
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["dir"] for line in lines] == ["batsim->sched", "sched->batsim"] * 4
    assert lines[-2]["msg"]["events"][0]["type"] == "SIMULATION_ENDS"
    replay = Replay([line["msg"] for line in lines[::2]])
    run_pybatsim(replay, Recorder())
    assert replay.answers == [line["msg"] for line in lines[1::2]]


def test_a_conversation_that_fails_leaves_only_a_partial_record(tmp_path):
    file = tmp_path / "messages.jsonl"
    with pytest.raises(SchedulerFailed), recorded(TinySimulator(1, ONE_JOB), file) as backend:
        run_pybatsim(backend, Recorder(action=lambda: 1 / 0))
    assert not file.exists()
    assert len((tmp_path / "messages.jsonl.partial").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("easyBackfil", "no scheduler 'easyBackfil'.*did you mean 'easyBackfill'"),
        ("nosuch.py:Thing", "no such file"),
    ],
)
def test_an_unknown_scheduler_is_told_with_the_nearest(name, message):
    with pytest.raises(UserError, match=message):
        load_scheduler(name)


SCHEDULERS_IN_A_FILE = """
from batsim.batsim import BatsimScheduler
from batsim.sched import Scheduler
class Low(BatsimScheduler):
    pass
class High(Scheduler):
    def schedule(self): pass
def function(scheduler): pass
"""


def test_schedulers_come_from_files(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(SCHEDULERS_IN_A_FILE)
    for name in ("Low", "High", "function"):
        assert isinstance(load_scheduler(f"{file}:{name}", {}, prefix=str(tmp_path / "run")), BatsimScheduler)
    assert (tmp_path / "run_events.csv").exists()
    with pytest.raises(UserError, match="did you mean 'Low'"):
        load_scheduler(f"{file}:Lowe")
    with pytest.raises(UserError, match="no scheduler 'Mine'"):
        load_scheduler(str(file))


def test_a_file_with_one_scheduler_needs_no_class_name_and_may_import_its_neighbours(tmp_path):
    (tmp_path / "my_neighbour.py").write_text("NUMBER = 7\n")
    file = tmp_path / "single.py"
    file.write_text(
        "from batsim.batsim import BatsimScheduler\nfrom my_neighbour import NUMBER\nclass Other(BatsimScheduler):\n  "
        "  n = NUMBER\n"
    )
    assert load_scheduler(str(file)).n == 7
    assert str(tmp_path) not in sys.path


def test_an_alarm_that_rings_again_while_the_first_is_handled_changes_nothing(monkeypatch):
    """Giving back what a scheduler had in memory may take longer than the second until the next ring."""
    late = [TimeIsUp, None]
    limit = TimeLimit(0.05)
    still = limit.stop

    def stop():
        error = late.pop(0) if late else None
        if error is not None:
            raise error
        still()

    def never_ends():
        limit.start()
        monkeypatch.setattr(limit, "stop", stop)
        while True:
            pass

    with limit, pytest.raises(TimeIsUp):
        limit.call(never_ends)
    assert late == []
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
