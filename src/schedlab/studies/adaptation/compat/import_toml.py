"""The command `schedlab adaptation import`: run files of the published system as YAML of scenarios and policies."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.composition import Composer
from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.files import write_text
from schedlab.config.readers import option_names
from schedlab.config.records import policy_record, scenario_record
from schedlab.studies.adaptation.commands.conf import POLICIES, SCENARIOS, compose_file, load_option
from schedlab.studies.adaptation.compat.run_file import (
    ImportOptions,
    check_sizes,
    model_option,
    read_run_file,
    translate,
)
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture
from schedlab.studies.adaptation.study import STUDY


def run(arguments: argparse.Namespace) -> int:
    """Write the YAML files, or print them; print a line for each file, and remarks on standard error."""
    conf = Path(arguments.out)
    if not (conf / "config.yaml").is_file():
        what = f"there is no {conf}/config.yaml"
        raise UserError(what, where="--out", expected="a configuration folder", remedy="run in a checkout")
    if arguments.name and len(arguments.files) > 1:
        raise UserError("one name for several files", where="--name", remedy="import them one by one")
    imported = _translated(arguments, conf)
    texts = dict(_texts(imported, conf))
    taken = [path for path, text in texts.items() if path.exists() and path.read_text(encoding="utf-8") != text]
    if taken and not (arguments.force or arguments.dry_run):
        raise UserErrors(
            UserError("the file is there already", where=str(path), remedy="use --name or --force") for path in taken
        )
    _verify(conf, texts)
    for remark in [*(remark for entry in imported for remark in entry.remarks), *_uncompared(imported)]:
        print(remark, file=sys.stderr)
    for path, text in texts.items():
        if arguments.dry_run:
            print(f"--- # {path}\n{text}", end="")
        else:
            write_text(path, text)
            print(path)
    return 0


def _translated(arguments: argparse.Namespace, conf: Path) -> list[Any]:
    """Return the contents of the files. Scenarios and policies of one call may refer to each other.

    Raises UserErrors with the mistakes of all files.
    """
    options = ImportOptions(
        option_names(conf / "model"), option_names(conf / "data"), arguments.timing, arguments.name, arguments.record
    )
    imported, errors = [], list[UserError]()
    for file in arguments.files:
        try:
            run_file, remarks = read_run_file(file, arguments.ignore_unknown)
            imported.append(translate(file, run_file, options, remarks))
            _check_sizes(str(file), run_file, options, conf)
        except UserError as error:
            errors += error.errors
    if not errors:
        errors = list(_connect(imported, conf))
    if errors:
        raise UserErrors(errors)
    return imported


def _check_sizes(where: str, run_file: Any, options: Any, conf: Path) -> None:
    model = load_option(str(conf), "model", model_option(where, run_file, options), ModelSettings, {"head_relu": True})
    check_sizes(where, run_file, architecture(model).deepenable_blocks + 1)


def _connect(imported: Sequence[Any], conf: Path) -> Iterator[UserError]:
    """Connect policies with their scenarios and parents; yield an error for each that is missing or given twice."""
    for group in ("scenario", "policy"):
        names = [entry.name for entry in imported if getattr(entry, group)]
        for twice in sorted({name for name in names if names.count(name) > 1}):
            yield UserError(f"two files give the {group} '{twice}'", remedy="import one of them with --name")
    own = {entry.name: entry.scenario for entry in imported if entry.scenario}
    policies = {entry.name: entry.policy["seeds"] for entry in imported if entry.policy}
    composer = Composer(conf, "paper" if "paper" in option_names(conf / "scale") else "full")
    there = composer.names(SCENARIOS)
    experiments = {} if not policies else _experiments(composer, there)
    for scenario in own.values():
        scenario["policies"] = list(policies)
    for entry in imported:
        if not entry.policy:
            continue
        wanted = entry.policy["train_on"][0]["scenarios"][0]
        found = wanted if wanted in own or wanted in there else experiments.get(wanted)
        if found is None:
            remedy = (
                f"import that simulation's run file in the same call, or before; {did_you_mean(wanted, [*own, *there])}"
            )
            what = f"there is no scenario '{wanted}'"
            yield UserError(what, where=f"{entry.file}: simulation.datafile", remedy=remedy)
        entry.policy["train_on"][0]["scenarios"] = [found]
        parent = entry.policy.get("parent")
        if parent and parent not in policies and parent not in composer.names(POLICIES):
            remedy = "import that learning run's file in the same call, or before"
            yield UserError(f"there is no policy '{parent}'", where=f"{entry.file}: agent.policyfile", remedy=remedy)
        if parent in policies and not set(entry.policy["seeds"]) <= set(policies[parent]):
            expected = f"the parent's, {policies[parent][0]}"
            yield UserError(f"seed {entry.policy['seeds'][0]}", where=f"{entry.file}: runner.seed", expected=expected)


def _uncompared(imported: Sequence[Any]) -> Iterator[str]:
    """Yield a remark for each policy that no scenario of the same call compares, because it would not be learned."""
    named = {name for entry in imported if entry.scenario for name in entry.scenario["policies"]}
    for entry in imported:
        if entry.policy and entry.name not in named:
            on = entry.policy["train_on"][0]["scenarios"][0]
            yield f"{entry.file}: name '{entry.name}' under `policies` of the scenarios to compare it in, such as {on}"


def _experiments(composer: Composer, scenarios: Sequence[str]) -> dict[str, str]:
    """Return experiment of the published record -> the scenario that reads it."""
    found = {}
    for name in scenarios:
        values = composer.compose(SCENARIOS, name).values
        for place in (values, values.get("reference") or {}):
            if experiment := (place.get("table") or {}).get("experiment"):
                found[str(experiment)] = name
    return found


def _texts(imported: Sequence[Any], conf: Path) -> Iterator[tuple[Path, str]]:
    for entry in imported:
        for group, values in ((SCENARIOS, entry.scenario), (POLICIES, entry.policy)):
            if values:
                yield (
                    conf / group / f"{entry.name}.yaml",
                    _dump(values, f"# From {Path(entry.file).name}, a run file of the published system.\n"),
                )


def _dump(values: Mapping[str, Any], header: str) -> str:
    import yaml

    return header + yaml.safe_dump(
        dict(values), sort_keys=False, default_flow_style=None, width=140, allow_unicode=True
    )


def _verify(conf: Path, texts: Mapping[Path, str]) -> None:
    """Compose and check the files in a copy of the folder, so that nothing wrong is ever written. Raises UserErrors."""
    errors: list[UserError] = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "conf"
        shutil.copytree(conf, copy)
        for path, text in texts.items():
            (copy / path.relative_to(conf)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(conf)).write_text(text, encoding="utf-8")
        scales = option_names(copy / "scale")
        scale = "paper" if "paper" in scales else scales[0]
        for path in texts:
            group, make = (SCENARIOS, scenario_record) if path.parent == conf / SCENARIOS else (POLICIES, policy_record)
            try:
                make(compose_file(copy, scale, group, path.stem), path.stem, STUDY)
            except UserErrors as several:
                errors += several.errors
            except UserError as error:
                errors.append(error)
    if errors:
        raise UserErrors(errors)
