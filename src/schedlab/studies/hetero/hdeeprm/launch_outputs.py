"""The files that a launch writes into the working directory: logs, to which each episode appends, and Batsim's tables.

An episode's lines are appended by one write, so that a reader sees none or all of them; tables and models get their
names when they are complete. See docs/reference/hetero_launch.md.
"""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from schedlab.batsim.files.outputs import Outputs
from schedlab.config.files import write_text

PREFIX, PARTIAL_PREFIX = "out", "partial"
INSIGHTS, REWARDS, LOSSES, MAKESPANS = "insights.log", "rewards.log", "losses.log", "makespans.log"
ACTIONS, LOG_PROBABILITIES, PROBABILITIES = "actions.log", "log_probs.log", "probs.json"
OVERUSE, ACTION_NAMES = "overutilizations.json", "actions.json"
_END = "\n]\n"


def append_lines(path: Path, values: Iterable[float | int]) -> None:
    """Append numbers to a log, one on each line; if the write fails, the log stays as it was."""
    text = "".join(f"{value!r}\n" for value in values)
    if text:
        size = path.stat().st_size if path.exists() else 0
        _write_at(path, size, text)


def append_row(path: Path, row: Sequence[float]) -> None:
    """Append a row to a JSON list of lists, which is valid after each row. An existing file of another form is renamed
    to NAME.old.
    """
    text = json.dumps([float(value) for value in row])
    size = path.stat().st_size if path.exists() else 0
    if size > len(_END) and _tail(path) == _END:
        _write_at(path, size - len(_END), f",\n{text}{_END}")
    else:
        if size:
            path.replace(path.with_name(f"{path.name}.old"))
        _write_at(path, 0, f"[\n{text}{_END}")


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(-len(_END), os.SEEK_END)
        return file.read().decode(errors="replace")


def _write_at(path: Path, place: int, text: str) -> None:
    """Write text from a place to the end of a file by one call; if that fails, restore the file's former end."""
    data = text.encode()
    with path.open("r+b" if path.exists() else "x+b", buffering=0) as file:
        file.seek(place)
        former = file.read()
        try:
            if os.pwrite(file.fileno(), data, place) != len(data):
                raise OSError(f"{path}: the disk is full")
        except OSError:
            os.pwrite(file.fileno(), former, place)
            file.truncate(place + len(former))
            raise


class EpisodeTables(Outputs):
    """Batsim's output files of one episode, kept in memory because the next episode usually replaces them."""

    def __init__(self) -> None:
        super().__init__(PREFIX)
        self.texts: dict[str, str] = {}

    def commit(self, schedule: dict[str, str]) -> None:
        """Store the summary and the rows up to now, which `write` writes."""
        names = sorted(schedule)
        self._files["schedule"].write(",".join(names) + "\n" + ",".join(schedule[name] for name in names) + "\n")
        self.texts = {name: cast(io.StringIO, file).getvalue() for name, file in self._files.items()}
        self._files.clear()

    def write(self, folder: Path, prefix: str) -> None:
        """Write PREFIX_jobs.csv and the others, each atomically, the summary last."""
        for name in reversed(self.texts):
            write_text(folder / f"{prefix}_{name}.csv", self.texts[name])

    def _begin(self, name: str, header: str) -> None:
        self._files[name] = io.StringIO(header)
        self._files[name].seek(0, os.SEEK_END)


@contextmanager
def insights(folder: Path, level: str) -> Iterator[None]:
    """Append the log records of the decision system and of the agent's file to insights.log, without times of day."""
    root = logging.getLogger()
    handler = logging.FileHandler(folder / INSIGHTS, encoding="utf-8")
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handler.addFilter(_is_ours)
    former, others = root.level, list(root.handlers)
    for other in others:
        other.addFilter(_is_for_people)
    root.addHandler(handler)
    root.setLevel(min(handler.level, former))
    insight = logging.getLogger("schedlab.hetero.insights")
    insight.setLevel(handler.level)
    try:
        yield
    finally:
        root.setLevel(former)
        root.removeHandler(handler)
        for other in others:
            other.removeFilter(_is_for_people)
        handler.close()


def _is_ours(record: logging.LogRecord) -> bool:
    name = record.name
    return name == "root" or (name.startswith("schedlab") and not name.startswith("schedlab.hetero.launch"))


def _is_for_people(record: logging.LogRecord) -> bool:
    """Return whether standard error shows a record as before: schedlab's records, and warnings of other packages."""
    if record.name.startswith("schedlab."):
        return not record.name.startswith("schedlab.hetero.insights")
    return record.levelno >= logging.WARNING
