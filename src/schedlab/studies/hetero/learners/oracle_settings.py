"""Typed settings of the oracles, in a module without heavy imports, so that checking a configuration is fast."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import Settings, setting
from schedlab.studies.hetero.scenario import CHOICES_OF_CORES, DRAWN_NOWHERE


class ClairvoyantSettings(Settings):
    """The rule `clairvoyant`, an oracle: look-ahead that knows all run times and arrivals."""

    longest: tuple[float, ...] = setting(
        (30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0),
        doc="true run times up to which a job may use all free cores under the rule with a reserve; the best is taken",
        unit="s",
        min_length=1,
    )
    free: tuple[float, ...] = setting(
        (0.1, 0.25, 0.33, 0.42, 0.5, 0.58, 0.67, 0.83),
        doc="shares of the cores that this rule keeps free; the best is taken",
        min_length=1,
    )
    window: int = setting(10, doc="how many waiting jobs may be started: those with the smallest area", ge=1, le=1000)
    cores: tuple[Literal[DRAWN_NOWHERE], ...] = setting(  # type: ignore[valid-type]
        CHOICES_OF_CORES, doc="core policies that may place a job", min_length=1
    )
