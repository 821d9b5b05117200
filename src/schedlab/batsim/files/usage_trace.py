"""Usage traces: for each executor of a job, steps with a share of the host's cores and the flop of each core."""

from __future__ import annotations

from pathlib import Path

from schedlab.batsim.files.json_values import number
from schedlab.config.errors import UserError
from schedlab.config.readers import read_text

Steps = tuple[tuple[float, float], ...]
"""Of one executor, in order: share of the host's cores in use (0 to 1), flop that each of these computes."""
_FORM = "a line such as '0 m_usage 0.5 1e9': executor, m_usage, share of the cores, flop of each"


def read_usage_trace(path: Path) -> tuple[Steps, ...]:
    """Return the steps of each executor. The file at `path` lists one file for each executor, with paths relative to
    its folder. Raises UserError for files that cannot be read or are no usage traces.
    """
    names = _lines(path, "a list of trace files, one for each executor")
    if not names:
        raise UserError("names no file", where=str(path), expected="one file for each executor")
    return tuple(_steps(path.parent / name) for _, name in names)


def _steps(path: Path) -> Steps:
    return tuple(_step(line, f"{path}: line {index}") for index, line in _lines(path, "a usage trace"))


def _step(line: str, where: str) -> tuple[float, float]:
    words = line.split()
    if len(words) != 4 or words[1] != "m_usage":
        raise UserError(f"'{line[:60]}' is no step of a usage trace", where=where, expected=_FORM)
    try:
        usage, flops = float(words[2]), float(words[3])
    except ValueError:
        raise UserError(f"'{line[:60]}' is no step of a usage trace", where=where, expected=_FORM) from None
    number(flops, where, "flop, not negative")
    if not 0 <= usage <= 1:
        raise UserError(f"usage is {words[2]}", where=where, expected="a share from 0 to 1")
    return usage, flops


def _lines(path: Path, what: str) -> list[tuple[int, str]]:
    """Return the lines that are neither blank nor comments, with their numbers."""
    lines = enumerate(map(str.strip, read_text(path, what).split("\n")), start=1)
    return [(index, line) for index, line in lines if line and not line.startswith("#")]
