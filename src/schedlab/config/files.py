"""Atomic writes, after which a reader sees either the old file or the complete new one; a fixed form of tables; and a
check of the files that a command is asked to write.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from schedlab.config.errors import UserError, disk_trouble

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Files = Mapping[str, Path | str | None]  # argument or option -> its file; None: not given
GROUP_ROWS = 1 << 17  # rows that are packed together; at most as many wait to be written
_TEMPORARY = re.compile(r"\..*?(\.[^.]*|)\.[a-z0-9_]{8}\1")  # .NAME.RANDOM followed by the suffix of NAME


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`. On success, the file gets its final name; on an error, it is
    removed.

    Raises OSError, which names `path`, if no file can be written there.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    temporary = Path(name)
    with os.fdopen(handle, "rb") as held:
        _lock(held)
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def remove_leftovers(*folders: Path | str) -> None:
    """Remove the temporary files that killed processes left below some folders. Files that a running process is writing
    stay.
    """
    for path in sorted(path for folder in folders for path in Path(folder).rglob(".*")):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            with suppress(FileNotFoundError), path.open("rb") as held:
                if _lock(held):
                    path.unlink()


@contextmanager
def turn(path: Path | str, patience: float) -> Iterator[None]:
    """Let one process at a time run the block: wait while another process is in it, at most `patience` seconds.

    The lock file `path` is created and stays. This is meant for work that several processes would do in the same way,
    so that all except the first find it done. If the file cannot be created, no process waits.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = path.open("ab")
    except OSError:
        yield
        return
    with held:
        until = time.monotonic() + patience
        while not _lock(held) and time.monotonic() < until:
            time.sleep(0.02)
        yield


def _lock(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it. On a system without such
    locks, return True.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True


def check_writable(*folders: Path | str) -> None:
    """Raise UserError with the first folder, among some folders and those below them, in which nothing can be written.
    Missing folders are ignored.
    """
    for top in folders:
        for folder, _, _ in os.walk(top):
            if not os.access(folder, os.W_OK | os.X_OK):
                read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
                error = OSError(errno.EROFS if read_only else errno.EACCES, "", folder)
                raise disk_trouble(error) or error


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write bytes atomically; create the folder if necessary."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path | str, text: str) -> None:
    """Write UTF-8 text atomically, without changing line feeds."""
    write_bytes(path, text.encode())


def write_text_if_changed(path: Path | str, text: str) -> bool:
    """Write text only if the content of the file differs, so that a new time stamp means a change. Return whether it
    was written.
    """
    try:
        if Path(path).read_bytes() == text.encode():
            return False
    except OSError:
        pass
    write_text(path, text)
    return True


def write_json(path: Path | str, value: Any) -> None:
    """Write JSON with sorted keys, two spaces and a closing line feed."""
    import json

    write_text(path, json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n")


def write_table(path: Path | str, table: pd.DataFrame) -> None:
    """Write a table as Parquet whose bytes depend only on its values (no index, no pandas metadata)."""
    with table_writer(path) as add:
        add(table)


@contextmanager
def table_writer(path: Path | str, schema: pa.Schema | None = None) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds rows to a table. It must be called at least once. The file has the same bytes as if
    all rows were written at once.

    schema  columns and types (None: those of the first rows); a column that rows lack is null in them
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary, ExitStack() as opened:
        waiting: list[pa.Table] = []
        writer: pq.ParquetWriter | None = None
        written = False

        def add(rows: pd.DataFrame) -> None:
            nonlocal writer, schema, written
            if schema is not None:
                rows = rows.reindex(columns=schema.names)
            waiting.append(pa.Table.from_pandas(rows, schema, preserve_index=False).replace_schema_metadata(None))
            schema = waiting[0].schema
            writer = writer or opened.enter_context(pq.ParquetWriter(temporary, schema, compression="zstd"))
            if sum(map(len, waiting)) >= GROUP_ROWS:
                joined = pa.concat_tables(waiting).combine_chunks()
                whole = len(joined) - len(joined) % GROUP_ROWS
                writer.write_table(joined.slice(0, whole), row_group_size=GROUP_ROWS)
                waiting[:], written = [joined.slice(whole)], True

        yield add
        if writer is None:
            raise ValueError("no rows were added: a table without rows needs those of its columns")
        rest = pa.concat_tables(waiting).combine_chunks()
        if len(rest) or not written:  # a table without rows still has its columns
            writer.write_table(rest, row_group_size=GROUP_ROWS)


def common_schema(paths: Sequence[Path | str]) -> pa.Schema:
    """Return the columns and types of Parquet tables when they are concatenated, as pandas joins them.

    The columns are in the order in which they first appear. An integer column becomes a column of floats if a table
    lacks it or has floats in it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types: dict[str, list[pa.DataType]] = {}
    for path in paths:
        for column in pq.read_schema(path):
            types.setdefault(column.name, []).append(column.type)
    for found in types.values():
        if len(found) < len(paths) and pa.types.is_integer(found[0]):
            found.append(pa.float64())
    joined = {
        name: pa.unify_schemas([pa.schema([(name, one)]) for one in dict.fromkeys(found)], promote_options="permissive")
        .field(0)
        .type
        for name, found in types.items()
    }
    return pa.schema(list(joined.items()))


def read_table(path: Path | str) -> pd.DataFrame:
    """Read a Parquet table written by `write_table`."""
    import pandas as pd

    return pd.read_parquet(path, engine="pyarrow")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of a value: keys sorted, no spaces. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(value: Any, length: int = 16) -> str:
    """Return the first `length` hexadecimal digits of the SHA-256 of a JSON value's canonical text."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def file_hash(path: Path | str) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_output_files(written: Files, read: Files | None = None) -> None:
    """Check the files of a command's results before any is written.

    Raises UserError if two of them are one file, or if one is a file that the command reads; IsADirectoryError for a
    folder.
    """
    taken = {Path(path).resolve(): name for name, path in (read or {}).items() if path and Path(path).exists()}
    for name, path in written.items():
        if not path:
            continue
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        place = Path(path).resolve()
        if place in taken:
            raise UserError(f"{path} is also the file of {taken[place]}", where=name, expected="a different file")
        taken[place] = name
