"""The sub-commands of `schedlab adaptation`. What a command needs is imported when it runs: `--help` and `rank` need no torch."""

from __future__ import annotations

import argparse

from schedlab.studies.adaptation.commands_calibrate import add_calibrate_command
from schedlab.studies.adaptation.commands_import import add_import_command
from schedlab.studies.adaptation.commands_predict import add_predict_command
from schedlab.studies.adaptation.commands_rank import add_rank_command
from schedlab.studies.adaptation.commands_run import add_run_command
from schedlab.studies.adaptation.commands_vocab import add_vocab_command
from schedlab.studies.adaptation.commands_weights import add_weights_command


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add run, predict, rank, vocab, calibrate, weights and import; each sets `run` to a function (arguments) -> exit status."""
    add_run_command(commands)
    add_predict_command(commands)
    add_rank_command(commands)
    add_vocab_command(commands)
    add_calibrate_command(commands)
    add_weights_command(commands)
    add_import_command(commands)
