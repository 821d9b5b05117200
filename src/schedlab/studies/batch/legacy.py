"""Defects of the published systems, by name, and the place in compat/ that computes each.

One more is a switch of the environment: `noop_ends` (env/settings.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from schedlab.config.plugins import load_object
from schedlab.studies.batch.jobs import Jobs

# Priorities whose wait is -1 - submit time, which turns them upside down.
LEGACY_RULES: dict[str, Callable[[Jobs], np.ndarray]] = {
    "wfp3_legacy": lambda jobs: load_object("schedlab.studies.batch.compat.inverted_rules:wfp3")(jobs),
    "unicep_legacy": lambda jobs: load_object("schedlab.studies.batch.compat.inverted_rules:unicep")(jobs),
}
# The dissertation's baselines, which wait until 128 jobs do.
WAITING_RULES = {
    "fcfs_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[fcfs]",
    "sjf_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[sjf]",
    "smallest_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[smallest]",
    "f1_waiting": "schedlab.studies.batch.compat.waiting_rules:RULE_MAKERS[f1]",
}


def nan_schedule(rule: str, jobs: Jobs) -> Callable[..., Any] | None:
    """Return the function that makes the schedule if the published rule scores some jobs NaN, else None."""
    if rule == "f2" and (jobs.requested < 0).any():
        return load_object("schedlab.studies.batch.compat.nan_order:f2_schedule")
    return None
