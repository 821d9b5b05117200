"""Reading and writing of the Standard Workload Format: 18 columns, `;` for comments, plain or gzip.

A file is read in blocks, so that reading only some of the jobs is fast. Each block is parsed by pandas. If that finds
anything unusual, the block is read again line by line, which defines the format and reports the line of an error.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.workloads.trace import COLUMNS, INTEGER, LARGEST, Trace, header_key

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES = 1 << 20
BLOCK_JOBS = 1 << 13  # jobs written at a time
GROWTH = 1.3  # factor by which arrays grow; unused space in them takes no memory
LONGEST_LINE = 1 << 16
MOST_OTHER_LINES = 1 << 20  # comments and blank lines of a file
MOST_UNPACKED = 1 << 24  # bytes of a gzip file; MOST_GROWTH times its size if that is more
MOST_GROWTH = 100  # logs unpack to 5 to 10 times their size
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31  # zlib's value for the gzip format with the largest window; the file then has no date
NAMES = tuple(COLUMNS)
Columns = dict[str, np.ndarray]  # an array for each of NAMES
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PARTITION = NAMES.index("partition")


def read_swf(path: Path | str, *, first: int | None = None) -> Trace:
    """Return the trace in a file (.swf, .swf.gz or any name: gzip is detected from the content), or only its first
    jobs.

    Bytes of a comment that are not UTF-8 are replaced. Raises UserError, with file and line, for a file that is missing
    or truncated, or has a line that is not 18 numbers.
    """
    comments: list[tuple[int, str]] = []
    jobs = JobColumns()
    for found, columns in _column_blocks(path):
        comments += found
        jobs.add(columns)
        if first is not None and jobs.count >= first:
            break
    return _trace(jobs.frame().iloc[:first], comments, path)


def read_header(path: Path | str) -> Trace:
    """Return the trace of a file without its jobs, but with all its comments. Raises UserError; jobs are not
    checked.
    """
    comments: list[tuple[int, str]] = []
    line = 1
    for block in _blocks(Path(path)):
        comments += _comments(block, line) if b";" in block else []
        line += block.count(b"\n")
        _limit_other_lines(len(comments), path, line)
    return _trace(JobColumns().frame(), comments, path)


def read_blocks(path: Path | str) -> Iterator[pd.DataFrame]:
    """Yield the jobs of a file block by block, so that memory does not grow with the file. Raises UserError as
    `read_swf` does.
    """
    for _, columns in _column_blocks(path):
        yield _frame(columns)


class JobColumns:
    """Jobs that are added block by block. Each column is one array with spare space, so that a long log is never in
    memory twice.

    If the blocks were joined at the end, the log would be in memory twice, because the memory of their small arrays is
    returned only when all of them are freed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._columns = {name: np.empty(0, kind) for name, kind in COLUMNS.items()}

    def add(self, jobs: Columns | pd.DataFrame) -> None:
        """Append jobs (18 columns of equal length)."""
        begin, self.count = self.count, self.count + len(jobs["job_id"])
        for name, column in self._columns.items():
            if self.count > len(column):
                grown = np.empty(max(self.count, int(GROWTH * len(column))), column.dtype)
                grown[:begin] = column[:begin]
                self._columns[name] = column = grown
            column[begin : self.count] = jobs[name]

    def frame(self) -> pd.DataFrame:
        """Return all jobs, without copying them."""
        return _frame({name: column[: self.count] for name, column in self._columns.items()})


def _trace(jobs: pd.DataFrame, comments: list[tuple[int, str]], path: Path | str) -> Trace:
    lines: dict[str, int] = {}
    for number, text in comments:
        lines.setdefault(header_key(text), number)
    return Trace(jobs, tuple(text for _, text in comments), str(path), lines)


