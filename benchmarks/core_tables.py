"""Tables of docs/slurm.md and docs/performance.md: what starts cost, of docs/results/core_*.csv."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from table_parts import page

LEFT = {  # what the import of a study's door is now
    "batch": "numba with parts of SciPy: the rewards' kernels",
    "cloud": "Gymnasium",
    "hetero": "Gymnasium",
    "ramp": "numba with parts of SciPy: the look-ahead's kernel",
    "adaptation": "was so before",
}


def core_starts(results: Path) -> str:
    """What a start of Snakemake costs with many scenarios."""
    rows = []
    for row in pd.read_csv(results / "core_starts.csv").itertuples():
        seconds = [
            f"{value:.2g} s" if value >= 10 else f"{value:.1f} s" for value in (row.first_cpu_s, row.cached_cpu_s)
        ]
        rows.append([f"{row.scenarios:,}", *seconds, f"{row.memory_mb / 1e3:.2f} GB"])
    return page(["scenarios", "first dry run", "with its cache", "memory"], rows, "rrrr")


def core_imports(results: Path) -> str:
    """CPU seconds of importing a study's door before and after it stopped to load pandas, and what is left."""
    found = pd.read_csv(results / "core_imports.csv", dtype=str)
    rows = [[f"`{row.study}`", row.before_cpu_s, row.after_cpu_s, LEFT[row.study]] for row in found.itertuples()]
    return page(["study", "before", "after", "what is left"], rows, "lrrl")


TABLES = (core_starts, core_imports)
