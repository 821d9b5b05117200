"""Readers of the public image files: right files read back, wrong ones refused, malicious ones never executed."""

from __future__ import annotations

import gzip
import os
import pickle
import pickletools
import re
import resource
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
GLOBALS = {
    b"array": b"cnumpy.core.multiarray\n_reconstruct\n",
    b"ndarray": b"cnumpy\nndarray\n",
    b"dtype": b"cnumpy\ndtype\n",
}


def _pictures(count: int, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    return rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8), rng.integers(0, classes, count)


def _text(value: bytes) -> bytes:
    """A Python 2 string in a pickle of protocol 2."""
    return b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value


def _array(images: np.ndarray, kind: bytes = b"u1") -> bytes:
    """A numpy array as Python 2 pickled it: _reconstruct(ndarray, (0,), 'b') and its state."""
    shape = b"".join(b"J" + struct.pack("<i", axis) for axis in images.shape)
    new = GLOBALS[b"array"] + b"q\x01" + GLOBALS[b"ndarray"] + b"q\x02K\x00\x85" + _text(b"b") + b"\x87R"
    dtype = (
        GLOBALS[b"dtype"]
        + b"q\x03"
        + _text(kind)
        + b"K\x00K\x01\x87R(K\x03"
        + _text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    return new + b"(K\x01(" + shape + b"t" + dtype + b"\x89" + _text(images.tobytes()) + b"tb"


def _python2_batch(images: np.ndarray, labels: np.ndarray, key: bytes = b"labels") -> bytes:
    """The bytes of a batch file as the authors of CIFAR wrote it: protocol 2, Python 2, keys are byte strings."""
    rows = images.reshape(len(images), 3072)
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    names = b"](" + b"".join(_text(b"picture_%d.png" % number) for number in range(len(labels))) + b"e"
    entries = _text(b"batch_label") + _text(b"training batch 1 of 5") + _text(key) + numbers
    return b"\x80\x02}q\x00(" + entries + _text(b"data") + _array(rows) + _text(b"filenames") + names + b"u."


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


def test_cifar_pickle_of_python_2_reads_back(tmp_path):
    images, labels = _pictures(4)
    samples = readers.read_cifar_pickle(_write(tmp_path, _python2_batch(images, labels)), 10)
    assert np.array_equal(samples.images, images) and np.array_equal(samples.labels, labels)
    assert samples.images.dtype == np.uint8 and samples.labels.dtype == np.int64


def test_the_synthetic_batch_is_what_numpy_itself_would_read(tmp_path):
    """The oracle: the ordinary unpickler on our own harmless bytes."""
    images, labels = _pictures(4)
    batch = pickle.Unpickler(_write(tmp_path, _python2_batch(images, labels)).open("rb"), encoding="bytes").load()
    assert np.array_equal(batch[b"data"], images.reshape(4, -1)) and batch[b"labels"] == labels.tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cifar_pickle_of_python_3_reads_back(tmp_path, protocol, order):
    images, labels = _pictures(3, 100)
    batch = {
        "data": np.asarray(images.reshape(3, -1), order=order),
        "fine_labels": labels.tolist(),
        "coarse_labels": [0, 1, 2],
    }
    samples = readers.read_cifar_pickle(_write(tmp_path, pickle.dumps(batch, protocol)), 100, "fine_labels")
    assert np.array_equal(samples.images, images) and np.array_equal(samples.labels, labels)


@pytest.mark.parametrize(
    ("batch", "key"),
    [
        ([1, 2], "list"),
        ({"labels": [1]}, "data"),
        ({"data": np.zeros((1, 3072), np.uint8)}, "labels"),
        ({"data": [1], "labels": [1]}, "data"),
        ({"data": np.zeros((1, 3072), np.int8), "labels": [1]}, "data"),
        ({"data": np.zeros((1, 3071), np.uint8), "labels": [1]}, "data"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}, "labels"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1, True]}, "labels"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1, -1]}, "labels"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1, 10**40]}, "labels"),
        ({"data": np.array([{}], dtype=object), "labels": [1]}, "data"),
    ],
)
def test_pickles_of_something_else_are_refused(tmp_path, batch, key):
    path = _write(tmp_path, pickle.dumps(batch, 2))
    with pytest.raises(UserError, match=key) as caught:
        readers.read_cifar_pickle(path, 10)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("shape", [(2, 3072), (1, 4000), (1,), (-5, 3072), (2**31 - 1, 2**31 - 1)])
