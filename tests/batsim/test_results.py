"""Reading Batsim's output files: a hand-made one, and every recorded run against its own summary."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from schedlab.batsim.files.results import intervals, read_energy, read_jobs
from schedlab.config.errors import UserError
from schedlab.evaluation.job_metrics import job_metrics, load_over_time

HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,"
    "execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata\n"
)
ROWS = (
    "10,w0,p,5.000000,2,-1.000000,1,COMPLETED_SUCCESSFULLY,5.000000,4.000000,9.000000,0.000000,4.000000,1.000000,3 5,"
    '40.500000,""\n'
    '9,w0,p,5.000000,9,20.000000,0,REJECTED,,,,,,,,,""\n'
    "a,w0,p,0.000000,4,8.000000,0,COMPLETED_WALLTIME_REACHED,1.000000,8.000000,9.000000,1.000000,9.000000,1.125000,"
    '0-2 4,-1.000000,""\n'
)


CASES = Path(__file__).parents[1] / "data/batsim"


def summary(case: Path) -> dict[str, float]:
    row = next(csv.DictReader((case / "out_schedule.csv").open()))
    return {name: float(value) for name, value in row.items() if name != "batsim_version"}


def test_a_schedule_by_hand(tmp_path):
    (tmp_path / "out_jobs.csv").write_text(HEADER + ROWS)
    jobs = read_jobs(tmp_path / "out")
    assert jobs["job"].tolist() == ["a", "9", "10"]
    assert jobs["hosts"].tolist() == [4, 0, 2] and jobs["hosts_requested"].tolist() == [4, 9, 2]
    assert jobs["success"].tolist() == [False, False, True]
    assert jobs["allocation"].tolist() == ["0-2 4", "", "3 5"]
    np.testing.assert_equal(jobs["start"].tolist(), [1.0, np.nan, 5.0])
    np.testing.assert_equal(jobs["walltime"].tolist(), [8.0, 20.0, np.nan])
    np.testing.assert_equal(jobs["energy"].tolist(), [np.nan, np.nan, 40.5])


def test_intervals():
    assert intervals("0-3 5 7-9") == [(0, 3), (5, 5), (7, 9)]
    assert intervals("") == []


def test_a_schedule_of_rejected_jobs_alone(tmp_path):
    (tmp_path / "out_jobs.csv").write_text(HEADER + ROWS.splitlines(keepends=True)[1])
    jobs = read_jobs(tmp_path / "out")
    assert job_metrics(jobs, 4, 10.0) == {"unsuccessful": 1.0}


@pytest.mark.parametrize("text", ["", "time,energy\n", "job_id\n1\n"])
def test_another_file_is_refused_by_name(tmp_path, text):
    (tmp_path / "out_jobs.csv").write_text(text)
    with pytest.raises(UserError, match=r"out_jobs\.csv"):
        read_jobs(tmp_path / "out")


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(UserError, match=r"out_consumed_energy\.csv: no such file"):
        read_energy(tmp_path / "out")


def test_recorded_runs_give_the_numbers_of_their_summaries():
    for case in sorted(path.parent for path in CASES.glob("*/out_jobs.csv")):
        told, jobs = summary(case), read_jobs(case / "out")
        assert len(jobs) == told["nb_jobs"], case.name
        metrics = job_metrics(jobs, int(told["nb_computing_machines"]), threshold=10.0)
        ran = told["nb_jobs_finished"] / told["nb_jobs"]  # Batsim's means count rejected jobs as 0
        assert metrics["makespan"] == pytest.approx(told["makespan"] - jobs["submit"].min(), abs=2e-6), case.name
        assert metrics["mean_wait"] * ran == pytest.approx(told["mean_waiting_time"], abs=2e-6), case.name
        assert metrics["mean_turnaround"] * ran == pytest.approx(told["mean_turnaround_time"], abs=2e-6), case.name
        assert metrics["unsuccessful"] == pytest.approx(1 - told["success_rate"], abs=2e-6), case.name


def test_the_load_of_recorded_runs_is_that_of_their_machine_states():
    for case in ("03_easy_backfill_walltimes", "07_hetero_cpu_only", "12_energy_cpu"):
        folder = CASES / case
        states = np.genfromtxt(folder / "out_machine_states.csv", delimiter=",", names=True)
        recorded = {float(row["time"]): int(row["nb_computing"]) for row in states}  # the last row of a date counts
        load = load_over_time(read_jobs(folder / "out"))
        busy = {time: int(load["busy_hosts"][load["time"] <= time + 1e-4].iloc[-1]) for time in recorded}
        assert busy == recorded, case


def test_energy_of_recorded_runs_ends_at_what_their_summaries_say():
    for case in ("10_pstate_mid_run", "12_energy_cpu", "30_sleep_pstates", "40a_learning_high_gflops"):
        folder = CASES / case
        energy, jobs = read_energy(folder / "out"), read_jobs(folder / "out")
        assert energy["time"].is_monotonic_increasing and energy["energy"].is_monotonic_increasing
        at_end = np.interp(jobs["finish"].max(), energy["time"], energy["energy"])
        at_first = np.interp(jobs["submit"].min(), energy["time"], energy["energy"])
        assert at_end - at_first == pytest.approx(summary(folder)["consumed_joules"], rel=1e-9), case
