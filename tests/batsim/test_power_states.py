"""Pstates, sleep and energy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_runs import Decide, Message, platform, run, starting, workload

from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.outputs import Outputs
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.config.errors import UserError
from schedlab.platforms.platform import Platform

POWER = '<prop id="wattage_per_state" value="{}"/>'
SLEEPY = POWER.format("10:20:100, 5:8:40, 1:1:1, 30:30:50, 40:40:60") + '<prop id="sleep_pstates" value="2:4:3"/>'
CPU = {
    "p": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 0},
    "half": {"type": "parallel", "cpu": [1e9, 2e9], "com": [0] * 4},
}


def sleepy(hosts: int = 2, pstate: int = 0) -> Platform:
    """Speeds 1 Gf and 0.5 Gf; 2 is asleep, entered through 4 (2 s), left through 3 (4 s)."""
    return platform(hosts, SLEEPY, speed="1Gf,0.5Gf,1f,0.25f,0.5f", attributes=f'pstate="{pstate}"')


def to(resources: str, state: int) -> tuple[str, Message]:
    return ("SET_RESOURCE_STATE", {"resources": resources, "state": str(state)})


def at_share(resources: str, share: float) -> tuple[str, Message]:
    return ("SET_RESOURCE_STATE", {"resources": resources, "state": "0", "share": share})


ASK = ("QUERY", {"requests": {"consumed_energy": {}}})


def energies(*arguments: Any, **options: Any) -> list[float]:
    return [data["consumed_energy"] for _, data in run(*arguments, energy=True, **options).events("ANSWER")]


def test_power_depends_on_the_load() -> None:
    """Half load of host 0: 20 + 0.5 * 80 = 60 W; full load of host 1: 100 W."""
    asked = energies(
        starting({"w0!0": "0-1"}, {1.0: [ASK], 3.0: [ASK]}), [{"profile": "half", "res": 2}], CPU, sleepy()
    )
    assert asked == pytest.approx([160, 2 * 160 + 20])


def test_a_host_of_several_cores_has_the_load_of_all() -> None:
    place = platform(1, POWER.format("10:20:100"), attributes='core="4"')
    assert energies(starting({"w0!0": "0"}, {1.0: [ASK]}), [{"profile": "p"}], CPU, place) == pytest.approx([40])


def test_tasks_that_share_a_host_load_it_once() -> None:
    jobs = [{"profile": "p"}] * 2
    done = run(
        starting({"w0!0": "0", "w0!1": "0"}, {1.0: [ASK]}), jobs, CPU, sleepy(), energy=True, compute_sharing=True
    )
    assert done.events("ANSWER")[0][1]["consumed_energy"] == pytest.approx(100 + 10)
    assert [job.energy for job in done.jobs.values()] == pytest.approx([800, 800])


def test_a_slower_host_takes_effect_on_the_work_that_is_left() -> None:
    done = run(starting({"w0!0": "0-1"}, {1.0: [to("1", 1)]}), [{"profile": "p", "res": 2}], CPU, sleepy(), energy=True)
    assert done.times()["w0!0"] == (0, pytest.approx(1 + 6))
    assert done.jobs["w0!0"].energy == pytest.approx(200 + 6 * (60 + 40))  # host 0 at half load
    assert done.events("RESOURCE_STATE_CHANGED") == [(1.0, {"resources": "1", "state": "1"})]


def test_a_share_of_full_speed_lasts_until_the_next_pstate() -> None:
    """4 Gflop at 1 Gf/s until 1, at a quarter of it until 5, then at 0.5 Gf/s."""
    decide = starting({"w0!0": "0"}, {1.0: [at_share("0", 0.25)], 5.0: [to("0", 1)]})
    done = run(decide, [{"profile": "p"}], CPU, sleepy(hosts=1), energy=True)
    assert done.times() == {"w0!0": (0, pytest.approx(5 + (4 - 1 - 1) / 0.5))}


def test_speed_changes_reach_tasks_that_share() -> None:
    jobs = [{"profile": "p"}] * 2
    decide = starting({"w0!0": "0", "w0!1": "0"}, {2.0: [to("0", 1)]})
    done = run(decide, jobs, CPU, sleepy(), energy=True, compute_sharing=True)
    assert [finish for _, finish in done.times().values()] == pytest.approx([14, 14])


def test_sleeping_and_waking_take_their_time_and_power() -> None:
    """10 W idle until 1, 60 W falling asleep until 3, 1 W asleep until 10, 50 W waking up until 14, 5 W in pstate 1."""
    more = {1.0: [to("0", 2)], 10.0: [to("0", 1)], 15.0: [ASK]}
    done = run(starting({"w0!0": "1"}, more), [{"profile": "p"}], CPU, sleepy(), energy=True)
    assert [date for date, _ in done.events("RESOURCE_STATE_CHANGED")] == [3.0, 14.0]
    host_1 = 4 * 100 + 11 * 10
    assert done.events("ANSWER")[0][1]["consumed_energy"] == pytest.approx(10 + 120 + 7 + 200 + 5 + host_1)
    totals = done.simulation.schedule()
    assert [totals[f"time_{name}"] for name in ("switching_off", "sleeping", "switching_on")] == pytest.approx(
        [2, 7, 4]
    )
    assert (totals["nb_grouped_switches"], totals["nb_machine_switches"]) == (2, 2)


def test_a_host_that_comes_back_while_it_switches_goes_on_switching(tmp_path: Path) -> None:
    """Unavailable from 1.5 to 2 while it falls asleep (1 to 3), and from 11 to 12 while it wakes up (10 to 14)."""
    dates = [(1.5, "un"), (2.0, ""), (11.0, "un"), (12.0, "")]
    lines = [f'{{"type": "machine_{kind}available", "resources": "0", "timestamp": {date}}}' for date, kind in dates]
    (tmp_path / "events.txt").write_text("\n".join(lines) + "\n")
    more = {1.0: [to("0", 2)], 10.0: [to("0", 1)], 15.0: [ASK]}
    options = {"energy": True, "events_files": (tmp_path / "events.txt",)}
    totals = run(starting({"w0!0": "1"}, more), [{"profile": "p"}], CPU, sleepy(), **options).simulation.schedule()
    states = ("switching_off", "sleeping", "switching_on", "unavailable")
    assert [totals[f"time_{name}"] for name in states] == pytest.approx([1.5, 7, 3, 1.5])


def test_hosts_may_begin_asleep() -> None:
    done = run(starting({}, {1.0: [to("0-1", 0)]}), [], {}, sleepy(pstate=2), energy=True)
    assert [entry["state"] for entry in done.messages[0]["events"][0]["data"]["compute_resources"]] == ["sleeping"] * 2
    assert done.messages[-1]["now"] == 5.0, "a pending switch prolongs the simulation"


def test_a_host_never_looked_at_has_the_idle_power_of_pstate_0_first() -> None:
    """As recorded in case 40a: 10 W until the reading at 4, 5 W (pstate 1) from then on."""
    assert energies(starting({}, {4.0: [ASK], 6.0: [ASK]}), [], {}, sleepy(hosts=1, pstate=1)) == pytest.approx(
        [40, 50]
    )


@pytest.mark.parametrize(
    ("decisions", "told"),
    [
        ({1.0: [to("0", 9)]}, "no pstate 9"),
        ({1.0: [to("0", 3)]}, "virtual one"),
        ({1.0: [to("1", 2)]}, "resource 1 computes and cannot sleep"),
        ({1.0: [to("0", 2)], 2.0: [to("0", 0)]}, "is switching its pstate"),
        ({1.0: [to("0", 2)], 4.0: [to("0", 2)]}, "can only be woken"),
        ({1.0: [to("0", 2)], 2.0: [("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0"})]}, "is switching its pstate"),
        ({1.0: [to("0", 2)], 4.0: [("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0"})]}, "resource 0 sleeps"),
        ({1.0: [("SET_RESOURCE_STATE", {"resources": "0", "state": "fast"})]}, "state is 'fast'"),
        ({1.0: [at_share("0", 0.0)]}, "share is 0.0"),
        ({1.0: [at_share("0", True)]}, "share is True"),
        ({1.0: [at_share("0", 1.5)]}, "share is 1.5"),
    ],
)
def test_what_hosts_cannot_do_is_told(decisions: dict[float, list[tuple[str, Message]]], told: str) -> None:
    with pytest.raises(ProtocolError, match=told):
        run(starting({"w0!0": "1"}, decisions), [{"profile": "p"}, {"profile": "p"}], CPU, sleepy(), energy=True)


@pytest.mark.parametrize("value", ["10", "a:b,1:2", "-1:2,1:2", "nan:1,1:2", "1:2:3:4,1:2"])
def test_wrong_powers_are_told(value: str) -> None:
    with pytest.raises(UserError, match="wattage_per_state"):
        run(lambda _: [], [], {}, platform(1, POWER.format(value), speed="1Gf,2Gf"), energy=True)


def test_energy_needs_powers_and_sleep_needs_pstates() -> None:
    with pytest.raises(UserError, match="wattage_per_state: is missing"):
        run(lambda _: [], [], {}, platform(1), energy=True)
    wrong = platform(1, POWER.format("1:2") + '<prop id="sleep_pstates" value="0:1:2"/>')
    with pytest.raises(UserError, match="is no sleep state"):
        run(lambda _: [], [], {}, wrong, energy=True)


def test_outputs_appear_only_at_the_end(tmp_path: Path) -> None:
    names = {f"out_{name}.csv" for name in ("jobs", "schedule", "machine_states", "consumed_energy", "pstate_changes")}
    for complete in (False, True):
        folder = tmp_path / str(complete)
        with Outputs(folder / "out") as outputs:
            simulation = Simulation(sleepy(), [workload([{"profile": "p"}], CPU)], Options(energy=True), outputs)
            decide = starting({"w0!0": "0"})
            while (message := simulation.next_message()) is not None:
                assert not {path.name for path in folder.iterdir()} & names
                if not complete and message["now"] > 0:
                    break
                simulation.answer({"now": message["now"], "events": decide(message)})
        assert {path.name for path in folder.iterdir()} == (names if complete else set())


def test_the_summary_has_its_name_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def fail_for_jobs(path: Path, target: Path) -> Path:
        if str(target).endswith("_jobs.csv"):
            raise OSError("no more")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail_for_jobs)
    with pytest.raises(OSError, match="no more"), Outputs(tmp_path / "out") as outputs:
        finish(Simulation(platform(), [workload([], {})], Options(), outputs), starting({}))
    assert "out_schedule.csv" not in {path.name for path in tmp_path.iterdir()}


def finish(simulation: Simulation, decide: Decide) -> None:
    while (message := simulation.next_message()) is not None:
        simulation.answer({"now": message["now"], "events": decide(message)})


def test_odd_names_stay_within_their_cells(tmp_path: Path) -> None:
    name, identifier = 'a,"b"\n', "1,2"
    with Outputs(tmp_path / "out") as outputs:
        jobs = workload([{"id": identifier, "profile": name}, {"id": "\ud800", "profile": name}], {name: CPU["p"]})
        finish(Simulation(platform(), [jobs], Options(), outputs), starting({"w0!1,2": "0", "w0!\ud800": "1"}))
    table = pd.read_csv(tmp_path / "out_jobs.csv")
    assert table["profile"].tolist() == [name, name]
    assert table["job_id"].tolist() == [identifier, "\\ud800"]


def test_the_metadata_of_a_job_are_quoted(tmp_path: Path) -> None:
    text = 'a "quoted", {odd} text'
    with Outputs(tmp_path / "out") as outputs:
        decide = starting({"w0!0": "0"}, {1.0: [("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": text})]})
        finish(Simulation(platform(), [workload([{"profile": "p"}], CPU)], Options(), outputs), decide)
    assert pd.read_csv(tmp_path / "out_jobs.csv")["metadata"].tolist() == [text]
