"""`schedlab trace`: describes, cleans, trims and draws traces (Lublin-Feitelson model), and converts them to workloads
of Batsim.
"""

from __future__ import annotations

import argparse
import json
import logging
from typing import TYPE_CHECKING, Any

from schedlab.cli.options import count, key_values, typed_options, whole_numbers
from schedlab.config.contract import Subcommands
from schedlab.config.files import check_output_files, write_json

if TYPE_CHECKING:
    from schedlab.workloads.trace import Trace

SUMMARY = "traces of batch jobs: describe, clean, trim, lublin, to-batsim"
OUT_HELP = "SWF file to write; compressed if the name ends in .gz"
LOAD_TOLERANCE = 0.01  # a larger relative difference from the requested load gives a warning
UNITS = {"run": " (s)", "time_requested": " (s)", "gap": " (s)"}  # units of distributions
log = logging.getLogger("schedlab.trace")


def add_trace_commands(commands: Subcommands) -> None:
    """Add `trace describe|clean|trim|lublin|to-batsim`."""
    trace = commands.add_parser("trace", help=SUMMARY, description=SUMMARY)
    parts = trace.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_describe(parts)
    _add_clean(parts)
    _add_trim(parts)
    _add_lublin(parts)
    _add_to_batsim(parts)


def _add_describe(parts: Subcommands) -> None:
    parser = parts.add_parser("describe", help="counts, oddities, distributions and arrivals of a trace")
    _add_file(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument(
        "--pictures", metavar="PREFIX", help="write PREFIX.svg, .pdf, .png and the caption as PREFIX.txt"
    )
    parser.set_defaults(run=_describe)


def _add_clean(parts: Subcommands) -> None:
    parser = parts.add_parser("clean", help="drop or repair jobs that a simulation cannot run, and count them")
    _add_file(parser)
    parser.add_argument("output", metavar="OUT", help=OUT_HELP)
    parser.add_argument("--profile", help="default, rlscheduler (that of the published numbers) or none")
    parser.add_argument(
        "--set", dest="rules", metavar="RULE=ACTION", action="append", default=[], help="change a rule of the profile"
    )
    parser.add_argument(
        "--shift", action="store_const", const=True, help="shift submit times so that the first job arrives at 0"
    )
    parser.add_argument("--report", metavar="JSON", help="write the counts")
    parser.set_defaults(run=_clean)


def _add_trim(parts: Subcommands) -> None:
    parser = parts.add_parser("trim", help="select a part of a trace")
    _add_file(parser)
    parser.add_argument("output", metavar="OUT", help=OUT_HELP)
    parser.add_argument("--users", type=whole_numbers, metavar="1,5,8", help="jobs of these users")
    parser.add_argument("--start", type=float, metavar="S", help="jobs submitted at or after a time of the trace, in s")
    parser.add_argument("--end", type=float, metavar="S", help="jobs submitted before a time")
    parser.add_argument("--first", type=int, metavar="N", help="skip the first N jobs of the part")
    parser.add_argument("--count", type=int, metavar="N", help="then keep N jobs")
    parser.add_argument(
        "--load",
        type=float,
        metavar="L",
        help="of all sequences of --count jobs, the one with the nearest offered load",
    )
    parser.add_argument(
        "--keep-times", action="store_true", help="keep submit times; default: the first job arrives at 0"
    )
    parser.add_argument(
        "--scale-load", type=float, metavar="L", help="then stretch the arrival times to this offered load"
    )
    parser.set_defaults(run=_trim)


def _add_lublin(parts: Subcommands) -> None:
    parser = parts.add_parser("lublin", help="a trace from the model of Lublin and Feitelson")
    parser.add_argument("output", metavar="OUT", help=OUT_HELP)
    parser.add_argument("--jobs", type=int, help="default: 10000")
    parser.add_argument("--processors", type=int, help="size of the machine (default: 128)")
    parser.add_argument("--types", help="typeless (default), or typed: batch and interactive jobs")
    parser.add_argument("--load", type=float, help="offered load to reach (default: what the model gives)")
    parser.add_argument("--estimates", help="requested times: perfect (default), factor, menu or none")
    parser.add_argument("--factor", type=float, help="largest over-estimation (factor, menu; default: 5)")
    parser.add_argument("--users", type=int, help="users among whom jobs are spread (default: 0, none)")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.set_defaults(run=_lublin)


def _add_to_batsim(parts: Subcommands) -> None:
    parser = parts.add_parser("to-batsim", help="a workload of Batsim with memory and memory bandwidth, for a platform")
    _add_file(parser)
    parser.add_argument("output", metavar="OUT", help="workload file (JSON) to write")
    parser.add_argument(
        "--platform", required=True, help="a shipped platform (gaia), a platform description or a hierarchy (JSON)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="maximum number of jobs")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument(
        "--first-submit", type=float, metavar="S", help="submit time of the first job, in s (default: 0)"
    )
    parser.add_argument(
        "--runtime", help="run times: drawn (a random share of the requested time; default), requested or trace"
    )
    parser.add_argument(
        "--walltime",
        help="time limit of jobs: none (default), requested, or slowest_core (requested work on the slowest core)",
    )
    parser.add_argument(
        "--missing-memory",
        type=whole_numbers,
        metavar="MB,MB",
        help="memory per core of jobs without a value, drawn from these",
    )
    parser.add_argument("--infeasible", help="jobs that the platform cannot run: skip (default), clip, refuse or keep")
    parser.add_argument(
        "--cleaning", metavar="PROFILE", help="cleaning profile, applied first (default: default; with --compat: none)"
    )
    parser.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    parser.add_argument("--limits", metavar="JSON", help="write the job limits")
    parser.add_argument("--report", metavar="JSON", help="write how many jobs were kept, skipped and clipped, and why")
    parser.set_defaults(run=_to_batsim)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="trace in the Standard Workload Format, plain or gzip")
    parser.add_argument(
        "--processors", type=count, metavar="P", help="size of the machine, if the header lacks it or is wrong"
    )


