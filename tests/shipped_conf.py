"""The shipped scenarios, policies and figures by their names, members of families among them, composed at a scale."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.composition import Composer, Compositions

CONF = Path(__file__).resolve().parent.parent / "conf"


COMPOSED = Compositions(CONF)  # shared by all tests of a process: composing all of them takes some ten seconds


@cache
def _composer(scale: str) -> Composer:
    return Composer(CONF, scale, COMPOSED)


@cache
def names(group: str) -> tuple[str, ...]:
    """Return the names of a group such as `scenario/ramp`."""
    return tuple(_composer("full").names(group))


def values(group: str, name: str, scale: str = "full") -> dict[str, Any]:
    """Return the composed values of one of them."""
    return _composer(scale).compose(group, name).values


def write(group: str, name: str, folder: Path, **changes: Any) -> Path:
    """Write one of them as a file of its own in a configuration folder, as it is written before it is composed."""
    for file in sorted((CONF / group).glob("*.yaml")):
        text = yaml.safe_load(file.read_text())
        members = text.get("for_each") or {}
        for each in [file.stem] if not members else list(members):
            template = str(text.get("name") or f"{file.stem}-{str(each).replace('_', '-')}")
            if (template.replace("${each}", str(each)) if members else file.stem) != name:
                continue
            own = members[each] if isinstance(members, dict) else {}
            values = {key: value for key, value in {**text, **(own or {})}.items() if key != "for_each"}
            values = {**values, "name": name, **changes}
            target = folder / group / f"{name}.yaml"
            target.parent.mkdir(parents=True, exist_ok=True)
            dumped = yaml.safe_dump(values, sort_keys=False, width=1000)
            target.write_text(dumped.replace("${each}", str(each)))
            return target
    raise FileNotFoundError(f"conf/{group}: {name}")
