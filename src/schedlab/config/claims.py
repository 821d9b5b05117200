"""The ledger of published claims (conf/claims/<study>.yaml): what a paper says, what comes out here, and whether the two agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import yaml
from pydantic import field_validator, model_validator

from schedlab.config.compose import Composed, check_yaml, option_names
from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.settings import NAME

Value = float | str | None
STATUSES = ("reproduced", "repaired", "differs", "open")


class ClaimSettings(Settings):
    """One published number or statement beside ours. A value is a number, a short text such as `011`, or null: not (yet) known."""

    id: str = setting(doc="short name, one of its kind in the ledger of the study", pattern=NAME)
    paper: str = setting(doc="where it was published", min_length=1)
    table: str = setting("", doc="table, figure or section of the paper")
    quantity: str = setting(doc="what is claimed, with its unit where it has one", min_length=1)
    published: Value = setting(None, doc="the published value")
    ours_reference: Value = setting(None, doc="ours in reference mode, which follows the published system")
    ours_repaired: Value = setting(None, doc="ours in default mode, with the published system's defects repaired")
    tolerance: float | None = setting(None, doc="largest difference at which numbers agree; none: they have to be equal", ge=0)
    status: Literal["reproduced", "repaired", "differs", "open"] = setting(
        doc="reproduced: reference mode agrees; repaired: a defect, mended here; differs: does not agree; open: not measured yet"
    )
    note: str = setting("", doc="what has to be known to read the values")
    command: str = setting("", doc="what measures ours")

    @model_validator(mode="after")
    def _check(self) -> ClaimSettings:
        if self.status == "reproduced" and not agree(self.published, self.ours_reference, self.tolerance):
            values = f"ours_reference ({self.ours_reference}) to agree with published ({self.published})"
            raise ValueError(f"status reproduced needs {values} within the tolerance")
        if self.status == "repaired" and self.ours_repaired is None:
            raise ValueError("status repaired needs ours_repaired")
        return self


class ClaimsSettings(Settings):
    """The ledger of one study."""

    name: str = setting(doc="the study; equal to the file's name", pattern=NAME)
    claims: tuple[ClaimSettings, ...] = setting((), doc="its claims in the order of printing")

    @field_validator("claims")
    @classmethod
    def _distinct(cls, value: tuple[ClaimSettings, ...]) -> tuple[ClaimSettings, ...]:
        ids = [claim.id for claim in value]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"each id once, not '{twice[0]}' twice")
        return value


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
        raise UserError(f"there is no ledger of a study '{study}'", where=f"{Path(folder) / 'claims'}", remedy=did_you_mean(study, names))
    ledgers: dict[str, ClaimsSettings] = {}
    errors: list[UserError] = []
    for name in names if study is None else [study]:
        try:
            ledgers[name] = _read(Path(folder).resolve() / "claims" / f"{name}.yaml", name)
        except UserErrors as several:
            errors += several.errors
        except UserError as error:
            errors.append(error)
    if errors:
        raise UserErrors(errors)
    return ledgers


def _read(file: Path, name: str) -> ClaimsSettings:
    check_yaml(file)
    composed = Composed(yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or {}, ((file, ()),))
    ledger = validate(ClaimsSettings, composed.values, composed.locate)
    if ledger.name != name:
        raise UserError(f"the name is '{ledger.name}'", where=composed.locate(("name",)), expected=f"'{name}'", remedy="rename either")
    return ledger


def rows(ledgers: dict[str, ClaimsSettings]) -> Iterator[dict[str, Value]]:
    """Yield each claim as a flat row with its study in front."""
    for name, ledger in ledgers.items():
        for claim in ledger.claims:
            yield {"study": name, **claim.model_dump(mode="json")}
