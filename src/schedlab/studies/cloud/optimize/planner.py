"""Planning of a training on a real machine: the choice of the allocation to keep until its end, within the user's
limits.

After each interval, the rest is planned again from all measurements until then (model-predictive control).
Probabilities are those of `schedlab cloud plan`; times are those of the live model, which agrees with the baseline. See
docs/guide/cloud_live.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.baseline import Pace, pace
from schedlab.studies.cloud.live.env import CloudLiveEnv
from schedlab.studies.cloud.live.learn import EpisodeStep
from schedlab.studies.cloud.live.model import JobFacts, anchored, job_facts, performance
from schedlab.studies.cloud.live.run import LiveRun
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig, action_of
from schedlab.studies.cloud.model.fit_cores import CoreFit, fit_table
from schedlab.studies.cloud.model.logs import check_rows
from schedlab.studies.cloud.model.plan import HOUR, Forecast, allocation, forecast, job_of
from schedlab.studies.cloud.optimize.plan import Plan, plan
from schedlab.studies.cloud.optimize.settings import LimitSettings

if TYPE_CHECKING:
    import pandas as pd

# Share of the remaining objective: a predicted gain below this, or below the model's error, changes nothing.
LEAST_GAIN = 0.02


@dataclass(frozen=True)
class Aim:
    """The aim of planning: the weights of time, cost and waste, the time (s) and cost ($) that divide those of the
    training, the limits, and the required probability of keeping the limits on time and cost.
    """

    weights: Mapping[str, float]
    time_ref: float
    cost_ref: float
    limits: LimitSettings
    probability: float


@dataclass(frozen=True)
class Measurements:
    """Measurements of a job so far: the rows of all runs in one log, and the seconds of their starts.

    where  file of the log, for errors; per_gpu, gpus_per_node: as for the fit
    """

    table: pd.DataFrame
    overheads: Sequence[float]
    where: Path
    per_gpu: bool
    gpus_per_node: int

    def and_run(self, run: LiveRun) -> Measurements:
        """Return the measurements with another run; its first epoch counts as warm-up, as that of a probe does."""
        import pandas as pd

        table = run.table.assign(epoch=range(1, len(run.table) + 1), sample=int(self.table["sample"].max()) + 1)
        together = pd.concat([self.table, table], ignore_index=True)
        return replace(self, table=together, overheads=[*self.overheads, run.overhead])

    def fitted(self) -> CoreFit:
        """Return the model fitted to all measurements."""
        return fit_table(self.table, self.where, self.gpus_per_node)

    def facts(self, fit: CoreFit) -> JobFacts:
        """Return the facts of the job, by a fitted model."""
        return job_facts(self.table, self.overheads, self.per_gpu, fit)


def live_forecast(
    measured: Measurements, fit: CoreFit, job: JobFacts, resource: ResourceConfig, epochs: int, seed: int
) -> Forecast:
    """Return the forecast of a training on each allocation with enough memory, including its first start; the spread is
    that of `model.plan` for the same log.
    """
    log = check_rows(measured.table, measured.where)
    found = forecast(job_of(log, str(measured.where), measured.gpus_per_node, epochs), resource, seed)
    gpus, cores = found.allocations[:, 0], found.allocations[:, 1]
    memory = np.full(len(gpus), min(max(math.ceil(job.memory_needed), resource.memory_min), resource.memory_max))
    found = replace(
        found,
        job=replace(found.job, samples=float(job.samples)),
        allocations=np.column_stack([gpus, cores, memory]),
        price=resource.hourly_price(gpus, cores, memory),
    )
    return _forecast_again(found, fit, job, epochs, job.overhead, np.full(len(gpus), job.overhead))


def _forecast_again(
    found: Forecast, fit: CoreFit, facts: JobFacts, epochs: int, start: float, starts: np.ndarray
) -> Forecast:
    """Return a forecast with other times, by the live model; the relative spread is kept.

    start   s of a start, as the forecast's job states it
    starts  s of starts on each allocation, (n,)
    """
    gpus, cores, memory = found.allocations.T
    does = performance(fit, facts, gpus, cores, memory, found.job.gpus_per_node)
    time = starts + epochs * facts.samples / does.throughput
    return replace(
        found,
        job=replace(found.job, epochs=epochs, start=start),
        time=time,
        cost=time * found.price / HOUR,
        throughput=does.throughput,
        gpu_util=does.gpu_util,
        cpu_util=does.cpu_util,
        times=found.times / found.time * time,
    )


def objectives(found: Forecast, aim: Aim, whole: int) -> np.ndarray:
    """Return the objective of each allocation of a forecast, (n,). whole: epochs of the whole training."""
    busy = np.where(found.allocations[:, 0] > 0, (found.gpu_util + found.cpu_util) / 2.0, found.cpu_util)
    of = {
        "time": found.time / aim.time_ref,
        "cost": found.cost / aim.cost_ref,
        "resource": (1.0 - busy) * found.job.epochs / whole,
    }
    return np.sum([weight * of[name] for name, weight in aim.weights.items()], axis=0)


def begin(found: Forecast, aim: Aim) -> tuple[Allocation, Plan]:
    """Return the first allocation of a training: that with the lowest objective among those that meet the limits with
    the required probability, else among those that most probably meet them. Raises UserError if none can meet them.
    """
    planned = plan(found, aim.limits, aim.probability)
    if not planned.likely.max() > 0:
        remedy = "loosen a limit, or give the job another machine"
        raise UserError(str(planned.reason), where="limits", remedy=remedy)
    allowed = planned.likely >= min(aim.probability, float(planned.likely.max()))
    value = np.where(allowed, objectives(found, aim, found.job.epochs), np.inf)
    return allocation(found, int(value.argmin())), planned


def onward(found: Forecast, aim: Aim, held: Allocation, whole: int, error: float) -> Allocation:
    """Return the allocation for the rest of a training. It is another one if the predicted gain, less the restart,
    exceeds the model's error (fraction), or if the present one does not keep the limits; if none keeps them, nothing
    changes.
    """
    planned, value = plan(found, aim.limits, aim.probability), objectives(found, aim, whole)
    here, allowed = number_of(found, held), planned.likely >= aim.probability
    if not allowed.any():
        return held
    best = int(np.where(allowed, value, np.inf).argmin())
    pays = value[here] - value[best] > max(LEAST_GAIN, error) * value[here]
    return allocation(found, best) if pays or not allowed[here] else held


def number_of(found: Forecast, held: Allocation) -> int:
    """Return the position in a forecast of an allocation's GPUs and cores; the memory is the same for all."""
    return int(np.abs(found.allocations[:, :2] - held[:2]).sum(axis=1).argmin())