def _column_blocks(path: Path | str) -> Iterator[tuple[list[tuple[int, str]], Columns]]:
    line, jobs = 1, 0
    for block in _blocks(Path(path)):
        comments, columns = _comments(block, line) if b";" in block else [], _parse(block, str(path), line)
        line += block.count(b"\n")
        jobs += len(columns["job_id"])
        _limit_other_lines(line - 1 - jobs, path, line)
        yield comments, columns


def _limit_other_lines(count: int, path: Path | str, line: int) -> None:
    """Raise UserError for too many comments and blank lines: each takes time, and each comment memory."""
    if count > MOST_OTHER_LINES:
        raise UserError(
            f"{count} comments and blank lines",
            where=f"{path}: before line {line}",
            expected=f"at most {MOST_OTHER_LINES}",
            remedy="remove them, for example with: zgrep -e '^[^;]*[0-9]' -e '^; *Max' FILE > jobs.swf",
        )


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the unpacked file in blocks of whole lines."""
    line, rest = 1, b""
    try:
        for data in _unpacked(path):
            if line == 1 and not rest:
                data = data.removeprefix(codecs.BOM_UTF8)
            whole, newline, rest_after = (rest + data).rpartition(b"\n")
            if whole or newline:
                yield whole + newline
                line += whole.count(b"\n") + 1
            rest = rest_after
            if len(rest) > LONGEST_LINE:
                raise UserError(
                    f"a line of more than {LONGEST_LINE} bytes", where=f"{path}: line {line}", expected="18 numbers"
                )
        if rest.strip():
            yield rest
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"the gzip file is cut off or damaged ({error})",
            where=f"{path}: after line {line - 1}",
            expected="a whole file",
            remedy="copy or download it again",
        ) from None
    except FileNotFoundError:
        raise UserError(
            "there is no such file", where=str(path), expected="a trace in the Standard Workload Format"
        ) from None
    except IsADirectoryError:
        raise UserError(
            "this is a folder", where=str(path), expected="a trace in the Standard Workload Format"
        ) from None


def _unpacked(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked if it is gzip. Raises UserError if it unpacks to much more than a log
    would.
    """
    with path.open("rb") as raw:
        if raw.peek(2)[:2] != GZIP_MAGIC:
            yield from iter(lambda: raw.read(BLOCK_BYTES), b"")
            return
        left = max(MOST_UNPACKED, MOST_GROWTH * path.stat().st_size) if path.is_file() else math.inf
        with gzip.open(raw, "rb") as file:
            while data := file.read(BLOCK_BYTES):
                left -= len(data)
                if left < 0:
                    raise UserError(
                        f"unpacks to more than {MOST_GROWTH} times its size",
                        where=str(path),
                        expected="a log, which unpacks to 5 to 10 times its size",
                        remedy="if it is one, unpack it first (gunzip) and read the plain file",
                    )
                yield data


def _comments(block: bytes, first_line: int) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(block.splitlines(), first_line):
        if line.lstrip().startswith(b";"):
            found.append(
                (number, line.strip()[1:].rstrip().decode("utf-8", "replace"))
            )  # names of people and places in logs have any encoding
    return found


def _decoded(text: bytes, path: str, number: int) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"byte 0x{text[error.start]:02x} is not UTF-8",
            where=f"{path}: line {number}",
            expected="a UTF-8 text",
            remedy="convert it, for example with: iconv -f latin1 -t utf-8",
        ) from None


def _parse(block: bytes, path: str, first_line: int) -> Columns:
    found = _parse_at_once(block)
    return found if found is not None else _parse_lines(block, path, first_line)


