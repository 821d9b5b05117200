"""docs/performance.md tells what the recorded benchmarks say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml
from matplotlib.image import imread


def test_the_page_tells_what_the_record_says(repository: Path, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text((repository / "docs/performance.md").read_text())
    command = [sys.executable, "benchmarks/performance_page.py", "--page", str(page), "--pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    again = "run: python benchmarks/performance_page.py"
    assert page.read_text() == (repository / "docs/performance.md").read_text(), again
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
