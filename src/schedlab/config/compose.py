"""Hydra composition of one configuration file at a time, and the way back from a composed key to the file that set it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.errors import UserError, did_you_mean

# Resolvers whose value depends on the machine, the clock or the process: a frozen configuration must not hold them.
FORBIDDEN_RESOLVER = re.compile(r"\$\{(oc\.env|now|hydra|python_version)\b[^}]*\}")


@dataclass(frozen=True)
class Composed:
    """The resolved values of one file with everything it builds on, and the files they may come from.

    sources: (file, prefix of keys under which the file's content stands), the file itself first.
    """

    values: dict[str, Any]
    sources: tuple[tuple[Path, tuple[str, ...]], ...]

    def locate(self, path: tuple) -> str:
        """Return 'file: key' for a tuple of keys, naming the file that sets the key where one does."""
        key = ".".join(str(step) for step in path)
        for depth in range(len(path), 0, -1):
            for under in (path[:depth], ("reference", *path[:depth])):
                for file, prefix in self.sources:
                    if under[: len(prefix)] == prefix and _holds(file, under[len(prefix) :]):
                        return f"{_short(file)}: {key}"
        return f"{_short(self.sources[0][0])}: {key}"


Memo = dict[tuple[str, str], Any]  # (group, name) -> Hydra's composition before any value is resolved; the same at every scale


class Composer:
    """Composes files of a configuration folder at one scale; `with composer.open(): composer.compose(group, name)`.

    memo: compositions to share with composers of the same folder at other scales, which then only resolve values again.
    """

    def __init__(self, folder: Path | str, scale: str, memo: Memo | None = None) -> None:
        self.folder, self.scale, self.memo = Path(folder).resolve(), scale, {} if memo is None else memo

    @contextmanager
    def open(self) -> Iterator[Composer]:
        """Hold Hydra's global state for a number of compositions."""
        from hydra import initialize_config_dir
        from hydra.core.global_hydra import GlobalHydra

        GlobalHydra.instance().clear()
        with initialize_config_dir(str(self.folder), version_base="1.3"):
            yield self

    def compose(self, group: str, name: str) -> Composed:
        """Return the composed file conf/<group>/<name>.yaml. Raises UserError."""
        from hydra.errors import HydraException
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        file = self.folder / group / f"{name}.yaml"
        place = group.split("/")[0]
        try:
            whole, sources = self._whole(group, place, name)
            values = OmegaConf.to_container(whole[place], resolve=True, throw_on_missing=True)
        except HydraException as error:
            raise self._explain(file, error) from None
        except OmegaConfBaseException as error:
            text = str(error).splitlines()[0]
            raise UserError(f"the value cannot be resolved: {text}", where=f"{_short(file)}: {error.full_key or ''}") from None
        except yaml.YAMLError as error:
            raise yaml_error(file, error) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"the file cannot be composed: {error}", where=_short(file), expected="a mapping of keys to values") from None
        if not isinstance(values, dict):
            raise UserError("the file holds no mapping", where=_short(file), expected="keys and values")
        return Composed(values, sources)

    def _whole(self, group: str, place: str, name: str) -> tuple[Any, tuple]:
        """Hydra's composition with this scale's values in it, nothing resolved yet, and the files behind it."""
        from hydra import compose
        from omegaconf import OmegaConf, open_dict

        if (group, name) not in self.memo:
            whole = compose("config", overrides=[f"scale={self.scale}", f"+{group}@{place}={name}"], return_hydra_config=True)
            sources = _sources(self.folder, dict(whole.hydra.runtime.choices), group, place, name)
            with open_dict(whole):
                del whole["hydra"]
            self.memo[group, name] = whole, sources
        whole, sources = self.memo[group, name]
        with open_dict(whole):
            whole.scale = OmegaConf.load(self.folder / "scale" / f"{self.scale}.yaml")
        return whole, sources

    def _explain(self, file: Path, error: Exception) -> UserError:
        text = str(error)
        wanted = re.search(r"Could not find '([^']+)'", text) or re.search(r"In '[^']*': Could not find '([^']+)'", text)
        if wanted:
            group, _, option = wanted.group(1).rpartition("/")
            options = option_names(self.folder / group, hidden=True)
            return UserError(
                f"there is no conf/{group}/{option}.yaml", where=f"{_short(file)}: defaults", remedy=did_you_mean(option, options)
            )
        for candidate in [file, *sorted(self.folder.rglob("*.yaml"))]:
            if candidate.exists():
                check_yaml(candidate)
        return UserError(" ".join(text.split())[:400], where=_short(file))


