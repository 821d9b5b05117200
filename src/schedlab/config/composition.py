"""Hydra's composition of one configuration file, and the way back from a composed key to the file that set it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, cast

import yaml

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import file_hash
from schedlab.config.plugins import load_object
from schedlab.config.readers import read_yaml, short_path, yaml_error
from schedlab.config.schema import merged
from schedlab.config.settings import NAME, RESERVED_NAMES, SCALES


@dataclass(frozen=True)
class Composed:
    """The resolved values of one file with everything it builds on, and the files they may come from.

    sources: (file, prefix of keys under which the file's content stands), the file itself first.
    reference: a key is looked for under `reference` first, as in mode reference.
    """

    values: dict[str, Any]
    sources: tuple[tuple[Path, tuple[str, ...]], ...]
    reference: bool = False

    def in_mode(self, always: bool = False) -> tuple[dict[str, Any], Composed]:
        """Return the values as `apply_mode` does, and what locates them."""
        return apply_mode(self.values, always), replace(
            self, reference=always or self.values.get("mode") == "reference"
        )

    def locate(self, path: tuple) -> str:
        """Return 'file: key' for a tuple of keys, naming the file that sets the key where one does."""
        if self.reference and _sets(self.values.get("reference"), path):
            path = ("reference", *path)
        key = ".".join(str(step) for step in path)
        for depth in range(len(path), 0, -1):
            under = path[:depth]
            for file, prefix in self._files_behind(path):
                if under[: len(prefix)] == prefix and _holds(file, under[len(prefix) :]):
                    return f"{short_path(file)}: {key}"
        return f"{short_path(self.sources[0][0])}: {key}" if key else short_path(self.sources[0][0])

    def _files_behind(self, path: tuple) -> tuple:
        """The files that may set a key; within a list only the one that sets the list, for a list replaces that of
        another file whole.
        """
        depth = next((depth for depth, step in enumerate(path) if isinstance(step, int)), 0)
        listed = [
            (file, prefix) for file, prefix in self.sources if path[: len(prefix)] == prefix and len(prefix) <= depth
        ]
        setting = [(file, prefix) for file, prefix in listed if depth and _holds(file, path[len(prefix) : depth])]
        return tuple(setting[:1]) or self.sources


class Compositions:
    """Hydra's compositions of a folder before any value is resolved, which are the same at every scale; each is made
    once.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).resolve()
        self._made: dict[tuple[str, str], tuple[Any, tuple]] = {}

    def get(self, group: str, name: str, scale: str) -> tuple[Any, tuple]:
        """Return the whole composition of conf/<group>/<name>.yaml and the files behind it, made at `scale` where it is
        new. Raises UserError for an entry of a defaults list that cannot be read, and Hydra's errors.
        """
        if (group, name) not in self._made:
            place = group.split("/")[0]
            try:
                whole, choices = self._loader.compose(group, place, name, scale)
            except ValueError as error:  # so Hydra reports what is wrong with an entry of a defaults list
                where = f"{short_path(self.folder / group / name)}.yaml: defaults"
                expected = "entries such as 'base' or '/group: option'"
                raise UserError(f"an entry cannot be read: {error}", where=where, expected=expected) from None
            self._made[group, name] = whole, _sources(self.folder, choices, group, place, name)
        return self._made[group, name]

    @cached_property
    def _loader(self) -> Any:
        return load_object("schedlab.config.hydra_loader:HydraLoader")(self.folder)


