"""What jobs do and when they end: profiles, walltimes, kills, sharing."""

from __future__ import annotations

from typing import Any

import pytest
from small_runs import Run, execute, platform, run, starting, workload

from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.profiles import UsageTrace
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.platforms.batsim_xml import parse_platform
from schedlab.platforms.platform import Platform

CLUSTER = (
    '<platform version="4.1"><zone id="root" routing="Full">'
    '<cluster id="c" prefix="h" suffix="" radical="0-7" speed="1Gf" bw="100MBps" lat="50us" {backbone}/>'
    '<zone id="m" routing="Full"><host id="master_host" speed="1Gf"/>{storage}</zone><link id="out" '
    'bandwidth="50MBps" latency="20us"/>'
    '<zoneRoute src="c" dst="m" gw_src="hc_router" gw_dst="master_host"><link_ctn '
    'id="out"/></zoneRoute>{routes}</zone></platform>'
)


def cluster(backbone: str = "") -> Platform:
    return parse_platform(CLUSTER.format(backbone=backbone, storage="", routes=""), "platform.xml")


def flops(amount: float, com: float = 0.0, kind: str = "parallel_homogeneous") -> dict[str, object]:
    return {"type": kind, "cpu": amount, "com": com}


def test_unequal_tasks_on_one_host() -> None:
    """Case 44: 1e9 and 5e9 flop together on 1 Gf end at 2 and 6 s."""
    jobs = [{"profile": "short"}, {"profile": "long"}]
    done = run(
        starting({"w0!0": "0", "w0!1": "0"}), jobs, {"short": flops(1e9), "long": flops(5e9)}, compute_sharing=True
    )
    assert done.times() == {"w0!0": (0, pytest.approx(2)), "w0!1": (0, pytest.approx(6))}


def test_tasks_share_a_backbone_but_not_the_split_links_of_hosts() -> None:
    """Two all-to-all exchanges of 100 MB on hosts 0-1 and 2-3: 400 MB cross the backbone of 100 MBps."""
    jobs = [{"profile": "exchange", "res": 2}] * 2
    profiles = {"exchange": flops(0, 1e8)}
    decide = starting({"w0!0": "0-1", "w0!1": "2-3"})
    alone = run(decide, jobs, profiles, cluster())
    assert alone.times()["w0!1"] == (0, pytest.approx(1e-4 + 1))
    shared = run(starting({"w0!0": "0-1", "w0!1": "2-3"}), jobs, profiles, cluster('bb_bw="100MBps" bb_lat="10us"'))
    assert shared.times() == {"w0!0": (0, pytest.approx(1.1e-4 + 4)), "w0!1": (0, pytest.approx(1.1e-4 + 4))}


def test_a_shared_link_adds_both_directions() -> None:
    done = run(
        starting({"w0!0": "0-1"}),
        [{"profile": "p", "res": 2}],
        {"p": flops(0, 1e8)},
        cluster('sharing_policy="SHARED"'),
    )
    assert done.times()["w0!0"][1] == pytest.approx(1e-4 + 2)


def test_a_fat_pipe_is_not_shared() -> None:
    jobs = [{"profile": "p", "res": 2}] * 3
    place = cluster('bb_bw="100MBps" bb_lat="0us" bb_sharing_policy="FATPIPE"')
    done = run(starting({"w0!0": "0-1", "w0!1": "2-3", "w0!2": "4-5"}), jobs, {"p": flops(0, 1e8)}, place)
    assert [finish for _, finish in done.times().values()] == pytest.approx([1e-4 + 2] * 3)


