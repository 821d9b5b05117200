"""Run a scale twice, on one core and on two, in two fresh copies, and compare every hash: `make verify`.

    python tests/workflow/verify.py [--scale smoke] [--cores 1 2] [--asked SSE4.2] [--keep DIR] [TARGET ...]

The environment of the second run asks numerical libraries for the instructions of another processor.

Prints the number of hashes compared; status 1 where one differs, with a line for each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(REPOSITORY / "tests")]

from checkouts import copy_repository  # noqa: E402

from processors import ASKED  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and compare; returns the exit status."""
    parser = argparse.ArgumentParser(description="Run a scale twice in fresh copies and compare every hash.")
    parser.add_argument("targets", nargs="*", default=["all"], help="of the workflow; default: all")
    parser.add_argument("--scale", default="smoke")
    parser.add_argument("--cores", type=int, nargs=2, default=[1, 2], metavar=("FIRST", "SECOND"))
    parser.add_argument("--asked", choices=ASKED, default="SSE4.2", help="instructions that the second run asks for")
    parser.add_argument(
        "--keep", type=Path, help="folder to make the copies in, and to leave them; default: a temporary one"
    )
    chosen = parser.parse_args(arguments)
    if chosen.keep and any((chosen.keep / f"run-{number}").exists() for number in (1, 2)):
        parser.error(f"{chosen.keep} holds runs already; name an empty folder")
    with tempfile.TemporaryDirectory(prefix="schedlab-verify-") as temporary:
        place = chosen.keep or Path(temporary)
        first = hashes_of_run(place / "run-1", chosen.cores[0], chosen)
        with mock.patch.dict(os.environ, ASKED[chosen.asked]):
            second = hashes_of_run(place / "run-2", chosen.cores[1], chosen)
    names = [f"with --cores {chosen.cores[0]}", f"with --cores {chosen.cores[1]} and {chosen.asked} asked for"]
    return report(first, second, names)


def hashes_of_run(folder: Path, cores: int, chosen: argparse.Namespace) -> dict[str, str]:
    """Run the workflow in a fresh copy of the repository; returns the hash of everything that it made."""
    print(f"running {' '.join(chosen.targets)} at scale {chosen.scale} with --cores {cores}, in {folder}", flush=True)
    checkout = copy_repository(REPOSITORY, folder)
    shutil.copytree(REPOSITORY / "conf", folder / "conf")
    try:
        checkout.run(*chosen.targets, "--config", f"scale={chosen.scale}", cores=cores, seconds=None)
    except AssertionError as failure:
        raise SystemExit(
            f"{failure}\nthe run with --cores {cores} failed; --keep DIR leaves it there to be looked at"
        ) from None
    return checkout.hashes()


def unlike(one: Mapping[str, str], other: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """A line for each file that two runs do not have in common, or with other bytes."""
    lines = []
    for path in sorted({*one, *other}):
        if path not in one or path not in other:
            lines.append(f"only {names[0 if path in one else 1]}: {path}")
        elif one[path] != other[path]:
            lines.append(f"other bytes: {path}")
    return lines


def report(one: Mapping[str, str], other: Mapping[str, str], names: Sequence[str]) -> int:
    """Print what differs and how much was compared; returns 1 where something differs or nothing was made."""
    lines = unlike(one, other, names)
    compared = len(one.keys() & other.keys())
    print("\n".join([*lines, f"{compared} hashes compared, {f'{len(lines)} files differ' if lines else 'all equal'}"]))
    return int(bool(lines) or not compared)


if __name__ == "__main__":
    sys.exit(main())
