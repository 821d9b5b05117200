"""docs/performance.md tells what the recorded benchmarks say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml


def test_the_page_tells_what_the_record_says(repository: Path, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text((repository / "docs/performance.md").read_text())
    command = [sys.executable, "benchmarks/performance_page.py", "--page", str(page), "--pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert page.read_text() == (repository / "docs/performance.md").read_text(), "run: python benchmarks/performance_page.py"
    for picture in ("growth_1.png", "growth_2.png"):
        assert (tmp_path / picture).exists() and len((repository / "docs/pictures" / picture).read_bytes()) < 120_000


def test_every_goal_belongs_to_a_recorded_rate(repository: Path) -> None:
    record = json.loads((repository / "docs/results/benchmarks.json").read_text())
    goals = yaml.safe_load((repository / "benchmarks/goals.yaml").read_text())
    assert record["size"] == "full"
    assert set(goals) <= {f"{one['study']}/{one['name']}" for one in record["rates"]}
