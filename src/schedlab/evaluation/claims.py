"""The ledger of published claims (conf/claims/<study>.yaml): what a paper says, what comes out here, and whether the
two agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from schedlab.config.composition import Composed
from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.readers import option_names, read_yaml
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.settings import NAME, Names

Value = float | str | None
STATUSES = ("reproduced", "repaired", "differs", "open")


class ClaimSettings(Settings):
    """One published number or statement beside ours. A value is a number, a short text such as `011`, or null: not
    (yet) known.
    """

    id: str = setting(doc="short name, one of its kind in the ledger of the study", pattern=NAME)
    paper: str = setting(doc="where it was published", min_length=1)
    table: str = setting("", doc="table, figure or section of the paper")
    quantity: str = setting(doc="what is claimed, with its unit where it has one", min_length=1)
    published: Value = setting(None, doc="the published value")
    ours_reference: Value = setting(None, doc="ours in reference mode, which follows the published system")
    ours_repaired: Value = setting(None, doc="ours in default mode, with the published system's defects repaired")
    tolerance: float | None = setting(
        None, doc="largest difference at which numbers agree; none: they have to be equal", ge=0
    )
    status: Literal["reproduced", "repaired", "differs", "open"] = setting(
        doc="reproduced: reference mode agrees; repaired: a defect, mended here, that reference mode shows where it "
        "has a number; "
        "differs: does not agree; open: not measured yet"
    )
    note: str = setting("", doc="what has to be known to read the values")
    command: str = setting("", doc="what measures ours")


class ResultSettings(Settings):
    """A learned policy of the run that the report's first page shows."""

    scenario: str = setting(doc="where it is tested", pattern=NAME)
    policies: Names = setting(doc="learned policies, the first that the scale runs is shown", min_length=1)


class HeadlineSettings(Settings):
    """What the report's first page says of a study: results of the run, chosen before it, and published values beside
    them.
    """

    results: tuple[ResultSettings, ...] = setting(doc="a row each", min_length=1)
    published: Names = setting((), doc="ids of claims of this ledger; none where nothing was published")
    note: str = setting("", doc="how the published values and those of the run differ in what they measure")


class ClaimsSettings(Settings):
    """The ledger of one study."""

    name: str = setting(doc="the study; equal to the file's name", pattern=NAME)
    headline: HeadlineSettings | None = setting(
        None, doc="what the report's first page shows; none: a policy of the run alone"
    )
    claims: tuple[ClaimSettings, ...] = setting((), doc="its claims in the order of printing")


def agree(published: Value, ours: Value, tolerance: float | None) -> bool:
    """Tell whether two known values agree: numbers within the tolerance (and the rounding of floats), texts exactly."""
    if published is None or ours is None:
        return False
    if isinstance(published, str) or isinstance(ours, str):
        return published == ours
    return abs(published - ours) <= (tolerance or 0.0) + 1e-12 * abs(published)


def read_claims(folder: Path | str, study: str | None = None) -> dict[str, ClaimsSettings]:
    """Return study -> ledger of a configuration folder, all or one. Raises UserErrors, every mistake at once."""
    names = option_names(Path(folder) / "claims")
    if study is not None and study not in names:
        raise UserError(
            f"there is no ledger of a study '{study}'",
            where=f"{Path(folder) / 'claims'}",
            remedy=did_you_mean(study, names),
        )
    ledgers: dict[str, ClaimsSettings] = {}
    errors: list[UserError] = []
    for name in names if study is None else [study]:
        try:
            ledgers[name] = read_ledger(Path(folder).resolve() / "claims" / f"{name}.yaml", name)
        except UserError as error:
            errors += error.errors
    if errors:
        raise UserErrors(errors)
    return ledgers


def read_ledger(file: Path, name: str) -> ClaimsSettings:
    """Return the ledger that a file holds for the study of a name. Raises UserErrors."""
    composed = Composed(read_yaml(file), ((file, ()),))
    ledger = validate(ClaimsSettings, composed.values, composed.locate)
    if errors := list(_contradictions(ledger, name, composed)):
        raise UserErrors(errors)
    return ledger


def _contradictions(ledger: ClaimsSettings, name: str, composed: Composed) -> Iterator[UserError]:
    """Yield what types cannot see: a wrong name, an id twice, a status that the values do not bear out."""
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
    for position, known in enumerate(ledger.headline.published if ledger.headline else ()):
        if known not in ids:
            where = composed.locate(("headline", "published", position))
            yield UserError(f"there is no claim '{known}'", where=where, remedy=did_you_mean(known, ids))
    for position, claim in enumerate(ledger.claims):
        where = composed.locate(("claims", position, "status"))
        if claim.status == "reproduced" and not agree(claim.published, claim.ours_reference, claim.tolerance):
            values = f"published {claim.published}, ours_reference {claim.ours_reference}, tolerance {claim.tolerance}"
            yield UserError(
                f"the claim '{claim.id}' is not reproduced: {values}",
                where=where,
                expected="values that agree, or status differs",
            )
        numbers = isinstance(claim.published, float) and isinstance(claim.ours_reference, float)
        agrees = agree(claim.published, claim.ours_reference, claim.tolerance)
        if claim.status == "repaired" and claim.ours_repaired is None:
            yield UserError(
                f"the claim '{claim.id}' is repaired and has no value", where=where, expected="ours_repaired"
            )
        if claim.status == "repaired" and numbers and not agrees:
            values = f"published {claim.published}, ours_reference {claim.ours_reference}, tolerance {claim.tolerance}"
            yield UserError(
                f"reference mode does not show the defect of '{claim.id}': {values}",
                where=where,
                expected="status differs",
            )
        if claim.status == "differs" and agrees:
            yield UserError(
                f"the claim '{claim.id}' differs, and its values agree",
                where=where,
                expected="status reproduced or repaired",
            )
        if claim.status == "open" and (claim.ours_reference, claim.ours_repaired) != (None, None):
            yield UserError(f"the claim '{claim.id}' is open and has a value", where=where, expected="another status")


def rows(ledgers: dict[str, ClaimsSettings]) -> Iterator[dict[str, Value]]:
    """Yield each claim as a flat row with its study in front."""
    for name, ledger in ledgers.items():
        for claim in ledger.claims:
            yield {"study": name, **claim.model_dump(mode="json")}