def test_array_whose_shape_does_not_fit_its_bytes_is_refused(tmp_path, shape):
    data = _array(np.zeros((1, 3072), np.uint8))
    claimed = data.replace(
        b"(J" + struct.pack("<i", 1) + b"J" + struct.pack("<i", 3072),
        b"(" + b"".join(b"J" + struct.pack("<i", axis) for axis in shape),
    )
    assert claimed != data
    with pytest.raises(UserError):
        readers.read_cifar_pickle(
            _write(tmp_path, b"\x80\x02}(" + _text(b"labels") + b"](K\x01e" + _text(b"data") + claimed + b"u."), 10
        )


class _Calls:
    """Pickles as a call of a function with arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def _attacks(mark: Path) -> dict[str, bytes]:
    """Pickles that would create the file `mark`, or import or call something, if they were simply unpickled."""
    command, code = f"touch {mark}", f"open({str(mark)!r}, 'w')"
    text = _text(str(mark).encode())
    unicode = b"X" + struct.pack("<I", len(str(mark))) + str(mark).encode()
    stack_global = b"\x80\x04\x8c\x08builtins\x8c\x04open\x93" + unicode + b"\x8c\x01w\x86R."
    return {
        "os.system": pickle.dumps(_Calls(os.system, command), 2),
        "eval": pickle.dumps({"data": _Calls(eval, code)}, 2),
        "exec": pickle.dumps([_Calls(exec, code)], 4),
        "open by stack": stack_global,
        "open, protocol 0": pickle.dumps(_Calls(open, str(mark), "w"), 0),
        "getattr": pickle.dumps(_Calls(getattr, [], "append"), 2),
        "numpy.fromfile": b"\x80\x02cnumpy\nfromfile\n" + text + b"\x85R.",
        "numpy.save": b"\x80\x02cnumpy\nsave\n" + unicode + b"K\x01\x86R.",
        "numpy runs code": b"\x80\x02cnumpy.testing._private.utils\nrunstring\n" + unicode + b"}\x86R.",
        "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.tofile\x93.",
        "inst opcode": b"(S'touch " + str(mark).encode() + b"'\nios\nsystem\n.",
        "obj opcode": b"\x80\x02(cos\nsystem\n" + text + b"o.",
        "newobj opcode": b"\x80\x02cnumpy\nndarray\n)\x81.",
        "extension registry": b"\x80\x02\x82\x01.",
        "persistent id": b"\x80\x02" + text + b"Q.",
        "other codec": b"\x80\x02c_codecs\nencode\n" + unicode + b"X\x03\x00\x00\x00hex\x86R.",
        "state of a name": b"\x80\x02cnumpy\ndtype\n}" + _text(b"name") + text + b"sb.",
        "object array": pickle.dumps({"data": np.array([_Calls(os.system, command)], dtype=object), "labels": [1]}, 2),
        "reconstruct of another class": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncos\nsystem\n"
        + text
        + b"K\x00\x87R.",
    }


ATTACKS = list(_attacks(Path("mark")))


@pytest.mark.parametrize("name", ATTACKS)
def test_malicious_pickle_is_refused_and_nothing_of_it_runs(tmp_path, name):
    mark = tmp_path / "mark"
    with pytest.raises(UserError):
        readers.read_cifar_pickle(_write(tmp_path, _attacks(mark)[name]), 10)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["os.system", "eval", "exec", "open by stack", "open, protocol 0"])
def test_the_attacks_are_real(tmp_path, name):
    """The guard of the test above: an ordinary unpickler does make the file."""
    mark = tmp_path / "mark"
    with _write(tmp_path, _attacks(mark)[name]).open("rb") as file:
        pickle.Unpickler(file).load()
    assert mark.exists()


BOMBS = {
    "memo": b"\x80\x02N" + b"r" + struct.pack("<I", 2**31 - 1) + b".",
    "memo at the limit": b"\x80\x02N" + b"r" + struct.pack("<I", 2**32 - 1) + b".",
    "length of a string": b"\x80\x02T" + struct.pack("<i", 2**31 - 1) + b"abc.",
    "length of bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc.",
    "length of a frame": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"N.",
    "nest of tuples as a key": b"\x80\x02}N" + b"\x85" * 300_000 + b"Ns.",
    "deep list": b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".",
    "very many parts": b"\x80\x02" + b"N0" * 10 + b"N" * 3_000_000 + b".",
    "list in itself": b"\x80\x02}(" + _text(b"data") + b"]q\x00h\x00a" + _text(b"labels") + b"]q\x01h\x01au.",
    "long number in text": b"I" + b"9" * 100_000 + b"\n.",
}


@pytest.fixture
def little_memory():
    """Half a gigabyte more than the process has now; asking for more is a MemoryError, which no test expects."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 29), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc to limit memory")
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_within_little_memory(tmp_path, name, little_memory):  # noqa: ARG001
    with pytest.raises(UserError):
        readers.read_cifar_pickle(_write(tmp_path, BOMBS[name]), 10)


