"""The cases of Batsim 4.2.1's own tests on its own files, with the command `batsim` in place of Batsim."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import suite_schedulers
from robin import Ended, in_processes, in_threads
from suite_cases import CASES, SEVEN, THREE, Run, table

pytestmark = pytest.mark.slow
HOST = '<host id="{name}" speed="{speed}f" core="100"><prop id="wattage_per_state" value="{watts}"/></host>'
IDLE, FULL, CORES, SPEED = 50.0, 200.0, 100, 100.0  # W, W, cores and flop/s of a core of hosts a and b
USAGE_PLATFORM = (
    '<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="100Mf"/>'
    + HOST.format(name="a", speed=100, watts="50:50:200")
    + HOST.format(name="b", speed=100, watts="50:50:200")
    + HOST.format(name="c", speed=50, watts="50:50:150")
    + HOST.format(name="d", speed=50, watts="50:50:150")
    + "</zone></platform>"
)
TRACES = {  # of each executor: shares of the cores and how long
    "one phase, all": [[(1.0, 10)], [(1.0, 10)]],
    "one phase, half": [[(0.5, 10)], [(0.5, 10)]],
    "two phases": [[(1.0, 10), (0.1, 20)], [(1.0, 10), (0.1, 20)]],
    "unlike": [[(0.2, 10)], [(0.6, 30)]],
    "unlike phases": [[(0.1, 40)], [(0.01, 5), (0.97, 15)]],
}


@pytest.fixture(scope="session")
def inputs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """The path of a file by its kind (platforms, workloads, events) and name."""
    given, own = shared_data / "cases/batsim_files", tmp_path_factory.mktemp("usage")
    if not given.is_dir():
        pytest.skip(f"needs Batsim's own files in {given}")
    profiles, jobs = {}, []
    for number, (name, ranks) in enumerate(TRACES.items()):
        listed = own / f"{number}.txt"
        for rank, phases in enumerate(ranks):
            lines = [f"{rank} m_usage {share} {seconds * SPEED}\n" for share, seconds in phases]
            (own / f"{number}_{rank}.txt").write_text("".join(lines))
        listed.write_text("".join(f"{number}_{rank}.txt\n" for rank in range(len(ranks))))
        profiles[name] = {"type": "usage_trace", "trace": listed.name}
        jobs.append({"id": number, "subtime": 100 * number, "res": len(ranks), "walltime": 90, "profile": name})
    (own / "usage.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    (own / "usage.xml").write_text(USAGE_PLATFORM)

    def path(kind: str, name: str) -> str:
        suffix = {"platforms": ".xml", "workloads": ".json", "events": ".txt"}[kind]
        folder = own if name == "usage" else given / kind
        return str(folder / (name + suffix))

    return path


def arguments_of(run: Run, inputs: Callable[[str, str], str], folder: Path) -> list[str]:
    """The command line of a run, as Batsim's tests write it."""
    more = [inputs("events", word) if word.startswith("test_") else word for word in run.arguments]
    files = ["-p", inputs("platforms", run.platform), "-w", inputs("workloads", run.workload)]
    return [*files, "-e", str(folder / "batres"), *more]


