"""docs/notebook/performance.md tells what the recorded benchmarks say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from matplotlib.image import imread
from page_parts import REPOSITORY

import growth_pictures  # isort: skip
import performance_page as page  # isort: skip

assert page.ROOT == REPOSITORY
ENTRY = {"study": "batch", "name": "rule[fcfs-none]", "what": "A rule", "unit": "jobs", "count": 1000, "rounds": 3}


def test_the_page_tells_what_the_record_says(repository: Path, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text((repository / "docs/notebook/performance.md").read_text())
    command = [sys.executable, "docs/generate/performance_page.py", "--page", str(page), "--pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    again = "run: python docs/generate/performance_page.py"
    assert page.read_text() == (repository / "docs/notebook/performance.md").read_text(), again
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures == sorted(path.name for path in (repository / "docs/pictures").glob("growth_*.png"))
    for picture in pictures:  # legends tell exponents, which come from the record, too
        kept = repository / "docs/pictures" / picture
        assert np.array_equal(imread(tmp_path / picture), imread(kept)), f"{picture}: {again}"
        assert kept.stat().st_size < 120_000


def test_every_goal_belongs_to_a_recorded_rate_or_growth(repository: Path) -> None:
    record = json.loads((repository / "docs/results/benchmarks.json").read_text())
    goals = yaml.safe_load((repository / "benchmarks/goals.yaml").read_text())
    assert record["size"] == "full"
    rates = {f"{one['study']}/{one['name']}" for one in record["rates"]}
    assert set(goals) <= rates | {f"growth/{name}" for name in record["growth"]}


def test_the_machine_is_told_from_the_record():
    machine = {
        "system": "Linux",
        "processor": "arm",
        "cores": 8,
        "memory_gib": 31.0,
        "python": "3.12.1",
        "packages": {"numpy": "2.0"},
    }
    record = {"machine": machine, "load": {"before": 0.5, "after": 1.0}}
    rest = "Linux, arm, 31 GiB), Python 3.12.1, numpy 2.0; load average 0.5 before and 1 after."
    assert page.machine_line(record) == f"8 cores ({rest}"
    machine |= {"cores": 1, "processor_name": "Abacus 9"}
    assert page.machine_line(record) == f"1 core (Abacus 9, {rest}"


def test_the_exponent_of_a_power_is_found_in_the_larger_half():
    sizes = [10, 100, 1_000, 10_000]
    values = [7.0, *(3e-4 * size**1.5 for size in sizes[1:])]
    exponent, fitted_sizes, fitted = growth_pictures.fit(sizes, values)
    assert exponent == pytest.approx(1.5) and fitted_sizes == sizes[1:] and fitted == pytest.approx(values[1:])
    assert growth_pictures.fit(sizes[:2], values[:2]) is None


def test_pictures_show_the_exponent(tmp_path):
    points = [{"size": size, "seconds": 1e-3 * size, "memory_mb": 0.1} for size in (10, 100, 1_000)]
    growth_pictures.draw_together({"jobs": {"label": "jobs", "what": "a simulator", "points": points}}, tmp_path)
    assert (tmp_path / "growth_1.png").read_bytes().startswith(b"\x89PNG")


def test_rates_and_times_are_told_from_what_was_counted():
    jobs = {**ENTRY, "seconds": {"min": 0.0005, "q1": 0.001, "median": 0.002, "q3": 0.004, "max": 0.01}}
    header, _, line = page.rate_table([jobs], {"batch/rule[fcfs-none]": {"goal": 600_000}})
    assert header.count("|") == line.count("|")
    assert [cell.strip() for cell in line.split("|")[3:-2]] == [
        "500,000 jobs/s",
        "250,000 to 1,000,000 jobs/s",
        "2,000,000 jobs/s",
        "≥ 600,000 jobs/s",
    ]
    (told,) = page.missed([jobs], {"batch/rule[fcfs-none]": {"goal": 600_000}})
    assert "17% off" in told and "the best round reaches it" in told
    assert page.missed([jobs], {"batch/rule[fcfs-none]": {"goal": 500_000}}) == []
    seconds = {**jobs, "unit": "s", "count": 20}
    assert "100 us" in page.rate_table([seconds], {})[2]


def test_a_goal_of_what_grows_is_held_at_its_largest_size():
    points = [{"size": size, "seconds": size / 40, "memory_mb": 0.1} for size in (10, 100, 1_000)]
    grown = {"scenarios": {"label": "scenarios", "what": "dry run", "points": points}}
    (told,) = page.missed_growth(grown, {"growth/scenarios": {"goal": 20}})
    assert all(part in told for part in ("dry run", "25 s", "20 s", "1,000 scenarios", "25%"))
    assert page.missed_growth(grown, {"growth/scenarios": {"goal": 25}}) == page.missed_growth(grown, {}) == []
    assert "| 25 s (≤ 20 s) |" in page.growth_table(grown, {"growth/scenarios": {"goal": 20}})[2]
    assert "| 25 s |" in page.growth_table(grown)[2]
