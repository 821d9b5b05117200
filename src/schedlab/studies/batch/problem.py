"""One scenario with its workload: windows of jobs, which are simulated under a policy and scored."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from schedlab.config.contract import Outcome, Policy, RuleMaker, Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, validate
from schedlab.config.seeds import generator
from schedlab.studies.batch.backfilling import BACKFILLING_POLICIES, OwnBackfilling
from schedlab.studies.batch.constraints.dependencies import require_dependencies
from schedlab.studies.batch.constraints.limits import require_limits, require_numbers
from schedlab.studies.batch.env.env import BatchEnv
from schedlab.studies.batch.env.layouts import Layout, Scales, layout_of
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import (
    Jobs,
    Prefill,
    Schedule,
    jobs_of,
    machine_of,
    prefill,
    recorded_ends,
    require_runnable,
    window,
)
from schedlab.studies.batch.metrics import METRICS, job_table, measures
from schedlab.studies.batch.rules import ORACLES, PREDICTED, RULES, SlurmSettings
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.fair_share import SlurmPriority
from schedlab.studies.batch.simulator.history import history_priority
from schedlab.studies.batch.simulator.predictions import Past
from schedlab.studies.batch.simulator.rollouts import untrained_base
from schedlab.studies.batch.simulator.run_time_regression import LogRegression, regression_of
from schedlab.studies.batch.simulator.simulate import KnowsJobs, Priorities, simulate
from schedlab.studies.batch.simulator.stepper import Drawn, Stepper, Task
from schedlab.studies.batch.windows import first_job, part_of, require_test_windows, week_units, weight_of, window_units
from schedlab.workloads.trace import Trace

log = logging.getLogger("schedlab.batch")


@dataclass(frozen=True)
class RulePolicy:
    """A rule by name, a linear priority or rollouts. Whole windows are simulated at once, without calls of
    `act`.

    true_times: it reads the true run times wherever requests are read, by backfilling too: an oracle
    own: the backfilling that replaces the scenario's, of a policy that has its own
    """

    rule: Priorities
    true_times: bool = False
    own: OwnBackfilling | None = None

    def reset(self, unit: Unit) -> None:
        """Nothing to do: nothing is stored from one window to the next."""


@runtime_checkable
class WindowPolicy(Protocol):
    """A policy that runs an opened window itself, with the decisions that the environment of its settings offers."""

    environment: EnvironmentSettings

    def reset(self, unit: Unit) -> None:
        """Begin a window."""

    def schedule_window(self, stepper: Stepper) -> Schedule:
        """Return the schedule of the jobs of the window."""


AnyPolicy = Policy | RulePolicy | WindowPolicy


def rule_maker(policy: RulePolicy) -> RuleMaker:
    """Return the maker of a rule that has no parameters."""

    def make(params: Mapping[str, Any], problem: Any, seed: int) -> Any:
        del problem, seed
        validate(NoSettings, params)
        return policy

    return make


def predicted_maker(name: str) -> RuleMaker:
    """Return the maker of a policy in which a base priority of the rollouts decides alone, with a prior from the
    training part.
    """

    def make(params: Mapping[str, Any], problem: Any, seed: int) -> Any:
        del seed
        validate(NoSettings, params)
        return RulePolicy(untrained_base(name, problem.jobs.take(slice(*problem.part("train")))))

    return make


def slurm_maker(params: Mapping[str, Any], problem: Any, seed: int) -> Any:
    """Return Slurm's multifactor priority (SlurmSettings)."""
    del problem, seed
    return RulePolicy(SlurmPriority(validate(SlurmSettings, params)))


def _row(action: Any, rows: int) -> int:
    """Return an action as the number of a row. Raises UserError for what is none."""
    try:
        row = operator.index(action)
    except TypeError:
        row = -1
    if isinstance(action, bool | np.bool_) or not 0 <= row < rows:
        what = f"act returned {action!r} ({type(action).__name__})"
        raise UserError(what, expected=f"the number of a row, 0 to {rows - 1}")
    return row


RULE_MAKERS = {name: rule_maker(RulePolicy(name)) for name in (*RULES, "planner")} | {
    f"{name}_predicted": predicted_maker(name) for name in PREDICTED
}
RULE_MAKERS |= {f"{name}_true_times": rule_maker(RulePolicy(name, true_times=True)) for name in ORACLES}
RULE_MAKERS |= {name: rule_maker(RulePolicy(own.rule, own=own)) for name, own in BACKFILLING_POLICIES.items()}
RULE_MAKERS["slurm"] = slurm_maker
RULE_MAKERS["lxf_predicted"] = rule_maker(RulePolicy(history_priority(log_slowdown=1.0)))