def _read(arguments: argparse.Namespace) -> Trace:
    from schedlab.workloads.swf import read_swf

    return read_swf(arguments.file).with_processors(arguments.processors)


def _describe(arguments: argparse.Namespace) -> int:
    from schedlab.workloads.statistics import statistics

    trace = _read(arguments)
    found = statistics(trace)
    if arguments.pictures:
        from schedlab.config.settings import ThemeSettings
        from schedlab.figures import save, theme
        from schedlab.workloads.pictures import draw_trace

        with theme.applied(ThemeSettings()):
            for path in save.save(draw_trace(trace), arguments.pictures):
                log.info("wrote %s", path)
    print(json.dumps(found, indent=2) if arguments.json else "\n".join(table(found)))
    return 0


def table(found: dict[str, Any]) -> list[str]:
    """Return lines for readers: single values, then the oddities that occur, then distributions in columns, with
    units.
    """
    plain = {name: value for name, value in found.items() if not isinstance(value, (dict, list))}
    lines = [f"{name:<28}{'unknown' if value is None else _short(value)}" for name, value in plain.items()]
    lines += [f"{name:<28}{count}" for name, count in found["oddities"].items() if count]
    distributions = {name: value for name, value in found.items() if isinstance(value, dict) and name != "oddities"}
    if distributions:
        columns = list(next(iter(distributions.values())))
        lines += ["", " " * 22 + "".join(f"{column:>11}" for column in columns)]
        lines += [
            f"{name + UNITS.get(name, ''):<22}" + "".join(f"{_short(value[column]):>11}" for column in columns)
            for name, value in distributions.items()
        ]
    return lines


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _clean(arguments: argparse.Namespace) -> int:
    from schedlab.workloads.clean import CleaningSettings
    from schedlab.workloads.prepare import read_log
    from schedlab.workloads.swf import write_swf

    check_output_files({"OUT": arguments.output, "--report": arguments.report})
    check_output_files({"--report": arguments.report}, {"FILE": arguments.file})  # OUT may replace FILE
    options = {"profile": arguments.profile, "shift": arguments.shift}
    given = {name: value for name, value in options.items() if value is not None}
    size = {} if arguments.processors is None else {"machine_processors": arguments.processors}
    rules = key_values(arguments.rules, "--set")
    cleaning = typed_options(CleaningSettings, size | rules | given, rules.keys() - given.keys())
    cleaned, report = read_log(arguments.file, cleaning)
    write_swf(arguments.output, cleaned)
    if arguments.report:
        write_json(arguments.report, report.values())
    print(f"{report.kept} of {report.records} jobs kept")
    for rule, action, jobs in report.rows():
        print(f"{rule:<18}{jobs:>9}  {action}")
    return 0


