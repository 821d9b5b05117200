"""`schedlab batch predictions`: the errors of predicted run times on a trace."""

from __future__ import annotations

import argparse
import logging

from schedlab.config.errors import UserError
from schedlab.config.files import write_text
from schedlab.studies.batch.commands.evaluate import read_trace
from schedlab.studies.batch.jobs import jobs_of, machine_of, recorded_ends, window
from schedlab.studies.batch.prediction_errors import error_table, predictions_of_test_part, user_errors

log = logging.getLogger("schedlab.batch")


def predictions(arguments: argparse.Namespace) -> int:
    """Print a row for each predictor as CSV, and write the users' errors if requested; return the exit status."""
    trace, _, _ = read_trace(arguments, missing_request="keep")
    machine = machine_of(trace)
    jobs = window(jobs_of(trace, machine), machine)
    if not (jobs.requested > 0).any():
        what = "no job has a requested time, from which all predictions start"
        raise UserError(what, where=str(arguments.trace), expected="requested times, field 9 of a line")
    predicted = predictions_of_test_part(jobs, recorded_ends(trace))
    if arguments.by_user:
        write_text(arguments.by_user, user_errors(jobs, predicted).round(4).to_csv(index=False))
        log.info("wrote %s", arguments.by_user)
    print(error_table(jobs, predicted).round(4).to_csv(index=False), end="")
    return 0
