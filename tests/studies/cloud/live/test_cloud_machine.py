"""What is not given of limits and prices: those of this machine live, pinned ones in what the pipeline computes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.cloud.live.machine import MachineLimits, MachineResources, machine_limits, machine_resources
from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.model.cost import ResourceCostCalculator
from schedlab.studies.cloud.scenario import CloudScenario


def test_prices_that_are_not_given_are_the_realistic_ones():
    prices = {name: price for name, price in MachineResources().model_dump().items() if name.startswith("cost_per")}
    assert prices == {"cost_per_gpu_hour": 2.5, "cost_per_cpu_hour": 0.1, "cost_per_gb_hour": 0.02}
    assert ResourceCostCalculator().prices.model_dump().items() >= prices.items()
    assert MachineResources(gpu_count_max=8).hourly_price(8, 0, 0) == 20.0


def test_limits_that_are_not_given_are_those_of_the_machine(monkeypatch):
    """Live alone: what the pipeline computes must not rest on its host."""
    monkeypatch.setattr(
        "schedlab.studies.cloud.live.machine.psutil.virtual_memory", lambda: SimpleNamespace(total=7 << 29)
    )
    monkeypatch.setattr("schedlab.studies.cloud.live.machine.available_cpus", lambda: tuple(range(5)))
    monkeypatch.setattr("schedlab.studies.cloud.live.machine.gpu_readings", lambda: {"0": (6.0, 1.0), "1": (2.0, 1.0)})
    resource, sla = MachineResources(), MachineLimits()
    assert resource.most == Allocation(2, 5, 3) and resource.least == Allocation(1, 1, 3)
    assert (
        (sla.memory_max, sla.gpu_util_min) == (1.75, 8.0)
        and sla == machine_limits()
        and resource == machine_resources()
    )
    assert validate(MachineLimits, {"memory_max": None, "gpu_util_min": None, "cpu_util_min": None}) == sla
    given = validate(MachineLimits, {"memory_max": 7.0, "gpu_util_min": 50.0})
    assert (given.memory_max, given.gpu_util_min) == (7.0, 50.0) and given.updated([]).memory_max == 7.0
    assert MachineResources(gpu_count_max=0, memory_max=2).least == Allocation(0, 1, 2)
    with pytest.raises(UserError, match="gpu_count_max"):
        validate(MachineResources, {"gpu_count_max": "many"})
    pinned = CloudScenario.model_fields
    assert pinned["sla"].default_factory().memory_max == 64.0 and pinned[
        "resource"
    ].default_factory().most == Allocation(8, 64, 256)


@pytest.mark.parametrize(
    ("uses", "wanted"), [((), 80.0), ((9.0, 4.0), 13.0), ((9.5, 9.9), 19.4), ((10.0,), 80.0), ((float("nan"),), 80.0)]
)
def test_gpus_that_idle_are_asked_for_little(monkeypatch, uses, wanted):
    monkeypatch.setattr(
        "schedlab.studies.cloud.live.machine.gpu_readings", lambda: {str(n): (use, 1.0) for n, use in enumerate(uses)}
    )
    assert MachineLimits().gpu_util_min == pytest.approx(wanted)
