"""Differences between two manifests, and the most likely cause of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.runtime.parts import read_part
from schedlab.evaluation.manifest import EnvironmentEntry, FigureEntry, Manifest, StepEntry
from schedlab.evaluation.promises import EXACT, NOT_COMPARED, disagreement, leaves

Entry = StepEntry | FigureEntry
DRAWN = "drawn"  # pictures and captions: as fonts differ between machines, they agree if the tables that they show do


@dataclass(frozen=True)
class Side:
    """One of two manifests: its name in messages, and the folder to which its paths are relative (None: its files are
    not available).
    """

    manifest: Manifest
    called: str
    root: Path | None


@dataclass
class Differences:
    """The messages, and the numbers of compared files, of files that agree only within a tolerance, and of files
    without a promise.
    """

    lines: list[str] = field(default_factory=list)
    files: int = 0
    tolerated: int = 0
    not_compared: int = 0


def differences(one: Side, other: Side, *, tolerant: bool) -> Differences:
    """Compare two manifests. Each difference gives one sentence; causes come before their consequences.

    tolerant  compare files whose promise is weaker than the same bytes (schedlab.evaluation.promises) value by value if
              the files of both manifests are available. Steps with the same pinned processor instructions and the same
              C library must still have the same bytes
    """
    found = Differences()
    for section in (_environments, _seeds_and_studies, _configurations, _inputs):
        found.lines += section(one, other)
    _Outputs(one, other, tolerant, found).compare()
    return found


def _environments(one: Side, other: Side) -> Iterator[str]:
    """Yield differences of code, Python and packages: first between the manifests, then between steps made with other
    ones.
    """
    here, there = (side.manifest.environments.get(side.manifest.environment) for side in (one, other))
    if here and there and any(there.code == entry.accepted_for for entry in other.manifest.accepted):
        there = there.model_copy(update={"code": here.code})  # the steps below report code that was not accepted
    told = set()
    if here and there:
        told = _told(here, there)
        yield from _environment(here, there, one, other, "")
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, step, twin in _pairs(one.manifest, other.manifest):
        if step.environment and twin.environment and step.environment != twin.environment:
            pairs.setdefault((step.environment, twin.environment), []).append(name)
    for (first, second), names in sorted(pairs.items()):
        here, there = one.manifest.environments.get(first), other.manifest.environments.get(second)
        if here and there and not _told(here, there) <= told:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield from _environment(here, there, one, other, f" of {names[0]}{more}")


def _told(here: EnvironmentEntry, there: EnvironmentEntry) -> set[tuple[str, str]]:
    """Return the values of each environment that the lines of a comparison name."""
    unlike = {**_unlike(here.packages, there.packages), **_unlike(here.instructions, there.instructions)}
    whole = ((getattr(here, key), getattr(there, key)) for key in ("code", "python", "c_library"))
    return {*whole, *unlike.values()}


def _environment(here: EnvironmentEntry, there: EnvironmentEntry, one: Side, other: Side, of: str) -> Iterator[str]:
    if here.code != there.code:
        yield f"other code{of}: {_code(here)} {one.called}, {_code(there)} {other.called}"
    if here.python != there.python:
        yield f"other Python{of}: {here.python} {one.called}, {there.python} {other.called}"
    for name, (first, second) in _unlike(here.packages, there.packages).items():
        yield f"other package{of}: {name} {first} {one.called}, {second} {other.called}"
    if here.c_library != there.c_library:
        first, second = here.c_library or "not recorded", there.c_library or "not recorded"
        yield f"other library{of}: the C library, {first} {one.called}, {second} {other.called}"
    if pins := _unlike(here.instructions, there.instructions):
        words = (f"{name} {first} {one.called}, {second} {other.called}" for name, (first, second) in pins.items())
        yield f"other instructions{of}: {'; '.join(words)}"


def _unlike(here: Mapping[str, str], there: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = sorted({*here, *there})
    pairs = {name: (here.get(name, "none"), there.get(name, "none")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _code(entry: EnvironmentEntry) -> str:
    changed = ", changed since" if entry.modified else ""
    return f"{entry.version} {entry.code}" + (f" (commit {entry.commit[:12]}{changed})" if entry.commit else "")


def _seeds_and_studies(one: Side, other: Side) -> Iterator[str]:
    here, there = one.manifest, other.manifest
    if here.scale != there.scale:
        yield f"other scale: {here.scale} {one.called}, {there.scale} {other.called}"
    for study in sorted({*here.studies, *there.studies}):
        if study not in here.studies or study not in there.studies:
            yield f"other study: '{study}' is only {(one if study in here.studies else other).called}"
        elif here.studies[study] != there.studies[study]:
            yield (
                f"other version of the study's results: {study} {here.studies[study]} {one.called}, "
                f"{there.studies[study]} {other.called}"
            )
    for study in sorted(here.seeds.keys() & there.seeds.keys()):
        if here.seeds[study] != there.seeds[study]:
            yield (
                f"other seed: root seed of {study} {here.seeds[study]} {one.called}, {there.seeds[study]} "
                f"{other.called}"
            )
    for name in sorted(here.steps.keys() & there.steps.keys()):
        step, twin = here.steps[name], there.steps[name]
        if (
            step.seeds != twin.seeds and step.outputs and twin.outputs
        ):  # seeds of a missing step are not compared; its files are reported
            yield f"other seed: {name} has {list(step.seeds)} {one.called}, {list(twin.seeds)} {other.called}"


def _configurations(one: Side, other: Side) -> Iterator[str]:
    here, there = (dict(_each(side.manifest, "configuration")) for side in (one, other))
    for path in sorted({*here, *there}):
        if path not in here or path not in there:
            yield f"other configuration: {path} {_alone(one if path in here else other, one, other)}"
        elif here[path] != there[path]:
            yield f"other configuration: {path}{_first_key(path, one, other)}"


def _alone(where: Side, one: Side, other: Side) -> str:
    """Return the predicate for a file that only one side has: if that side is the present files, no manifest lists it
    yet.
    """
    return "was written after the figures" if where is other and _is_itself(one, other) else f"is only {where.called}"


def _is_itself(one: Side, other: Side) -> bool:
    """Return whether a manifest is compared with the present files in its own folder, as the other side, and not with
    another run.
    """
    return one.root is not None and one.root == other.root


def _first_key(path: str, one: Side, other: Side) -> str:
    """Return the first value that differs, if both files are available."""
    if not one.root or not other.root or _is_itself(one, other):
        return ""
    try:
        here, there = (dict(leaves(read_part(root / path))) for root in (one.root, other.root))
    except UserError:
        return ""
    for key in [*here, *there]:
        if here.get(key) != there.get(key):
            return f": {key} is {here.get(key, 'not set')} {one.called}, {there.get(key, 'not set')} {other.called}"
    return ""


def _inputs(one: Side, other: Side) -> Iterator[str]:
    """Yield differences of files from outside; files made by other steps are reported as outputs of those steps."""
    for name, step, twin in _pairs(one.manifest, other.manifest):
        for file in sorted({*step.files, *twin.files}):
            if step.files.get(file, "") != twin.files.get(file, ""):
                yield f"other input: {file}, read by {name}"


def stale_steps(manifest: Manifest, recorded: Manifest | None = None, root: Path = Path()) -> Iterator[str]:
    """Yield a sentence for each step and figure that was made from other files than the present ones, with the command
    that makes it again. root: the folder to which the manifest's paths are relative

    If a file differs from the one in `recorded`, or is missing, that is a separate difference. Nothing is then reported
    of steps and figures made from that file.
    """
    files, kept = _outputs(manifest), _outputs(recorded) if recorded else {}
    changed = {file for file, digest in kept.items() if files.get(file) != digest}
    gone = {digest for file, digest in kept.items() if file not in files}
    for name, made in _entries(manifest).items():
        if made.other_code:
            what = "was made by other code or packages than its frozen part names"
            yield f"other code: {name} {what}; {_again(made, manifest, root)}"
    for name, step in _entries(manifest).items():
        there = {
            digest
            for before in step.rests_on
            if before in manifest.steps
            for digest in manifest.steps[before].outputs.values()
        }
        for file, digest in step.inputs.items() if there else ():  # named by path, or by their names in the job
            if (
                file not in changed
                and digest not in gone
                and (files[file] != digest if file in files else digest not in there)
            ):
                what = f"was made from another '{file}' than lies there now"
                yield f"other input: {name} {what}; {_again(step, manifest, root)}"


def _again(made: Entry, manifest: Manifest, root: Path) -> str:
    """Return the command that makes a step or figure again. Snakemake makes it without being forced if a frozen part or
    an input is newer than an output, as after an edit, but not if results were copied.
    """
    before = (manifest.steps[step].outputs for step in made.rests_on if step in manifest.steps)
    read = _times(root, [*made.configuration, *(path for outputs in before for path in outputs)])
    written = _times(root, made.outputs)
    is_newer = not written or max(read, default=0) > min(written)
    return _command(manifest, "" if is_newer else next(iter(made.outputs)))


def _times(root: Path, paths: Iterable[str]) -> list[int]:
    """Return the times of last change of files (ns), without missing ones."""
    return [place.stat().st_mtime_ns for path in paths if (place := root / path).is_file()]


def _command(manifest: Manifest, path: str) -> str:
    """Return the command that makes outdated files again; it also forces the job of the output `path`, unless that is
    empty.
    """
    forced = f" --forcerun {_target(path)}" if path else ""
    return f"`snakemake --cores all --config scale={manifest.scale}{forced}` makes it again"


@dataclass
class _Outputs:
    """Compares the outputs of every step and figure, in the order of their dependence."""

    one: Side
    other: Side
    tolerant: bool
    found: Differences
    unlike: dict[str, str] = field(default_factory=dict)  # steps whose outputs differ -> the first such file

    def compare(self) -> None:
        for name, here, there in sorted(
            _pairs(self.one.manifest, self.other.manifest, alone=True), key=_depth(self.one, self.other)
        ):
            for path in sorted({*(here.outputs if here else ()), *(there.outputs if there else ())}):
                self.found.files += 1
                first, second = (entry.outputs.get(path) if entry else None for entry in (here, there))
                if first != second:
                    self._tell(path, name, here, there, missing=first is None or second is None)

    def _tell(self, path: str, name: str, here: Entry | None, there: Entry | None, *, missing: bool) -> None:
        if missing or not here or not there:
            where = self.one if path in (here.outputs if here else ()) else self.other
            self.found.lines.append(self._alone(path, name, where, whole=not here or not there))
            self.unlike.setdefault(name, path)
            return
        tolerant = self._is_tolerant(here, there)
        if tolerant and isinstance(here, StepEntry) and Path(path).name in NOT_COMPARED:
            self.found.not_compared += 1
            return
        how = self._agreement(path, here) if tolerant else ""
        if how is None:
            self.found.tolerated += 1
            return
        self.found.lines.append(f"changed file: {path}{f' ({how})' if how else ''}: {self._cause(path, here, there)}")
        self.unlike.setdefault(name, path)

    def _is_tolerant(self, here: Entry, there: Entry) -> bool:
        """Return whether the files of two entries may have different bytes; those of steps with the same pinned
        environment may not.
        """
        environments = (self._environment(side, entry) for side, entry in ((self.one, here), (self.other, there)))
        first, second = (environment.held() if environment else {} for environment in environments)
        return self.tolerant and (not isinstance(here, StepEntry) or not first or first != second)

    def _agreement(self, path: str, entry: Entry) -> str | None:
        """Return None if two files with different bytes agree as promised; otherwise a remark for the message."""
        kind = entry.promise if isinstance(entry, StepEntry) else DRAWN
        if kind == EXACT:
            return ""
        if kind == DRAWN:
            return None if not any(step in self.unlike for step in entry.rests_on) else ""
        if not self.one.root or not self.other.root:
            return f"{kind}, may differ in its last digits; bring the files of both manifests to compare values"
        return disagreement(self.one.root / path, self.other.root / path, kind) or None

    def _alone(self, path: str, name: str, where: Side, *, whole: bool) -> str:
        """Return the sentence for a file that only one side has. The workflow makes a deleted file again only if it is
        requested.
        """
        run = f"snakemake --cores all --config scale={self.one.manifest.scale}"
        if not _is_itself(self.one, self.other):
            return f"missing file: {path} is only {where.called}{f'; {name} is only {where.called}' if whole else ''}"
        if where is self.other:
            return f"new file: {path} was made after the figures; `{run}` brings it in"
        again = f"it was deleted, or its job has not ended; `{run} -- {_target(path)}` makes it again"
        return f"missing file: {path} is only {where.called}; {again}"

    def _cause(self, path: str, here: Entry, there: Entry) -> str:
        """Return the most likely cause of different bytes, from the contents of both entries."""
        for part in here.configuration:
            if here.configuration[part] != there.configuration.get(part):
                return f"made from another configuration, {part}"
        if isinstance(here, StepEntry) and isinstance(there, StepEntry) and here.seeds != there.seeds:
            return "made with other seeds"
        before = next((self.unlike[step] for step in here.rests_on if step in self.unlike), "")
        if before:
            return f"made from files that differ, first of all {before}"
        if here.files != there.files or here.inputs != there.inputs:
            return "made from other inputs"
        return self._cause_outside(path, here, there)

    def _cause_outside(self, path: str, here: Entry, there: Entry) -> str:
        first, second = (self._environment(side, entry) for side, entry in ((self.one, here), (self.other, there)))
        if first and second and first.code != second.code:
            return "made by other code"
        if first and second and (packages := _unlike(first.packages, second.packages)):
            return f"made with other packages, {', '.join(packages)}"
        if first and second and first.instructions != second.instructions:
            return "made with other instructions of the processor"
        if first and second and first.python != second.python:
            return "made with another Python"
        if _is_itself(self.one, self.other):
            return f"edited or damaged after it was made; {_command(self.one.manifest, path)}"
        return "nothing that is recorded differs: edited, damaged, or another kind of processor"

    def _environment(self, side: Side, entry: Entry) -> EnvironmentEntry | None:
        name = entry.environment or side.manifest.environment
        return side.manifest.environments.get(name)


def _target(path: str) -> str:
    """Return the output of a job that contains a file: a folder of details as a whole, or the file itself."""
    parts = Path(path).parts
    folder = next(
        (depth for depth, part in enumerate(parts, 1) if part.endswith("details") and depth < len(parts)), len(parts)
    )
    return "/".join(parts[:folder])


def _depth(one: Side, other: Side) -> Callable[[tuple[str, Any]], tuple[int, str]]:
    """Return the sorting key of steps and figures: first the steps without dependence, last the figures, then by
    name.
    """
    steps = {**other.manifest.steps, **one.manifest.steps}
    known: dict[str, int] = {}

    def depth(name: str, above: frozenset[str] = frozenset()) -> int:
        if name not in known:
            before = [step for step in steps[name].rests_on if step in steps and step not in above]
            known[name] = 1 + max((depth(step, above | {name}) for step in before), default=0)
        return known[name]

    return lambda item: (depth(item[0]) if item[0] in steps else len(steps) + 1, item[0])


def _outputs(manifest: Manifest) -> dict[str, str]:
    """Return the outputs of all steps: file -> SHA-256."""
    return {file: digest for step in manifest.steps.values() for file, digest in step.outputs.items()}


def _entries(manifest: Manifest) -> dict[str, Entry]:
    return {**manifest.steps, **manifest.figures}


def _pairs(here: Manifest, there: Manifest, *, alone: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yield (name, entry here, entry there) of entries in both manifests; with `alone` also of entries in one of them,
    with None for the other.
    """
    first, second = _entries(here), _entries(there)
    for name in sorted({*first, *second}) if alone else sorted(first.keys() & second.keys()):
        yield name, first.get(name), second.get(name)


def _each(manifest: Manifest, key: str) -> Iterable[tuple[str, str]]:
    for entry in _entries(manifest).values():
        values: Mapping[str, str] = getattr(entry, key)
        yield from values.items()
