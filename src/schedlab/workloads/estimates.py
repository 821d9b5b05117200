"""Models of the run times that users request, for traces that have no requested times."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import field_validator

from schedlab.config.schema import Settings, setting

MINUTE, HOUR = 60.0, 3600.0
POPULAR = (
    60.0,
    300.0,
    600.0,
    900.0,
    1200.0,
    1800.0,
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 36, 48)),
)


class EstimateSettings(Settings):
    """Requested times that are never shorter than the run time.

    Source of the menu: most users ask for one of a few round values (Tsafrir, Etsion, Feitelson, "Modeling user runtime
    estimates", JSSPP 2005).
    """

    model: Literal["perfect", "factor", "menu", "none"] = setting(
        "perfect",
        doc="requested time: `perfect`: the run time; `factor`: run time times U(1, factor); `menu`: "
        "the same, rounded up to a value of `menu`; or none",
    )
    factor: float = setting(5.0, doc="largest factor (factor, menu)", ge=1, le=1000)
    round_to: float = setting(
        MINUTE, doc="requests are rounded up to a multiple of this (factor); 0: no rounding", unit="s", ge=0
    )
    menu: tuple[float, ...] = setting(
        POPULAR, doc="requested values in increasing order, continued by whole hours (menu)", unit="s", min_length=1
    )

    @field_validator("menu")
    @classmethod
    def _rising(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if value[0] <= 0 or any(later <= earlier for earlier, later in pairwise(value)):
            raise ValueError("rising values above 0")
        return value


def estimates(run: np.ndarray, settings: EstimateSettings, rng: np.random.Generator) -> np.ndarray:
    """Return requested times (n,) in s for run times (n,) in s; each is at least the run time and at least 1 s."""
    run = np.maximum(np.asarray(run, dtype=float), 1.0)
    if settings.model in ("perfect", "none"):
        return run
    wanted = run * rng.uniform(1.0, settings.factor, len(run))
    if settings.model == "factor":
        return (
            np.maximum(wanted, run)
            if not settings.round_to
            else np.ceil(wanted / settings.round_to) * settings.round_to
        )
    menu = np.array(settings.menu)
    places = np.searchsorted(menu, wanted)
    return np.where(places < len(menu), menu[np.minimum(places, len(menu) - 1)], np.ceil(wanted / HOUR) * HOUR)