class BatchProblem:
    """Implements the contract's Problem. Units are windows of the workload.

    maxima  what the published layouts divide by: largest values of the trace as read; None: of the jobs
    """

    def __init__(self, scenario: BatchScenario, trace: Trace, maxima: Mapping[str, float] | None = None) -> None:
        self.scenario, self.machine = scenario, machine_of(trace)
        self.jobs = jobs_of(
            trace, self.machine, dependencies=scenario.dependencies, queue_priority=scenario.queue_priority
        )
        require_numbers(scenario.queue_priority, self.jobs, "queue", "queue_priority")
        if scenario.dependencies:
            require_dependencies(self.jobs, self.machine.source)
        if scenario.limits.some:
            require_limits(scenario.limits, self.jobs, self.machine)
            self.machine = replace(self.machine, limits=scenario.limits)
        self.past = Past(self.jobs, recorded_ends(trace))
        require_test_windows(len(self.jobs), scenario.windows, scenario.name)
        if scenario.backfill != "none" and (missing := int((self.jobs.requested <= 0).sum())):
            log.warning("WARNING: %d of %d jobs request no time, by which backfilling goes", missing, len(self.jobs))
        self._maxima = maxima
        self._whole: tuple[AnyPolicy, list[Schedule]] | None = None

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the windows of a part, or its weeks where the whole trace is one run."""
        if self.scenario.windows.continuous:
            return week_units(self.jobs.submit, self.scenario.windows, split, self.scenario.seed)
        return window_units(len(self.jobs), self.scenario.windows, split, self.scenario.seed)

    def env(self, unit: Unit, seed: int) -> BatchEnv:
        """Return the environment of one window, in the scenario's settings."""
        start = first_job(unit)
        return BatchEnv(self.task(range(start, start + 1), window_seed=unit.seed), seed)

    def part(self, split: Split) -> tuple[int, int]:
        """Return (first job, end) of a part of the workload."""
        return part_of(len(self.jobs), self.scenario.windows, split)

    @property
    def layout(self) -> Layout:
        """The layout of the observations in the scenario's settings."""
        return layout_of(self.scenario.environment, self.machine)

    def task(
        self,
        starts: Sequence[int] | None = None,
        settings: EnvironmentSettings | None = None,
        window_seed: int | None = None,
        longest: int | None = None,
    ) -> Task:
        """Return the task from which environments and learners draw windows.

        starts    first jobs of windows; None: wherever a window lies within the training part
        settings  what is seen and rewarded; None: as the scenario says
        longest   most jobs of a window, drawn evenly from the scenario's number up; None: always that
        """
        scenario, settings = self.scenario, settings or self.scenario.environment
        lengths, (first, end) = (scenario.windows.length, longest or scenario.windows.length), self.part("train")
        if starts is None:
            starts = range(first, end - lengths[1] + 1)
        where = (self.jobs, self.machine, starts, lengths, scenario.backfill, scenario.kill, scenario.warm_start)
        return Task(
            *where,
            scales=self._scales(settings),
            settings=settings,
            seed=window_seed,
            backfill_order=scenario.backfill_order,
        )

    def rollout(self, policy: AnyPolicy, unit: Unit) -> Outcome:
        """Run a window under a policy, a rule at once or others job by job. Measures without a denominator are left
        out.

        A policy sees what its attribute `environment` (EnvironmentSettings) or else the scenario says. Raises UserError
        where it chooses a row without a job.
        """
        if self.scenario.windows.continuous:
            return self._week(policy, unit)
        schedule = self.run(policy, unit)
        table = job_table(schedule)
        found = {**measures(schedule, self.machine), "log_bsld": float(np.log(table["bsld"]).mean())}
        scores = {metric.name: found[metric.name] for metric in METRICS if found[metric.name] is not None}
        return Outcome(scores, weight_of(unit, self.scenario.windows), {"jobs": table})

    def whole_runs(self, policy: AnyPolicy) -> list[Schedule]:
        """Return the schedules of the whole trace, one for each jitter of the scenario, jobs in their order in the
        trace. Those of the last policy are kept, because each of its weeks asks for them.

        Raises UserError for a policy that decides job by job.
        """
        if not isinstance(policy, RulePolicy):
            what = "a policy that decides job by job cannot be scored on the whole trace in one run"
            raise UserError(what, where="windows.continuous", expected="a rule, a search or an order from history")
        if self._whole is None or self._whole[0] is not policy:
            runs = [self._whole_run(policy, number) for number in range(self.scenario.windows.jitters)]
            self._whole = policy, runs
        return self._whole[1]

    def _whole_run(self, policy: RulePolicy, number: int) -> Schedule:
        require_runnable(self.jobs, self.machine)
        windows, later = self.scenario.windows, np.zeros(len(self.jobs))
        if windows.jitter:
            later = generator(self.scenario.seed, "batch", "jitter", number).uniform(0.0, windows.jitter, len(later))
        moved = replace(self.jobs, submit=self.jobs.submit + later)
        order = np.argsort(moved.submit, kind="stable")
        past = Past(moved.take(order), np.full(len(order), np.nan))
        schedule = self._simulated(policy, past, 0, past.jobs, None)
        back = np.argsort(order)
        return Schedule(schedule.jobs.take(back), schedule.start[back])

    def _week(self, policy: AnyPolicy, unit: Unit) -> Outcome:
        """Score the jobs of a week: means over the runs; utilisation has no meaning for some of the jobs of a run."""
        jobs, found = int(weight_of(unit, self.scenario.windows)), []
        place = slice(first_job(unit), first_job(unit) + jobs)
        parts = [Schedule(run.jobs.take(place), run.start[place]) for run in self.whole_runs(policy)]
        tables = [job_table(part) for part in parts]
        for part, table in zip(parts, tables, strict=True):
            found.append({**measures(part, self.machine), "log_bsld": float(np.log(table["bsld"]).mean())})
        names = [metric.name for metric in METRICS if not metric.name.startswith("util")]
        scores = {name: float(np.mean([one[name] for one in found])) for name in names}
        return Outcome(scores, float(jobs), {"jobs": tables[0]})

    def run(self, policy: AnyPolicy, unit: Unit) -> Schedule:
        """Return the schedule of a window under a policy, as in `rollout`."""
        policy.reset(unit)
        if self.scenario.windows.continuous:
            raise UserError("the whole trace is one run", where=f"unit {unit.id}", expected="windows.continuous: false")
        if isinstance(policy, RulePolicy):
            return self.schedule(policy.rule, first_job(unit), unit.seed, true_times=policy.true_times, own=policy.own)
        if isinstance(policy, WindowPolicy):
            return policy.schedule_window(self._opened(policy.environment, unit))
        return self._stepped_schedule(policy, unit)

    def schedule(
        self,
        rule: Priorities,
        start: int,
        seed: int,
        *,
        true_times: bool = False,
        own: OwnBackfilling | None = None,
    ) -> Schedule:
        """Return the schedule of the window from job `start` on; the seed draws the running jobs of a warm
        start.

        true_times: requests are the true run times (of jobs that are killed: until then)
        own: the backfilling in place of the scenario's
        """
        chosen = window(self.jobs, self.machine, start, self.scenario.windows.length)
        before = None
        if self.scenario.warm_start:
            before = prefill(self.jobs, self.machine, start, len(chosen), np.random.default_rng(seed))
        return self._simulated(RulePolicy(rule, true_times, own), self.past, start, chosen, before)

    def _simulated(self, policy: RulePolicy, past: Past, start: int, chosen: Jobs, before: Prefill | None) -> Schedule:
        """The schedule of the `chosen` jobs of `past`, those from `start` on."""
        scenario, rule = self.scenario, policy.rule
        if policy.true_times:
            ended = chosen.killed_at_request() if scenario.kill else chosen
            chosen = replace(ended, requested=ended.run)
        own = policy.own
        backfill, order = (own.backfill, own.order) if own else (scenario.backfill, scenario.backfill_order)
        if isinstance(rule, KnowsJobs):
            rule = rule.at(past, start, len(chosen))
        before = before or Prefill(chosen.take(slice(0, 0)), np.empty(0))
        if backfill == "easy_predicted":
            before = replace(before, known=past.last_runs(start, len(chosen)))
        elif backfill == "easy_learned":
            model = self._regression.before(start, len(chosen)) if start else regression_of(chosen)
            before = replace(before, model=model)
        most_wait = np.inf if scenario.most_wait is None else 3600.0 * scenario.most_wait
        return simulate(
            chosen,
            self.machine,
            rule,
            backfill,
            backfill_order=order,
            kill=scenario.kill,
            prefill=before,
            most_wait=most_wait,
        )

    @cached_property
    def _regression(self) -> LogRegression:
        return LogRegression(self.past, self.part("train")[1])

    def _stepped_schedule(self, policy: Policy, unit: Unit) -> Schedule:
        stepper = self._opened(getattr(policy, "environment", self.scenario.environment), unit)
        while not stepper.ended[0]:
            action = policy.act(stepper.observations[0].copy(), stepper.masks[0].copy())
            stepper.step(np.array([_row(action, stepper.layout.rows)]))
        schedule = stepper.schedule(0)
        if np.isnan(schedule.start).any():
            waiting = int(np.isnan(schedule.start).sum())
            what, remedy = f"{waiting} jobs never started", "leave environment.noop_ends off"
            raise UserError(what, where=f"window {unit.id}", remedy=remedy)
        return schedule

    def _opened(self, settings: EnvironmentSettings, unit: Unit) -> Stepper:
        """A stepper of these settings at the beginning of a window; jobs elsewhere need not be fit to run."""
        start, strict = first_job(unit), {"empty_row": "error"} if settings.on_empty_row == "replace" else {}
        stepper = Stepper(self.task(range(start, start + 1), settings.model_copy(update=strict)), 1)
        stepper.open(0, Drawn(start, self.scenario.windows.length, np.random.default_rng(unit.seed)))
        return stepper

    def _scales(self, settings: EnvironmentSettings) -> Scales:
        if settings.scales == "whole":
            return Scales.published(self._maxima) if self._maxima else Scales.of(self.jobs)
        return Scales.of(self.jobs.take(slice(*self.part("train"))))
