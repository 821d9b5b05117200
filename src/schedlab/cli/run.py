"""`schedlab run`: runs Snakemake in the working directory, after a check of `--config`.

Snakemake itself ends in a traceback for a key that is no plain word, before it reads the Snakefile; so its plugin
snakemake_logger_plugin_schedlab looks at the words here, too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.data_paths import SHIPPED
from schedlab.config.errors import UserError
from schedlab.config.readers import read_yaml
from schedlab.config.runtime.options import check_keys

ON_CORES = ("--cores", "-c", "--jobs", "-j", "--profile", "--workflow-profile", "--executor", "-e")
ELSEWHERE = ("--snakefile", "-s")
LIBRARY, UPPER = "workflow/rules/library.smk", "../Snakefile"  # what the Snakefile includes; workflow/Snakefile does it
NOWHERE = ("--help", "-h", "--version", "-v")


def run(words: Sequence[str]) -> int:
    """Run Snakemake with these arguments and return its exit status. Defaults: all cores, and the Snakefile of the
    checkout or the installation. Raises UserError for an argument after `--config` that sets no key there is.
    """
    check_words(words)
    more: list[str] = []
    if not _names(words, (*ON_CORES, *NOWHERE)):
        more += ["--cores", "all"]
    if not _names(words, (*ELSEWHERE, *NOWHERE)) and not any(map(Path.is_file, _snakefiles())):
        more += ["--snakefile", str(SHIPPED / "Snakefile")]
    return subprocess.run([sys.executable, "-m", "snakemake", *more, *words], check=False).returncode


def check_words(words: Sequence[str]) -> None:
    """Raise UserError for an argument after `--config` that sets no key there is."""
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
    """Where Snakemake looks for a Snakefile."""
    return [Path(name) for name in ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")]


def _names(words: Sequence[str], options: Sequence[str]) -> bool:
    """Whether an option is among the words: `--cores 2`, `--cores=2`, `-c2`."""
    short = tuple(option for option in options if len(option) == 2)
    return any(
        word.partition("=")[0] in options or (word.startswith(short) and not word.startswith("--")) for word in words
    )


def _after(words: Sequence[str], *options: str) -> Iterator[str]:
    """Yield the words after an option, up to the next one."""
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
