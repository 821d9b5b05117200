"""Tests of plans fit fewer resamples than the command does, as each takes two fits."""

from __future__ import annotations

import pytest

from schedlab.studies.cloud.model import plan


@pytest.fixture(autouse=True, scope="session")
def few_resamples() -> None:
    """Fit 20 resamples by default."""
    for function in (plan.forecast, plan.forecast_offers):
        function.__defaults__ = (0, 20)
