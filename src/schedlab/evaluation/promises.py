"""How closely results from another machine agree with ours: a table of promises, and the comparison of two files under
a promise.

On one machine, the same code, packages, configuration and seeds always give the same bytes. So do processors on which
libraries are restricted to the same instructions (schedlab.config.runtime.instructions), with the same C library. On
other machines, linear algebra (BLAS, PyTorch's kernels) may add numbers in a different order, so trained or fitted
values may differ in the last digits, and so may values computed from them. Values that are simulated, drawn from a seed
or counted may not. A search diverges from the first digit that differs: the parameters and curves of learned policies
are therefore not compared, only their scores.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import read_table
from schedlab.config.readers import parse_json, read_array, read_json, read_members

if TYPE_CHECKING:
    import numpy as np

EXACT, FITTED, LEARNED = "exact", "fitted", "learned"


@dataclass(frozen=True)
class Promise:
    """A promise for one kind of result on another machine.

    relative  largest difference of two numbers over the larger one; 0: the same bytes
    absolute  difference that is always accepted, for numbers near 0
    made_by   the parts of the configuration whose products are of this kind
    meaning   description for the documentation
    """

    relative: float
    absolute: float
    made_by: tuple[str, ...]
    meaning: str


PROMISES: Mapping[
    str, Promise
] = {  # the weakest last; a result that depends on several kinds has the weakest of their promises
    EXACT: Promise(
        0.0,
        0.0,
        ("check_data", "generate_platform", "trim_workload", "make_trace", "trace_graphs", "ingest_logs"),
        "platforms, workloads, traces, graphs, logs; scores of rules that are simulated on them; whatever is named in "
        "no other line",
    ),
    FITTED: Promise(
        1e-6,
        1e-9,
        ("fit_performance", "solve_oracle"),
        "models fitted to measurements, and plans that are searched on them; scores of rules on such models",
    ),
    LEARNED: Promise(
        1e-3,
        1e-6,
        ("train_trunk", "simulate_adaptation", "tabulate", "learn"),
        "trained networks and what is simulated with them; scores of learned policies, and tables that hold some",
    ),
}
NOT_COMPARED = ("policy.zip", "curve.parquet", "curves.parquet")  # parameters and curves of learned policies
_KIND_OF_PART = {part: kind for kind, promise in PROMISES.items() for part in promise.made_by}


def of_part(part: str) -> str:
    """Return the kind of result that a part of the configuration makes; `exact` if the table does not list the part."""
    return _KIND_OF_PART.get(part, EXACT)


def weakest(kinds: Iterable[str]) -> str:
    """Return the kind with the weakest promise of those given; `exact` if none is given."""
    order = list(PROMISES)
    return max(kinds, key=lambda kind: order.index(kind) if kind in PROMISES else 0, default=EXACT)


def disagreement(here: Path, there: Path, kind: str) -> str:
    """Return a description of the largest disagreement of two files with different bytes under a promise; empty if they
    agree.

    Tables (Parquet), JSON, and archives of arrays (.npz, checkpoints) are compared value by value, all other files by
    their bytes. Texts, integers, shapes and places of missing values must be equal. Raises UserError for a file that
    cannot be read.
    """
    promise = PROMISES[kind]
    read = _READERS.get(here.suffix)
    if promise.relative == 0 or read is None:
        return "other bytes"
    try:
        return unlike(read(here), read(there), promise)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"cannot be compared: {error}", where=str(there)) from None


def unlike(here: Mapping[str, Any], there: Mapping[str, Any], promise: Promise) -> str:
    """Return a description of the largest disagreement of named arrays under a promise; empty if they agree."""
    import numpy as np

    if here.keys() != there.keys():
        return f"'{min(here.keys() ^ there.keys())}' is in one of them only"
    worst, place = 0.0, ""
    for name in here:
        one, other = np.asarray(here[name]), np.asarray(there[name])
        if one.shape != other.shape:
            return f"'{name}' has {' x '.join(map(str, one.shape))} and {' x '.join(map(str, other.shape))} entries"
        if one.dtype.kind != "f" or other.dtype.kind != "f":
            if not np.array_equal(one, other):
                return f"'{name}' has other values"
            continue
        found = _excess(one, other, promise)
        if not math.isfinite(found):
            return f"'{name}' lacks other values"
        if found > worst:
            worst, place = found, name
    return (
        f"'{place}' differs by {worst:.1e} of its value, {promise.relative:g} is allowed"
        if worst > promise.relative
        else ""
    )


def _excess(one: np.ndarray, other: np.ndarray, promise: Promise) -> float:
    """Return the largest relative difference of two arrays of floats, ignoring differences within `promise.absolute`;
    infinite if their missing or infinite values are not the same.
    """
    import numpy as np

    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return math.inf
    known = np.isfinite(one)
    if not np.array_equal(one[~known], other[~known], equal_nan=True):
        return math.inf
    first, second = one[known].astype("float64"), other[known].astype("float64")
    apart = np.abs(first - second)
    far = apart > promise.absolute
    return float(np.max(apart[far] / np.maximum(np.abs(first), np.abs(second))[far], initial=0.0))


def _table(path: Path) -> dict[str, Any]:
    return {name: column.to_numpy() for name, column in read_table(path).items()}


def _json(path: Path) -> dict[str, Any]:
    return dict(leaves(read_json(path, "a result in JSON")))


def leaves(value: Any, place: str = "") -> Iterable[tuple[str, Any]]:
    """Yield (place, value) for every value within lists and mappings: floats unchanged, other values as text."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from leaves(entry, f"{place}[{number}]")
    else:
        yield place, value if isinstance(value, float) else repr(value)


def _archive(path: Path) -> dict[str, Any]:
    """Return the arrays of an archive by name, the values of its JSON members by their places, and other members as
    bytes.
    """
    found: dict[str, Any] = {}
    for name, data in read_members(path, "a zip of arrays", "make it again").items():
        if name.endswith(".npy"):
            found[name] = read_array(data)
        elif name.endswith(".json"):
            found |= {
                f"{name}: {place}": value
                for place, value in leaves(parse_json(data.decode(), f"{path}: {name}", "JSON"))
            }
        else:
            found[name] = data
    return found


_READERS = {".parquet": _table, ".json": _json, ".npz": _archive, ".zip": _archive}
