"""Batsim's input files other than the platform: jobs with their profiles, and external events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from schedlab.batsim.files.json_values import number, text_value, whole_number
from schedlab.batsim.files.profiles import Composed, Homogeneous, Profile, link_profiles, parse_profile, used_profiles
from schedlab.batsim.resource_set import EMPTY, ResourceSet, parse_resources
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.readers import parse_json, read_text

SEPARATOR = "!"
DEEPEST = 1000  # levels of nested JSON; schedulers get a job's extra values as they are in the file, as from Batsim


@dataclass(slots=True, eq=False)
class Job:
    """A requested job. `id` is the full identifier `workload!number`; times are in s; a `walltime` of -1 means none.

    `keys` and `values` are those of the job's object with the full identifier as `id`, as the scheduler gets it. They
    are tuples, and jobs share the keys, because a million dictionaries take 100 MB more.
    """

    id: str
    submission: float
    resources: int
    walltime: float
    profile: Profile
    keys: tuple[str, ...]
    values: tuple[Any, ...]

    @property
    def json(self) -> dict[str, Any]:
        """The job's object."""
        return dict(zip(self.keys, self.values, strict=True))


@dataclass(slots=True, eq=False)
class Workload:
    """A workload: `jobs` by submission date, then by identifier as text; `profiles` by name; `nb_res`, the number of
    hosts for which it was made.
    """

    name: str
    path: str
    nb_res: int
    jobs: list[Job]
    profiles: dict[str, Profile]


def read_workload(path: Path | str, name: str) -> Workload:
    """Read a workload file; jobs get identifiers `name!id`.

    Raises UserError with file and key for text that is no JSON or not UTF-8, missing or impossible values, duplicate
    identifiers, unknown profiles and cyclic sequences of profiles, and UnsupportedProfile for profiles that are not
    simulated.
    """
    path = Path(path)
    return parse_workload(read_text(path, "a workload file in JSON"), name, str(path))


def parse_workload(text: str, name: str, where: str) -> Workload:
    """Read the text of a workload file; `where` is its path, used in errors, too. Raises as `read_workload` does."""
    if not name or SEPARATOR in name:
        raise UserError(f"'{name}' cannot name a workload", where=where, expected=f"a name without '{SEPARATOR}'")
    data = parse_json(text, where, "a workload file in JSON", most_levels=DEEPEST)
    del text  # the text of a million jobs has 100 MB
    if not isinstance(data, dict):
        raise UserError("is no object", where=where, expected='an object with "nb_res", "jobs" and "profiles"')
    for key, kind, described in (("jobs", list, "a list of jobs"), ("profiles", dict, "an object of profiles")):
        if not isinstance(data.get(key), kind):
            raise UserError("is missing or of another kind", where=f"{where}: {key}", expected=described)
    nb_res = whole_number(data.get("nb_res"), f"{where}: nb_res", "the number of hosts, above 0", least=1)
    profiles = {
        key: parse_profile(key, value, _profile_place(where, key), Path(where).parent)
        for key, value in data["profiles"].items()
    }
    link_profiles(profiles, lambda key: _profile_place(where, key))
    jobs: list[Job] = []
    identifiers: set[str] = set()
    widths: dict[str, dict[str, int]] = {}
    entries: list[Any] = data["jobs"]
    for index, entry in enumerate(entries):
        job = parse_job(entry, name, profiles, f"{where}: jobs[{index}]", widths)
        entries[index] = None  # frees its memory
        if job.id in identifiers:
            raise UserError(
                f"a second job '{job.id}'", where=f"{where}: jobs[{index}], id", expected="each identifier once"
            )
        identifiers.add(job.id)
        jobs.append(job)
    jobs.sort(key=_date)
    ordered = [job for _, same_date in groupby(jobs, _date) for job in sorted(same_date, key=_name)]
    return Workload(name, str(Path(where).resolve()), nb_res, ordered, profiles)


_date, _name = attrgetter("submission"), attrgetter("id")


