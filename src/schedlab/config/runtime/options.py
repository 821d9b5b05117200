"""The settings of a run in `--config`: its scale, its name, single values of the configuration, and sweeps over values.

A sweep (`sweep="KEY=VALUE,VALUE"`) is a run for each value, or for each combination if it names several keys. Each run
is a variant like any other, `<name>-<value>`, so that it can also be made and found alone.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.experiment import Experiment
from schedlab.config.readers import option_names
from schedlab.config.runtime.freeze import draw_part
from schedlab.config.variations import Override, assignments, overlay, parsed, swept, value_text

OPTIONS = ("scale", "variant", "set", "sweep", "conf", "notify", "fetch")  # all other keys overlay the configuration
NAME = "[a-z0-9._-]*"
OF_STUDY = ("study", "module", "path", "results_version", "scale", "theme", "statistics")  # also in the part `draw`


def check_keys(keys: Iterable[str], folder: Path) -> None:
    """Raise UserError for a key of `--config` that is not an option, the seed, or a folder of the configuration."""
    groups = {path.name for path in folder.glob("*/")}
    for key in keys:
        first = key.partition(".")[0]
        if "." in key and first in groups | {"learner"}:
            remedy = f'write set="{key}=VALUE" and variant=NAME'
            raise UserError(f"'{key}' is no key of --config", where="--config", remedy=remedy)
        if "." in key and first in option_names(folder / "study"):
            remedy = f'write set="scenario.{first}.<scenario>.{key.partition(".")[2]}=VALUE" and variant=NAME'
            raise UserError(f"'{key}' is no key of --config", where="--config", remedy=remedy)
        if key != "seed" and key not in (*OPTIONS, *groups):
            valid = [*OPTIONS, "seed", *groups]
            raise UserError(f"unknown key '{key}'", where="--config", remedy=did_you_mean(key, valid))


def fetches(config: Mapping[str, Any]) -> bool:
    """Return whether a run downloads missing data. Raises UserError for a value that is neither true nor false."""
    value = str(config.get("fetch", False)).lower()  # Snakemake reads "true" as text
    if value not in ("true", "false"):
        raise UserError(f"'{value}' is neither", where="--config: fetch", expected="true or false")
    return value == "true"


def overrides_of(config: Mapping[str, Any], folder: Path) -> list[Override]:
    """Return the values that a run sets: those of an overlay, then those of `set`. Raises UserError, also if the run's
    name is missing or invalid.
    """
    check_keys(config, folder)
    laid_over = {key: value for key, value in config.items() if key not in OPTIONS}
    for key, value in laid_over.items():
        if key != "seed" and not isinstance(value, dict):
            expected = "keys and their values, as the files of that folder hold them"
            raise UserError(f"'{key}' holds {value!r}", where="--config", expected=expected)
    variant = str(config.get("variant") or "")
    overrides = [*overlay(laid_over), *parsed(_assignments(config))]
    if overrides and not variant:
        remedy = "add variant=NAME; the run then lies below results/<scale>-NAME/"
        raise UserError("values are set for a run that has no name", where="--config", remedy=remedy)
    if not re.fullmatch(NAME, variant):
        expected = "small letters, digits, . _ -"
        raise UserError(f"'{variant}' cannot be a name", where="--config: variant", expected=expected)
    return overrides


def _assignments(config: Mapping[str, Any]) -> list[str]:
    """Return the assignments in `set`."""
    given = config.get("set") or ""
    return assignments(given if isinstance(given, list) else str(given))


@dataclass(frozen=True)
class SweptRun:
    """One run of a sweep: its name, the assignments that define it, and the value of each swept key."""

    name: str
    texts: tuple[str, ...]
    values: dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    """Runs over all combinations of values. `name`: name of the whole sweep; text: the sweep as given by the user."""

    name: str
    text: str
    runs: tuple[SweptRun, ...]

    def config_of(self, run: SweptRun, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the `--config` of one run of the sweep."""
        rest = {key: value for key, value in config.items() if key != "sweep"}
        return rest | {
            "variant": f"{self.name}-{run.name}",
            "set": [*_assignments(config), *run.texts],
        }


def sweep_of(config: Mapping[str, Any]) -> Sweep:
    """Return the runs that `sweep` defines. Raises UserError."""
    given = config["sweep"]
    texts = assignments(given) if isinstance(given, list) else _with_their_values(assignments(str(given)))
    members = [swept(text) for text in texts]
    keys = [".".join(member[0].keys) for member in members]
    if twice := next((key for key in keys if keys.count(key) > 1), ""):
        raise UserError(f"'{twice}' is swept twice", where="--config: sweep", expected="each key once, with all values")
    runs = []
    for combination in itertools.product(*members):
        name = "-".join(_name_of(override) for override in combination)
        values = dict(zip(keys, (override.value for override in combination), strict=True))
        runs.append(SweptRun(name, tuple(map(str, combination)), values))
    names = [run.name for run in runs]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UserError(f"two runs would be called '{twice}'", where="--config: sweep", remedy="remove one of them")
    usual = re.sub("[^a-z0-9._-]+", "-", "-".join("-".join(key.split(".")[-2:]) for key in keys).lower())
    return Sweep(str(config.get("variant") or usual), " ".join(texts), tuple(runs))


def _with_their_values(pieces: Sequence[str]) -> list[str]:
    """Append values without a key to the assignment before them: 'a=1', '2', 'b=3' gives 'a=1,2', 'b=3'."""
    joined: list[str] = []
    for piece in pieces:
        if joined and not re.match(r"[^=()\[\]{}'\"]+=", piece):
            joined[-1] += f",{piece}"
        else:
            joined.append(piece)
    return joined


def _name_of(override: Override) -> str:
    """Return the value of a swept key as part of a name. Raises UserError if the value gives no name."""
    name = re.sub("[^a-z0-9._-]+", "-", value_text(override.value).lower()).strip("-")
    if not name:
        raise UserError("a run cannot be named by this value", where=override.where, expected="numbers or words")
    return name


def sweep_part(sweep: Sweep, experiments: Sequence[Experiment], study: str) -> dict[str, Any]:
    """Return the frozen part that the table and the figure over a sweep read: the study, and each run with its values.

    experiments: the experiments of the runs, in the order of the sweep
    """
    first = experiments[0]
    part = draw_part(first, study)
    options = f"scale={first.scale} variant={sweep.name} sweep={shlex.quote(sweep.text)}"
    return {key: part[key] for key in OF_STUDY if key in part} | {
        "run": f"{first.scale}-{sweep.name}",
        "options": options,
        "runs": [{"run": one.run, "values": run.values} for one, run in zip(experiments, sweep.runs, strict=True)],
    }


def check_room(folder: Path, sweep: bool) -> None:
    """Raise UserError if the folder of a sweep already contains the results of a run, or that of a run those of a
    sweep.
    """
    other = "summarise.yaml" if sweep else "sweep.yaml"
    if next(folder.glob(f"*/config/{other}"), None):
        what = "the results of a single run lie there" if sweep else "the tables of a sweep lie there"
        raise UserError(what, where=str(folder), remedy="name this run otherwise, with variant=NAME, or delete them")
