"""Kill runs of the toy study at drawn moments, and see that one plain restart ends as if nothing had happened; `make
faults`.

python tests/faults/faults.py --count 500               so many kill points
python tests/faults/faults.py --number 17 --keep DIR    one of them again; DIR must not exist, and holds the checkout
    afterwards
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests/workflow"))

from checkouts import Checkout, copy_repository, one_seed_checkout  # noqa: E402

VICTIMS = ("main", "worker", "training", "all")
HOOK = Path(__file__).resolve().parent / "hook"
WITHOUT_FIGURES = "results/small/toy/summary.parquet"
MADE = ("results", "plots", ".snakemake", ".schedlab")
PATIENCE = 1800  # seconds that a run may take
RESTARTS, KEPT = "restarts killed", "outputs kept"  # what is counted beside the points


@dataclass(frozen=True)
class KillPoint:
    """Where one run or restart is killed: at which share of its own file events that count for the victim; a file may
    be opened first.
    """

    victim: str
    share: float
    opened: bool
    target: str

    def __str__(self) -> str:
        return (
            f"{self.victim} at {self.share:.1%} of the file events{', a file opened' if self.opened else ''}, of "
            f"{self.target}"
        )


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


def one_seed(folder: Path) -> Checkout:
    """The toy study with a job of each rule, two of them at once."""
    return one_seed_checkout(REPOSITORY, folder)


@dataclass(frozen=True)
class Undisturbed:
    """What a run makes that nobody disturbs.

    hashes  of its results                                names  of all its files
    events  how many file events it has, by kind          jobs   the outputs of each job
    """

    hashes: Mapping[str, str]
    names: frozenset[str]
    events: Mapping[str, int]
    jobs: Sequence[Sequence[str]]


def booked(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each record of one of Snakemake's books: the name that it is of, in base64, and its file (a long name has
    folders: '@...').
    """
    for file in folder.rglob("*"):
        if file.is_file():
            yield "".join(part.removeprefix("@") for part in file.relative_to(folder).parts), file