def parse_job(
    entry: Any,
    workload: str,
    profiles: Mapping[str, Profile],
    where: str,
    widths: dict[str, dict[str, int]] | None = None,
) -> Job:
    """Return the job that a JSON object describes, which gets the full identifier. Raises UserError for missing or
    impossible values.

    widths  cache: profile of a job -> the widths of all profiles with a fixed width that it may run
    """
    if not isinstance(entry, dict):
        raise UserError("is no object", where=where, expected='an object with "id", "subtime", "res" and "profile"')
    identifier = _identifier(entry.get("id"), workload, where)
    submission, resources, walltime = entry.get("subtime"), entry.get("res"), entry.get("walltime", -1)
    if type(submission) is not float or not 0.0 <= submission < math.inf:  # faster than `number`
        submission = number(submission, f"{where}, subtime", "a date in s, not negative")
    if type(resources) is not int or not 0 <= resources < 2**53:
        resources = whole_number(resources, f"{where}, res", "a number of hosts, not negative")
    usual = type(walltime) is float and 0.0 < walltime < math.inf
    if not usual and (walltime != -1 or isinstance(walltime, bool)):
        walltime = number(walltime, f"{where}, walltime", "a time above 0 in s, or -1 for none", strictly=True)
    name = entry.get("profile")
    profile = profiles.get(name) if name and isinstance(name, str) else None
    if profile is None:
        name = text_value(name, f"{where}, profile", "the name of a profile")
        raise UserError(f"unknown profile '{name}'", where=f"{where}, profile", remedy=did_you_mean(name, profiles))
    _check_widths(profile.name, resources, profiles, where, {} if widths is None else widths)
    entry["id"], entry["profile"] = identifier, profile.name  # one text for all jobs that share a profile
    keys = _shared_keys(tuple(entry))
    return Job(identifier, submission, resources, float(walltime), profile, keys, tuple(entry.values()))


@lru_cache(maxsize=64)
def _shared_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    return keys


def accepts_any_size(profile: Profile) -> bool:
    """Return whether a profile runs on any number of hosts: a parallel_homogeneous_total or a sequence of these."""
    waiting, seen = [profile], {profile}
    while waiting:
        part = waiting.pop()
        if isinstance(part, Composed):
            waiting.extend(set(part.parts) - seen)
            seen.update(part.parts)
        elif not (isinstance(part, Homogeneous) and part.total):
            return False
    return True


def _check_widths(
    name: str, resources: int, profiles: Mapping[str, Profile], where: str, widths: dict[str, dict[str, int]]
) -> None:
    fixed = widths.get(name)
    if fixed is None:
        found = {part: profiles[part].width for part in sorted(used_profiles(profiles, name))}
        fixed = widths[name] = {part: width for part, width in found.items() if width is not None}
    for part, width in fixed.items():
        if width != resources:
            raise UserError(
                f"is {resources}, but profile '{part}' has {width} executors",
                where=f"{where}, res",
                expected="the same number",
            )


def _identifier(value: Any, workload: str, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise UserError(f"is {value!r:.60}", where=f"{where}, id", expected="a whole number or a text")
    text = str(value)
    prefix, separator, rest = text.partition(SEPARATOR)
    if not separator:
        return f"{workload}{SEPARATOR}{text}"
    if prefix != workload or not rest or SEPARATOR in rest:
        raise UserError(
            f"'{text}' belongs to no job of workload '{workload}'",
            where=f"{where}, id",
            expected=f"{workload}{SEPARATOR}<id>",
        )
    return text


def _profile_place(where: str, name: str) -> str:
    return f"{where}: profiles['{name[:60]}']"


MACHINE_EVENTS = ("machine_unavailable", "machine_available")


@dataclass(frozen=True, slots=True)
class ExternalEvent:
    """An external event at a date (s): `resources` are set for events of machines; `json` is the object in the file."""

    timestamp: float
    kind: str
    resources: ResourceSet
    json: dict[str, Any]


def read_events(path: Path | str, nb_machines: int, forward_unknown: bool) -> list[ExternalEvent]:
    """Read a file of external events and return them in the order of their dates. Raises UserError with the line for a
    wrong event and, unless such events are forwarded, for an event of unknown type.
    """
    path = Path(path)
    events = []
    for index, line in enumerate(read_text(path, "a file of one JSON object a line").split("\n"), start=1):
        if line.strip():
            event = _event(line, f"{path}: line {index}", nb_machines)
            if event.kind not in MACHINE_EVENTS and not forward_unknown:
                raise UserError(
                    f"'{event.kind}' is unknown",
                    where=f"{path}: line {index}, type",
                    expected=" or ".join(MACHINE_EVENTS),
                    remedy="or forward unknown events to the scheduler (--forward-unknown-events)",
                )
            events.append(event)
    return sorted(events, key=lambda event: event.timestamp)


def _event(line: str, where: str, nb_machines: int) -> ExternalEvent:
    data = parse_json(
        line, where, 'an object such as {"type": "machine_unavailable", "resources": "0-1", "timestamp": 3}'
    )
    if not isinstance(data, dict):
        raise UserError("is no object", where=where, expected='an object with "type" and "timestamp"')
    kind = text_value(data.get("type"), f"{where}, type", "a text")
    timestamp = number(data.get("timestamp"), f"{where}, timestamp", "a date in s, not negative")
    resources = EMPTY
    if kind in MACHINE_EVENTS:
        try:
            resources = parse_resources(
                text_value(data.get("resources"), f"{where}, resources", "intervals such as 0-3 5"), nb_machines
            )
        except ValueError as error:
            raise UserError(str(error), where=f"{where}, resources", expected="intervals such as 0-3 5") from None
    return ExternalEvent(timestamp, kind, resources, data)
