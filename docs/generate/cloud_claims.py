"""Our values of the claims of the cloud study on the published program: python docs/generate/cloud_claims.py
[program] [cases]

What was learned is read from the record of the study's run: docs/results/cloud/.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from claim_tables import Values, both, joined, write_claims

from schedlab.config.data_paths import CHECKOUT
from schedlab.studies.cloud.legacy import LegacySettings
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig, moved
from schedlab.studies.cloud.replay.reward import Transition, reference_reward
from schedlab.studies.cloud.replay.sla import SLAConfig
from schedlab.studies.cloud.replay.state import CloudEnvironmentState
from schedlab.studies.cloud.slamorl.case_files import replay
from schedlab.studies.cloud.slamorl.published import PRICES

LIMITS = ResourceConfig(**PRICES), SLAConfig()
BAD = {
    "epoch": 1,
    "time_so_far": 1800.0,
    "cost_so_far": 0.9,
    "throughput": 100.0,
    "memory_used_gb": 100.0,
    "cpu_percent": 0.0,
}
GOOD = {
    "epoch": 2,
    "time_so_far": 100.0,
    "cost_so_far": 0.1,
    "throughput": 2000.0,
    "memory_used_gb": 10.0,
    "cpu_percent": 75.0,
}
CASES = CHECKOUT / "tests/data/cloud"  # recorded answers of the published program
ANSWERS = {
    "actions": {"changes", "description", "from_mid", "from_min", "from_max"},
    "change": {"significant"},
    "cost": {"result", "hourly_baseline"},
    "similarity": {"prediction", "error"},
    "sla": {"sla_status", "overall_compliance", "state_vector", "forecast"},
}


def program() -> Values:
    """The published reward and state, with their defects and without."""
    severities = (state(BAD, GOOD, keep_severities=kept).status["time"].severity for kept in (True, False))
    record = GOOD | {"memory_gb": 40.0}
    memory = (state(record, memory_used_only=only).memory_util for only in (True, False))
    return joined(
        [
            both("price-term", largest_price_term()),
            both("severity-after-recovery", *severities),
            both("memory-utilisation", *memory),
        ]
    )


def state(*records: dict[str, float], **switches: bool) -> CloudEnvironmentState:
    """Return the state after records."""
    found = CloudEnvironmentState(*LIMITS, LegacySettings(**switches))
    for record in records:
        found.update(record)
    return found


def largest_price_term() -> float:
    """Return the part of the published reward that one step of all three resources makes, before weighting."""
    prices, before = LIMITS[0], Allocation(4, 16, 32)
    after = moved(before, 26, prices)
    found = Transition(prices.hourly_price(*before), prices.hourly_price(*after), (), 5, 0.8, 0.8, 1.0, True)
    return -reference_reward("balanced", found).cost


def cases() -> Values:
    """How many kinds of recorded cases are answered as the published program did, from their inputs alone."""
    return both("recorded-cases", sum(not list(case_differences(kind)) for kind in ANSWERS))


def case_differences(kind: str) -> Iterator[str]:
    """Yield the places where our answers to the recorded cases of a kind are not the recorded ones."""
    recorded = json.loads((CASES / f"{kind}.json").read_text())
    asked = {key: _asked(value, kind) for key, value in recorded.items()}
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary, f"{kind}.json").write_text(json.dumps(asked))
        Path(temporary, "similarity_logs.csv").write_text((CASES / "similarity_logs.csv").read_text())
        answers = replay(Path(temporary, f"{kind}.json"), compat=True)
    yield from differences(answers, recorded)


def _asked(value: Any, kind: str) -> Any:
    """A value of a document, of cases without their answers."""
    if not isinstance(value, list):
        return value
    return [{name: entry for name, entry in case.items() if name not in ANSWERS[kind]} for case in value]


def differences(ours: Any, recorded: Any, place: str = "") -> Iterator[str]:
    """Yield the places where two documents differ: numbers by more than 1e-9, all else at all, in structure too."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (ours, recorded)]
    if all(numbers):
        if not math.isclose(ours, recorded, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{place}: {ours} instead of {recorded}"
    elif type(ours) is not type(recorded):
        yield f"{place}: {ours!r} instead of {recorded!r}"
    elif isinstance(recorded, dict) and set(ours) == set(recorded):
        for key in recorded:
            yield from differences(ours[key], recorded[key], f"{place}.{key}")
    elif isinstance(recorded, list) and len(ours) == len(recorded):
        for number, (one, other) in enumerate(zip(ours, recorded, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif ours != recorded:
        yield f"{place}: {ours!r} instead of {recorded!r}"


PARTS = {"program": program, "cases": cases}


if __name__ == "__main__":
    sys.exit(write_claims("cloud", PARTS))