def _parse_at_once(block: bytes) -> Columns | None:
    """Return the jobs of a block, or None if its lines are not all 18 finite numbers."""
    import pandas as pd

    comment = ";" if b";" in block else None
    try:
        table = pd.read_csv(
            io.BytesIO(block),
            sep=r"\s+",
            header=None,
            comment=comment,
            quoting=csv.QUOTE_NONE,
            low_memory=False,
        )
    except (ValueError, OverflowError):  # pandas raises ValueErrors for mistakes, also for text that is not UTF-8
        return None
    if table.shape[1] != len(NAMES):
        return None
    columns = {}
    for name, (_, column) in zip(NAMES, table.items(), strict=True):
        values = column.to_numpy()
        if values.dtype.kind not in "if" or not np.isfinite(values).all() or (np.abs(values) > LARGEST).any():
            return None
        columns[name] = values.astype(COLUMNS[name])
        if COLUMNS[name] is INTEGER and (columns[name] != values).any():
            return None
    return columns


def _parse_lines(block: bytes, path: str, first_line: int) -> Columns:
    """Return the jobs of a block, parsed line by line. Raises UserError with the line."""
    rows = []
    for number, line in enumerate(block.splitlines(), first_line):
        fields = line.partition(b";")[0].split()
        if not fields:
            continue
        if len(fields) != len(NAMES):
            _decoded(line, path, number)
            raise UserError(
                f"{len(fields)} fields",
                where=f"{path}: line {number}",
                expected=f"{len(NAMES)} numbers",
                remedy="the file may be cut off here",
            )
        row = [_value(field, place) for place, field in enumerate(fields)]
        if None in row:
            place = row.index(None)
            raise _refusal(fields[place], place, path, number)
        rows.append(row)
    table = np.array(rows, dtype=float).reshape(-1, len(NAMES))
    return {name: table[:, place].astype(kind) for place, (name, kind) in enumerate(COLUMNS.items())}


@lru_cache(maxsize=1 << 12)
def _value(field: bytes, place: int) -> float | None:
    """Return the number in a field, or None if its column cannot contain it."""
    value = float(field) if _NUMBER.fullmatch(field) else math.nan
    whole = math.isfinite(value) and value == math.floor(value)
    if place == _PARTITION and not whole:
        return 0.0  # some logs have a name in this column
    if not abs(value) <= LARGEST or (COLUMNS[NAMES[place]] is INTEGER and not whole):
        return None
    return value


def _refusal(field: bytes, place: int, path: str, number: int) -> UserError:
    shown = "".join(sign if sign.isprintable() else "?" for sign in _decoded(field[:40], path, number))
    return UserError(
        f"column {place + 1} ({NAMES[place]}) is '{shown}'",
        where=f"{path}: line {number}",
        expected="a whole number" if COLUMNS[NAMES[place]] is INTEGER else "a number",
    )


def _frame(columns: Columns) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns, copy=False)


def write_swf(path: Path | str, trace: Trace) -> None:
    """Write a trace atomically, its comments first, as gzip if the name ends in .gz. The bytes depend only on the
    trace.

    Whole numbers are written without a point, others as their shortest exact text, so that reading gives the same trace
    again. Jobs are converted to text in blocks, because the text of a long log takes ten times as much memory as its
    numbers.
    """
    packed = str(path).endswith(".gz")
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        packer = zlib.compressobj(6, zlib.DEFLATED, GZIP_WINDOW) if packed else None
        for text in _texts_of(trace):
            file.write(packer.compress(text.encode()) if packer else text.encode())
        file.write(packer.flush() if packer else b"")


def _texts_of(trace: Trace) -> Iterator[str]:
    """Yield the text of a trace block by block."""
    yield "".join(f";{line}\n" for line in trace.comments)
    for start in range(0, len(trace.jobs), BLOCK_JOBS):
        piece = trace.jobs.iloc[start : start + BLOCK_JOBS]
        columns = [_texts(piece[name].to_numpy()) for name in NAMES]
        yield "".join(" ".join(row) + "\n" for row in zip(*columns, strict=True))


def _texts(values: np.ndarray) -> list[str]:
    whole = values.astype(np.int64)
    if (whole == values).all():
        return list(map(str, whole.tolist()))
    return [str(int(value)) if value == int(value) else repr(value) for value in values.tolist()]
