"""`schedlab ramp graphs`: graphs of training jobs in numbers, as files, as a picture."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path

from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.files import write_text
from schedlab.config.readers import option_names
from schedlab.config.records import ConfigurationFolder
from schedlab.config.runtime.record_cache import RecordCache
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures import save, theme
from schedlab.studies.ramp.figures.graphs import drawing_of
from schedlab.studies.ramp.graphs.files import pipedream_text, read_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.graphs.prepare import find_graphs, make_graphs
from schedlab.studies.ramp.graphs.settings import GraphSettings
from schedlab.studies.ramp.graphs.statistics import statistics_table

log = logging.getLogger("schedlab.ramp")
GROUP = "graph"


def print_graphs(arguments: argparse.Namespace) -> int:
    """Print the statistics of a set of graphs, and write the requested files. Raises UserError."""
    if not 1 <= arguments.steps < 2**31:
        raise UserError(f"{arguments.steps} training steps", where="--steps", expected="a number from 1 on")
    graphs = _graphs(arguments.set, arguments.conf)
    steps = [training_graph(graph) for graph in graphs]
    if arguments.out:
        _write(graphs, arguments.out)
    if arguments.pictures:
        with theme.applied(ThemeSettings()):
            for path in save.save(drawing_of(steps, f"The graphs of {arguments.set}."), arguments.pictures):
                log.info("wrote %s", path)
    rows = json.loads(statistics_table(steps, arguments.steps).to_json(orient="records", double_precision=15))
    print(json.dumps({row.pop("name"): row for row in rows}, indent=2))
    return 0


def graph_settings(name: str, folder: str) -> GraphSettings:
    """Return the typed settings of conf/graph/<name>.yaml, composed with its defaults. Raises UserErrors."""
    known = option_names(Path(folder) / GROUP)
    if name not in known:
        remedy = did_you_mean(name, known)
        what = f"there is no set of graphs '{name}'"
        raise UserError(what, where="SET", expected=f"a file of {folder}/{GROUP}, or a path", remedy=remedy)
    conf = ConfigurationFolder(Path(folder), "small", RecordCache(None))
    if f"{GROUP}/{name}.yaml" in conf.layout.broken:
        raise UserErrors(conf.errors)
    composed = conf.composer.compose(GROUP, name)
    return validate(GraphSettings, composed.values, composed.locate)


def _graphs(name: str, folder: str) -> tuple[ForwardGraph, ...]:
    place = find_graphs(name)
    a_path = "/" in name or place.suffix or name not in option_names(Path(folder) / GROUP)
    return read_graphs(place) if a_path and place.exists() else make_graphs(graph_settings(name, folder))


def _write(graphs: tuple[ForwardGraph, ...], folder: Path) -> None:
    for graph in graphs:
        try:
            write_text(folder / f"{graph.name}.txt", pipedream_text(graph))
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise UserError(what, where=f"--out {folder}", expected="a folder") from None
        log.info("wrote %s", folder / f"{graph.name}.txt")
