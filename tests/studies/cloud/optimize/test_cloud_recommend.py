"""Recommendations of `schedlab cloud optimize` where the model knows more than the published rule."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.lattice import lattice
from schedlab.studies.cloud.optimize import recommend

LIMITS = ResourceConfig(gpu_count_max=0, gpu_count_min=0, cpu_count_max=8, memory_max=16)
HELD = Allocation(0, 8, 16)


@pytest.mark.parametrize(("needed", "memory"), [(12, 16), (4, 8)])
def test_no_allocation_is_recommended_that_cannot_hold_the_job(monkeypatch, needed, memory):
    """A step towards less cost has half the cores and 8 GB; the published rule asks for no memory."""
    grid = lattice(HELD, LIMITS)
    time = np.where(grid.allocations[:, 2] >= needed, 100.0, np.inf)
    cost = time * [LIMITS.hourly_price(*each) for each in grid.allocations.tolist()] / 3600
    monkeypatch.setattr(recommend, "constant_totals", lambda replay: (time, cost))
    base = {
        **HELD._asdict(),
        "batch_size": 64,
        "time": 100.0,
        "cost": cost[grid.number(HELD)],
        "throughput": 2000.0,
        "source": "measured",
    }
    found = SimpleNamespace(
        live=[SimpleNamespace(record={**HELD._asdict(), "throughput": 2000.0})],
        job=SimpleNamespace(resource=LIMITS, sla=SimpleNamespace(throughput_min=1)),
        baseline=base,
        cut_off=False,
        replay=SimpleNamespace(lattice=grid, performance=SimpleNamespace(throughput=np.full(len(grid), 2000.0))),
    )
    cheapest = next(each for each in recommend.recommendations(found, base) if each["priority"] == "cost")
    assert cheapest["memory_gb"] == memory
