"""One run at a time in a working directory, by a lock that the system drops when the process ends, however it ends.

Snakemake's own lock is a file that stays behind after a kill and must be removed by hand; the profiles switch it off.
"""

from __future__ import annotations

from pathlib import Path

from schedlab.config.errors import UserError

_held: dict[Path, object] = {}


def hold(file: Path) -> None:
    """Hold the lock until this process ends; a second call in the same process is free. Raises UserError if another run holds it."""
    from filelock import FileLock, Timeout

    file = file.resolve()
    if file in _held:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise busy(file) from None
    except (OSError, NotImplementedError):  # a file system without locks: nothing to hold on to
        return
    _held[file] = lock


def is_held_elsewhere(file: Path) -> bool:
    """Tell whether another process holds the lock now."""
    from filelock import FileLock, Timeout

    file = file.resolve()
    if file in _held or not file.exists():
        return False
    try:
        with FileLock(file).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        return False


def busy(file: Path, what: str = "") -> UserError:
    """Return the error for a directory in which another run is at work."""
    found = f"another run works in this directory{what}"
    return UserError(found, where=str(file.resolve().parent.parent), remedy="wait for it, or use another --directory")
