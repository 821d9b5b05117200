"""Feed each reader with files made wrong, and print how many were tried; `make fuzz`.

python tests/fuzz/fuzz.py --count 10000                    every reader
python tests/fuzz/fuzz.py --reader swf --seed 3            one reader, other draws
python tests/fuzz/fuzz.py --reader swf --number 1234       one input again, with its traceback; --keep FILE writes it
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_mutations import mutated
from fuzz_readers import READERS, Reader

from schedlab.config.errors import UserError

PATIENCE = 20  # CPU seconds after which an input of at most 256 KiB hangs
MEMORY = 1 << 30  # bytes that reading one may add to the process
LONGEST = 4000  # characters of one mistake's message, which is one paragraph


class Hangs(BaseException):
    """A reader takes too long; no reader may catch it."""


@dataclass
class Outcome:
    """What became of a reader's inputs; `failures` by number."""

    read: int = 0
    refused: int = 0
    failures: dict[int, BaseException] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """How many inputs the reader was given."""
        return self.read + self.refused + len(self.failures)


def make_input(reader: Reader, seed: int, number: int) -> bytes:
    """Return input `number` of a reader, which depends on nothing else."""
    draws = random.Random(f"{seed}/{reader.name}/{number}")
    return mutated(reader.form, draws.choice(valid_files(reader.name)), draws)


@cache
def valid_files(name: str) -> list[bytes]:
    """Return the valid files of a reader."""
    return READERS[name].seeds()


def try_input(reader: Reader, data: bytes, folder: Path) -> BaseException | None:
    """Read one input; returns the UserError that it ended in, None where it was read. Raises what no user should ever
    see.
    """
    path = folder / reader.file
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reader.read(path)
    except UserError as error:
        for mistake in error.errors:
            assert 0 < len(str(mistake)) <= LONGEST, (
                f"a message of {len(str(mistake))} characters: {str(mistake)[:200]} ..."
            )
            assert "Traceback" not in str(mistake)
        return error
    return None


def fuzz(reader: Reader, count: int, seed: int, most_failures: int = 10) -> Outcome:
    """Give a reader `count` inputs, within the limits of time and memory; ends early after so many failures."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for valid in valid_files(reader.name):  # imports, compiles and fills caches before memory is limited
            error = try_input(reader, valid, Path(folder))
            assert error is None, f"a valid file for {reader.name} is refused: {error}"
        with limited_memory():
            for number in range(count):
                data = make_input(reader, seed, number)
                try:
                    with limited_time():
                        error = try_input(reader, data, Path(folder))
                    outcome.refused += error is not None
                    outcome.read += error is None
                except (Exception, Hangs) as failure:
                    outcome.failures[number] = failure
                    if len(outcome.failures) >= most_failures:
                        break
    return outcome


@contextmanager
def limited_time() -> Iterator[None]:
    """Raise Hangs in the block after PATIENCE seconds of CPU time."""

    def stop(*_: Any) -> None:
        raise Hangs(f"reads for more than {PATIENCE} CPU seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let the process grow by MEMORY at most, so that what would fill the machine ends in a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def report(reader: Reader, outcome: Outcome, seed: int) -> str:
    """Return a line of what was tried, and for each failure the command that shows it again."""
    lines = [
        f"{reader.name:22} {outcome.tried:7} tried {outcome.read:7} read {outcome.refused:7} refused "
        f"{len(outcome.failures):4} failed"
    ]
    for number, failure in outcome.failures.items():
        lines.append(f"  {type(failure).__name__}: {str(failure)[:200]}")
        lines.append(f"  again with: python tests/fuzz/fuzz.py --reader {reader.name} --seed {seed} --number {number}")
    return "\n".join(lines)


def main() -> int:
    """Return 1 where a reader failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", choices=READERS, help="one reader (default: all)")
    parser.add_argument("--count", type=int, default=10_000, help="inputs a reader (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: %(default)s)")
    parser.add_argument("--number", type=int, help="only this input, with its traceback")
    parser.add_argument("--keep", type=Path, help="with --number: write the input there")
    arguments = parser.parse_args()
    chosen = [READERS[arguments.reader]] if arguments.reader else list(READERS.values())
    if arguments.number is not None:
        if not arguments.reader:
            parser.error("--number needs --reader")
        return again(chosen[0], arguments.seed, arguments.number, arguments.keep)
    total = failed = 0
    for reader in chosen:
        began = time.process_time()
        outcome = fuzz(reader, arguments.count, arguments.seed)
        print(f"{report(reader, outcome, arguments.seed)}  [{time.process_time() - began:.0f} CPU s]", flush=True)
        total, failed = total + outcome.tried, failed + len(outcome.failures)
    print(f"{total} inputs tried with {len(chosen)} readers, {failed} failures")
    return 1 if failed else 0


def again(reader: Reader, seed: int, number: int, keep: Path | None) -> int:
    """Read one input again and print what comes of it."""
    data = make_input(reader, seed, number)
    print(f"{reader.name}, seed {seed}, number {number}: {len(data)} bytes, beginning {data[:300]!r}")
    if keep is not None:
        keep.write_bytes(data)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        try:
            with limited_time():
                error = try_input(reader, data, Path(folder))
        except (Exception, Hangs):
            traceback.print_exc()
            return 1
    print("read" if error is None else f"refused: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
