"""`schedlab manifest check`: differences from a manifest or a record, and their causes; `schedlab manifest record`: the
record of a run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError, counted

if TYPE_CHECKING:
    from schedlab.evaluation.manifest import AcceptedEntry, Manifest
    from schedlab.evaluation.manifest_differences import Differences

NAME = "manifest.json"


def add_manifest_commands(commands: Any) -> None:
    """Add `schedlab manifest` to the parser's commands."""
    group = commands.add_parser("manifest", help="origin of every figure: results/<scale>/manifest.json")
    group.set_defaults(run=lambda _: _help(group))
    inner = group.add_subparsers(title="commands", metavar="COMMAND")
    check = inner.add_parser(
        "check", help="report differences from a manifest and their causes; exit status 1 if there are any"
    )
    check.add_argument(
        "manifest", nargs="?", help="a manifest.json, or the folder that holds one (default: all of results/)"
    )
    check.add_argument(
        "--against",
        metavar="OTHER",
        help="another manifest.json, results folder or record; default: the present files",
    )
    check.add_argument(
        "--exact", action="store_true", help="no tolerance for learned values, because both were made on one machine"
    )
    check.set_defaults(run=lambda chosen: check_manifests(chosen.manifest, chosen.against, exact=chosen.exact))
    record = inner.add_parser(
        "record", help="print a record of a run (hashes and summaries), to compare later runs with"
    )
    record.add_argument("manifest", help="a manifest.json, or the folder that holds one")
    record.set_defaults(run=lambda chosen: print_record(chosen.manifest))


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 2


def check_manifests(given: str | None, against: str | None, *, exact: bool) -> int:
    """Print a line for each difference and one with their number; return 1 if there are differences. Raises
    UserError.
    """
    places = [Path(given)] if given else sorted(Path("results").glob(f"*/{NAME}"))
    if not places:
        raise UserError(
            f"there is no results/*/{NAME}", expected="a finished run", remedy="run snakemake, or name a manifest"
        )
    if against and len(places) > 1:
        raise UserError("--against compares one manifest with another", remedy="name the first one, too")
    return max(_check(place, against, exact=exact) for place in places)


def print_record(given: str) -> None:
    """Print the record of a run as JSON. Raises UserError."""
    import json

    from schedlab.evaluation.manifest import read_manifest
    from schedlab.evaluation.run_hashes import record_of

    place = Path(given)
    record = record_of(read_manifest(place), _root(place))
    print(json.dumps(record.model_dump(mode="json", exclude_none=True), indent=1, sort_keys=True))


def _check(place: Path, against: str | None, *, exact: bool) -> int:
    from schedlab.evaluation.manifest import build, read_manifest, root_of
    from schedlab.evaluation.manifest_differences import Side, differences, stale_steps
    from schedlab.evaluation.run_hashes import is_record

    recorded, root = read_manifest(place), root_of(place)
    if against and is_record(against):
        if exact:
            remedy = "compare with a manifest, or leave --exact out"
            raise UserError("a record holds no hashes of what is fitted or learned", where="--exact", remedy=remedy)
        return _check_record(recorded, _root(place), against)
    accepted = list[str]()
    if against:
        other = Side(read_manifest(against), "there", root_of(against))
        found = differences(Side(recorded, "here", root), other, tolerant=not exact)
    else:
        root = _root(place, "name another manifest to compare it with: --against")
        now = build(root, recorded.scale, recorded.studies)
        accepted = [_accepted(entry) for entry in now.accepted]
        found = differences(Side(recorded, "recorded", root), Side(now, "found", root), tolerant=False)
        found.lines += stale_steps(now, recorded, root)
    print("\n".join([*found.lines, *accepted, _count(recorded, found)]))
    return int(bool(found.lines))


def _check_record(manifest: Manifest, root: Path, against: str) -> int:
    from schedlab.evaluation.run_hashes import compare, read_record

    found = compare(manifest, root, read_record(against))
    agree = (
        f"{counted(found.same, 'file')} with the same bytes, {found.by_value} by their values, {found.present} "
        "are there"
    )
    how_many = f"{counted(len(found.lines), 'difference')} from" if found.lines else "nothing differs from"
    print("\n".join([*found.lines, f"{how_many} {against}: {agree}"]))
    return int(bool(found.lines))


def _root(place: Path, remedy: str = "name the manifest where it was written") -> Path:
    """Return the folder to which a manifest's paths are relative. Raises UserError if its files are not available."""
    from schedlab.evaluation.manifest import root_of

    if (root := root_of(place)) is None:
        raise UserError(
            "the files of this manifest are not at hand",
            where=str(place),
            expected="results/<scale>/manifest.json in the folder that holds results/ and plots/",
            remedy=remedy,
        )
    return root


def _accepted(entry: AcceptedEntry) -> str:
    """Return a sentence about results that `schedlab accept` has kept valid."""
    code = f"code {entry.accepted_for}" + (f" (commit {entry.commit[:12]})" if entry.commit else "")
    what = f"results of {counted(len(entry.steps), 'job')}, made with commit {entry.made_by[:12]}"
    return f"accepted: {what}, count as made by {code}: {entry.by}, {entry.when}"


def _count(recorded: Manifest, found: Differences) -> str:
    compared = f"{counted(found.files, 'file')} of {counted(len(recorded.figures), 'figure')} at scale {recorded.scale}"
    also = f", {found.tolerated} of them within tolerance" if found.tolerated else ""
    also += (
        f"; {found.not_compared} learned parameters and curves have other bytes, as they may"
        if found.not_compared
        else ""
    )
    if not found.lines:
        return f"nothing differs: {compared} agree{also}"
    return f"{counted(len(found.lines), 'difference')} in {compared}{also}"
