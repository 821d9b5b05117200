"""A trace of batch jobs in memory: the 18 columns of the Standard Workload Format, and the header with its facts about
the machine.

Source of the format: Feitelson, Tsafrir, Krakov, "Experience with using the Parallel Workloads Archive", JPDC 74(10),
2014.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

INTEGER, NUMBER = np.int64, np.float64
COLUMNS = {
    "job_id": INTEGER,
    "submit": NUMBER,  # s since the start of the log
    "wait": NUMBER,  # s
    "run": NUMBER,  # s
    "procs_allocated": INTEGER,
    "cpu_used": NUMBER,  # s, mean over the processors
    "memory_used": NUMBER,  # KB per processor
    "procs_requested": INTEGER,
    "time_requested": NUMBER,  # s
    "memory_requested": NUMBER,  # KB per processor
    "status": INTEGER,
    "user": INTEGER,
    "group": INTEGER,
    "executable": INTEGER,
    "queue": INTEGER,
    "partition": INTEGER,
    "preceding_job": INTEGER,
    "think_time": NUMBER,  # s
}
MISSING = -1
LARGEST = 2.0**53  # above this, floats cannot represent every whole number
_FIELD = re.compile(r"\s*([A-Za-z][\w ().-]*?)\s*:\s*(.*?)\s*")
_COUNT = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)")
_SIGNS_AND_DIGITS = "+-0123456789"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DATE = re.compile(r"[A-Z][a-z]{2}\s+([A-Z][a-z]{2})\s+(\d{1,2})\s+(\d{1,2}):(\d{2}):(\d{2})\s+(?:\S+\s+)?(\d{4})")


@dataclass(frozen=True)
class Trace:
    """Jobs in the order of the file, with the comment lines of the file (without their `;`).

    jobs      one row for each job, with the columns of COLUMNS; MISSING (-1) is a value that the log does not have
    comments  header lines and other comments, in the order of the file
    source    origin of the trace, for messages
    lines     key of the header -> its line in the source, for messages
    """

    jobs: pd.DataFrame
    comments: tuple[str, ...] = ()
    source: str = "trace"
    lines: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def header(self) -> dict[str, str]:
        """Values of the header by key; keys are without spaces and in lower case ('maxprocs'). If a key occurs several
        times, its first line counts.
        """
        found: dict[str, str] = {}
        for line in self.comments:
            if match := _FIELD.fullmatch(line):
                found.setdefault(header_key(line), match.group(2))
        return found

    def count(self, key: str) -> int | None:
        """Return the number at the start of a header value ('338 (batch partition; 512 total)' is 338); None if it is
        missing or not positive.
        """
        match = _COUNT.match(self.header.get(key.lower(), ""))
        number = int(match.group(1).replace(",", "")) if match else 0
        return number if 0 < number < 2**31 else None

    @property
    def nodes(self) -> int | None:
        """Nodes of the machine: MaxNodes or, if that is missing, MaxProcs; None: the header has neither."""
        return self.count("MaxNodes") or self.count("MaxProcs")

    @property
    def processors(self) -> int | None:
        """Processors of the machine: MaxProcs or, if that is missing, MaxNodes; None: the header has neither."""
        return self.count("MaxProcs") or self.count("MaxNodes")

    def machine_size(self) -> int:
        """Return the number of processors of the machine. Raises UserError if the header does not give it, or gives a
        size in words.
        """
        self._require_number("MaxProcs", "processors", "MaxNodes")
        self._require_number("MaxNodes", "nodes", "MaxProcs")
        if self.processors is None:
            raise UserError(
                "the header does not tell the size of the machine",
                where=self.source,
                expected="a line '; MaxProcs: N' or '; MaxNodes: N'",
                remedy="add the line, or give the number (machine_processors, --processors)",
            )
        return self.processors

    def _require_number(self, key: str, counted: str, other: str) -> None:
        """Raise UserError for a size in words, because the other key would be only a guess. An empty value and -1 mean
        missing.
        """
        value = self.header.get(key.lower(), "")
        if not value or value[0] in _SIGNS_AND_DIGITS:
            return
        line = self.lines.get(key.lower())
        instead = f", or take the line out, so that {other} counts" if self.count(other) else ""
        raise UserError(
            f"{key} is '{value[:40]}'",
            where=self.source if line is None else f"{self.source}: line {line}",
            expected=f"a number of {counted}, text behind it where needed",
            remedy=f"write the number, or give it (machine_processors, --processors){instead}",
        )

    @property
    def starts_at(self) -> datetime | None:
        """Local time at submit time 0, treated as UTC: the header's StartTime, else UnixStartTime + TimeZone; None:
        unknown.

        StartTime has priority, because in some logs (NASA iPSC, LLNL Atlas) TimeZone is not the offset at the start.
        """
        if (match := _DATE.fullmatch(self.header.get("starttime", ""))) and match.group(1) in _MONTHS:
            _, day, hour, minute, second, year = match.groups()
            try:
                return datetime(
                    int(year),
                    _MONTHS.index(match.group(1)) + 1,
                    int(day),
                    int(hour),
                    int(minute),
                    int(second),
                    tzinfo=UTC,
                )
            except ValueError:
                return None
        if (unix := self.count("UnixStartTime")) is None:
            return None
        zone = re.match(r"[+-]?\d{1,6}", self.header.get("timezone", ""))
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=unix + int(zone.group() if zone else 0))

    def with_jobs(self, jobs: pd.DataFrame, *notes: str) -> Trace:
        """Return a trace with other jobs of the same log; the notes, which state what was done, are added to the
        header.
        """
        return replace(
            self, jobs=jobs.reset_index(drop=True), comments=(*self.comments, *(f" Note: {note}" for note in notes))
        )

    def from_first_submit(self) -> Trace:
        """Return the trace with submit times counted from the first job, and the start in the header moved accordingly.

        Raises UserError if that start would be after the year 9999.
        """
        if not len(self.jobs) or not (first := float(self.jobs["submit"].min())):
            return self
        jobs = self.jobs.assign(submit=self.jobs["submit"] - first)
        changes = {}
        if (unix := self.count("UnixStartTime")) is not None:
            changes["unixstarttime"] = f" UnixStartTime: {unix + int(first)}"
        if self.starts_at is not None:
            try:
                started = self.starts_at + timedelta(seconds=int(first))
            except OverflowError:
                what = f"the first job comes {first:g} s after {self.starts_at:%Y-%m-%d}, which is no date"
                raise UserError(
                    what, where=self.source, remedy="mend StartTime in the header, or keep the submit times"
                ) from None
            day = f"{_WEEKDAYS[started.weekday()]} {_MONTHS[started.month - 1]} {started.day:02d}"
            changes["starttime"] = f" StartTime: {day} {started:%H:%M:%S} {started.year}"
        comments = tuple(changes.get(header_key(line), line) for line in self.comments)
        return replace(self, jobs=jobs, comments=comments)

    def with_processors(self, processors: int | None) -> Trace:
        """Return the trace for a machine of another size, with new header lines for it; None: unchanged."""
        if processors is None:
            return self
        kept = [line for line in self.comments if not re.match(r"\s*Max\s*(Nodes|Procs)\s*:", line, re.I)]
        return replace(self, comments=(f" MaxNodes: {processors}", f" MaxProcs: {processors}", *kept))


def header_key(line: str) -> str:
    """Return the key of a header line, without spaces and in lower case ('maxprocs'); empty for other comments."""
    match = _FIELD.fullmatch(line)
    return re.sub(r"\s+", "", match.group(1)).lower() if match else ""


def job_processors(jobs: pd.DataFrame) -> np.ndarray:
    """Return the processors of each job (n,) int64: the larger of allocated and requested, because either may be
    missing.
    """
    return np.maximum(jobs["procs_allocated"].to_numpy(), jobs["procs_requested"].to_numpy())


def whole_seconds(times: np.ndarray, where: str) -> np.ndarray:
    """Return submit times (n,) rounded to whole s. Raises UserError for times that a trace cannot hold."""
    if len(times) and not np.abs(times).max() <= LARGEST:
        raise UserError(
            "submit times beyond 2^53 s",
            where=where,
            expected="a load that the jobs can have",
            remedy="ask for a larger load",
        )
    return np.rint(times)


def offered_load(trace: Trace) -> float | None:
    """Return sum(run * processors) / (P (last - first submit)); None if the size of the machine is unknown or the span
    is 0.

    Run times and processors below 0 count as 0.
    """
    jobs = trace.jobs
    if not len(jobs) or trace.processors is None:
        return None
    span = jobs["submit"].max() - jobs["submit"].min()
    work = float(np.maximum(jobs["run"].to_numpy(), 0) @ np.maximum(job_processors(jobs), 0))
    return work / (trace.processors * span) if span > 0 else None
