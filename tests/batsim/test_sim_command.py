"""`schedlab sim run` and `serve`: whole runs from the command line, and how failures are told."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from conformance.batsim_cases import CASES, FOLDER, read_output
from schedlab.batsim.backends.json_socket import JsonSocket
from schedlab.cli.main import main

ENDED = [case for case in CASES if (case / "out_jobs.csv").exists()]
FLAGS = {
    "-E": "--energy",
    "--enable-compute-sharing": "--compute-sharing",
    "--enable-dynamic-jobs": "--dynamic-jobs",
    "--acknowledge-dynamic-jobs": "--ack-dynamic-jobs",
    "--enable-profile-reuse": "--profile-reuse",
    "--forward-unknown-events": "--forward-unknown-events",
    "--events": "--events",
}
DELAYS = FOLDER / "03_easy_backfill_walltimes"


def inputs_of(case):
    facts = json.loads((case / "case.json").read_text())
    flags = [FLAGS.get(argument, str(case / argument)) for argument in facts["batsim_args"]]
    return ["-p", str(case / "platform.xml"), "-w", str(case / "workload.json"), "--control-latency", *flags]


def scheduler_of(case):
    facts = json.loads((case / "case.json").read_text())
    own = facts["scheduler"][0].isupper()
    name = f"{FOLDER}/schedulers_used.py:{facts['scheduler']}" if own else facts["scheduler"]
    return ["--scheduler", name, "--options", json.dumps(facts["options"])]


@pytest.mark.parametrize("case", ENDED, ids=lambda case: case.name)
def test_a_recorded_scheduler_makes_the_recorded_schedule(case, tmp_path, capsys):
    assert main(["sim", "run", *inputs_of(case), *scheduler_of(case), "--export", str(tmp_path / "out")]) == 0
    keys = ["workload_name", "job_id"]
    ours, recorded = (
        read_output(prefix, "jobs").sort_values(keys).reset_index(drop=True)
        for prefix in (tmp_path / "out", case / "out")
    )
    exact = [*keys, "final_state", "allocated_resources", "metadata"]
    pd.testing.assert_frame_equal(ours[exact], recorded[exact])
    for column in ("starting_time", "finish_time"):
        np.testing.assert_allclose(pd.to_numeric(ours[column]), pd.to_numeric(recorded[column]), rtol=0, atol=1e-5)
    energy = [pd.to_numeric(table["consumed_energy"]) for table in (ours, recorded)]
    np.testing.assert_allclose(*energy, rtol=1e-6)
    summary = read_output(case / "out", "schedule")
    printed = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert int(printed["jobs"]) == summary["nb_jobs"][0]
    assert float(printed["makespan"]) == pytest.approx(summary["makespan"][0], rel=1e-5)


def run_delays(tmp_path, *arguments, scheduler="fcfs"):
    command = [
        "-p",
        str(DELAYS / "platform.xml"),
        "-w",
        str(DELAYS / "workload.json"),
        "--export",
        str(tmp_path / "run"),
    ]
    return main(["sim", "run", *command, "--scheduler", str(scheduler), *arguments])


def files(folder):
    return sorted(file.name for file in Path(folder).iterdir() if file.name != "__pycache__")


def test_what_it_writes(tmp_path, capsys, caplog):
    assert run_delays(tmp_path, "--messages", str(tmp_path / "messages.jsonl")) == 0
    assert files(tmp_path) == ["messages.jsonl", "run_jobs.csv", "run_machine_states.csv", "run_schedule.csv"]
    assert capsys.readouterr().out.startswith("jobs: 60\nfinished: 60\nsuccessful: ")
    assert "run_jobs.csv" in caplog.text


def test_the_means_are_over_the_jobs_that_ran(tmp_path, capsys):
    decide = "job.allocation = '0'; (self.bs.execute_jobs if job.id == 'w0!1' else self.bs.reject_jobs)([job])"
    half = own_scheduler(tmp_path, decide)
    jobs = [{"id": number, "subtime": 9 * number, "res": 1, "profile": "p"} for number in range(4)]
    file = tmp_path / "delays.json"
    file.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 5}}}))
    place = ["-p", str(DELAYS / "platform.xml"), "-w", str(file), "--export", str(tmp_path / "run")]
    assert main(["sim", "run", *place, "--scheduler", str(half)]) == 0
    printed = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    means = [float(printed[f"mean_{name}"]) for name in ("waiting_time", "turnaround_time", "slowdown")]
    assert means == [0, 5, 1] and printed["rejected"] == "3"
    written = read_output(tmp_path / "run", "schedule")  # as Batsim's: a rejected job counts as 0
    assert (written["mean_slowdown"][0], written["mean_turnaround_time"][0]) == (0.25, 1.25)


def test_two_runs_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert run_delays(tmp_path / name, "--messages", str(tmp_path / name / "m.jsonl"), scheduler="easy") == 0
    for file in files(tmp_path / "a"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_the_prints_of_a_scheduler_do_not_mix_with_results(tmp_path, capsys):
    assert run_delays(tmp_path, scheduler="fillerSched") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 10
    assert "openJobs" in captured.err


def test_a_scheduler_of_the_high_level_api_writes_its_events_beside_the_outputs(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run_delays(tmp_path, scheduler="schedFcfs") == 0
    assert "run_events.csv" in files(tmp_path)
    assert files(tmp_path / "elsewhere") == []


def workload_of_delays(tmp_path, first):
    """Three jobs of 5 s, the first at a date."""
    jobs = [{"id": number, "subtime": first + number, "res": 1, "walltime": 60, "profile": "p"} for number in range(3)]
    file = tmp_path / "delays.json"
    file.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 5}}}))
    return str(file)


@pytest.mark.parametrize("scheduler", ["schedFcfs", "schedFiller", "schedEasySjfBackfill"])
def test_a_high_level_scheduler_that_cannot_start_a_job_at_0_is_told_with_the_remedy(tmp_path, capsys, scheduler):
    command = [
        "sim",
        "run",
        "-p",
        str(DELAYS / "platform.xml"),
        "--scheduler",
        scheduler,
        "--export",
        str(tmp_path / "new/run"),
    ]
    assert main([*command, "-w", workload_of_delays(tmp_path, 0)]) == 1
    error = capsys.readouterr().err
    assert re.search(f"error: the scheduler {scheduler[0].upper()}{scheduler[1:]} raised AssertionError", error), error
    assert "--first-submit 1" in error
    assert files(tmp_path / "new") == []
    assert main([*command, "-w", workload_of_delays(tmp_path, 1)]) == 0
    assert files(tmp_path / "new") == ["run_events.csv", "run_jobs.csv", "run_machine_states.csv", "run_schedule.csv"]


def test_each_run_of_a_high_level_scheduler_has_its_own_events(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert run_delays(tmp_path / name, scheduler="schedFcfs") == 0
    assert (tmp_path / "a/run_events.csv").read_bytes() == (tmp_path / "b/run_events.csv").read_bytes()
    assert (tmp_path / "a/run_events.csv").read_text().count("Simulation ends") == 1


def test_quiet_drops_what_a_scheduler_prints(tmp_path, capsys):
    assert run_delays(tmp_path, "--quiet", scheduler="fillerSched") == 0
    captured = capsys.readouterr()
    assert "openJobs" not in captured.err + captured.out
    assert run_delays(tmp_path, "--quiet", scheduler=own_scheduler(tmp_path, "{}['x']")) == 1
    assert "KeyError" in capsys.readouterr().err


SCHEDULER = """
import time
from batsim.batsim import BatsimScheduler
class Mine(BatsimScheduler):
    def onJobSubmission(self, job):
        ACTION
    def onJobCompletion(self, job):
        pass
