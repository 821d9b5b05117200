"""Rates of the hetero study and of the embedded Batsim beneath it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import hetero
import pytest
import simulator

from schedlab.batsim.running import Inputs, open_backend


@pytest.mark.parametrize(
    "case", ["delay-128-fcfs", "delay-128-easy", "delay-2280-fcfs", "delay-2280-easy", "cpu-128-fcfs", "cpu-128-easy"]
)
def bench_simulator(measure, quick, tmp_path, case):
    """Simulated jobs (name: kind of jobs, hosts, PyBatsim scheduler), output files included."""
    simulate(measure, tmp_path, case, 1_000 if quick else 10_000, "jobs", 1)


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def bench_pybatsim(measure, quick, tmp_path, scheduler):
    """Jobs in recorded messages (delay jobs, 128 hosts): PyBatsim and the scheduler alone."""
    count = 1_000 if quick else 10_000
    simulator.write_platform(tmp_path / "p.xml", 128)
    simulator.write_workload(tmp_path / "w.json", count, 128, "delay")
    inputs = Inputs(tmp_path / "p.xml", (tmp_path / "w.json",), f"{tmp_path}/out")
    with open_backend("embedded", inputs) as simulation:
        messages = simulator.recorded_messages(simulation, scheduler)

    def run(repeated) -> int:
        simulator.schedule(repeated, 128, scheduler)
        return count

    measure(run, "jobs", setup=lambda: simulator.Repeated(messages), rounds=5)


def bench_simulator_events(measure, quick, tmp_path):
    """Simulated submissions and completions of delay jobs on 128 hosts, without PyBatsim."""
    simulate(measure, tmp_path, "delay-128-none", 1_000 if quick else 10_000, "events", 2)


def simulate(measure, folder: Path, case: str, count: int, unit: str, each: int) -> None:
    """Measure a whole simulation from the first message to the last answer."""
    kind, hosts, scheduler = case.split("-")
    simulator.write_platform(folder / "p.xml", int(hosts))
    simulator.write_workload(folder / "w.json", count, int(hosts), kind)
    with ExitStack() as stack:

        def read():
            stack.close()
            return stack.enter_context(
                open_backend("embedded", Inputs(folder / "p.xml", (folder / "w.json",), f"{folder}/out"))
            )

        def run(simulation) -> int:
            simulator.schedule(simulation, int(hosts), None if scheduler == "none" else scheduler)
            return each * count

        measure(run, unit, setup=read, rounds=5)


@pytest.fixture(scope="module")
def gaia(quick):
    return hetero.inputs("gaia", 100 if quick else hetero.JOBS)


def bench_episode(measure, gaia):
    """One episode of 1,000 jobs on Gaia (2,280 cores) with the pair `shortest-high_gflops` (quick: 100 jobs)."""
    run = hetero.play_pair(*gaia, hetero.PAIRS[0])

    def play() -> int:
        run()
        return 1

    measure(play, "s", rounds=5)


@pytest.mark.parametrize("observation", ["small", "normal"])
def bench_environment_steps(measure, gaia, observation):
    """`schedlab/Hetero-v0` on Gaia: decisions, each with an observation."""
    run = hetero.step_environment(*gaia, observation)
    measure(lambda: run()[1], "steps", rounds=5)
