"""Data sets: the shipped settings, the fixed split, files of every layout, what is said where they are missing."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from schedlab.config.data_paths import DATA_VARIABLE
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.files import file_hash
from schedlab.config.schema import validate
from schedlab.studies.adaptation.data import datasets as module
from schedlab.studies.adaptation.data.datasets import DataSettings, check, load, missing_files, read, root_folder, save

FIRST_TRAIN_LABELS = [2, 1, 0, 8, 9, 6, 1, 8, 4, 5]  # of the pinned split


def _shipped(repository: Path, name: str, **changes) -> DataSettings:
    return validate(DataSettings, yaml.safe_load((repository / "conf" / "data" / f"{name}.yaml").read_text()) | changes)


@pytest.fixture
def digits(repository) -> DataSettings:
    return _shipped(repository, "digits")


def _fill(folder: Path, name: str, layout: str, count: int = 4) -> dict[str, np.ndarray]:
    """Write a small data set in a layout; pictures and labels of training (all files in order) and test."""
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    classes = 100 if name == "cifar100" else 10
    made: dict[str, list] = {"train": [], "test": []}
    for part, files in _files(name).items():
        for file in files:
            shape = (count, 1, 28, 28) if "mnist" in name else (count, 3, 32, 32)
            images, labels = rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, classes, count)
            _write(folder, file, layout, name, images, labels)
            made[part].append((images, labels))
    return {part: tuple(np.concatenate(arrays) for arrays in zip(*made[part], strict=True)) for part in made}


def _files(name: str) -> dict[str, list]:
    if "mnist" in name:
        return {
            "train": [("train-images-idx3-ubyte", "train-labels-idx1-ubyte")],
            "test": [("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")],
        }
    if name == "cifar100":
        return {"train": ["train.bin"], "test": ["test.bin"]}
    return {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]}


def _write(folder: Path, file, layout: str, name: str, images: np.ndarray, labels: np.ndarray) -> None:
    if layout in ("plain", "gzip", "mixed"):
        for stem, values in zip(file, (images[:, 0], labels.astype(np.uint8)), strict=True):
            data = struct.pack(f">I{values.ndim}I", 0x800 | values.ndim, *values.shape) + values.tobytes()
            zipped = layout == "gzip" or (layout == "mixed" and "labels" in stem)
            (folder / (stem + ".gz" * zipped)).write_bytes(gzip.compress(data) if zipped else data)
    else:
        coarse = [0] if name == "cifar100" else []
        records = [bytes([*coarse, label]) + image.tobytes() for image, label in zip(images, labels, strict=True)]
        (folder / file).write_bytes(b"".join(records))


def test_every_shipped_data_set_is_valid_and_named_like_its_file(repository):
    files = sorted((repository / "conf" / "data").glob("*.yaml"))
    assert {"digits", "cifar10", "cifar100", "mnist", "fashion_mnist"} <= {file.stem for file in files}
    assert [_shipped(repository, file.stem).name for file in files] == [file.stem for file in files]


def test_digits_have_the_fixed_split(digits):
    pytest.importorskip("sklearn")
    first, second = load(digits), load(digits)
    assert [len(first.split(name)[1]) for name in ("train", "validation", "test")] == [1200, 297, 300]
    assert (
        first.input_shape == (1, 8, 8)
        and first.train_images.dtype == np.float32
        and first.train_labels.dtype == np.int64
    )
    assert first.train_images.min() == 0.0 and first.train_images.max() == 1.0
    for name in ("train", "validation", "test"):
        assert all(np.array_equal(one, other) for one, other in zip(first.split(name), second.split(name), strict=True))
    assert first.train_labels[:10].tolist() == FIRST_TRAIN_LABELS


def test_the_split_loses_and_repeats_no_digit(digits):
    from sklearn.datasets import load_digits

    bundled = load_digits()
    loaded = load(digits)
    images = np.concatenate([loaded.split(name)[0] for name in ("train", "validation", "test")]).reshape(1797, 64) * 16
    labels = np.concatenate([loaded.split(name)[1] for name in ("train", "validation", "test")])
    rows = sorted(zip(map(tuple, images.tolist()), labels.tolist(), strict=True))
    assert rows == sorted(zip(map(tuple, bundled.data.tolist()), bundled.target.tolist(), strict=True))


def test_another_seed_gives_another_split(digits):
    other = digits.model_copy(update={"split_seed": digits.split_seed + 1})
    assert not np.array_equal(load(digits).train_labels, load(other).train_labels)


def test_loading_digits_imports_neither_scikit_learn_nor_torch(repository):
    code = """
