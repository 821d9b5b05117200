"""The sub-commands of `schedlab batch`: their arguments, and the function that runs each."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.config.contract import Subcommands
from schedlab.studies.batch.scenario import BACKFILL_ORDERS, BACKFILLS, NAMED_BACKFILLS

COMPARE = "compare a policy with others on the windows of every scenario that scores both, and print the ratios as CSV"
EVALUATE = "run a window of a trace under one policy or several and print all measures as one JSON document"
LATENCY = """Measure the time of a decision of each policy on a window of a trace: the CPU time of the whole window,
including simulator and observation, divided by the number of jobs. One thread is used. Each policy runs once before the
measurement, which therefore includes no compilation and no loading. Close other programs first."""
PREDICTIONS = """Compare predictions of run times with the true ones on the test part of a trace (its last 40 %), and
print their errors as CSV, a row for each predictor. A prediction is made when a job is submitted, from the jobs that
had ended in the log; jobs of a log without waits count as run at once."""
SPEED = """Measure how many steps per second DDPG on Pendulum takes, including its updates, for each number of threads
and each batch size, and print the rates as one JSON document. With --learn, it also learns until the mean return is
-300. Close other programs first."""


def add_commands(commands: Subcommands) -> None:
    """Add the commands, each of which sets `run` to the name of a function (arguments) -> exit status."""
    parser = _add(commands, "compare", "evaluate:compare", COMPARE, COMPARE)
    parser.add_argument(
        "scores", type=Path, nargs="+", metavar="SCORES.parquet", help="the scores of a scale, or of evaluations"
    )
    parser.add_argument("--policy", required=True, metavar="NAME", help="policy that is compared")
    parser.add_argument(
        "--baseline", required=True, nargs="+", metavar="NAME", help="policies with which it is compared"
    )
    parser.add_argument("--split", default="test", choices=("validation", "test"), help="which windows (default: test)")
    parser = _add(commands, "evaluate", "evaluate:evaluate", EVALUATE, EVALUATE)
    add_window_arguments(parser)
    what = "a job with a preceding job (columns 17, 18) arrives at the earliest its think time after that one's end"
    parser.add_argument("--dependencies", action="store_true", help=what)
    what = "one or more policies: without learning, such as fcfs, f1, planner, f1_predicted, or learned:FILE"
    parser.add_argument("--policy", required=True, nargs="+", metavar="NAME", help=what)
    parser.add_argument("--starts", type=Path, metavar="OUT.csv", help="write job_id,start of each job (one policy)")
    what = "write time,procs: the number of busy processors from this time on (one policy)"
    parser.add_argument("--usage", type=Path, metavar="OUT.csv", help=what)
    parser = _add(
        commands, "predictions", "predictions:predictions", "print the errors of predicted run times", PREDICTIONS
    )
    _add_trace(parser)
    what = "also write the mean size of ln(prediction / run time) of each user's jobs"
    parser.add_argument("--by-user", type=Path, metavar="OUT.csv", help=what)
    _add_latency(_add(commands, "latency", "latency:latency", "measure the time of a decision of each policy", LATENCY))
    add_speed_arguments(
        _add(commands, "speed", "speed:measure", "measure how fast this machine's devices learn", SPEED)
    )


def _add(commands: Subcommands, name: str, run: str, about: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about, description=description)
    parser.set_defaults(run=f"schedlab.studies.batch.commands.{run}")
    return parser


def add_window_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the trace, the window and the simulation."""
    _add_trace(parser)
    what = (
        "none (default): the chosen job blocks; easy_sjf, easy_area: EASY, the shortest or smallest backfilled first; "
    )
    what += "easy_predicted: EASY++, with predicted run times; easy_learned: the same, predicted by regression"
    parser.add_argument("--backfill", default="none", choices=(*BACKFILLS, *NAMED_BACKFILLS), help=what)
    parser.add_argument(
        "--backfill-order",
        default="default",
        choices=BACKFILL_ORDERS,
        help="order in which jobs are considered for backfilling (legacy, easy)",
    )
    parser.add_argument(
        "--start", type=int, default=0, metavar="S", help="first job, from 0 after the cleaning (default: 0)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="number of jobs (default: all)")
    parser.add_argument("--kill", action="store_true", help="end jobs at their requested time")
    parser.add_argument("--warm-start", action="store_true", help="the machine already runs the jobs before the window")
    parser.add_argument("--seed", type=int, default=0, help="seed of a warm start's jobs and start times (default: 0)")


def _add_trace(parser: argparse.ArgumentParser) -> None:
    what = "trace (Standard Workload Format, plain or gzip)"
    parser.add_argument("--trace", required=True, metavar="FILE", help=what)
    parser.add_argument("--cleaning", default="default", choices=("default", "rlscheduler"), help="cleaning rules")
    parser.add_argument("--processors", type=int, metavar="P", help="size of the machine, if the header is wrong")


def _add_latency(parser: argparse.ArgumentParser) -> None:
    add_window_arguments(parser)
    parser.add_argument("--policy", required=True, nargs="+", metavar="NAME", help="rules, planner, or learned:FILE")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="timed runs of each policy (default: 5)")
    parser.add_argument("--labels", nargs="+", metavar="NAME", help="their names in figures (default: as given)")
    parser.add_argument("--name", default="this machine", help="name of the machine in figures")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="also record it (resources/measured/decision_latency/)"
    )


def add_speed_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for what is measured, and on which device."""
    parser.add_argument(
        "--device", default="cpu", help="cpu (default), cuda, mps, or auto: cuda, else mps, if there is one"
    )
    parser.add_argument("--threads", default="1", metavar="N[,N]", help="threads of torch, swept (default: 1)")
    parser.add_argument(
        "--batch-sizes", default="64", metavar="N[,N]", help="transitions of updates, swept (default: 64)"
    )
    parser.add_argument("--steps", type=int, default=2000, metavar="N", help="timed steps per repeat (default: 2000)")
    parser.add_argument(
        "--warm-up", type=int, default=500, metavar="N", help="steps before the measurement (default: 500)"
    )
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="measurements of each setting (default: 3)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="root of all random draws (default: 0)")
    parser.add_argument(
        "--learn", action="store_true", help="also learn until the mean return is -300, for at most 400,000 steps"
    )
    parser.add_argument("--name", default="this machine", help="name of machine and device in figures")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also record it (resources/measured/device_speed/)")