class Composer:
    """Composes files of a configuration folder at one scale.

    made: compositions to share with composers of the same folder at other scales, which then only resolve values again.
    """

    def __init__(self, folder: Path | str, scale: str, made: Compositions | None = None) -> None:
        self.folder, self.scale, self.made = Path(folder).resolve(), scale, made or Compositions(folder)

    @cached_property
    def _scale_values(self) -> Any:
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        file = self.folder / "scale" / f"{self.scale}.yaml"
        try:
            return OmegaConf.create(read_yaml(file))
        except OmegaConfBaseException as error:
            what = f"the value cannot be read: {str(error).splitlines()[0]}"
            raise UserError(what, where=f"{short_path(file)}: {error.full_key or ''}".rstrip(": ")) from None

    def compose(self, group: str, name: str) -> Composed:
        """Return the composed file conf/<group>/<name>.yaml. Raises UserError."""
        from hydra.errors import HydraException
        from omegaconf import OmegaConf, flag_override
        from omegaconf.errors import OmegaConfBaseException

        file = self.folder / group / f"{name}.yaml"
        place = group.split("/")[0]
        sources: tuple = ((file, ()),)
        try:
            whole, sources = self.made.get(group, name, self.scale)
            with flag_override(
                whole, ["struct", "no_deepcopy_set_nodes"], [False, True]
            ):  # a copy costs as much as the values themselves
                whole.scale = self._scale_values
            values = OmegaConf.to_container(whole[place], resolve=True, throw_on_missing=True)
        except HydraException as error:
            raise self._explain(file, error) from None
        except OmegaConfBaseException as error:
            raise _unresolved(error, place, Composed({}, sources), self._scale_values) from None
        except yaml.YAMLError as error:  # Hydra's reader of YAML is the stricter one
            mark = getattr(error, "problem_mark", None)
            raise yaml_error(Path(mark.name) if mark and mark.name else file, error) from None
        if not isinstance(values, dict):
            raise UserError("the file holds no mapping", where=short_path(file), expected="keys and values")
        return Composed(cast(dict[str, Any], values), sources)

    def _explain(self, file: Path, error: Exception) -> UserError:
        """Hydra's error in one sentence; that a file or option is missing has been told before (layout.Layout)."""
        if "Cannot merge" in str(error) and (
            clash := _clash([_content(*_stamped(base)) for base in _own_and_bases(file)])
        ):
            key, expected = clash
            return UserError(
                f"'{key}' cannot take the place of what the file builds on",
                where=f"{short_path(file)}: {key}",
                expected=expected,
            )
        text = " ".join(str(error).split("Config search path:")[0].split())
        return UserError(
            f"the file cannot be composed: {text[:400]}", where=short_path(file), remedy="see its defaults list"
        )


def _clash(files: list[dict[str, Any]]) -> tuple[str, str] | None:
    """The first key that is a list in one of the files and a mapping in another one, and what was expected."""
    own, *bases = files
    for base in bases:
        for key in own.keys() & base.keys():
            if {type(own[key]), type(base[key])} == {dict, list}:
                return key, "a list" if isinstance(base[key], list) else "a mapping of keys to values"
            if isinstance(own[key], dict) and isinstance(base[key], dict) and (found := _clash([own[key], base[key]])):
                return f"{key}.{found[0]}", found[1]
    return None


def _unresolved(error: Any, place: str, composed: Composed, scale_values: Any) -> UserError:
    """What is wrong with a value that refers to another one, with the file that holds it and the nearest key there
    is.
    """
    path = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", error.full_key or "")]
    where = composed.locate(tuple(path[1:] if path[:1] == [place] else path))
    text = str(error).splitlines()[0]
    remedy = ""
    if wanted := re.search(r"Interpolation key '(scale\.[^']*)'", text):
        here: Any = {"scale": scale_values}
        for step in wanted.group(1).split("."):
            if not (isinstance(here, Mapping) or hasattr(here, "keys")) or step not in here:
                remedy = did_you_mean(step, [str(key) for key in here]) if hasattr(here, "keys") else ""
                break
            here = here[step]
    return UserError(f"the value cannot be resolved: {text}", where=where, remedy=remedy)


