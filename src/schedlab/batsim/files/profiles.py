"""Job profiles, which define a job's work, with the types and fields of Batsim's workload files; the leaves are delays,
parallel tasks and messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedlab.batsim.errors import UnsupportedProfile
from schedlab.batsim.files.json_values import number, text_value, whole_number
from schedlab.batsim.files.usage_trace import Steps, read_usage_trace
from schedlab.config.errors import UserError, did_you_mean

_LEAST, _MOST = 1e-20, 1e30  # flop or bytes; beyond these, ratios of quantities leave the range of floats
NOT_SIMULATED = {"smpi": "use a real Batsim, or write the job as profiles of the type parallel in a composed one"}
"""Types of profiles that are not simulated, and what is possible instead."""


@dataclass(slots=True, eq=False)
class Profile:
    """A job profile; `json` is the profile as in the file, and with a `return_code` other than zero the job fails."""

    name: str
    json: dict[str, Any]
    return_code: int

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the profiles that this one may run."""
        return ()

    @property
    def width(self) -> int | None:
        """The number of executors that the profile needs; None if it runs on any number."""
        return None


@dataclass(slots=True, eq=False)
class Delay(Profile):
    """A profile that takes `seconds` and uses no capacity."""

    seconds: float


@dataclass(slots=True, eq=False)
class Parallel(Profile):
    """A parallel task: executor i of n computes `cpu[i]` flop and sends `com[i * n + j]` bytes to executor j."""

    cpu: tuple[float, ...]
    com: tuple[float, ...]

    @property
    def width(self) -> int | None:
        """One executor for each amount of flop."""
        return len(self.cpu)


@dataclass(slots=True, eq=False)
class Homogeneous(Profile):
    """A parallel task: each executor computes `cpu` flop and sends `com` bytes to every other one; with `total`, both
    are divided by the number of executors.
    """

    cpu: float
    com: float
    total: bool


@dataclass(slots=True, eq=False)
class SharedStorage(Profile):
    """A parallel task: each executor reads `read` bytes from the storage host with the label `storage` and writes
    `write` bytes to it.
    """

    read: float
    write: float
    storage: str


@dataclass(slots=True, eq=False)
class Staging(Profile):
    """A parallel task that transfers `size` bytes from one storage host to another."""

    size: float
    source: str
    target: str


@dataclass(slots=True, eq=False)
class UsageTrace(Profile):
    """A usage trace: each executor runs its entry of `steps`, independently of the others; the profile ends when the
    last executor does.
    """

    steps: tuple[Steps, ...]

    @property
    def width(self) -> int | None:
        """One executor for each trace."""
        return len(self.steps)


@dataclass(slots=True, eq=False)
class Send(Profile):
    """A profile that sends `message` to the scheduler and then takes `seconds`."""

    message: Any
    seconds: float


@dataclass(slots=True, eq=False)
class Receive(Profile):
    """A profile that takes the scheduler's oldest message, then runs profile `success` if `pattern` matches the whole
    message, otherwise `failure`.

    Without a message it runs `timeout` or, if that is empty, looks again every `poll` s.
    """

    pattern: re.Pattern[str]
    success: str
    failure: str
    timeout: str
    poll: float

    @property
    def references(self) -> tuple[str, ...]:
        """The profiles of the three outcomes."""
        return tuple(name for name in (self.success, self.failure, self.timeout) if name)


@dataclass(slots=True, eq=False)
class Composed(Profile):
    """A profile that runs the profiles of `sequence` one after another, `repeat` times; it stops at the first return
    code other than zero.
    """

    sequence: tuple[str, ...]
    repeat: int
    parts: tuple[Profile, ...] = field(default=())  # filled in once all profiles are known

    @property
    def references(self) -> tuple[str, ...]:
        """The profiles of the sequence."""
        return self.sequence


