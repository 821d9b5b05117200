"""Programs that compute our values of published claims, docs/generate/<study>_claims.py, held against the ledgers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from schedlab.evaluation.claims import Claim, read_claims

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.append(str(REPOSITORY / "docs/generate"))


def program(study: str) -> ModuleType:
    """The program of a study."""
    return importlib.import_module(f"{study}_claims")


def ledger(study: str) -> dict[str, Claim]:
    """The claims of a study by their ids."""
    return {claim.id: claim for claim in read_claims(REPOSITORY / "conf", study)[study].claims}


def hold(claims: Mapping[str, Claim], found: Mapping[str, Mapping[str, Any]], rel: float = 1e-6) -> None:
    """Assert that the ledger has the values that a program computed now."""
    assert found
    for name, ours in found.items():
        for form, value in ours.items():
            claimed = getattr(claims[name], form)
            equal = claimed == value if isinstance(value, str) else claimed == pytest.approx(value, rel=rel, abs=1e-9)
            assert equal, (name, form, claimed, value)