import sys, yaml
from schedlab.config.schema import validate
from schedlab.studies.adaptation.data.datasets import DataSettings, load
load(validate(DataSettings, yaml.safe_load(open("conf/data/digits.yaml"))))
print([name for name in ("sklearn", "torch", "pandas") if name in sys.modules])
"""
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


LAYOUTS = [
    *(("cifar10", "binary", folder) for folder in ("cifar-10-batches-bin", ".")),
    *(("cifar100", "binary", folder) for folder in ("cifar-100-binary", ".")),
    *(("mnist", layout, folder) for layout, folder in (("plain", "."), ("gzip", "MNIST/raw"), ("mixed", "raw"))),
    ("fashion_mnist", "gzip", "."),
]


@pytest.mark.parametrize(("name", "layout", "folder"), LAYOUTS)
def test_every_layout_reads_back(repository, tmp_path, name, layout, folder):
    made = _fill(tmp_path / folder, name, layout)
    settings = _shipped(
        repository, name, root=str(tmp_path), validation_size=1, expected_train=None, expected_test=None
    )
    assert missing_files(settings) == []
    loaded = load(settings)
    total = len(made["train"][1])
    assert len(loaded.train_labels) == total - 1 and len(loaded.validation_labels) == 1
    shape = (1, -1, 1, 1)
    mean, std = np.reshape(settings.mean, shape), np.reshape(settings.std, shape)
    assert np.allclose(loaded.test_images, (made["test"][0] / 255 - mean) / std, atol=1e-6)
    assert np.array_equal(loaded.test_labels, made["test"][1])
    trained = np.concatenate([loaded.train_images, loaded.validation_images]).sum((1, 2, 3))
    expected = ((made["train"][0] / 255 - mean) / std).sum((1, 2, 3))
    assert np.allclose(np.sort(trained), np.sort(expected), atol=1e-2)
    assert loaded.classes == (100 if name == "cifar100" else 10)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "mnist", "fashion_mnist"])
def test_missing_files_are_listed_with_where_to_get_them(repository, tmp_path, name):
    settings = _shipped(repository, name, root=str(tmp_path))
    missing = missing_files(settings)
    assert len(missing) == {"cifar10": 6, "cifar100": 2}.get(name, 4)
    with pytest.raises(UserError) as caught:
        load(settings)
    for part in (*missing, str(tmp_path), "https://", "root"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "archive", "file"),
    [
        ("cifar10", "cifar-10-python.tar.gz", "cifar-10-batches-py/data_batch_1"),
        ("cifar10", "cifar-10-python.tar.gz", "data_batch_1"),
        ("cifar100", "cifar-100-python.tar.gz", "cifar-100-python/train"),
    ],
)
def test_a_python_archive_is_named_and_the_binary_one_asked_for(repository, tmp_path, name, archive, file):
    settings = _shipped(repository, name, root=str(tmp_path))
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(b"\x80\x02}.")
    with pytest.raises(UserError) as caught:
        load(settings)
    assert archive in caught.value.what
    assert f"https://www.cs.toronto.edu/~kriz/{archive.replace('python', 'binary')}" in caught.value.remedy


def test_of_a_half_filled_folder_only_what_lacks_is_named(repository, tmp_path):
    _fill(tmp_path, "cifar10", "binary")
    (tmp_path / "data_batch_3.bin").unlink()
    assert missing_files(_shipped(repository, "cifar10", root=str(tmp_path))) == ["data_batch_3.bin"]


def test_a_file_cut_at_a_whole_picture_is_noticed(repository, tmp_path):
    _fill(tmp_path, "cifar10", "binary", count=4)
    with pytest.raises(UserError, match="expected_train"):
        load(_shipped(repository, "cifar10", root=str(tmp_path), validation_size=1))


def test_relative_roots_are_looked_for_in_the_data_folder_then_here(repository, tmp_path, monkeypatch):
    settings = _shipped(repository, "mnist")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert root_folder(settings) == Path("resources/data/mnist")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "shared"))
    assert root_folder(settings) == Path("resources/data/mnist")
    (tmp_path / "shared" / "mnist").mkdir(parents=True)
    assert root_folder(settings) == tmp_path / "shared" / "mnist"
    assert root_folder(settings.model_copy(update={"root": "/somewhere"})) == Path("/somewhere")


def test_without_scikit_learn_the_digits_say_what_to_install(digits, monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="scikit-learn"):
        load(digits)


def test_digits_may_lie_in_a_folder_of_ones_own(digits, tmp_path):
    line = ",".join(["8"] * 64)
    (tmp_path / "digits.csv").write_text("".join(f"{line},{label}\n" for label in range(6)))
    changes = {"root": str(tmp_path), "train_size": 3, "validation_size": 1, "test_size": 2, "expected_train": None}
    loaded = load(digits.model_copy(update=changes))
    assert np.all(loaded.train_images == 0.5)
    labels = np.concatenate([loaded.train_labels, loaded.validation_labels, loaded.test_labels])
    assert sorted(labels.tolist()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"train_size": 1300}, "train_size"),
        ({"train_size": None, "validation_size": 1497}, "validation_size"),
        ({"expected_train": 1796}, "expected_train"),
        ({"mean": (0.0, 0.0), "std": (1.0, 1.0)}, "mean"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(digits, changes, key):
    with pytest.raises(UserError, match=key):
        load(digits.model_copy(update=changes))


def test_more_test_pictures_than_there_are_is_refused(repository, tmp_path):
    _fill(tmp_path, "mnist", "plain")
    settings = _shipped(
        repository, "mnist", root=str(tmp_path), validation_size=0, test_size=5, expected_train=None, expected_test=None
    )
    with pytest.raises(UserError, match="test_size"):
        load(settings)
    cut = load(settings.model_copy(update={"test_size": 2, "train_size": 3}))
    assert len(cut.test_labels) == 2 and len(cut.train_labels) == 3 and cut.validation_images.shape == (0, 1, 28, 28)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"format": "cifar10"}, "root"),
        ({"test_size": None}, "test_size"),
        ({"std": [0.0]}, "std"),
        ({"mean": [0.0, 1.0]}, "std"),
        ({"format": "digit"}, "format"),
        ({"rot": "x"}, "'root'"),
    ],
)
def test_impossible_settings_are_refused(repository, changes, key):
    with pytest.raises(UserErrors) as caught:
        _shipped(repository, "digits", **changes)
    assert key in str(caught.value)


def test_check_summarises_and_hashes(digits):
    summary = check(digits)
    assert summary["counts"] == {"train": 1200, "validation": 297, "test": 300}
    assert summary["input"] == [1, 8, 8] and summary["classes"] == 10
    assert sum(map(sum, summary["labels"].values())) == 1797
    ((name, digest),) = summary["files"].items()
    assert digest == file_hash(root_folder(digits) / name)


def test_a_saved_data_set_reads_back_and_has_one_form(digits, tmp_path):
    loaded = load(digits)
    save(loaded, tmp_path / "one.npz")
    save(load(digits), tmp_path / "other.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()
    again = read(tmp_path / "one.npz")
    assert again.name == "digits" and again.classes == 10
    for name in ("train", "validation", "test"):
        assert all(np.array_equal(one, other) for one, other in zip(loaded.split(name), again.split(name), strict=True))


@pytest.mark.parametrize("content", [None, b"", b"noise", b"PK\x03\x04 broken", "truncated", "object", "lacking"])
def test_what_is_no_prepared_data_set_is_refused(digits, tmp_path, content):
    path, mark = tmp_path / "data.npz", tmp_path / "mark"
    if content == "truncated":
        save(load(digits), path)
        path.write_bytes(path.read_bytes()[:-2000])
    elif content == "object":
        np.savez(path, name=np.array([Path(mark)], dtype=object))
    elif content == "lacking":
        np.savez(path, name="digits")
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match="prepare"):
        read(path)
