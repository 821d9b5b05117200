"""Small traces for the tests."""

from __future__ import annotations

from typing import Any

import pandas as pd

from schedlab.workloads.trace import COLUMNS, MISSING, Trace

MACHINE = (" MaxNodes: 8", " MaxProcs: 8")


def trace(*jobs: dict[str, Any], comments: tuple[str, ...] = MACHINE) -> Trace:
    """A trace of jobs given by the columns that matter; job numbers from 1, one processor, 10 s, where nothing else is
    said.
    """
    rows = []
    for number, job in enumerate(jobs, 1):
        values = dict.fromkeys(COLUMNS, MISSING) | {"job_id": number, "submit": number, "run": 10, "procs_allocated": 1}
        rows.append(values | job)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return Trace(frame.astype(COLUMNS), comments, "small")
