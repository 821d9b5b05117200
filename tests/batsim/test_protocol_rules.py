"""The rules of the conversation: what a scheduler may ask, when it is told what, and what happens where it stops
deciding.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from small_runs import Run, event, execute, platform, run, starting, workload

from schedlab.batsim.errors import ProtocolError, SimulationDeadlock
from schedlab.batsim.simulator import simulation
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.config.errors import UserError
from schedlab.platforms.batsim_xml import parse_platform

DELAYS = {
    "d5": {"type": "delay", "delay": 5},
    "d1": {"type": "delay", "delay": 1},
    "free": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0},
}
TWO = [{"profile": "d5", "res": 2}, {"profile": "d5"}]


def refused(decision: tuple[str, Any]) -> ProtocolError:
    """Send one decision at the submission of two jobs, after starting job 0 on hosts 0-1; return the error."""

    def decide(message: dict[str, Any]) -> list[dict[str, Any]]:
        if any(said["type"] == "JOB_SUBMITTED" for said in message["events"]):
            return [execute(message, "w0!0", "0-1"), event(message, *decision)]
        return []

    with pytest.raises(ProtocolError) as raised:
        run(decide, TWO, DELAYS)
    return raised.value


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (("EXECUTE_JOB", {"job_id": "w0!0", "alloc": "2-3"}), "is RUNNING"),
        (("EXECUTE_JOB", {"job_id": "w0!7", "alloc": "2"}), "no job 'w0!7' was submitted"),
        (("EXECUTE_JOB", {"job_id": 1, "alloc": "2"}), "no job '1'"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "2-3"}), "2 resources for job 'w0!1'"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0"}), "resource 0 computes another job"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "4"}), "there is no resource 4"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "3-2"}), "runs backwards"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "two"}), "'two' is no interval"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": ""}), "alloc is empty"),
        (("EXECUTE_JOB", {"job_id": "w0!1"}), "alloc is None"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "2", "mapping": {"0": 1}}), "mapping does not fit"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "2", "mapping": ["a"]}), "mapping is none"),
        (("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "2", "storage_mapping": {"a": 0}}), "storage_mapping is none"),
        (
            (
                "EXECUTE_JOB",
                {"job_id": "w0!1", "alloc": "2", "additional_io_job": {"alloc": "2", "profile_name": "d1"}},
            ),
            "no parallel task",
        ),
        (("REJECT_JOB", {"job_id": "w0!0"}), "is RUNNING"),
        (("KILL_JOB", {"job_ids": ["w0!1"]}), "does not run"),
        (("KILL_JOB", {"job_ids": ["w0!9"]}), "no job 'w0!9'"),
        (("KILL_JOB", {"job_ids": "w0!0"}), "no list"),
        (("CALL_ME_LATER", {"timestamp": 0}), "not after now"),
        (("CALL_ME_LATER", {"timestamp": float("nan")}), "is nan"),
        (("CALL_ME_LATER", {}), "is None"),
        (("SET_RESOURCE_STATE", {"resources": "0", "state": "0"}), "changes a pstate"),
        (("QUERY", {"requests": {"consumed_energy": {}}}), "asks for energy"),
        (("QUERY", {"requests": {"weather": {}}}), "something unknown"),
        (
            ("REGISTER_PROFILE", {"workload_name": "d", "profile_name": "p", "profile": {"type": "delay", "delay": 1}}),
            "dynamic jobs",
        ),
        (("REGISTER_JOB", {"job_id": "d!1", "job": {}}), "dynamic jobs"),
        (("NOTIFY", {"type": "hello"}), "notifies of 'hello'"),
        (("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": 3}), "metadata is no text"),
        (("SET_JOB_METADATA", {"job_id": "w0!5", "metadata": ""}), "no job"),
        (("CHANGE_JOB_STATE", {"job_id": "w0!0", "job_state": "SUBMITTED"}), "from RUNNING to 'SUBMITTED'"),
        (("CHANGE_JOB_STATE", {"job_id": "w0!1", "job_state": "COMPLETED_FAILED"}), "from SUBMITTED to"),
        (("TO_JOB_MSG", {"job_id": "w0!0"}), "has no msg"),
        (("RESOURCES_ADDED", {"resources": "0"}), "'RESOURCES_ADDED' is unknown"),
        (("EXECUTE_JOBS", {}), "did you mean 'EXECUTE_JOB'"),
    ],
)
def test_a_decision_that_breaks_a_rule_is_named(decision: tuple[str, Any], told: str) -> None:
    error = refused(decision)
    assert told in str(error) and error.event["type"] == decision[0] and decision[0] in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        {},
        {"now": 0.0},
        {"now": 0.0, "events": {}},
        {"now": "0", "events": []},
        {"now": float("inf"), "events": []},
        {"now": 10**400, "events": []},
        {"now": 0.0, "events": ["EXECUTE_JOB"]},
        {"now": 0.0, "events": [{"timestamp": 0.0, "type": "NOTIFY"}]},
        {"now": 0.0, "events": [{"timestamp": 1.0, "type": "NOTIFY", "data": {}}]},
        {"now": 0.0, "events": [{"timestamp": None, "type": "NOTIFY", "data": {}}]},
        {"now": 0.0, "events": [{"timestamp": 0.0, "type": 5, "data": {}}]},
        {"now": 3.0, "events": [{"timestamp": date, "type": "NOTIFY", "data": {}} for date in (2.0, 1.0)]},
    ],
)
def test_a_reply_of_the_wrong_form_is_refused(reply: Any) -> None:
    simulation = Simulation(platform(), [workload(TWO, DELAYS)], Options())
    simulation.next_message()
    with pytest.raises(ProtocolError):
        simulation.answer(reply)


def test_one_answer_for_each_message() -> None:
    simulation = Simulation(platform(), [workload(TWO, DELAYS)], Options())
    with pytest.raises(ProtocolError, match="no message waits"):
        simulation.answer({"now": 0.0, "events": []})
    simulation.next_message()
    with pytest.raises(ProtocolError, match="was not answered"):
        simulation.next_message()


def test_a_deadlock_names_the_jobs_that_wait() -> None:
    with pytest.raises(SimulationDeadlock, match=r"at 5 s .*w0!1") as raised:
        run(starting({"w0!0": "0-1"}), TWO, DELAYS)
    assert raised.value.jobs == ("w0!1",)


def test_a_deadlock_names_what_running_jobs_wait_for() -> None:
    profiles = {"wait": {"type": "recv", "regex": "a", "success": "", "failure": ""}}
    with pytest.raises(SimulationDeadlock, match="wait for a message"):
        run(starting({"w0!0": "0"}), [{"profile": "wait"}], profiles)


def test_registration_must_be_finished() -> None:
    with pytest.raises(SimulationDeadlock, match="registration_finished"):
        run(starting({"w0!0": "0-1", "w0!1": "2"}), TWO, DELAYS, dynamic_jobs=True)


def test_a_timer_prolongs_the_simulation_but_not_the_makespan() -> None:
    done = run(starting({"w0!0": "0-1", "w0!1": "2"}, {9.0: []}), TWO, DELAYS)
    assert done.messages[-1]["now"] == 9.0 and done.simulation.schedule()["makespan"] == 5.0


def test_two_timers_of_one_date_call_twice() -> None:
    def decide(message: dict[str, Any]) -> list[dict[str, Any]]:
        begins = message["events"][0]["type"] == "SIMULATION_BEGINS"
        return [event(message, "CALL_ME_LATER", {"timestamp": 3})] * 2 if begins else []

    assert [said["type"] for said in run(decide, [], {}).messages[-2]["events"]] == ["REQUESTED_CALL"] * 2


def test_the_calls_to_come_are_limited() -> None:
    calls = [("CALL_ME_LATER", {"timestamp": 2.0 + number}) for number in range(101_000)]
    began = time.process_time()
    with pytest.raises(ProtocolError, match=r'timestamp": 100002'):
        run(starting({}, {1.0: calls}), [], {})
    assert time.process_time() - began < 10


@pytest.mark.parametrize(("submission", "date"), [(0, 50), (900, 917)])  # looked at after each 51 calls
def test_a_scheduler_that_only_asks_to_be_called_comes_to_an_end(monkeypatch, submission, date) -> None:
    monkeypatch.setattr(simulation, "MOST_IDLE_CALLS", 50)

    def decide(message: dict[str, Any]) -> list[dict[str, Any]]:
        return [event(message, "CALL_ME_LATER", {"timestamp": message["now"] + 1})]

    with pytest.raises(SimulationDeadlock, match=f"at {date} s .*w0!0"):
        run(decide, [{"profile": "d5", "subtime": submission}], DELAYS)


def test_calls_while_something_is_to_come_are_not_limited(monkeypatch) -> None:
    monkeypatch.setattr(simulation, "MOST_IDLE_CALLS", 50)
    start = starting({"w0!0": "0", "w0!1": "1"})

    def decide(message: dict[str, Any]) -> list[dict[str, Any]]:
        calls = message["now"] < 4 or 300 <= message["now"] < 304
        more = [event(message, "CALL_ME_LATER", {"timestamp": message["now"] + 0.01})] if calls else []
        return start(message) + more

    jobs = [{"profile": "d5"}, {"profile": "d5", "subtime": 300}]
    assert run(decide, jobs, DELAYS).times() == {"w0!0": (0, 5), "w0!1": (300, 305)}


@pytest.mark.parametrize(
    ("submission", "seconds", "too_short"),
    [(1e12, 1e-7, 2), (1e12, 1.0, 0), (1e9, 1e-4, 2), (1e9, 1.0, 0), (0, 1e-10, 2), (0, 1e-7, 0)],
)
def test_jobs_that_are_too_short_for_their_dates_are_named(caplog, submission, seconds, too_short) -> None:
    profiles = {"p": {"type": "delay", "delay": seconds}, "free": DELAYS["free"] | {"cpu": 0}}
    jobs = [{"profile": name, "subtime": submission} for name in ("p", "p", "free")]
    run(starting({"w0!0": "0", "w0!1": "1", "w0!2": "2"}), jobs, profiles)
    warnings = [record.getMessage() for record in caplog.records]
    assert [re.findall(r"\d+ jobs|w0!\d+", text) for text in warnings] == [["2 jobs", "w0!0"]] * (too_short > 0)


def test_a_kill_at_the_start_makes_no_job_too_short(caplog) -> None:
    decide = starting({"w0!0": "0-1", "w0!1": "2"}, {0.0: [], 3.0: []})

    def kill(message: dict[str, Any]) -> list[dict[str, Any]]:
        started = [said for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
        doomed = [event(message, "KILL_JOB", {"job_ids": ["w0!0"]})] if started else []
        return decide(message) + doomed

    done = run(kill, TWO, DELAYS)
    assert done.times()["w0!0"] == (0, 0) and not caplog.records


def test_no_jobs_at_all() -> None:
    types = [[said["type"] for said in message["events"]] for message in run(lambda _: [], [], {}).messages]
    assert types == [["SIMULATION_BEGINS"], ["NOTIFY"], ["SIMULATION_ENDS"]]


def test_a_kill_comes_with_completions_first_and_is_done_once() -> None:
    kill = ("KILL_JOB", {"job_ids": ["w0!0", "w0!0"]})
    done = run(starting({"w0!0": "0-1", "w0!1": "2"}, {2.0: [kill], 7.0: [kill]}), TWO, DELAYS)
    killed = next(message for message in done.messages if message["events"][-1]["type"] == "JOB_KILLED")
    assert [said["type"] for said in killed["events"]] == ["JOB_COMPLETED", "JOB_KILLED"]
    assert (
        killed["events"][0]["data"]["job_state"] == "COMPLETED_KILLED"
        and killed["events"][0]["data"]["return_code"] == -1
    )
    assert [data["job_ids"] for _, data in done.events("JOB_KILLED")] == [["w0!0"], []]


def test_a_killed_jobs_hosts_can_be_used_in_the_same_reply() -> None:
    jobs = [{"profile": "d5", "res": 4}, {"profile": "d5", "res": 4, "subtime": 1}]

    def decide(message: dict[str, Any]) -> list[dict[str, Any]]:
        events = []
        for said in message["events"]:
            if said["type"] == "JOB_SUBMITTED":
                if said["data"]["job_id"] == "w0!1":
                    events.append(event(message, "KILL_JOB", {"job_ids": ["w0!0"]}))
                events.append(execute(message, said["data"]["job_id"], "0-3"))
        return events

    assert run(decide, jobs, DELAYS).times() == {"w0!0": (0, 1), "w0!1": (1, 6)}


def register(name: str, job: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return ("REGISTER_JOB", {"job_id": name, "job": {"id": name, **job}})


NEW_PROFILE = (
    "REGISTER_PROFILE",
    {"workload_name": "dyn", "profile_name": "p", "profile": {"type": "delay", "delay": 2}},
)
FINISHED = ("NOTIFY", {"type": "registration_finished"})


def test_dynamic_jobs_are_acknowledged_and_have_the_date_of_their_receipt() -> None:
    more = {1.0: [NEW_PROFILE, register("dyn!1", {"res": 1, "profile": "p", "subtime": 0.5, "tag": [1]}), FINISHED]}
    done = run(
        starting({"dyn!1": "0"}, more), [], {}, dynamic_jobs=True, acknowledge_dynamic_jobs=True, forward_profiles=True
    )
    expected = {"id": "dyn!1", "res": 1, "profile": "p", "subtime": 0.5, "tag": [1]}
    assert done.events("JOB_SUBMITTED") == [
        (1.0, {"job_id": "dyn!1", "job": expected, "profile": {"type": "delay", "delay": 2}})
    ]
    assert done.jobs["dyn!1"].submission == 1.0 and done.times() == {"dyn!1": (1, 3)}


def test_a_profile_is_dropped_with_its_last_job_unless_reused() -> None:
    job = {"res": 1, "profile": "p"}
    first, second = register("dyn!1", job), register("dyn!2", job)
    more = {
        1.0: [NEW_PROFILE, first, ("EXECUTE_JOB", {"job_id": "dyn!1", "alloc": "0"})],
        5.0: [second, ("EXECUTE_JOB", {"job_id": "dyn!2", "alloc": "0"}), FINISHED],
    }
    with pytest.raises(ProtocolError, match=r"unknown profile 'p'.*profile_reuse"):
        run(starting({}, more), [], {}, dynamic_jobs=True)
    assert run(starting({}, more), [], {}, dynamic_jobs=True, profile_reuse=True).times() == {
        "dyn!1": (1, 3),
        "dyn!2": (5, 7),
    }


def test_a_sequence_with_a_dropped_part_holds_no_other_profile_up() -> None:
    def decide(message: dict[str, Any]) -> list[dict[str, Any]]:
        events = starting({"w0!0": "0", "w0!late": "0"})(message)
        if any(said["type"] == "JOB_COMPLETED" and said["data"]["job_id"] == "w0!0" for said in message["events"]):
            job = {"id": "w0!late", "profile": wanted, "res": 1}
            register = [
                ("REGISTER_JOB", {"job_id": "w0!late", "job": job}),
                ("NOTIFY", {"type": "registration_finished"}),
            ]
            events += [event(message, kind, data) for kind, data in register]
        return events

    profiles = {
        "a": {"type": "delay", "delay": 1},
        "b": {"type": "delay", "delay": 2},
        "ab": {"type": "composed", "seq": ["a", "b"]},
    }
    options = {"dynamic_jobs": True, "acknowledge_dynamic_jobs": True}
    wanted = "b"
    assert run(decide, [{"profile": "a"}], profiles, **options).times()["w0!late"] == (1, 3)
    wanted = "ab"
    with pytest.raises(ProtocolError, match="runs the unknown profile 'a'"):
        run(decide, [{"profile": "a"}], profiles, **options)


@pytest.mark.parametrize(
    ("decisions", "told"),
    [
        ([register("dyn!1", {"res": 1, "profile": "p"})], "unknown profile 'p'"),
        ([register("w0!0", {"res": 1, "profile": "d1"})], "a second job 'w0!0'"),
        ([register("w0!9", {"res": 1, "profile": "d1"})] * 2, "a second job 'w0!9'"),
        ([register("nothing", {"res": 1, "profile": "d1"})], "no identifier of a job"),
        ([register("w0!9", {"res": -1, "profile": "d1"})], "res: is -1"),
        ([("REGISTER_JOB", {"job_id": "w0!9", "job": None})], "is no object"),
        (
            [NEW_PROFILE, ("REGISTER_PROFILE", {**NEW_PROFILE[1], "profile": {"type": "delay", "delay": 3}})],
            "exists already",
        ),
        ([("REGISTER_PROFILE", {**NEW_PROFILE[1], "profile": {"type": "delay", "delay": 0}})], "delay"),
        ([("REGISTER_PROFILE", {**NEW_PROFILE[1], "workload_name": "a!b"})], "names no workload"),
        ([FINISHED, NEW_PROFILE], "after registration_finished"),
    ],
)
def test_a_wrong_registration_is_refused(decisions: list[tuple[str, Any]], told: str) -> None:
    with pytest.raises(ProtocolError, match=told):
        run(starting({"w0!0": "0-1", "w0!1": "2"}, {1.0: decisions}), TWO, DELAYS, dynamic_jobs=True)


def test_registration_can_go_on_after_its_end() -> None:
    more = {1.0: [FINISHED, ("NOTIFY", {"type": "continue_registration"}), NEW_PROFILE, FINISHED]}
    assert run(starting({"w0!0": "0-1", "w0!1": "2"}, more), TWO, DELAYS, dynamic_jobs=True).messages[-1]["now"] == 5.0


def test_a_rejected_job_that_would_fit_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    rejections = [("REJECT_JOB", {"job_id": f"w0!{number}"}) for number in range(2)]
    for res, warnings in ((4, 0), (5, 1)):
        caplog.clear()
        done = run(starting({}, {1: rejections}), [{"profile": "d1"}, {"profile": "d1", "res": res}], DELAYS)
        assert [job.state for job in done.jobs.values()] == ["REJECTED"] * 2
        assert [("w0!0" in line, "w0!1" in line) for line in caplog.messages] == [(False, True)] * warnings


def test_registration_cannot_go_on_where_there_was_none() -> None:
    with pytest.raises(ProtocolError, match="--enable-dynamic-jobs"):
        run(starting({}, {0: [("NOTIFY", {"type": "continue_registration"})]}), [], {})


def test_the_scheduler_can_run_jobs_by_itself() -> None:
    """SUBMITTED -> RUNNING -> a final state, SUBMITTED -> REJECTED: as documented, where Batsim 4.2.1 aborts."""
    state = [
        ("CHANGE_JOB_STATE", {"job_id": f"w0!{job}", "job_state": state})
        for job, state in ((0, "RUNNING"), (1, "REJECTED"))
    ]
    more = {1.0: state, 4.0: [("CHANGE_JOB_STATE", {"job_id": "w0!0", "job_state": "COMPLETED_FAILED"})]}
    done = run(starting({}, more), TWO, DELAYS)
    assert {name: job.state for name, job in done.jobs.items()} == {"w0!0": "COMPLETED_FAILED", "w0!1": "REJECTED"}
    assert done.times() == {"w0!0": (1, 4)} and done.events("JOB_COMPLETED") == [] and done.messages[-1]["now"] == 4.0


def test_a_state_can_be_changed_before_the_job_ends_by_itself() -> None:
    more = {2.0: [("CHANGE_JOB_STATE", {"job_id": "w0!0", "job_state": "COMPLETED_SUCCESSFULLY"})]}
    done = run(starting({"w0!0": "0-1", "w0!1": "2"}, more), TWO, DELAYS)
    assert done.times() == {"w0!0": (0, 2), "w0!1": (0, 5)} and len(done.events("JOB_COMPLETED")) == 1


def test_what_is_said_about_ended_jobs_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    late = [("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": "x"}), ("TO_JOB_MSG", {"job_id": "w0!0", "msg": "x"})]
    run(starting({"w0!0": "0-1", "w0!1": "2"}, {6.0: late}), TWO, DELAYS)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["SET_JOB_METADATA", "TO_JOB_MSG"]


def test_external_events(tmp_path: Path) -> None:
    events = [
        {"type": "machine_unavailable", "resources": "0-1", "timestamp": 2},
        {"type": "machine_available", "resources": "0", "timestamp": 8},
        {"type": "fire", "timestamp": 8, "where": {"room": "4\u2028"}},
    ]
    lines = [json.dumps(event, ensure_ascii=False) for event in reversed(events)]
    (tmp_path / "events.txt").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    options = {"events_files": (tmp_path / "events.txt",)}
    decide = starting({"w0!0": "0-1", "w0!1": "2"})
    done = run(decide, TWO, DELAYS, forward_unknown_events=True, **options)
    assert [(date, data["type"]) for date, data in done.events("NOTIFY")] == [
        (0.0, "no_more_static_job_to_submit"),
        (2.0, "event_machine_unavailable"),
        (8.0, "fire"),
        (8.0, "event_machine_available"),
        (8.0, "no_more_external_event_to_occur"),
    ]
    assert done.times()["w0!0"] == (0, 5) and done.simulation.schedule()["time_unavailable"] == pytest.approx(6)
    with pytest.raises(UserError, match=r"events\.txt: line 1, type: 'fire' is unknown"):
        run(starting({"w0!0": "0-1", "w0!1": "2"}), TWO, DELAYS, **options)

    def too_late(message: dict[str, Any]) -> list[dict[str, Any]]:
        return [execute(message, "w0!0", "0-1")] if message["now"] == 2.0 else []

    with pytest.raises(ProtocolError, match="resource 0 is unavailable"):
        run(too_late, TWO, DELAYS, forward_unknown_events=True, **options)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"type": "x"}',
        '{"type": "x", "timestamp": 2}',
        '{"type": "machine_available", "timestamp": -1, "resources": "0"}',
        '{"type": "machine_available", "timestamp": 1, "resources": "9"}',
    ],
)
def test_a_wrong_external_event_is_told_with_its_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text('{"type": "machine_available", "timestamp": 1, "resources": "0"}\n' + line)
    with pytest.raises(UserError, match="line 2"):
        run(lambda _: [], [], {}, events_files=(tmp_path / "events.txt",))


def test_platform_limits_and_names() -> None:
    def hosts(jobs_of: list[int], **options: Any) -> int:
        workloads = [workload([], {}, f"w{index}", nb_res) for index, nb_res in enumerate(jobs_of)]
        return Simulation(platform(8), workloads, Options(**options)).next_message()["events"][0]["data"][
            "nb_resources"
        ]

    assert [
        hosts([2]),
        hosts([2], mmax=3),
        hosts([2, 5], mmax_workload=True),
        hosts([9], mmax_workload=True, mmax=3),
    ] == [8, 3, 5, 3]
    for jobs_of, options in (([9], {"mmax_workload": True}), ([2], {"mmax": 9})):
        with pytest.raises(UserError, match=r"^--mmax.*asks for 9 compute hosts.*8"):
            hosts(jobs_of, **options)
    with pytest.raises(UserError, match="no host is named 'boss'"):
        hosts([2], master_host="boss")
    with pytest.raises(UserError, match="same name"):
        Simulation(platform(), [workload([], {})] * 2, Options())


def test_what_the_scheduler_gets_is_its_own() -> None:
    loaded = workload([{"profile": "d1", "extra": {"a": [1.00000049]}}], DELAYS)
    before = json.dumps([job.json for job in loaded.jobs]) + json.dumps(loaded.profiles["d1"].json)

    def spoiling(message: dict[str, Any]) -> list[dict[str, Any]]:
        decisions = starting({"w0!0": "0"})(message)
        for said in message["events"]:
            if said["type"] == "JOB_SUBMITTED":
                assert said["data"]["job"]["extra"] == {"a": [1.0]}
                said["data"]["job"]["extra"]["a"].clear()
                said["data"]["profile"].clear()
            said["data"].clear()
        return decisions

    simulation = Simulation(platform(), [loaded], Options(forward_profiles=True))
    while (message := simulation.next_message()) is not None:
        simulation.answer({"now": message["now"], "events": spoiling(message)})
    assert before == json.dumps([job.json for job in loaded.jobs]) + json.dumps(loaded.profiles["d1"].json)
    assert Run(Simulation(platform(), [loaded], Options()), starting({"w0!0": "0"})).times() == {"w0!0": (0, 1)}


def test_a_deep_object_of_a_job_is_passed_on() -> None:
    deep: Any = 1.00000049
    for _ in range(400):
        deep = {"a": [deep]}
    said = run(starting({"w0!0": "0"}), [{"profile": "d1", "extra": deep}], DELAYS).events("JOB_SUBMITTED")[0][1][
        "job"
    ]["extra"]
    for _ in range(400):
        said = said["a"][0]
    assert said == 1.0


def test_events_of_several_files_end_with_one_notice(tmp_path: Path) -> None:
    for name, date in (("a", 1), ("b", 3)):
        event = {"type": "machine_unavailable", "resources": "3", "timestamp": date}
        (tmp_path / name).write_text(json.dumps(event))
    done = run(starting({}), [], {}, events_files=(tmp_path / "a", tmp_path / "b"))
    assert [(date, data["type"]) for date, data in done.events("NOTIFY")][1:] == [
        (1.0, "event_machine_unavailable"),
        (3.0, "event_machine_unavailable"),
        (3.0, "no_more_external_event_to_occur"),
    ]


def test_roles_given_with_the_options_count() -> None:
    done = run(starting({}), [], {}, roles={"h03": "storage"})
    data = done.messages[0]["events"][0]["data"]
    assert (data["nb_compute_resources"], data["nb_storage_resources"]) == (3, 1)
    assert data["storage_resources"][0]["properties"] == {"role": "storage"}


@pytest.mark.parametrize("compute_sharing", [False, True])
def test_storage_can_be_kept_to_one_job(compute_sharing: bool) -> None:
    options = {"roles": {"h03": "storage"}, "compute_sharing": compute_sharing}
    profiles = {"p": {"type": "parallel_homogeneous_total", "cpu": 0, "com": 0}, "d": {"type": "delay", "delay": 2}}
    jobs = [{"profile": "d", "res": 2}, {"profile": "d", "res": 2}, {"profile": "d", "res": 2, "subtime": 2}]
    decide = starting({"w0!0": "0 3", "w0!1": "1 3", "w0!2": "0 3"})
    assert len(run(decide, jobs, profiles, **options).times()) == 3
    with pytest.raises(ProtocolError, match="resource 3 is used by another job"):
        run(starting({"w0!0": "0 3", "w0!1": "1 3"}), jobs, profiles, storage_sharing=False, **options)
    one_by_one = starting({"w0!0": "0 3", "w0!2": "0 3", "w0!1": "1"})
    jobs[1]["res"] = 1
    assert len(run(one_by_one, jobs, profiles, storage_sharing=False, **options).times()) == 3


def test_the_order_within_a_date() -> None:
    """Timers, submissions, delays before tasks, notices last; compared as a whole by nobody else."""
    profiles = {**DELAYS, "c5": {"type": "parallel_homogeneous", "cpu": 5e9, "com": 0}}
    jobs = [{"profile": "c5"}, {"profile": "d5"}, {"profile": "d1", "subtime": 5}]
    done = run(starting({"w0!0": "0", "w0!1": "1", "w0!2": "2"}, {5.0: []}), jobs, profiles)
    at_five = next(message for message in done.messages if message["now"] == 5.0)
    told = [said["data"].get("job_id", said["type"]) for said in at_five["events"]]
    assert told == ["REQUESTED_CALL", "w0!2", "w0!1", "w0!0", "NOTIFY"]


FAR_MASTER = """<platform version="4.1"><zone id="w" routing="Full">
<cluster id="c" prefix="h" suffix="" radical="0-1" speed="1Gf" bw="100MBps" lat="250ms"/>
<zone id="m" routing="Full"><host id="master_host" speed="1Gf"/></zone><link id="l" bandwidth="1GBps" latency="500ms"/>
<zoneRoute src="c" dst="m" gw_src="hc_router" gw_dst="master_host"><link_ctn id="l"/></zoneRoute></zone></platform>"""


@pytest.mark.parametrize(("control_latency", "date"), [(False, 2.5), (True, 3.25)])
def test_a_submission_comes_before_the_completion_of_a_communicating_job(control_latency: bool, date: float) -> None:
    """Also where the completion takes the time from the job's host to the master: 0.75 s here."""
    profiles = {"talk": {"type": "parallel_homogeneous", "cpu": 0, "com": 2e8}, "d": {"type": "delay", "delay": 1}}
    jobs = [{"res": 2, "profile": "talk"}, {"subtime": 2.5, "profile": "d"}]
    place = parse_platform(FAR_MASTER, "platform.xml")
    done = run(starting({"w0!0": "0-1", "w0!1": "0"}), jobs, profiles, place, control_latency=control_latency)
    assert done.times() == {"w0!0": (0.0, 2.5), "w0!1": (date, date + 1)}
    told = next(message for message in done.messages if message["now"] == date)
    assert [said["type"] for said in told["events"]] == ["JOB_SUBMITTED", "JOB_COMPLETED", "NOTIFY"]
