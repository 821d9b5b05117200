"""The command `schedlab adaptation vocab`: print the vocabulary of layers, or append those of the models in a
configuration.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

from schedlab.config.data_paths import find_resource
from schedlab.config.readers import read_yaml
from schedlab.config.schema import validate
from schedlab.studies.adaptation.learners.encoders import SHIPPED_VOCABULARY, Vocabulary, reachable, read_vocabulary
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture

log = logging.getLogger(__name__)


def add_vocab_command(commands: argparse._SubParsersAction) -> None:
    """Add `vocab [--file FILE] [--extend MODEL.yaml ...]` to a parser's sub-commands."""
    parser = commands.add_parser("vocab", help="print or extend the vocabulary of layers", description=__doc__)
    parser.add_argument("--file", default=SHIPPED_VOCABULARY, help=f"the vocabulary (default: {SHIPPED_VOCABULARY})")
    parser.add_argument(
        "--extend", nargs="+", metavar="MODEL.yaml", help="append the layers that these models reach by deepening"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print id and description of each layer, after extending the file where that is asked for."""
    if arguments.extend:
        _extend(arguments.file, arguments.extend)
    words = read_vocabulary(arguments.file)
    for number, text in enumerate(("(any other layer)", *words.layers)):
        print(number, text)
    return 0


def _extend(name: str, models: list[str]) -> None:
    """Append the layers of models to a vocabulary; a file of the user's that is not there is begun, the shipped one
    must be there.
    """
    file = find_resource(name)
    new = name != SHIPPED_VOCABULARY and not file.exists()
    if new:
        log.warning("%s is new: its ids are its own", file)
    old = Vocabulary(()) if new else read_vocabulary(file)
    old.extended(of_models(models)).write(file)


def of_models(files: list[str]) -> Iterator[Architecture]:
    """Yield the architectures of model files, with and without the ReLU behind the head, and what one insertion makes
    of them.
    """
    for file in sorted(files):
        values = read_yaml(Path(file))
        for head_relu in (True, False):
            place = lambda path, file=file: f"{file}: {'.'.join(map(str, path))}"  # noqa: E731
            yield from reachable(architecture(validate(ModelSettings, {**values, "head_relu": head_relu}, place)))
