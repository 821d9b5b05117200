"""`schedlab data`: lists, gets and checks the data of others that studies use."""

from __future__ import annotations

import argparse
import os
import sys
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from schedlab.config.contract import Subcommands
from schedlab.config.errors import UserError

ABOUT = "third-party data sets that studies use: list, get, check"
STATES = {"right": "there", "wrong": "another content", "absent": "not there", "unpinned": "there, no hash to check"}


def add_data_commands(commands: Subcommands, conf: argparse.ArgumentParser) -> None:
    """Add `data list|get|check`."""
    data = commands.add_parser("data", help=ABOUT, description=ABOUT)
    parts = data.add_subparsers(title="commands", metavar="COMMAND", required=True)
    where = argparse.ArgumentParser(add_help=False)
    what = "data folder (default: the folder that SCHEDLAB_DATA names, else resources/data)"
    where.add_argument("--data-dir", type=Path, metavar="DIR", help=what)
    for name, run, about in (
        ("list", _list, "list which data sets can be downloaded, and which are there"),
        ("get", _get, "download data sets, check and unpack them"),
        ("check", _check, "compare the data sets that are there with the hashes of the catalogue"),
    ):
        parser = parts.add_parser(name, parents=[conf, where], help=about, description=about)
        if name != "list":
            what = "names of data sets, or all" + (" (default: those that are there)" if name == "check" else "")
            parser.add_argument("names", nargs="+" if name == "get" else "*", metavar="NAME", help=what)
        if name == "get":
            what = "address of a mirror, which replaces scheme and host of every address"
            parser.add_argument("--base-url", type=_address, default="", metavar="URL", help=what)
            parser.add_argument("--force", action="store_true", help="download again")
        parser.set_defaults(run=run)


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise argparse.ArgumentTypeError(f"'{text}' is no address, as http://mirror.example:8000")
    return text


def _folder(arguments: argparse.Namespace) -> Path:
    from schedlab.config.data_paths import DATA_VARIABLE, LOCAL_DATA

    return arguments.data_dir or Path(os.environ.get(DATA_VARIABLE) or LOCAL_DATA)


def _catalogue(arguments: argparse.Namespace) -> dict[str, Any]:
    from schedlab.config.data_paths import read_catalogue

    return read_catalogue(Path(arguments.conf))


def _state(folder: Path, file: Any) -> str:
    """Whether a file is there with the right content: a key of STATES."""
    from schedlab.config.runtime.download import content_hash

    path = folder / file.to
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
    except (OSError, EOFError, zlib.error):  # its name ends in .gz, and it is something else
        return "wrong"


def _list(arguments: argparse.Namespace) -> int:
    folder, catalogue = _folder(arguments), _catalogue(arguments)
    print(f"{'name':22}{'files':>6}  {'there':>5}  purpose; licence")
    for name, entry in catalogue.items():
        there = sum((folder / file.to).exists() for file in entry.files)
        print(f"{name:22}{len(entry.files):>6}  {there:>5}  {entry.purpose}; {entry.licence}")
    print(f"data folder: {folder}")
    return 0


def _get(arguments: argparse.Namespace) -> int:
    from schedlab.config.data_paths import chosen
    from schedlab.config.runtime.download import PARTS, DownloadFailed, fetch

    folder, catalogue = _folder(arguments), _catalogue(arguments)
    failed = 0
    for entry in chosen(catalogue, arguments.names):
        print(f"{entry.name}: {entry.purpose}\n  licence: {entry.licence}")
        if entry.citation:
            print(f"  cite: {entry.citation}")
        for number, file in enumerate(entry.files):
            if not arguments.force and _state(folder, file) in ("right", "unpinned"):
                print(f"  {file.to}: is there")
                continue
            partial = folder / PARTS / f"{entry.name}-{number}.part"
            address = entry.address(file, arguments.base_url)
            with _Line(file.to) as progress:
                try:
                    found = fetch(address, file, folder / file.to, partial, progress)
                except DownloadFailed as error:
                    failed += 1
                    progress.clear()
                    print(f"error: {error}", file=sys.stderr)
                    continue
            print(f"  {file.to}: got, SHA-256 {'as pinned' if file.sha256 else found}")
            if not file.sha256 and not file.md5 and not (file.archive and file.archive.sample):
                print(f"    pin it in conf/download/{entry.name}.yaml: files.{number}.sha256")
    if failed:
        print(f"error: {failed} of the files could not be had", file=sys.stderr)
    return int(failed > 0)


def _check(arguments: argparse.Namespace) -> int:
    from schedlab.config.data_paths import chosen

    folder, catalogue = _folder(arguments), _catalogue(arguments)
    entries = chosen(catalogue, arguments.names) if arguments.names else list(catalogue.values())
    wrong = 0
    for entry in entries:
        for file in entry.files:
            state = _state(folder, file)
            if state == "absent" and not arguments.names:
                continue
            wrong += state in ("wrong", "absent")
            print(f"{entry.name}: {folder / file.to}: {STATES[state]}")
    if wrong:
        remedy = "get them: schedlab data get NAME, with --force where the content is another one"
        print(str(UserError(f"{wrong} of the files are not as the catalogue has them", remedy=remedy)), file=sys.stderr)
    return int(wrong > 0)


class _Line:
    """One line of a terminal that shows how far a download is; nothing where standard error is no terminal."""

    def __init__(self, name: str) -> None:
        self.name, self.shown = name, sys.stderr.isatty()

    def __call__(self, done: int, whole: int | None) -> None:
        if self.shown:
            share = f" of {whole / 1e6:.1f} MB ({done / whole:.0%})" if whole else " MB"
            print(f"\r\033[K  {self.name}: {done / 1e6:.1f}{share}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