def apply_mode(values: Mapping[str, Any], always: bool = False) -> dict[str, Any]:
    """Return the values with those under `reference` laid over them if mode is reference (or always)."""
    if not always and values.get("mode") != "reference":
        return dict(values)
    overlay = values.get("reference") or {}
    return merged(values, overlay) if isinstance(overlay, Mapping) else dict(values)


def _sources(
    folder: Path, choices: dict[str, Any], group: str, place: str, name: str
) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    own = folder / group / f"{name}.yaml"
    found: list[tuple[Path, tuple[str, ...]]] = [(file, ()) for file in _own_and_bases(own)]
    for choice, option in choices.items():
        source, _, package = choice.partition("@")
        file = folder / source / f"{option}.yaml"
        keys = tuple(package.split(".")) if package else ()
        if keys[:1] == (place,) and file != own and file.exists():
            found.append((file, keys[1:]))
    return tuple(found)


def _own_and_bases(file: Path, before: tuple[Path, ...] = ()) -> list[Path]:
    """A file and, behind it, those that it builds on in its own folder, and theirs."""
    named = _content(*_stamped(file)).get("defaults") or ()
    found = [
        file.with_name(f"{name}.yaml") for name in named if isinstance(name, str) and name not in ("_self_", file.stem)
    ]
    line = (*before, file)
    return [
        file,
        *(path for base in found if base.is_file() and base not in line for path in _own_and_bases(base, line)),
    ]


def _sets(overlay: Any, path: tuple) -> bool:
    """Tell whether the values under `reference` set the value at a path; a list that stands there replaces the other
    one whole.
    """
    here, whole = overlay, False
    for key in path:
        try:
            here = here[key]
        except (KeyError, IndexError, TypeError):
            return whole
        whole = whole or isinstance(here, list)
    return bool(path)


def _holds(file: Path, keys: tuple) -> bool:
    here: Any = _content(*_stamped(file)) if file.is_file() else {}
    for key in keys:
        try:
            here = here[key]
        except (KeyError, IndexError, TypeError):
            return False
    return bool(keys)


def _stamped(file: Path) -> tuple[Path, int]:
    return file, file.stat().st_mtime_ns


@lru_cache(maxsize=64)
def _content(file: Path, changed_ns: int) -> Any:
    """The file's own values; parsed once for all mistakes in it."""
    del changed_ns
    try:
        return read_yaml(file)
    except UserError:
        return {}


OWN_GROUPS = ("scenario", "policy", "figure")  # an edit of one file in these touches that file's record only
STUDY_GROUPS = (*OWN_GROUPS, "learner")  # have a folder for each study
FLAT_GROUPS = ("study", "scale", "claims")  # hold files alone


