"""The published experiment: its four distributions of beta and its setting.

Source: specification of the ramp study, section 15 (PAC-ML, arXiv 2301.13799).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedlab.config.schema import merged, validate
from schedlab.studies.ramp.legacy import REFERENCE
from schedlab.studies.ramp.scenario import RampScenario

SHIPPED = "resources/graphs/a100"
# What the setting needs on the shipped graphs: traced ones have short ops, and no block takes the 10, 12 or 14 shards
# that they would get.
ON_SHIPPED = {"management": {"illegal_degrees": "round_down"}}


def _skewed(skewness: float, *extremes: float) -> dict[str, Any]:
    return {
        "kind": "skew_normal",
        "skewness": skewness,
        "low": 0.1,
        "high": 1.0,
        "decimals": 2,
        "extremes": list(extremes),
    }


# The published sample is not known but by its mean and deviation; these extremes give both
# (test_ramp_distributions.py).
BETAS: dict[str, dict[str, Any]] = {
    "A": {"kind": "uniform", "low": 0.1, "high": 1.0, "decimals": 2},
    "B": _skewed(5.0, -0.6813, 4.4868),
    "C": _skewed(0.0, -4.2409, 4.8493),
    "D": _skewed(-5.0, -4.9345, 0.7801),
}


def published_scenario(beta: str, compat: bool, **changes: Mapping[str, Any]) -> RampScenario:
    """Return the setting of the published experiment: 32 servers, five graphs, an arrival every 1000 s for 1e6 s.

    compat: with the published defects; changes: values of its sections that differ. Raises UserError.
    """
    values = {
        "name": f"published-{beta.lower()}",
        "seed": 0,
        "graphs": {"name": "pipedream", "source": "files", "path": "graphs"},
        "jobs": {"beta": BETAS[beta]},
        "legacy": REFERENCE if compat else {},
    }
    return validate(RampScenario, merged(values, changes))
