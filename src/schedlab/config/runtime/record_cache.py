"""The cache of records between runs: values by the hash of everything they depend on, in one JSON file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from schedlab.config.files import write_text

T = TypeVar("T")
SECONDS = 1.0  # of processor time; a killed process may lose so much work


class RecordCache:
    """Values by content hash, kept between runs in one JSON file. A file that cannot be read or has other content is
    ignored.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.known: dict[str, Any] = {}
        self.used: dict[str, Any] = {}
        self.saved = time.process_time()
        if file is not None:
            try:
                self.known = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                self.known = {}
        if not isinstance(self.known, dict):
            self.known = {}

    def get(self, key: str, make: Callable[[], T]) -> T:
        """Return the value stored under `key`; if there is none, make it. New values are saved once a second of
        processor time, so that a run after a killed one can continue.
        """
        if key not in self.used and key in self.known:
            self.used[key] = self.known[key]
        elif key not in self.used:
            self.used[key] = make()
            if time.process_time() > self.saved + SECONDS:
                self.save()
        value: T = self.used[key]
        return value

    def has(self, key: str) -> bool:
        """Return whether a value is stored under `key`, which then counts as used."""
        if key in self.known:
            self.used[key] = self.known[key]
        return key in self.used

    def save(self, prune: bool = False) -> None:
        """Write the values that this run added; with `prune`, remove those that it did not use. If the folder cannot be
        written, nothing is saved.
        """
        kept = self.used if prune else {**self.known, **self.used}
        if self.file is None or kept.keys() == self.known.keys():
            return
        try:
            write_text(self.file, json.dumps(kept, separators=(",", ":")))
        except OSError:
            return
        self.known, self.saved = dict(kept), time.process_time()