class Layout:
    """The YAML files of a configuration folder: name (relative path) -> SHA-256, what each builds on, and every mistake
    in that.

    remember  keeps values by a key that holds a file's hash, so that an unchanged file is not parsed again
    broken    files that cannot be composed, and those that build on them
    """

    def __init__(self, folder: Path, remember: Callable[[str, Callable[[], Any]], Any]) -> None:
        self.folder = folder
        self.errors: list[UserError] = []
        self.broken: set[str] = set()
        self.hashes: dict[str, str] = {}
        self.builds_on: dict[str, list[str]] = {}
        for path in sorted(folder.rglob("*.y*ml")):
            if not any(part.startswith(".") for part in path.relative_to(folder).parts):  # an editor's own files
                self._take(path)
        self.studies = [
            Path(name).stem for name in self.hashes if name.startswith("study/") and not Path(name).stem.startswith("_")
        ]
        for name, digest in self.hashes.items():
            if name.startswith("claims/"):  # the ledger is read by its own commands; no run depends on it
                continue
            try:
                self.builds_on[name] = remember(f"builds on/{name}:{digest}", partial(_builds_on, folder, name))
            except UserError as error:
                self._refuse(error, name)
        for name in self.builds_on:
            self._refuse_unknown_options(name)
        self._refuse_strange_places()
        self._refuse_circles()
        self.broken |= {name for name in self.hashes if self.broken & self._below(name)}

    def is_own(self, name: str) -> bool:
        """Tell whether a file is one whose edit touches its own record only."""
        parts = name.split("/")
        return parts[0] in OWN_GROUPS and len(parts) == 3 and not parts[-1].startswith("_")

    def own_and_bases(self, name: str) -> list[str]:
        """Return the hashes of a file and of all it builds on in its own folder, since a scenario may build on another
        one.
        """
        group = name.rpartition("/")[0]
        bases = [base for base in self.builds_on.get(name, ()) if base.rpartition("/")[0] == group]
        return [
            self.hashes[name],
            *(found for base in bases if base in self.hashes for found in self.own_and_bases(base)),
        ]

    def _take(self, path: Path) -> None:
        name = path.relative_to(self.folder).as_posix()
        if path.is_dir():
            self._refuse(UserError("it is a folder", where=f"conf/{name}", expected="a file", remedy="rename it"), name)
        elif path.suffix == ".yml":
            self._refuse(UserError("the ending is .yml", where=f"conf/{name}", remedy="rename it to .yaml"), name)
        elif path.suffix == ".yaml":
            try:
                self.hashes[name] = file_hash(path)
            except OSError as error:
                self._refuse(UserError(f"the file cannot be read: {error.strerror}", where=f"conf/{name}"), name)

    def _refuse(self, error: UserError, name: str) -> None:
        self.errors.append(error)
        self.broken.add(name)

    def _refuse_unknown_options(self, name: str) -> None:
        """Each entry of a defaults list names a file that is there."""
        for option in self.builds_on[name]:
            if option in self.hashes or option in self.broken:
                continue
            group = option.rpartition("/")[0]
            options = [Path(known).stem for known in self.hashes if known.rpartition("/")[0] == group]
            if options:
                what, remedy = f"there is no conf/{option}", did_you_mean(Path(option).stem, options)
            else:
                groups = {known.rpartition("/")[0] for known in self.hashes} - {""}
                what, remedy = f"there is no folder conf/{group}", did_you_mean(group, groups)
            self._refuse(UserError(what, where=f"conf/{name}: defaults", remedy=remedy), name)

    def _refuse_strange_places(self) -> None:
        """Every file lies where something reads it: in a group of the house, or in one that a defaults list names."""
        named = {option.split("/")[0] for options in self.builds_on.values() for option in options if "/" in option}
        groups = {*STUDY_GROUPS, *FLAT_GROUPS, *named}
        folded: dict[str, str] = {}
        seen: set[str] = set()
        for name in self.hashes:
            if (error := self._misplaced(name, groups)) is not None:
                self.broken.add(name)
                if str(error) not in seen:
                    self.errors.append(error)
                seen.add(str(error))
            elif self.is_own(name):
                self._refuse_strange_name(name, folded)

    def _misplaced(self, name: str, groups: set[str]) -> UserError | None:
        group, *middle, file = name.split("/") if "/" in name else ("", name)
        stem = Path(file).stem
        if not group:
            return (
                None
                if stem == "config"
                else UserError("nothing reads this file", where=f"conf/{name}", remedy=did_you_mean(stem, ["config"]))
            )
        if group not in groups:
            return UserError("nothing reads this folder", where=f"conf/{group}", remedy=did_you_mean(group, groups))
        if group in FLAT_GROUPS:
            known = {"scale": SCALES, "claims": self.studies}.get(group)
            if middle:
                return UserError(
                    "nothing reads this folder", where=f"conf/{group}/{middle[0]}", expected=f"files in conf/{group}/"
                )
            if known is not None and stem not in known and not stem.startswith("_"):
                return UserError("nothing reads this file", where=f"conf/{name}", remedy=did_you_mean(stem, known))
        if group not in STUDY_GROUPS or name == "figure/theme.yaml":
            return None
        if not middle:
            remedy = did_you_mean(stem, ["theme"]) if group == "figure" else f"move it to conf/{group}/<study>/{file}"
            return UserError("the file belongs to no study", where=f"conf/{name}", remedy=remedy)
        if middle[0] not in self.studies:
            return UserError(
                "there is no such study",
                where=f"conf/{group}/{middle[0]}",
                remedy=did_you_mean(middle[0], self.studies),
            )
        if len(middle) > 1 and group in OWN_GROUPS:
            where = f"conf/{group}/{middle[0]}"
            return UserError("nothing reads this folder", where=f"{where}/{middle[1]}", expected=f"files in {where}/")
        return None

    def _refuse_strange_name(self, name: str, folded: dict[str, str]) -> None:
        """A scenario, policy or figure is part of paths: one plain name, also where letters' size does not count."""
        stem = Path(name).stem
        first = folded.setdefault(name.lower(), name)
        if first != name:
            self._refuse(
                UserError(f"duplicate of conf/{first}", where=f"conf/{name}", remedy="rename one of them"), name
            )
        elif not re.match(NAME, stem) or stem in RESERVED_NAMES:
            expected = "small letters, digits, . _ -, and no reserved word"
            self._refuse(
                UserError(f"'{stem}' cannot be a name", where=f"conf/{name}", expected=expected, remedy="rename it"),
                name,
            )

    def _refuse_circles(self) -> None:
        for name in self.builds_on:
            if self._leads_back(name):
                self._refuse(
                    UserError("the file builds on itself", where=f"conf/{name}: defaults", remedy="remove the entry"),
                    name,
                )

    def _leads_back(self, name: str) -> bool:
        seen, queue = set(), list(self.builds_on[name])
        while queue:
            here = queue.pop()
            if here == name:
                return True
            if here not in seen:
                seen.add(here)
                queue += self.builds_on.get(here, ())
        return False

    def _below(self, name: str) -> set[str]:
        """A file and everything that it builds on."""
        seen, queue = set(), [name]
        while queue:
            here = queue.pop()
            if here not in seen:
                seen.add(here)
                queue += self.builds_on.get(here, ())
        return seen


