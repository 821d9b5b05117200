"""Downloads the files of catalogue entries over HTTP: resumes and retries, checks and unpacks each file, and replaces
the old one in one step.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import json
import os
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Literal, TextIO
from urllib.parse import urlsplit

import schedlab
from schedlab.config.data_paths import (
    DATA_VARIABLE,
    LOCAL_DATA,
    PARTS,
    ArchiveSettings,
    EntrySettings,
    FileSettings,
    chosen,
    find_data,
    read_catalogue,
)
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.files import atomic_path, write_json

BLOCK = 1 << 18  # bytes read at once
TRIES = 5  # if a download is interrupted, or the server reports an internal error
PAUSE = 1.0  # s before the second try; doubled for each further one
PATIENCE = 30.0  # s without a byte after which a connection counts as interrupted
MOST_UNPACKED = 20 << 30  # bytes of any download, and of an unpacked file whose size is not in the catalogue
Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all (None: unknown)
State = Literal["right", "wrong", "absent", "unpinned"]  # of a file; unpinned: it exists, but there is no hash to check


class DownloadFailed(UserError):
    """The server or the network did not deliver the file, or the server delivered a different one."""


class _Interrupted(Exception):
    """The network did not deliver an answer, or not all of it. reached: whether there was a connection."""

    def __init__(self, cause: Exception, reached: bool) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.reached = reached


def data_folder(named: Path | None = None) -> Path:
    """Return the folder for downloads: the named one, else that of SCHEDLAB_DATA, else resources/data."""
    return named or Path(os.environ.get(DATA_VARIABLE) or LOCAL_DATA)


def place_of(file: FileSettings, named: Path | None = None) -> Path:
    """Return where a file of the catalogue is: below the named folder, else below the first folder that has it among
    those in which runs look for data. A file that is nowhere belongs to `data_folder`.
    """
    found = find_data(file.to)
    return found if named is None and found.exists() else data_folder(named) / file.to


def get_entries(
    entries: Iterable[EntrySettings],
    folder: Path,
    console: TextIO,
    base_url: str = "",
    force: bool = False,
) -> list[UserError]:
    """Download the files of some entries that are not in the data folder, or all of them with `force`.

    Prints the purpose, licence and citation of each entry, and the result for each file; a failure goes to standard
    error when it happens. Returns the failures; all other files are then in the folder. Raises UserError for a folder
    in which nothing can be written.

    console   stream for a line that shows the progress of a download, if it is a terminal
    base_url  address of a mirror, which replaces scheme and host of every address
    """
    failures: list[UserError] = []
    silent: set[str] = set()
    try:
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = f"name another data folder by {DATA_VARIABLE}"
        raise UserError(f"cannot be written: {error.strerror}", where=str(folder), remedy=remedy) from None
    for entry in entries:
        print(f"{entry.name}: {entry.purpose}\n  licence: {entry.licence}")
        if entry.citation:
            print(f"  cite: {entry.citation}")
        with _alone(folder / PARTS / f"{entry.name}.lock", entry.name):
            failures += _get_files(entry, folder, console, base_url, force, silent)
    with contextlib.suppress(OSError):  # the folder stays if it contains a download that a later call resumes
        (folder / PARTS).rmdir()
    return failures


def _get_files(
    entry: EntrySettings, folder: Path, console: TextIO, base_url: str, force: bool, silent: set[str]
) -> list[UserError]:
    """Download the files of an entry (see `get_entries`); print the result for each, and return the failures."""
    failures: list[UserError] = []
    for number, file in enumerate(entry.files):
        partial = folder / PARTS / f"{entry.name}-{number}.part"
        line = _Line(file.to, console)
        try:
            if not force and state_of(folder / file.to, file) in ("right", "unpinned"):
                print(f"  {file.to}: is there")
                continue
            try:
                found = fetch(entry.address(file, base_url), file, folder / file.to, partial, line, silent)
            finally:
                line.clear()
        except (UserError, OSError) as error:
            failures.append(error if isinstance(error, UserError) else _unwritten(error, folder / file.to))
            print(f"error: {failures[-1]}", file=sys.stderr, flush=True)
            continue
        print(f"  {file.to}: got, SHA-256 {'as pinned' if file.sha256 else found}")
        if not file.sha256 and not file.md5 and not (file.archive and file.archive.sample):
            print(f"    pin it in conf/download/{entry.name}.yaml: files.{number}.sha256")
    return failures


@contextlib.contextmanager
def _alone(file: Path, name: str) -> Iterator[None]:
    """Let one process at a time get an entry; say so if this one waits. If no lock can be made, it does not wait.

    The lock file is removed by the process that holds it. FileLock then makes another one, and an attempt ends after a
    second, because the folder may be gone too.
    """
    from filelock import FileLock, Timeout

    lock, waits = FileLock(file), False
    while not lock.is_locked:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=1 if waits else 0, poll_interval=0.05)
        except Timeout:
            if not waits:
                print(f"  another process is getting {name}; waiting for it to end", flush=True)
            waits = True
        except (OSError, NotImplementedError):  # a file system without locks, or a folder that cannot be written
            break
    try:
        yield
    finally:
        if lock.is_locked:
            with contextlib.suppress(OSError):
                file.unlink()
            lock.release()


def get_all(conf: Path, names: list[str], console: TextIO) -> None:
    """Download entries of a catalogue, by name. If one fails, the others are still downloaded. Raises UserErrors for
    failed downloads, and for unknown names.
    """
    if failures := get_entries(chosen(read_catalogue(conf), names), data_folder(), console):
        raise UserErrors(failures)


def state_of(path: Path, file: FileSettings) -> State:
    """Return whether a file of the catalogue is at a path with the right content."""
    if file.archive is not None:
        if not path.is_dir():
            return "absent"
        wrong = [
            name
            for name, wanted in file.archive.sample.items()
            if not (path / name).is_file() or content_hash(path / name) != wanted
        ]
        return "wrong" if wrong else "right" if file.archive.sample else "unpinned"
    if not path.is_file():
        return "absent"
    if not file.sha256:
        return "unpinned"
    try:
        return "right" if content_hash(path) == file.sha256 else "wrong"
    except (OSError, EOFError, zlib.error):  # the name ends in .gz, but the file is not gzip
        return "wrong"


class _Line:
    """A line of a terminal that shows the progress of a download. Without a terminal, nothing is shown."""

    def __init__(self, name: str, console: TextIO) -> None:
        self.name, self.console, self.shown = name, console, console.isatty()

    def __call__(self, done: int, whole: int | None) -> None:
        if self.shown:
            share = f" of {whole / 1e6:.1f} MB ({done / whole:.0%})" if whole else " MB"
            print(f"\r\033[K  {self.name}: {done / 1e6:.1f}{share}", end="", file=self.console, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self.shown:
            print("\r\033[K", end="", file=self.console, flush=True)


def _unwritten(error: OSError, target: Path) -> UserError:
    """Return the message for a file that cannot be read or written on this machine."""
    remedy = f"make room or change what is there, or name another data folder by {DATA_VARIABLE}; then get it again"
    where, reason = str(error.filename or target), error.strerror or str(error)
    expected = "" if where == str(target) else f"a place for {target}"
    return UserError(f"cannot be written: {reason}", where=where, expected=expected, remedy=remedy)


def fetch(
    address: str, file: FileSettings, target: Path, partial: Path, progress: Progress, silent: set[str] | None = None
) -> str:
    """Download to `partial`, check, unpack, and put the result at `target`.

    Returns the SHA-256 of the unpacked content (for an archive: of the archive). An interrupted download is resumed,
    also by a later call; so is a complete one that could not be put in place. Raises DownloadFailed, and OSError if a
    file cannot be written.

    silent  hosts that could not be reached, to which only one request is sent instead of several; updated
    """
    _download(address, partial, progress, set() if silent is None else silent)
    try:
        if file.md5 and (got := _hash(_blocks(partial), "md5")) != file.md5:
            raise _changed(address, "MD5", file.md5, got)
        if file.archive is not None:
            found = _hash(_blocks(partial))
            _require_hash(address, file, found)
            _unpack_tar(address, partial, file.archive, target)
        else:
            found = _put(address, file, partial, target)
    except DownloadFailed:
        partial.unlink(missing_ok=True)
        raise
    partial.unlink()
    partial.with_suffix(".json").unlink(missing_ok=True)
    return found


def _download(address: str, partial: Path, progress: Progress, silent: set[str]) -> None:
    """Download, with several tries if the network or the server may recover. Raises DownloadFailed with the error of
    the last one.
    """
    try:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https"):
            raise DownloadFailed("is no HTTP address", where=address, expected="http://... or https://...")
        tries, reached = 1 if parts.netloc in silent else TRIES, False
        for number in range(tries):
            try:
                _download_once(address, partial, progress)
            except urllib.error.HTTPError as error:
                reached, what = True, f"the server answers {error.code} {error.reason}"
                if error.code == 416:  # the partial file has all bytes, or more than the file: then start again
                    if error.headers.get("Content-Range") == f"bytes */{partial.stat().st_size}":
                        return None
                    partial.unlink(missing_ok=True)
                elif error.code < 500 and error.code not in (408, 429):
                    raise DownloadFailed(what, where=address, remedy="look whether the address has moved") from None
            except _Interrupted as error:
                reached, what = reached or error.reached, f"the download fails: {error}"
            else:
                return silent.discard(parts.netloc)
            if number < tries - 1:
                time.sleep(PAUSE * 2**number)
    except (http.client.InvalidURL, ValueError) as error:  # also a server's certificate that is not valid
        what, expected = f"cannot be requested: {error}", "an address that exists, and a server that can be trusted"
        raise DownloadFailed(what, where=address, expected=expected) from None
    if not reached:
        silent.add(parts.netloc)
    raise DownloadFailed(what, where=address, remedy="try again later: the download goes on where it ended")


def _download_once(address: str, partial: Path, progress: Progress) -> None:
    """Resume a download if the server still has the same file, else start again. Raises HTTPError, _Interrupted,
    InvalidURL or ValueError for an address that cannot be requested, and OSError for a file that cannot be written.
    """
    note = partial.with_suffix(".json")
    begun = partial.stat().st_size if partial.exists() else 0
    known = _known(note) if begun else {}
    request = urllib.request.Request(address, headers={"User-Agent": f"schedlab/{schedlab.__version__}"})
    if known.get("address") == address and known.get("version"):
        request.add_header("Range", f"bytes={begun}-")
        request.add_header("If-Range", known["version"])
    with _answer(request) as answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {begun}-")
        if not goes_on:
            begun = 0
            tag, date = answer.headers.get("ETag") or "W/", answer.headers.get("Last-Modified") or ""
            version = date if tag.startswith("W/") else tag  # a weak tag also names a file with other bytes
            write_json(note, {"address": address, "version": version})
        length = answer.headers.get("Content-Length")
        whole = begun + int(length) if length and length.isdigit() else None
        with partial.open("ab" if goes_on else "wb") as file:
            for block in _received(answer):  # write what has arrived, so that an interruption loses nothing
                file.write(block)
                begun += len(block)
                if begun > MOST_UNPACKED:
                    partial.unlink()
                    raise DownloadFailed(f"has more than {MOST_UNPACKED:,} bytes", where=address)
                progress(begun, whole)
        if whole is not None and begun < whole:
            raise _Interrupted(http.client.IncompleteRead(b"", whole - begun), reached=True)


def _known(note: Path) -> dict[str, str]:
    """Return what a note says about a begun download; nothing if it is missing or damaged."""
    try:
        known = json.loads(note.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    right = isinstance(known, dict) and all(isinstance(value, str) for value in known.values())
    return known if right else {}


def _answer(request: urllib.request.Request) -> http.client.HTTPResponse:
    """Return the server's answer. Raises HTTPError, _Interrupted, and InvalidURL or ValueError for an address or a
    certificate that is not valid.
    """
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=PATIENCE)
    except (urllib.error.HTTPError, http.client.InvalidURL, ValueError):
        raise
    except urllib.error.URLError as error:  # no connection
        cause = error.reason if isinstance(error.reason, Exception) else error
        if isinstance(cause, ValueError):
            raise cause from None
        raise _Interrupted(cause, reached=False) from None
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(error, reached=True) from None
    return answer


def _received(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield what arrives. Raises _Interrupted."""
    try:
        while block := answer.read1(BLOCK):
            yield block
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(error, reached=True) from None


