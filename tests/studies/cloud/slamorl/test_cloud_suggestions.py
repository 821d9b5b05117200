"""Limits, suggestions of the published rules of thumb, and values that are no numbers."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.cloud.live.machine import MachineLimits, MachineResources
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.model.analyser import OfflineDataAnalyzer
from schedlab.studies.cloud.replay.sla import SLAConfig, is_given
from schedlab.studies.cloud.rules.suggestions import Option, batch_size, estimate, estimates, options_without_records

LIMITS = ResourceConfig(gpu_count_max=8, cpu_count_max=64, memory_max=128)


def test_limits_of_none_are_defaults_and_a_forecast_moves_three():
    limits = validate(SLAConfig, {"time_max": None, "cost_max": 5.0})
    assert (limits.time_max, limits.cost_max) == (600.0, 5.0)
    moved = limits.updated(
        [
            {"time_so_far": 100.0, "cost_so_far": 1.0, "throughput": 50.0},
            {"time_so_far": 300.0, "cost_so_far": float("nan")},
        ]
    )
    assert (moved.time_max, moved.cost_max, moved.throughput_min) == pytest.approx((220.0, 1.1, 45.0))
    assert moved.memory_max == limits.memory_max
    with pytest.raises(UserError):
        validate(SLAConfig, {"time_mx": 1.0})


BASE = {"gpu_count": 2, "cpu_count": 8, "time": 100.0, "cost": 1.0, "throughput": 50.0}


def option(priority: str, gpus: int, cores: int = 8) -> Option:
    return Option(priority, Allocation(gpus, cores, 16), 3.6)


def test_options_are_estimated_by_their_gpus_and_without_them_by_their_cores():
    more, fewer, none = (estimate(option("time", gpus), BASE) for gpus in (4, 1, 0))
    assert more.throughput == pytest.approx(50 * 2**0.7) and more.time == pytest.approx(100 / 2**0.7)
    assert fewer.throughput == pytest.approx(50 * 0.5**0.9) and more.cost == pytest.approx(more.time / 1000)
    assert none.throughput == pytest.approx(50.0) and none.time == pytest.approx(100.0)
    found = estimates([option("cost", 1)], BASE)
    assert (found["time"].time, found["time"].cost, found["time"].throughput) == pytest.approx((60.0, 1.3, 70.0))
    assert found["cost"].time == pytest.approx(fewer.time) and found["balanced"].time == 100.0


@pytest.mark.parametrize(
    ("use", "gpus", "expected"),
    [
        (10.0, 8, {"time": (4, 36), "cost": (2, 16), "resource": (7, 42), "balanced": (6, 36)}),
        (45.0, 8, {"time": (8, 36), "cost": (4, 32), "resource": (8, 48), "balanced": (7, 42)}),
        (95.0, 2, {"time": (3, 36), "cost": (1, 8), "resource": (3, 18), "balanced": (3, 18)}),
    ],
)
def test_options_without_records_follow_the_use_alone(use, gpus, expected):
    found = options_without_records(use, Allocation(gpus, 32, 64), LIMITS)
    assert {each.priority: tuple(each.allocation[:2]) for each in found} == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("time", 4, 64, 1), 512),
        (("cost", 4, 128, 2), 256),
        (("cost", 1, 32, 4), 32),
        (("cost", 1, 400, 4, 10.0), 300),
        (("cost", 0, 64, 0), 64),
    ],
)
def test_the_batch_goes_with_the_gpus(arguments, expected):
    assert batch_size(*arguments) == expected


@pytest.mark.parametrize("kind", [float, np.float16, np.float32, np.float64])
def test_a_nan_of_any_width_is_no_value(kind):
    assert not is_given(kind("nan")) and is_given(kind(0.0)) and is_given(kind("inf"))
    assert SLAConfig().updated([{"time_so_far": kind("nan")}, {"time_so_far": 100.0}]).time_max == pytest.approx(110.0)


ANALYSER = OfflineDataAnalyzer()
MISTAKES = {
    "parameters in words": (lambda: ANALYSER.predict({"model_params": "11M"}), "'model_params' is '11M'"),
    "fewer than none": (lambda: ANALYSER.predict({"model_layers": -1}), "'model_layers' is -1"),
    "more than can be": (lambda: ANALYSER.predict({"data_size_mb": float("inf")}), "'data_size_mb' is inf"),
    "a history of text": (lambda: SLAConfig().updated([{"time_so_far": "600 s"}]), "'time_so_far' is '600 s'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_values_that_are_no_numbers_are_told(name):
    call, told = MISTAKES[name]
    with pytest.raises(UserError) as caught:
        call()
    assert told in str(caught.value)


def test_what_is_not_known_of_a_job_counts_as_lacking():
    assert ANALYSER.predict({"model_params": None, "data_size_mb": float("nan")}) == ANALYSER.predict({})
    assert ANALYSER.predict({"model_params": np.float64(60e6)})["gpu_count"] == 4


@pytest.mark.parametrize(("kind", "name"), [(MachineLimits, "SLAConfig"), (MachineResources, "ResourceConfig")])
def test_mistakes_in_a_constructor_are_told_under_the_published_name(kind, name):
    with pytest.raises(ValidationError, match=f"for {name}\n"):
        kind(memory_mx=3)
    with pytest.raises(UserError, match="did you mean 'memory_max'"):
        validate(kind, {"memory_mx": 3})
