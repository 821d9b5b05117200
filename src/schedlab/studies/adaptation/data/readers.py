"""Readers of the public image files: idx (plain or gzip), CIFAR binary batches, CIFAR Python batches, the digits table.

Every reader takes a path, gives `Samples`, trusts nothing in the file, and raises UserError (never executes, never
allocates what a header merely claims) where the file is not what it should be.

Sources: Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits" (idx); A. Krizhevsky,
"Learning Multiple Layers of Features from Tiny Images", 2009 (CIFAR); E. Alpaydin, C. Kaynak, "Optical Recognition of
Handwritten Digits", UCI, 1998 (digits, as scikit-learn bundles it).
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import pickletools
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedlab.config.errors import UserError

LARGEST_FILE = 1 << 28  # bytes, before and after decompression; the largest public file has 155 MB
CIFAR_SHAPE = (3, 32, 32)
_DOWNLOAD = "download the file again"


class Samples(NamedTuple):
    """Raw pictures and their classes: images (n, channels, height, width) uint8, labels (n,) int64."""

    images: np.ndarray
    labels: np.ndarray


def read_bytes(path: Path) -> bytes:
    """Return a file's content, decompressed where it is gzip whatever its name says. Raises UserError."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            what = "the file is larger than any data set read here"
            raise UserError(what, where=str(path), expected=f"at most {LARGEST_FILE} bytes")
        with path.open("rb") as file:
            if file.read(2) != b"\x1f\x8b":
                file.seek(0)
                return file.read()
        with gzip.open(path) as file:
            data = file.read(LARGEST_FILE + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _broken(path, f"the gzip file is truncated or damaged ({error})", "a whole gzip file") from None
    except OSError as error:
        expected = "a readable file"
        raise UserError(f"cannot be read ({error.strerror or error})", where=str(path), expected=expected) from None
    if len(data) > LARGEST_FILE:
        raise _broken(path, "the file unpacks to more than any data set read here", f"at most {LARGEST_FILE} bytes")
    return data


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Return an idx file of unsigned bytes as an array of `dimensions` axes. Raises UserError."""
    data = read_bytes(path)
    magic, header = struct.pack(">I", 0x800 | dimensions), 4 + 4 * dimensions
    if data[:4] != magic:
        raise _broken(
            path, f"the file starts with {data[:4].hex() or 'nothing'}", f"{magic.hex()}: idx, bytes, {dimensions} axes"
        )
    if len(data) < header:
        raise _broken(path, "the file ends within its header", f"{header} bytes of header")
    shape = struct.unpack_from(f">{dimensions}I", data, 4)
    if len(data) - header != math.prod(shape):
        size = " x ".join(str(axis) for axis in shape)
        raise _broken(
            path, f"the file holds {len(data) - header} values", f"{size} = {math.prod(shape)} as its header says"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def read_idx_pair(images: Path, labels: Path, classes: int) -> Samples:
    """Return pictures (n, 1, rows, columns) and labels of two idx files. Raises UserError."""
    pictures, numbers = read_idx(images, 3), read_idx(labels, 1)
    if not pictures.size:
        raise _broken(images, "the file holds no picture", "at least one")
    if len(pictures) != len(numbers):
        raise _broken(
            labels,
            f"the file holds {len(numbers)} labels",
            f"one for each of the {len(pictures)} pictures of {images.name}",
        )
    return Samples(pictures[:, None], _checked_labels(numbers, classes, labels))


def read_cifar_binary(path: Path, classes: int, label_bytes: int = 1) -> Samples:
    """Return a CIFAR binary batch: records of `label_bytes` labels (the last one counts) and 3072 bytes of picture.

    CIFAR-10 has one label byte, CIFAR-100 two (coarse, fine). Raises UserError.
    """
    data, record = read_bytes(path), label_bytes + math.prod(CIFAR_SHAPE)
    if not data or len(data) % record:
        raise _broken(path, f"the file has {len(data)} bytes", f"a multiple of {record}, the size of one record")
    rows = np.frombuffer(data, np.uint8).reshape(-1, record)
    labels = _checked_labels(rows[:, label_bytes - 1], classes, path)
    return Samples(rows[:, label_bytes:].reshape(-1, *CIFAR_SHAPE), labels)


def read_cifar_pickle(path: Path, classes: int, label_key: str = "labels") -> Samples:
    """Return a CIFAR Python batch: a pickled dictionary with `data` (n, 3072) uint8 and the list `label_key`.

    The pickle is taken as data: nothing in it is imported or called, see `restricted_unpickle`. Raises UserError.
    """
    batch = restricted_unpickle(read_bytes(path), path)
    if not isinstance(batch, dict):
        raise _broken(path, f"the pickle holds a {type(batch).__name__}", "a dictionary")
    batch = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in batch.items()}
    for key in ("data", label_key):
        if key not in batch:
            raise _broken(path, f"the dictionary has no '{key}'", f"'data' and '{label_key}'")
    images = _as_array(batch["data"], path)
    if images.dtype != np.uint8 or images.ndim != 2 or images.shape[1] != math.prod(CIFAR_SHAPE) or not len(images):
        raise _broken(path, f"'data' is {images.dtype} of shape {images.shape}", "uint8 of shape (n, 3072)")
    labels = batch[label_key]
    if not isinstance(labels, list) or any(type(label) is not int for label in labels) or len(labels) != len(images):
        raise _broken(path, f"'{label_key}' is not a list of {len(images)} integers", "one label for each picture")
    return Samples(images.reshape(-1, *CIFAR_SHAPE), _checked_labels(labels, classes, path))


def read_digits(path: Path) -> Samples:
    """Return the digits table (one line a picture: 64 grey values 0 to 16, then the class). Raises UserError."""
    data = read_bytes(path)
    if not data.strip():
        raise _broken(path, "the table is empty", "lines of 65 numbers")
    try:
        table = np.loadtxt(io.StringIO(data.decode("ascii")), delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        raise _broken(path, f"the table cannot be read ({error})", "lines of 65 numbers") from None
    if table.shape[1] != 65:
        raise _broken(path, f"the table has {len(table)} lines of {table.shape[1]} numbers", "lines of 65 numbers")
    if not np.array_equal(table, table.round()) or table.min() < 0 or table.max() > 16:
        raise _broken(path, "the table holds other values than grey values and classes", "whole numbers from 0 to 16")
    return Samples(
        table[:, :64].astype(np.uint8).reshape(-1, 1, 8, 8), _checked_labels(table[:, 64].astype(np.int64), 10, path)
    )


# The opcodes that pickled dictionaries, lists, numbers, strings and numpy arrays are made of, protocols 2 to 4.
_OPCODE_NAMES = """
    PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINSTRING SHORT_BINSTRING
    BINBYTES SHORT_BINBYTES BINUNICODE SHORT_BINUNICODE EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE
    BUILD
"""
_OPCODES = frozenset(_OPCODE_NAMES.split())
_GLOBALS = {
    ("numpy.core.multiarray", "_reconstruct"): "array",
    ("numpy._core.multiarray", "_reconstruct"): "array",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",  # how Python 3 writes bytes in protocol 2
}
_MOST_TUPLES = 1000  # a real batch has six; hashing a deep nest of tuples overflows the interpreter's stack
_MOST_OPCODES = 2_000_000  # the largest real batch has some 300,000
_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    struct.error,
)


class _Name:
    """Stands for an allowed global name; calling it records the arguments, nothing of numpy runs."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: object) -> object:
        if self.name == "encode":
            text, codec = arguments
            if not isinstance(text, str) or codec not in ("latin1", b"latin1"):
                raise pickle.UnpicklingError("only text in latin1 may be encoded")
            return text.encode("latin1")
        return _Recorded(self.name, arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a global name has no state")


class _Recorded:
    """A recorded call and the state that followed it."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> _Name:
        try:
            return _Name(_GLOBALS[module, name])
        except KeyError:
            raise pickle.UnpicklingError(f"refers to {module}.{name}") from None


def restricted_unpickle(data: bytes, path: Path | str = "pickle") -> object:
    """Return the content of a pickle of plain values; numpy arrays stay recorded descriptions.

    Two guards: every opcode is checked before the machine runs (only those of plain data, memo places no higher
    than the number of opcodes, lengths within the file, few tuples), and names resolve to recorders of our own.
    Raises UserError for anything else, and nothing of it has then been imported or called.
    """
    try:
        # pickletools decodes the text of operations that are refused then, and Python warns of escapes in it that it
        # does not know.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            _check_opcodes(data)
        return _Restricted(io.BytesIO(data), encoding="bytes").load()
    except _DAMAGE as error:
        raise _broken(
            Path(path),
            f"the pickle is damaged or holds more than data ({error}); nothing of it was executed",
            "numbers, text and numpy arrays",
        ) from None


def _check_opcodes(data: bytes) -> None:
    tuples = 0
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data), start=1):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"uses the operation {opcode.name}")
        if opcode.name in ("LONG_BINPUT", "BINPUT") and int(argument or 0) > max(count, 255):
            raise pickle.UnpicklingError(f"asks for {argument} places of memory")
        tuples += opcode.name.startswith("TUPLE")
        if tuples > _MOST_TUPLES or count > _MOST_OPCODES:
            raise pickle.UnpicklingError("has more parts than any real batch")


def _as_array(value: object, path: Path) -> np.ndarray:
    """Return the array of a recorded `_reconstruct` and its state (version, shape, dtype, fortran, bytes)."""
    wrong = _broken(path, "'data' is not an array of bytes", "a numpy array of uint8 whose size fits its shape")
    if not isinstance(value, _Recorded) or value.name != "array":
        raise wrong
    try:
        _, shape, kind, fortran, raw = value.state
        if kind.name != "dtype" or kind.arguments[0] not in ("u1", b"u1", "|u1", b"|u1"):
            raise wrong
        if any(type(axis) is not int or axis < 0 for axis in shape):
            raise wrong
        return np.frombuffer(raw, np.uint8).reshape(tuple(shape), order="F" if fortran else "C")
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise wrong from None


def _checked_labels(labels: np.ndarray | list, classes: int, path: Path) -> np.ndarray:
    lowest, highest = min(labels), max(labels)
    if not 0 <= lowest <= highest < classes:
        raise _broken(path, f"the labels run from {lowest} to {highest}", f"0 to {classes - 1}")
    return np.asarray(labels, np.int64)


def _broken(path: Path, what: str, expected: str) -> UserError:
    return UserError(what, where=str(path), expected=expected, remedy=_DOWNLOAD)
