"""The windows of a workload that are simulated: cut by position so that no two share a job, or as published."""

from __future__ import annotations

from typing import cast

import numpy as np

from schedlab.config.contract import Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed
from schedlab.studies.batch.scenario import WindowSettings

WEEK = 7 * 86400.0  # s
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
# Windows of an overlapping protocol share jobs with each other, or with what policies were learned from or chosen by.
OVERLAPPING = "published, overlapping"
DISJOINT = "published, disjoint"


def window_units(count: int, windows: WindowSettings, split: Split, seed: int) -> list[Unit]:
    """Return the windows of a part of `count` jobs.

    Published windows are all test windows, and say by their kind what the protocol is worth: `published, overlapping`
    judges no learned policy. Those that share jobs, directly or over others, are one block: they are dependent.
    """
    if windows.starts:
        starts, kind = (sorted(windows.starts) if split == "test" else []), _protocol(count, windows)
    else:
        starts, kind = window_starts(count, windows, split), "window"
    blocks = _blocks(starts, windows.length)
    made = []
    for start, block in zip(starts, blocks, strict=True):
        of_start = derive_seed(seed, "batch", "window", start)
        name, facts = f"{split}-{start:06d}", {"first_job": start}
        made.append(Unit(name, kind, split, f"{split}-{block:06d}", of_start, facts))
    return made


def week_units(submit: np.ndarray, windows: WindowSettings, split: Split, seed: int) -> list[Unit]:
    """Return the weeks of a part of a whole run, from submit times (n,) s in ascending order. A week that a border of
    parts cuts gives a unit to both.
    """
    first, end = part_of(len(submit), windows, split)
    weeks = ((submit[first:end] - submit[0]) // WEEK).astype(np.int64)
    made = []
    for week, place, jobs in zip(*np.unique(weeks, return_index=True, return_counts=True), strict=True):
        name, facts = f"{split}-week-{week:04d}", {"first_job": first + int(place), "jobs": int(jobs)}
        made.append(Unit(name, "week", split, name, derive_seed(seed, "batch", "week", int(week)), facts))
    return made[: windows.most]


def weight_of(unit: Unit, windows: WindowSettings) -> float:
    """Return the weight of a window in means; weeks weigh as many as they have jobs."""
    if unit.kind == "week":
        return float(cast(int, unit.facts["jobs"]))
    return dict(zip(windows.starts, windows.weights, strict=False)).get(first_job(unit), 1.0)


def first_job(unit: Unit) -> int:
    """Return the position of a window's first job among the jobs that remain after cleaning."""
    return cast(int, unit.facts["first_job"])


def require_test_windows(count: int, windows: WindowSettings, scenario: str) -> None:
    """Raise UserError if a workload of `count` jobs is too short for the requested windows."""
    if windows.starts and max(windows.starts) + windows.length > count:
        raise UserError(
            f"a window of {windows.length} jobs from job {max(windows.starts)} on passes the end of {count} jobs",
            where=f"scenario {scenario}: windows.starts",
            expected=f"starts up to {count - windows.length}",
        )
    if not windows.starts and not window_starts(count, windows, "test"):
        raise UserError(
            f"the test part of {count} jobs holds no window of {windows.length}",
            where=f"scenario {scenario}: windows.length",
            expected="a shorter window, or more jobs",
        )


def part_of(count: int, windows: WindowSettings, split: Split) -> tuple[int, int]:
    """Return (first job, end) of a part of `count` jobs cut by position."""
    borders = np.floor(count * np.cumsum([0.0, windows.train_share, windows.validation_share])).astype(int)
    first, end = dict(zip(SPLITS, zip(borders, [*borders[1:], count], strict=True), strict=True))[split]
    return int(first), int(end)


def window_starts(count: int, windows: WindowSettings, split: Split) -> list[int]:
    """Return where the windows of a part begin, of `count` jobs cut by position."""
    first, end = part_of(count, windows, split)
    return list(range(first, end - windows.length + 1, windows.length))[: windows.most]


def _protocol(count: int, windows: WindowSettings) -> str:
    """What the windows of a published protocol are called, by the worst of them.

    Published policies learned from, and were chosen by, the jobs before the test part.
    """
    starts = sorted(windows.starts)
    shared = len(set(_blocks(starts, windows.length))) < len(starts)
    return OVERLAPPING if shared or starts[0] < part_of(count, windows, "test")[0] else DISJOINT


def _blocks(starts: list[int], length: int) -> list[int]:
    """The first start of each window's block; starts ascend."""
    blocks: list[int] = []
    for number, start in enumerate(starts):
        joined = number > 0 and start < starts[number - 1] + length
        blocks.append(blocks[-1] if joined else start)
    return blocks
