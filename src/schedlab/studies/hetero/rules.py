"""Rules: schedulers that use Batsim's protocol, policy pairs, a reserve for short jobs, and searches among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from schedlab.batsim.scheduler_loading import OURS, find_scheduler
from schedlab.config.contract import Budget, Problem, RuleMaker, Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, Settings, validate
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR, DecisionSettings
from schedlab.studies.hetero.scenario import (
    BestFixedPairSettings,
    BestReserveSettings,
    EasySettings,
    LookAheadSettings,
    PyBatsimSettings,
    ReserveSettings,
    SchedulerSettings,
    TriedPairsSettings,
)
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES, CORE_POLICIES
from schedlab.studies.hetero.simulator.decisions import DecisionSystem
from schedlab.studies.hetero.simulator.managed_cores import OWN_CHOICE
from schedlab.studies.hetero.simulator.resources import ALL_JOB_POLICIES

NEED_WALLTIMES = ("easy", "conservative")
PAIRS = tuple(f"{job}{PAIR_SEPARATOR}{core}" for job in ALL_JOB_POLICIES for core in ALL_CORE_POLICIES)
EVERY_PAIR = tuple(f"{job}{PAIR_SEPARATOR}{core}" for job in ALL_JOB_POLICIES for core in CORE_POLICIES)
BEST_FIXED_PAIR, TRIED_PAIRS, RESERVE, BEST_RESERVE = "best_fixed_pair", "tried_pairs", "reserve", "best_reserve"
LOOK_AHEAD = "look_ahead"


@dataclass(frozen=True)
class SchedulerRule:
    """A scheduler, given by name or as FILE.py:CLASS, with its options. It exchanges messages with the simulator;
    no action is requested from it.

    cores  core policy that places its jobs if pstates are managed, or OWN_CHOICE
    """

    scheduler: str
    options: Mapping[str, Any] = field(default_factory=dict)
    cores: str = OWN_CHOICE
    seed: int = 0

    def reset(self, unit: Unit) -> None:
        """Nothing to do: each simulation makes a new scheduler."""


@dataclass(frozen=True)
class PairRule:
    """A rule that plays one policy pair at every decision (in HDeepRM: a CLASSIC agent)."""

    pair: str
    seed: int = 0
    budget: Budget | None = field(default=None, compare=False)

    def reset(self, unit: Unit) -> None:
        """Nothing to do: random policies draw from a generator of each run."""

    def decisions(self, offered: DecisionSettings) -> DecisionSettings:
        """Return the settings of a run with the pair as the only action."""
        return offered.model_copy(update={"selection": (self.pair,), "void": False})


@dataclass(frozen=True)
class ReserveRule:
    """Smallest area first, without blocking, with cores kept free for short jobs: a job that requests more than
    `longest` s starts only if the share `free` of all cores stays free, or if no job runs.
    """

    longest: float
    free: float
    cores: str = "high_mem_bw"
    seed: int = 0
    budget: Budget | None = field(default=None, compare=False)

    def reset(self, unit: Unit) -> None:
        """Nothing to do."""

    def reserved(self, cores: int) -> int:
        """Return how many of a platform's cores stay free."""
        return round(self.free * cores)

    def decide(self, system: DecisionSystem) -> None:
        """Start the waiting jobs that fit and that the reserve allows."""
        model, reserve = system.model, self.reserved(system.model.hierarchy.cores)
        choose = ALL_CORE_POLICIES[self.cores]
        for job in system.queue.in_order("saf", system.random):
            allowed = job.time <= self.longest or model.free_in_all - job.cores >= reserve or not model.running
            cores, lacking = model.place(job, choose, system.random) if allowed else ([], "")
            if cores and not lacking:
                system.start(job, cores)


def scheduler_rule(scheduler: str) -> RuleMaker:
    """Return the maker of the rule that runs a built-in scheduler; `params` are its options and its core policy."""

    def make(params: Mapping[str, Any], problem: Problem, seed: int) -> Any:
        del problem
        options = validate(RULE_SETTINGS[scheduler], params).model_dump()
        return SchedulerRule(scheduler, options, options.pop("cores"), seed)

    return make


