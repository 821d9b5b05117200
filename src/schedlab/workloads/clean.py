"""Cleaning of a trace: rules that drop or correct jobs that cannot be simulated; each rule counts its jobs.

The profile `rlscheduler` has the rules behind the published numbers of RLScheduler (Zhang et al., SC20) and of the
dissertation that builds on it. `default` adds rules for jobs that would block a machine forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from schedlab.config.schema import Settings, setting
from schedlab.workloads.trace import Trace, job_processors

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN_RUN = 10.0  # s; run time that the published simulators assume if the log has none
RULES = (
    "duplicate",
    "negative_submit",
    "no_processors",
    "too_large",
    "no_time",
    "missing_request",
    "negative_run",
    "zero_run",
    "overrun",
)
PROFILES: dict[str, dict[str, Any]] = {
    "none": {
        "processors": "keep",
        "missing_request": "keep",
        "negative_run": "keep",
        "zero_run": "keep",
        "no_time": "keep",
        "overrun": "keep",
        "no_processors": "keep",
        "too_large": "keep",
        "negative_submit": "keep",
        "duplicate": "keep",
        "order": "keep",
    },
    "rlscheduler": {
        "processors": "largest",
        "missing_request": "run",
        "negative_run": "ten_seconds",
        "zero_run": "drop",
        "no_time": "keep",
        "overrun": "keep",
        "no_processors": "keep",
        "too_large": "keep",
        "negative_submit": "keep",
        "duplicate": "keep",
        "order": "job_id",
    },
    "default": {
        "processors": "largest",
        "missing_request": "run",
        "negative_run": "ten_seconds",
        "zero_run": "drop",
        "no_time": "drop",
        "overrun": "keep",
        "no_processors": "drop",
        "too_large": "drop",
        "negative_submit": "drop",
        "duplicate": "drop",
        "order": "submit",
    },
}


class CleaningSettings(Settings):
    """How the jobs of a trace are cleaned, rule by rule in this order. null: as in the profile."""

    profile: Literal["default", "rlscheduler", "none"] = setting(
        "default", doc="set of cleaning rules; the other keys override single rules"
    )
    processors: Literal["largest", "requested", "allocated", "keep"] | None = setting(
        None,
        doc="which count to use for jobs whose requested and allocated processors differ",
    )
    duplicate: Literal["drop", "keep"] | None = setting(None, doc="jobs whose number occurred on an earlier line")
    negative_submit: Literal["drop", "keep"] | None = setting(None, doc="jobs submitted before 0")
    no_processors: Literal["drop", "keep"] | None = setting(None, doc="jobs without processors")
    too_large: Literal["drop", "clip", "keep"] | None = setting(None, doc="jobs larger than the machine")
    no_time: Literal["drop", "keep"] | None = setting(None, doc="jobs with neither run time nor requested time")
    missing_request: Literal["run", "drop", "keep"] | None = setting(
        None, doc="jobs without requested time; `run`: use the run time"
    )
    negative_run: Literal["ten_seconds", "drop", "keep"] | None = setting(None, doc="jobs with a negative run time")
    zero_run: Literal["drop", "keep"] | None = setting(None, doc="jobs with run time 0")
    overrun: Literal["keep", "kill", "extend"] | None = setting(
        None,
        doc="jobs that ran longer than requested; `kill`: cut the run time; `extend`: raise the requested time",
    )
    order: Literal["submit", "job_id", "keep"] | None = setting(
        None, doc="order of the jobs (`submit`: ties by job number)"
    )
    shift: bool = setting(False, doc="shift submit times so that the first job arrives at 0")
    machine_processors: int | None = setting(
        None, doc="size of the machine; null: from the header", unit="processors", ge=1
    )

    def action(self, rule: str) -> str:
        """Return the action of a rule."""
        return getattr(self, rule) or PROFILES[self.profile][rule]


@dataclass(frozen=True)
class CleaningReport:
    """The result of a cleaning: how many jobs each rule dropped or changed.

    records  number of jobs read
    kept     number of remaining jobs
    rules    rule -> {"jobs": number of jobs that matched, "action": what was done to them}, in the order in which the
             rules apply
    maxima   largest value over all jobs read (run times as read; at least 0) by column, `procs`, and `last_submit`: the
             published observations are divided by these
    """

    records: int
    kept: int
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    maxima: dict[str, float] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return {"records": self.records, "kept": self.kept, "rules": self.rules, "maxima": self.maxima}

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """Yield (rule, action, jobs)."""
        for rule, entry in self.rules.items():
            yield rule, entry["action"], entry["jobs"]


def clean(trace: Trace, settings: CleaningSettings | None = None) -> tuple[Trace, CleaningReport]:
    """Return the cleaned trace and the report. Raises UserError if a rule needs the size of the machine and the header
    lacks it.
    """
    cleaner = Cleaner(trace, settings or CleaningSettings())
    return cleaner.finish(cleaner.clean(trace.jobs))


class Cleaner:
    """Cleans a log block by block. Each rule is applied to the jobs that earlier rules left, and takes earlier blocks
    into account.

    log: the trace whose header contains the size of the machine; its jobs are passed to `clean`, in the order of the
      log
    """

    def __init__(self, log: Trace, settings: CleaningSettings) -> None:
        self.log, self.settings = log.with_processors(settings.machine_processors), settings
        self.records = self.kept = 0
        self.rules: dict[str, dict[str, Any]] = {
            rule: {"jobs": 0, "action": settings.action(rule)} for rule in ("processors", *RULES)
        }
        self.maxima: dict[str, float] = {}
        self._seen: list[tuple[int, int, np.ndarray]] = []  # of each block: smallest, largest and all job numbers

    def clean(self, jobs: pd.DataFrame) -> pd.DataFrame:
        """Return the jobs of a block that remain, in order. Raises UserError if a rule needs the size of the machine
        and none is given.
        """
        self.records += len(jobs)
        jobs = self._processors(jobs)
        found = _maxima(jobs)
        self.maxima = {name: max(value, self.maxima.get(name, 0.0)) for name, value in found.items()}
        for rule in RULES:
            jobs = self._apply(rule, jobs)
        self.kept += len(jobs)
        return jobs

    def ordered(self, jobs: pd.DataFrame) -> pd.DataFrame:
        """Return jobs in the order given in the settings."""
        return _ordered(jobs, self.settings.action("order"))

    def finish(self, jobs: pd.DataFrame) -> tuple[Trace, CleaningReport]:
        """Return the trace of the remaining jobs in order, and the report on all blocks. jobs: the remaining jobs of
        all blocks that the reader wants.
        """
        note = f"cleaned by schedlab, profile {self.settings.profile}: {self.kept} of {self.records} jobs kept"
        cleaned = self.log.with_jobs(self.ordered(jobs), note)
        report = CleaningReport(self.records, self.kept, self.rules, self.maxima)
        return (cleaned.from_first_submit() if self.settings.shift else cleaned), report

    def _processors(self, jobs: pd.DataFrame) -> pd.DataFrame:
        """Replace the requested and allocated processors of each job by one of them."""
        entry = self.rules["processors"]
        chosen = {
            "largest": lambda: job_processors(jobs),
            "requested": lambda: np.where(
                jobs["procs_requested"] > 0, jobs["procs_requested"], jobs["procs_allocated"]
            ),
            "allocated": lambda: np.where(
                jobs["procs_allocated"] > 0, jobs["procs_allocated"], jobs["procs_requested"]
            ),
        }
        allocated, requested = jobs["procs_allocated"], jobs["procs_requested"]
        entry["jobs"] += int(
            ((allocated != requested) & (allocated > 0) & (requested > 0)).sum()
        )  # a missing count is no contradiction
        if entry["action"] == "keep":
            return jobs
        return jobs.assign(procs_allocated=chosen[entry["action"]](), procs_requested=chosen[entry["action"]]())

    def _apply(self, rule: str, jobs: pd.DataFrame) -> pd.DataFrame:
        """Find the jobs that match a rule, count them, and apply the action of the settings."""
        action = self.rules[rule]["action"]
        met = self._met(rule, action, jobs)
        self.rules[rule]["jobs"] += int(met.sum())
        if action == "keep" or not met.any():
            return jobs
        return jobs[~met] if action == "drop" else self._mended(rule, action, jobs, met)

    def _met(self, rule: str, action: str, jobs: pd.DataFrame) -> np.ndarray:
        import pandas as pd

        if rule == "too_large" and action == "keep" and self.log.processors is None:
            return np.zeros(len(jobs), bool)
        found = {
            "duplicate": lambda: self._duplicate(jobs["job_id"]),
            "negative_submit": lambda: jobs["submit"] < 0,
            "no_processors": lambda: pd.Series(job_processors(jobs) <= 0),
            "too_large": lambda: pd.Series(job_processors(jobs) > self.log.machine_size()),
            "no_time": lambda: (jobs["time_requested"] < 0) & (jobs["run"] < 0),
            "missing_request": lambda: jobs["time_requested"] < 0,
            "negative_run": lambda: jobs["run"] < 0,
            "zero_run": lambda: jobs["run"] == 0,
            "overrun": lambda: (jobs["run"] > jobs["time_requested"]) & (jobs["time_requested"] >= 0),
        }
        return found[rule]().to_numpy()

    def _duplicate(self, numbers: pd.Series) -> pd.Series:
        """Return for each job number (n,) whether it occurred on an earlier line of this or an earlier block. Blocks
        with other ranges of numbers are skipped.
        """
        found = numbers.duplicated()
        if not len(numbers):
            return found
        least, most = numbers.min(), numbers.max()
        for low, high, earlier in self._seen:
            if low <= most and least <= high:
                found |= numbers.isin(earlier)
        self._seen.append((least, most, numbers.to_numpy()))
        return found

    def _mended(self, rule: str, action: str, jobs: pd.DataFrame, met: np.ndarray) -> pd.DataFrame:
        if rule == "too_large":
            size = self.log.machine_size()
            return jobs.assign(**{name: jobs[name].clip(upper=size) for name in ("procs_allocated", "procs_requested")})
        column, value = {
            ("missing_request", "run"): ("time_requested", jobs["run"]),
            ("negative_run", "ten_seconds"): ("run", UNKNOWN_RUN),
            ("overrun", "kill"): ("run", jobs["time_requested"].where(jobs["time_requested"] > 0, jobs["run"])),
            ("overrun", "extend"): ("time_requested", jobs["run"]),
        }[rule, action]
        return jobs.assign(**{column: np.where(met, value, jobs[column])})


def _maxima(jobs: pd.DataFrame) -> dict[str, float]:
    columns = ("run", "memory_requested", "user", "group", "executable", "job_id")
    found = {name: float(max(0, jobs[name].max())) if len(jobs) else 0.0 for name in columns}
    found["procs"] = float(max(0, job_processors(jobs).max())) if len(jobs) else 0.0
    found["last_submit"] = float(max(0, jobs["submit"].max())) if len(jobs) else 0.0
    return found


def _ordered(jobs: pd.DataFrame, order: str) -> pd.DataFrame:
    keys = {"submit": ["submit", "job_id"], "job_id": ["job_id"], "keep": []}[order]
    if not keys or _is_ordered(jobs, keys):
        return jobs
    return jobs.sort_values(keys, kind="stable")


def _is_ordered(jobs: pd.DataFrame, keys: list[str]) -> bool:
    """Return whether jobs are in the order of some columns, the first column having priority. A long log in order need
    not be copied.
    """
    undecided = np.ones(max(0, len(jobs) - 1), bool)
    for key in keys:
        step = np.diff(jobs[key].to_numpy())
        if (step[undecided] < 0).any():
            return False
        undecided &= step == 0
    return True