def option_names(folder: Path, hidden: bool = False) -> list[str]:
    """Return the names of the YAML files of one configuration group, without those that begin with an underscore."""
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    return names if hidden else [name for name in names if not name.startswith("_")]


def check_yaml(file: Path) -> None:
    """Raise UserError where a file is no UTF-8 YAML mapping or uses a resolver that depends on the machine."""
    try:
        text = file.read_text(encoding="utf-8")
        content = yaml.load(text, Loader=yaml.CSafeLoader)
    except UnicodeDecodeError:
        raise UserError("the file is not UTF-8 text", where=_short(file)) from None
    except yaml.YAMLError as error:
        raise yaml_error(file, error) from None
    if content is not None and not isinstance(content, dict):
        raise UserError("the file holds no mapping", where=_short(file), expected="keys and values")
    if found := FORBIDDEN_RESOLVER.search(text):
        raise UserError(
            f"'{found.group(0)}' depends on the machine", where=_short(file), expected="a pinned value", remedy="write the value itself"
        )


def yaml_error(file: Path, error: yaml.YAMLError) -> UserError:
    """Return a one-paragraph error for YAML that does not parse, with line and column."""
    mark = getattr(error, "problem_mark", None)
    where = f"{_short(file)}, line {mark.line + 1}, column {mark.column + 1}" if mark else _short(file)
    return UserError(f"not valid YAML: {getattr(error, 'problem', None) or error}", where=where)


def apply_mode(values: Mapping[str, Any], always: bool = False) -> dict[str, Any]:
    """Return the values with those under `reference` laid over them if mode is reference (or always)."""
    if not always and values.get("mode") != "reference":
        return dict(values)
    overlay = values.get("reference") or {}
    return _merge(dict(values), overlay) if isinstance(overlay, Mapping) else dict(values)


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(dict(merged[key]), value) if both else value
    return merged


def _sources(folder: Path, choices: dict[str, Any], group: str, place: str, name: str) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    own = folder / group / f"{name}.yaml"
    found: list[tuple[Path, tuple[str, ...]]] = [(file, ()) for file in _own_and_bases(own)]
    for choice, option in choices.items():
        source, _, package = choice.partition("@")
        file = folder / source / f"{option}.yaml"
        keys = tuple(package.split(".")) if package else ()
        if keys[:1] == (place,) and file != own and file.exists():
            found.append((file, keys[1:]))
    return tuple(found)


def bases(file: Path) -> list[str]:
    """Return the names that the defaults list of a file names in its own folder (`- _base`)."""
    try:
        values = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return []
    named = values.get("defaults") if isinstance(values, dict) else None
    return [entry for entry in named or () if isinstance(entry, str) and entry not in ("_self_", file.stem)]


def _own_and_bases(file: Path, before: tuple[Path, ...] = ()) -> list[Path]:
    """A file and, behind it, those that it builds on in its own folder, and theirs."""
    found = [file.with_name(f"{name}.yaml") for name in bases(file)]
    line = (*before, file)
    return [file, *(path for base in found if base.is_file() and base not in line for path in _own_and_bases(base, line))]


def _holds(file: Path, keys: tuple) -> bool:
    try:
        here: Any = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return False
    for key in keys:
        try:
            here = here[key]
        except (KeyError, IndexError, TypeError):
            return False
    return bool(keys)


def _short(file: Path) -> str:
    parts = file.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("conf") :]) if "conf" in parts else file.as_posix()