def pybatsim(params: Mapping[str, Any], problem: Problem, seed: int) -> Any:
    """Return the rule that runs a scheduler of the package PyBatsim."""
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


def reserve(params: Mapping[str, Any], problem: Problem, seed: int) -> Any:
    """Return the rule that keeps cores free for short jobs."""
    del problem
    return ReserveRule(**validate(ReserveSettings, params).model_dump(), seed=seed)


def best_reserve(params: Mapping[str, Any], problem: Any, seed: int) -> Any:
    """Return the rule `reserve` with the values that are best on the workloads of a split. Ties: the earlier values.

    Raises UserError if the split has no workload.
    """
    settings = validate(BestReserveSettings, params)
    units = _units_of(problem, settings.split, BEST_RESERVE)
    values = product(settings.longest, settings.free, settings.cores)
    rules = [ReserveRule(*each, seed) for each in values]
    totals = [sum(problem.score(rule, unit, settings.metric) for unit in units) for rule in rules]
    sign = _sign(problem, settings.metric)
    best = rules[min(range(len(rules)), key=lambda number: sign * totals[number])]
    return replace(best, budget=_budget(problem, units, len(rules)))


def best_fixed_pair(params: Mapping[str, Any], problem: Any, seed: int) -> Any:
    """Return the rule of the pair with the best mean of a metric over the workloads of a split. The candidates are the
    scenario's actions, or all pairs with and without backfilling.

    With a budget of episodes, all pairs run the first workload, then the second, and so on until the budget is spent;
    means are over the workloads that every pair ran. A budget below the number of pairs tries only the first pairs, on
    the first workload. Ties: the earlier action. Raises UserError if the split has no workload.
    """
    settings = validate(BestFixedPairSettings, params)
    pairs = EVERY_PAIR if settings.among == "all" else problem.scenario.decisions.selection
    units = _units_of(problem, settings.split, BEST_FIXED_PAIR)
    budget = len(pairs) * len(units) if settings.episodes is None else settings.episodes
    tried = pairs[:budget]
    whole = max(min(budget // len(pairs), len(units)), 1)
    sign, scores = _sign(problem, settings.metric), {}
    for pair in tried:
        scores[pair] = sum(problem.score(PairRule(pair, seed), unit, settings.metric) for unit in units[:whole])
    best = min(tried, key=lambda pair: sign * scores[pair])
    return PairRule(best, seed, _budget(problem, units[:whole], len(tried)))


def _units_of(problem: Problem, split: Split, rule: str) -> Sequence[Unit]:
    units = problem.units(split)
    if not units:
        what, expected = f"no workload of the split {split}", f"replicates.{split}: 1 or more"
        raise UserError(what, where=f"rule {rule}", expected=expected)
    return units


def _budget(problem: Any, units: Sequence[Unit], candidates: int) -> Budget:
    """Return the budget of running each candidate on all units, with one decision for each job."""
    jobs = sum(len(problem.jobs(unit).workload.jobs) for unit in units)
    return Budget(decisions=candidates * jobs, episodes=candidates * len(units))


def _sign(problem: Any, metric: str) -> float:
    (better,) = (each.better for each in problem.metrics if each.name == metric)
    return -1.0 if better == "higher" else 1.0


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
    RESERVE: reserve,
    BEST_RESERVE: best_reserve,
    **{pair: pair_rule(pair) for pair in PAIRS},
}
RULE_SETTINGS: dict[str, type[Settings]] = {
    **dict.fromkeys(OURS, SchedulerSettings),
    "easy": EasySettings,
    "pybatsim": PyBatsimSettings,
    BEST_FIXED_PAIR: BestFixedPairSettings,
    TRIED_PAIRS: TriedPairsSettings,
    LOOK_AHEAD: LookAheadSettings,
    RESERVE: ReserveSettings,
    BEST_RESERVE: BestReserveSettings,
    **dict.fromkeys(PAIRS, NoSettings),
}
