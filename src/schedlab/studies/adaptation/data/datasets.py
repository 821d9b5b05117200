"""The data sets of a training job: settings, the fixed split, loading, saving, missing files."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from schedlab.config.data_paths import DATA_VARIABLE, LOCAL_DATA, find_data, plain_or_gzip
from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path, file_hash
from schedlab.config.schema import Settings, setting
from schedlab.config.seeds import generator
from schedlab.studies.adaptation.data import readers
from schedlab.studies.adaptation.data.readers import Samples

Format = Literal["digits", "cifar10", "cifar100", "mnist", "fashion_mnist"]


class DataSettings(Settings):
    """A data set, its fixed split and its scaling.

    The images of the training files are shuffled with a seed; the first become training images, the last validation
    images. Test images are those of the test files. `digits` has no test files, so all three parts are cut from its
    shuffled images.
    """

    name: str = setting(doc="name of the data set in tables and figures")
    format: Format = setting(doc="file format")
    root: str | None = setting(None, doc="folder of the files; none: the copy in scikit-learn (digits only)")
    split_seed: int = setting(0, doc="seed of the shuffle before the split", ge=0)
    train_size: int | None = setting(None, doc="training images; none: all remaining ones", unit="images", ge=1)
    validation_size: int = setting(0, doc="validation images", unit="images", ge=0)
    test_size: int | None = setting(None, doc="test images; none: all", unit="images", ge=1)
    expected_train: int | None = setting(
        None, doc="number of images in complete training files; none: not checked", unit="images", ge=1
    )
    expected_test: int | None = setting(
        None, doc="number of images in complete test files; none: not checked", unit="images", ge=1
    )
    mean: tuple[float, ...] = setting(
        (0.0,), doc="mean subtracted from values in [0, 1], for each channel or for all", min_length=1
    )
    std: tuple[float, ...] = setting(
        (1.0,), doc="standard deviation that divides the result, for each channel or for all", min_length=1
    )

    @model_validator(mode="after")
    def _check(self) -> DataSettings:
        if min(self.std) <= 0:
            raise ValueError("std must be greater than 0")
        if len(self.mean) != len(self.std):
            raise ValueError("mean and std must have the same number of channels")
        if self.root is None and self.format != "digits":
            raise ValueError("root is required: only digits are bundled")
        if self.test_size is None and self.format == "digits":
            raise ValueError("test_size is required: the digits have no test set of their own")
        return self


@dataclass(frozen=True)
class DataSet:
    """Images (n, channels, height, width) float32, scaled, and labels (n,) int64 in [0, classes), of three splits."""

    name: str
    classes: int
    train_images: np.ndarray
    train_labels: np.ndarray
    validation_images: np.ndarray
    validation_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return self.train_images.shape[1:]  # type: ignore[return-value]

    def split(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and labels of `train`, `validation` or `test`."""
        return getattr(self, f"{name}_images"), getattr(self, f"{name}_labels")


