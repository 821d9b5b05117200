"""`schedlab data`: lists, downloads and checks the third-party data that studies use."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from schedlab.config.contract import Subcommands
from schedlab.config.errors import UserError

if TYPE_CHECKING:
    from schedlab.config.data_paths import FileSettings

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
            parser.add_argument("--base-url", type=_address, metavar="URL", help=what)
            parser.add_argument("--force", action="store_true", help="download again")
        parser.set_defaults(run=run)


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an end, or a port that is no number
        right = False
    if not right:
        raise argparse.ArgumentTypeError(f"'{text}' is no address, as http://mirror.example:8000")
    return text


def _catalogue(arguments: argparse.Namespace) -> dict[str, Any]:
    from schedlab.config.data_paths import read_catalogue

    return read_catalogue(Path(arguments.conf))


def _list(arguments: argparse.Namespace) -> int:
    from schedlab.config.runtime.download import data_folder, place_of

    folder, catalogue = data_folder(arguments.data_dir), _catalogue(arguments)
    print(f"{'name':22}{'files':>6}  {'there':>5}  {'size, MB':>9}  purpose; licence")
    for name, entry in sorted(catalogue.items()):
        there = sum(place_of(file, arguments.data_dir).exists() for file in entry.files)
        about = f"{entry.purpose}; {entry.licence}"
        print(f"{name:22}{len(entry.files):>6}  {there:>5}  {_size(entry.files):>9}  {about}")
    print(f"data folder: {folder}")
    return 0


def _size(files: Iterable[FileSettings]) -> str:
    """Return the unpacked size of files in MB; with `>` if the catalogue states that of some alone, `-` if of none."""
    sizes = [file.size for file in files]
    known = [size for size in sizes if size is not None]
    return f"{'' if len(known) == len(sizes) else '>'}{sum(known) / 1e6:.2f}" if known else "-"


def _get(arguments: argparse.Namespace) -> int:
    from schedlab.config.data_paths import chosen
    from schedlab.config.runtime.download import data_folder, get_entries

    entries = chosen(_catalogue(arguments), arguments.names)
    folder, mirror = data_folder(arguments.data_dir), arguments.base_url or ""
    failures = get_entries(entries, folder, sys.stderr, mirror, arguments.force)
    if failures:
        print(f"error: {len(failures)} of the files could not be had", file=sys.stderr)
    return int(bool(failures))


def _check(arguments: argparse.Namespace) -> int:
    from schedlab.config.data_paths import chosen
    from schedlab.config.runtime.download import place_of, state_of

    catalogue = _catalogue(arguments)
    entries = chosen(catalogue, arguments.names) if arguments.names else list(catalogue.values())
    wrong = 0
    for entry in entries:
        for file in entry.files:
            path = place_of(file, arguments.data_dir)
            state = state_of(path, file)
            if state == "absent" and not arguments.names:
                continue
            wrong += state in ("wrong", "absent")
            print(f"{entry.name}: {path}: {STATES[state]}")
    if wrong:
        remedy = "get them: schedlab data get NAME, with --force where the content is another one"
        print(str(UserError(f"{wrong} of the files are not as the catalogue has them", remedy=remedy)), file=sys.stderr)
    return int(wrong > 0)