def parse_profile(name: str, data: Any, where: str, folder: Path | None = None) -> Profile:
    """Return the profile that a JSON object describes. Raises UserError with the wrong field, and UnsupportedProfile
    for types that are not simulated.

    folder  folder of the files that the profile names; None: it may name none
    """
    if not isinstance(data, dict):
        raise UserError("is no object", where=where, expected='an object such as {"type": "delay", "delay": 5}')
    kind = data.get("type")
    if isinstance(kind, str) and kind in NOT_SIMULATED:
        raise UnsupportedProfile(
            f"profiles of type '{kind}' are not simulated",
            where=where,
            expected="one of " + ", ".join(PROFILE_TYPES),
            remedy=NOT_SIMULATED[kind],
        )
    if kind not in PROFILE_TYPES:
        remedy = did_you_mean(str(kind), PROFILE_TYPES)
        raise UserError(f"type is {kind!r:.60}", where=where, expected="a type of profile", remedy=remedy)
    ret = whole_number(data.get("ret", 0), f"{where}, ret", "a whole number", least=-(2**31))
    if kind == "usage_trace":
        return _usage_trace(name, data, ret, where, folder)
    return _PARSERS[kind](name, data, ret, where)


def link_profiles(profiles: Mapping[str, Profile], where: Callable[[str], str]) -> None:
    """Give sequences their parts. Raises UserError for an unknown profile in a reference and a cycle of sequences."""
    for profile in profiles.values():
        for name in profile.references:
            if name not in profiles:
                raise UserError(
                    f"runs the unknown profile '{name}'", where=where(profile.name), remedy=did_you_mean(name, profiles)
                )
        if isinstance(profile, Composed) and not profile.parts:
            profile.parts = tuple(profiles[name] for name in profile.sequence)
    _refuse_cycles(profiles, where)


def computes(profiles: Mapping[str, Profile]) -> bool:
    """Return whether any profile computes, so that the speeds of hosts matter."""
    amounts = (getattr(profile, "cpu", isinstance(profile, UsageTrace)) for profile in profiles.values())
    return any(any(amount) if isinstance(amount, tuple) else amount for amount in amounts)


def used_profiles(profiles: Mapping[str, Profile], first: str) -> set[str]:
    """Return the names of a profile and of all profiles that it may run, whether or not they exist."""
    found, waiting = {first}, [first]
    while waiting:
        profile = profiles.get(waiting.pop())
        for name in () if profile is None else profile.references:
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _refuse_cycles(profiles: Mapping[str, Profile], where: Callable[[str], str]) -> None:
    finished: set[str] = set()
    for first in profiles:
        path: list[tuple[str, list[str]]] = [(first, _parts_left(profiles[first]))] if first not in finished else []
        entered = {first}
        while path:
            name, left = path[-1]
            if not left:
                path.pop()
                entered.discard(name)
                finished.add(name)
                continue
            child = left.pop()
            if child in entered:
                raise UserError(
                    f"the sequence comes back to profile '{child}'", where=where(name), expected="sequences that end"
                )
            if child not in finished:
                entered.add(child)
                path.append((child, _parts_left(profiles[child])))


def _parts_left(profile: Profile) -> list[str]:
    """Return the parts of a sequence; others have none, as a recv profile takes time and may lead back to itself."""
    return list(dict.fromkeys(profile.references)) if isinstance(profile, Composed) else []


def _amount(data: dict[str, Any], key: str, where: str) -> float:
    return _flop_or_bytes(data.get(key), f"{where}, {key}")


def _flop_or_bytes(value: Any, where: str) -> float:
    expected = f"a number from 0 to {_MOST:g}"
    amount = number(value, where, expected)
    if amount > _MOST:
        raise UserError(f"is {amount:g}", where=where, expected=expected)
    return amount if amount >= _LEAST else 0.0


def _amounts(data: dict[str, Any], key: str, where: str) -> tuple[float, ...]:
    values = data.get(key)
    if not isinstance(values, list) or not values:
        raise UserError(f"is {values!r:.60}", where=f"{where}, {key}", expected="a list of numbers")
    return tuple(_flop_or_bytes(value, f"{where}, {key}[{index}]") for index, value in enumerate(values))


def _delay(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    seconds = number(data.get("delay"), f"{where}, delay", "a finite number above 0, in s", strictly=True)
    return Delay(name, data, ret, seconds)


def _parallel(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    cpu, com = _amounts(data, "cpu", where), _amounts(data, "com", where)
    if len(com) != len(cpu) ** 2:
        raise UserError(
            f"has {len(com)} values",
            where=f"{where}, com",
            expected=f"{len(cpu) ** 2}, one for each pair of the {len(cpu)} executors",
        )
    return Parallel(name, data, ret, cpu, com)


def _homogeneous(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    return Homogeneous(
        name,
        data,
        ret,
        _amount(data, "cpu", where),
        _amount(data, "com", where),
        data["type"] == "parallel_homogeneous_total",
    )


def _composed(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    sequence = data.get("seq")
    if not isinstance(sequence, list) or not sequence or not all(isinstance(part, str) for part in sequence):
        raise UserError(f"is {sequence!r:.60}", where=f"{where}, seq", expected="a list of names of profiles")
    return Composed(
        name,
        data,
        ret,
        tuple(sequence),
        whole_number(data.get("repeat", 1), f"{where}, repeat", "a whole number above 0", least=1),
    )


def _shared_storage(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    storage = text_value(data.get("storage", "pfs"), f"{where}, storage", "the label of a storage host")
    if "bytes_to_read" not in data and "bytes_to_write" not in data:
        raise UserError("lacks bytes_to_read and bytes_to_write", where=where, expected="one of them or both")
    volumes = {"bytes_to_read": 0.0, "bytes_to_write": 0.0, **data}
    return SharedStorage(
        name, data, ret, _amount(volumes, "bytes_to_read", where), _amount(volumes, "bytes_to_write", where), storage
    )


def _staging(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    ends = (text_value(data.get(key), f"{where}, {key}", "the label of a storage host") for key in ("from", "to"))
    return Staging(name, data, ret, _amount(data, "nb_bytes", where), *ends)


def _usage_trace(name: str, data: dict[str, Any], ret: int, where: str, folder: Path | None) -> Profile:
    file = text_value(data.get("trace"), f"{where}, trace", "a file, relative to that of the workload")
    if folder is None:
        raise UserError("is no profile of a workload file", where=where, expected="a type that names no file")
    return UsageTrace(name, data, ret, read_usage_trace(folder / file))


def _send(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    if "msg" not in data:
        raise UserError("is missing", where=f"{where}, msg", expected="the message, an object")
    return Send(
        name,
        data,
        ret,
        data["msg"],
        number(data.get("sleeptime", 1e-7), f"{where}, sleeptime", "a number of at least 0, in s"),
    )


def _receive(name: str, data: dict[str, Any], ret: int, where: str) -> Profile:
    text = data.get("regex", ".*")
    try:
        pattern = re.compile(text)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise UserError(f"{error}", where=f"{where}, regex", expected="a regular expression") from None
    outcomes: tuple[Any, Any, Any] = (data.get("success", ""), data.get("failure", ""), data.get("timeout", ""))
    for key, value in zip(("success", "failure", "timeout"), outcomes, strict=True):
        if not isinstance(value, str):
            raise UserError(f"is {value!r:.60}", where=f"{where}, {key}", expected="the name of a profile")
    poll = number(data.get("polltime", 0.005), f"{where}, polltime", "a number above 0, in s", strictly=True)
    return Receive(name, data, ret, pattern, *outcomes, poll)


_PARSERS: dict[str, Callable[[str, dict[str, Any], int, str], Profile]] = {
    "delay": _delay,
    "parallel": _parallel,
    "parallel_homogeneous": _homogeneous,
    "parallel_homogeneous_total": _homogeneous,
    "composed": _composed,
    "parallel_homogeneous_pfs": _shared_storage,
    "data_staging": _staging,
    "send": _send,
    "recv": _receive,
}
PROFILE_TYPES = (*_PARSERS, "usage_trace")