def _trim(arguments: argparse.Namespace) -> int:
    from schedlab.workloads.swf import write_swf
    from schedlab.workloads.trace import offered_load
    from schedlab.workloads.trim import TrimSettings, scale_load, trim

    names = ("users", "start", "end", "first", "count", "load")
    settings = typed_options(
        TrimSettings, {name: getattr(arguments, name) for name in names} | {"shift": not arguments.keep_times}
    )
    piece = trim(_read(arguments), settings)
    if arguments.count is not None and len(piece.jobs) < arguments.count:
        log.warning("warning: the trace ends after %d of --count %d jobs", len(piece.jobs), arguments.count)
    if arguments.scale_load is not None:
        piece = scale_load(piece, arguments.scale_load)
    write_swf(arguments.output, piece)
    load = offered_load(piece)
    _warn_of_load(load, arguments.scale_load)
    print(f"{len(piece.jobs)} jobs" + ("" if load is None else f", offered load {load:.4g}"))
    return 0


def _lublin(arguments: argparse.Namespace) -> int:
    from schedlab.config.schema import validate
    from schedlab.workloads.estimates import EstimateSettings
    from schedlab.workloads.lublin import LublinSettings, lublin
    from schedlab.workloads.swf import write_swf
    from schedlab.workloads.trace import offered_load

    asked = {"model": arguments.estimates, "factor": arguments.factor}
    values = {name: getattr(arguments, name) for name in ("jobs", "processors", "types", "load", "users")}
    values["estimates"] = {name: value for name, value in asked.items() if value is not None}
    validate(EstimateSettings, values["estimates"], lambda path: {"model": "--estimates"}.get(path[0], "--factor"))
    trace = lublin(typed_options(LublinSettings, values), arguments.seed)
    write_swf(arguments.output, trace)
    load = offered_load(trace)
    _warn_of_load(load, arguments.load)
    print(
        f"{len(trace.jobs)} jobs on {trace.processors} processors"
        + ("" if load is None else f", offered load {load:.4g}")
    )
    return 0


def _warn_of_load(load: float | None, asked: float | None) -> None:
    """Warn if submit times, which are whole seconds, miss the requested load by more than LOAD_TOLERANCE."""
    if asked is not None and (load is None or abs(load / asked - 1) > LOAD_TOLERANCE):
        reached = "not defined: all jobs are submitted at one time" if load is None else f"{load:.4g}"
        log.warning("warning: the offered load is %s; %g cannot be reached in whole seconds", reached, asked)


def _to_batsim(arguments: argparse.Namespace) -> int:
    from schedlab.config.schema import validate
    from schedlab.platforms.generate import find_hierarchy
    from schedlab.workloads.batsim_file import job_limits, write_batsim
    from schedlab.workloads.clean import CleaningSettings, clean
    from schedlab.workloads.to_batsim import REFERENCE, BatsimSettings, to_batsim

    results = {"OUT": arguments.output, "--limits": arguments.limits, "--report": arguments.report}
    check_output_files(results, {"FILE": arguments.file, "--platform": arguments.platform})
    names = ("jobs", "first_submit", "runtime", "walltime", "missing_memory", "infeasible")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    settings = typed_options(BatsimSettings, {**(REFERENCE if arguments.compat else {}), **given})
    profile = arguments.cleaning or ("none" if arguments.compat else "default")
    rules = validate(CleaningSettings, {"profile": profile}, lambda _: "--cleaning")
    cleaned, cleaning = clean(_read(arguments), rules)
    workload, report = to_batsim(cleaned, find_hierarchy(arguments.platform), settings, arguments.seed)
    limits = job_limits(workload, legacy_zero_limits=settings.legacy_zero_limits)
    if arguments.limits:
        write_json(arguments.limits, limits)
    if arguments.report:
        write_json(arguments.report, {"cleaning": cleaning.values(), "conversion": report.values(), "limits": limits})
    write_batsim(arguments.output, workload)
    print(f"{report.written} of {report.read} jobs written, {len(workload.profiles)} profiles")
    for reason, jobs in report.reasons.items():
        if jobs:
            print(f"{reason:<18}{jobs:>9}  {settings.infeasible if reason == 'too_large' else 'skip'}")
    return 0