@dataclass(frozen=True)
class Layout:
    """The files of a data set in its folder: the names of both parts, and the function that reads one part."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    read: Callable[[list[Path]], Samples]
    folders: tuple[str, ...] = (".",)

    @property
    def names(self) -> tuple[str, ...]:
        """All file names, training files first."""
        return self.train + self.test


def _read_each(read: Callable[..., Samples], **options: Any) -> Callable[[list[Path]], Samples]:
    def joined(paths: list[Path]) -> Samples:
        parts = [read(path, **options) for path in paths]
        return Samples(np.concatenate([part.images for part in parts]), np.concatenate([part.labels for part in parts]))

    return joined


def _read_pair(paths: list[Path]) -> Samples:
    return readers.read_idx_pair(paths[0], paths[1], classes=10)


def _idx(*folders: str) -> Layout:
    train = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
    return Layout(train, ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), _read_pair, (".", *folders))


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
LAYOUTS: dict[str, Layout] = {
    "digits": Layout(("digits.csv",), (), _read_each(readers.read_digits)),
    "cifar10": Layout(
        tuple(f"{name}.bin" for name in _BATCHES),
        ("test_batch.bin",),
        _read_each(readers.read_cifar_binary, classes=10),
        (".", "cifar-10-batches-bin"),
    ),
    "cifar100": Layout(
        ("train.bin",),
        ("test.bin",),
        _read_each(readers.read_cifar_binary, classes=100, label_bytes=2),
        (".", "cifar-100-binary"),
    ),
    "mnist": _idx("raw", "MNIST/raw"),
    "fashion_mnist": _idx("raw", "FashionMNIST/raw"),
}
CIFAR = "https://www.cs.toronto.edu/~kriz"
# Files of CIFAR's Python archives. They are not read, because they hold pickles, which may run any code.
PYTHON_ARCHIVES = {
    "cifar10": ("cifar-10-python.tar.gz", ("cifar-10-batches-py/data_batch_1", "data_batch_1")),
    "cifar100": ("cifar-100-python.tar.gz", ("cifar-100-python/train", "train")),
}
SOURCES = {
    "digits": "install scikit-learn (pip install 'schedlab[learn]'), which bundles it",
    "cifar10": f"unpack {CIFAR}/cifar-10-binary.tar.gz there",
    "cifar100": f"unpack {CIFAR}/cifar-100-binary.tar.gz there",
    "mnist": "put the four files of MNIST there, plain or gzip, e.g. from "
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion_mnist": "put the four files of https://github.com/zalandoresearch/fashion-mnist there, plain or gzip",
}


@dataclass(frozen=True)
class Form:
    """The images of a format, known without its files: (channels, height, width), and the number of classes."""

    shape: tuple[int, int, int]
    classes: int


FORMS = {
    "digits": Form((1, 8, 8), 10),
    "cifar10": Form(readers.CIFAR_SHAPE, 10),
    "cifar100": Form(readers.CIFAR_SHAPE, 100),
    "mnist": Form((1, 28, 28), 10),
    "fashion_mnist": Form((1, 28, 28), 10),
}


def mistakes(data: DataSettings) -> Iterator[UserError]:
    """Yield the mistakes that can be found without the files: a scaling for other channels, sizes that are too
    large.
    """
    for check in (_check_scaling, split_sizes):
        try:
            check(data)
        except UserError as error:
            yield error


def split_sizes(data: DataSettings) -> tuple[int | None, int, int | None]:
    """Return the sizes of train, validation and test in the settings; None: all images of the files.

    Raises UserError for sizes above the expected numbers of images (expected_train, expected_test).
    """
    train, test = data.train_size, data.test_size
    if data.expected_train is not None:
        train = _train_size(data, data.expected_train)
    if LAYOUTS[data.format].test and data.expected_test is not None:
        test = _test_size(data, data.expected_test)
    return train, data.validation_size, test


def root_folder(data: DataSettings) -> Path:
    """Return the folder in which the files are looked for.

    An absolute root is returned as it is. A relative root is below $SCHEDLAB_DATA if it exists there, else below
    resources/data of the working directory. Without a root, it is the folder of scikit-learn's bundled tables; raises
    UserError if scikit-learn is not installed.
    """
    if data.root is None:
        found = importlib.util.find_spec("sklearn")  # finds the package without importing it, which takes a second
        if found is None or found.origin is None:
            what = "scikit-learn, which bundles the digits, is not installed"
            raise UserError(what, where=f"data {data.name}", remedy=SOURCES["digits"])
        return Path(found.origin).parent / "datasets" / "data"
    return find_data(data.root)


def file_sets(form: Format) -> tuple[tuple[str, ...], ...]:
    """Return alternative sets of files (paths below the folder of the data set), each of which is a whole data set."""
    layout = LAYOUTS[form]
    return tuple(tuple((Path(folder) / name).as_posix() for name in layout.names) for folder in layout.folders)


def missing_files(data: DataSettings) -> list[str]:
    """Return the names of the missing files, in the folder that lacks the fewest."""
    return _lacking(LAYOUTS[data.format], _nearest(data))


def load(data: DataSettings) -> DataSet:
    """Read, split and scale a data set. Raises UserError for missing or damaged files and for sizes that do not fit."""
    layout, folder = LAYOUTS[data.format], _whole_folder(data)
    train = _read_part(data, layout, folder, "train")
    if layout.test:
        test = _read_part(data, layout, folder, "test")
        test_rows = np.arange(_test_size(data, len(test.labels)))
        train_rows, validation_rows, _ = _cut(data, len(train.labels))
    else:
        test = train
        train_rows, validation_rows, test_rows = _cut(data, len(train.labels))
    form = FORMS[data.format]
    for part, samples in (("training", train), ("test", test)):
        if samples.images.shape[1:] != form.shape:
            what = f"the {part} images have the shape {samples.images.shape[1:]}"
            raise UserError(what, where=f"{data.name}: {folder}", expected=f"{form.shape}, as {data.format} has")
    _check_scaling(data)
    arrays: list[np.ndarray] = []
    for samples, rows in ((train, train_rows), (train, validation_rows), (test, test_rows)):
        arrays += [_scaled(data, samples.images[rows]), samples.labels[rows]]
    return DataSet(data.name, form.classes, *arrays)


def check(data: DataSettings) -> dict[str, Any]:
    """Read a data set and return its counts, shape, classes and the SHA-256 of every file. Raises UserError."""
    loaded = load(data)
    layout, folder = LAYOUTS[data.format], _whole_folder(data)
    return {
        "name": data.name,
        "format": data.format,
        "classes": loaded.classes,
        "input": list(loaded.input_shape),
        "counts": {split: len(loaded.split(split)[1]) for split in ("train", "validation", "test")},
        "labels": {
            split: np.bincount(loaded.split(split)[1], minlength=loaded.classes).tolist()
            for split in ("train", "validation", "test")
        },
        "files": {path.name: file_hash(path) for path in _paths(folder, layout.names)},
    }


def save(dataset: DataSet, path: Path | str) -> None:
    """Write a data set as an uncompressed .npz, atomically; the bytes depend on the values alone."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        arrays: dict[str, Any] = {field.name: np.asarray(getattr(dataset, field.name)) for field in fields(DataSet)}
        np.savez(file, **arrays)


