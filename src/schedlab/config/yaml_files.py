"""YAML files of a configuration folder: their names, their values, and what is said where they cannot be read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.errors import UserError

# Resolvers whose value depends on the machine, the clock or the process: a frozen configuration must not hold them.
FORBIDDEN_RESOLVER = re.compile(r"\$\{(oc\.env|now|hydra|python_version)\b[^}]*\}")


def read_yaml(file: Path) -> dict[str, Any]:
    """Return the values of a file; UserError where it is no UTF-8 YAML mapping or uses a resolver that depends on the machine."""
    try:
        text = file.read_text(encoding="utf-8")
        content = yaml.load(text, Loader=yaml.CSafeLoader)
    except UnicodeDecodeError:
        raise UserError("the file is not UTF-8 text", where=short_path(file)) from None
    except yaml.YAMLError as error:
        raise yaml_error(file, error) from None
    except OSError as error:
        raise UserError(f"the file cannot be read: {error.strerror}", where=short_path(file)) from None
    if content is not None and not isinstance(content, dict):
        raise UserError("the file holds no mapping", where=short_path(file), expected="keys and values")
    if found := FORBIDDEN_RESOLVER.search(text):
        what = f"'{found.group(0)}' depends on the machine"
        raise UserError(what, where=short_path(file), expected="a pinned value", remedy="write the value itself")
    return content or {}


def yaml_error(file: Path, error: yaml.YAMLError) -> UserError:
    """Return a one-paragraph error for YAML that does not parse, with line and column."""
    mark = getattr(error, "problem_mark", None)
    where = f"{short_path(file)}, line {mark.line + 1}, column {mark.column + 1}" if mark else short_path(file)
    return UserError(f"not valid YAML: {getattr(error, 'problem', None) or error}", where=where)


def option_names(folder: Path) -> list[str]:
    """Return the names of the YAML files of one configuration group, without bases (`_base`) and an editor's own (`.#early`)."""
    return sorted(path.stem for path in folder.glob("*.yaml") if path.is_file() and not path.name.startswith(("_", ".")))


def short_path(file: Path) -> str:
    """Return a file's path from its folder conf/ on, as messages name it."""
    parts = file.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("conf") :]) if "conf" in parts else file.as_posix()
