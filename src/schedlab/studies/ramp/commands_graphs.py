"""The command `schedlab ramp graphs`: a set of graphs in numbers, as files, and as a picture."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError, UserErrors, did_you_mean

if TYPE_CHECKING:
    from schedlab.studies.ramp.graph import ForwardGraph
    from schedlab.studies.ramp.graph_settings import GraphSettings

log = logging.getLogger("schedlab.ramp")
GROUP = "graph"
_DESCRIPTION = """Read, trace or draw a set of graphs and print their numbers as one JSON document: times in the unit of the files
(ms where we make them), sizes in bytes. Files that are no graphs are told with their line and field."""


def add_graphs_command(commands: argparse._SubParsersAction) -> None:
    """Add `graphs SET [--steps K] [--out FOLDER] [--pictures PREFIX]` to a parser's sub-commands."""
    parser = commands.add_parser("graphs", help="graphs of training jobs in numbers, as files, as a picture", description=_DESCRIPTION)
    parser.add_argument("set", metavar="SET", help="a file of conf/graph/, or a folder, archive or file of graphs")
    parser.add_argument("--steps", type=int, default=1, metavar="K", help="training steps of the sequential time (default: 1)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write the graphs there as PipeDream's text")
    parser.add_argument("--pictures", metavar="PREFIX", help="write PREFIX.svg, .pdf, .png and the caption as PREFIX.txt")
    parser.add_argument("--conf", default="conf", metavar="DIR", help="configuration folder (default: ./conf)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers of a set of graphs, and write what is asked for. Raises UserError."""
    from schedlab.studies.ramp.graph import training_graph
    from schedlab.studies.ramp.graph_statistics import statistics_table

    if not 1 <= arguments.steps < 2**31:
        raise UserError(f"{arguments.steps} training steps", where="--steps", expected="a number from 1 on")
    graphs = _graphs(arguments.set, arguments.conf)
    steps = [training_graph(graph) for graph in graphs]
    if arguments.out:
        _write(graphs, arguments.out)
    if arguments.pictures:
        from schedlab.config.settings import ThemeSettings
        from schedlab.figures import save, theme
        from schedlab.studies.ramp.figures_graphs import drawing_of

        with theme.applied(ThemeSettings()):
            for path in save.save(drawing_of(steps, f"The graphs of {arguments.set}."), arguments.pictures):
                log.info("wrote %s", path)
    rows = json.loads(statistics_table(steps, arguments.steps).to_json(orient="records", double_precision=15))
    print(json.dumps({row.pop("name"): row for row in rows}, indent=2))
    return 0


def graph_settings(name: str, folder: str) -> GraphSettings:
    """Return conf/graph/<name>.yaml with all it builds on, typed. Raises UserErrors."""
    from schedlab.config.records import ConfigurationFolder, RecordCache
    from schedlab.config.schema import validate
    from schedlab.config.yaml_files import option_names
    from schedlab.studies.ramp.graph_settings import GraphSettings

    known = option_names(Path(folder) / GROUP)
    if name not in known:
        remedy = did_you_mean(name, known)
        raise UserError(
            f"there is no set of graphs '{name}'", where="SET", expected=f"a file of {folder}/{GROUP}, or a path", remedy=remedy
        )
    conf = ConfigurationFolder(Path(folder), "small", RecordCache(None))
    if f"{GROUP}/{name}.yaml" in conf.layout.broken:
        raise UserErrors(conf.errors)
    composed = conf.composer.compose(GROUP, name)
    return validate(GraphSettings, composed.values, composed.locate)


def _graphs(name: str, folder: str) -> tuple[ForwardGraph, ...]:
    from schedlab.config.yaml_files import option_names
    from schedlab.studies.ramp.graph_files import read_graphs
    from schedlab.studies.ramp.graphs import find_graphs, make_graphs

    place = find_graphs(name)
    a_path = "/" in name or place.suffix or name not in option_names(Path(folder) / GROUP)
    return read_graphs(place) if a_path and place.exists() else make_graphs(graph_settings(name, folder))


def _write(graphs: tuple[ForwardGraph, ...], folder: Path) -> None:
    from schedlab.config.files import write_text
    from schedlab.studies.ramp.graph_files import pipedream_text

    for graph in graphs:
        try:
            write_text(folder / f"{graph.name}.txt", pipedream_text(graph))
        except OSError as error:
            raise UserError(f"cannot be written: {error.strerror}", where=f"--out {folder}", expected="a folder") from None
        log.info("wrote %s", folder / f"{graph.name}.txt")
