"""Variations of a configuration file: families, which a file defines, and overrides, which a run sets.

A family is one file of conf/scenario/ or conf/policy/ that stands for several scenarios or policies:

    sweep: {jobs.interarrival.value: [50, 200]}     # a member for each value; several keys give every combination
    for_each: [uniform, tight]                      # a member for each entry, which `${each}` stands for
    for_each: {uniform: {}, tight: {scales: [full, paper]}}    # entries with the values that differ in the member

The name of a member is `<file>-<value>`, with dashes for the underscores of the value, or `name` if that contains
`${each}`. A file with both `sweep` and `for_each` has a member for each pair, and `each` joins both values with a dash.

An override sets one key of the composition for one run. Its value is parsed by Hydra's grammar:

    scenario.ramp.uniform.jobs.interarrival.value=500      a scenario, policy or figure of a study
    learner.ramp.afterstate.hidden=32                      any other file, in all files that build on it
    scale.studies.ramp.training_episodes=100               a size of a study at the scale of the run
    seed=7                                                 the root seed
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.schema import merged

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override as HydraOverride

FAMILY_KEYS = ("sweep", "for_each")
_WORDS = ("null", "true", "false", "nan", "inf")  # words that Hydra does not read as text
IN_STUDY = ("scenario", "policy", "figure")  # groups whose files belong to a study
Path = tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """One member of a family: the value of `${each}`, and the values of the keys that it sets, with the keys of the
    file that contain them.
    """

    each: str = ""
    values: dict[Path, Any] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)

    def __or__(self, other: Member) -> Member:
        return Member(
            "-".join(filter(None, (self.each, other.each))),
            self.values | other.values,
            self.origins | other.origins,
        )


def is_family(values: Mapping[str, Any]) -> bool:
    """Return whether a composed file is a family."""
    return any(values.get(key) is not None for key in FAMILY_KEYS)


def members_of(values: Mapping[str, Any], where: str) -> list[Member]:
    """Return the members of a composed file in the order of its lists. where: the file, for messages.

    Raises UserError for a list that defines no members.
    """
    made = [Member()]
    if (entries := values.get("for_each")) is not None:
        made = [one | other for one, other in itertools.product(made, _entries(entries, f"{where}: for_each"))]
    if (swept := values.get("sweep")) is not None:
        if not isinstance(swept, Mapping) or not swept:
            raise _mistake(swept, f"{where}: sweep", "keys of the file with lists of values")
        for key, listed in swept.items():
            made = [one | other for one in made for other in _swept(str(key), listed, f"{where}: sweep.{key}")]
    names = [member.each for member in made]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"two members would be called '{twice}'", where=where, remedy="remove one of them")
    return made


def _entries(entries: Any, where: str) -> Iterator[Member]:
    """Yield the members of `for_each`, a list of names or a mapping of names to values."""
    if isinstance(entries, list):
        entries = dict.fromkeys(entries)
    if not isinstance(entries, Mapping) or not entries:
        raise _mistake(entries, where, "a list of names, or a mapping of names to values")
    for name, own in entries.items():
        if own is not None and not isinstance(own, Mapping):
            raise _mistake(own, f"{where}.{name}", "keys of the file with their values")
        leaves = dict(_leaves(own or {}, ()))
        yield Member(str(name), leaves, {path: ".".join(("for_each", str(name), *path)) for path in leaves})


def _leaves(values: Mapping[str, Any], under: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in values.items():
        path = (*under, *str(key).split("."))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, path)
        else:
            yield path, value


def _swept(key: str, listed: Any, where: str) -> Iterator[Member]:
    """Yield the members for one swept key."""
    if not isinstance(listed, list) or not listed:
        raise _mistake(listed, where, "a list of values")
    path = tuple(key.split("."))
    for value in listed:
        if not isinstance(value, bool | int | float | str):
            raise UserError(
                "a member cannot be named by such a value",
                where=where,
                expected="numbers, words, true or false",
                remedy="use for_each: {<name>: {<key>: <value>}}",
            )
        yield Member(value_text(value), {path: value}, {path: f"sweep.{key}"})


def value_text(value: Any) -> str:
    """Return a value as written in a name: 50.0 as 50, true as true."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and value == float(f"{value:g}") else str(value)


def _mistake(value: Any, where: str, expected: str) -> UserError:
    return UserError(f"it is {value!r}"[:80], where=where, expected=expected)


@dataclass(frozen=True)
class Override:
    """A value for one key. `keys`: the parts of the dotted key, such as ("scenario", "ramp", "uniform", "seed")."""

    text: str
    keys: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        return self.text

    @property
    def where(self) -> str:
        """The place that error messages name for this value."""
        return f"set: {self.text}"

    def at_scale(self, scale: str) -> list[Override]:
        """Return the overrides of keys of files that this override sets: `scale.studies.<study>` is `sizes.<scale>` in
        conf/study/<study>.yaml.
        """
        if self.keys[0] != "scale":
            return [self]
        found = []
        for keys, value in _leaves(nested(self.keys, self.value), ()):
            of_study = keys[1:2] == ("studies",) and len(keys) > 2
            placed = ("study", keys[2], "sizes", scale, *keys[3:]) if of_study else keys
            found.append(Override(self.text, placed, value))
        return found

    def below(self, group: str, names: Iterable[str]) -> tuple[str, ...] | None:
        """Return the part of the key that lies within a file of the group ("scenario/ramp") with one of these names;
        None if there is none. A name may contain dots.
        """
        above = tuple(group.split("/"))
        if self.keys[: len(above)] != above:
            return None
        rest = ".".join(self.keys[len(above) :])
        for name in sorted(names, key=len, reverse=True):
            if rest.startswith(f"{name}."):
                return tuple(rest[len(name) + 1 :].split("."))
        return None


