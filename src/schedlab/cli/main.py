"""The `schedlab` command: defines the common sub-commands, and adds those of a study through the study's interface."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import schedlab
from schedlab.cli.batsim import add_batsim_command
from schedlab.cli.data import add_data_commands
from schedlab.cli.manifest import add_manifest_commands
from schedlab.cli.new.commands import add_new_commands
from schedlab.cli.options import Parser
from schedlab.cli.platform import add_platform_commands
from schedlab.cli.record import add_record_command
from schedlab.cli.sim import add_sim_commands
from schedlab.cli.trace import add_trace_commands
from schedlab.config.errors import UserError
from schedlab.config.plugins import load_object
from schedlab.config.runtime import instructions
from schedlab.stages import studies


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status (0 done, 1 the work failed, 2 wrong input).

    Results are printed to standard output, logs and errors to standard error; a user's mistake and an error of the disk
    are reported without a traceback.
    """
    instructions.pin()  # before any numerical library is imported
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(arguments[0] if arguments else "")
    own, words = (arguments[:1], arguments[1:]) if arguments[:1] == ["run"] else (arguments, [])
    chosen = parser.parse_args(own, argparse.Namespace(words=words))
    if not hasattr(chosen, "run"):
        parser.print_help()
        return 2
    logging.basicConfig(handlers=[_StandardError()], format="%(message)s")
    logging.getLogger("schedlab").setLevel(logging.INFO)
    try:
        run = load_object(chosen.run) if isinstance(chosen.run, str) else chosen.run
        status = int(run(chosen) or 0)
        sys.stdout.flush()
        return status
    except UserError as error:
        print("\n".join(f"error: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if (name := (error.name or "").partition(".")[0]) in ("", "schedlab"):
            raise
        print(f"error: {name} is not installed; run: pip install 'schedlab[all]'", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for buffered output that is flushed at the end
        return 0
    except (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        print(f"error: {error.filename}: {error.strerror}; expected a path where a file can lie.", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # standard output may have caused the error
        return 1
    except KeyboardInterrupt:
        return 130


def batsim() -> int:
    """Run `schedlab sim batsim` with the arguments of the process: the console script `batsim`."""
    return main(["sim", "batsim", *sys.argv[1:]])


def hdeeprm_launch() -> int:
    """Run `schedlab hetero launch` with the arguments of the process: the console script that HDeepRM's users know."""
    return main(["hetero", "launch", *sys.argv[1:]])


class _StandardError(logging.StreamHandler):
    """Writes to the present standard error, which may change if a caller runs several commands."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        """The present standard error."""
        return sys.stderr


def _parser(first: str) -> argparse.ArgumentParser:
    parser = Parser(prog="schedlab", description=schedlab.__doc__)
    parser.add_argument("--version", action="version", version=f"schedlab {schedlab.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    conf = Parser(add_help=False)
    conf.add_argument("--conf", default="conf", metavar="DIR", help="configuration folder (default: ./conf)")

    check = commands.add_parser(
        "check", parents=[conf], help="check every file of conf/ and list scenarios and policies"
    )
    check.add_argument(
        "only",
        nargs="?",
        default="",
        metavar="NAME",
        help="print only the lines of a study, or of STUDY/SCENARIO or STUDY/POLICY",
    )
    check.add_argument("--scale", default="all", help="smoke, small, full, paper or all (default)")
    check.set_defaults(run=_run_check)

    _add_workflow_commands(commands)
    doctor = commands.add_parser(
        "doctor", parents=[conf], help="report what this machine offers, and which parts of the pipeline can run"
    )
    doctor.set_defaults(run=_run_doctor)

    claims = commands.add_parser("claims", parents=[conf], help="published claims, and the values measured here")
    claims.add_argument("--study", help="one study only")
    claims.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    claims.set_defaults(run=_run_claims)

    export = commands.add_parser(
        "export", parents=[conf], help="the frozen configuration of a scenario or policy as TOML or YAML"
    )
    export.add_argument("scenario", metavar="NAME", help="STUDY/SCENARIO or STUDY/POLICY")
    export.add_argument("values", nargs="*", metavar="KEY=VALUE", help="other values for keys of its file")
    export.add_argument("--scale", default="small", help="scale (default: small)")
    export.add_argument("--format", choices=("toml", "yaml"), default="toml", help="default: toml")
    export.set_defaults(run=_run_export)

    parameters = commands.add_parser(
        "parameters", parents=[conf], help="every key of conf/, as the page docs/reference/parameters.md"
    )
    parameters.set_defaults(run=_run_parameters)

    add_manifest_commands(commands)
    add_record_command(commands, conf)
    add_data_commands(commands, conf)
    add_trace_commands(commands)
    add_platform_commands(commands)
    add_batsim_command(add_sim_commands(commands))
    add_new_commands(commands, conf)

    if first in commands.choices and first != "new":  # only `new` needs all names, and finding them takes long
        return parser
    for name, summary in studies.summaries().items():
        study = commands.add_parser(name, help=summary.replace("%", "%%"), description=summary)
        if first == name:  # only the selected study is imported, because an import takes time
            _add_study(study, name)
    return parser


def _add_workflow_commands(commands: Any) -> None:
    run = commands.add_parser("run", help="run the workflow (arguments of snakemake; --config is checked first)")
    run.set_defaults(run=_run_workflow)

    about = "which share of the last run's jobs in a directory has finished"
    status = commands.add_parser("status", help=about, description=about)
    status.add_argument("--directory", type=Path, default=Path(), metavar="DIR", help="of the run (default: this one)")
    status.add_argument("--json", action="store_true", help="one JSON document instead of lines")
    status.set_defaults(run=_run_status)

    accept = commands.add_parser(
        "accept", help="keep results valid after a refactoring, if scale smoke has the same bytes as before"
    )
    accept.add_argument(
        "studies", nargs="*", metavar="STUDY", help="studies whose results are kept valid (default: all)"
    )
    accept.set_defaults(run=_run_accept)


def _add_study(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the commands of a study. If it has none or cannot be imported, its command raises UserError when it is
    run.
    """
    try:
        commands = studies.load(name).commands
    except UserError as error:
        parser.set_defaults(run=partial(_refuse, error))
        return
    if not commands:
        parser.set_defaults(run=partial(_refuse, UserError(f"the study '{name}' has no commands")))
    else:
        load_object(commands)(parser.add_subparsers(title="commands", metavar="COMMAND", required=True))


def _refuse(error: UserError, arguments: argparse.Namespace) -> int:
    del arguments
    raise error


def _run_check(arguments: argparse.Namespace) -> int:
    from schedlab.cli.check import check

    return check(arguments.conf, arguments.scale, arguments.only)


def _run_status(arguments: argparse.Namespace) -> int:
    from schedlab.cli.run import show_status

    return show_status(arguments)


def _run_workflow(arguments: argparse.Namespace) -> int:
    from schedlab.cli.run import run

    return run(arguments.words)


def _run_accept(arguments: argparse.Namespace) -> int:
    from schedlab.cli.accept import accept

    return accept(arguments.studies)


def _run_doctor(arguments: argparse.Namespace) -> int:
    from schedlab.cli.doctor import doctor

    return doctor(arguments.conf)


def _run_parameters(arguments: argparse.Namespace) -> int:
    from schedlab.cli.configuration import parameters

    return parameters(arguments.conf)


def _run_claims(arguments: argparse.Namespace) -> int:
    from schedlab.cli.claims import claims

    return claims(arguments.conf, arguments.study, as_json=arguments.json)


def _run_export(arguments: argparse.Namespace) -> int:
    from schedlab.cli.configuration import export

    return export(arguments.scenario, arguments.conf, arguments.scale, arguments.format, arguments.values)


if __name__ == "__main__":
    sys.exit(main())
