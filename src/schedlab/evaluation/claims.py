"""The ledger of published claims (conf/claims/<study>.yaml): the published value, our value, and whether the two agree.

Our values are read from recorded tables and never written into the ledger: from a cell that the claim names, computed
from two cells (evaluation/recorded_values.py), or from the claim's row of docs/results/<study>_claims.csv, which the
program docs/generate/<study>_claims.py computes. The status is derived from the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from schedlab.config.composition import Composed
from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.readers import option_names, read_yaml, short_path
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.settings import NAME
from schedlab.evaluation.recorded import read_records
from schedlab.evaluation.recorded_values import CellSettings, RecordedSettings, matching_rows, recorded_value

L = TypeVar("L")
Value = float | str | None
Status = Literal["reproduced", "repaired", "differs", "open"]
STATUSES: tuple[Status, ...] = ("reproduced", "repaired", "differs", "open")
OURS = ("ours_reference", "ours_repaired")
RANGE = re.compile(r"([\d.e+-]+) to ([\d.e+-]+)")


class PublishedClaim(Settings):
    """One published number or statement. A value is a number, a short text such as `011`, or null if it is unknown."""

    id: str = setting(doc="short name, unique in the study's ledger", pattern=NAME)
    paper: str = setting(doc="publication", min_length=1)
    table: str = setting("", doc="table, figure or section of the paper")
    quantity: str = setting(doc="claimed quantity, with its unit", min_length=1)
    published: Value = setting(None, doc="published value; a range is the text '0.01 to 0.15'")
    tolerance: float | None = setting(
        None, doc="largest difference at which two numbers agree; none: they must be equal", ge=0
    )
    note: str = setting("", doc="note for the reader of the values")
    command: str = setting("", doc="command that measures our value; default: the command in the row of `computed_in`")
    closes_with: str = setting("", doc="for a claim without our value: the data or command that would give one")


class ClaimSettings(PublishedClaim):
    """A claim, and the places of our values: cells of recorded tables."""

    ours_reference: RecordedSettings | None = setting(
        None, doc="our value in mode reference, which repeats the published system"
    )
    ours_repaired: RecordedSettings | None = setting(
        None, doc="our value in mode default, with the published defects repaired"
    )
    computed_in: str = setting(
        "", doc="table whose row `claim: <id>` has our values in columns of these names, where the two keys give none"
    )


class Claim(PublishedClaim):
    """A claim with our values read and the status determined."""

    ours_reference: Value = setting(None, doc="our value in mode reference")
    ours_repaired: Value = setting(None, doc="our value in mode default")
    status: Status = setting(doc="status that follows from the values (status_of)")


class ClaimsSettings(Settings):
    """The ledger of one study."""

    name: str = setting(doc="name of the study, equal to the file's name", pattern=NAME)
    claims: tuple[ClaimSettings, ...] = setting((), doc="claims, in the order of printing")


class Ledger(Settings):
    """The ledger of one study with our values read."""

    name: str = setting(doc="name of the study", pattern=NAME)
    claims: tuple[Claim, ...] = setting((), doc="claims, in the order of printing")


def agree(published: Value, ours: Value, tolerance: float | None) -> bool:
    """Return whether two known values agree: numbers within the tolerance (and the rounding of floats), a number with a
    published range if it lies within the range, texts if they are equal.
    """
    if published is None or ours is None:
        return False
    if isinstance(published, str) and isinstance(ours, float) and (ends := RANGE.fullmatch(published)):
        return float(ends[1]) - (tolerance or 0.0) <= ours <= float(ends[2]) + (tolerance or 0.0)
    if isinstance(published, str) or isinstance(ours, str):
        return published == ours
    return abs(published - ours) <= (tolerance or 0.0) + 1e-12 * abs(published)


def status_of(published: Value, reference: Value, repaired: Value, tolerance: float | None) -> Status:
    """Return whether and how our values agree with the published one.

    open        we have no value
    reproduced  the value in reference mode agrees
    repaired    that value agrees, or nothing was published, and the value in default mode is different: a defect
    differs     otherwise
    """
    if reference is None and repaired is None:
        return "open"
    defect = None not in (reference, repaired) and not agree(reference, repaired, tolerance)
    if published is None:
        return "repaired" if defect else "differs"
    if not agree(published, reference, tolerance):
        return "differs"
    return "repaired" if defect and not agree(published, repaired, tolerance) else "reproduced"


def read_claims(folder: Path | str, study: str | None = None) -> dict[str, Ledger]:
    """Return study -> ledger of a configuration folder, for all studies or one. Raises UserErrors with all mistakes
    together, including those in records that no claim reads.
    """
    names = option_names(Path(folder) / "claims")
    if study is not None and study not in names:
        raise UserError(
            f"there is no ledger of a study '{study}'",
            where=f"{Path(folder) / 'claims'}",
            remedy=did_you_mean(study, names),
        )
    ledgers = _each(folder, names if study is None else [study], read_ledger)
    read_records(recorded_tables(folder))
    return ledgers


def written_claims(folder: Path | str) -> dict[str, ClaimsSettings]:
    """Return study -> ledger as written, without our values: for a configuration folder beside which there are no
    recorded tables. Raises UserErrors with all mistakes together.
    """
    return _each(folder, option_names(Path(folder) / "claims"), _written_ledger)


def _each(folder: Path | str, names: Iterable[str], read: Callable[[Path, str], L]) -> dict[str, L]:
    """Return study -> what `read` makes of its ledger's file. Raises UserErrors with all mistakes together."""
    ledgers: dict[str, L] = {}
    errors: list[UserError] = []
    for name in names:
        try:
            ledgers[name] = read(Path(folder).resolve() / "claims" / f"{name}.yaml", name)
        except UserError as error:
            errors += error.errors
    if errors:
        raise UserErrors(errors)
    return ledgers