def _builds_on(folder: Path, name: str) -> list[str]:
    """Names of the files that the defaults list of a file names; UserError where the file or its list cannot be
    read.
    """
    file = folder / name
    values = read_yaml(file)
    needed = name == "config.yaml" or name.split("/")[0] in (*OWN_GROUPS, "study", "scale")
    if not values and needed and name != "figure/theme.yaml":
        raise UserError("the file is empty", where=short_path(file), expected="keys and values")
    defaults = values.get("defaults") or []
    if not isinstance(defaults, list):
        raise UserError(
            "'defaults' is no list", where=f"{short_path(file)}: defaults", expected="a list of what the file builds on"
        )
    found = [f"{option}.yaml" for entry in defaults for option in _options(entry, name.rpartition("/")[0])]
    if name == "config.yaml" and not any(option.startswith("scale/") for option in found):
        raise UserError(
            "no scale is named", where="conf/config.yaml: defaults", expected="an entry such as 'scale: small'"
        )
    return found


def _options(entry: Any, group: str) -> Iterator[str]:
    """The files that one entry of a defaults list names, without the ending; none where it is open (optional, ???,
    interpolated).
    """
    pairs = entry.items() if isinstance(entry, Mapping) else [("", entry)]
    for key, given in pairs:
        words = str(key).split()
        place = words[-1].partition("@")[0] if words else ""
        for option in given if isinstance(given, list) else [given]:
            text = str(option)
            if (
                option is None
                or text in ("_self_", "???")
                or "${" in text
                or "optional" in words
                or place.startswith("hydra")
            ):
                continue
            path = f"{place}/{text}" if place else text.partition("@")[0]
            yield path.removeprefix("/") if path.startswith("/") or not group else f"{group}/{path}"
