"""The files of a configuration folder: where each lies, what it builds on, and the mistakes in both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import file_hash
from schedlab.config.readers import read_once, short_path
from schedlab.config.settings import NAME, RESERVED_NAMES, SCALES
from schedlab.config.variations import nested

OWN_GROUPS = ("scenario", "policy", "figure")  # an edit of one file in these affects only the record of that file
STUDY_GROUPS = (*OWN_GROUPS, "learner")  # have a folder for each study
FLAT_GROUPS = ("study", "scale", "claims", "download")  # contain only files, no folders
Remember = Callable[[str, Callable[[], Any]], Any]  # (key, make) -> a JSON value that is made once


class Layout:
    """The YAML files of a configuration folder: name (relative path) -> SHA-256, the files that each builds on, and all
    mistakes in these.

    remember  keeps values by a key that contains a file's hash, so that an unchanged file is not parsed again
    broken    files that cannot be composed, and those that build on them
    """

    def __init__(self, folder: Path, remember: Remember) -> None:
        self.folder = folder
        self.errors: list[UserError] = []
        self.broken: set[str] = set()
        self.hashes: dict[str, str] = {}
        self.builds_on: dict[str, list[str]] = {}
        for path in sorted(folder.rglob("*.y*ml")):
            if not any(part.startswith(".") for part in path.relative_to(folder).parts):  # hidden files
                self._take(path)
        self.studies = [
            Path(name).stem for name in self.hashes if name.startswith("study/") and not Path(name).stem.startswith("_")
        ]
        for name, digest in self.hashes.items():
            if name.startswith("claims/"):  # only the commands for the ledger read it; no run depends on it
                continue
            try:
                self.builds_on[name] = remember(f"builds on/{name}:{digest}", partial(_builds_on, folder, name))
            except UserError as error:
                self._refuse(error, name)
        for name in self.builds_on:
            self._refuse_unknown_options(name)
        self._refuse_strange_places()
        self._refuse_circles()
        self.broken |= {name for name in self.hashes if self.broken & self.below(name)}

    def is_own(self, name: str) -> bool:
        """Return whether an edit of the file affects only the file's own record."""
        parts = name.split("/")
        return parts[0] in OWN_GROUPS and len(parts) == 3 and not parts[-1].startswith("_")

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
        """Report each entry of a file's defaults list that names a missing file."""
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
        """Report each file that nothing reads: neither its group is one of schedlab's, nor does a defaults list name
        it.
        """
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
        """Report a file whose name cannot be part of paths, or is equal to another one if letter case is ignored."""
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

    def below(self, name: str) -> set[str]:
        """Return the names of a file and of all files that it builds on, directly or indirectly."""
        seen, queue = set(), [name]
        while queue:
            here = queue.pop()
            if here not in seen:
                seen.add(here)
                queue += self.builds_on.get(here, ())
        return seen


def _builds_on(folder: Path, name: str) -> list[str]:
    """Return the names of the files in the defaults list of a file. Raises UserError if the file or its list cannot be
    read.
    """
    file = folder / name
    values = read_once(file)
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
    """Yield the files that one entry of a defaults list names, without the ending; none if the entry is optional, `???`
    or interpolated.
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


class _ForHydraError(Exception):
    """A file uses features that `laid_over` does not read, or has a mistake that Hydra reports."""


def laid_over(folder: Path, group: str, name: str) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return the values of conf/<group>/<name>.yaml merged over those of all files that it builds on, and the chosen
    options ("workload@file.workload" -> "lublin"). The result is Hydra's, in a fiftieth of its time.

    Return None if Hydra itself must read the file: for entries other than `base`, `/group@key: option` and `override
    /group@key: option`; packages; values of different kinds for the same key; and mistakes.
    """
    built = _Building(folder)
    try:
        values = built.values(group, name, ())
    except (_ForHydraError, UserError, OSError):
        return None
    return (values, built.chosen) if built.overridden.keys() <= built.chosen.keys() else None


@dataclass
class _Building:
    """Merges one file with the files that it builds on. overridden: "group@package" -> the option with which the file
    replaces another one.
    """

    folder: Path
    overridden: dict[str, str] = field(default_factory=dict)
    chosen: dict[str, str] = field(default_factory=dict)
    taken: set[tuple[Path, tuple[str, ...]]] = field(default_factory=set)

    def values(self, group: str, name: str, package: tuple[str, ...]) -> dict[str, Any]:
        """Return the merged values of a file and of all files that it builds on, below the keys of a package."""
        file = self.folder / group / f"{name}.yaml"
        text = file.read_bytes()
        if (file, package) in self.taken or b"@package" in text or b"\t" in text:  # Hydra reports tabs
            raise _ForHydraError
        own = dict(read_once(file))
        entries = own.pop("defaults", None) or []
        entries = entries if "_self_" in entries else [*entries, "_self_"]
        built = [entry for entry in entries if package or not self._overrides(entry)]
        if entries[: len(built) - 1] != built[:-1]:  # overrides must stand after the other entries
            raise _ForHydraError
        self.taken.add((file, package))
        found: dict[str, Any] = {}
        for entry in built:
            found = _over(found, nested(package, own) if entry == "_self_" else self._built(entry, group, package))
        return found

    def _overrides(self, entry: Any) -> bool:
        """Return whether an entry overrides an option that a base chooses later. If several files override it, the
        outermost one counts.
        """
        (key, option), *more = entry.items() if isinstance(entry, dict) and entry else [("", "")]
        found = re.fullmatch(rf"override {_OPTION}", key)
        if not found or more or not isinstance(option, str):
            return False
        place = _place(found, ())
        if place in self.chosen:
            raise _ForHydraError
        self.overridden.setdefault(place, option)
        return True

    def _built(self, entry: Any, group: str, package: tuple[str, ...]) -> dict[str, Any]:
        """Return the values of the file that an entry of a defaults list names."""
        if isinstance(entry, str) and re.fullmatch(_PLAIN, entry):
            return self.values(group, entry, package)
        (key, option), *more = entry.items() if isinstance(entry, dict) and entry else [("", "")]
        found = re.fullmatch(_OPTION, key)
        if not found or more or not isinstance(option, str) or not re.fullmatch(_PLAIN, option):
            raise _ForHydraError
        place = _place(found, package)
        option = self.overridden.get(place, option)
        before, self.chosen = self.chosen, {}
        values = self.values(found["group"], option, tuple(place.partition("@")[2].split(".")[1:]))
        if {place, *self.chosen} & before.keys():
            raise _ForHydraError
        self.chosen = {place: option, **self.chosen, **before}  # the last entry has priority and comes first
        return values


_PLAIN = r"[\w-][\w.-]*"  # the name of a file; no folder, package or reference
_OPTION = r"/(?P<group>[\w-]+(/[\w-]+)*)(@(?P<package>[a-z]\w*(\.[a-z]\w*)*))?"


def _place(option: re.Match[str], package: tuple[str, ...]) -> str:
    """Return the keys below which an option's values stand, in Hydra's notation: group@file.package."""
    return f"{option['group']}@{'.'.join(('file', *package, option['package'] or option['group'].replace('/', '.')))}"


def _over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values merged with others. Raises _ForHydraError if the values of a key are of different kinds."""
    found = dict(base)
    for key, value in over.items():
        if isinstance(found.get(key), dict) and isinstance(value, dict):
            found[key] = _over(found[key], value)
        elif key in found and (value == "???" or dict in (type(found[key]), type(value))):
            raise _ForHydraError
        else:
            found[key] = value
    return found
