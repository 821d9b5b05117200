"""Tests of plans fit fewer resamples than the command does, as each takes two fits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from schedlab.studies.cloud.model import plan


@pytest.fixture(autouse=True, scope="module")
def few_resamples() -> Iterator[None]:
    """Fit 20 resamples by default, in the tests of this folder alone."""
    with pytest.MonkeyPatch.context() as patch:
        for function in (plan.forecast, plan.forecast_offers):
            assert function.__defaults__ == (0, plan.RESAMPLES), "the defaults of seed and resamples"
            patch.setattr(function, "__defaults__", (0, 20))
        yield
