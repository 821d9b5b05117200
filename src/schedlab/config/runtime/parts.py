"""Reads and writes the YAML file of a frozen part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from schedlab.config.errors import UserError
from schedlab.config.files import content_hash

MADE_BY = "made_by"  # the key of a part for the code and packages that will read it
HEADER = "# Frozen by schedlab from conf/ and the code; made again whenever these change. Edit conf/, not this file.\n"
MARK = "# SHA-256 of what follows: "


def dump(values: Mapping[str, Any]) -> str:
    """Return the YAML text of a frozen part."""
    text: str = yaml.dump(
        dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None
    )
    return f"{HEADER}{MARK}{_digest(text)}\n{text}"


def require_unedited(text: str, path: Path | str, to_replace: bool = False) -> None:
    """Raise UserError if a frozen part was changed after it was written; and, if it is to be replaced, for a file
    without the mark of a frozen part.
    """
    digest, newline, body = text.removeprefix(HEADER).removeprefix(MARK).partition("\n")
    marked = text.startswith(HEADER + MARK)
    if not (newline and digest == _digest(body)) if marked else to_replace:
        remedy = "edit conf/, delete this file and run snakemake; it writes the file again"
        raise UserError("the frozen configuration was edited by hand", where=str(path), remedy=remedy)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:  # anchors would make the text depend on object identity
        return True


def configuration(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a part without the code that reads it."""
    return {key: value for key, value in values.items() if key != MADE_BY}


def configuration_hash(values: Mapping[str, Any]) -> str:
    """Return the hash of a part's configuration. Tables name it; an edit of code does not change it."""
    return content_hash(configuration(values))


def read_part(path: Path | str) -> dict[str, Any]:
    """Return the values of a frozen part. Raises UserError if the file is missing, was edited, or is not a mapping."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        require_unedited(text, path)
        values = yaml.load(text, Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(
            f"the frozen configuration cannot be read: {error}",
            where=str(path),
            remedy="run snakemake; it writes the file",
        ) from None
    if not isinstance(values, dict):
        raise UserError(
            "the frozen configuration holds no mapping", where=str(path), remedy="delete it and run snakemake again"
        )
    return values