@dataclass
class Bench:
    """A checkout in which run after run is killed and started again; `folder` holds it beside the notes of the hook.

    make     what makes the checkout in a folder
    options  arguments of every run beside its target
    tally    what was counted so far: restarts that were killed as well, outputs of ended jobs that a restart left as
             they were
    """

    folder: Path
    make: Callable[[Path], Checkout] = one_seed
    options: tuple[str, ...] = ()
    checkout: Checkout = field(init=False)
    undisturbed: dict[str, Undisturbed] = field(default_factory=dict)
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.checkout = self.make(self.folder / "checkout")

    def reference(self, target: str, cores: int = 2) -> Undisturbed:
        """Return what an undisturbed run makes of a target; it runs on so many cores where it has not run yet."""
        if target not in self.undisturbed:
            self.clear()
            status, output = self.run(target, cores=cores)
            assert status == 0, output[-4000:]
            self.undisturbed[target] = Undisturbed(self.checkout.hashes(), self.names(), self.events(), self.jobs())
        return self.undisturbed[target]

    def events(self) -> dict[str, int]:
        """Return how many file events the last run had, by kind."""
        files = {kind: self.folder / "notes" / kind for kind in ("all", "worker", "training")}
        return {kind: file.stat().st_size if file.exists() else 0 for kind, file in files.items()}

    def jobs(self) -> list[list[str]]:
        """Return the outputs of each job of a run that has come to its end, as Snakemake has booked them."""
        found = defaultdict(list)
        for name, file in booked(self.checkout.folder / ".snakemake/metadata"):
            record = json.loads(file.read_text())
            found[record["rule"], record["job_hash"]].append(urlsafe_b64decode(name).decode())
        return sorted(sorted(outputs) for outputs in found.values())

    def ended(self, target: str) -> dict[str, tuple[int, int] | None]:
        """Return each output of the jobs that have ended (all there, none that Snakemake has marked as incomplete), and
        what it is now.
        """
        marked = {name for name, _ in booked(self.checkout.folder / ".snakemake/incomplete")}
        whole = [
            outputs
            for outputs in self.undisturbed[target].jobs
            if all(self.state(name) and urlsafe_b64encode(name.encode()).decode() not in marked for name in outputs)
        ]
        return {name: self.state(name) for outputs in whole for name in outputs}

    def state(self, name: str) -> tuple[int, int] | None:
        """Return what changes where a file is written again, even with the same bytes: its number and time; None: there
        is none.
        """
        file = self.checkout.folder / name
        return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None

    def clear(self) -> None:
        """Take away all that runs made."""
        subprocess.run(["rm", "-rf", *(str(self.checkout.folder / name) for name in MADE)], check=True)

    def names(self) -> frozenset[str]:
        """Return the names of all files that lie there now."""
        return self.names_of(self.checkout)

    @staticmethod
    def names_of(checkout: Checkout) -> frozenset[str]:
        """Return every file and folder that runs made, but for those that Snakemake names by time or keeps for jobs
        that it runs.
        """
        found = {
            path.relative_to(checkout.folder).as_posix()
            for name in MADE
            for path in (checkout.folder / name).rglob("*")
        }
        return frozenset(name for name in found if not re.match(r"\.snakemake/(log|scripts|iocache)/", name))

    def run(
        self, target: str, point: KillPoint | None = None, cores: int = 2, events: Mapping[str, int] | None = None
    ) -> tuple[int, str]:
        """Run Snakemake with the hook, which counts and kills at the point; returns the status, negative for a signal,
        and the output.

        The point is a share of `events`, by default of those of the undisturbed run.
        """
        notes = self.folder / "notes"
        subprocess.run(["rm", "-rf", str(notes)], check=True)
        notes.mkdir()
        asked = {"FAULT_FOLDER": str(self.checkout.folder), "FAULT_NOTES": str(notes)}
        if point is not None:
            counted = (events or self.undisturbed[target].events)["all" if point.victim == "main" else point.victim]
            asked |= {
                "FAULT_VICTIM": point.victim,
                "FAULT_EVENT": str(1 + int(point.share * counted)),
                "FAULT_OPENED": str(int(point.opened)),
            }
        environment = {
            **os.environ,
            **asked,
            "PYTHONPATH": os.pathsep.join([str(HOOK), os.environ.get("PYTHONPATH", "")]),
        }
        command = self.checkout.command(target, *self.options, cores=cores)
        with (self.folder / "output.txt").open("w+") as output:
            started = subprocess.Popen(
                command,
                cwd=self.checkout.folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = started.wait(PATIENCE)
            finally:
                if started.poll() is None:
                    self.checkout.kill(started)
            output.seek(0)
            return status, output.read()

    def try_restart(self, target: str) -> tuple[int, str]:
        """Run what was killed to its end, for its events, and put everything back as it lay before; returns the status
        and the output.
        """
        self.wait_for_jobs()
        kept = self.folder / "kept"
        kept.mkdir()
        for name in MADE:
            if (self.checkout.folder / name).exists():
                subprocess.run(["cp", "-a", str(self.checkout.folder / name), str(kept)], check=True)
        ended = self.run(target)
        self.clear()
        for folder in kept.iterdir():
            folder.rename(self.checkout.folder / folder.name)
        kept.rmdir()
        return ended

    def wait_for_jobs(self) -> None:
        """Wait until no process works in the checkout: the jobs of a killed run end with it, but a moment later."""
        for _ in range(1200):
            if not any(self.works_here(process) for process in Path("/proc").glob("[0-9]*")):
                return
            time.sleep(0.05)
        raise TimeoutError(f"a process works in {self.checkout.folder} a minute after its run was killed")

    def works_here(self, process: Path) -> bool:
        """Whether a process (its folder in /proc) works in the checkout."""
        try:
            return (process / "cwd").readlink() == self.checkout.folder.resolve()
        except OSError:  # it has ended, or is somebody else's
            return False

    def try_kills(self, points: Sequence[KillPoint]) -> str:
        """Kill a run and its restarts, start it again as it was started, and compare; returns what went wrong, empty
        where nothing did.
        """
        target = points[0].target
        expected = self.reference(target)
        self.clear()
        for place, point in enumerate(points):
            if place:
                status, output = self.try_restart(target)
                if status:
                    return f"the restart failed: {output[-4000:]}"
            status, output = self.run(target, point, events=self.events() if place else None)
            struck = (self.folder / "notes/struck").exists()
            if struck != (status != 0) or not (
                struck or place
            ):  # a restart may have fewer events than it had in the trial, or none
                return f"the run was {'' if struck else 'not '}killed and ended with status {status}: {output[-2000:]}"
            self.tally[RESTARTS] += struck and place > 0
        ended = self.ended(target)
        command = self.checkout.command(target, *self.options)
        done = subprocess.run(command, cwd=self.checkout.folder, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            return f"the restart failed: {(done.stdout + done.stderr)[-4000:]}"
        if again := [name for name, state in ended.items() if self.state(name) != state]:
            return f"the restart made again what ended jobs had made: {again}"
        if self.checkout.hashes() != expected.hashes:
            return (
                "the restart made other bytes: "
                f"{sorted(set(self.checkout.hashes().items()) ^ set(expected.hashes.items()))}"
            )
        if self.names() != expected.names:
            return f"files are left over or missing: {sorted(self.names() ^ expected.names)}"
        self.tally[KEPT] += len(ended)
        return ""


def try_points(folder: Path, seed: int, numbers: Sequence[int], tell: bool) -> Counter[str]:
    """Try points one after the other in a checkout of their own; prints those that failed, or all.

    Returns the survivors by victim, and the bench's tally.
    """
    bench, survived = Bench(folder), Counter()
    for number in numbers:
        points = kill_points(seed, number)
        wrong = bench.try_kills(points)
        survived[points[0].victim] += not wrong
        if wrong or tell:
            print(f"{number}: {'; then '.join(map(str, points))}: {wrong or 'survived'}", flush=True)
        if wrong:
            print(f"  again with: python tests/faults/faults.py --seed {seed} --number {number} --keep DIR", flush=True)
    return survived + bench.tally


def main() -> int:
    """Return 1 where a point was not survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="kill points (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first point (default: %(default)s)")
    parser.add_argument("--number", type=int, help="only this point")
    parser.add_argument(
        "--processes", type=int, default=1, help="checkouts to try points in at the same time (default: %(default)s)"
    )
    parser.add_argument(
        "--keep", type=Path, help="with --number: work in this folder, which must not exist, and leave it"
    )
    arguments = parser.parse_args()
    numbers = (
        range(arguments.first, arguments.first + arguments.count) if arguments.number is None else [arguments.number]
    )
    began, shares = time.monotonic(), range(min(arguments.processes, len(numbers)))
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch, ProcessPoolExecutor(len(shares)) as pool:
        folders = [arguments.keep or Path(scratch, str(share)) for share in shares]
        tasks = [
            pool.submit(
                try_points, folders[share], arguments.seed, numbers[share :: len(shares)], arguments.number is not None
            )
            for share in shares
        ]
        counted = sum((task.result() for task in tasks), Counter())
    each, survived = (
        ", ".join(f"{victim} {counted[victim]}" for victim in VICTIMS),
        sum(counted[victim] for victim in VICTIMS),
    )
    print(f"{len(numbers)} kill points tried, {survived} survived ({each}) in {time.monotonic() - began:.0f} s")
    print(
        f"Restarts killed as well: {counted[RESTARTS]}. Outputs of ended jobs that restarts left as they were: "
        f"{counted[KEPT]}"
    )
    return 0 if survived == len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
