"""The sub-commands of `schedlab cloud` that run a user's script: `optimize` and `sweep`. What they need is imported
when they run.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.config.runtime.job_log import one_thread
from schedlab.config.runtime.termination import STATUS, Terminated, unwinding
from schedlab.studies.cloud.live.process import ScriptFailed
from schedlab.studies.cloud.live.run import LiveRequest
from schedlab.studies.cloud.live.sweep import Grid, default_grid, require_within, sweep, sweep_report
from schedlab.studies.cloud.model.fit_report import print_report
from schedlab.studies.cloud.model.machine import machine_resources
from schedlab.studies.cloud.optimize.command import new_folder, run


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of whole numbers, as in 1,2,4") from None


def add_live_commands(commands: argparse._SubParsersAction) -> None:
    """Add `sweep` and `optimize`."""
    _add_sweep(commands)
    _add_optimize(commands)


def _add_sweep(commands: argparse._SubParsersAction) -> None:
    about = (
        "run a training script on a grid of allocations, write its epochs as CSV and fit the performance model to them"
    )
    parser = commands.add_parser("sweep", help=about, description=about)
    parser.add_argument("--training_file", type=Path, required=True, metavar="FILE.py", help="the script")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE.csv", help="table to write; runs lie beside it in FILE-runs"
    )
    parser.add_argument("--gpus", type=_numbers, metavar="0,1,2", help="GPUs to try (default: one, two, all)")
    parser.add_argument("--cores", type=_numbers, metavar="1,2,4", help="cores to try (default: one, half, all)")
    parser.add_argument("--memory", type=_numbers, metavar="4,8", help="memory to try, GB (default: all)")
    parser.add_argument(
        "--batches", type=_numbers, metavar="32,64", help="batch sizes to try (default: the script's own)"
    )
    parser.add_argument(
        "--epochs", type=int, default=2, metavar="N", help="epochs of each run; the first warms up (default: 2)"
    )
    parser.add_argument("--dataset_path", type=Path, metavar="DIR", help="data of the script")
    parser.add_argument(
        "--time_limit", type=float, default=600.0, metavar="S", help="wall-clock limit of a run (default: 600)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the script (default: 0)")
    parser.add_argument("--gpus-per-node", type=int, default=4, metavar="G", help="for the fit (default: 4)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of lines")
    parser.set_defaults(run=_until_terminated(_sweep))


def _until_terminated(work: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command with the exit status 143 where SIGTERM ends it; the script's processes are ended, too."""

    def run(arguments: argparse.Namespace) -> int:
        try:
            with unwinding():
                return work(arguments)
        except Terminated:
            return STATUS

    return run


def _sweep(arguments: argparse.Namespace) -> int:
    one_thread()

    limits = machine_resources()
    usual = default_grid(limits)
    given = (arguments.gpus or usual.gpus, arguments.cores or usual.cores, arguments.memory or usual.memory)
    grid = Grid(*given, arguments.batches or (None,))
    require_within(grid, limits)
    for name, value in (
        ("epochs", arguments.epochs),
        ("time_limit", arguments.time_limit),
        ("gpus-per-node", arguments.gpus_per_node),
    ):
        if not (value > 0 and math.isfinite(value)):
            raise UserError(f"{value:g}", where=f"--{name}", expected="a finite number above 0")
    for batch in arguments.batches or ():
        if batch < 1:
            raise UserError(f"{batch}", where="--batches", expected="1 or more samples")
    request = LiveRequest(
        script=arguments.training_file,
        allocation=limits.most,
        epochs=arguments.epochs,
        seed=arguments.seed,
        prices=limits,
        dataset_path=arguments.dataset_path,
        seconds=arguments.time_limit,
    )
    folder = new_folder(arguments.output.with_name(f"{arguments.output.stem}-runs"))
    try:
        table = sweep(request, grid, folder)
    except ScriptFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with atomic_path(arguments.output) as temporary:
        table.to_csv(temporary, index=False)
    print_report(sweep_report(arguments.output, arguments.gpus_per_node), arguments.json)
    return 0


def _add_optimize(commands: argparse._SubParsersAction) -> None:
    about = "measure a training script, learn what to give it, train it so, and report"
    parser = commands.add_parser("optimize", help=about, description=about)
    parser.add_argument(
        "--training_file", type=Path, nargs="+", required=True, metavar="FILE.py", help="one or more scripts"
    )
    parser.add_argument(
        "--dataset_path", type=Path, metavar="DIR", help="data of the script (default: ./data, if it exists)"
    )
    parser.add_argument(
        "--offline_logs", type=Path, nargs="+", metavar="LOG.csv", help="logs of earlier runs, or folders of them"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings in YAML or JSON; options win over them")
    about = (
        "what matters most: balanced, cost, time, resource, or weights of cost, time and resource (default: balanced)"
    )
    parser.add_argument("--preference", metavar="NAME|0.1:0.1:0.8", help=about)
    parser.add_argument("--epochs", type=int, metavar="N", help="length of the training (default: the script's own)")
    parser.add_argument("--time_max", type=float, metavar="S", help="longest training time, s")
    parser.add_argument("--time_target", type=float, metavar="MIN", help="the same in minutes")
    parser.add_argument("--cost_max", type=float, metavar="USD", help="highest cost, $")
    parser.add_argument("--cost_target", type=float, metavar="USD", help="the same")
    parser.add_argument("--throughput_min", type=float, metavar="N", help="lowest throughput, samples/s")
    parser.add_argument(
        "--baseline_samples", type=int, metavar="N", help="short runs on the whole machine (default: 4)"
    )
    parser.add_argument(
        "--baseline_ratio", type=float, metavar="SHARE", help="their length as a share of the training (default: 0.2)"
    )
    parser.add_argument(
        "--skip_baseline", action="store_true", help="measure no baseline; the model's estimate takes its place"
    )
    output = Path("cloud-optimize")
    parser.add_argument(
        "--output_dir", type=Path, default=output, metavar="DIR", help=f"for reports and tables (default: {output})"
    )
    parser.add_argument(
        "--log_dir", type=Path, metavar="DIR", help="for logs of baseline and run (default: OUTPUT_DIR/logs)"
    )
    parser.set_defaults(run=_until_terminated(_optimize))


def _optimize(arguments: argparse.Namespace) -> int:
    one_thread()

    return run(arguments)