def read(path: Path | str) -> DataSet:
    """Read a data set that `save` wrote. Raises UserError for a missing or damaged file."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            values = {field.name: archive[field.name] for field in fields(DataSet)}
        return DataSet(**(values | {"name": str(values["name"]), "classes": int(values["classes"])}))
    except FileNotFoundError:
        raise UserError("the prepared data set is missing", where=str(path), remedy="prepare it again") from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        what = f"not a prepared data set ({error})"
        raise UserError(what, where=str(path), remedy="delete the file and prepare it again") from None


def _paths(folder: Path, names: tuple[str, ...]) -> list[Path]:
    return [path for name in names if (path := plain_or_gzip(folder / name))]


def _lacking(layout: Layout, folder: Path) -> list[str]:
    return [name for name in layout.names if plain_or_gzip(folder / name) is None]


def _nearest(data: DataSettings) -> Path:
    layout, root = LAYOUTS[data.format], root_folder(data)
    return min((root / folder for folder in layout.folders), key=lambda folder: len(_lacking(layout, folder)))


def _whole_folder(data: DataSettings) -> Path:
    """Return the folder that holds every file of a data set. Raises UserError if there is none."""
    layout, folder = LAYOUTS[data.format], _nearest(data)
    if missing := _lacking(layout, folder):
        what = f"the data set {data.name} lacks {', '.join(missing)}"
        archive, names = PYTHON_ARCHIVES.get(data.format, ("", ()))
        if any(plain_or_gzip(root_folder(data) / name) for name in names):
            what += f"; the files of {archive} are there, which are Python pickles and are not read"
        expected = f"the files (plain or gzip) {' '.join(layout.names)}"
        remedy = f"{SOURCES[data.format]}, or set root (relative: below ${DATA_VARIABLE}, then {LOCAL_DATA})"
        raise UserError(what, where=str(folder.absolute()), expected=expected, remedy=remedy)
    return folder


def _read_part(data: DataSettings, layout: Layout, folder: Path, part: Literal["train", "test"]) -> Samples:
    names = layout.train if part == "train" else layout.test
    samples = layout.read(_paths(folder, names))
    expected = data.expected_train if part == "train" else data.expected_test
    if expected is not None and len(samples.labels) != expected:
        what = f"{' '.join(names)} together hold {len(samples.labels)} images"
        remedy = f"{SOURCES[data.format]}, or set expected_{part}"
        raise UserError(what, where=str(folder), expected=f"{expected} (expected_{part})", remedy=remedy)
    return samples


def _cut(data: DataSettings, available: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of train, validation and test: the first, the next to last, and the last of the seeded order."""
    train, test = _train_size(data, available), _cut_off_for_test(data)
    order = generator(data.split_seed, "split", data.format).permutation(available)
    return order[:train], order[available - data.validation_size - test : available - test], order[available - test :]


def _cut_off_for_test(data: DataSettings) -> int:
    """Return how many images of the training files become test images; 0 if there are test files."""
    return 0 if LAYOUTS[data.format].test else data.test_size or 0


def _train_size(data: DataSettings, available: int) -> int:
    """Return the number of training images. Raises UserError if the training files have too few images."""
    test = _cut_off_for_test(data)
    held_out = data.validation_size + test
    train = data.train_size or available - held_out
    if train < 1 or train + held_out > available:
        raise UserError(
            f"the split asks for {data.train_size or 'some'} training, {data.validation_size} validation "
            f"and {test} test images",
            where=f"data {data.name}",
            expected=f"at most the {available} that there are",
            remedy="lower train_size, validation_size or test_size",
        )
    return train


def _test_size(data: DataSettings, available: int) -> int:
    """Return the number of test images. Raises UserError if the test files have too few images."""
    if (data.test_size or 0) > available:
        expected = f"at most the {available} images that there are"
        raise UserError(f"test_size is {data.test_size}", where=f"data {data.name}", expected=expected)
    return data.test_size or available


def _check_scaling(data: DataSettings) -> None:
    channels = FORMS[data.format].shape[0]
    if len(data.mean) not in (1, channels):
        what = f"mean and std have {len(data.mean)} values"
        raise UserError(what, where=f"data {data.name}", expected=f"1 or {channels}")


def _scaled(data: DataSettings, images: np.ndarray) -> np.ndarray:
    mean, std = (np.asarray(values, np.float32).reshape(1, -1, 1, 1) for values in (data.mean, data.std))
    scaled = images.astype(np.float32)
    scaled /= 16 if data.format == "digits" else 255
    scaled -= mean
    scaled /= std
    return scaled
