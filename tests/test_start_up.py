"""What starts often starts light: heavy packages are imported where they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "pandas", "pyarrow", "matplotlib", "snakemake", "stable_baselines3")
STUDIES = ("adaptation", "batch", "cloud", "hetero", "ramp")
STAGES = ("evaluate", "learn", "summarise", "draw")


@pytest.mark.parametrize(
    "module",
    [
        "schedlab.cli.main",
        *(f"schedlab.stages.{name}" for name in STAGES),
        *(f"schedlab.studies.{name}.study" for name in STUDIES),
    ],
)
def test_an_import_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == []
