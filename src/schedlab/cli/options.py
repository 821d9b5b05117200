"""Makes typed settings from a command's options, and reports mistakes by the names of the options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from typing import Any, TypeVar

from schedlab.config.errors import UserError, nearest
from schedlab.config.schema import Settings, validate

MOST_SECONDS = 1e6  # of a limit; clocks of operating systems cannot represent much larger values
S = TypeVar("S", bound=Settings)


class Parser(argparse.ArgumentParser):
    """A parser whose commands report unknown options themselves, and suggest the nearest known one."""

    has_commands = False

    def add_subparsers(self, **keywords: Any) -> Any:
        self.has_commands = True
        return super().add_subparsers(**keywords)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        chosen, unknown = super().parse_known_args(args, namespace)
        if unknown and not self.has_commands:
            named = re.findall(r"^  (-\S.*?)(?:  |$)", self.format_help(), re.MULTILINE)  # each option's heading
            options = re.findall(r"(?<!\S)-[-\w]+", " ".join(named))
            near = nearest(unknown[0].partition("=")[0], options)
            self.error(f"unrecognized arguments: {' '.join(unknown)}" + (f"; did you mean {near}?" if near else ""))
        return chosen, unknown


def typed_options(kind: type[S], values: dict[str, object], through_set: Collection[str] = ()) -> S:
    """Return the settings from a command's options; options that were not given (None) have the defaults. Raises
    UserErrors.

    through_set  keys given by --set; mistakes in them are reported with that option
    """
    given = {name: value for name, value in values.items() if value is not None}

    def where(path: tuple) -> str:
        if path and path[0] in through_set:
            return f"--set {'.'.join(map(str, path))}"
        return f"--{str(path[0]).replace('_', '-')}" if path else "command line"

    return validate(kind, given, where)


def count(text: str) -> int:
    """Return a whole number above 0; used as `type` of an option."""
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number above 0")
    return int(text)


def time_limit(text: str) -> float | None:
    """Return a limit in seconds, None for 0; used as `type` of an option."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds from 0 to {MOST_SECONDS:g}")
    return seconds or None


def whole_numbers(text: str) -> list[int]:
    """Return the numbers in '3,5,8'; used as `type` of an option."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of whole numbers, as in 3,5,8") from None


def key_values(settings: list[str], option: str) -> dict[str, object]:
    """Return nested values from 'key=value' and 'key.key=value'; each value is parsed as YAML. Raises UserError."""
    from schedlab.config.readers import read_value

    found: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UserError(f"'{text}' sets nothing", where=option, expected="KEY=VALUE, for example nodes=[4,8]")
        place = found
        *above, last = key.split(".")
        for part in above:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise UserError(f"'{part}' is set twice", where=option, expected="each key once")
        place[last] = read_value(value, f"{option} {key}")
    return found
