"""The files of a configuration folder: where each lies, what it builds on, and every mistake in that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from schedlab.config.composition import read_once
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import file_hash
from schedlab.config.readers import short_path
from schedlab.config.settings import NAME, RESERVED_NAMES, SCALES

OWN_GROUPS = ("scenario", "policy", "figure")  # an edit of one file in these touches that file's record only
STUDY_GROUPS = (*OWN_GROUPS, "learner")  # have a folder for each study
FLAT_GROUPS = ("study", "scale", "claims", "download")  # hold files alone


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
        self.broken |= {name for name in self.hashes if self.broken & self.below(name)}

    def is_own(self, name: str) -> bool:
        """Return whether a file is one whose edit touches its own record only."""
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

    def below(self, name: str) -> set[str]:
        """Return a file and everything that it builds on, by their names."""
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
