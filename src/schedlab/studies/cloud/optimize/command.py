"""`schedlab cloud optimize`: optimises one training after another, writes a report of each, and adds it to the
history.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path, write_bytes, write_json, write_text
from schedlab.studies.cloud.live.process import ScriptFailed
from schedlab.studies.cloud.live.run import new_folder
from schedlab.studies.cloud.live.script import SCRIPT
from schedlab.studies.cloud.model.allocation import PRICES, whole
from schedlab.studies.cloud.model.analyser import OfflineDataAnalyzer
from schedlab.studies.cloud.optimize.flow import Optimization, Training, command_of, optimize, plan_only
from schedlab.studies.cloud.optimize.plan import Plan, text
from schedlab.studies.cloud.optimize.plots import plots
from schedlab.studies.cloud.optimize.report import report_page, report_text, report_values
from schedlab.studies.cloud.optimize.settings import (
    LimitSettings,
    OptimizeSettings,
    checked_settings,
    length_of,
    read_settings,
)
from schedlab.studies.cloud.optimize.tables import runs_so_far, write_tables

log = logging.getLogger(__name__)
HISTORY = "history.jsonl"
DATA = Path("data")  # default data folder of a script, used if it exists and no other folder is named


def settings_of(arguments: argparse.Namespace) -> OptimizeSettings:
    """Return the settings of the configuration file and the options. Raises UserErrors."""
    given = {name: value for name, value in vars(arguments).items() if value is not None and value is not False}
    for target, limit, factor in (("time_target", "time_max", 60.0), ("cost_target", "cost_max", 1.0)):
        if target in given:
            if limit in given:
                what, expected = "both are given", "one of them: they say the same"
                raise UserError(what, where=f"--{target}, --{limit}", expected=expected)
            given[limit] = given[target] * factor
    options: dict[str, Any] = {name: value for name, value in given.items() if name in OptimizeSettings.model_fields}
    options["sla"] = {name: value for name, value in given.items() if name in LimitSettings.model_fields}
    if "learner" in given:
        options["rl"] = {"learner": given["learner"]}
    settings = read_settings(arguments.config, options)
    length_of(settings)
    return settings


def read_logs(given: Sequence[Path], store: Path) -> OfflineDataAnalyzer:
    """Return the analyser with the logs of earlier runs: those of the store, and of given files or folders. Raises
    UserErrors.
    """
    analyser = OfflineDataAnalyzer(store)
    for path in given:
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        if not files:
            raise UserError("the folder holds no log", where=str(path), expected="files that end in .csv")
        for file in files:
            analyser.add_log(file)
    return analyser


def trained(arguments: argparse.Namespace) -> tuple[tuple[str, ...], list[Path]]:
    """Return the words of a command, with files by their full paths, and the scripts. A command is named by its first
    file, else by its program. Raises UserError if neither or both are given, and for invalid files.
    """
    scripts, words = arguments.training_file or [], arguments.command
    if bool(scripts) == bool(words):
        what, expected = "both are given" if words else "neither is given", "scripts in Python, or words of a command"
        raise UserError(what, where="--training_file, -- COMMAND", expected=expected)
    if words:
        if not shutil.which(words[0]):
            where = f"-- {words[0]}"
            raise UserError("there is no such command", where=where, expected="a program on PATH, or the path of one")
        command, named = command_of(words)
        return command, [named]
    stems = [path.stem for path in scripts]
    if len(set(stems)) < len(stems):
        raise UserError("two scripts have one name", where="--training_file", expected="names that tell them apart")
    for path in scripts:
        if not path.is_file():
            raise UserError("there is no such file", where=f"--training_file {path}", expected=SCRIPT)
    return (), scripts


def run(arguments: argparse.Namespace) -> int:
    """Optimise every training file. Return exit status 1 if a script failed or a run exceeded a limit."""
    settings = settings_of(arguments)
    dataset = arguments.dataset_path or (DATA if DATA.exists() else None)
    if dataset is not None and not dataset.exists():
        raise UserError("there is no such folder", where=f"--dataset_path {dataset}")
    command, scripts = trained(arguments)
    stems = [path.stem for path in scripts]
    settings.resource.limits()
    folders = [arguments.output_dir if len(stems) == 1 else arguments.output_dir / stem for stem in stems]
    analysers = [read_logs(arguments.offline_logs or (), folder / HISTORY) for folder in folders]
    for folder in folders:
        runs_so_far(folder)
    status = 0
    for path, folder, analyser in zip(scripts, folders, analysers, strict=True):
        try:
            training = Training(path, settings, dataset, analyser, new_folder(folder / "work"), command)
            if arguments.dry_run:
                found = plan_only(training)
                print(text(found), end="")
                status = max(status, int(found.chosen is None))
                continue
            outcome = optimize(training)
        except ScriptFailed as error:
            log.error("error: %s", error)
            status = 1
            continue
        print(write_all(outcome, folder, arguments.log_dir or folder / "logs", analyser), end="")
        log.info("report: %s", folder / "report.html")
        status = max(status, int(outcome.cut_off))
    return status


def measured_plan(arguments: argparse.Namespace, command: list[str], limits: LimitSettings) -> tuple[Plan, Path]:
    """Return the plan of a command's training, after short measurements on this machine, and the log of these."""
    if arguments.epochs is None:
        what, remedy = "the length of the training is not given", "give --epochs N"
        raise UserError(what, where="--epochs", expected="a whole number of epochs", remedy=remedy)
    resource: dict[str, Any] = dict(zip(PRICES, arguments.prices or (), strict=False))
    if arguments.max is not None:
        most = map(whole, arguments.max)
        resource |= dict(zip(("gpu_count_max", "cpu_count_max", "memory_max"), most, strict=True))
    given = {
        "epochs": arguments.epochs,
        "batch": arguments.batch_size,
        "probability": arguments.probability,
        "seed": arguments.seed,
        "gpus_per_node": arguments.gpus_per_node,
        "skip_baseline": True,
        "sla": limits.model_dump(),
        "resource": resource,
    }
    settings = checked_settings(given)
    resolved, named = command_of(command)
    folder = new_folder(Path("cloud-plan"))
    found = plan_only(Training(named, settings, None, OfflineDataAnalyzer(), folder, resolved))
    return found, folder / "measured.csv"


