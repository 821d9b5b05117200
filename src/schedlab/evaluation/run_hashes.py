"""The record of a run: docs/results/<scale>.json, with which later runs are compared; small enough for the repository.

It lists every file of a manifest with its promise for other machines (schedlab.evaluation.promises). It contains the
hashes of files that promise the same bytes, the values of summaries with a weaker promise, and the ratios of headlines,
whose bytes change with the code that they name. Of all other files it records only that they exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.files import read_table
from schedlab.config.readers import read_json
from schedlab.config.schema import Settings, setting, validate
from schedlab.evaluation.manifest import Manifest
from schedlab.evaluation.manifest_differences import DRAWN
from schedlab.evaluation.promises import EXACT, PROMISES, unlike
from schedlab.evaluation.tables import HEADLINE, SUMMARY

BY_VALUE = {"summary.parquet": (SUMMARY, "value"), "headline.parquet": (HEADLINE, "ratio")}
NAMES_CODE = "headline.parquet"
EXPECTED = "a record as `schedlab manifest record` writes it"


class RecordedFile(Settings):
    """One file of a run."""

    promise: str = setting(doc="promised agreement: exact, fitted or learned; drawn: pictures and captions")
    sha256: str | None = setting(
        None,
        doc="SHA-256 of a file with the promise exact; with restricted processor instructions, of all "
        "files except headlines and drawings",
    )


class Record(Settings):
    """The record of a run."""

    record: int = setting(1, doc="version of this file's format", ge=1, le=1)
    scale: str = setting(doc="scale of the results")
    held: dict[str, str] = setting(
        {}, doc="environment variables under which all files except drawings have the same bytes on another processor"
    )
    files: dict[str, RecordedFile] = setting(doc="path -> promise and hash of the file")
    summaries: dict[str, dict[str, float]] = setting(doc="path of a summary or headline -> values of each row")


@dataclass
class Compared:
    """The messages, and the numbers of files with the same bytes, of files whose values agree, and of files that only
    have to exist in both.
    """

    lines: list[str] = field(default_factory=list)
    same: int = 0
    by_value: int = 0
    present: int = 0


def record_of(manifest: Manifest, root: Path) -> Record:
    """Return the record of the files that a manifest lists. `root`: the folder to which its paths are relative."""
    held = _held(manifest)
    files = {
        path: RecordedFile(promise=kind, sha256=digest if _keeps_bytes(path, kind, held) else None)
        for path, kind, digest in _files(manifest)
    }
    by_value = [
        path
        for path, file in files.items()
        if Path(path).name in BY_VALUE and file.promise in PROMISES and (file.promise != EXACT or not file.sha256)
    ]
    summaries = {path: _values(root / path) for path in by_value}
    return Record(scale=manifest.scale, held=held, files=files, summaries=summaries)


def read_record(path: Path | str) -> Record:
    """Read a record. Raises UserError(s) if the file is not a record."""
    values = read_json(path, EXPECTED)
    if not isinstance(values, dict) or "record" not in values:
        raise UserError("is no record", where=str(path), expected=EXPECTED)
    return validate(Record, values, lambda keys: f"{path}: {'.'.join(map(str, keys))}")


def is_record(path: Path | str) -> bool:
    """Return whether a file is a record and not a manifest."""
    if not Path(path).is_file():
        return False
    values = read_json(path, "a manifest or a record")
    return isinstance(values, dict) and "record" in values


def compare(manifest: Manifest, root: Path, recorded: Record) -> Compared:
    """Compare the files of a manifest with a record by hash, by value or by existence, as promised for each."""
    found = Compared()
    if manifest.scale != recorded.scale:
        found.lines.append(f"other scale: {manifest.scale} here, {recorded.scale} recorded")
        return found
    alike = recorded.held and recorded.held == _held(manifest)
    now = {path: (kind, digest) for path, kind, digest in _files(manifest)}
    for path in sorted({*now, *recorded.files}):
        if path not in now or path not in recorded.files:
            new = f"new file: {path} was not there when the record was made"
            found.lines.append(new if path in now else f"missing file: {path} is only recorded")
            continue
        (kind, digest), expected = now[path], recorded.files[path]
        if kind != expected.promise:
            found.lines.append(f"other promise: {path} is '{kind}' here, '{expected.promise}' recorded")
        elif _keeps_bytes(path, kind, alike and expected.sha256) and digest != expected.sha256:
            where = "on every machine" if kind == EXACT else "where libraries are held to the same instructions"
            found.lines.append(f"changed file: {path}: other bytes than recorded, which it promises {where}")
        elif digest == expected.sha256:
            found.same += 1
        elif path not in recorded.summaries:
            found.present += 1
        elif how := unlike(_values(root / path), recorded.summaries[path], PROMISES[kind]):
            found.lines.append(f"changed file: {path} ({how})")
        else:
            found.by_value += 1
    return found


def _held(manifest: Manifest) -> dict[str, str]:
    environment = manifest.environments.get(manifest.environment)
    return environment.held() if environment else {}


def _files(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield path, promise and hash of every file that a manifest lists."""
    steps = [(step.promise, step.outputs) for step in manifest.steps.values()]
    listed = [*steps, *((DRAWN, figure.outputs) for figure in manifest.figures.values())]
    yield from sorted((path, kind, digest) for kind, outputs in listed for path, digest in outputs.items())


def _keeps_bytes(path: str, kind: str, held: object) -> bool:
    """Return whether a file has the same bytes on every machine; `held`: libraries are restricted to the same
    instructions.
    """
    return Path(path).name != NAMES_CODE and (kind == EXACT or (bool(held) and kind != DRAWN))


def _values(path: Path) -> dict[str, float]:
    """Return the values of a table by its key, such as scenario/policy/mode/split/metric, without missing ones. Nine
    digits are kept, more than any promise counts except that of the same bytes.
    """
    kind, column = BY_VALUE[path.name]
    table = read_table(path)
    rows = zip(*(table[name] for name in kind.key), table[column], strict=True)
    return {"/".join(key): float(f"{value:.9g}") for *key, value in rows if value == value}