"""


def own_scheduler(tmp_path, action):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "mine.py").write_text(SCHEDULER.replace("ACTION", action))
    return folder / "mine.py"


FAILURES = {
    "raises": ("{}['x']", "error: the scheduler Mine raised KeyError: 'x', in .*mine.py:6 "),
    "hangs": ("while True: pass", "error: the scheduler Mine did not answer within 0.5 s"),
    "never decides": ("pass", "error: .*60 jobs wait"),
    "breaks a rule": ("job.allocation = '0-99'; self.bs.execute_job(job)", 'error: event {.*"EXECUTE_JOB"'),
    "calls the past": ("self.bs.wake_me_up_at(0)", 'error: event {.*"CALL_ME_LATER"'),
    "leaves": ("raise SystemExit(0)", "error: the scheduler Mine raised SystemExit"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_scheduler_that_fails_is_told_and_leaves_no_output(tmp_path, capsys, failure):
    action, message = FAILURES[failure]
    scheduler = own_scheduler(tmp_path, action)
    status = run_delays(
        tmp_path, "--scheduler-limit", "0.5", "--messages", str(tmp_path / "m.jsonl"), scheduler=scheduler
    )
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    assert re.match(message, captured.err), captured.err
    assert "Traceback" not in captured.err
    assert files(tmp_path) == ["m.jsonl.partial", "own"]


def test_a_traceback_is_shown_where_asked_for(tmp_path, capsys):
    assert run_delays(tmp_path, "--traceback", scheduler=own_scheduler(tmp_path, "{}['x']")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_scheduler_file_that_hangs_while_it_is_loaded_is_stopped(tmp_path, capsys):
    file = tmp_path / "slow.py"
    file.write_text("import time\ntime.sleep(60)\n")
    assert run_delays(tmp_path, "--scheduler-limit", "0.3", scheduler=file) == 1
    assert "could not be loaded within 0.3 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--options", "{"], "--options: is no valid JSON"),
        (["--options", "[" * 100_000], "--options: is no valid JSON"),
        (["--options", '{"priority": NaN}'], "NaN is no number of JSON"),
        (["--options", "[]"], "--options: no JSON object"),
        (["--options", '{"priority": "sjf"}'], "unknown option 'priority' of Fcfs"),
        (["--scheduler", "esy"], "did you mean 'easy'"),
        (["--events", "nosuch.txt"], "nosuch.txt"),
        (["--master-host", "boss"], "boss"),
        (["--backend", "batsim", "--batsim", "no-such-binary"], "no program 'no-such-binary'"),
        (["--messages", "/"], "/: is a folder"),
    ],
)
def test_wrong_input_is_told_with_status_2(tmp_path, capsys, arguments, message):
    assert run_delays(tmp_path, *arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mmax", "-3"], "'-3' is no number of hosts"),
        (["--mmax", "all"], "'all' is no number of hosts"),
        (["--scheduler-limit", "nan"], "'nan' is no number of seconds from 0 to 1e+06"),
        (["--scheduler-limit", "1e300"], "'1e300' is no number of seconds"),
        (["--simulator-limit", "soon"], "'soon' is no number of seconds"),
    ],
)
def test_impossible_numbers_on_the_command_line_are_told(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as left:
        run_delays(tmp_path, *arguments)
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_a_misspelt_option_is_told_by_its_command_with_the_one_meant(tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        run_delays(tmp_path, "--netwrk", "ignore")
    assert left.value.code == 2
    error = capsys.readouterr().err.partition("schedlab sim run: error: ")[2]  # behind the usage of all options
    assert "--netwrk" in error and "--network?" in error


def test_the_summary_has_every_digit_and_the_killed_jobs(tmp_path, capsys):
    assert run_on_managed_cores(tmp_path, "easyBackfill", COMPUTES) == 0
    assert "successful: 0\nkilled: 1\n" in capsys.readouterr().out
    assert run_delays(tmp_path) == 0
    printed = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    row = read_output(tmp_path / "run", "schedule")
    assert (
        float(printed["makespan"]) == row["makespan"][0] and float(printed["mean_slowdown"]) == row["mean_slowdown"][0]
    )


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemExit(0)",
        SCHEDULER.replace("ACTION", "pass") + "    def __init__(self, options):\n        raise SystemExit(0)\n",
    ],
)
def test_a_scheduler_that_leaves_while_it_is_made_is_told(tmp_path, capsys, text):
    (tmp_path / "mine.py").write_text(text)
    assert run_delays(tmp_path, scheduler=tmp_path / "mine.py") == 2
    assert "SystemExit: 0" in capsys.readouterr().err
    assert files(tmp_path) == ["mine.py"]


@pytest.mark.parametrize("backend", ["embedded", "batsim"])
def test_a_prefix_may_be_a_folder(tmp_path, monkeypatch, backend):
    binary = stand_in(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path / "bin")
    choice = ["--backend", backend, "--batsim", str(binary), "--export", "sub/"]
    assert run_delays(tmp_path, *choice, scheduler="easyBackfill") == 0
    assert {"_jobs.csv", "_machine_states.csv", "_schedule.csv"} <= set(files(tmp_path / "bin" / "sub"))
    assert files(tmp_path) == ["bin"]


def test_what_json_cannot_hold_is_told_where_the_conversation_is_recorded(tmp_path, capsys):
    call = (
        "self.bs._events_to_send.append({'timestamp': self.bs.time(), 'type': 'REJECT_JOB', 'data': {'job_id': {1}}})"
    )
    scheduler = own_scheduler(tmp_path, call)
    assert run_delays(tmp_path, "--messages", str(tmp_path / "m.jsonl"), scheduler=scheduler) == 1
    error = capsys.readouterr().err
    assert "set {1} cannot be written as JSON" in error
    assert "Traceback" not in error


COMPUTING = {"nb_res": 1, "jobs": [{"id": 0, "subtime": 0, "res": 1, "walltime": 60, "profile": "p"}]}
PSTATE_SETTER = """
from batsim.batsim import BatsimScheduler
from procset import ProcSet
class Mine(BatsimScheduler):
    def onJobSubmission(self, job):
        self.bs.set_resource_state(ProcSet(0), 0)
        job.allocation = ProcSet(0)
        self.bs.execute_job(job)
    def onMachinePStateChanged(self, nodeid, pstate):
        pass
    def onJobCompletion(self, job):
        pass
