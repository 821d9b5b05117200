"""What `schedlab manifest check` reads of other machines, for fuzz_readers.py: manifests, records, and results that it
compares.
"""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedlab.evaluation.manifest import Manifest

LEARN = {
    "promise": "learned",
    "configuration": {"learn.yaml": "2"},
    "inputs": {"in": "h1"},
    "seeds": [0],
    "environment": "e",
    "outputs": {"curve.parquet": "h2", "s/summary.parquet": "h3"},
    "rests_on": ["in"],
}
FIGURE = {
    "configuration": {"draw.yaml": "3"},
    "scenarios": ["a"],
    "policies": ["p"],
    "seeds": [0],
    "outputs": {"figure.svg": "h4"},
    "rests_on": ["in", "learn"],
}
MANIFEST = {
    "form": 2,
    "scale": "small",
    "seeds": {"s": 42},
    "studies": {"s": 1},
    "environment": "e",
    "environments": {
        "e": {"code": "c0de", "commit": "a" * 40, "version": "0.1", "python": "3.11.7", "packages": {"numpy": "2.4"}}
    },
    "steps": {
        "in": {"configuration": {"in.yaml": "1"}, "files": {"log.csv": "f1"}, "outputs": {"in.json": "h1"}},
        "learn": LEARN,
    },
    "figures": {"s/figure": FIGURE},
}
RESULT = {"model": [1.0, {"name": "x", "count": 3}], "front": [[0.5, 2.0], [1.5, 1.0]], "best": None}


def manifests() -> list[bytes]:
    """A manifest."""
    return [json.dumps(MANIFEST, indent=2).encode()]


def check_manifest(path: Path) -> None:
    """Compare a manifest with ours; the files of neither are at hand."""
    from schedlab.evaluation.manifest import read_manifest
    from schedlab.evaluation.manifest_differences import Side, differences
    from schedlab.evaluation.run_hashes import is_record

    if not is_record(path):
        differences(Side(_ours(), "here", None), Side(read_manifest(path), "there", None), tolerant=True)


@cache
def _ours() -> Manifest:
    from schedlab.config.schema import validate
    from schedlab.evaluation.manifest import Manifest

    return validate(Manifest, MANIFEST)


@cache
def _run() -> tempfile.TemporaryDirectory:
    """A folder with the summary that our manifest lists."""
    from schedlab.config.files import write_table
    from schedlab.evaluation import tables

    kinds = {"text": "x", "integer": 3, "number": 1.5}
    folder = tempfile.TemporaryDirectory(prefix="recorded-run-")
    rows = [{column.name: kinds[column.type] for column in tables.SUMMARY.columns}]
    write_table(Path(folder.name, "s/summary.parquet"), tables.build(tables.SUMMARY, rows))
    return folder


def records() -> list[bytes]:
    """The record of our run."""
    from schedlab.evaluation.run_hashes import record_of

    record = record_of(_ours(), Path(_run().name))
    return [json.dumps(record.model_dump(mode="json", exclude_none=True), indent=1).encode()]


def check_record(path: Path) -> None:
    """Hold our run to a record."""
    from schedlab.evaluation.run_hashes import compare, is_record, read_record

    if is_record(path):
        compare(_ours(), Path(_run().name), read_record(path))


def results() -> list[bytes]:
    """A result in JSON."""
    return [json.dumps(RESULT, indent=2).encode()]


def compare_json(path: Path) -> None:
    """Compare a result of another machine with ours, value by value."""
    compare(path, results()[0])


def compare(path: Path, ours: bytes) -> None:
    """Compare a result of another machine with our bytes, value by value."""
    from schedlab.evaluation.promises import LEARNED, disagreement

    here = path.with_stem("ours")
    if not here.exists():
        here.write_bytes(ours)
    disagreement(here, path, LEARNED)
