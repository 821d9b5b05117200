"""Print what tests counted into a folder (see tell_count in conftest.py), each kind summed: python tests/counts.py FOLDER [--all]

With --all the status is 1 where a kind that is expected was not counted, as where there is no Slurm.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

EXPECTED = (
    "fuzz inputs tried without a failure",
    "hashes of files compared between local runs and Slurm",
    "hashes of files compared between smoke runs",
    "kill points survived on the smoke run of the five studies",
    "kill points survived on the toy study",
    "other faults survived",
    "outputs of ended jobs that a restart left as they were",
    "restarts killed as well on the toy study",
    "Slurm faults survived",
)


def summed(folder: Path) -> list[str]:
    """Return a line for each kind of count, sorted: 'what: number', or 'what: number of tried'."""
    numbers, of = defaultdict(int), defaultdict(int)
    for file in folder.glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            numbers[row["what"]] += row["number"]
            of[row["what"]] += row["of"] or 0
    return [f"{what}: {number:,}" + (f" of {of[what]:,}" if of[what] else "") for what, number in sorted(numbers.items())]


def not_run(lines: list[str]) -> list[str]:
    """Return a line for each kind of count that is expected and not there."""
    left_out = [what for what in EXPECTED if not any(line.startswith(f"{what}:") for line in lines)]
    return [f"{what}: NOT RUN; the tests say why they were skipped" for what in left_out]


if __name__ == "__main__":
    counted = summed(Path(sys.argv[1]))
    left_out = not_run(counted)
    print("\n".join([*counted, *left_out]))
    sys.exit(1 if left_out and "--all" in sys.argv[2:] else 0)
