"""The example scenario, a small image network, of the documentation and of environments made without a scenario."""

from __future__ import annotations

from typing import Any

from schedlab.config.schema import merged, validate
from schedlab.studies.cloud.model.allocation import PRICES
from schedlab.studies.cloud.replay.replay import Replay, make_replay
from schedlab.studies.cloud.scenario import CloudScenario

STEP = {"a_c": 0.02, "b_c": 7e-4, "a_n": 0.12, "b_n": 2.6e-3, "a_r": 0.03, "b_r": 9e-4, "y": 2.0}
EXAMPLE: dict[str, Any] = {
    "name": "example",
    "seed": 0,
    "job": {"name": "example", "step": STEP, "gradient_noise": [1.0, 20.0, 100.0]},
    "resource": {"cpu_count_min": 4, "cpu_count_max": 32, "memory_min": 8, "memory_max": 64, **PRICES},
}


def example_scenario(**changed: Any) -> CloudScenario:
    """Return the example as a scenario. changed: sections that replace or extend those of the example."""
    return validate(CloudScenario, merged(EXAMPLE, changed))


def example_replay(**changed: Any) -> Replay:
    """Return the replay of the example; `changed` as in `example_scenario`."""
    scenario = example_scenario(**changed)
    assert scenario.job.step is not None, "a fitted job has no example"
    return make_replay(scenario, scenario.job.step.parameters())
