"""`schedlab run`: runs Snakemake in the working directory, after a check of `--config`.

For a key that is not a plain word, Snakemake itself ends with a traceback before it reads the Snakefile. Therefore its
plugin snakemake_logger_plugin_schedlab also checks the arguments here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.data_paths import SHIPPED
from schedlab.config.errors import UserError
from schedlab.config.readers import read_json, read_yaml
from schedlab.config.runtime.options import check_keys
from schedlab.config.runtime.progress import duration
from schedlab.config.runtime.run_lock import is_held_elsewhere

ON_CORES = ("--cores", "-c", "--jobs", "-j", "--profile", "--workflow-profile", "--executor", "-e")
ELSEWHERE = ("--snakefile", "-s")
LIBRARY, UPPER = "workflow/rules/library.smk", "../Snakefile"  # included by the Snakefile and by workflow/Snakefile
NOWHERE = ("--help", "-h", "--version", "-v")
STATUS, RUN_LOCK = Path(".schedlab/status.json"), Path(".schedlab/run.lock")

LARGEST = 1e15  # of a number in the state of a run


def run(words: Sequence[str]) -> int:
    """Run Snakemake with these arguments and return its exit status. Defaults: all cores, and the Snakefile of the
    checkout or the installation. Raises UserError for an argument after `--config` that sets no known key.
    """
    check_words(words)
    more: list[str] = []
    if not _names(words, (*ON_CORES, *NOWHERE)):
        more += ["--cores", "all"]
    if not _names(words, (*ELSEWHERE, *NOWHERE)) and not any(map(Path.is_file, _snakefiles())):
        more += ["--snakefile", str(SHIPPED / "Snakefile")]
    return subprocess.run([sys.executable, "-m", "snakemake", *more, *words], check=False).returncode


def check_words(words: Sequence[str]) -> None:
    """Raise UserError for an argument after `--config` that sets no known key."""
    given = dict(map(_assignment, _after(words, "--config", "-C")))
    for file in _after(words, "--configfile", "--configfiles"):
        given |= read_yaml(Path(file))
    folder = Path(str(given.get("conf") or "conf"))
    check_keys(given, folder if folder.is_dir() else SHIPPED / "conf")


def is_of_schedlab(words: Sequence[str]) -> bool:
    """Return whether Snakemake, with these arguments, runs a Snakefile of schedlab."""
    named = map(Path, _after(words, "--snakefile", "-s"))
    file = next((path for path in (*named, *_snakefiles()) if path.is_file()), Path())
    return any(path.is_file() and LIBRARY in path.read_text("utf-8", "replace") for path in (file, file.parent / UPPER))


def _snakefiles() -> list[Path]:
    """Return the paths at which Snakemake looks for a Snakefile."""
    return [Path(name) for name in ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")]


def _names(words: Sequence[str], options: Sequence[str]) -> bool:
    """Return whether one of the options is among the words: `--cores 2`, `--cores=2`, `-c2`."""
    short = tuple(option for option in options if len(option) == 2)
    return any(
        word.partition("=")[0] in options or (word.startswith(short) and not word.startswith("--")) for word in words
    )


def _after(words: Sequence[str], *options: str) -> Iterator[str]:
    """Yield the words after each of some options, up to the next option."""
    within = False
    for word in words:
        if word.startswith("-"):
            option, _, word = word.partition("=")
            within = option in options
        if within and word:
            yield word


def _assignment(word: str) -> tuple[str, Any]:
    key, equals, value = word.partition("=")
    if not key or not equals:
        raise UserError(f"'{word}' sets nothing", where="--config", expected="KEY=VALUE; targets stand before --config")
    return key, value


def show_status(arguments: argparse.Namespace) -> int:
    """Print the state of a run; return 1 if jobs failed or the run was stopped. Raises UserError if none was
    started.
    """
    values = status_of(arguments.directory)
    print(json.dumps(values, indent=1) if arguments.json else status_text(values))
    return int(bool(values["failed"]) or values["state"] == "stopped")


def status_of(directory: Path) -> dict[str, Any]:
    """Return the state of the last run: `running`, `finished` or `stopped`, and the last state of its jobs
    (progress.JobLines.state). Raises UserError.
    """
    file = directory / STATUS
    if not file.exists():
        remedy = "start one by `snakemake --cores all`, or name its folder by --directory"
        raise UserError("no run was started here", where=str(directory.resolve()), remedy=remedy)
    found = read_json(file, what := "the state of a run")
    if not _is_state(found):
        remedy = "start a run, which replaces the file: snakemake --cores all"
        raise UserError("the file has another form", where=str(file), expected=what, remedy=remedy)
    passed = max(0.0, time.time() - found.pop("written"))
    if is_held_elsewhere(directory / RUN_LOCK):
        running = [{**job, "seconds": job["seconds"] + passed} for job in found["running"]]
        left = found["seconds_left"]
        return {"state": "running", **found, "running": running, "seconds_left": left and max(0.0, left - passed)}
    name = "finished" if found["done"] >= found["total"] else "stopped"
    return {"state": name, **found, "running": [], "seconds_left": None}


def _is_state(found: Any) -> bool:
    """Return whether a JSON value has the form of progress.JobLines.state, with the time at which it was `written`."""
    return (
        isinstance(found, dict)
        and all(_is_number(found.get(key)) for key in ("written", "total", "done"))
        and "seconds_left" in found
        and (found["seconds_left"] is None or _is_number(found["seconds_left"]))
        and all(isinstance(found.get(key), list) for key in ("running", "failed"))
        and all(isinstance(job, dict) and isinstance(job.get("job"), str) for job in found["running"] + found["failed"])
        and all(_is_number(job.get("seconds")) for job in found["running"])
        and all(isinstance(job.get("logs"), list) for job in found["failed"])
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def status_text(values: dict[str, Any]) -> str:
    """Return the state as lines of text."""
    left = values["seconds_left"]
    first = f"{values['state']}: {values['done']} of {values['total']} jobs done"
    lines = [first if left is None else f"{first}, about {duration(left)} left"]
    lines += [f"  running  {job['job']}, {duration(job['seconds'])}" for job in values["running"]]
    lines += [f"  failed   {job['job']}" + "".join(f", see {file}" for file in job["logs"]) for job in values["failed"]]
    if values["state"] == "stopped":
        lines.append("the same command as before goes on from here")
    return "\n".join(lines)
