"""The command line of Batsim 4.2 on the embedded simulator."""

from __future__ import annotations

import json
import os
import re
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import zmq

from conformance.batsim_cases import FOLDER
from schedlab.cli.batsim import OPTIONS, _roles
from schedlab.cli.main import main
from schedlab.config.plugins import load_object

PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
<host id="boss" speed="0f"><prop id="role" value="master"/></host>
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><host id="c" speed="1Gf"/>
<link id="l" bandwidth="1GBps" latency="0us"/>
<route src="a" dst="c"><link_ctn id="l"/></route><route src="b" dst="c"><link_ctn id="l"/></route>
</zone></platform>"""
JOBS = [{"id": number, "subtime": number, "res": 1, "walltime": 100, "profile": "d"} for number in range(3)]
PROFILES = {
    "d": {"type": "delay", "delay": 5},
    "io": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1e9},
    "any": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0},
}
Files = tuple[str, ...]
ROWS = ("job_id", "starting_time", "execution_time", "allocated_resources")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """A platform of three hosts and a workload of three delays of 5 s, as arguments."""
    monkeypatch.chdir(tmp_path)
    Path("p.xml").write_text(PLATFORM)
    write_jobs(JOBS)
    return ("-p", "p.xml", "-w", "w.json")


def write_jobs(jobs: list[dict[str, Any]]) -> None:
    Path("w.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": PROFILES}))


def batsim(*arguments: str) -> int:
    return main(["sim", "batsim", *arguments])


def jobs(prefix: str = "out") -> list[tuple[Any, ...]]:
    table = pd.read_csv(f"{prefix}_jobs.csv", dtype={"allocated_resources": str})
    return list(table[list(ROWS)].sort_values("job_id").itertuples(index=False, name=None))


def test_a_scheduler_in_this_process(files: Files) -> None:
    assert batsim(*files, "--embedded-scheduler", "fcfs", "--mmax-workload") == 0
    assert jobs() == [(0, 0, 5, "0"), (1, 1, 5, "1"), (2, 5, 5, "0")]
    assert sorted(path.name for path in Path().glob("out_*")) == [
        "out_jobs.csv",
        "out_machine_states.csv",
        "out_schedule.csv",
        "out_schedule.trace",
    ]


def test_without_a_scheduler_jobs_run_one_by_one(files: Files) -> None:
    assert batsim(*files, "--no-sched", "-e", "one", "--disable-machine-state-tracing", "-q") == 0
    assert jobs("one") == [(0, 0, 5, "0"), (1, 5, 5, "0"), (2, 10, 5, "0")]
    assert not Path("one_machine_states.csv").exists()


def test_without_a_scheduler_no_message_takes_time(files: Files) -> None:
    way = '<link id="m" bandwidth="1GBps" latency="1s"/><route src="boss" dst="a"><link_ctn id="m"/></route></zone>'
    Path("p.xml").write_text(PLATFORM.replace("</zone>", way))
    assert batsim(*files, "--no-sched", "-q") == 0
    assert jobs() == [(0, 0, 5, "0"), (1, 5, 5, "0"), (2, 10, 5, "0")]
    assert batsim(*files, "--mmax", "1", "--embedded-scheduler", "fcfs", "-q") == 0
    assert jobs() == [(0, 0, 5, "0"), (1, 6, 5, "0"), (2, 12, 5, "0")], "a scheduler waits for each completion"


@pytest.mark.parametrize("number", ["0", "-1"])
def test_no_limit_of_compute_hosts(number: str, files: Files) -> None:
    assert batsim(*files, "--mmax", number, "--embedded-scheduler", "fcfs", "-q") == 0
    assert jobs() == [(0, 0, 5, "0"), (1, 1, 5, "1"), (2, 2, 5, "2")]


def test_the_schedule_as_a_trace_of_paje(files: Files) -> None:
    """Two machines; jobs 0 and 1 run for 5 s, job 2 is ended by its walltime at 7 s."""
    loaded = json.loads(Path("w.json").read_text())
    loaded["jobs"][2]["walltime"] = 2
    Path("w.json").write_text(json.dumps(loaded))
    assert batsim(*files, "--embedded-scheduler", "fcfs", "--mmax-workload") == 0
    lines = Path("out_schedule.trace").read_text().splitlines()
    kinds = {line.split()[1]: line.split()[2] for line in lines if line.startswith("%EventDef")}
    assert (kinds["PajeSetState"], kinds["PajeNewEvent"], kinds["PajeDestroyContainer"]) == ("6", "8", "3")
    events = [line.split() for line in lines if line and not line.startswith("%")]
    assert [(event[1], event[3], event[4]) for event in events if event[0] == "6"] == [
        *(("0.000000", f"m{number}", "w") for number in range(2)),
        ("0.000000", "m0", "jw0!0"), ("1.000000", "m1", "jw0!1"), ("5.000000", "m0", "w"),
        ("5.000000", "m0", "jw0!2"), ("6.000000", "m1", "w"), ("7.000000", "m0", "w"),
    ]  # fmt: skip
    assert [event[1:] for event in events if event[0] == "8"] == [
        ["7.000000", "kk", "k", '"w0!2"'], ["7.000000", "km", "m0", '"w0!2"'],
    ]  # fmt: skip
    assert [event[2] for event in events if event[0] == "3"] == ["m0", "m1", "root"]
    assert batsim(*files, "--no-sched", "-e", "none", "--disable-schedule-tracing") == 0
    assert not Path("none_schedule.trace").exists()


def test_roles_make_storage_hosts(files: Files) -> None:
    loaded = json.loads(Path("w.json").read_text())
    loaded["jobs"] = [{"id": 0, "subtime": 0, "res": 2, "profile": "io"}]
    Path("w.json").write_text(json.dumps(loaded))
    assert batsim(*files, "--no-sched", "-r", "c:storage") == 0
    assert jobs() == [(0, 0, 2, "0-1")], "2 GB over the one link of 1 GB/s"


def answering(
    endpoint: str, answer: Callable[[dict[str, Any]], bytes | None], last: bytes | None = None
) -> threading.Thread:
    """A scheduler at an endpoint, in a thread; it leaves where its answer is None, and after its last one."""
    socket = zmq.Context.instance().socket(zmq.REP)
    socket.linger = 1000
    socket.bind(endpoint)

    def converse() -> None:
        while True:
            message = json.loads(socket.recv())
            reply = answer(message)
            if reply is not None:
                socket.send(reply)
            if reply in (None, last) or message["events"][0]["type"] == "SIMULATION_ENDS":
                socket.close()
                return

    thread = threading.Thread(target=converse, daemon=True)
    thread.start()
    return thread


def all_at_once(message: dict[str, Any]) -> bytes:
    started = [event["data"]["job_id"] for event in message["events"] if event["type"] == "JOB_SUBMITTED"]
    decisions = [
        {"timestamp": message["now"], "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": job[-1]}}
        for job in started
    ]
    return json.dumps({"now": message["now"], "events": decisions}).encode()


def test_messages_with_a_scheduler_at_a_socket_are_logged_as_batsim_does(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    thread = answering("ipc://./socket", all_at_once)
    assert batsim(*files, "-s", "ipc://./socket", "--sched-cfg", "hello", "-v", "network-only") == 0
    thread.join(5)
    assert jobs() == [(0, 0, 5, "0"), (1, 1, 5, "1"), (2, 2, 5, "2")]
    lines = [record.message for record in caplog.records]
    found = [re.fullmatch(r"\[.* (\d+\.\d{6})\] \[network/INFO\] (Sending|Received) '(.*)'", line) for line in lines]
    assert [match[2] for match in found if match] == ["Sending", "Received"] * (len(lines) // 2)
    first = json.loads(found[0][3])["events"][0]
    assert first["data"]["config"]["sched-config"] == "hello" and first["type"] == "SIMULATION_BEGINS"
    submitted = [json.loads(match[3]) for match in found if "JOB_SUBMITTED" in match[3]]
    assert [float(match[1]) for match in found if "JOB_SUBMITTED" in match[3]] == [said["now"] for said in submitted]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"\xff garbage", "not a JSON message"),
        (b'{"now": 1.0, "events"', "not a JSON message"),
        (b'{"now": 1.0, "events": [{"timestamp": 1.0, "type": "DANCE", "data": {}}]}', "'DANCE' is unknown"),
        (None, "the scheduler left"),
        (b"late", "within 0.5 s"),
    ],
)
def test_a_scheduler_that_fails_ends_the_run_and_leaves_what_ran(
    answer: bytes | None, expected: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    asleep = threading.Event()

    def failing(message: dict[str, Any]) -> bytes | None:
        if message["now"] < 5 or message["events"][0]["type"] != "JOB_COMPLETED":
            return all_at_once(message)
        if answer == b"late":
            asleep.wait(3)
        return answer

    thread = answering("ipc://./socket", failing, last=answer)
    assert batsim(*files, "-s", "ipc://./socket", "--scheduler-limit", "0.5" if answer == b"late" else "20", "-q") == 1
    asleep.set()
    thread.join(5)
    assert not thread.is_alive()
    error = capsys.readouterr().err
    assert expected in error and "Traceback" not in error and len(error.splitlines()) == 1
    assert jobs() == [(0, 0, 5, "0")]
    assert pd.read_csv("out_schedule.csv")["nb_jobs_finished"][0] == 1


def test_a_job_that_cannot_run_leaves_what_ran_before(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    workload = json.loads(Path("w.json").read_text())
    workload["jobs"][1]["res"] = 9
    Path("w.json").write_text(json.dumps(workload))
    assert batsim(*files, "--no-sched") == 2
    assert "'w0!1' asks for 9 hosts" in capsys.readouterr().err
    assert jobs() == [(0, 0, 5, "0")]


def test_rejected_jobs_that_request_more_hosts_than_there_are_are_named(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    workload = json.loads(Path("w.json").read_text())
    workload["jobs"][0]["res"] = workload["jobs"][2]["res"] = 4
    Path("w.json").write_text(json.dumps(workload))
    assert batsim(*files, "--embedded-scheduler", "fcfs", "-q") == 0
    assert [row[0] for row in jobs() if row[3] == "0"] == [1]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert {"2", "3", "w0!0", "w0!2"} <= set(re.findall(r"[\w!]+", warning)) and "w0!1" not in warning


def test_inputs_may_come_through_a_pipe_and_a_folder_is_none(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_text(PLATFORM), daemon=True)
    writer.start()
    assert batsim("-p", "pipe", *files[2:], "--no-sched", "-q") == 0
    assert batsim("-p", ".", *files[2:], "--no-sched") == 1
    assert batsim(*files, "--events", ".", "--no-sched") == 2
    assert capsys.readouterr().err.count("folder") == 2


def test_nobody_at_the_socket(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert batsim(*files, "-s", "ipc://./nobody", "--scheduler-limit", "0.3") == 1
    assert "no scheduler answered" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "status", "expected"),
    [
        (["--enable-redis"], 2, "--enable-redis"),
        (["-W", "x.dax"], 2, "--workflow"),
        (["--WS", "x.dax", "3"], 2, "--WS"),
        (["--sg-cfg", "network/model:CM02"], 2, "--sg-cfg"),
        (["--enable-profile-reuse"], 2, "--enable-profile-reuse"),
        (["--mmax", "9"], 2, "--mmax: asks for 9 compute hosts"),
        (["--mmax", "many"], 2, "--mmax"),
        (["--mmax", "1.5"], 2, "--mmax"),
        (["-r", "a"], 2, "--add-role-to-hosts"),
        (["-r", "a:king"], 2, "p.xml: line 4: host 'a', role: 'king' is no role"),
        (["-m", "a", "-r", "a:compute_node"], 2, "--add-role-to-hosts"),
        (["-m", "a", "-r", "b,a:storage"], 2, "master host 'a'"),
        (["-r", "x:storage"], 2, "no host is named 'x'"),
        (["-m", "a"], 2, "2 hosts are masters: a, boss"),
        (["--sched-cfg", "x", "--sched-cfg-file", "y"], 2, "--sched-cfg"),
        (["--events", "nosuch.txt"], 2, "nosuch.txt"),
        (["-w", "nosuch.json"], 2, "nosuch.json"),
        (["-p", "nosuch.xml"], 1, "nosuch.xml"),
        (["-s", "localhost:28000"], 2, "is no endpoint"),
        (["--embedded-scheduler", "fcsf"], 2, "did you mean 'fcfs'"),
        (["--embedded-scheduler", "fcfs", "--embedded-options", "{"], 2, "--embedded-options"),
        (["-E", "--no-sched"], 2, "p.xml: line 4: host 'a', wattage_per_state"),
    ],
)
def test_what_is_wrong_or_not_available_is_one_sentence(
    more: list[str], status: int, expected: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert batsim(*files, "--disable-schedule-tracing", *more) == status
    error = capsys.readouterr().err
    assert expected in error and len(error.splitlines()) == 1 and error.startswith("error: ")
    assert not list(Path().glob("out_*"))


@pytest.mark.parametrize("scheduler", [("--no-sched",), ("--embedded-scheduler", "fcfs"), ("-s", "ipc://./nobody")])
def test_a_workload_of_which_no_job_fits_is_refused_before_it_runs(
    scheduler: tuple[str, ...], files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jobs([{**job, "res": 4} for job in JOBS])
    assert batsim(*files, *scheduler) == 2
    error = capsys.readouterr().err
    assert "w.json" in error and "'w0!0' for 4" in error and len(error.splitlines()) == 1
    assert not list(Path().glob("out_*"))


REJECTING = """from batsim.batsim import BatsimScheduler
class Mine(BatsimScheduler):
    def onJobSubmission(self, job):
        self.bs.reject_jobs([job])
    def onNoMoreJobsInWorkloads(self):
        if self.bs.dynamic_job_registration_enabled:
            self.bs.notify_registration_finished()
