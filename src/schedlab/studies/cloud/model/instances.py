"""Instance types that can be rented: a catalogue as CSV, in our form or SkyPilot's, and the offers in it, on demand and
spot.

SkyPilot's columns: README of github.com/skypilot-org/skypilot-catalog. See docs/reference/cloud_model.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import model_validator

from schedlab.config.errors import UserError, UserErrors, did_you_mean, nearest, shortened
from schedlab.config.schema import Settings, setting, validate
from schedlab.studies.cloud.model.allocation import Allocation, whole
from schedlab.studies.cloud.model.interruptions import hazard_of
from schedlab.studies.cloud.model.logs import read_table, require_columns, require_numbers

COLUMNS = ("type", "gpus", "gpu_kind", "cores", "memory_gb", "price", "spot_price", "interruption_rate")
OPTIONAL = ("speed", "region")
NUMBERS = ("gpus", "cores", "memory_gb", "price", "spot_price", "interruption_rate", "speed")
SKYPILOT = {
    "InstanceType": "type",
    "AcceleratorCount": "gpus",
    "AcceleratorName": "gpu_kind",
    "vCPUs": "cores",
    "MemoryGiB": "memory_gb",
    "Price": "price",
    "SpotPrice": "spot_price",
    "Region": "region",
}
UNNAMED = ""  # the GPU kind of logs that name none


class InstanceType(Settings):
    """A type of instance, and its prices."""

    type: str = setting(doc="name", min_length=1)
    gpus: int = setting(doc="number of GPUs", unit="GPUs", ge=0, le=4096)
    gpu_kind: str = setting("", doc="kind of its GPUs")
    cores: float = setting(doc="CPU cores", unit="cores", gt=0, le=65536)
    memory_gb: float = setting(doc="memory", unit="GB", gt=0, le=1e6)
    price: float = setting(doc="price on demand", unit="$/h", ge=0, le=1e6)
    spot_price: float | None = setting(None, doc="price as a spot instance; null: not offered", unit="$/h", ge=0)
    interruption_rate: float | None = setting(
        None, doc="probability that the spot instance is interrupted within an hour; null: unknown", ge=0, le=1
    )
    speed: float | None = setting(
        None, doc="speed of the GPU kind, relative to the other kinds of the catalogue; null: unknown", gt=0, le=1e6
    )

    @model_validator(mode="after")
    def _sensible(self) -> InstanceType:
        if self.gpus and not self.gpu_kind:
            raise ValueError("the GPU kind of an instance with GPUs")
        if self.spot_price is not None and self.spot_price > self.price:
            raise ValueError(f"a spot price that is not above the price; {self.spot_price:g} is above {self.price:g}")
        return self


@dataclass(frozen=True)
class Offer:
    """An instance type on demand or as a spot instance.

    price   $/h
    hazard  interruptions per second of running; 0 on demand
    """

    type: InstanceType
    spot: bool
    price: float
    hazard: float

    @property
    def allocation(self) -> Allocation:
        """Its GPUs, cores (a part of one counts as one) and GB."""
        return Allocation(self.type.gpus, math.ceil(self.type.cores), whole(self.type.memory_gb))

    @property
    def name(self) -> str:
        """The name of the type, with `(spot)` for a spot instance."""
        return f"{self.type.type} (spot)" if self.spot else self.type.type


def read_instances(path: Path, region: str | None = None) -> tuple[InstanceType, ...]:
    """Return the instance types of a catalogue in one region, in the order of the file.

    If zones of a region have different prices (SkyPilot's files), the lowest price and the lowest spot price count.
    Rows of SkyPilot's files without a type, cores, memory or price, or with a fraction of a GPU, are left out, and so
    are its spot prices above the price on demand, which nobody would pay.
    Raises UserErrors for a missing column, invalid values, a type that occurs twice (in our form), and a region that
    is not given or does not occur.
    """
    table = read_table(path)
    foreign = "InstanceType" in table.columns
    require_columns(table, SKYPILOT if foreign else COLUMNS, path)
    table = table.rename(columns=SKYPILOT) if foreign else table
    for name in OPTIONAL:
        near = "" if foreign or name in table.columns else nearest(name, set(map(str, table.columns)) - {*COLUMNS})
        if near:
            raise UserError(f"the column '{near}' is unknown", where=str(path), remedy=f"did you mean '{name}'?")
    numbers = [name for name in NUMBERS if name in table.columns]
    table = require_numbers(table, numbers, path, optional=True)
    rows = [
        (number, {name: row[name] for name in (*COLUMNS, *OPTIONAL) if name in row and row[name] == row[name]})
        for number, row in enumerate(table.to_dict("records"), start=2)  # as an editor counts: the header is row 1
    ]
    rows = _of_region(rows, region, path)
    if foreign:
        needed = {"type", "cores", "memory_gb", "price"}
        rows = [(number, row) for number, row in rows if needed <= set(row) and row.get("gpus", 0) % 1 == 0]
        for _, row in rows:
            if row.get("spot_price", 0) > row["price"]:
                del row["spot_price"]
    found: dict[str, InstanceType] = {}
    wrong: list[UserError] = []
    for number, row in rows:
        try:
            each = _instance(row, path, number)
        except UserError as error:
            wrong += error.errors
            continue
        if each.type in found and not foreign:
            what = f"the type {each.type} stands there twice"
            wrong.append(UserError(what, where=f"{path}: row {number}", expected="one row for each type"))
        found[each.type] = _cheaper(found[each.type], each) if each.type in found else each
    if wrong:
        raise UserErrors(wrong[:10])
    if not found:
        what = "has no instance type" + (f" in the region {region}" if region else "")
        raise UserError(what, where=str(path), expected="rows with a price")
    return tuple(found.values())


def _of_region(rows: list[tuple[int, dict[str, Any]]], region: str | None, path: Path) -> list[Any]:
    """Return the rows of a region. Raises UserError if the file has several and none is given, or not the given one."""
    regions = sorted({str(row["region"]) for _, row in rows if "region" in row})
    if region is None and len(regions) > 1:
        what, remedy = f"has {len(regions)} regions", f"give --region, or `instances.region`: {shortened(regions)}"
        raise UserError(what, where=str(path), expected="the name of one", remedy=remedy)
    if region is not None and region not in regions:
        remedy = did_you_mean(region, regions) if regions else "leave the region out: the file has no column 'region'"
        raise UserError(f"has no row of the region '{region}'", where=str(path), remedy=remedy)
    return [(number, row) for number, row in rows if region is None or str(row.get("region")) == region]


def _instance(row: Mapping[str, Any], path: Path, number: int) -> InstanceType:
    """Return a row as an instance type. Raises UserErrors that name the row and the column."""
    values = {name: value for name, value in row.items() if name != "region"}
    values |= {name: str(values[name]) for name in ("type", "gpu_kind") if name in values}
    if (gpus := values.get("gpus", 0)) % 1 == 0:
        values |= {"gpus": int(gpus)} if gpus else {"gpus": 0, "gpu_kind": ""}
    return validate(
        InstanceType, values, lambda keys: f"{path}: row {number}" + (f", column {keys[0]}" if keys else "")
    )


def _cheaper(one: InstanceType, other: InstanceType) -> InstanceType:
    """Return a type with the lowest prices of two zones."""
    spot = [price for price in (one.spot_price, other.spot_price) if price is not None]
    prices = {"price": min(one.price, other.price), "spot_price": min(spot, default=None)}
    return one.model_copy(update=prices)


def offers_of(types: Iterable[InstanceType], rate: float | None = None) -> tuple[list[Offer], list[str]]:
    """Return the offers of instance types, and the names of the types whose spot instances are left out, because their
    interruption rate is unknown. rate: that of types that state none.
    """
    found, unknown = [], []
    for each in types:
        found.append(Offer(each, False, each.price, 0.0))
        known = rate if each.interruption_rate is None else each.interruption_rate
        if each.spot_price is None:
            continue
        if known is None:
            unknown.append(each.type)
        else:
            found.append(Offer(each, True, each.spot_price, hazard_of(known)))
    return found, unknown


def kind_speeds(
    types: Iterable[InstanceType], named: Iterable[str], kind: str | None, where: str
) -> dict[str, tuple[str, float]]:
    """Return, for each GPU kind of the catalogue whose speed is known, a kind of the logs and the speed relative to it.

    named  kinds of the logs; none if they do not name them, and then their kind is UNNAMED
    kind   the kind of logs that name none; None: the only kind of the catalogue
    A kind that no log names has the speed of the catalogue. Raises UserError if the kind of the logs is unknown.
    """
    with_gpus = [each for each in types if each.gpus]
    kinds = sorted({each.gpu_kind for each in with_gpus})
    own = {_same(name): name for name in named}
    if not own:
        if kind is None and len(kinds) > 1:
            what = f"the kind of the logs' GPUs is unknown, and the catalogue has several: {shortened(kinds)}"
            raise UserError(what, where=where, expected="this kind", remedy="or give the logs a column gpu_kind")
        own = {_same(kind or (kinds[0] if kinds else UNNAMED)): UNNAMED}
    listed = {_same(each.gpu_kind): each.speed for each in with_gpus if each.speed is not None}
    base = next((name for name in own if name in listed), None)
    found = {}
    for name in kinds:
        if _same(name) in own:
            found[name] = (own[_same(name)], 1.0)
        elif base is not None and _same(name) in listed:
            found[name] = (own[base], listed[_same(name)] / listed[base])
    return found


def _same(kind: str) -> str:
    """Return a kind in the form in which kinds are compared."""
    return kind.strip().casefold()
