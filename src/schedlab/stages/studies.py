"""Finds a study: the object STUDY in a module of schedlab, of the user, or of an installed package."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import schedlab
from schedlab.config.contract import Study
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.readers import read_yaml

GROUP = "schedlab.studies"  # entry points of installed packages: name = "module:STUDY"


def names(conf: Path | str = "conf") -> list[str]:
    """Return the names of the studies in a configuration folder (conf/study/*.yaml), sorted."""
    return sorted(path.stem for path in Path(conf, "study").glob("*.yaml") if not path.name.startswith("_"))


def load(name: str, conf: Path | str = "conf") -> Study:
    """Return the study with a name, using conf/study/<name>.yaml if that file exists. Raises UserError."""
    file = Path(conf, "study", f"{name}.yaml")
    return find_study({"name": name, **(read_yaml(file) if file.is_file() else {})})


def of_part(part: Mapping[str, Any]) -> Study:
    """Return the study of a frozen part, by the part's keys `module` and `path` if it has them, else by `load`."""
    if part.get("module"):
        return find_study({"name": part["study"], "module": part["module"], "path": part.get("path", "")})
    return load(part["study"])


def find_study(settings: Mapping[str, Any]) -> Study:
    """Return the study that conf/study/<name>.yaml describes (keys name, module, path).

    Without `module`, it is in schedlab.studies.<name>.study or, if that does not exist, an entry point of the group
    schedlab.studies. `path` is a folder to import from, relative to the working directory. Raises UserError if the
    module does not exist or contains no STUDY.
    """
    name, module = settings["name"], settings.get("module") or ""
    where = f"conf/study/{name}.yaml: module"
    installed = {} if module else {point.name: point for point in entry_points(group=GROUP)}
    if module:
        return _checked(_imported(module, settings.get("path") or "", where), name, where)
    if name.isidentifier() and importlib.util.find_spec(f"schedlab.studies.{name}"):
        return _checked(_imported(f"schedlab.studies.{name}.study", "", where), name, where)
    if name in installed:
        return _checked(installed[name].load(), name, where)
    raise UserError(
        f"unknown study '{name}'",
        where=where,
        expected=f"the module that holds STUDY, as there is neither schedlab.studies.{name} nor an entry point "
        f"'{name}' of '{GROUP}'",
        remedy=did_you_mean(name, {*installed, *_shipped()}),
    )


def summaries(conf: Path | str = "conf") -> dict[str, str]:
    """Return study -> the first sentence of its docstring, for studies of schedlab, of installed packages and of
    conf/study/. No study is imported.
    """
    found = {name: _first_sentence(_package_folder() / name / "__init__.py") for name in _shipped()}
    found |= {point.name: _first_sentence(_source(point.module, "")) for point in entry_points(group=GROUP)}
    for name in names(conf):
        try:
            values = read_yaml(Path(conf, "study", f"{name}.yaml"))
        except UserError:  # `schedlab check` reports the mistake; other commands continue
            continue
        if module := values.get("module"):
            found[name] = _first_sentence(_source(str(module), str(values.get("path") or "")))
    return dict(sorted(found.items()))


def _source(module: str, path: str) -> Path:
    """Return the file of a module without importing it: below the given folder, or in the folder of its package."""
    inside = Path(*module.split(".")).with_suffix(".py")
    if path:
        return Path(path) / inside
    top = importlib.util.find_spec(inside.parts[0])
    origin = Path(top.origin).parent.parent if top and top.origin else Path()
    return origin / inside


def _first_sentence(file: Path) -> str:
    try:
        text = ast.get_docstring(ast.parse(file.read_bytes())) or ""
    except (OSError, SyntaxError, ValueError):
        return ""
    return text.split("\n\n")[0].replace("\n", " ")


def _imported(module: str, path: str, where: str) -> Any:
    """Import a module, from a folder if one is given, and return its STUDY or None."""
    folder = str(Path(path).resolve())
    if path and folder not in sys.path:
        sys.path.append(folder)  # last, so that it does not hide an installed package
    try:
        return getattr(importlib.import_module(module), "STUDY", None)
    except ModuleNotFoundError as error:
        raise UserError(
            f"the module '{module}' cannot be imported: {error}",
            where=where,
            expected="an importable module that holds STUDY",
        ) from None


def _shipped() -> list[str]:
    return sorted(path.parent.name for path in _package_folder().glob("*/study.py"))


def _package_folder() -> Path:
    return Path(schedlab.__file__).parent / "studies"


def _checked(study: Any, name: str, where: str) -> Study:
    if not isinstance(study, Study):
        raise UserError("the module holds no STUDY", where=where, expected="STUDY = Study(...)")
    if study.name != name:
        raise UserError(f"the module's study is named '{study.name}'", where=where, expected=f"'{name}'")
    return study
