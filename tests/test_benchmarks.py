"""The machinery of `make bench` on its smallest part. No time is compared with anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

ENTRY = {"study": "batch", "name": "rule[fcfs-none]", "what": "A rule", "unit": "jobs", "count": 1000, "rounds": 3}


@pytest.fixture
def bench(repository, monkeypatch):
    """The modules of benchmarks/ that need no installation."""
    monkeypatch.syspath_prepend(str(repository / "benchmarks"))
    import growth
    import performance_page

    yield growth, performance_page
    for name in ("growth", "performance_page"):
        del sys.modules[name]


def test_the_suite_writes_a_record_of_one_benchmark(repository, tmp_path):
    out = tmp_path / "bench/quick.json"
    command = [sys.executable, "benchmarks/suite.py", "--quick", "--only", "bench_python", "--without-growth", "--out", str(out)]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads(out.read_text())
    assert record["size"] == "quick" and record["machine"]["cores"] >= 1 and set(record["load"]) == {"before", "after"}
    (one,) = record["rates"]
    assert (one["study"], one["name"], one["unit"], one["count"], one["rounds"]) == ("general", "python", "s", 1, 3)
    times = [one["seconds"][key] for key in ("min", "q1", "median", "q3", "max")]
    assert times == sorted(times) and times[0] > 0
    assert os.uname().nodename not in out.read_text()


def test_a_point_of_growth_is_taken_in_a_process_of_its_own(repository):
    command = [sys.executable, "benchmarks/growth.py", "ramp_servers", "--here", "16"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    point = json.loads(done.stdout)
    assert point["size"] == 16 and point["seconds"] > 0 and point["memory_mb"] >= 0


def test_the_exponent_of_a_power_is_found_in_the_larger_half(bench):
    growth, _ = bench
    sizes = [10, 100, 1_000, 10_000]
    values = [7.0, *(3e-4 * size**1.5 for size in sizes[1:])]
    exponent, fitted_sizes, fitted = growth.fit(sizes, values)
    assert exponent == pytest.approx(1.5) and fitted_sizes == sizes[1:] and fitted == pytest.approx(values[1:])
    assert growth.fit(sizes[:2], values[:2]) is None


def test_pictures_show_the_exponent(bench, tmp_path):
    growth, _ = bench
    points = [{"size": size, "seconds": 1e-3 * size, "memory_mb": 0.1} for size in (10, 100, 1_000)]
    growth.draw({"jobs": {"label": "jobs", "what": "a simulator", "points": points}}, tmp_path)
    assert "over jobs" in (tmp_path / "jobs.txt").read_text() and (tmp_path / "jobs.png").read_bytes().startswith(b"\x89PNG")


def test_rates_and_times_are_told_from_what_was_counted(bench):
    _, page = bench
    jobs = {**ENTRY, "seconds": {"min": 0.0005, "q1": 0.001, "median": 0.002, "q3": 0.004, "max": 0.01}}
    header, _, line = page.rate_table([jobs], {"batch/rule[fcfs-none]": {"goal": 600_000}})
    assert header.count("|") == line.count("|")
    assert [cell.strip() for cell in line.split("|")[3:-2]] == [
        "500,000 jobs/s",
        "250,000 to 1,000,000 jobs/s",
        "2,000,000 jobs/s",
        "≥ 600,000 jobs/s",
    ]
    (told,) = page.missed([jobs], {"batch/rule[fcfs-none]": {"goal": 600_000, "missed": "a reason"}})
    assert "17% off" in told and "the best round reaches it" in told and told.endswith("A reason.")
    assert page.missed([jobs], {"batch/rule[fcfs-none]": {"goal": 500_000}}) == ["No goal of these tables is missed."]
    seconds = {**jobs, "unit": "s", "count": 20}
    assert "100 us" in page.rate_table([seconds], {})[2]
