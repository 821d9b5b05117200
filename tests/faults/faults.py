"""Kill runs of the toy study at drawn moments, and see that one plain restart ends as if nothing had happened; `make faults`.

python tests/faults/faults.py --count 500               so many kill points
python tests/faults/faults.py --number 17 --keep DIR    one of them again; DIR must not exist, and holds the checkout afterwards
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests/workflow"))

from checkouts import Checkout, copy_repository, toy_checkout  # noqa: E402

VICTIMS = ("main", "worker", "training", "all")
HOOK = Path(__file__).resolve().parent / "hook"
WITHOUT_FIGURES = "results/small/toy/summary.parquet"
MADE = ("results", "plots", ".snakemake", ".schedlab")
PATIENCE = 1800  # seconds that a run may take


@dataclass(frozen=True)
class KillPoint:
    """Where one run is killed: at which share of the file events that count for the victim, and whether a file is opened first."""

    victim: str
    share: float
    opened: bool
    target: str

    def __str__(self) -> str:
        return f"{self.victim} at {self.share:.1%} of the file events{', a file opened' if self.opened else ''}, of {self.target}"


def kill_points(seed: int, number: int) -> list[KillPoint]:
    """Return where the run of a number is killed, and its restarts: every eighth run's restart is killed too."""
    draws = random.Random(f"kill/{seed}/{number}")
    target = "all" if number % 5 == 4 else WITHOUT_FIGURES
    kills = 2 if number % 8 == 7 else 1
    return [KillPoint(VICTIMS[(number + i) % 4], draws.random(), draws.random() < 0.5, target) for i in range(kills)]


def five_study_checkout(folder: Path) -> Checkout:
    """The shipped configuration; the code itself and no copy, so that compiled kernels are kept."""
    checkout = copy_repository(REPOSITORY, folder)
    shutil.copytree(REPOSITORY / "conf", folder / "conf")
    shutil.rmtree(folder / "src")
    (folder / "src").symlink_to(REPOSITORY / "src")
    return checkout


def one_seed_checkout(folder: Path) -> Checkout:
    """The toy study with one scenario, one policy and one seed: a job of each rule, two of them at once."""
    checkout = toy_checkout(REPOSITORY, folder)
    for name in ("conf/scenario/toy/far.yaml", "conf/policy/toy/hill_further.yaml"):
        (folder / name).unlink()
    for name in ("conf/figure/toy/costs.yaml", "conf/policy/toy/hill.yaml"):
        checkout.edit(name, "[near, far]", "[near]")
    checkout.edit("conf/policy/toy/hill.yaml", "seeds: [0, 1]", "seeds: [0]")
    checkout.edit("conf/scenario/toy/near.yaml", "[hill, hill_further]", "[hill]")
    return checkout


@dataclass(frozen=True)
class Undisturbed:
    """What a run makes that nobody disturbs: the hashes of its results, the names of all its files, and how many file events it has."""

    hashes: Mapping[str, str]
    names: frozenset[str]
    events: Mapping[str, int]


