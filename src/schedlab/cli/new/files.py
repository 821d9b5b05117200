"""`schedlab new scenario|policy|platform`: creates a file of conf/ with its required keys and their meanings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

from schedlab.config.composition import Composer, value_at
from schedlab.config.contract import Study
from schedlab.config.data_paths import CHECKOUT, SHIPPED
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import write_text
from schedlab.config.readers import option_names, read_value, read_yaml
from schedlab.config.schema import parameter_rows
from schedlab.config.settings import NAME, RESERVED_NAMES, SCALES
from schedlab.stages import studies

TEMPLATES = Path(__file__).with_name("templates")
STOCK = ("maskable_ppo", "ppo", "a2c", "dqn", "ddpg")


def new_scenario(conf: str, name: str) -> int:
    """Write conf/scenario/<study>/<name>.yaml, with the required values of an existing scenario; return 0. Raises
    UserError.
    """
    folder = _folder(conf)
    study, own = _study_and_name(folder, name, "scenario")
    composer = Composer(folder, "small")
    group = f"scenario/{study.name}"
    base = (folder / group / "_base.yaml").is_file()
    inherited = composer.made.get(group, "_base")[0] if base else {}
    files = {*option_names(folder / group)} & {*composer.names(group)}  # without families
    like = _leading_scenario(composer, study.name, sorted(files))
    example = composer.made.get(group, like)[0] if like else {}
    options = _options(folder / group / f"{like}.yaml") if like else {}
    required = list(_required(study, inherited, example, like))
    values = {
        "study": study.name,
        "name": _text(own),
        "base": base,
        "options": {
            entry: _text(option) for key, (entry, option) in options.items() if key in [row["key"] for row in required]
        },
        "required": [row for row in required if row["key"] not in options],
        "lists": {key: _plain(example.get(key) or []) for key in ("rules", "policies") if key not in inherited},
    }
    return _write(folder, f"{group}/{own}.yaml", "scenario.yaml", values, f"schedlab check {study.name}/{own}")


def new_policy(conf: str, name: str, learner: str) -> int:
    """Write conf/policy/<study>/<name>.yaml with a learner of the study; return 0. Raises UserError."""
    folder = _folder(conf)
    study, own = _study_and_name(folder, name, "policy")
    ready = option_names(folder / "learner" / study.name)  # learners with values for this study
    known = sorted({*ready, *study.learners})
    if not known:
        raise UserError(f"the study '{study.name}' has no learners", where="STUDY/NAME")
    if learner and learner not in known:
        raise UserError(f"there is no learner '{learner}'", where="--learner", remedy=did_you_mean(learner, known))
    chosen = learner or next((stock for stock in STOCK if stock in known), known[0])
    composer = Composer(folder, "small")
    scenario = _leading_scenario(composer, study.name, composer.names(f"scenario/{study.name}"))
    if not scenario:
        remedy = f"write one first: schedlab new scenario {study.name}/NAME"
        raise UserError(f"the study '{study.name}' has no scenario to learn on", where="STUDY/NAME", remedy=remedy)
    values = {
        "study": study.name,
        "name": _text(own),
        "learner": _text(chosen),
        "file": chosen in ready,
        "known": ", ".join(known),
        "scenario": _text(scenario),
    }
    return _write(
        folder, f"policy/{study.name}/{own}.yaml", "policy.yaml", values, f"schedlab check {study.name}/{own}"
    )


def new_platform(conf: str, name: str) -> int:
    """Write conf/platform/<name>.yaml, generated from ranges; return 0. Raises UserError."""
    folder = _folder(conf)
    if not (folder / "platform").is_dir():
        what, remedy = "no study here takes a platform", "go to the folder whose conf/ does, or name it: --conf DIR"
        raise UserError(what, where=str(folder), expected="a configuration folder with platform/", remedy=remedy)
    _check_name(folder / "platform", name, option_names(folder / "platform"))
    return _write(folder, f"platform/{name}.yaml", "platform.yaml", {"name": _text(name)}, "schedlab check")


def _folder(conf: str) -> Path:
    """Return the named configuration folder; if there is no ./conf, that of the checkout. Raises UserError."""
    folder = Path(conf)
    if folder.is_dir():
        return folder
    if conf == "conf" and SHIPPED == CHECKOUT:
        return SHIPPED / "conf"
    remedy = f"copy the shipped one: cp -r {SHIPPED / 'conf'} . ; or begin a study: schedlab new study NAME"
    raise UserError("there is no such folder", where=conf, expected="a configuration folder", remedy=remedy)


def _study_and_name(folder: Path, name: str, group: str) -> tuple[Study, str]:
    """Return the study of STUDY/NAME, and the name, which must be new. Raises UserError."""
    study, slash, own = name.partition("/")
    if not slash:
        raise UserError(
            f"'{name}' names no study", where="STUDY/NAME", expected=f"a study and a new name: STUDY/{name}"
        )
    if study not in (known := studies.names(folder)):
        raise UserError(f"there is no study '{study}'", where="STUDY/NAME", remedy=did_you_mean(study, known))
    place = folder / group / study
    _check_name(place, own, Composer(folder, "small").names(f"{group}/{study}"))
    return studies.load(study, folder), own


def _check_name(place: Path, name: str, known: list[str]) -> None:
    if not re.fullmatch(NAME, name) or name in RESERVED_NAMES:
        expected = "small letters, digits, . _ -, and no reserved word"
        raise UserError(f"'{name}' cannot be a name", where="NAME", expected=expected)
    if name in known or (place / f"{name}.yaml").exists():
        raise UserError("the name is taken", where=str(place / f"{name}.yaml"), remedy="choose another one")


def _leading_scenario(composer: Composer, study: str, names: list[str]) -> str:
    """Return a scenario as example: one of a question of the study that runs at the scales smoke and small, else
    another one that does, else any; empty if there is none.
    """
    questions = composer.made.get("study", study)[0].get("headline") or []
    asked = [name for question in questions for name in question["scenarios"] if name in names]
    for name in (*asked, *names):
        scales = composer.compose(f"scenario/{study}", name).values.get("scales", SCALES)
        if {"smoke", "small"} <= {*scales}:
            return name
    return next(iter((*asked, *names)), "")


def _options(file: Path) -> dict[str, tuple[str, str]]:
    """Return key of a scenario -> the entry of its defaults list that fills this key from another file, such as
    `/model`.
    """
    entries = [entry for entry in read_yaml(file).get("defaults") or [] if isinstance(entry, dict)]
    found = [(str(entry), str(option)) for pairs in entries for entry, option in pairs.items()]
    return {re.split("[/@]", entry)[-1]: (entry, option) for entry, option in found}


def _required(
    study: Study, inherited: Mapping[str, Any], example: Mapping[str, Any], like: str
) -> Iterator[dict[str, str]]:
    """Yield key, value and meaning of each required key that the base does not set; `???`: no value is known.

    like: name of the example
    """
    for key, _, default, unit, doc in parameter_rows(study.scenario):
        keys = key.split(".")
        if default != "required" or key == "name" or value_at(inherited, keys) is not None:
            continue
        value = value_at(example, keys)
        meaning = [doc, "" if unit == "-" else unit, "" if value is None else f"as in {like}"]
        yield {"key": key, "value": _plain(value), "meaning": "; ".join(filter(None, meaning))}


def _text(name: str) -> str:
    """Return a name as YAML text, in quotes if YAML would read another value, such as a number, without them."""
    return name if read_value(name, "name") == name else f"'{name}'"


def _plain(value: Any) -> str:
    """Return a value on one line of YAML; `???` for None."""
    if value is None:
        return "???"
    if isinstance(value, str) and value.startswith("${"):
        return value
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).removesuffix("...\n").strip()


def _write(folder: Path, name: str, template: str, values: Mapping[str, Any], check: str) -> int:
    """Write a file of the configuration from a template; print its path and the command that checks it; return 0."""
    text = jinja2.Template((TEMPLATES / template).read_text("utf-8"), trim_blocks=True, keep_trailing_newline=True)
    write_text(folder / name, text.render(values))
    print(f"written: {folder / name}\ncheck it: {check}")
    return 0
