"""Rules: schedulers that speak Batsim's protocol. Ours, those of PyBatsim's package, and a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schedlab.batsim.scheduler_loading import OURS
from schedlab.config.contract import Problem, RuleMaker, Unit
from schedlab.config.schema import Settings, validate
from schedlab.studies.hetero.settings import EasySettings, PyBatsimSettings

NEED_WALLTIMES = ("easy", "conservative")


@dataclass(frozen=True)
class SchedulerRule:
    """A scheduler by name (or FILE.py:CLASS) with its options; it decides in conversation with the simulator, so nothing asks it to act."""

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def reset(self, unit: Unit) -> None:
        """Keep nothing from one workload to the next: each simulation makes the scheduler anew."""


def scheduler_rule(scheduler: str) -> RuleMaker:
    """Return the maker of the rule that runs a scheduler of ours or of the user's; `params` are the scheduler's options."""

    def make(params: Mapping[str, Any], problem: Problem, seed: int) -> SchedulerRule:
        del problem, seed
        return SchedulerRule(scheduler, dict(params))

    return make


def pybatsim(params: Mapping[str, Any], problem: Problem, seed: int) -> SchedulerRule:
    """Return the rule that runs a scheduler of PyBatsim's own package."""
    del problem, seed
    settings = validate(PyBatsimSettings, params)
    return SchedulerRule(settings.scheduler, settings.options)


RULES: dict[str, RuleMaker] = {**{name: scheduler_rule(name) for name in OURS}, "pybatsim": pybatsim}
RULE_SETTINGS: dict[str, type[Settings]] = {"easy": EasySettings, "pybatsim": PyBatsimSettings}
