"""The simulator gives the recorded start times and measures, run by run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance.batch_recorded import DATA, MEASURES, TRACES, load, own, packed, rows, window_measures
from schedlab.studies.batch.jobs import window
from schedlab.studies.batch.metrics import measures
from schedlab.studies.batch.simulator.simulate import simulate

BACKFILL = {"0": "none", "1": "legacy"}
TRACE_FILES = {
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "Lublin-1": "lublin_256.swf.gz",
    "Lublin-2": "lublin_256_new2.swf.gz",
}
OUR_NAMES = {"wfp3_now": "wfp3", "unicep_now": "unicep"}
# Average bounded slowdown as published, Zhang et al., SC20, tables 5 and 6, and of other rules on the same windows:
# in the order of TABLE_RULES.
TABLE_RULES = ("fcfs", "wfp3_legacy", "unicep_legacy", "sjf", "f1", "wfp3", "unicep", "smallest", "f2", "f3", "f4")
TABLE_STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
TABLE = {
    ("Lublin-1", "none"): (7273.77, 19753.53, 22274.74, 277.35, 258.37, 337.34, 370.56, 304.64, 268.47, 341.77, 289.57),
    ("SDSC-SP2", "none"): (
        1727.54,
        3000.88,
        1848.45,
        2680.55,
        1232.06,
        1202.81,
        2433.74,
        1266.97,
        1197.24,
        1277.56,
        1258.28,
    ),
    ("HPC2N", "none"): (297.18, 426.99, 609.77, 157.71, 118.01, 213.14, 138.23, 119.96, 97.21, 104.34, 138.07),
    ("Lublin-2", "none"): (7842.47, 9523.18, 11265.31, 787.89, 698.34, 807.25, 721.80, 622.18, 669.03, 1158.76, 732.72),
    ("Lublin-1", "legacy"): (235.82, 133.87, 307.23, 73.31, 75.07, 126.50, 98.65, 86.36, 58.24, 58.49, 53.64),
    ("SDSC-SP2", "legacy"): (
        1595.12,
        1083.12,
        548.01,
        2167.84,
        1098.22,
        675.49,
        1684.88,
        1104.98,
        1110.52,
        1089.12,
        1112.11,
    ),
    ("HPC2N", "legacy"): (127.38, 97.39, 175.12, 122.04, 71.95, 143.36, 105.59, 73.94, 63.67, 68.78, 98.39),
    ("Lublin-2", "legacy"): (247.61, 318.35, 379.59, 91.99, 148.25, 135.12, 103.24, 192.14, 112.14, 90.72, 105.83),
}


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("backfill", BACKFILL)
def test_own_traces(trace: str, backfill: str) -> None:
    jobs, machine = own(trace)
    starts = packed(DATA / "starts.json.gz")[trace]
    recorded = [row for row in rows(DATA / "results.csv") if row["trace"] == trace and row["backfill"] == backfill]
    assert recorded
    for row in recorded:
        chosen = window(jobs, machine, int(row["start"]), int(row["n"]))
        schedule = simulate(chosen, machine, row["rule"], BACKFILL[backfill])
        expected = starts[row["start"]][row["n"]]
        assert chosen.job_id.tolist() == expected["job_ids"]
        assert schedule.start.tolist() == expected[f"{row['rule']}_bf{backfill}"], row
        found = measures(schedule, machine)
        for name in MEASURES:
            assert found[name] == pytest.approx(float(row[name]), rel=1e-9), (row, name)


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_textbook(trace: str, policy: str) -> None:
    jobs, machine = own(trace)
    expected = packed(DATA / "textbook.json.gz")[trace]
    schedule = simulate(jobs, machine, "fcfs", "none" if policy == "fcfs" else policy)
    assert jobs.job_id.tolist() == expected["job_ids"]
    assert schedule.start.tolist() == expected[policy]
    found = measures(schedule, machine)
    for name, value in expected["summary"][policy].items():
        assert found[name] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("trace", ["HPC2N", "SDSC-SP2", "Lublin-1"])
def test_recorded_windows_of_other_traces(trace: str, shared_data: Path) -> None:
    jobs, machine = load(shared_data / "traces" / TRACE_FILES[trace])
    starts = packed(shared_data / "cases/batch/starts_256.json.gz")[trace]
    recorded = [row for row in rows(shared_data / "cases/batch/heuristics.csv") if row["trace"] == trace]
    compared = 0
    for row in recorded:
        chosen = window(jobs, machine, int(row["start"]), int(row["n"]))
        schedule = simulate(chosen, machine, OUR_NAMES.get(row["policy"], row["policy"]), BACKFILL[row["backfill"]])
        found = measures(schedule, machine)
        for name in MEASURES:
            assert found[name] == pytest.approx(float(row[name]), rel=1e-9), (row, name)
        expected = starts.get(row["start"], {}) if row["n"] == "256" else {}
        if f"{row['policy']}_bf{row['backfill']}" in expected:
            compared += 1
            assert chosen.job_id.tolist() == expected["job_ids"]
            assert schedule.start.tolist() == expected[f"{row['policy']}_bf{row['backfill']}"], row
    assert compared == sum(len(entry) - 1 for entry in starts.values()) > 0


@pytest.mark.parametrize("trace", TRACE_FILES)
@pytest.mark.parametrize("backfill", ["none", "legacy"])
def test_published_table(trace: str, backfill: str, shared_data: Path) -> None:
    for rule, published in zip(TABLE_RULES, TABLE[trace, backfill], strict=True):
        found = window_measures(shared_data / "traces" / TRACE_FILES[trace], rule, backfill, TABLE_STARTS)
        assert np.mean([each["avg_bsld"] for each in found]) == pytest.approx(published, abs=0.005), rule


def test_f2_without_a_requested_time_as_published_and_as_0_s(shared_data: Path) -> None:
    jobs, machine = load(shared_data / "traces" / TRACE_FILES["SDSC-SP2"])
    known = replace(jobs, requested=np.maximum(jobs.requested, 0.0))
    windows = [[window(each, machine, start, 1024) for start in TABLE_STARTS] for each in (jobs, known)]
    assert [int((one.requested < 0).sum()) for one in windows[0]] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    found = [[measures(simulate(one, machine, "f2"), machine)["avg_bsld"] for one in those] for those in windows]
    assert [f"{np.mean(values):.2f}" for values in found] == ["1197.24", "1191.34"]