def test_compute_and_traffic_progress_together_after_the_latency() -> None:
    """ring: 250 MB one way at 100 MBps outlasts 1e9 flop. In a cluster without loopback, executors on one host send up
    and down its link, as SimGrid's stars have it.
    """
    profiles = {"ring": {"type": "parallel", "cpu": [1e9, 0], "com": [0, 2.5e8, 0, 0]}}
    done = run(starting({"w0!0": "0-1"}), [{"profile": "ring", "res": 2}], profiles, cluster())
    assert done.times()["w0!0"][1] == pytest.approx(1e-4 + 2.5)
    decide = starting({})

    def mapped(message: dict) -> list[dict]:
        submitted = [said for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
        return decide(message) + [execute(message, "w0!0", "3", mapping={"0": 0, "1": 0}) for _ in submitted]

    assert run(mapped, [{"profile": "ring", "res": 2}], profiles, cluster()).times()["w0!0"][1] == pytest.approx(
        1e-4 + 2.5
    )
    everywhere = platform(routing="Full")
    assert run(mapped, [{"profile": "ring", "res": 2}], profiles, everywhere).times()["w0!0"][1] == pytest.approx(1)


def test_network_ignore_makes_traffic_free() -> None:
    done = run(
        starting({"w0!0": "0-1"}), [{"profile": "p", "res": 2}], {"p": flops(1e9, 1e12)}, cluster(), network="ignore"
    )
    assert done.times()["w0!0"] == (0, pytest.approx(1))


def test_a_kill_during_the_latency_has_done_nothing() -> None:
    decide = starting({"w0!0": "0-1"}, {5e-5: [("KILL_JOB", {"job_ids": ["w0!0"]})]})
    done = run(decide, [{"profile": "p", "res": 2}], {"p": flops(1e9, 1e8)}, cluster())
    assert done.events("JOB_KILLED") == [
        (pytest.approx(5e-5), {"job_ids": ["w0!0"], "job_progress": {"w0!0": {"profile_name": "p", "progress": 0.0}}})
    ]
    assert done.events("JOB_COMPLETED")[0][1]["return_code"] == -2


def test_the_mapping_says_which_host_an_executor_gets() -> None:
    """Executor 0 computes 4e9 flop; the fast host is the second of the allocation."""
    text = (
        '<platform version="4"><zone id="z" routing="Vivaldi"><host id="a" speed="1Gf"/><host id="b" '
        'speed="4Gf"/>{}</zone></platform>'
    )
    place = parse_platform(text.format('<host id="master_host" speed="1Gf"/>'), "p.xml")
    profiles = {"p": {"type": "parallel", "cpu": [4e9, 1e9], "com": [0] * 4}}
    for mapping, end in ((None, 4.0), ({"0": 1, "1": 0}, 1.0)):

        def decide(message: dict, mapping: dict | None = mapping) -> list[dict]:
            submitted = [said for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
            return [execute(message, "w0!0", "0-1", mapping=mapping) for _ in submitted]

        assert run(decide, [{"profile": "p", "res": 2}], profiles, place).times()["w0!0"][1] == pytest.approx(end)


def test_total_amounts_are_divided_by_the_allocation_whatever_was_requested() -> None:
    jobs = [{"profile": "p", "res": 1}, {"profile": "s", "res": 1}]
    profiles = {
        "p": flops(4e9, kind="parallel_homogeneous_total"),
        "s": {"type": "composed", "seq": ["p"], "repeat": 2},
    }
    assert run(starting({"w0!0": "0-3"}, {}), jobs[:1], profiles).times()["w0!0"][1] == pytest.approx(1)
    assert run(starting({"w0!1": "0-1", "w0!0": "2-3"}), jobs, profiles).times()["w0!1"][1] == pytest.approx(4)


@pytest.mark.parametrize(
    ("profile", "walltime", "state", "finish"),
    [
        ("delay", 5, "COMPLETED_WALLTIME_REACHED", 5),
        ("delay", 5.000001, "COMPLETED_SUCCESSFULLY", 5),
        ("cpu", 5, "COMPLETED_SUCCESSFULLY", 5),
        ("sequence", 5, "COMPLETED_SUCCESSFULLY", 5),
        ("sequence", 4.5, "COMPLETED_WALLTIME_REACHED", 4.5),
        ("sequence", 2, "COMPLETED_WALLTIME_REACHED", 2),
        ("failing", 50, "COMPLETED_FAILED", 1),
        ("cpu", -1, "COMPLETED_SUCCESSFULLY", 5),
    ],
)
def test_walltimes(profile: str, walltime: float, state: str, finish: float) -> None:
    profiles = {
        "delay": {"type": "delay", "delay": 5},
        "cpu": flops(5e9),
        "two": {"type": "delay", "delay": 2},
        "three": flops(3e9),
        "sequence": {"type": "composed", "seq": ["two", "three"]},
        "failing": {"type": "composed", "seq": ["bad", "delay"]},
        "bad": {"type": "delay", "delay": 1, "ret": 4},
    }
    done = run(starting({"w0!0": "0"}), [{"profile": profile, "walltime": walltime}], profiles)
    completed = done.events("JOB_COMPLETED")[0][1]
    assert (completed["job_state"], done.times()["w0!0"][1]) == (state, pytest.approx(finish))
    assert completed["return_code"] == {"COMPLETED_SUCCESSFULLY": 0, "COMPLETED_FAILED": 4}.get(state, -1)


def test_progress_of_a_nested_sequence_counts_repetitions() -> None:
    profiles = {
        "d": {"type": "delay", "delay": 2},
        "in": {"type": "composed", "seq": ["d", "c"], "repeat": 3},
        "c": flops(2e9),
    }
    profiles["out"] = {"type": "composed", "seq": ["d", "in"]}
    decide = starting(
        {"w0!0": "0"}, {9.0: [("KILL_JOB", {"job_ids": ["w0!0"]})]}
    )  # d 0-2, in: d 2-4, c 4-6, d 6-8, c 8-10
    done = run(decide, [{"profile": "out"}], profiles)
    tree = done.events("JOB_KILLED")[0][1]["job_progress"]["w0!0"]
    assert tree["current_task_index"] == 1 and tree["profile_name"] == "out"
    assert tree["current_task"]["current_task_index"] == 3 and tree["current_task"]["profile_name"] == "in"
    assert tree["current_task"]["current_task"] == {"profile_name": "c", "progress": 0.5}


def test_work_of_no_time_ends_at_once_however_often_it_is_repeated() -> None:
    profiles = {"zero": flops(0), "often": {"type": "composed", "seq": ["zero"], "repeat": 10**12, "ret": 2}}
    profiles |= {f"twice{level}": {"type": "composed", "seq": [f"twice{level + 1}"] * 2} for level in range(60)} | {
        "twice60": flops(0)
    }
    profiles |= {"fails": {"type": "composed", "seq": ["zero", "wrong", "zero"]}, "wrong": {**flops(0), "ret": 3}}
    names = ["zero", "often", "twice0", "fails"]
    done = run(
        starting({f"w0!{index}": str(index) for index in range(4)}), [{"profile": name} for name in names], profiles
    )
    assert set(done.times().values()) == {(0, 0)} and {job.runtime for job in done.jobs.values()} == {1e-5}
    assert [done.jobs[f"w0!{index}"].return_code for index in range(4)] == [0, 2, 0, 3]


def test_a_finished_job_frees_its_hosts_and_those_left_get_its_share() -> None:
    jobs = [{"profile": "p"}, {"profile": "p"}, {"profile": "p", "subtime": 1}]
    done = run(starting({f"w0!{k}": "0" for k in range(3)}), jobs, {"p": flops(1e9)}, compute_sharing=True)
    assert done.times() == {
        "w0!0": (0, pytest.approx(2.5)),
        "w0!1": (0, pytest.approx(2.5)),
        "w0!2": (1, pytest.approx(3)),
    }


TRACES = {  # by Batsim's own example: usage and flop of each core, of each executor
    "full": (((1.0, 1000.0),), ((1.0, 1000.0),)),
    "two": (((0.1, 1000.0),), ((0.01, 1000.0), (0.97, 1000.0))),
    "void": (((1.0, 0.0),), ()),
}


def traced(name: str) -> UsageTrace:
    return UsageTrace(name, {"type": "usage_trace"}, 0, TRACES[name])


def multicore(**options: Any) -> Platform:
    power = '<prop id="wattage_per_state" value="50:100:200, 40:80:140"/>'
    return platform(2, power, speed="100f,50f", attributes='core="100"', **options)


def run_traced(name: str, more: Any = None, walltime: float = -1, **options: Any) -> Run:
    loaded = workload([{"profile": "d", "res": 2, "walltime": walltime}], {"d": {"type": "delay", "delay": 1}})
    loaded.jobs[0].profile = traced(name)
    return Run(Simulation(multicore(), [loaded], Options(**options)), starting({"w0!0": "0-1"}, more))


def test_executors_of_a_usage_trace_go_each_its_own_way() -> None:
    """Energies as Batsim's test of usage traces predicts them; idle hosts take 50 W."""
    done = run_traced("full", energy=True)
    assert done.times()["w0!0"] == (0, pytest.approx(10)) and done.jobs["w0!0"].energy == pytest.approx(2 * 10 * 200)
    done = run_traced("two", energy=True)
    assert done.times()["w0!0"] == (0, pytest.approx(20))
    assert done.jobs["w0!0"].energy == pytest.approx(10 * 110 + 10 * 50 + 10 * 101 + 10 * 197)
    assert run_traced("void").jobs["w0!0"].runtime == 1e-5


def test_a_usage_trace_slows_down_with_its_hosts_and_shares_them() -> None:
    slower = {5.0: [("SET_RESOURCE_STATE", {"resources": "1", "state": "1"})]}
    assert run_traced("full", slower, energy=True).times()["w0!0"] == (0, pytest.approx(15))
    loaded = workload([{"profile": "d", "res": 2}] * 2, {"d": {"type": "delay", "delay": 1}})
    for job in loaded.jobs:
        job.profile = traced("full")
    decide = starting({"w0!0": "0-1", "w0!1": "0-1"})
    done = Run(Simulation(multicore(), [loaded], Options(compute_sharing=True)), decide)
    assert done.times() == dict.fromkeys(("w0!0", "w0!1"), (0, pytest.approx(20)))


@pytest.mark.parametrize(
    ("walltime", "state", "finish"),
    [(20, "COMPLETED_SUCCESSFULLY", 20), (15, "COMPLETED_WALLTIME_REACHED", 15), (-1, "COMPLETED_KILLED", 12)],
)
def test_a_usage_trace_ends_early(walltime: float, state: str, finish: float) -> None:
    more = {12.0: [("KILL_JOB", {"job_ids": ["w0!0"]})]} if state == "COMPLETED_KILLED" else None
    done = run_traced("two", more, walltime)
    assert (done.jobs["w0!0"].state, done.times()["w0!0"][1]) == (state, pytest.approx(finish))
    for _, data in done.events("JOB_KILLED"):
        assert data["job_progress"]["w0!0"] == {"profile_name": "two", "progress": pytest.approx((1 + 0.6) / 2)}


def storage_place() -> Platform:
    hosts = "".join(
        f'<host id="{name}" speed="0f"><prop id="role" value="storage"/></host>' for name in ("pfs", "tape")
    )
    routes = (
        '<link id="disk" bandwidth="10MBps" latency="1ms"/><route src="pfs" dst="tape"><link_ctn id="disk"/></route>'
    )
    routes += '<link id="near" bandwidth="1GBps"/><route src="pfs" dst="master_host"><link_ctn id="near"/></route>'
    return parse_platform(CLUSTER.format(backbone="", storage=hosts + routes, routes=""), "platform.xml")


def test_storage_hosts_have_the_last_ids_and_can_be_shared() -> None:
    simulation = Simulation(storage_place(), [workload([], {})], Options())
    data = simulation.next_message()["events"][0]["data"]
    assert (data["nb_resources"], data["nb_compute_resources"], data["nb_storage_resources"]) == (10, 8, 2)
    assert [(entry["id"], entry["name"], entry["properties"]["role"]) for entry in data["storage_resources"]] == [
        (8, "pfs", "storage"),
        (9, "tape", "storage"),
    ]


def test_staging_moves_bytes_between_storage_hosts() -> None:
    profiles = {"stage": {"type": "data_staging", "nb_bytes": 1e8, "from": "here", "to": "there"}}

    def decide(message: dict) -> list[dict]:
        submitted = [said for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
        return [execute(message, "w0!0", "", storage_mapping={"here": 8, "there": 9}) for _ in submitted]

    assert run(decide, [{"profile": "stage", "res": 0}], profiles, storage_place()).times()["w0!0"][1] == pytest.approx(
        1e-3 + 10
    )


def test_parallel_file_system_traffic_meets_at_the_storage_host() -> None:
    """Four hosts read 50 MB and write 50 MB each through the one shared link of 50 MBps: 400 MB."""
    profiles = {
        "io": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 5e7, "bytes_to_write": 5e7, "storage": "pfs"}
    }
    done = run(starting({"w0!0": "0-3"}), [{"profile": "io", "res": 4}], profiles, storage_place())
    assert done.times()["w0!0"][1] == pytest.approx(7e-5 + 8)


def test_an_unknown_storage_label_is_told() -> None:
    profiles = {"io": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1, "bytes_to_write": 0, "storage": "nfs"}}
    with pytest.raises(ProtocolError, match="storage 'nfs'"):
        run(starting({"w0!0": "0"}), [{"profile": "io"}], profiles, storage_place())


def test_additional_traffic_slows_a_job_down() -> None:
    profiles = {"p": flops(1e9)}
    extra = {
        "alloc": "0-1",
        "profile_name": "w0!io",
        "profile": {"type": "parallel", "cpu": [0, 0], "com": [0, 3e8, 0, 0]},
    }

    def decide(message: dict) -> list[dict]:
        submitted = [said for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
        return [execute(message, "w0!0", "0-1", additional_io_job=extra) for _ in submitted]

    assert run(decide, [{"profile": "p", "res": 2}], profiles, cluster()).times()["w0!0"][1] == pytest.approx(1e-4 + 3)


def test_additional_traffic_goes_beside_a_sequence_part_by_part() -> None:
    """Parts of 1 s each, beside 300 MB and 0 MB: 3.0001 s and 1 s."""
    profiles = {"p": flops(1e9), "s": {"type": "composed", "seq": ["p", "p"]}}
    for name, size in (("big", 3e8), ("none", 0)):
        profiles[name] = {"type": "parallel", "cpu": [0, 0], "com": [0, size, 0, 0]}
    extra = {"alloc": "0-1", "profile_name": "io", "profile": {"type": "composed", "seq": ["big", "none"]}}

    def decide(message: dict) -> list[dict]:
        submitted = [said for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
        return [execute(message, "w0!0", "0-1", additional_io_job=extra) for _ in submitted]

    assert run(decide, [{"profile": "s", "res": 2}], profiles, cluster()).times()["w0!0"][1] == pytest.approx(1e-4 + 4)
    with pytest.raises(ProtocolError, match="sequence 'io' does not fit"):
        run(decide, [{"profile": "p", "res": 2}], profiles, cluster())


TALK = {
    "ask": {"type": "send", "msg": {"question": 1}, "sleeptime": 2},
    "wait": {"type": "recv", "regex": "yes|no", "success": "short", "failure": "long", "timeout": "", "polltime": 0.5},
    "short": {"type": "delay", "delay": 1},
    "long": {"type": "delay", "delay": 100},
    "talk": {"type": "composed", "seq": ["ask", "wait"]},
    "hasty": {"type": "recv", "regex": ".*", "success": "long", "failure": "long", "timeout": "short"},
}


@pytest.mark.parametrize(("answer", "arrives", "finish"), [("yes", 1.0, 3.0), ("maybe", 1.0, 102.0), ("no", 3.2, 4.5)])
def test_a_job_asks_and_acts_on_the_answer(answer: str, arrives: float, finish: float) -> None:
    """ask 0-2, then the message is there, or looked for at 2.5, 3, 3.5, ..."""
    decide = starting({"w0!0": "0"}, {arrives: [("TO_JOB_MSG", {"job_id": "w0!0", "msg": answer})]})
    done = run(decide, [{"profile": "talk"}], TALK)
    assert done.events("FROM_JOB_MSG") == [(0.0, {"job_id": "w0!0", "msg": {"question": 1}})]
    assert done.times()["w0!0"][1] == pytest.approx(finish)


def test_without_a_message_the_profile_for_that_runs_at_once() -> None:
    assert run(starting({"w0!0": "0"}), [{"profile": "hasty"}], TALK).times()["w0!0"][1] == pytest.approx(1)


def test_waiting_for_a_message_ends_at_the_walltime() -> None:
    done = run(starting({"w0!0": "0"}), [{"profile": "talk", "walltime": 7}], TALK)
    assert (done.jobs["w0!0"].state, done.times()["w0!0"][1]) == ("COMPLETED_WALLTIME_REACHED", pytest.approx(7))


def test_many_messages_at_once_are_taken_one_after_the_other() -> None:
    profiles = {
        "again": {"type": "recv", "regex": "stop", "success": "end", "failure": "again"},
        "end": {"type": "delay", "delay": 1},
    }
    messages = [("TO_JOB_MSG", {"job_id": "w0!0", "msg": text}) for text in ["go"] * 3000 + ["stop"]]
    assert run(starting({"w0!0": "0"}, {1.0: messages}), [{"profile": "again"}], profiles).times()["w0!0"][
        1
    ] == pytest.approx(2.005)


def test_control_latency_delays_completions_one_after_the_other() -> None:
    """Case 08: two jobs end together; their messages reach the server after 70 us and after another 70 us."""
    jobs = [{"profile": "p"}, {"profile": "p"}]
    decide = starting({"w0!0": "0", "w0!1": "1"})
    done = run(decide, jobs, {"p": flops(1e9)}, cluster(), control_latency=True)
    assert [date for date, _ in done.events("JOB_COMPLETED")] == pytest.approx([1 + 7e-5, 1 + 14e-5])
    assert (
        len([message for message in done.messages if message["now"] == pytest.approx(1 + 14e-5)]) == 2
    )  # completions, end
    assert [finish for _, finish in done.times().values()] == pytest.approx([1, 1])


def test_several_workloads_end_their_submissions_together() -> None:
    workloads = [workload([{"profile": "d"}], {"d": {"type": "delay", "delay": 1}}, name) for name in ("w0", "w1")]
    done = Run(Simulation(platform(), workloads, Options()), starting({"w0!0": "0", "w1!0": "1"}))
    assert [len(message["events"]) for message in done.messages] == [1, 3, 2, 1]
    assert done.messages[1]["events"][-1] == {
        "timestamp": 0.0,
        "type": "NOTIFY",
        "data": {"type": "no_more_static_job_to_submit"},
    }


def test_jobs_of_one_date_come_in_the_order_of_their_identifiers_as_text() -> None:
    done = run(
        starting({f"w0!{k}": "0" for k in range(12)}), [{"profile": "d"}] * 12, {"d": flops(1e9)}, compute_sharing=True
    )
    assert [data["job_id"] for _, data in done.events("JOB_SUBMITTED")] == sorted(f"w0!{k}" for k in range(12))


def test_a_late_reply_is_carried_out_at_its_own_dates() -> None:
    class Slow:
        """Replies 0.5 s late; its first decision is of 0.2 s after the message."""

        def __init__(self) -> None:
            self.simulation = Simulation(
                platform(), [workload([{"profile": "d"}, {"profile": "d", "subtime": 0.4}], D)], Options()
            )
            self.messages = []
            while (message := self.simulation.next_message()) is not None:
                self.messages.append(message)
                jobs = [said["data"]["job_id"] for said in message["events"] if said["type"] == "JOB_SUBMITTED"]
                events = [execute({"now": message["now"] + 0.2}, job, job[-1]) for job in jobs]
                self.simulation.answer({"now": message["now"] + 0.5, "events": events})

    messages = Slow().messages
    assert [(message["now"], [said["type"] for said in message["events"]]) for message in messages] == [
        (0.0, ["SIMULATION_BEGINS"]),
        (0.5, ["JOB_SUBMITTED", "JOB_SUBMITTED", "NOTIFY"]),
        (1.7, ["JOB_COMPLETED", "JOB_COMPLETED"]),
        (2.2, ["SIMULATION_ENDS"]),
    ]
    assert [said["timestamp"] for said in messages[1]["events"]] == [0.0, 0.4, 0.4]


D = {"d": {"type": "delay", "delay": 1}}


def test_exact_dates_where_rounding_is_off() -> None:
    third = {"d": {"type": "delay", "delay": 1 / 3}}
    exact = run(starting({"w0!0": "0"}), [{"profile": "d"}], third, round_to_microseconds=False)
    assert exact.messages[-1]["now"] == 1 / 3
    assert run(starting({"w0!0": "0"}), [{"profile": "d"}], third).messages[-1]["now"] == 0.333333
