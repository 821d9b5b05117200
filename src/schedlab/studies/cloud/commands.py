"""The arguments of `schedlab cloud`. The modules of a command are imported when it runs."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from schedlab.config.contract import Subcommands
from schedlab.config.plugins import load_object
from schedlab.config.runtime.instructions import one_thread
from schedlab.termination import STATUS, Terminated, unwinding


def add_commands(commands: Subcommands) -> None:
    """Add the commands, each of which sets `run` to a function (arguments) -> exit status."""
    about = "answer a case file (its kind by its name: actions, change, cost, reward, similarity, sla) "
    about += "and print it as one JSON document"
    parser = commands.add_parser("replay", help=about, description=about)
    what = "cases; the similarity's logs lie beside it as similarity_logs.csv"
    parser.add_argument("file", type=Path, metavar="FILE.json", help=what)
    parser.add_argument("--compat", action="store_true", help="as the published program computes it, defects included")
    parser.set_defaults(run="schedlab.studies.cloud.slamorl.case_files:print_answer")
    _add_fit(commands)
    _add_plan(commands)
    _add_sweep(commands)
    _add_optimize(commands)


def _add_fit(commands: Subcommands) -> None:
    about = "fit the performance model to logs and print parameters, number of rows and median relative error "
    about += "of the step time"
    parser = commands.add_parser("fit", help=about, description=about)
    what = "training logs, or tables of measured placements"
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG.csv", help=what)
    what = "GPUs per node in training logs, which do not name nodes (default: 4)"
    parser.add_argument("--gpus-per-node", type=int, default=4, metavar="G", help=what)
    what = "also predict each placement by a fit to all others"
    parser.add_argument("--leave-out", action="store_true", help=what)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document (default)")
    form.add_argument("--text", action="store_true", help="text with units instead")
    parser.set_defaults(run=partial(_on_one_thread, "schedlab.studies.cloud.model.fit_report:run_fit"))


def _add_plan(commands: Subcommands) -> None:
    about = "choose the allocation for a training job from its logs, or from short runs: "
    about += "the cheapest that meets the limits"
    parser = commands.add_parser("plan", help=about, description=about)
    add = parser.add_argument
    what = "training logs of the job on some allocations; or, after `--`, a command that trains, which is measured "
    add("logs", nargs="+", metavar="LOG.csv | -- COMMAND", help=what + "on this machine first")
    add("--deadline", type=_duration, metavar="SECONDS", help="longest training time, in s, or as in 90m or 1.5h")
    what = "highest cost; without a deadline, the fastest allocation within the budget"
    add("--budget", type=float, metavar="DOLLARS", help=what)
    add("--limits", type=Path, metavar="FILE", help="limits such as time_max and throughput_min, in YAML or JSON")
    what = "probability with which limits on time and cost are to hold (default: 0.9)"
    add("--probability", type=float, default=0.9, metavar="P", help=what)
    what = "available resources (default: as many GPUs and cores as in the logs)"
    add("--max", type=_amounts, metavar="GPUS,CORES,GB", help=what)
    what = "prices of a GPU, a core and a GB, $/h (default: 2.5,0.1,0.02)"
    add("--prices", type=_amounts, metavar="GPU,CORE,GB", help=what)
    what = "choose among the instance types of this catalogue, on demand and spot, instead of any GPUs, cores and GB"
    add("--instances", type=Path, metavar="FILE.csv", help=what)
    add("--region", metavar="NAME", help="region of the catalogue, if it has several")
    what = "kind of the GPUs in the logs, if they have no column gpu_kind and the catalogue has several kinds"
    add("--gpu-kind", metavar="NAME", help=what)
    what = "probability that a spot instance is interrupted within an hour, where the catalogue states none"
    add("--interruption-rate", type=float, metavar="P", help=what)
    what = "epochs between two checkpoints, from which an interrupted training goes on (default: 1)"
    add("--checkpoint", type=int, default=1, metavar="N", help=what)
    what = "time until another instance replaces an interrupted one (default: 120)"
    add("--restart", type=_duration, default=120.0, metavar="SECONDS", help=what)
    add("--epochs", type=int, metavar="N", help="length of the training (default: as in the logs)")
    add("--batch_size", type=int, metavar="N", help="batch size in total (default: as in the logs)")
    add("--gpus-per-node", type=int, default=4, metavar="G", help="GPUs of a node (default: 4)")
    add("--seed", type=int, default=0, help="seed of the resamples that give the probabilities (default: 0)")
    add("--picture", type=Path, metavar="FILE.png", help="also draw time and cost of all allocations")
    add("--json", action="store_true", help="one JSON document instead of a table")
    parser.set_defaults(run=partial(_until_terminated, "schedlab.studies.cloud.optimize.plan_command:run"))


def _add_sweep(commands: Subcommands) -> None:
    about = "run a training script on a grid of allocations, write its epochs as CSV and fit the performance model "
    about += "to them"
    parser = commands.add_parser("sweep", help=about, description=about)
    add = parser.add_argument
    add("--training_file", type=Path, required=True, metavar="FILE.py", help="the script")
    what = "table to write; the runs are stored in the folder FILE-runs"
    add("--output", type=Path, required=True, metavar="FILE.csv", help=what)
    add("--gpus", type=_numbers, metavar="0,1,2", help="GPUs to try (default: one, two, all)")
    add("--cores", type=_numbers, metavar="1,2,4", help="cores to try (default: one, half, all)")
    add("--memory", type=_numbers, metavar="4,8", help="memory to try, GB (default: all)")
    add("--batches", type=_numbers, metavar="32,64", help="batch sizes to try (default: the script's own)")
    add("--epochs", type=int, default=2, metavar="N", help="epochs of each run; the first warms up (default: 2)")
    add("--dataset_path", type=Path, metavar="DIR", help="data of the script")
    add("--time_limit", type=float, default=600.0, metavar="S", help="wall-clock limit of a run (default: 600)")
    add("--seed", type=int, default=0, help="seed of the script (default: 0)")
    add("--gpus-per-node", type=int, default=4, metavar="G", help="for the fit (default: 4)")
    add("--json", action="store_true", help="one JSON document instead of lines")
    parser.set_defaults(run=partial(_until_terminated, "schedlab.studies.cloud.live.sweep:run_sweep"))


def _add_optimize(commands: Subcommands) -> None:
    about = "measure a training script, plan its resources within the limits, train with them, and write a report"
    parser = commands.add_parser("optimize", help=about, description=about)
    add = parser.add_argument
    what = "training command after `--`, instead of scripts; {batch}, {epochs}, {gpus} and {cores} are replaced"
    add("command", nargs="*", metavar="COMMAND", help=what)
    add("--training_file", type=Path, nargs="+", metavar="FILE.py", help="one or more scripts")
    add("--dataset_path", type=Path, metavar="DIR", help="data of the script (default: ./data, if it exists)")
    what = "logs of earlier runs, or folders of them"
    add("--offline_logs", type=Path, nargs="+", metavar="LOG.csv", help=what)
    add("--config", type=Path, metavar="FILE", help="settings in YAML or JSON; options override them")
    what = "preference: balanced, cost, time, resource, or weights of cost, time and resource "
    add("--preference", metavar="NAME|0.1:0.1:0.8", help=what + "(default: balanced)")
    add("--epochs", type=int, metavar="N", help="length of the training; required, here or in --config")
    add("--batch_size", dest="batch", type=int, metavar="N", help="batch size (default: the script's own)")
    add("--time_max", type=float, metavar="S", help="longest training time, s")
    add("--time_target", type=float, metavar="MIN", help="the same in minutes")
    add("--cost_max", type=float, metavar="USD", help="highest cost, $")
    add("--cost_target", type=float, metavar="USD", help="the same")
    add("--throughput_min", type=float, metavar="N", help="lowest throughput, samples/s")
    add("--baseline_samples", type=int, metavar="N", help="short runs on the whole machine (default: 4)")
    what = "their length as a share of the training (default: 0.2)"
    add("--baseline_ratio", type=float, metavar="SHARE", help=what)
    add("--interval", type=int, metavar="N", help="epochs between decisions (default: a quarter of the training)")
    add("--time_limit", type=float, metavar="S", help="wall-clock limit of one run of the script (default: 3600)")
    what = "limit on the files that one run writes to its folder (default: 20)"
    add("--disk_limit", type=float, metavar="GB", help=what)
    add("--max_spend", type=float, metavar="USD", help="highest cost of measuring and training together, $")
    what = "probability with which limits on time and cost are to hold (default: 0.9)"
    add("--probability", type=float, metavar="P", help=what)
    what = "policy during the run: plan (default), or a learner of the study, such as reinforce"
    add("--learner", metavar="NAME", help=what)
    add("--seed", type=int, metavar="N", help="seed of the script and the learner (default: 0)")
    what = "measure and print the plan; do not train"
    add("--dry_run", action="store_true", help=what)
    what = "measure no baseline; use the model's estimate instead"
    add("--skip_baseline", action="store_true", help=what)
    what = "repeat short runs that an earlier call with this output folder has measured"
    add("--measure_again", action="store_true", help=what)
    what = "for reports and tables (default: cloud-optimize)"
    add("--output_dir", type=Path, default=Path("cloud-optimize"), metavar="DIR", help=what)
    add("--log_dir", type=Path, metavar="DIR", help="for logs of baseline and run (default: OUTPUT_DIR/logs)")
    parser.set_defaults(run=partial(_until_terminated, "schedlab.studies.cloud.optimize.command:run"))


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of whole numbers, as in 1,2,4") from None


def _duration(text: str) -> float:
    return load_object("schedlab.studies.cloud.optimize.plan_command:seconds_of")(text)


def _amounts(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if len(found) != 3 or not all(0 <= value < 1e9 for value in found):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of three amounts, as in 8,64,256")
    return found


def _on_one_thread(function: str, arguments: argparse.Namespace) -> int:
    """Run a command that fits a model on one thread: the optimiser's small matrices are ten times slower on several."""
    one_thread()  # before anything heavy is imported
    return load_object(function)(arguments)


def _until_terminated(function: str, arguments: argparse.Namespace) -> int:
    """Run a command that runs users' scripts. SIGTERM ends the command with exit status 143 and ends the scripts'
    processes.
    """
    try:
        with unwinding():
            return _on_one_thread(function, arguments)
    except Terminated:
        return STATUS
