"""Hydra's composition of one configuration file, and the search for the file that set a composed key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.layout import Layout, Remember, laid_over
from schedlab.config.readers import option_names, read_once, read_yaml, short_path, yaml_error
from schedlab.config.schema import merged
from schedlab.config.settings import SCALES
from schedlab.config.variations import FAMILY_KEYS, Override, is_family, members_of, with_value

Keys = tuple[str, ...]
Sources = tuple[tuple[Path, Keys], ...]

# Keys of a file that do not describe what is scored, or that the tables already contain.
NOT_VARIED = ("name", "kind", "mode", "reference", "recipe", "parent", "in_figures", "title", "caption", "published")
REFERENCE = re.compile(r"\$\{[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\}")  # a text that is nothing but a reference


@dataclass(frozen=True)
class Composed:
    """The resolved values of one file and of all files that it builds on, and the files that may have set them.

    sources: (file, prefix of the keys below which the file's content stands), the file itself first.
    reference: a key is looked up under `reference` first, as in mode reference.
    elsewhere: the file belongs to other scales, and its values are not resolved.
    origins: keys that the list of a family or an override of this run sets -> where this is written ('file: key', 'set:
      ...').
    varied: scalar values of the dotted keys that vary between the members of the file's family.
    """

    values: dict[str, Any]
    sources: Sources
    reference: bool = False
    origins: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    varied: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: bool = False

    def in_mode(self, always: bool = False) -> tuple[dict[str, Any], Composed]:
        """Return the values as `apply_mode` does, and the object that locates mistakes in them."""
        return apply_mode(self.values, always), replace(
            self, reference=always or self.values.get("mode") == "reference"
        )

    def locate(self, path: tuple[Any, ...]) -> str:
        """Return 'file: key' for a tuple of keys, with the file that sets the key if there is one."""
        for depth in range(len(path), 0, -1):
            if origin := self.origins.get(tuple(map(str, path[:depth]))):
                return ".".join([origin, *map(str, path[depth:])])
        if self.reference and _sets(self.values.get("reference"), path):
            path = ("reference", *path)
        key = ".".join(str(step) for step in path)
        for depth in range(len(path), 0, -1):
            under = path[:depth]
            for file, prefix in self._files_behind(path):
                if under[: len(prefix)] == prefix and _holds(file, under[len(prefix) :]):
                    return f"{short_path(file)}: {key}"
            makers = (origin for keys, origin in self.origins.items() if depth == len(path) and keys[:depth] == path)
            if maker := next(makers, ""):  # the key is in no file
                return maker
        return f"{short_path(self.sources[0][0])}: {key}" if key else short_path(self.sources[0][0])

    def _files_behind(self, path: tuple[Any, ...]) -> tuple[Any, ...]:
        """The files that may set a key. For a key within a list, only the file that sets the list: a list replaces that
        of another file as a whole.
        """
        depth = next((depth for depth, step in enumerate(path) if isinstance(step, int)), 0)
        listed = [
            (file, prefix) for file, prefix in self.sources if path[: len(prefix)] == prefix and len(prefix) <= depth
        ]
        setting = [(file, prefix) for file, prefix in listed if depth and _holds(file, path[len(prefix) : depth])]
        return tuple(setting[:1]) or self.sources


class Compositions:
    """Compositions of a folder's files as plain data without resolved values, and thus the same at every scale.

    Each is made once. Hydra makes it if the file uses features that `layout.laid_over` does not read.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder, self._given = Path(folder).resolve(), Path(folder)
        self._made: dict[tuple[str, str], tuple[Any, Sources]] = {}
        self._layout: Layout | None = None

    def layout(self, remember: Remember) -> Layout:
        """Return the layout of the folder as it was at the first call."""
        if self._layout is None:
            self._layout = Layout(self._given, remember)
        return self._layout

    def get(self, group: str, name: str) -> tuple[Any, Sources]:
        """Return the content of conf/<group>/<name>.yaml with all that it builds on, and the files behind it. Raises
        UserError for a file that cannot be composed, and UnresolvedError.
        """
        if (group, name) not in self._made:
            file = self.folder / group / f"{name}.yaml"
            if direct := laid_over(self.folder, group, name):
                self._made[group, name] = direct[0], _sources(self.folder, direct[1], file)
            else:
                self._made[group, name] = self._composed(group, name, file)
        return self._made[group, name]

    def _composed(self, group: str, name: str, file: Path) -> tuple[Any, Sources]:
        from hydra import compose, initialize_config_dir
        from hydra.errors import HydraException
        from omegaconf import OmegaConf

        try:
            with _omegaconf_errors(), initialize_config_dir(str(self.folder), version_base="1.3"):
                whole = compose(overrides=[f"+{group}@file='{name}'"], return_hydra_config=True)
        except HydraException as error:
            raise _not_composed(file, error) from None
        except ValueError as error:  # Hydra raises it for a wrong entry of a defaults list
            expected = "entries such as 'base' or '/group: option'"
            where = f"{short_path(file)}: defaults"
            raise UserError(f"an entry cannot be read: {error}", where=where, expected=expected) from None
        except yaml.YAMLError as error:  # Hydra's YAML reader is stricter than ours
            mark = getattr(error, "problem_mark", None)
            raise yaml_error(Path(mark.name) if mark and mark.name else file, error) from None
        node = whole.get("file")
        values = OmegaConf.to_container(node) if OmegaConf.is_config(node) else node
        return values, _sources(self.folder, whole.hydra.runtime.choices, file)


class UnresolvedError(Exception):
    """OmegaConf's error (its `full_key` begins with `file`) at a value that refers to others."""


@contextmanager
def _omegaconf_errors() -> Iterator[None]:
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except OmegaConfBaseException as error:
        raise UnresolvedError(error) from None


class Resolver:
    """Resolves the references in values of files: to the root seed, the scale, and `${each}` in a member of a family.

    Each text is resolved once. If a file refers to its own keys (`${.key}`) or to a missing key, OmegaConf resolves the
    file as a whole, which takes as long as all other files together.
    """

    def __init__(self, seed: Any, scale: Mapping[str, Any]) -> None:
        from omegaconf import OmegaConf

        self._plain: dict[str, Any] = {"seed": seed, "scale": scale}
        self._root = OmegaConf.create(self._plain)
        self._known: dict[tuple[str, str], Any] = {}

    def values(self, values: Any, each: str) -> Any:
        """Return the resolved values of a file. Raises UnresolvedError."""
        from omegaconf.errors import OmegaConfBaseException

        self._root.pop("each", None)
        self._plain["each"] = each or None
        if each:
            self._root.each = each
        try:
            return self._part(values, each)
        except (OmegaConfBaseException, LookupError):
            with _omegaconf_errors():
                return self._resolved("file", values)

    def _part(self, value: Any, each: str) -> Any:
        """Return a part of a file's values, resolved; callers must not change it. Raises LookupError and OmegaConf's
        errors for a value that may be resolved only with the whole file.
        """
        if isinstance(value, dict):
            return {key: self._part(inner, each) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._part(inner, each) for inner in value]
        if not isinstance(value, str) or not ("${" in value or value == "???"):
            return value
        if (value, each) not in self._known:
            if re.search(r"\$\{\s*\.|\$\{[^}]*:", value):
                raise LookupError(value)
            found = value_at(self._plain, value[2:-1].split(".")) if REFERENCE.fullmatch(value) else None
            self._known[value, each] = self._resolved("text", value) if found is None or _refers(found) else found
        return self._known[value, each]

    def _resolved(self, key: str, value: Any) -> Any:
        from omegaconf import OmegaConf

        self._root[key] = value
        found = self._root[key]
        return (
            OmegaConf.to_container(found, resolve=True, throw_on_missing=True) if OmegaConf.is_config(found) else found
        )


def _refers(value: Any) -> bool:
    """Return whether a value contains a text that OmegaConf must resolve."""
    if isinstance(value, dict | list):
        return any(map(_refers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and any(sign in value for sign in ("${", "???", "\\"))


class Composer:
    """Composes files of a configuration folder at one scale.

    made: compositions shared with composers of the same folder at other scales, so that only values are resolved again.
    overrides: values of single keys for this run.
    sizes: study -> its sizes at the scale; missing ones are composed from conf/study/ at first use.
    """

    def __init__(
        self, folder: Path | str, scale: str, made: Compositions | None = None, overrides: Sequence[Override] = ()
    ) -> None:
        self.folder, self.scale, self.made = Path(folder).resolve(), scale, made or Compositions(folder)
        self.overrides = tuple(part for override in overrides for part in override.at_scale(scale))
        self.sizes: dict[str, Any] = {}
        self._resolvers: dict[str, Resolver] = {}

    def scale_of(self, study: str) -> dict[str, Any]:
        """Return what the files of a study may refer to as `scale`: the scale's name, and the sizes of this study only.
        Raises UserError if conf/study/<study>.yaml cannot be composed.
        """
        if study and study not in self.sizes:
            there = (self.folder / "study" / f"{study}.yaml").is_file()
            self.sizes[study] = value_at(self.compose("study", study).values, ("sizes", self.scale)) if there else None
        own = self.sizes.get(study)
        return {"name": self.scale, "studies": {study: own} if isinstance(own, dict) else {}}

    def _resolver(self, study: str) -> Resolver:
        if study not in self._resolvers:
            seed = read_yaml(self.folder / "config.yaml").get("seed")
            for override in self.overrides:
                seed = override.value if override.keys == ("seed",) else seed
            self._resolvers[study] = Resolver(seed, self.scale_of(study))
        return self._resolvers[study]

    def compose(self, group: str, name: str) -> Composed:
        """Return the composed file conf/<group>/<name>.yaml, or the member of a family with this name. Raises
        UserError.
        """
        place = self.folder / group
        files = [name] if (place / f"{name}.yaml").is_file() else self._families(group)
        known: list[str] = []
        for file in files:
            found = dict(self.members(group, file))
            if name in found:
                return found[name]
            known += found
        if files == [name]:
            raise UserError(f"'{name}' is a family", where=f"conf/{group}", expected=f"one of {', '.join(known)}")
        remedy = did_you_mean(name, {*option_names(place), *known} - set(files))
        raise UserError(f"there is no {group.split('/')[0]} '{name}'", where=f"conf/{group}", remedy=remedy)

    def names(self, group: str) -> list[str]:
        """Return the names of all files and members of families of a group, sorted. Raises UserError for a family with
        a mistake.
        """
        families = self._families(group)
        members = [name for file in families for name, _ in self.members(group, file)]
        return sorted({*option_names(self.folder / group), *members} - set(families))

    def _families(self, group: str) -> list[str]:
        place = self.folder / group
        return [name for name in option_names(place) if self._is_family(place / f"{name}.yaml")]

    def _is_family(self, file: Path) -> bool:
        """Return whether a file, or one that it builds on in its folder, lists members of a family."""
        return any(is_family(_content(base)) for base in _own_and_bases(file))

    def members(self, group: str, name: str, elsewhere: bool = False) -> list[tuple[str, Composed]]:
        """Return (name, composed file) for conf/<group>/<name>.yaml or, if it is a family, for each member. Raises
        UserError.

        elsewhere: do not resolve files and members whose `scales` exclude this scale
        """
        sources: Sources = ((self.folder / group / f"{name}.yaml", ()),)
        try:
            values, sources = self.made.get(group, name)
            return self._members(group, name, values, sources, elsewhere)
        except UnresolvedError as error:
            raise _unresolved(error.args[0], Composed({}, sources), self.scale_of(group.partition("/")[2])) from None

    def _members(
        self, group: str, name: str, values: Any, sources: Sources, elsewhere: bool
    ) -> list[tuple[str, Composed]]:
        """Return the resolved values of a file, or of each member of a family, with the overrides of this run."""
        where = short_path(sources[0][0])
        if not isinstance(values, dict):
            raise UserError("the file holds no mapping", where=where, expected="keys and values")
        given = {key: values[key] for key in FAMILY_KEYS if key in values}
        shared = {key: value for key, value in values.items() if key not in given}
        template = str(values.get("name"))
        found, members = [], members_of(given, where)
        resolver = self._resolver(group.partition("/")[2])
        set_by_some = {path for member in members for path in member.values if path[0] not in NOT_VARIED}
        for member in members:
            own, called = shared, name
            resolve = partial(resolver.values, each=member.each)
            if member.each:
                called = template if "${each}" in template else f"{name}-{member.each.replace('_', '-')}"
                own, called = {**shared, "name": called}, called.replace("${each}", member.each)
            origins = {path: f"{where}: {key}" for path, key in member.origins.items()}
            changes = dict(member.values)
            for override in self.overrides:
                if path := self._below_source(override, sources) or override.below(group, (called, name)):
                    changes[path], origins[path] = override.value, override.where
            for path, value in changes.items():
                own = with_value(own, path, value, resolve)
            if elsewhere and self._excludes(own.get("scales")):
                found.append((called, Composed(own, sources, False, origins, {}, True)))
                continue
            resolved = resolver.values(own, member.each)
            there = {".".join(path): value_at(resolved, path) for path in sorted(set_by_some, key=".".join)}
            varied = {key: value for key, value in there.items() if isinstance(value, bool | int | float | str)}
            found.append((called, Composed(resolved, sources, False, origins, varied)))
        return found

    def _excludes(self, scales: Any) -> bool:
        """Return whether `scales` is a valid list without the scale of the run."""
        return (
            isinstance(scales, list)
            and bool(scales)
            and self.scale not in scales
            and all(scale in SCALES for scale in scales)
        )

    def _below_source(self, override: Override, sources: Sources) -> tuple[str, ...]:
        """Return the keys of the composed file that an override sets through one of its sources: a file that it builds
        on, such as a learner or a base of its folder (`_base`). Empty if there is none, or if a file nearer to the
        composed one sets the key of a base.
        """
        for number, (file, prefix) in enumerate(sources[1:], 1):
            path = override.below(file.parent.relative_to(self.folder).as_posix(), (file.stem,)) or ()
            nearer = any(_holds(own, path) for own, place in sources[:number] if not place)
            if path and (prefix or (file.stem.startswith("_") and not nearer)):
                return (*prefix, *path)
        return ()


def _not_composed(file: Path, error: Exception) -> UserError:
    """Return Hydra's error in one sentence. Missing files and options have been reported before (layout.Layout)."""
    if "Cannot merge" in str(error) and (clash := _clash([_content(base) for base in _own_and_bases(file)])):
        key, expected = clash
        where = f"{short_path(file)}: {key}"
        return UserError(f"'{key}' cannot take the place of what the file builds on", where=where, expected=expected)
    text = " ".join(str(error).split("Config search path:")[0].split())
    return UserError(
        f"the file cannot be composed: {text[:400]}", where=short_path(file), remedy="see its defaults list"
    )


def _clash(files: list[dict[str, Any]]) -> tuple[str, str] | None:
    """Return the first key that is a list in one of the files and a mapping in another one, and what was expected."""
    own, *bases = files
    for base in bases:
        for key in own.keys() & base.keys():
            if {type(own[key]), type(base[key])} == {dict, list}:
                return key, "a list" if isinstance(base[key], list) else "a mapping of keys to values"
            if isinstance(own[key], dict) and isinstance(base[key], dict) and (found := _clash([own[key], base[key]])):
                return f"{key}.{found[0]}", found[1]
    return None


def _unresolved(error: Any, composed: Composed, scale: Any) -> UserError:
    """Return the error for a reference that cannot be resolved, with the file that contains it and a hint at a similar
    key.
    """
    path = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", error.full_key or "")]
    where = composed.locate(tuple(path[1:] if path[:1] == ["file"] else path))
    text = str(error).splitlines()[0]
    remedy = ""
    if wanted := re.search(r"Interpolation key '(scale\.[^']*)'", text):
        here: Any = {"scale": scale}
        for step in wanted.group(1).split("."):
            if not isinstance(here, Mapping) or step not in here:
                remedy = did_you_mean(step, map(str, here)) if isinstance(here, Mapping) else ""
                break
            here = here[step]
    return UserError(f"the value cannot be resolved: {text}", where=where, remedy=remedy)


def apply_mode(values: Mapping[str, Any], always: bool = False) -> dict[str, Any]:
    """Return the values with those under `reference` laid over them if mode is reference (or always)."""
    if not always and values.get("mode") != "reference":
        return dict(values)
    overlay = values.get("reference") or {}
    return merged(values, overlay) if isinstance(overlay, Mapping) else dict(values)


def _sources(folder: Path, choices: Mapping[str, Any], own: Path) -> Sources:
    """Return a file with its bases and the options that Hydra chose for it, each with the keys below which its values
    stand.
    """
    found: list[tuple[Path, Keys]] = [(file, ()) for file in _own_and_bases(own)]
    for choice, option in choices.items():
        source, _, package = choice.partition("@")
        file = folder / source / f"{option}.yaml"
        place, *keys = package.split(".")
        if place == "file" and file != own and file.exists():
            found.append((file, tuple(keys)))
    return tuple(found)


def _own_and_bases(file: Path, before: tuple[Path, ...] = ()) -> list[Path]:
    """Return a file followed by the files that it builds on in its own folder, directly or indirectly."""
    named = _content(file).get("defaults") or ()
    found = [
        file.with_name(f"{name}.yaml") for name in named if isinstance(name, str) and name not in ("_self_", file.stem)
    ]
    line = (*before, file)
    return [
        file,
        *(path for base in found if base.is_file() and base not in line for path in _own_and_bases(base, line)),
    ]


def _sets(overlay: Any, path: tuple[Any, ...]) -> bool:
    """Return whether the values under `reference` set the value at a path; a list there replaces the other list as a
    whole.
    """
    here, whole = overlay, False
    for key in path:
        try:
            here = here[key]
        except (KeyError, IndexError, TypeError):
            return whole
        whole = whole or isinstance(here, list)
    return bool(path)


def _holds(file: Path, keys: tuple[Any, ...]) -> bool:
    content = _content(file) if file.is_file() else {}
    return bool(keys) and value_at(content, keys, content) is not content


def value_at(values: Any, keys: Iterable[Any], absent: Any = None) -> Any:
    """Return the value at a path of keys and positions; `absent` if there is none."""
    for key in keys:
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            return absent
    return values


def _content(file: Path) -> Any:
    """Return the file's own values; empty if the file cannot be read."""
    try:
        return read_once(file)
    except UserError:
        return {}
