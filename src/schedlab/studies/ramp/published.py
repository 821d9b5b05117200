"""The published experiment: its four distributions of beta and its setting.

Source: specification of the ramp study, section 15 (PAC-ML, arXiv 2301.13799).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedlab.config.schema import merged, validate
from schedlab.studies.ramp.legacy import REFERENCE
from schedlab.studies.ramp.settings import RampScenario


def _skewed(skewness: float) -> dict[str, Any]:
    return {"kind": "skew_normal", "skewness": skewness, "low": 0.1, "high": 1.0, "decimals": 2, "shape": "drawn"}


BETAS: dict[str, dict[str, Any]] = {
    "A": {"kind": "uniform", "low": 0.1, "high": 1.0, "decimals": 2},
    "B": _skewed(5.0),
    "C": _skewed(0.0),
    "D": _skewed(-5.0),
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
