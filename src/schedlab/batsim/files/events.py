"""The file of external events: one JSON object a line, with a type, a date and what belongs to the type."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.batsim.files.json_values import number, text_value
from schedlab.batsim.resource_set import EMPTY, ResourceSet, parse_resources
from schedlab.config.errors import UserError
from schedlab.config.readers import parse_json, read_text

MACHINE_EVENTS = ("machine_unavailable", "machine_available")


@dataclass(frozen=True, slots=True)
class ExternalEvent:
    """What happens at a date (in s): `resources` for events of machines, `json` the object of the file."""

    timestamp: float
    kind: str
    resources: ResourceSet
    json: dict[str, Any]


def read_events(path: Path | str, nb_machines: int) -> list[ExternalEvent]:
    """Read a file of external events, in order of their dates; UserError naming the line."""
    path = Path(path)
    events = []
    for index, line in enumerate(read_text(path, "a file of one JSON object a line").split("\n"), start=1):
        if line.strip():
            events.append(_event(line, f"{path}: line {index}", nb_machines))
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