"""


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ([{}, {"res": 4}, {"res": 4}], ()),
        ([{"res": 4}] * 2 + [{"res": 4, "profile": "any"}], ()),
        ([{"res": 4}] * 3, ("--enable-dynamic-jobs",)),
    ],
    ids=["one job fits", "one takes any number of hosts", "the scheduler may register others"],
)
def test_larger_jobs_are_left_to_the_scheduler_where_one_may_run(
    changes: list[dict[str, Any]], more: tuple[str, ...], files: Files
) -> None:
    write_jobs([{**job, **change} for job, change in zip(JOBS, changes, strict=True)])
    Path("mine.py").write_text(REJECTING)
    assert batsim(*files, *more, "--embedded-scheduler", "mine.py", "-q") == 0
    assert set(pd.read_csv("out_jobs.csv")["final_state"]) == {"REJECTED"}


@pytest.mark.parametrize("alloc", ["0-3", "3", "0-2"])
def test_a_larger_job_that_a_scheduler_starts_ends_the_run(
    alloc: str, files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jobs([*JOBS[:2], {**JOBS[2], "res": 4}])
    endpoint = f"ipc://{tmp_path}/s"

    def reply(message: dict[str, Any]) -> bytes:
        starts = {"w0!0": "0", "w0!1": "1", "w0!2": alloc}
        names = [event["data"]["job_id"] for event in message["events"] if event["type"] == "JOB_SUBMITTED"]
        datas = [{"job_id": name, "alloc": starts[name]} for name in names]
        decisions = [{"timestamp": message["now"], "type": "EXECUTE_JOB", "data": data} for data in datas]
        return json.dumps({"now": message["now"], "events": decisions}).encode()

    answering(endpoint, reply)
    assert batsim(*files, "-s", endpoint, "-q") == 1
    error = capsys.readouterr().err
    assert "EXECUTE_JOB" in error and len(error.splitlines()) == 1
    assert len(pd.read_csv("out_schedule.csv")) == 1 and pd.read_csv("out_jobs.csv").empty


@pytest.mark.parametrize(
    ("speeds", "sleep", "attribute"),
    [
        ("1Gf,1f", "1:2:3", "sleep_pstates"),
        ("1Gf,0f", "", "speed"),
        ("0f,1Gf", "", "speed"),
        ("1Gf", "", "wattage_per_state"),
    ],
)
def test_a_host_that_cannot_be_simulated_is_named_with_file_and_line(
    speeds: str, sleep: str, attribute: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    power = '<prop id="wattage_per_state" value="1:2,1:1"/>'
    host = f'<host id="a" speed="{speeds}">{power}<prop id="sleep_pstates" value="{sleep}"/></host>'
    Path("p.xml").write_text(PLATFORM.replace('<host id="a" speed="1Gf"/>', "\n" + host))
    assert batsim(*files, "-E", "--no-sched") == 2
    assert f"p.xml: line 5: host 'a', {attribute}" in capsys.readouterr().err


def test_options_that_change_nothing_are_taken(files: Files) -> None:
    harmless = ["--redis-port", "1", "--workflow-jobs-limit", "2", "--sg-log", "root.thresh:debug", "--no-sched", "-q"]
    assert batsim(*files, *harmless, "--sg-cfg", "contexts/stack-size:16", "--ignore-beyond-last-workflow") == 0


def test_the_execution_context(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert batsim(*files, "--dump-execution-context", "-e", "x", "-s", "tcp://localhost:1") == 0
    context = json.loads(capsys.readouterr().out)
    assert (context["socket_endpoint"], context["export_prefix"]) == ("tcp://localhost:1", "x")
    assert context["external_scheduler"] is True and context["redis_enabled"] is False


@pytest.mark.parametrize("flag", ["--version", "--simgrid-version", "--help"])
def test_what_is_printed_and_ends_well(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        batsim(flag)
    assert left.value.code == 0 and re.match(r"\d+\.\d+|usage: batsim ", capsys.readouterr().out)


def test_a_recorded_run_is_repeated_with_batsims_own_arguments(tmp_path: Path) -> None:
    """Completions reach the scheduler after the network's latency, as in Batsim."""
    for name in ("03_easy_backfill_walltimes", "08_comm_cluster", "20_external_events"):
        case = FOLDER / name
        about = json.loads((case / "case.json").read_text())
        more = [str(case / word) if (case / word).is_file() else word for word in about["batsim_args"]]
        replayed = [json.loads(line)["msg"] for line in (case / "protocol.jsonl").read_text().splitlines()][1::2]
        replies = iter([json.dumps(message).encode() for message in replayed])
        endpoint = f"ipc://{tmp_path}/{name[:2]}"
        thread = answering(endpoint, lambda _message, replies=replies: next(replies))
        inputs = ["-p", str(case / "platform.xml"), "-w", str(case / "workload.json"), "-e", str(tmp_path / name)]
        assert batsim(*inputs, *more, "-s", endpoint, "-q") == 0
        thread.join(5)
        ours, recorded = (pd.read_csv(f"{prefix}_jobs.csv") for prefix in (tmp_path / name, case / "out"))
        columns = ["job_id", "final_state", "allocated_resources"]
        assert ours[columns].astype(str).equals(recorded[columns].astype(str))
        for column in ("starting_time", "finish_time"):
            assert ours[column].tolist() == pytest.approx(recorded[column].tolist(), abs=1e-5, nan_ok=True)


