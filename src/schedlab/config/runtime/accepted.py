"""Code that counts as equal: results/<run>/accepted.json, which `schedlab accept` writes next to the results.

An entry states that later code makes the same bytes as earlier code. Frozen parts continue to name the earlier code, so
nothing runs again.
"""

from __future__ import annotations

from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.files import write_json
from schedlab.config.readers import read_json
from schedlab.config.schema import Settings, setting, validate

NAME = "accepted.json"


class AcceptedBy(Settings):
    """Who accepted results of earlier code for later code, and for which code."""

    by: str = setting(doc="who accepted it")
    when: str = setting(doc="date and time, UTC")
    made_by: str = setting(doc="commit whose code made the results")
    accepted_for: str = setting(doc="hash of the sources for which they were accepted")
    commit: str | None = setting(None, doc="commit of these sources; null: they were not committed")


class Acceptance(AcceptedBy):
    """An entry of the file, with its evidence."""

    modules: tuple[str, ...] = setting(doc="modules that differ")
    files: int = setting(doc="files of scale smoke that both codes made with the same bytes", ge=1)
    codes: dict[str, str] = setting(doc="hash of the later code in a frozen part -> hash of the earlier code")


def read_accepted(results: Path | str) -> list[Acceptance]:
    """Return the acceptances in a folder of results, in order; empty if there are none. Raises UserError."""
    file = Path(results, NAME)
    if not file.is_file():
        return []
    values = read_json(file, "a list as `schedlab accept` writes it")
    if not isinstance(values, list):
        remedy = "delete it; what is not accepted runs again"
        raise UserError("is no list of accepted code", where=str(file), remedy=remedy)
    return [validate(Acceptance, entry, lambda keys: f"{file}: {'.'.join(map(str, keys))}") for entry in values]


def add_accepted(results: Path | str, acceptance: Acceptance) -> None:
    """Append an acceptance to those of a folder of results."""
    everything = [*read_accepted(results), acceptance]
    write_json(Path(results, NAME), [entry.model_dump(mode="json") for entry in everything])


def same_code(results: Path | str) -> dict[str, str]:
    """Return hash of later code -> hash of the earlier code to which it counts as equal, as in frozen parts."""
    return {later: earlier for entry in read_accepted(results) for later, earlier in entry.codes.items()}