def write_all(outcome: Optimization, folder: Path, logs: Path, analyser: OfflineDataAnalyzer) -> str:
    """Write tables, reports, policy and logs of a run, and add the run to the analyser's store. Return the report as
    text.
    """
    now = datetime.datetime.now(datetime.UTC)
    values = report_values(outcome)
    text = report_text(values)
    write_json(folder / "report.json", values)
    write_text(folder / "report.txt", text)
    write_text(folder / "report.html", report_page(values, plots(outcome)))
    if outcome.learned.policy is not None:
        write_bytes(folder / "policy.zip", (outcome.folder / "policy.zip").read_bytes())
    write_tables(outcome, folder, now.isoformat(timespec="seconds"))
    keep_logs(outcome, logs, now)
    if outcome.live_tables:
        import pandas as pd

        gpu = "gpu" if outcome.job.resource.gpu_count_max else "cpu"
        analyser.update_with_result(pd.concat(outcome.live_tables, ignore_index=True), outcome.script.stem, gpu)
    return text


def keep_logs(outcome: Optimization, folder: Path, now: datetime.datetime) -> None:
    """Store the completed logs of baseline and run as `<script>_<baseline|optimized>_<unix time in s>.csv`.

    Only the names of these measurements, which cannot be repeated, contain the time. Nothing is overwritten: if logs of
    this second exist, the next free second is used.
    """
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    live = pd.concat(outcome.live_tables) if outcome.live_tables else None
    tables = {"baseline": outcome.baseline_table, "optimized": live}
    stem, second = outcome.script.stem, int(now.timestamp())
    while any((folder / f"{stem}_{name}_{second}.csv").exists() for name in tables):
        second += 1
    for name, table in tables.items():
        if table is not None:
            with atomic_path(folder / f"{stem}_{name}_{second}.csv") as temporary:
                table.to_csv(temporary, index=False)
