"""The command `schedlab adaptation weights convert`: a network's weights between torch's layouts, which are ours, and
TensorFlow's.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.commands.conf import add_conf, load_option
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture
from schedlab.studies.adaptation.network.files import deepened, layout_of, read_network, write_network

if TYPE_CHECKING:
    from schedlab.studies.adaptation.network.architecture import Architecture

_DESCRIPTION = """Write a network's weights in another layout, or as another kind of file (.npz, .h5), by OUT's ending.
tensorflow: kernels HWIO, dense kernels (inputs, outputs) with channels flattened last, names kernel, bias, gamma, beta, moving_mean and
moving_variance; an .h5 has the groups of a Keras weights file. torch: kernels OIHW, names as in a state dict. There and back gives
the same bits. A file that another program wrote does not tell its architecture: name it with --model and --deepen."""


def add_weights_command(commands: argparse._SubParsersAction) -> None:
    """Add `weights convert IN OUT` to a parser's sub-commands."""
    parser = commands.add_parser(
        "weights", help="convert weights to and from TensorFlow's layouts", description=_DESCRIPTION
    )
    convert = parser.add_subparsers(title="commands", metavar="COMMAND", required=True).add_parser(
        "convert", help="convert a file", description=_DESCRIPTION
    )
    convert.add_argument("source", type=Path, metavar="IN", help=".npz or .h5")
    convert.add_argument("target", type=Path, metavar="OUT", help=".npz or .h5")
    convert.add_argument("--layout", help="torch or tensorflow (default: the one that IN does not have)")
    convert.add_argument(
        "--model", metavar="M", help="architecture of IN where the file does not tell it: a file of conf/model/"
    )
    convert.add_argument(
        "--deepen", default="", metavar="0,0,2", help="blocks behind which layers were inserted, in order"
    )
    convert.add_argument(
        "--head-relu", action="store_true", help="the model has the ReLU behind its logits, as published"
    )
    convert.add_argument(
        "--no-batch-norm", action="store_true", help="inserted layers have no batch norm (bn_init: none)"
    )
    add_conf(convert)
    convert.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert a file and print what it holds as one JSON document."""
    wanted = layout_of(arguments.layout) if arguments.layout else None
    network = read_network(arguments.source, _architecture(arguments))
    layout = wanted or ("tensorflow" if network.layout == "torch" else "torch")
    write_network(arguments.target, replace(network, layout=layout))
    built = network.architecture
    document = {
        "source": str(arguments.source),
        "target": str(arguments.target),
        "from": network.layout,
        "to": layout,
        "model": built.model,
        "insertions": list(built.insertions),
        "parameters": built.parameters,
        "tensors": len(network.state),
    }
    print(json.dumps(document, indent=2))
    return 0


def _architecture(arguments: argparse.Namespace) -> Architecture | None:
    if not arguments.model:
        if arguments.deepen:
            raise UserError("--deepen without --model", where="--deepen", expected="the model that was deepened")
        return None
    try:
        blocks = [int(text) for text in arguments.deepen.split(",") if text]
    except ValueError:
        raise UserError(f"'{arguments.deepen}'", where="--deepen", expected="block numbers, as in 0,0,2") from None
    model = load_option(
        arguments.conf, "model", arguments.model, ModelSettings, {"head_relu": True} if arguments.head_relu else None
    )
    return deepened(architecture(model), blocks, False if arguments.no_batch_norm else None)