@dataclass
class Bench:
    """A checkout in which run after run is killed and started again; `folder` holds it beside the notes of the hook.

    make     what makes the checkout in a folder
    options  arguments of every run beside its target
    """

    folder: Path
    make: Callable[[Path], Checkout] = one_seed_checkout
    options: tuple[str, ...] = ()
    checkout: Checkout = field(init=False)
    undisturbed: dict[str, Undisturbed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.checkout = self.make(self.folder / "checkout")

    def reference(self, target: str, cores: int = 2) -> Undisturbed:
        """Return what an undisturbed run makes of a target; it runs on so many cores where it has not run yet."""
        if target not in self.undisturbed:
            self.clear()
            status, output = self.run(target, cores=cores)
            assert status == 0, output[-4000:]
            events = {kind: (self.folder / "notes" / kind).stat().st_size for kind in ("all", "worker", "training")}
            self.undisturbed[target] = Undisturbed(self.checkout.hashes(), self.names(), events)
        return self.undisturbed[target]

    def clear(self) -> None:
        """Take away all that runs made."""
        subprocess.run(["rm", "-rf", *(str(self.checkout.folder / name) for name in MADE)], check=True)

    def names(self) -> frozenset[str]:
        """Return the names of all files that lie there now."""
        return self.names_of(self.checkout)

    @staticmethod
    def names_of(checkout: Checkout) -> frozenset[str]:
        """Return every file and folder that runs made, but for those that Snakemake names by time or keeps for jobs that it runs."""
        found = {path.relative_to(checkout.folder).as_posix() for name in MADE for path in (checkout.folder / name).rglob("*")}
        return frozenset(name for name in found if not re.match(r"\.snakemake/(log|scripts|iocache)/", name))

    def run(self, target: str, point: KillPoint | None = None, cores: int = 2) -> tuple[int, str]:
        """Run Snakemake with the hook, which counts and kills at the point; returns the status, negative for a signal, and the output."""
        notes = self.folder / "notes"
        subprocess.run(["rm", "-rf", str(notes)], check=True)
        notes.mkdir()
        asked = {"FAULT_FOLDER": str(self.checkout.folder), "FAULT_NOTES": str(notes)}
        if point is not None:
            counted = self.reference_events(point)
            asked |= {
                "FAULT_VICTIM": point.victim,
                "FAULT_EVENT": str(1 + int(point.share * counted)),
                "FAULT_OPENED": str(int(point.opened)),
            }
        environment = {**os.environ, **asked, "PYTHONPATH": os.pathsep.join([str(HOOK), os.environ.get("PYTHONPATH", "")])}
        command = self.checkout.command(target, *self.options, cores=cores)
        with (self.folder / "output.txt").open("w+") as output:
            started = subprocess.Popen(
                command, cwd=self.checkout.folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                status = started.wait(PATIENCE)
            finally:
                if started.poll() is None:
                    self.checkout.kill(started)
            output.seek(0)
            return status, output.read()

    def reference_events(self, point: KillPoint) -> int:
        """Return how many file events count for the point's victim."""
        return self.undisturbed[point.target].events["all" if point.victim == "main" else point.victim]

    def try_kills(self, points: Sequence[KillPoint]) -> str:
        """Kill a run and its restarts, start it again as it was started, and compare; returns what went wrong, empty where nothing did."""
        expected = self.reference(points[0].target)
        self.clear()
        for place, point in enumerate(points):
            status, output = self.run(point.target, point)
            struck = (self.folder / "notes/struck").exists()
            if status == 0 and (struck or place == 0):  # a restart may be over before its point
                return f"the run came to its end: {output[-2000:]}"
        command = self.checkout.command(points[0].target, *self.options)
        done = subprocess.run(command, cwd=self.checkout.folder, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            return f"the restart failed: {(done.stdout + done.stderr)[-4000:]}"
        if self.checkout.hashes() != expected.hashes:
            return f"the restart made other bytes: {sorted(set(self.checkout.hashes().items()) ^ set(expected.hashes.items()))}"
        if self.names() != expected.names:
            return f"files are left over or missing: {sorted(self.names() ^ expected.names)}"
        return ""


def try_points(folder: Path, seed: int, numbers: Sequence[int], tell: bool) -> Counter[str]:
    """Try points one after the other in a checkout of their own; prints those that failed, or all, and counts survivors by victim."""
    bench, survived = Bench(folder), Counter()
    for number in numbers:
        points = kill_points(seed, number)
        wrong = bench.try_kills(points)
        survived[points[0].victim] += not wrong
        if wrong or tell:
            print(f"{number}: {'; then '.join(map(str, points))}: {wrong or 'survived'}", flush=True)
        if wrong:
            print(f"  again with: python tests/faults/faults.py --seed {seed} --number {number} --keep DIR", flush=True)
    return survived


def main() -> int:
    """Return 1 where a point was not survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="kill points (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first point (default: %(default)s)")
    parser.add_argument("--number", type=int, help="only this point")
    parser.add_argument("--processes", type=int, default=1, help="checkouts to try points in at the same time (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="with --number: work in this folder, which must not exist, and leave it")
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.count) if arguments.number is None else [arguments.number]
    began, shares = time.monotonic(), range(min(arguments.processes, len(numbers)))
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch, ProcessPoolExecutor(len(shares)) as pool:
        folders = [arguments.keep or Path(scratch, str(share)) for share in shares]
        tasks = [
            pool.submit(try_points, folders[share], arguments.seed, numbers[share :: len(shares)], arguments.number is not None)
            for share in shares
        ]
        survived = sum((task.result() for task in tasks), Counter())
    each = ", ".join(f"{victim} {survived[victim]}" for victim in VICTIMS)
    print(f"{len(numbers)} kill points tried, {survived.total()} survived ({each}) in {time.monotonic() - began:.0f} s")
    return 0 if survived.total() == len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
