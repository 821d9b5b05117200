"""The commands `schedlab new study|scenario|policy|platform`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

ABOUT = "begin a study in a directory, or a file of a scenario, policy or platform"


def add_new_commands(commands: Any, conf: argparse.ArgumentParser) -> None:
    """Add `new study|scenario|policy|platform`; a study must not have the name of one of `commands`."""
    new = commands.add_parser("new", help=ABOUT, description=ABOUT)
    parts = new.add_subparsers(title="commands", metavar="COMMAND", required=True)

    about = "write a directory with a small study that can be run immediately"
    study = parts.add_parser("study", help=about, description=about)
    study.add_argument("name", metavar="NAME", help="name of the study and of its Python package")
    study.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="empty or new directory (default: ./NAME)")
    study.set_defaults(run=_study, taken=commands.choices)

    for kind, run, name in (
        ("scenario", _scenario, "STUDY/NAME"),
        ("policy", _policy, "STUDY/NAME"),
        ("platform", _platform, "NAME"),
    ):
        place = f"conf/{kind}/{name}.yaml"
        parser = parts.add_parser(kind, parents=[conf], help=f"write {place}", description=f"Write {place}.")
        parser.add_argument(
            "name", metavar=name, help="an existing study and a new name" if "/" in name else "new name"
        )
        parser.set_defaults(run=run)
        if kind == "policy":
            parser.add_argument("--learner", default="", help="learner of the study (default: a stock learner if any)")


def _study(arguments: argparse.Namespace) -> int:
    from schedlab.cli.new.study import new_study

    return new_study(arguments.name, arguments.folder or Path(arguments.name), arguments.taken)


def _scenario(arguments: argparse.Namespace) -> int:
    from schedlab.cli.new.files import new_scenario

    return new_scenario(arguments.conf, arguments.name)


def _policy(arguments: argparse.Namespace) -> int:
    from schedlab.cli.new.files import new_policy

    return new_policy(arguments.conf, arguments.name, arguments.learner)


def _platform(arguments: argparse.Namespace) -> int:
    from schedlab.cli.new.files import new_platform

    return new_platform(arguments.conf, arguments.name)
