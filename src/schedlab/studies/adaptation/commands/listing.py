"""The commands `rank` and `vocab`: the ranking of a table's sequences, the vocabulary of layers."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator
from pathlib import Path

from schedlab.config.data_paths import find_resource
from schedlab.config.plugins import load_object
from schedlab.config.readers import read_yaml
from schedlab.config.schema import validate
from schedlab.studies.adaptation.learners.encoders import SHIPPED_VOCABULARY, Vocabulary, reachable, read_vocabulary
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture
from schedlab.studies.adaptation.simulator.ranking import ranking

READ_TABLE = "schedlab.studies.adaptation.compat.published_table:read_own_or_published"
log = logging.getLogger(__name__)


def print_ranking(arguments: argparse.Namespace) -> int:
    """Print the ranking of the table named on the command line as JSON."""
    table = load_object(READ_TABLE)(arguments.table)
    print(json.dumps(ranking(table, arguments.metric, str(arguments.table)), indent=2))
    return 0


def print_vocabulary(arguments: argparse.Namespace) -> int:
    """Print the id and description of each layer; first extend the file if this is requested."""
    if arguments.extend:
        _extend(arguments.file, arguments.extend)
    words = read_vocabulary(arguments.file)
    for number, text in enumerate(("(any other layer)", *words.layers)):
        print(number, text)
    return 0


def _extend(name: str, models: list[str]) -> None:
    """Append the layers of models to a vocabulary; a file other than the shipped one is created if it is missing."""
    file = find_resource(name)
    new = name != SHIPPED_VOCABULARY and not file.exists()
    if new:
        log.warning("%s is new: its ids are its own", file)
    old = Vocabulary(()) if new else read_vocabulary(file)
    old.extended(architectures_of(models)).write(file)


def architectures_of(files: list[str]) -> Iterator[Architecture]:
    """Yield the architectures of model files, with and without the head's ReLU, and all architectures that one
    insertion makes of them.
    """
    for file in sorted(files):
        values = read_yaml(Path(file))
        for head_relu in (True, False):
            place = lambda path, file=file: f"{file}: {'.'.join(map(str, path))}"  # noqa: E731
            yield from reachable(architecture(validate(ModelSettings, {**values, "head_relu": head_relu}, place)))