def lacks_tables(folder: Path | str) -> bool:
    """Return whether a configuration folder stands without docs/results/ beside it, as a copy of conf/ alone does,
    although claims name recorded tables. Raises UserErrors.
    """
    return not recorded_tables(folder).is_dir() and any(
        claim.computed_in or claim.ours_reference or claim.ours_repaired
        for ledger in written_claims(folder).values()
        for claim in ledger.claims
    )


def recorded_tables(folder: Path | str) -> Path:
    """Return the folder of the recorded tables beside a configuration folder."""
    return Path(folder).resolve().parent / "docs/results"


def unknown_claims(
    ledgers: Mapping[str, Ledger] | Mapping[str, ClaimsSettings], asked: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[UserError]:
    """Yield a mistake for each claim that a study's questions (study -> `headline:`) name but its ledger does not
    contain.
    """
    for study, questions in asked.items():
        ids = [claim.id for claim in ledgers[study].claims] if study in ledgers else []
        for number, question in enumerate(questions):
            for name in question["published"]:
                if name not in ids:
                    where = f"conf/study/{study}.yaml: headline.{number}.published"
                    yield UserError(f"there is no claim '{name}'", where=where, remedy=did_you_mean(name, ids))


def read_ledger(file: Path, name: str) -> Ledger:
    """Return the ledger of a study in a file, with our values read from docs/results next to conf/. Raises
    UserErrors.
    """
    written, composed = _written(file)
    errors = list(_contradictions(written, name, composed))
    listed = f"{short_path(file)}: claims"
    claims = []
    for position, claim in enumerate(written.claims):
        try:
            claims.append(_claim(claim, file.parents[2] / "docs/results", f"{listed}.{position}"))
        except UserError as error:
            errors += error.errors
    if errors:
        raise UserErrors(errors)
    return Ledger(name=written.name, claims=tuple(claims))


def _written_ledger(file: Path, name: str) -> ClaimsSettings:
    """Return the ledger of a study in a file, without our values. Raises UserErrors."""
    written, composed = _written(file)
    if errors := list(_contradictions(written, name, composed)):
        raise UserErrors(errors)
    return written


def _written(file: Path) -> tuple[ClaimsSettings, Composed]:
    """Return the ledger of a study as its file has it, and the places of its values. Raises UserErrors."""
    composed = Composed(read_yaml(file), ((file, ()),))
    return validate(ClaimsSettings, composed.values, composed.locate), composed


def _claim(claim: ClaimSettings, results: Path, place: str) -> Claim:
    """Return a claim with our values read. Raises UserError, also if `closes_with` is missing for an open claim, or
    given for another one.
    """
    ours: dict[str, Value] = dict.fromkeys(OURS)
    command = claim.command
    if claim.computed_in:
        asked = CellSettings(table=claim.computed_in, row={"claim": claim.id})
        row = matching_rows(asked, results, f"{place}.computed_in", {}, (*OURS, "command"))[0]
        ours = {key: _computed(row[key], claim.published) for key in OURS}
        command = command or row["command"]
    for key, cell in zip(OURS, (claim.ours_reference, claim.ours_repaired), strict=True):
        if cell:
            ours[key] = recorded_value(cell, results, f"{place}.{key}")
    status = status_of(claim.published, ours[OURS[0]], ours[OURS[1]], claim.tolerance)
    if (status == "open") != bool(claim.closes_with):
        where = f"{place}.closes_with"
        is_open = f"the claim '{claim.id}' is {status}"
        expected = "the command or the data that would give a value of ours" if status == "open" else "no such key"
        raise UserError(is_open, where=where, expected=expected)
    said = {key: getattr(claim, key) for key in PublishedClaim.model_fields}
    return Claim(**{**said, **ours, "command": command, "status": status})


def _computed(cell: str, published: Value) -> Value:
    """Return the value in a cell: text if the published value is a text such as 011, else a number if it is one; None
    for an empty cell.
    """
    if not cell or (isinstance(published, str) and not RANGE.fullmatch(published)):
        return cell or None
    try:
        return float(cell)
    except ValueError:
        return cell


def _contradictions(ledger: ClaimsSettings, name: str, composed: Composed) -> Iterator[UserError]:
    """Yield mistakes that types cannot express: a wrong name, a repeated id."""
    if ledger.name != name:
        yield UserError(
            f"the name is '{ledger.name}'",
            where=composed.locate(("name",)),
            expected=f"'{name}'",
            remedy="rename either",
        )
    ids = [claim.id for claim in ledger.claims]
    for twice in sorted({entry for entry in ids if ids.count(entry) > 1}):
        yield UserError(
            f"the claim '{twice}' stands there twice", where=composed.locate(("claims",)), remedy="rename one of them"
        )


def rows(ledgers: dict[str, Ledger]) -> Iterator[dict[str, Value]]:
    """Yield each claim as a flat row that begins with its study."""
    for name, ledger in ledgers.items():
        for claim in ledger.claims:
            yield {"study": name, **claim.model_dump(mode="json")}