"""


def run_on_managed_cores(tmp_path, scheduler, profile, *arguments):
    """A workload of one job on cores that begin in a pstate of 0.001 flop/s."""
    assert main(["platform", "generate", "synthetic", str(tmp_path / "platform.xml")]) == 0
    (tmp_path / "workload.json").write_text(json.dumps(COMPUTING | {"profiles": {"p": profile}}))
    files = [
        "-p",
        str(tmp_path / "platform.xml"),
        "-w",
        str(tmp_path / "workload.json"),
        "--export",
        str(tmp_path / "run"),
    ]
    return main(["sim", "run", *files, "--scheduler", str(scheduler), *arguments])


COMPUTES = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}


def test_our_schedulers_refuse_cores_that_begin_in_a_pstate_that_computes_nothing(tmp_path, capsys):
    assert run_on_managed_cores(tmp_path, "easy", COMPUTES) == 2
    error = capsys.readouterr().err
    assert "platform.xml: 64 " in error and " easy " in error
    assert "--set pstates.managed=false" in error
    assert not (tmp_path / "run_jobs.csv").exists()


def test_pstates_do_not_matter_to_jobs_that_only_take_time(tmp_path, caplog):
    assert run_on_managed_cores(tmp_path, "easy", {"type": "delay", "delay": 5}) == 0
    assert "warning" not in caplog.text


def test_other_schedulers_that_set_no_pstate_are_warned_of_in_one_line(tmp_path, caplog):
    assert run_on_managed_cores(tmp_path, "easyBackfill", COMPUTES) == 0
    (warning,) = [record.message for record in caplog.records if "warning" in record.message]
    assert all(part in warning for part in ("64 hosts", "0 of 1 jobs", "1 killed", "0 rejected"))
    assert "--set pstates.managed=false" in warning


def test_a_scheduler_that_sets_pstates_is_not_warned_of(tmp_path, caplog):
    (tmp_path / "mine.py").write_text(PSTATE_SETTER)
    assert run_on_managed_cores(tmp_path, tmp_path / "mine.py", COMPUTES, "--energy") == 0
    assert "warning" not in caplog.text


def test_a_run_without_any_success_is_warned_of(tmp_path, caplog):
    assert run_delays(tmp_path, scheduler=own_scheduler(tmp_path, "self.bs.reject_jobs([job])")) == 0
    assert all(part in caplog.text for part in ("warning: 0 of 60 jobs", "0 killed", "60 rejected"))


def test_the_same_call_runs_a_real_batsim(tmp_path, monkeypatch, capsys):
    binary = stand_in(tmp_path, monkeypatch)
    assert run_delays(tmp_path, "--backend", "batsim", "--batsim", str(binary), scheduler="easyBackfill") == 0
    printed = capsys.readouterr().out
    ours = tmp_path / "embedded"
    assert run_delays(ours, scheduler="easyBackfill") == 0
    assert capsys.readouterr().out == printed
    assert (tmp_path / "run_jobs.csv").read_text() == (ours / "run_jobs.csv").read_text()


def stand_in(tmp_path, monkeypatch):
    binary = tmp_path / "bin" / "batsim"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("stand_in_batsim.py")} "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("STAND_IN_CASE", str(DELAYS))
    monkeypatch.setenv("STAND_IN_CALL", str(tmp_path / "bin" / "call.json"))
    return binary


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_run_that_is_ended_ends_the_batsim_process(tmp_path, monkeypatch, number, status):
    if number == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("only Linux ends a child with its parent")
    binary = stand_in(tmp_path, monkeypatch)
    monkeypatch.setenv("STAND_IN_MODE", "silent")
    process = start("run", tmp_path, "--scheduler", "easyBackfill", "--backend", "batsim", "--batsim", str(binary))
    call = tmp_path / "bin" / "call.json"
    wait_until(lambda: call.exists() and call.read_text())
    process.send_signal(number)
    assert process.wait(10) == status
    child = json.loads(call.read_text())["pid"]
    wait_until(lambda: not Path(f"/proc/{child}").exists() or "zombie" in Path(f"/proc/{child}/status").read_text())


def start(command, tmp_path, *arguments):
    inputs = [
        "-p",
        str(DELAYS / "platform.xml"),
        "-w",
        str(DELAYS / "workload.json"),
        "--export",
        str(tmp_path / "run"),
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "schedlab.cli.main", "sim", command, *inputs, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ,
    )


def wait_until(holds, seconds=15.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_serve_runs_pybatsims_own_launcher_at_the_other_end(tmp_path):
    with JsonSocket("REP", "tcp://127.0.0.1:*", bind=True) as socket:
        endpoint = socket.endpoint
    served = start("serve", tmp_path, "--endpoint", endpoint, "--scheduler-limit", "30")
    launcher = shutil.which("pybatsim", path=str(Path(sys.executable).parent))
    assert launcher, "PyBatsim's launcher belongs to PyBatsim"
    scheduler = subprocess.run(
        [launcher, "easyBackfill", "-s", endpoint, "-t", "20000"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    out, err = served.communicate(timeout=30)
    assert (served.returncode, scheduler.returncode) == (0, 0), err + scheduler.stderr
    assert out.startswith("jobs: 60\n")
    assert (tmp_path / "run_jobs.csv").read_text() == (DELAYS / "out_jobs.csv").read_text()


def test_the_scheduler_of_the_documentation_works(tmp_path, repository):
    blocks = re.findall(r"```python\n(.*?)```", (repository / "docs/reference/batsim.md").read_text(), re.DOTALL)
    block = next(block for block in blocks if "import json, zmq" in block)
    with JsonSocket("REP", "tcp://127.0.0.1:*", bind=True) as socket:
        endpoint = socket.endpoint
    (tmp_path / "scheduler.py").write_text(block.replace("tcp://127.0.0.1:28000", endpoint))
    served = start("serve", tmp_path, "--endpoint", endpoint, "--scheduler-limit", "30")
    subprocess.run([sys.executable, "scheduler.py"], cwd=tmp_path, timeout=60, check=True)
    out, err = served.communicate(timeout=30)
    assert served.returncode == 0, err
    assert run_delays(tmp_path / "ours", scheduler="fcfs") == 0
    assert out.startswith("jobs: 60\n")
    assert (tmp_path / "run_jobs.csv").read_text() == (tmp_path / "ours" / "run_jobs.csv").read_text()


def test_serve_gives_up_where_no_scheduler_comes(tmp_path, capsys):
    inputs = [
        "-p",
        str(DELAYS / "platform.xml"),
        "-w",
        str(DELAYS / "workload.json"),
        "--export",
        str(tmp_path / "run"),
    ]
    assert main(["sim", "serve", *inputs, "--bind", "--endpoint", "tcp://127.0.0.1:*", "--scheduler-limit", "0.3"]) == 1
    assert "no scheduler answered" in capsys.readouterr().err
    assert files(tmp_path) == []


def test_serve_stays_on_this_machine_unless_told_otherwise(tmp_path, capsys):
    inputs = [
        "-p",
        str(DELAYS / "platform.xml"),
        "-w",
        str(DELAYS / "workload.json"),
        "--export",
        str(tmp_path / "run"),
    ]
    assert main(["sim", "serve", *inputs, "--bind", "--endpoint", "tcp://*:28000"]) == 2
    assert "--anywhere" in capsys.readouterr().err