def rest(
    first: Forecast, fit: CoreFit, job: JobFacts, held: Allocation, epochs: int, spent: tuple[float, float], aim: Aim
) -> tuple[Forecast, Aim]:
    """Return the forecast of the remaining epochs, in which every allocation except the present one includes a restart,
    and the aim with the remaining limits.

    first  forecast at the start of the training, whose spread is kept
    spent  s and $ spent so far
    """
    elsewhere = np.arange(len(first.time)) != number_of(first, held)
    left = _forecast_again(first, fit, job, epochs, 0.0, np.where(elsewhere, job.overhead, 0.0))
    limits = {
        name: max(0.0, most - used)
        for name, used in zip(("time_max", "cost_max"), spent, strict=True)
        if (most := getattr(aim.limits, name)) is not None
    }
    return left, replace(aim, limits=aim.limits.model_copy(update=limits))


def steer(
    env: CloudLiveEnv,
    first: Forecast,
    aim: Aim,
    measured: Measurements,
    seed: int,
    note: Callable[[Mapping[str, Any]], None],
) -> tuple[list[EpisodeStep], list[CoreFit]]:
    """Run a training by the plan, from env.job.start on; return its steps, and the model after each of them.

    note: function that is called with the `info` of each step
    """
    env.reset(seed=seed)
    taken, refits = list[EpisodeStep](), list[CoreFit]()
    target, over = env.allocation, False
    while not over:
        before = env.allocation
        _, reward, done, cut, info = env.train_on(target)
        note(info)
        gpus, cores, memory = (int(np.sign(new - old)) for new, old in zip(target, before, strict=True))
        seen = info["record"], info["objectives"], math.nan, env.vector.copy(), "plan"
        taken.append(EpisodeStep(action_of((gpus, cores, memory)), reward, *seen))
        over = done or cut
        if info["run"].how == "done":
            measured = measured.and_run(info["run"])
            refits.append(measured.fitted())
        if not over and refits:
            fit, left = refits[-1], env.job.epochs - env.epoch
            facts = measured.facts(fit)
            if info["run"].how == "done":  # the pace of this interval holds on the present allocation
                pace_here = Pace(facts.overhead, pace([info["run"]]).epoch)
                facts = anchored(facts, fit, env.allocation, pace_here, measured.gpus_per_node)
            found, aim_left = rest(first, fit, facts, env.allocation, left, (env.time, env.cost), aim)
            target = onward(found, aim_left, env.allocation, env.job.epochs, fit.median_error)
    return taken, refits
