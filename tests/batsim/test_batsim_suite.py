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
from suite_cases import CASES, ONE_JOB, SEVEN, USAGE, USAGE_TRACES, Run, table

pytestmark = pytest.mark.slow
HOST = '<host id="{}" speed="{}f" core="100"><prop id="wattage_per_state" value="{}:{}:{}"/></host>'
FAST, SLOW = (100, 50, 100, 200), (50, 50, 90, 150)  # flop/s of a core; W idle, of the first core, of all cores
USAGE_PLATFORM = (
    '<platform version="4.1"><zone id="z" routing="Vivaldi"><host id="master_host" speed="100Mf"/>'
    + "".join(HOST.format(name, *kind) for name, kind in zip("abcd", (FAST, FAST, SLOW, SLOW), strict=True))
    + "</zone></platform>"
)
FLOP = 1000
TRACES = {  # of each executor: the shares of the cores that compute FLOP flop each, one after the other
    "homo-onephase-100": [[1.0], [1.0]],
    "homo-onephase-50": [[0.5], [0.5]],
    "homo-twophases-100-10": [[1.0, 0.1], [1.0, 0.1]],
    "hetero-onephase-20-60": [[0.2], [0.6]],
    "hetero-onephase-10-twophases-1-97": [[0.1], [0.01, 0.97]],
}


@pytest.fixture(scope="session")
def inputs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """The path of a file by its kind (platforms, workloads, events) and name."""
    given, own = shared_data / "cases/batsim_files", tmp_path_factory.mktemp("usage")
    if not given.is_dir():
        pytest.skip(f"needs Batsim's own files in {given}")
    for name, ranks in TRACES.items():
        folder = own / "usage-trace" / name
        folder.mkdir(parents=True)
        for rank, shares in enumerate(ranks):
            (folder / f"{rank}.txt").write_text("".join(f"{rank} m_usage {share} {FLOP}\n" for share in shares))
        (folder / "traces.txt").write_text("".join(f"{rank}.txt\n" for rank in range(len(ranks))))
    workload = json.loads((given / "workloads" / f"{USAGE_TRACES}.json").read_text())
    del workload["profiles"]["ut-from-real-trace"]
    workload["jobs"] = [job for job in workload["jobs"] if job["profile"] in workload["profiles"]]
    (own / f"{USAGE_TRACES}.json").write_text(json.dumps(workload))
    (own / f"{USAGE}.xml").write_text(USAGE_PLATFORM)

    def path(kind: str, name: str) -> str:
        suffix = {"platforms": ".xml", "workloads": ".json", "events": ".txt"}[kind]
        folder = own if name in (USAGE, USAGE_TRACES) else given / kind
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
    assert (jobs.loc[jobs["execution_time"] > 1e-5, "consumed_energy"] > 0).all()  # 1e-5 s stands for none
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
    numbers = pd.to_numeric(jobs["job_id"], errors="coerce")
    names = numbers if numbers.notna().all() else jobs["job_id"]
    rows = sorted(zip(jobs["submission_time"], names, jobs["job_id"], strict=True))
    assert [data["job_id"] for data in ended.events("JOB_SUBMITTED")] == [f"w0!{name}" for *_, name in rows]


def stencil_times(_run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    took = jobs.sort_values("submission_time")["execution_time"].tolist()
    assert all(took[0] < took[job] for job in (1, 2, 3, 4)) and took[3] < took[2] and took[4] < took[2]
    assert all(took[4] < took[job] for job in (5, 6, 7, 8))


def usage_as_calculated(_run: Run, jobs: pd.DataFrame, _ended: Ended, _workload: object) -> None:
    for job in jobs.itertuples():
        speed, idle, least, full = FAST if job.allocated_resources == "0-1" else SLOW
        assert job.allocated_resources in ("0-1", "2-3")
        phase = FLOP / speed
        if job.profile == "delay-10s":
            lasts, joules = 10, 2 * 10 * idle
        else:
            ranks = TRACES[job.profile.removeprefix("ut-")]
            longest = max(map(len, ranks))
            lasts, joules = phase * longest, 0.0
            for shares in ranks:
                joules += sum(phase * (least + (full - least) * share) for share in shares)
                joules += phase * (longest - len(shares)) * idle
        assert (job.execution_time, job.consumed_energy) == pytest.approx((lasts, joules))
    assert len(jobs) == 1 + 2 * len(TRACES)


def walltimes_hold(_run: Run, jobs: pd.DataFrame, _ended: Ended, workload: dict[str, object]) -> None:
    """As Batsim's test, which leaves out that a parallel task may succeed at its walltime (recorded run 41)."""
    for job in jobs.itertuples():
        assert job.requested_time == -1 or job.execution_time <= job.requested_time
        computes = workload["profiles"][job.profile]["type"] != "delay"
        if job.success and job.requested_time != -1:
            assert job.execution_time < job.requested_time or (computes and job.execution_time == job.requested_time)
        elif not job.success:
            assert job.execution_time >= job.requested_time


@pytest.mark.parametrize("run", [Run(SEVEN[0], ONE_JOB[0], "easyBackfill"), Run(SEVEN[2], ONE_JOB[1], "filling")])
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
    arguments = [*arguments_of(Run(SEVEN[0], ONE_JOB[0]), inputs, tmp_path), "-s", "ipc://./socket"]
    ended = in_processes(tmp_path, arguments, [sys.executable, "-c", scheduler], limit, after_success)
    assert ended.scheduler and ended.status != 0


def test_the_page_lists_every_case(repository: Path) -> None:
    page = (repository / "docs/reference/batsim_suite.md").read_text()
    assert "\n".join(table()) in page, "python tests/batsim/suite_cases.py prints the table"
