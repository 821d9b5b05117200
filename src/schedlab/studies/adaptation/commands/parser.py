"""The sub-commands of `schedlab adaptation` and their arguments. Their functions are imported when they are needed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from schedlab.config.contract import Subcommands
from schedlab.studies.adaptation.learners.encoders import SHIPPED_VOCABULARY
from schedlab.studies.adaptation.simulator.table import METRICS

HERE = "schedlab.studies.adaptation"
_RUN = """Train a network under one sequence of growth decisions, from the first epoch on, and print the result. Each
epoch is charged to the budget with the seconds of the scenario's timing. The result equals, bit for bit, that of the
same sequence in the scenario's simulation table; if this table exists, the two are compared. With --clock wall, each
epoch is charged with the seconds that it took, as in the published system. The result then depends on the machine and
is not compared."""
_PREDICT = """Classify the images of a data set with a trained network and print accuracy, log loss and counts as one
JSON document. The file of the network contains its architecture and the name of the data set on which it was trained;
this data set is used unless --data names another one."""
_CALIBRATE = """Measure the seconds of an epoch of a model without insertion, and with one and with two layers inserted
after each block, fit the seconds that each insertion adds, and write the result as a timing. The measured seconds with
their quartiles, the fitted seconds with their standard errors, and the errors of the formula are printed as one JSON
document."""
_CONVERT = """Write a network's weights in another layout, or as another kind of file (.npz, .h5), by OUT's ending.
tensorflow: kernels HWIO, dense kernels (inputs, outputs) with channels flattened last, names kernel, bias, gamma, beta,
moving_mean and moving_variance; an .h5 has the groups of a Keras weights file. torch: kernels OIHW, names as in a state
dict. A conversion there and back gives the same bits. A file that another program wrote does not contain its
architecture: state it by --model and --deepen."""
_GROW = """Insert layers after blocks of a network (--deepen) and add channels to blocks (--widen), in the order given,
without changing the outputs of the network (Net2Net). BLOCK is a convolution or linear layer: its name in the network,
or its number in the order of execution, from 0. The outputs before and after are compared on 64 random inputs; the
largest difference, relative to the largest output, is part of the JSON document that is printed. A block that cannot be
grown is an error."""
_IMPORT = """Turn run files (TOML) of the published system into scenarios and policies that `schedlab check` accepts. A
simulation becomes a scenario, a learning run a policy; an initial training needs no file. The scenario and the parent
of a policy must exist or be imported by the same call. Keys without a counterpart are listed on standard error;
unknown keys are errors."""

_IMPORT_RESULTS = """Read the published system's folder `results/` (text files alone; Python objects in it are never
opened) and write its simulations as the tables that the scenarios published_* and `rank` read: simulations.csv,
simulation_epochs.csv and initial_training.csv."""


def add_commands(commands: Subcommands) -> None:
    """Add the commands; each sets `run` to the name of a function (arguments) -> exit status."""
    _add_run(commands)
    _add_predict(commands)
    about = "rank the sequences of a simulation table"
    rank = commands.add_parser("rank", help=about, description=about)
    rank.add_argument("table", metavar="TABLE", help="the published CSV, or a table of ours (CSV or Parquet)")
    what = f"one of {', '.join(METRICS)} (default: test_accuracy)"
    rank.add_argument("--metric", default="test_accuracy", help=what)
    rank.set_defaults(run=f"{HERE}.commands.listing:print_ranking")
    about = "print the vocabulary of layers, or append those of the models in a configuration"
    vocab = commands.add_parser("vocab", help=about, description=about)
    vocab.add_argument("--file", default=SHIPPED_VOCABULARY, help=f"the vocabulary (default: {SHIPPED_VOCABULARY})")
    what = "append the layers that these models reach by deepening"
    vocab.add_argument("--extend", nargs="+", metavar="MODEL.yaml", help=what)
    vocab.set_defaults(run=f"{HERE}.commands.listing:print_vocabulary")
    _add_calibrate(commands)
    _add_weights(commands)
    _add_grow(commands)
    _add_import(commands)
    about = "the published folder results/ as the tables of its simulations"
    results = commands.add_parser("import-results", help=about, description=_IMPORT_RESULTS)
    what = "the folder (default: where `schedlab data get adaptation_published` puts it)"
    results.add_argument("folder", nargs="?", type=Path, metavar="RESULTS", help=what)
    what = "folder to write to (default: resources/data/cases/adaptation, where the scenarios find it)"
    results.add_argument("--out", type=Path, metavar="DIR", help=what)
    _flags(results)("--force", "replace files that are there")
    results.set_defaults(run=f"{HERE}.compat.results_folder:run")


def _add_run(commands: Subcommands) -> None:
    about = "train one job for real, growing as a policy or a sequence says"
    parser = commands.add_parser("run", help=about, description=_RUN)
    add, flag = parser.add_argument, _flags(parser)
    add("--scenario", required=True, metavar="NAME", help="a file of conf/scenario/adaptation/")
    add("values", nargs="*", metavar="KEY=VALUE", help="other values for keys of the scenario, such as budget=300")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--policy", metavar="P", help="a rule (never, always-0, ...) or a learned policy")
    who.add_argument("--sequence", metavar="003", help="one digit for each decision; the highest digit does nothing")
    add("--seed", type=int, default=0, metavar="K", help="learning seed of the policy (default: 0)")
    what = "the learned policy's file (default: the one under --results)"
    add("--checkpoint", type=Path, metavar="FILE", help=what)
    add("--job", type=int, metavar="J", help="initialisation (default: the scenario's first)")
    what = "random stream of the shuffling after the first decision (default: 0)"
    add("--replicate", type=int, default=0, metavar="R", help=what)
    add("--scale", default="small", help="smoke, small, full or paper (default: small)")
    _add_conf(parser)
    what = "where the workflow's results lie"
    add("--results", type=Path, default=Path("results"), metavar="DIR", help=what)
    flag("--compat", "mode reference, with the published choices, even if the scenario is in mode default")
    what = "seconds that are charged: pinned (of the timing; default) or wall (measured)"
    add("--clock", choices=("pinned", "wall"), default="pinned", help=what)
    what = "device for training, instead of that of the scenario; results differ by rounding"
    add("--device", choices=("auto", "cpu", "cuda"), help=what)
    flag("--curves", "evaluate after every epoch, not only after those that count in the reward")
    add("--weights", type=Path, metavar="OUT", help="write the trained network as .npz or .h5, for `predict`")
    add("--layout", default="torch", help="layout of --weights: torch (default) or tensorflow")
    flag("--json", "print all values of every epoch as one JSON document")
    flag("--check", "exit with status 1 if the table does not exist or has another result")
    parser.set_defaults(run=f"{HERE}.commands.run:run")


def _add_predict(commands: Subcommands) -> None:
    parser = commands.add_parser("predict", help="a trained network on data", description=_PREDICT)
    add = parser.add_argument
    add("weights", type=Path, metavar="WEIGHTS", help=".npz or .h5, as written by `run --weights`")
    add("--data", metavar="D", help="a file of conf/data/ (default: what the network was trained on)")
    add("--split", choices=("train", "validation", "test"), default="test", help="default: test")
    add("--output", type=Path, metavar="CSV", help="write label, prediction and probabilities of each image")
    add("--device", default="cpu", help="cpu (default), cuda, or auto: cuda where this machine has it")
    _add_conf(parser)
    parser.set_defaults(run=f"{HERE}.commands.networks:predict")


def _add_calibrate(commands: Subcommands) -> None:
    about = "measure this machine's epoch seconds as a timing"
    parser = commands.add_parser("calibrate", help=about, description=_CALIBRATE)
    add, flag = parser.add_argument, _flags(parser)
    add("--model", required=True, metavar="M", help="a file of conf/model/")
    add("--data", required=True, metavar="D", help="a file of conf/data/")
    what = "cpu (default; one thread), cuda, or auto: cuda where this machine has it"
    add("--device", default="cpu", help=what)
    add("--name", required=True, help="name of the timing")
    add("--out", type=Path, metavar="FILE", help="file to write (default: <conf>/gpu/<name>.yaml)")
    flag("--force", "replace a file that is there")
    add(
        "--epochs",
        type=int,
        default=5,
        metavar="K",
        help="measured epochs of each architecture (default: 5; at least 3)",
    )
    add("--warm-up", type=int, default=1, metavar="K", help="epochs before the measurement (default: 1)")
    add("--batch-size", type=int, default=64, metavar="N", help="images of a training step (default: 64)")
    flag("--head-relu", "the model with the ReLU behind its logits, as published")
    _add_conf(parser)
    parser.set_defaults(run=f"{HERE}.commands.calibrate:run")


def _add_weights(commands: Subcommands) -> None:
    about = "convert weights to and from TensorFlow's layouts"
    parser = commands.add_parser("weights", help=about, description=_CONVERT)
    several = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    convert = several.add_parser("convert", help="convert a file", description=_CONVERT)
    add, flag = convert.add_argument, _flags(convert)
    add("source", type=Path, metavar="IN", help=".npz or .h5")
    add("target", type=Path, metavar="OUT", help=".npz or .h5")
    add("--layout", help="torch or tensorflow (default: the one that IN does not have)")
    what = "architecture of IN if the file does not contain it: a file of conf/model/"
    add("--model", metavar="M", help=what)
    add("--deepen", default="", metavar="0,0,2", help="blocks behind which layers were inserted, in order")
    flag("--head-relu", "the model has the ReLU behind its logits, as published")
    flag("--no-batch-norm", "inserted layers have no batch norm (bn_init: none)")
    _add_conf(convert)
    convert.set_defaults(run=f"{HERE}.commands.networks:convert")


def _add_grow(commands: Subcommands) -> None:
    about = "deepen and widen any torch network without changing its outputs"
    parser = commands.add_parser("grow", help=about, description=_GROW)
    add, flag = parser.add_argument, _flags(parser)
    what = "FILE.py:factory, vgg11 to vgg19, resnet20 to resnet110, a file of conf/model/, or a .pt with --model"
    add("network", metavar="MODEL", help=what)
    add(
        "--deepen",
        nargs="+",
        action=_StepWords,
        dest="steps",
        default=[],
        metavar="BLOCK",
        help="insert a layer behind",
    )
    add("--widen", nargs="+", action=_StepWords, dest="steps", default=[], metavar="BLOCK:FACTOR", help="add channels")
    what = "the grown network: its weights and steps, for `load_grown` or as MODEL of another call"
    add("--out", type=Path, required=True, metavar="FILE.pt", help=what)
    add("--model", metavar="M", help="the network whose weights the .pt holds, as MODEL")
    add("--input", metavar="CxHxW", help="shape of one input (default: from the model, or a size for which it runs)")
    what = "a file of conf/data/ whose training images calibrate inserted batch norms (default: the random inputs)"
    add("--data", metavar="D", help=what)
    flag("--no-batch-norm", "insert layers without batch norm: exact in training mode too")
    what = "unequal shares for the copies of a channel, up to this fraction; the outputs stay (default: 0)"
    add("--noise", type=float, default=0.0, metavar="F", help=what)
    add("--seed", type=int, default=0, metavar="K", help="of initial values, copied channels and noise (default: 0)")
    _add_conf(parser)
    parser.set_defaults(run=f"{HERE}.commands.grow:run")


def _add_import(commands: Subcommands) -> None:
    about = "published run files (TOML) as scenarios and policies"
    parser = commands.add_parser("import", help=about, description=_IMPORT)
    add, flag = parser.add_argument, _flags(parser)
    what = "run files; those that belong together in one call"
    add("files", nargs="+", type=Path, metavar="RUN.toml", help=what)
    add("--out", default="conf", metavar="CONF_DIR", help="configuration folder to write to (default: ./conf)")
    add("--name", help="name of the imported configuration (default: its runner.folder)")
    what = "a file of conf/gpu/ (default: gv100gl, the published machine)"
    add("--timing", default="gv100gl", help=what)
    add("--record", metavar="CSV", help="read the table from the published record instead of training")
    flag("--ignore-unknown", "report unknown keys and continue")
    flag("--force", "replace files that are there")
    flag("--dry-run", "print the YAML and write nothing")
    parser.set_defaults(run=f"{HERE}.compat.import_toml:run")


def _add_conf(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--conf", default="conf", metavar="DIR", help="configuration folder (default: ./conf)")


def _flags(parser: argparse.ArgumentParser) -> Callable[[str, str], object]:
    """Return a function that adds a switch with its help to a parser."""
    return lambda name, text: parser.add_argument(name, action="store_true", help=text)


class _StepWords(argparse.Action):
    """Collects `--deepen BLOCK ...` and `--widen BLOCK:FACTOR ...` in the order in which they were given."""

    def __call__(self, *given: Any) -> None:
        """Append the words of one option."""
        _, namespace, words, option = given
        namespace.steps = [*namespace.steps, *((option, word) for word in words)]