@pytest.mark.parametrize(
    ("case", "run"),
    [
        pytest.param(name, run, id=f"{name}: {run.name}".replace(" ", "_"))
        for name, case in CASES.items()
        for run in case.runs
    ],
)
def test_a_case_of_batsims_own_tests(
    case: str, run: Run, inputs: Callable[[str, str], str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    arguments = arguments_of(run, inputs, tmp_path)
    ended = in_threads(tmp_path_factory.mktemp("s"), arguments, run.scheduler, run.options)
    if run.fails:
        assert ended.status in (1, 2) and run.fails in ended.log
        assert len([line for line in ended.log.splitlines() if line.startswith("error: ")]) == 1
        return
    assert (ended.status, ended.scheduler) == (0, ""), ended.log[-2000:]
    jobs = pd.read_csv(tmp_path / "batres_jobs.csv", keep_default_na=False, dtype={"job_id": str, "metadata": str})
    workload = json.loads(Path(inputs("workloads", run.workload)).read_text())
    assert len(jobs) >= len(workload["jobs"])
    if CASES[case].check:
        globals()[CASES[case].check](run, jobs, ended, workload)


def all_registered_jobs_ran(run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    dynamic = jobs[jobs["workload_name"] == "dyn"]
    assert len(dynamic) == run.options["count"] and dynamic["success"].all()
    delays = [10 + number if run.options["longer"] else 10 for number in range(run.options["count"])]
    assert sorted(dynamic["execution_time"]) == pytest.approx(delays)


def energy_was_consumed(run: Run, jobs: pd.DataFrame, ended: Ended, _workload: object) -> None:
    assert (jobs["consumed_energy"] > 0).all()
    if run.scheduler == "energy watcher":
        assert [data["consumed_energy"] > 0 for data in ended.events("ANSWER")] == [True] * len(jobs)
    else:
        assert {data["state"] for data in ended.events("RESOURCE_STATE_CHANGED")} == {"0", "13"}


def hosts_slept_and_woke(_run: Run, _jobs: pd.DataFrame, ended: Ended, _workload: object) -> None:
    switched = [(said["now"], event["data"]["state"]) for said in ended.messages() for event in said["events"]
                if event["type"] == "RESOURCE_STATE_CHANGED"]  # fmt: skip
    asked = [(said["now"], event["data"]["state"]) for said in ended.messages("Received") for event in said["events"]
             if event["type"] == "SET_RESOURCE_STATE"]  # fmt: skip
    takes = {"13": 6.1, "0": 151.52}
    assert {state for _, state in switched} == {"0", "13"}
    assert [(pytest.approx(date + takes[state], abs=1e-3), state) for date, state in asked] == switched


def killed_in_time(run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    assert (jobs["execution_time"] <= run.options["delay"] + 0.1).all()


def progress_agrees(run: Run, _jobs: pd.DataFrame, ended: Ended, workload: dict[str, object]) -> None:
    profile = next(iter(workload["profiles"].values()))
    total = profile["delay"] if profile["type"] == "delay" else SLOWEST
    delay = run.options["delay"]
    killed = [progress for data in ended.events("JOB_KILLED") for progress in data["job_progress"].values()]
    assert len(killed) == (1 if delay < total else 0)
    for progress in killed:
        assert progress["progress"] == pytest.approx(delay / total, abs=1e-3)


SLOWEST = 20.621958  # s that 1 Gflop takes on the slowest host of the small platform


def slower_on_fewer(run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    share = run.options["share"]
    times = 1 / share if run.workload.endswith("tot") else {0.25: 4, 0.5: 2, 0.75: 2, 1: 1}[share]
    assert jobs["execution_time"].tolist() == pytest.approx([SLOWEST * times], abs=1e-4)


def metadata_everywhere_or_nowhere(run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    assert set(jobs["metadata"]) == {run.options.get("metadata", "")}


def submitted_in_order(_run: Run, jobs: pd.DataFrame, ended: Ended, _workload: object) -> None:
    rows = sorted(zip(jobs["submission_time"], jobs["job_id"], strict=True))
    assert [data["job_id"] for data in ended.events("JOB_SUBMITTED")] == [f"w0!{number}" for _, number in rows]


def stencil_times(_run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    took = jobs.sort_values("submission_time")["execution_time"].tolist()
    assert all(took[0] < took[job] for job in (1, 2, 3, 4)) and took[3] < took[2] and took[4] < took[2]
    assert all(took[4] < took[job] for job in (5, 6, 7, 8))


def usage_as_calculated(_run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    rows = jobs.set_index("profile")
    for name, ranks in TRACES.items():
        lasts = max(sum(seconds for _, seconds in phases) for phases in ranks)
        joules = 0.0
        for phases in ranks:
            busy = sum(seconds for _, seconds in phases)
            joules += sum(seconds * (IDLE + (FULL - IDLE) * share) for share, seconds in phases)
            joules += (lasts - busy) * IDLE
        assert (rows.loc[name, "execution_time"], rows.loc[name, "consumed_energy"]) == pytest.approx((lasts, joules))


def walltimes_hold(_run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    for job in jobs.itertuples():
        if job.requested_time > 0:
            assert job.execution_time <= job.requested_time + 1e-5
            if job.execution_time < job.requested_time - 1e-5:
                assert job.success == 1
            if job.final_state == "COMPLETED_WALLTIME_REACHED":
                assert job.execution_time == pytest.approx(job.requested_time, abs=1e-5)
        else:
            assert job.success == 1


@pytest.mark.parametrize("run", [Run(SEVEN[0], THREE[0], "easyBackfill"), Run(SEVEN[2], THREE[1], "filling")])
def test_batsim_and_a_scheduler_in_two_processes(run: Run, inputs: Callable[[str, str], str], tmp_path: Path) -> None:
    """PyBatsim's own launcher, or a program of ours, beside the command, as a user starts them."""
    endpoint = "ipc://./socket"
    launcher = [str(Path(sys.executable).with_name("pybatsim")), "easyBackfill", "-s", endpoint]
    ours = [sys.executable, suite_schedulers.__file__, endpoint, str(run.scheduler), "{}"]
    arguments = [*arguments_of(run, inputs, tmp_path), "-s", endpoint]
    ended = in_processes(tmp_path, arguments, launcher if run.scheduler == "easyBackfill" else ours)
    assert (ended.status, ended.scheduler) == (0, ""), ended.log
    assert pd.read_csv(tmp_path / "batres_jobs.csv")["success"].all()
    assert ended.events("SIMULATION_ENDS") == [{}]


@pytest.mark.parametrize(
    ("scheduler", "limit", "after_success"),
    [("import sys; sys.exit(3)", 20, 10), ("import time; time.sleep(60)", 1, 10)],
    ids=["leaves with a failure", "says nothing"],
)
def test_what_stands_in_for_robin_fails_where_the_scheduler_does(
    scheduler: str, limit: float, after_success: float, inputs: Callable[[str, str], str], tmp_path: Path
) -> None:
    arguments = [*arguments_of(Run(SEVEN[0], THREE[0]), inputs, tmp_path), "-s", "ipc://./socket"]
    ended = in_processes(tmp_path, arguments, [sys.executable, "-c", scheduler], limit, after_success)
    assert ended.scheduler and ended.status != 0


def test_the_page_lists_every_case(repository: Path) -> None:
    page = (repository / "docs/reference/batsim_suite.md").read_text()
    assert "\n".join(table()) in page, "python tests/batsim/suite_cases.py prints the table"
