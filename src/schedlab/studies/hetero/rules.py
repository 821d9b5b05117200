"""Rules: schedulers that use Batsim's protocol, policy pairs, and the best pair found by a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schedlab.batsim.scheduler_loading import OURS, find_scheduler
from schedlab.config.contract import Problem, RuleMaker, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, Settings, validate
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR, DecisionSettings
from schedlab.studies.hetero.scenario import (
    BestFixedPairSettings,
    EasySettings,
    PyBatsimSettings,
    SchedulerSettings,
    TriedPairsSettings,
)
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.managed_cores import OWN_CHOICE
from schedlab.studies.hetero.simulator.resources import ALL_JOB_POLICIES

NEED_WALLTIMES = ("easy", "conservative")
PAIRS = tuple(f"{job}{PAIR_SEPARATOR}{core}" for job in ALL_JOB_POLICIES for core in ALL_CORE_POLICIES)
BEST_FIXED_PAIR, TRIED_PAIRS = "best_fixed_pair", "tried_pairs"


@dataclass(frozen=True)
class SchedulerRule:
    """A scheduler by name (or FILE.py:CLASS) with its options; it talks to the simulator, so nothing asks it to act.

    cores  core policy by which its jobs get their cores on managed pstates, or OWN_CHOICE
    """

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    cores: str = OWN_CHOICE
    seed: int = 0

    def reset(self, unit: Unit) -> None:
        """Nothing to do: each simulation makes a new scheduler."""


@dataclass(frozen=True)
class PairRule:
    """Plays one policy pair at every decision (what HDeepRM calls a CLASSIC agent)."""

    pair: str
    seed: int = 0

    def reset(self, unit: Unit) -> None:
        """Nothing to do: random policies draw from a generator of each run."""

    def decisions(self, offered: DecisionSettings) -> DecisionSettings:
        """Return the settings of a run with the pair as the only action."""
        return offered.model_copy(update={"selection": (self.pair,), "void": False})


def scheduler_rule(scheduler: str) -> RuleMaker:
    """Return the maker of the rule that runs a scheduler of ours; `params` are its options and its core policy."""

    def make(params: Mapping[str, Any], problem: Problem, seed: int) -> Any:
        del problem
        options = validate(RULE_SETTINGS[scheduler], params).model_dump()
        return SchedulerRule(scheduler, options, options.pop("cores"), seed)

    return make


def pybatsim(params: Mapping[str, Any], problem: Problem, seed: int) -> Any:
    """Return the rule that runs a scheduler of PyBatsim's own package."""
    del problem
    settings = validate(PyBatsimSettings, params)
    return SchedulerRule(settings.scheduler, settings.options, settings.cores, seed)


def pair_rule(pair: str) -> RuleMaker:
    """Return the maker of the rule that plays one pair."""

    def make(params: Mapping[str, Any], problem: Problem, seed: int) -> Any:
        del problem
        validate(NoSettings, params)
        return PairRule(pair, seed)

    return make


def best_fixed_pair(params: Mapping[str, Any], problem: Any, seed: int) -> Any:
    """Return the pair of the scenario's actions with the best mean of a metric over the workloads of a split.

    With a budget of episodes all pairs run the first workload, then the second, and so on until it is spent; means are
    over the workloads that every pair ran, at least the first. Ties: the earlier action. Raises UserError.
    """
    settings = validate(BestFixedPairSettings, params)
    pairs, units = problem.scenario.decisions.selection, problem.units(settings.split)
    if not units:
        what, expected = f"no workload of the split {settings.split}", f"replicates.{settings.split}: 1 or more"
        raise UserError(what, where=f"rule {BEST_FIXED_PAIR}", expected=expected)
    budget = len(pairs) * len(units) if settings.episodes is None else settings.episodes
    tried = pairs[:budget]
    whole = max(min(budget // len(pairs), len(units)), 1)
    (better,) = (metric.better for metric in problem.metrics if metric.name == settings.metric)
    sign, scores = -1.0 if better == "higher" else 1.0, {}
    for pair in tried:
        scores[pair] = sum(problem.score(PairRule(pair, seed), unit, settings.metric) for unit in units[:whole])
    return PairRule(min(tried, key=lambda pair: sign * scores[pair]), seed)


def own_rule(target: str) -> RuleMaker:
    """Return the maker of a user's rule: a scheduler with `params` as options, or a class with `act`."""

    def make(params: Mapping[str, Any], problem: Problem, seed: int) -> Any:
        found = find_scheduler(target)
        return found(params, problem, seed) if hasattr(found, "act") else SchedulerRule(target, dict(params), seed=seed)

    return make


RULES: dict[str, RuleMaker] = {
    **{name: scheduler_rule(name) for name in OURS},
    "pybatsim": pybatsim,
    BEST_FIXED_PAIR: best_fixed_pair,
    **{pair: pair_rule(pair) for pair in PAIRS},
}
RULE_SETTINGS: dict[str, type[Settings]] = {
    **dict.fromkeys(OURS, SchedulerSettings),
    "easy": EasySettings,
    "pybatsim": PyBatsimSettings,
    BEST_FIXED_PAIR: BestFixedPairSettings,
    TRIED_PAIRS: TriedPairsSettings,
    **dict.fromkeys(PAIRS, NoSettings),
}
