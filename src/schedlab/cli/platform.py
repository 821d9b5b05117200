"""`schedlab platform`: describe a platform, and generate the XML that Batsim and the embedded simulator read."""

from __future__ import annotations

import argparse
import json

from schedlab.cli.options import key_values, typed_options
from schedlab.config.contract import Subcommands
from schedlab.config.files import check_output_files

SUMMARY = "platforms: describe, generate"
COLUMNS = ("name", "clusters", "nodes", "processors", "cores", "reference_speed_gflops", "power_w", "memory_gb")


def add_platform_commands(commands: Subcommands) -> None:
    """Add `platform describe|generate`."""
    platform = commands.add_parser("platform", help=SUMMARY, description=SUMMARY)
    parts = platform.add_subparsers(title="commands", metavar="COMMAND", required=True)
    describe = parts.add_parser("describe", help="what a platform has in all")
    describe.add_argument(
        "platforms", metavar="PLATFORM", nargs="*", help="shipped name, description or hierarchy (default: all shipped)"
    )
    describe.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    describe.set_defaults(run=_describe)
    generate = parts.add_parser("generate", help="write the XML of a platform")
    generate.add_argument(
        "platform", metavar="PLATFORM", help="shipped name, platform description (JSON), or 'synthetic'"
    )
    generate.add_argument("output", metavar="OUT", help="platform file (XML) to write")
    generate.add_argument("--resources", metavar="JSON", help="write the hierarchy of resources")
    for what in ("networks", "nodes", "processors"):
        generate.add_argument(f"--{what}", metavar="JSON", help=f"a library with your own types of {what}")
    text = "change a setting, for example pstates.idle_power=0.1, or synthetic.nodes=[4,8] of a synthetic platform"
    generate.add_argument("--set", dest="changes", metavar="KEY=VALUE", action="append", default=[], help=text)
    generate.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    generate.set_defaults(run=_generate)


def _describe(arguments: argparse.Namespace) -> int:
    from schedlab.platforms.description import shipped_platforms
    from schedlab.platforms.generate import find_hierarchy

    found = [find_hierarchy(name).totals() for name in arguments.platforms or shipped_platforms()]
    if arguments.json:
        print(json.dumps(found if len(found) > 1 else found[0], indent=2))
        return 0
    width = max(len(totals["name"]) for totals in found)
    print("name".ljust(width) + "".join(f"  {column}" for column in COLUMNS[1:]))
    for totals in found:
        print(totals["name"].ljust(width) + "".join(f"  {totals[column]:>{len(column)}.7g}" for column in COLUMNS[1:]))
    return 0


def _generate(arguments: argparse.Namespace) -> int:
    from schedlab.config.schema import merged
    from schedlab.platforms.description import LIBRARIES
    from schedlab.platforms.generate import generate_platform, name_of
    from schedlab.platforms.settings import REFERENCE, PlatformSettings

    libraries = {name: getattr(arguments, name) for name in LIBRARIES if getattr(arguments, name)}
    read = {"PLATFORM": arguments.platform} | {f"--{name}": file for name, file in libraries.items()}
    check_output_files({"OUT": arguments.output, "--resources": arguments.resources}, read)
    values = {**(REFERENCE if arguments.compat else {}), "name": name_of(arguments.platform)}
    values |= {"libraries": libraries} if libraries else {}
    values |= {"synthetic": {}} if arguments.platform == "synthetic" else {"file": arguments.platform}
    changes = key_values(arguments.changes, "--set")
    settings = typed_options(PlatformSettings, merged(values, changes), changes)
    hierarchy = generate_platform(settings, arguments.output, arguments.resources)
    totals = hierarchy.totals()
    print(f"{totals['name']}: {totals['clusters']} clusters, {totals['nodes']} nodes, {totals['cores']} cores")
    return 0
