"""The sub-commands of `schedlab adaptation`. What a command needs is imported when it runs: `--help` and `rank` need no
torch.
"""

from __future__ import annotations

import argparse

from schedlab.studies.adaptation.commands.calibrate import add_calibrate_command
from schedlab.studies.adaptation.commands.predict import add_predict_command
from schedlab.studies.adaptation.commands.rank import add_rank_command
from schedlab.studies.adaptation.commands.run import add_run_command
from schedlab.studies.adaptation.commands.vocab import add_vocab_command
from schedlab.studies.adaptation.commands.weights import add_weights_command
from schedlab.studies.adaptation.compat.import_toml import add_import_command


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add run, predict, rank, vocab, calibrate, weights and import; each sets `run` to a function (arguments) -> exit
    status.
    """
    add_run_command(commands)
    add_predict_command(commands)
    add_rank_command(commands)
    add_vocab_command(commands)
    add_calibrate_command(commands)
    add_weights_command(commands)
    add_import_command(commands)
