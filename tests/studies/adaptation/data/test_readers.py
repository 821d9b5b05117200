"""Readers of the public image files: right files read back, wrong ones refused."""

from __future__ import annotations

import gzip
import re
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.data import readers

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _pictures(count: int, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    return rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8), rng.integers(0, classes, count)


def _write(folder: Path, data: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _idx(values: np.ndarray) -> bytes:
    return struct.pack(f">I{values.ndim}I", 0x800 | values.ndim, *values.shape) + values.tobytes()


@pytest.mark.parametrize("wrap", [bytes, gzip.compress])
def test_idx_reads_back_plain_and_gzip(tmp_path, wrap):
    images = np.arange(2 * 5 * 4, dtype=np.uint8).reshape(2, 5, 4)
    labels = np.array([9, 0], np.uint8)
    samples = readers.read_idx_pair(
        _write(tmp_path, wrap(_idx(images)), "images"), _write(tmp_path, wrap(_idx(labels)), "labels"), 10
    )
    assert samples.images.shape == (2, 1, 5, 4) and np.array_equal(samples.images[:, 0], images)
    assert samples.labels.tolist() == [9, 0] and samples.labels.dtype == np.int64


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_idx_of_any_number_of_axes(tmp_path, axes):
    values = np.arange(2**axes, dtype=np.uint8).reshape((2,) * axes)
    assert np.array_equal(readers.read_idx(_write(tmp_path, _idx(values)), axes), values)


DAMAGES = [
    lambda _: b"",
    lambda data: b"\x00\x00\x08\x01" + data[4:],
    lambda data: data[:9],
    lambda data: data[:-1],
    lambda data: data + b"x",
    lambda data: data[:4] + b"\xff" * 12 + data[16:],
    lambda data: gzip.compress(data)[:-12],
    lambda data: b"\x1f\x8b" + data,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_idx_is_refused(tmp_path, damage):
    path = _write(tmp_path, damage(_idx(np.zeros((2, 5, 4), np.uint8))))
    with pytest.raises(UserError, match=re.escape(str(path))):
        readers.read_idx(path, 3)


@pytest.mark.parametrize(
    ("pictures", "labels", "named"), [(2, [1, 10], "labels"), (2, [1], "labels"), (0, [], "images")]
)
def test_idx_files_that_do_not_fit_are_named(tmp_path, pictures, labels, named):
    images = _write(tmp_path, _idx(np.zeros((pictures, 5, 4), np.uint8)), "images")
    with pytest.raises(UserError, match=re.escape(str(tmp_path / named))):
        readers.read_idx_pair(images, _write(tmp_path, _idx(np.array(labels, np.uint8)), "labels"), 10)


def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LARGEST_FILE", 1000)
    for data in (gzip.compress(bytes(10**6)), bytes(1001)):
        with pytest.raises(UserError, match="file"):
            readers.read_bytes(_write(tmp_path, data))
    assert len(readers.read_bytes(_write(tmp_path, bytes(1000)))) == 1000


@pytest.mark.parametrize("path", ["nothing", "."])
def test_what_cannot_be_read_is_the_users_error(tmp_path, path):
    with pytest.raises(UserError, match=re.escape(str(tmp_path))):
        readers.read_bytes(tmp_path / path)


@pytest.mark.parametrize(("classes", "label_bytes"), [(10, 1), (100, 2)])
def test_cifar_binary_reads_back(tmp_path, classes, label_bytes):
    images, labels = _pictures(4, classes)
    coarse = [[3]] * 4 if label_bytes == 2 else [[]] * 4
    data = b"".join(
        bytes([*first, label]) + image.tobytes() for first, label, image in zip(coarse, labels, images, strict=True)
    )
    samples = readers.read_cifar_binary(_write(tmp_path, data), classes, label_bytes)
    assert np.array_equal(samples.images, images) and np.array_equal(samples.labels, labels)
    with pytest.raises(UserError, match="file"):
        readers.read_cifar_binary(_write(tmp_path, data[:-1]), classes, label_bytes)
    with pytest.raises(UserError, match="file"):
        readers.read_cifar_binary(_write(tmp_path, b"\xff" * len(data)), classes, label_bytes)


@pytest.mark.slow
@FUZZ
@given(data=st.binary(max_size=200), name=st.sampled_from(["idx", "binary", "digits"]), prefix=st.booleans())
def test_noise_never_crashes_a_reader(tmp_path, data, name, prefix):
    start, read = {
        "idx": (b"\x00\x00\x08\x03", lambda path: readers.read_idx(path, 3)),
        "binary": (b"", lambda path: readers.read_cifar_binary(path, 10)),
        "digits": (b"0,", readers.read_digits),
    }[name]
    path = _write(tmp_path, (start if prefix else b"") + data)
    try:
        result = read(path)
    except UserError:
        return
    assert name == "idx" and result.ndim == 3 and len(data) >= 12


def test_digits_table_is_checked(tmp_path):
    line = ",".join(["3"] * 64)
    samples = readers.read_digits(_write(tmp_path, f"{line},7\n{line},0\n".encode()))
    assert samples.images.shape == (2, 1, 8, 8) and samples.labels.tolist() == [7, 0]
    for text in (
        f"{line}\n",
        f"{line},10\n",
        f"{line},inf\n",
        f"{line},1e300\n",
        f"17{line[1:]},1\n",
        f"-1{line[1:]},1\n",
        f"nan{line[1:]},1\n",
        f"{line},x\n",
        f"{line},1\n1,2\n",
    ):
        with pytest.raises(UserError), warnings.catch_warnings(action="error"):
            readers.read_digits(_write(tmp_path, text.encode()))
