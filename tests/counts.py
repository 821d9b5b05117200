"""Print what tests counted into a folder (see tell_count in conftest.py), each kind summed: python tests/counts.py FOLDER"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path


def summed(folder: Path) -> list[str]:
    """Return a line for each kind of count, sorted: 'what: number', or 'what: number of tried'."""
    numbers, of = defaultdict(int), defaultdict(int)
    for file in folder.glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            numbers[row["what"]] += row["number"]
            of[row["what"]] += row["of"] or 0
    return [f"{what}: {number:,}" + (f" of {of[what]:,}" if of[what] else "") for what, number in sorted(numbers.items())]


if __name__ == "__main__":
    print("\n".join(summed(Path(sys.argv[1]))) or "nothing was counted")
