"""Places of files outside conf/: third-party data, which the entries of conf/download describe, and resources.

Data lies below the folder that SCHEDLAB_DATA names, below resources/data of the working directory, or in the working
directory itself. Resources lie in resources/ of the checkout or installation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urljoin, urlsplit, urlunsplit

from pydantic import field_validator

import schedlab
from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.readers import read_yaml
from schedlab.config.schema import Settings, setting, validate

DATA_VARIABLE = "SCHEDLAB_DATA"
LOCAL_DATA = Path("resources/data")
CHECKOUT = Path(schedlab.__file__).parents[2]
INSTALLED = Path(sys.prefix, "share/schedlab")  # a wheel puts files here that a checkout has outside of the package
SHIPPED = CHECKOUT if (CHECKOUT / "Snakefile").is_file() else INSTALLED
DOWNLOADS = "download"
PARTS = ".partial"  # folder below the data folder that contains downloads until they are checked
SHA256, MD5 = r"^([0-9a-f]{64})?$", r"^([0-9a-f]{32})?$"


def find_data(name: Path | str) -> Path:
    """Return where a file or folder of data is, or where it should be put. Absolute paths are returned unchanged.

    The places are searched in this order: the folder that SCHEDLAB_DATA names, resources/data of the working directory,
    the working directory, and the resources that schedlab ships (`find_resource`).
    """
    path = Path(name)
    if path.is_absolute():
        return path
    shared = os.environ.get(DATA_VARIABLE)
    places = [Path(shared) / path] if shared else []
    places += [LOCAL_DATA / path, path, find_resource(path)]
    return next((place for place in places if place.exists()), LOCAL_DATA / path)


def plain_or_gzip(file: Path) -> Path | None:
    """Return the file or, if it is missing, its compressed twin `<name>.gz`; None if both are missing."""
    return next((path for path in (file, file.with_name(f"{file.name}.gz")) if path.is_file()), None)


def missing_files(folder: Path, sets: Iterable[Iterable[str]]) -> list[str]:
    """Return the files that a folder lacks, out of the most nearly complete of the given sets. Empty if one set is
    complete, or if there are no sets.
    """
    names = [list(files) for files in sets]
    lacking = [[name for name in files if plain_or_gzip(folder / name) is None] for files in names]
    return min(zip(lacking, names, strict=True), key=lambda pair: len(pair[0]) / len(pair[1]), default=([], []))[0]


def find_resource(name: Path | str) -> Path:
    """Return the path of a configured file or folder: resources/... lies in the checkout or installation, whatever the
    working directory.

    Absolute paths are returned unchanged; all other paths, and resources that schedlab does not ship, are relative to
    the working directory.
    """
    path = Path(name)
    if path.parts[:1] == ("resources",):
        return next((place for place in (CHECKOUT / path, INSTALLED / path) if place.exists()), path)
    return path


class ArchiveSettings(Settings):
    """Which files of a tar archive are extracted."""

    below: str = setting("", doc="folder of the archive whose content is extracted, as a pattern such as `*/results`")
    leave_out: tuple[str, ...] = setting((), doc="patterns of file names that are never written, such as `*.pkl`")
    sample: dict[str, str] = setting({}, doc="SHA-256 of some files, by their paths below the target")


class FileSettings(Settings):
    """A file to download. If `path` ends in .gz and `to` does not, it is decompressed; if only `to` ends in .gz, it is
    compressed.
    """

    path: str = setting(doc="address, from the entry's `base` on")
    to: str = setting(doc="where it is put, below the data folder; for an archive a folder")
    sha256: str = setting(
        "", doc="SHA-256 of the unpacked content; empty: it is printed, so that it can be entered here", pattern=SHA256
    )
    md5: str = setting("", doc="MD5 of the downloaded file, if its source publishes no better checksum", pattern=MD5)
    size: int | None = setting(None, doc="unpacked size", unit="bytes", ge=0)
    archive: ArchiveSettings | None = setting(None, doc="for a tar archive: which of its files are extracted")

    @field_validator("to")
    @classmethod
    def _inside(cls, value: str) -> str:
        path = PurePosixPath(value)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"a path below the data folder; {value!r} leaves it")
        if path.parts[0].lower() == PARTS:
            raise ValueError(f"a path outside {PARTS}, where unfinished downloads lie")
        return value

    @field_validator("path")
    @classmethod
    def _part_of_address(cls, value: str) -> str:
        _require_address(lambda: urlsplit(urljoin("http://host.example/", value)).port)
        return value


def _require_address(take_apart: Callable[[], object]) -> None:
    """Raise ValueError with what is expected, if an address cannot be taken apart."""
    try:
        take_apart()
    except ValueError as error:
        raise ValueError(f"an address, as http://data.example:8000/folder/ ({error})") from None


class EntrySettings(Settings):
    """A third-party data set that studies use (a file of conf/download/)."""

    name: str = setting(doc="name in commands")
    purpose: str = setting(doc="what it is for")
    licence: str = setting(doc="licence or terms of use")
    citation: str = setting("", doc="what to cite")
    base: str = setting(doc="first part of the addresses of its files")
    files: tuple[FileSettings, ...] = setting(doc="its files", min_length=1)

    @field_validator("base")
    @classmethod
    def _address(cls, value: str) -> str:
        _require_address(lambda: urlsplit(value).port)
        return value

    def address(self, file: FileSettings, base_url: str = "") -> str:
        """Return the address of a file; base_url replaces scheme and host."""
        found = urljoin(self.base, file.path)
        if not base_url:
            return found
        mirror, parts = urlsplit(base_url), urlsplit(found)
        return urlunsplit((mirror.scheme, mirror.netloc, mirror.path.rstrip("/") + parts.path, parts.query, ""))


def read_catalogue(conf: Path) -> dict[str, EntrySettings]:
    """Return the entries of conf/download by name, sorted, and after them those of the checkout or installation whose
    names conf/download has not. Raises UserErrors for wrong entries.
    """
    shipped = next((place for place in (CHECKOUT / "conf", INSTALLED / "conf") if (place / DOWNLOADS).is_dir()), conf)
    files: dict[str, Path] = {}
    for place in (conf, shipped):
        for file in sorted((place / DOWNLOADS).glob("*.yaml")):
            files.setdefault(file.stem, file)
    found, errors = {}, []
    for file in files.values():
        try:
            entry = validate(
                EntrySettings, read_yaml(file), lambda path, file=file: f"{file}: {'.'.join(map(str, path))}"
            )
            if entry.name != file.stem:
                raise UserError(f"the name is '{entry.name}'", where=f"{file}: name", expected=f"'{file.stem}'")
            found[entry.name] = entry
        except UserError as error:
            errors.append(error)
    if errors:
        raise UserErrors(error for each in errors for error in getattr(each, "errors", (each,)))
    return found


def chosen(catalogue: Mapping[str, EntrySettings], names: list[str]) -> list[EntrySettings]:
    """Return the entries of these names; `all` stands for all. Raises UserErrors for unknown names."""
    if "all" in names:
        return list(catalogue.values())
    unknown = [
        UserError(f"there is no entry '{name}'", where="NAME", remedy=did_you_mean(name, [*catalogue, "all"]))
        for name in names
        if name not in catalogue
    ]
    if unknown:
        raise UserErrors(unknown)
    return [catalogue[name] for name in dict.fromkeys(names)]


def entry_of(catalogue: Mapping[str, EntrySettings], path: str) -> str | None:
    """Return the name of the download entry that puts a file or folder at this place; None if no entry does."""
    wanted = PurePosixPath(path)
    for name, entry in catalogue.items():
        if any(wanted == PurePosixPath(file.to) or wanted in PurePosixPath(file.to).parents for file in entry.files):
            return name
    return None
