"""One line a job: what it says, what it estimates, and what passes as it is."""

from __future__ import annotations

import io
import logging
import os
import pty
import re
import select
import time
from types import SimpleNamespace

import pytest

from schedlab.config.runtime.progress import ERASE, JobLines, LiveLine, duration, job_name, live_text


class Run:
    """A made-up run of Snakemake: its records go through the lines, and what is shown is kept."""

    def __init__(self, **stats: int) -> None:
        self.now, self.shown, self.kept = 100.0, [], []
        usual = logging.Formatter("usual: %(message)s")
        self.lines = JobLines(usual, idle=lambda: {"all"}, keep=self.kept.append, clock=lambda: self.now)
        self.say("run_info", "Job stats", stats={**stats, "total": sum(stats.values())})

    def say(self, event: str | None, text: str = "", level: int = logging.INFO, **values: object) -> None:
        record = logging.makeLogRecord({"msg": text, "levelno": level, "event": event, **values})
        if self.lines.filter(record):
            self.shown.append(self.lines.format(record))

    def start(self, number: int, rule: str, **wildcards: str) -> None:
        self.say("job_started", "Execute 1 jobs...", jobs=[number])
        self.say("job_info", f"rule {rule}", jobid=number, rule_name=rule, wildcards=wildcards)
        self.say("shellcmd", "Shell command: None")

    def end(self, number: int) -> str:
        self.say("job_finished", f"Finished jobid: {number}", job_id=number)
        self.say("progress", done=1, total=2)
        return self.shown[-1]


def test_a_job_is_one_line_with_done_of_total_its_time_and_the_rest():
    run = Run(learn=11, all=1)
    run.start(3, "learn", study="toy", policy="hill", seed="0")
    run.now += 3
    assert run.end(3) == "[ 1/12] learn toy/hill/seed-0: 3 s, about 30 s left"
    assert run.shown == ["usual: Job stats", run.shown[-1]]


def test_the_rest_counts_each_rule_by_its_own_time_and_the_jobs_at_once():
    run = Run(learn=4, draw=1, all=1)
    run.start(1, "learn", seed="0")
    run.start(2, "learn", seed="1")
    run.now += 10
    assert "about 15 s left" in run.end(
        1
    )  # 1 under way and done by its usual time, 2 more, 1 drawing by the mean: 30 s of work, 2 at once
    assert "about 15 s left" in run.end(2)
    run.start(3, "learn", seed="2")
    run.now += 5
    assert run.lines.seconds_left() == pytest.approx((10 - 5 + 10 + 10) * 15 / 25)


def test_targets_take_no_time_and_the_last_line_estimates_nothing():
    run = Run(draw=1, all=1)
    run.start(1, "draw", study="toy")
    run.now += 200
    assert run.end(1) == "[1/2] draw toy: 3 min, about 0 s left"
    run.start(0, "all")
    assert run.end(0) == "[2/2] all: 0 s"


def test_errors_and_other_words_pass_as_they_are():
    run = Run(draw=1)
    run.start(1, "draw")
    run.say("job_error", "Error in rule draw: log: results/draw.log", level=logging.ERROR)
    run.say(None, "The figures with their captions")
    run.say(None, "Select jobs to execute...")
    assert run.shown[1:] == [
        "usual: Error in rule draw: log: results/draw.log",
        "usual: The figures with their captions",
    ]


def test_a_job_that_is_tried_again_counts_from_its_new_start():
    run = Run(draw=2)
    run.start(1, "draw")
    run.now += 50
    run.say("job_error", "Error in rule draw", level=logging.ERROR)
    run.start(1, "draw")
    run.now += 4
    assert run.end(1).startswith("[1/2] draw: 4 s")


def test_a_job_whose_start_was_not_told_ends_in_the_usual_words():
    run = Run(draw=1)
    assert run.end(9) == "usual: Finished jobid: 9"


def test_times_in_words():
    words = {0.2: "0 s", 89.4: "89 s", 90: "2 min", 5280: "88 min", 5400: "1 h 30 min", 7260: "2 h 1 min"}
    assert {seconds: duration(seconds) for seconds in words} == words


def test_names_of_jobs():
    assert job_name("draw_toy", {}) == "draw_toy"
    assert job_name("evaluate", {"study": "toy", "scenario": "near", "bundle": "rules"}) == "evaluate toy/near/rules"


def test_the_state_of_a_run_is_given_whenever_it_changes():
    run = Run(learn=3, all=1)
    states = run.kept
    assert states == [{"total": 4, "done": 0, "seconds_left": None, "running": [], "failed": []}]  # when it is planned
    states.clear()
    run.start(1, "learn", seed="0")
    run.start(2, "learn", seed="1")
    run.now += 10
    run.end(1)
    run.say("job_error", "Error", level=logging.ERROR, jobid=2, log=["logs/learn.log (check)"])
    assert [(state["done"], len(state["running"])) for state in states] == [(0, 1), (0, 2), (1, 1), (1, 0)]
    assert states[2]["running"] == [{"job": "learn seed-1", "seconds": 10.0}] and states[2]["seconds_left"] == 5.0
    assert states[3]["failed"] == [{"job": "learn seed-1", "logs": ["logs/learn.log (check)"]}]


