"""Readers of the public image files: idx (plain or gzip), CIFAR binary batches, the digits table.

Every reader takes a path and returns `Samples`. It does not trust the file: it executes nothing, allocates no memory
for a size that only a header states, and raises UserError if the file is invalid.

Sources: Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits" (idx); A. Krizhevsky,
"Learning Multiple Layers of Features from Tiny Images", 2009 (CIFAR); E. Alpaydin, C. Kaynak, "Optical Recognition of
Handwritten Digits", UCI, 1998 (digits, as scikit-learn bundles it).
"""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from schedlab.config.errors import UserError

LARGEST_FILE = 1 << 28  # bytes, before and after decompression; the largest public file has 155 MB
CIFAR_SHAPE = (3, 32, 32)
_DOWNLOAD = "download the file again"


class Samples(NamedTuple):
    """Raw images (n, channels, height, width) uint8, and their classes as labels (n,) int64."""

    images: np.ndarray
    labels: np.ndarray


def read_bytes(path: Path) -> bytes:
    """Return a file's content, decompressed if it is gzip, whatever its name. Raises UserError."""
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
    """Return the images (n, 1, rows, columns) and labels of two idx files. Raises UserError."""
    pictures, numbers = read_idx(images, 3), read_idx(labels, 1)
    if not pictures.size:
        raise _broken(images, "the file holds no image", "at least one")
    if len(pictures) != len(numbers):
        raise _broken(
            labels,
            f"the file holds {len(numbers)} labels",
            f"one for each of the {len(pictures)} images of {images.name}",
        )
    return Samples(pictures[:, None], _checked_labels(numbers, classes, labels))


def read_cifar_binary(path: Path, classes: int, label_bytes: int = 1) -> Samples:
    """Return a CIFAR binary batch: records of `label_bytes` labels (the last one counts) and 3072 bytes of image.

    CIFAR-10 has one label byte, CIFAR-100 two (coarse, fine). Raises UserError.
    """
    data, record = read_bytes(path), label_bytes + math.prod(CIFAR_SHAPE)
    if not data or len(data) % record:
        raise _broken(path, f"the file has {len(data)} bytes", f"a multiple of {record}, the size of one record")
    rows = np.frombuffer(data, np.uint8).reshape(-1, record)
    labels = _checked_labels(rows[:, label_bytes - 1], classes, path)
    return Samples(rows[:, label_bytes:].reshape(-1, *CIFAR_SHAPE), labels)


def read_digits(path: Path) -> Samples:
    """Return the digits table (a line for each image: 64 grey values 0 to 16, then the class). Raises UserError."""
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


def _checked_labels(labels: np.ndarray, classes: int, path: Path) -> np.ndarray:
    lowest, highest = min(labels), max(labels)
    if not 0 <= lowest <= highest < classes:
        raise _broken(path, f"the labels run from {lowest} to {highest}", f"0 to {classes - 1}")
    return np.asarray(labels, np.int64)


def _broken(path: Path, what: str, expected: str) -> UserError:
    return UserError(what, where=str(path), expected=expected, remedy=_DOWNLOAD)