def assignments(text: Any) -> list[str]:
    """Return the assignments in a text, separated by spaces and commas outside brackets and quotes, or in a list with
    one assignment per entry. Raises UserError for other values, which may occur because Snakemake parses the text as
    YAML.
    """
    if isinstance(text, Sequence) and not isinstance(text, str) and all(isinstance(entry, str) for entry in text):
        return list(text)
    if not isinstance(text, str):
        remedy = """write a list of assignments: set='["KEY=VALUE", "KEY=VALUE"]'"""
        raise UserError(f"as YAML it is {text!r}"[:200], where="--config: set", expected="KEY=VALUE", remedy=remedy)
    found, depth, quote = [""], 0, ""
    for letter in text:
        if quote or letter in "'\"":
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter in " ,\n" and not depth and not quote:
            found.append("")
        else:
            found[-1] += letter
    return list(filter(None, found))


def of_words(group: str, study: str, name: str, words: Sequence[str]) -> list[Override]:
    """Return the overrides in a command's arguments KEY=VALUE, for keys of a scenario or policy. Raises UserError."""
    return parsed([f"{group}.{study}.{name}.{word}" for word in words])


def overlay(values: Mapping[str, Any]) -> list[Override]:
    """Return the overrides of nested values, as read from a file for `--configfile`."""
    return [
        Override(f"{'.'.join(keys)}={setting_text(value)}", keys, value) for keys, value in _leaves(dict(values), ())
    ]


def setting_text(value: Any) -> str:
    """Return a plain value as Hydra's grammar writes it after `KEY=`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {setting_text(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(setting_text, value)) + "]"
    if isinstance(value, str) and (not re.fullmatch(r"[A-Za-z_][\w./-]*", value) or value.lower() in _WORDS):
        return "'" + re.sub(r"(\\*)('|\Z)", lambda found: 2 * found[1] + (found[2] and r"\'"), value) + "'"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def with_value(values: Any, path: Sequence[str], value: Any, resolve: Callable[[str], Any] = str) -> Any:
    """Return plain values with the value at a path of keys (for lists: positions) changed; mappings are merged, other
    values are replaced.

    resolve: returns the values for a text that stands on the path, such as '${scale.studies.ramp}'
    """
    if not path:
        both = isinstance(values, Mapping) and isinstance(value, Mapping)
        return merged(values, value) if both else value
    key, *rest = path
    here = resolve(values) if isinstance(values, str) else values
    if isinstance(here, list) and key.isdigit() and int(key) < len(here):
        position = int(key)
        return [*here[:position], with_value(here[position], rest, value, resolve), *here[position + 1 :]]
    inside = here if isinstance(here, Mapping) else {}
    return {**inside, key: with_value(inside.get(key), rest, value, resolve)}


def nested(keys: Sequence[str], value: Any) -> Any:
    """Return a value below its keys: ("a", "b"), 1 gives {"a": {"b": 1}}."""
    return {keys[0]: nested(keys[1:], value)} if keys else value


def parsed(texts: Sequence[str]) -> list[Override]:
    """Return overrides of one value each. Raises UserError for a text that is not one."""
    read = [(text, _parsed(text, several=False)) for text in texts]
    return [Override(text, tuple(found.key_or_group.split(".")), found.value()) for text, found in read]


def swept(text: str) -> list[Override]:
    """Return the overrides of a sweep, `KEY=VALUE,VALUE,...`, one for each value. Raises UserError."""
    override = _parsed(text, several=True)
    several = override.is_sweep_override()
    values = override.sweep_string_iterator() if several else [override.get_value_element_as_str()]
    return parsed([f"{override.key_or_group}={value}" for value in values])


def _parsed(text: str, several: bool) -> HydraOverride:
    """Return Hydra's reading of an assignment. Raises UserError. several: accept a sweep over several values"""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import OverrideType
    from hydra.errors import HydraException

    option = "sweep" if several else "set"
    expected = f"KEY=VALUE{',VALUE' if several else ''}, such as scenario.ramp.uniform.seed=7{',8' if several else ''}"
    try:
        override = OverridesParser.create().parse_overrides([text])[0]
    except HydraException:
        raise UserError("it cannot be read", where=f"{option}: {text}", expected=expected) from None
    if (
        "=" not in text
        or override.type not in (OverrideType.CHANGE, OverrideType.ADD, OverrideType.FORCE_ADD)
        or not all(override.key_or_group.split("."))
    ):
        raise UserError("it sets no value", where=f"{option}: {text}", expected=expected)
    if override.is_sweep_override() and not several:
        remedy = f'for a run of each value: sweep="{text}"; for a list: {override.key_or_group}=[...]'
        raise UserError("it has several values", where=f"{option}: {text}", expected=expected, remedy=remedy)
    return override