def test_the_stencil_tutorial(shared_data: Path, tmp_path: Path) -> None:
    """What Batsim's own test asks: jobs that share the network or the storage take longer."""
    inputs = shared_data / "cases/batsim_files"
    platform, workload = inputs / "platforms/cluster512_pfs.xml", inputs / "workloads/test_tuto_stencil.json"
    arguments = ["-p", str(platform), "-w", str(workload), "-e", str(tmp_path / "out"), "-q"]
    assert batsim(*arguments, "--embedded-scheduler", "fcfs") == 0
    took = pd.read_csv(tmp_path / "out_jobs.csv").sort_values("job_id")["execution_time"].tolist()
    assert all(took[0] < took[job] for job in (1, 2, 3, 4)) and took[3] < took[2] and took[4] < took[2]
    assert all(took[4] < took[job] for job in (5, 6, 7, 8))


def test_the_energy_command_of_the_page_for_users_of_batsim(
    repository: Path, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (repository / "docs/guide/coming_from/batsim.md").read_text()
    command = re.search(r"^batsim (-p platforms/.* -E .*)$", page, flags=re.M)
    Path("events.txt").write_text(re.search(r"```json\n(.*?)```", page, flags=re.S)[1])
    for name in ("platforms", "workloads"):
        Path(name).symlink_to(shared_data / "cases/batsim_files" / name)
    assert batsim(*command[1].split(), "--embedded-scheduler", "fcfs", "-q") == 0
    assert pd.read_csv("energy/out_schedule.csv")["consumed_joules"].item() > 0


def test_a_storage_label_without_a_storage_host_is_answered_by_the_role_that_helps(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = shared_data / "cases/batsim_files"
    platform, workload = inputs / "platforms/small_platform_pfs0.xml", inputs / "workloads/test_tuto_stencil.json"
    arguments = ["-p", str(platform), "-w", str(workload), "-e", str(tmp_path / "out"), "-q"]
    assert batsim(*arguments, "--embedded-scheduler", "fcfs") == 1
    error = capsys.readouterr().err
    assert "'pfs'" in error and (role := re.search(r"-r (\S+:storage)", error))
    assert batsim(*arguments, "--embedded-scheduler", "fcfs", "-r", role[1]) == 0


def test_the_console_script_and_every_option_of_batsim(repository: Path) -> None:
    scripts = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["scripts"]
    assert callable(load_object(scripts["batsim"]))
    known = {flag for options in OPTIONS.values() for option in options for flag in option.flags}
    assert known >= {
        *("-p", "-w", "-W", "--WS", "--events", "-m", "-r", "-E", "-s", "--enable-redis", "-e", "--mmax", "-v", "-q"),
        *("--disable-schedule-tracing", "--disable-machine-state-tracing", "--mmax-workload", "--enable-dynamic-jobs"),
        *("--forward-profiles-on-submission", "--acknowledge-dynamic-jobs", "--enable-profile-reuse", "--no-sched"),
        *("--dump-execution-context", "--enable-compute-sharing", "--disable-storage-sharing", "--sched-cfg"),
        *("--sched-cfg-file", "--sg-cfg", "--sg-log", "--forward-unknown-events", "--embedded-scheduler"),
    }


def test_of_two_roles_of_a_host_the_last_counts():
    assert _roles(["a,b:storage", "b:compute_node"]) == {"a": "storage", "b": "compute_node"}