def test_the_memo_bomb_is_real(tmp_path, little_memory):  # noqa: ARG001
    """The guard of the test above: an ordinary unpickler does ask for the memory."""
    with _write(tmp_path, BOMBS["memo"]).open("rb") as file, pytest.raises(MemoryError):
        pickle.Unpickler(file).load()


def test_a_batch_without_a_picture_is_refused(tmp_path):
    empty = _python2_batch(np.zeros((0, 3, 32, 32), np.uint8).reshape(0, 3072), np.zeros(0, np.int64))
    with pytest.raises(UserError, match="data"):
        readers.read_cifar_pickle(_write(tmp_path, empty), 10)


def test_odd_escapes_in_a_pickle_warn_of_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match="STRING"):
            readers.read_cifar_pickle(_write(tmp_path, rb"S'\u'" + b"\n."), 10)


def test_every_truncation_of_a_pickle_is_refused(tmp_path):
    images, labels = _pictures(1)
    data = _python2_batch(images, labels)
    boundaries = {position for _, _, position in pickletools.genops(data)}
    for length in sorted(boundaries | {0, 1, 500, len(data) - 1}):
        with pytest.raises(UserError):
            readers.read_cifar_pickle(_write(tmp_path, data[:length]), 10)


@pytest.mark.slow
@FUZZ
@given(data=st.binary(max_size=200), name=st.sampled_from(["idx", "binary", "pickle", "digits"]), prefix=st.booleans())
def test_noise_never_crashes_a_reader(tmp_path, data, name, prefix):
    start, read = {
        "idx": (b"\x00\x00\x08\x03", lambda path: readers.read_idx(path, 3)),
        "binary": (b"", lambda path: readers.read_cifar_binary(path, 10)),
        "pickle": (b"\x80\x02", lambda path: readers.read_cifar_pickle(path, 10)),
        "digits": (b"0,", readers.read_digits),
    }[name]
    path = _write(tmp_path, (start if prefix else b"") + data)
    try:
        result = read(path)
    except UserError:
        return
    assert name == "idx" and result.ndim == 3 and len(data) >= 12


@pytest.mark.slow
@FUZZ
@given(position=st.floats(0, 1, exclude_max=True), values=st.binary(min_size=1, max_size=4), header=st.booleans())
def test_a_changed_pickle_is_refused_or_still_holds_pictures(tmp_path, position, values, header):
    images, labels = _pictures(1)
    data = bytearray(_python2_batch(images, labels))
    at = int(position * (400 if header else len(data)))
    data[at : at + len(values)] = values
    try:
        samples = readers.read_cifar_pickle(_write(tmp_path, bytes(data)), 10)
    except UserError:
        return
    assert samples.images.shape[1:] == (3, 32, 32) and samples.labels.max() < 10


def test_opcodes_of_a_real_batch_stay_far_below_the_limits():
    """CIFAR-100's training file has two label lists and 50,000 file names."""
    labels = np.zeros(250, np.int64)
    data = _python2_batch(np.zeros((250, 3, 32, 32), np.uint8), labels)
    assert sum(1 for _ in pickletools.genops(data)) * 200 * 2 < readers._MOST_OPCODES


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
