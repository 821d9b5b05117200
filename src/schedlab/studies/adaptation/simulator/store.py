"""The node store: no state is trained twice, even if the process that trains is interrupted.

One SQLite file holds one family of nodes (a trunk, or a replicate from its adaptation point on). A node is written in
one transaction after its epoch, so a killed process loses only its current epoch. Metrics and states are checked
against their SHA-256 when they are read: a damaged node counts as missing, and a damaged file is moved aside and
replaced by an empty one. The log reports both.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from schedlab.config.errors import UserError

Log = Callable[[str], None]
Metrics = Mapping[str, float]
T = TypeVar("T")

BUSY_SECONDS = 60.0  # how long a statement waits for another process's transaction
NO_DAMAGE = (
    "locked",
    "unable to open",
    "readonly",
    "disk is full",
    "disk I/O error",
)  # parts of SQLite's messages on problems other than damage
SCHEMA = """
CREATE TABLE IF NOT EXISTS family (description TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nodes (
    key TEXT PRIMARY KEY,
    metrics TEXT NOT NULL,
    metrics_hash TEXT NOT NULL,
    state BLOB,
    state_hash TEXT NOT NULL,
    trained INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS made (output TEXT PRIMARY KEY) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class NodeSummary:
    """A node without its state: its metrics, whether its state is stored, and how often it was trained."""

    metrics: dict[str, float]
    has_state: bool
    trained: int


class NodeStore:
    """The nodes of one family in one SQLite file, which the constructor opens (and creates if it is missing).

    path         the file; its folder is created
    description  the values that determine the family, kept in the file as information for people
    log          receives one line for each repaired damage

    Raises UserError if the disk is full or the folder cannot be written.
    """

    def __init__(self, path: Path | str, description: Mapping | None = None, log: Log | None = None) -> None:
        self.path = Path(path)
        self._description = json.dumps(description or {}, sort_keys=True)
        self._log = log or (lambda _line: None)
        self._connection: sqlite3.Connection | None = None
        self._guarded(lambda _connection: None)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def summaries(self) -> dict[str, NodeSummary]:
        """Return every intact node in the file by key, without its state."""
        query = "SELECT key, metrics, metrics_hash, state IS NOT NULL, trained FROM nodes"
        found = {}
        for key, metrics, digest, has_state, trained in self._guarded(
            lambda connection: connection.execute(query).fetchall()
        ):
            if _hash(key, metrics) != digest:
                self._damaged(key, "metrics")
                continue
            found[key] = NodeSummary(json.loads(metrics), bool(has_state), trained)
        return found

    def state(self, key: str) -> bytes | None:
        """Return a node's packed state; None if the node is missing or damaged, or its state was dropped."""
        query = "SELECT state, state_hash FROM nodes WHERE key = ?"
        row = self._guarded(lambda connection: connection.execute(query, (key,)).fetchone())
        if row is None or row[0] is None:
            return None
        if _hash(key, row[0]) != row[1]:
            self._damaged(key, "state")
            return None
        return row[0]

    def save(self, key: str, metrics: Metrics, state: bytes) -> None:
        """Store a node that was just trained. An existing node is replaced, and its number of trainings increases."""
        text = json.dumps(dict(metrics), sort_keys=True)
        values = (key, text, _hash(key, text), state, _hash(key, state))
        self._write(
            "INSERT INTO nodes VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT (key) DO UPDATE SET metrics = excluded.metrics, "
            "metrics_hash = excluded.metrics_hash, state = excluded.state, state_hash = excluded.state_hash, "
            "trained = trained + 1",
            [values],
        )

    def update_metrics(self, key: str, metrics: Metrics) -> None:
        """Replace a node's metrics (it was evaluated after it was trained); its state does not change."""
        text = json.dumps(dict(metrics), sort_keys=True)
        self._write("UPDATE nodes SET metrics = ?, metrics_hash = ? WHERE key = ?", [(text, _hash(key, text), key)])

    def drop_states(self, keys: Iterable[str]) -> None:
        """Delete the states of nodes, but not their metrics."""
        self._write("UPDATE nodes SET state = NULL WHERE key = ?", [(key,) for key in keys])

    def trained(self) -> dict[str, int]:
        """Return how often each node in the file was trained (once, unless damage was repaired)."""
        return {key: summary.trained for key, summary in self.summaries().items()}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Prevent other processes from training this family within the block.

        The system releases the lock when the process ends. On a file system without locks, a warning is logged instead.
        """
        import fcntl

        with self.path.with_suffix(".lock").open("w") as file:
            waiting = False
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not waiting:
                        self._log(f"{self.path.name}: waiting for another process that trains the same nodes")
                    waiting = True
                    time.sleep(0.1)
                except OSError as error:
                    self._log(f"{self.path.name}: this file system has no locks ({error.strerror}); going on without")
                    break
            yield

    def begin(self, output: str) -> None:
        """Delete all nodes if this output was made from them before.

        An output is only requested again after it was deleted or its job was forced, and must then be computed again.
        """

        def forget(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute("DELETE FROM made WHERE output = ?", (output,)).rowcount:
                    connection.execute("DELETE FROM nodes")

        self._guarded(forget)

    def note_made(self, output: str) -> None:
        """Record that an output was made from the nodes and has been written."""
        self._write("INSERT OR REPLACE INTO made VALUES (?)", [(output,)])

    def forget_made(self, output: str) -> None:
        """Delete the record that an output was made from the nodes, because other nodes have replaced it."""
        self._write("DELETE FROM made WHERE output = ?", [(output,)])

    def _write(self, statement: str, values: list[tuple]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(statement, values)

        if values:
            self._guarded(write)

    def _guarded(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Run an action on the open file. If the file is damaged, move it aside and run the action on an empty one."""
        try:
            return action(self._open())
        except (sqlite3.Error, UnicodeDecodeError) as error:  # damaged text may not decode
            if any(sign in str(error) for sign in NO_DAMAGE):
                remedy = "see to the folder and its disk, then start again"
                raise UserError(str(error), where=str(self.path), remedy=remedy) from None
            self._move_aside(error)
            return action(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            # unlike WAL, this mode needs no shared memory, so it works on network folders
            connection.execute("PRAGMA journal_mode = TRUNCATE")
            # safe if the process is killed; damage by a power cut is detected and repaired
            connection.execute("PRAGMA synchronous = OFF")
            if (verdict := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(f"malformed: {verdict}")
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
            connection.execute(
                "INSERT INTO family SELECT ? WHERE NOT EXISTS (SELECT * FROM family)", (self._description,)
            )
            connection.execute("SELECT key, metrics, metrics_hash, state_hash, trained FROM nodes LIMIT 1").fetchall()
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _move_aside(self, error: Exception) -> None:
        self.close()
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        self.path.replace(aside)
        self.path.with_name(self.path.name + "-journal").unlink(missing_ok=True)
        self._log(
            f"{self.path.name}: the file is damaged ({error}); moved to {aside.name}, its nodes will be trained again"
        )

    def _damaged(self, key: str, what: str) -> None:
        self._log(f"{self.path.name}: node {key}: its {what} is damaged; it will be trained again")


def _hash(key: str, content: str | bytes) -> str:
    data = content if isinstance(content, bytes) else content.encode()
    return hashlib.sha256(key.encode() + b"\0" + data).hexdigest()
