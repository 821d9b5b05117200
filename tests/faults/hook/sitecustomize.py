"""Kill a run at one of its file events: Python imports this module at the start of every process of a run that
faults.py disturbs.

A file event is what changes names below a folder or opens a file there for writing, in any process of the run, as
Python's audit hooks tell it just before it happens. Events are counted by appending a byte to a file, whose length then
is the event's number: the count needs no clock, so that a point means the same on any machine.

FAULT_FOLDER  folder whose events count                       FAULT_NOTES  folder of the counts, outside of it
FAULT_VICTIM  main (Snakemake alone), worker (the process of any job), training (that of a job which learns), all (the
              whole run); events of workers and training jobs are counted for themselves, those of the others over all
              processes. Empty: count only
FAULT_EVENT   number of the event to kill at
FAULT_OPENED  1: where the event opens a file and its process dies, the file is made or emptied first, as between
              opening and writing
"""
# No Path is made here: this runs at every event of every process.
# ruff: noqa: PTH100, PTH118

from __future__ import annotations

import os
import signal
import sys

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.utime")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Counts the file events of this process and kills at the one that was asked for."""

    def __init__(self, folder: str, notes: str, victim: str, event: int, opened: bool) -> None:
        self.folder, self.notes, self.victim, self.event, self.opened = (
            os.path.join(folder, ""),
            notes,
            victim,
            event,
            opened,
        )
        self.main = int(
            os.environ.setdefault("FAULT_MAIN", str(os.getpid()))
        )  # the first process hands its own on to the others
        kinds = ["all"] if self.main == os.getpid() else ["all", "worker", "training"]
        self.counts = {
            kind: os.open(os.path.join(notes, kind), os.O_WRONLY | os.O_CREAT | os.O_APPEND) for kind in kinds
        }
        self.counted = "all" if victim == "main" else victim
        self.at_work = False

    def __call__(self, name: str, arguments: tuple) -> None:
        """Receive one audit event."""
        if (
            not (name in CHANGES or (name == "open" and arguments[2] & WRITES))
            or self.at_work
            or isinstance(arguments[0], int)
        ):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if not path.startswith(self.folder) or "__pycache__" in path:
            return
        self.at_work = True
        for kind, file in self.counts.items():
            if kind == "training" and not sys.argv[0].endswith("learn.py"):  # a fork of the run's server, or a script
                continue
            os.write(file, b".")
            if kind == self.counted and os.lseek(file, 0, os.SEEK_CUR) >= self.event > 0:
                self.strike(path, arguments[2] if name == "open" else 0)
        self.at_work = False

    def strike(self, path: str, flags: int) -> None:
        """Kill the victim, once in a run."""
        try:
            os.close(os.open(os.path.join(self.notes, "struck"), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if (
            self.opened
            and flags & (os.O_CREAT | os.O_TRUNC)
            and not (self.victim == "main" and self.main != os.getpid())
        ):
            os.close(os.open(path, flags, 0o666))
        if self.victim == "all":
            os.killpg(0, signal.SIGKILL)
        os.kill(self.main if self.victim == "main" else os.getpid(), signal.SIGKILL)


if "FAULT_FOLDER" in os.environ:
    asked = {
        name: os.environ.get(f"FAULT_{name.upper()}", "") for name in ("folder", "notes", "victim", "event", "opened")
    }
    sys.addaudithook(
        Watch(asked["folder"], asked["notes"], asked["victim"], int(asked["event"] or 0), asked["opened"] == "1")
    )
