"""The slices of a scenario that the prepare rules and the problem read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedlab.config.schema import validate
from schedlab.studies.adaptation.scenario import AdaptationScenario, RewardSettings

JOB = ("model", "data", "timing", "budget")
COURSE = ("adapt_at", "changes", "decisions", "decision_every", "actions")


def trunk_values(scenario: AdaptationScenario) -> dict[str, Any]:
    """What a trunk depends on."""
    return _chosen(scenario, ("seed", *JOB, "jobs", "training"))


def simulation_values(scenario: AdaptationScenario) -> dict[str, Any]:
    """What the simulated replicates depend on; of the reward only how many epochs it looks at."""
    chosen = _chosen(scenario, ("name", "seed", *JOB, *COURSE, "training", "growth", "keep", "curves"))
    return {**chosen, "reward": _chosen(scenario.reward, ("window",))}


def table_values(scenario: AdaptationScenario, actions: int) -> dict[str, Any]:
    """What the table depends on beside its runs; actions: growth actions and doing nothing."""
    if scenario.table.source == "published":
        recorded = {"file": scenario.table.file, "experiment": scenario.table.experiment}
        return {"source": "published", "scenario": scenario.name, **recorded}
    chosen = _chosen(scenario, ("jobs", "replicates", "decisions", "decision_every"))
    names = {"model": scenario.model.name, "data": scenario.data.name, "timing": scenario.timing.name}
    return {"source": "simulate", **names, **chosen, "actions": actions, "window": scenario.reward.window}


def spans(scenario: AdaptationScenario) -> list[list[int]]:
    """First and last replicate of each simulation job; each replicate has its own file, so a new cut reruns none."""
    size = scenario.replicates_per_job
    return [[first, min(first + size, scenario.replicates) - 1] for first in range(0, scenario.replicates, size)]


def problem_values(scenario: AdaptationScenario) -> dict[str, Any]:
    """What decides how policies are scored and learned, given the table."""
    return _chosen(scenario, (*JOB, *COURSE, "growth", "reward", "test_replicates"))


def scenario_of(problem: Mapping[str, Any]) -> AdaptationScenario:
    """Return the typed scenario of a frozen problem part."""
    return validate(AdaptationScenario, {key: value for key, value in problem.items() if key != "upstream"})


def _chosen(settings: AdaptationScenario | RewardSettings, keys: Sequence[str]) -> dict[str, Any]:
    values = settings.model_dump(mode="json")
    return {key: values[key] for key in keys}