STATE = {"total": 8, "done": 2, "running": [{}, {}, {}], "failed": [], "seconds_left": 300.0}
MEMORY = SimpleNamespace(total=16e9, available=12.5e9)


def test_the_line_of_a_terminal_says_how_far_the_run_is():
    said = "[#####...............] 2 of 8 jobs done, 3 running, about 5 min left; CPU 97 %, memory 3.5 of 16.0 GB"
    assert live_text(STATE, 97.2, MEMORY, 200) == said
    assert ", 3 running, 1 failed;" in live_text({**STATE, "failed": [{}], "seconds_left": None}, 0.0, MEMORY, 200)
    assert live_text({**STATE, "done": 8}, 0.0, MEMORY, 200).startswith(f"[{'#' * 20}] 8 of 8")


LONG_STATE = {"total": 1250, "done": 1000, "running": [{}] * 16, "failed": [{}] * 12, "seconds_left": 39_540.0}
LARGE_MEMORY = SimpleNamespace(total=1024e9, available=790e9)


@pytest.mark.parametrize(
    ("state", "memory", "numbers"),
    [
        (STATE, MEMORY, ["2", "8", "3 running", "5 min left", "CPU 97 %", "16.0 GB"]),
        (
            LONG_STATE,
            LARGE_MEMORY,
            ["1000", "1250", "16 running", "12 failed", "10 h 59 min left", "CPU 97 %", "234", "1024"],
        ),
    ],
)
@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_line_says_everything_in_terminals_of_the_usual_widths(monkeypatch, columns, state, memory, numbers):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("psutil.cpu_percent", lambda: 97.2)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    stream = io.StringIO()
    LiveLine(stream, lambda: state).draw()
    line = stream.getvalue().removeprefix(ERASE)
    assert len(line) < columns and [number for number in numbers if number not in line] == []
    bar = line[1 : line.index("]")]
    assert set(bar) == {"#", "."} or len(bar) == 2
    assert bar.count("#") == len(bar) * state["done"] // state["total"]
    assert (" of " in line) == (columns == 200)


def test_a_narrow_terminal_shows_the_beginning_of_the_shortest_line():
    line = live_text(LONG_STATE, 97.2, LARGE_MEMORY, 30)
    assert len(line) == 30 and line.startswith("[#.] 1000/1250, 16 running")


@pytest.fixture
def terminal(monkeypatch):
    """A stream that is a terminal, and what was written to it since the last look."""
    monkeypatch.setenv("TERM", "xterm")
    other, own = pty.openpty()

    def written():
        text = b""
        while select.select([other], [], [], 0.2)[0]:
            text += os.read(other, 100_000)
        return text.decode()

    with os.fdopen(own, "w", buffering=1) as stream:
        yield stream, written
    os.close(other)


def test_a_terminal_shows_the_line_and_messages_take_its_place(terminal, monkeypatch):
    stream, written = terminal
    monkeypatch.setenv("COLUMNS", "60")
    run = Run(draw=2, all=1)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(run.lines)
    run.lines.line = line = LiveLine(stream, run.lines.state, handler.lock, pause=0.01)
    run.start(1, "draw")
    while not line.shown:
        time.sleep(0.01)
    handler.handle(logging.makeLogRecord({"msg": "Finished", "event": "job_finished", "job_id": 1}))
    line.end()
    text = written()
    live = [part for part in text.split(ERASE) if part.startswith("[....")]
    assert live and all(re.match(r"\[\.+\] 0/3( done)?, 1 running; CPU \d+ %, ", part) for part in live)
    assert all(len(part) <= 59 for part in live)
    assert f"{ERASE}[1/3] draw: 0 s, about 0 s left\r\n" in text and text.endswith(ERASE)
    handler.handle(logging.makeLogRecord({"msg": "after", "event": None}))
    assert written() == "usual: after\r\n"


@pytest.mark.parametrize("term", ["dumb", None])
def test_what_is_no_terminal_shows_no_line(terminal, monkeypatch, tmp_path, term):
    stream, written = terminal
    monkeypatch.setenv("TERM", term) if term else monkeypatch.delenv("TERM")
    with (tmp_path / "file").open("w") as file:
        lines = [LiveLine(each, lambda: STATE, pause=0.001) for each in (stream, file)]
        time.sleep(0.05)
        for line in lines:
            line.end()
    stream.write("nothing else\n")
    assert written() == "nothing else\r\n" and not (tmp_path / "file").read_text()