def _put(address: str, file: FileSettings, partial: Path, target: Path) -> str:
    """Unpack or compress a single file as its names require, check it, and put it in its place."""
    packed, packs = urlsplit(address).path.endswith(".gz"), file.to.endswith(".gz")
    most = file.size if file.size is not None else MOST_UNPACKED
    try:
        found = _hash(_within(_unpacked(partial) if packed else _blocks(partial), most, address))
    except (OSError, EOFError, zlib.error) as error:
        if _is_local(error):
            raise
        raise DownloadFailed(
            f"is no gzip file: {error}", where=address, expected="a file as the catalogue has it"
        ) from None
    _require_hash(address, file, found)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as temporary, temporary.open("wb") as out:
        if packed == packs:
            out.writelines(_blocks(partial))
        elif packed:
            out.writelines(_unpacked(partial))
        else:
            with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as pack:
                for block in _blocks(partial):
                    pack.write(block)
    return found


def _unpack_tar(address: str, partial: Path, archive: ArchiveSettings, target: Path) -> None:
    """Unpack an archive next to the target, check its sample, and put it in its place. Links, and members with paths
    outside the folder, are not written.
    """
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        with tarfile.open(partial) as tar:
            total = 0
            for member in tar:
                name = _below(member.name, archive.below)
                if name is None or not member.isfile() or any(fnmatch(name.name, each) for each in archive.leave_out):
                    continue
                total += member.size
                if total > MOST_UNPACKED:
                    raise DownloadFailed("unpacks to far too much", where=address)
                place = beside / name
                place.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None, "a regular file has content"
                with source, place.open("wb") as out:
                    shutil.copyfileobj(source, out)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        shutil.rmtree(beside, ignore_errors=True)
        if _is_local(error):
            raise
        raise DownloadFailed(f"cannot be unpacked: {error}", where=address, expected="a tar archive") from None
    try:
        if not beside.is_dir():
            raise DownloadFailed(f"holds nothing below '{archive.below}'", where=address)
        for file, wanted in archive.sample.items():
            got = _hash(_blocks(beside / file)) if (beside / file).is_file() else "nothing"
            if got != wanted:
                raise _changed(f"{address}: {file}", "SHA-256", wanted, got)
        _replace_folder(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _is_local(error: Exception) -> bool:
    """Return whether the system reports an error, of a file that cannot be written. The readers of gzip, bzip2 and tar
    raise OSErrors without number for content that is not valid.
    """
    return isinstance(error, OSError) and error.errno is not None


def _replace_folder(new: Path, target: Path) -> None:
    """Replace a folder by another one; if that fails, the old one stays."""
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _below(name: str, pattern: str) -> Path | None:
    """Return the path of an archive's member below the extracted folder; None if it is elsewhere or its path leaves the
    folder.
    """
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        return None
    depth = len(PurePosixPath(pattern).parts)
    if pattern and not (len(parts) > depth and fnmatch("/".join(parts[:depth]), pattern)):
        return None
    rest = parts[depth:]
    return Path(*rest) if rest else None


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file's content, unpacked if its name ends in .gz."""
    return _hash(_unpacked(path) if path.suffix == ".gz" else _blocks(path))


def _require_hash(address: str, file: FileSettings, found: str) -> None:
    if file.sha256 and found != file.sha256:
        raise _changed(address, "SHA-256", file.sha256, found)


def _changed(address: str, kind: str, wanted: str, got: str) -> DownloadFailed:
    remedy = "if the source has changed its file, look at what changed before you pin the new hash in conf/download"
    return DownloadFailed(f"is another file: its {kind} is {got}", where=address, expected=wanted, remedy=remedy)


def _hash(blocks: Iterator[bytes], kind: str = "sha256") -> str:
    found = hashlib.new(kind, usedforsecurity=False)
    for block in blocks:
        found.update(block)
    return found.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _read(file)


def _unpacked(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        yield from _read(file)


def _read(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _within(blocks: Iterator[bytes], most: int, address: str) -> Iterator[bytes]:
    """Yield the blocks. Raises DownloadFailed if they have more than `most` bytes."""
    total = 0
    for block in blocks:
        total += len(block)
        if total > most:
            raise DownloadFailed(f"is another file: it has more than {most:,} bytes", where=address)
        yield block
