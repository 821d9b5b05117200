"""The flow of `schedlab cloud optimize`: measure, fit, freeze the service levels, plan (or learn), run, report.

See docs/guide/cloud_live.md. Unlike in SLA-MORL's program, limits and actions have consequences, the plan or learned
policy is run, service levels do not change, and the run is compared with the mean baseline, extrapolated to a whole
training.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.studies.cloud.live.baseline import PROBE_EPOCHS, baseline_values, combined, measure, pace
from schedlab.studies.cloud.live.env import CloudLiveEnv, LiveJob
from schedlab.studies.cloud.live.learn import EpisodeStep, Learned, learn, stay, unit_of, walk
from schedlab.studies.cloud.live.machine import machine_limits
from schedlab.studies.cloud.live.model import JobFacts, LivePlan, anchored, constant_totals, job_facts, live_replay
from schedlab.studies.cloud.live.run import LiveRequest, LiveRun
from schedlab.studies.cloud.live.script import ScriptFacts, command_facts, script_facts
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig, held_in
from schedlab.studies.cloud.model.analyser import UNKNOWN, Key, OfflineDataAnalyzer
from schedlab.studies.cloud.model.cost import money
from schedlab.studies.cloud.model.fit_cores import CoreFit, fit_table
from schedlab.studies.cloud.model.fit_report import fit_warnings
from schedlab.studies.cloud.model.plan import Forecast
from schedlab.studies.cloud.optimize.plan import Plan, duration, plan
from schedlab.studies.cloud.optimize.planner import Aim, Measurements, begin, live_forecast, number_of, steer
from schedlab.studies.cloud.optimize.reuse import Measuring
from schedlab.studies.cloud.optimize.settings import PLAN, OptimizeSettings, length_of
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.replay import Replay
from schedlab.studies.cloud.replay.sla import SLAConfig, forecast, is_given

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
SHORT = 0.25  # share of a training above which its start affects its time more than its resources do
DECISIONS = 4  # decisions of a training, if no interval is given


@dataclass
class Optimization:
    """An optimised training: its settings, its measurements, its plan or learned policy, and its run.

    baseline         values of the whole training under the names of baseline.baseline_values
    live             steps of the run
    refits           models fitted after each interval of the run, to all measurements until then
    planned          allocations, limits and probabilities at the start of the run
    bill             expenses on measurements and on the run
    resumes          whether the script keeps checkpoints, so that allocations can change while it trains
    work             folder of runs and policy
    minutes          wall-clock time in total
    thresholds_from  source of each limit
    """

    script: Path
    settings: OptimizeSettings
    facts: ScriptFacts
    resource: ResourceConfig
    epochs: int
    interval: int
    sla: SLAConfig
    thresholds_from: dict[str, str]
    baseline: dict[str, Any]
    baseline_table: pd.DataFrame | None
    fit: CoreFit
    job: JobFacts
    replay: Replay
    start: Allocation
    prediction: dict[str, Any] | None
    learned: Learned
    live: list[EpisodeStep]
    live_tables: list[pd.DataFrame]
    refits: list[CoreFit]
    planned: Plan
    bill: dict[str, Any]
    scores: dict[str, float]
    resumes: bool
    cut_off: bool
    minutes: float
    work: Path
    warnings: list[str] = field(default_factory=list)

    @property
    def start_probability(self) -> float:
        """The probability, by the model, that a training on the start allocation meets all limits of the user."""
        return float(self.planned.likely[number_of(self.planned.forecast, self.start)])


@dataclass(frozen=True)
class _Prepared:
    """The job before learning: its measurements, its fitted model, and its frozen limits."""

    request: LiveRequest
    samples: list[LiveRun]
    probes: list[LiveRun]
    measured: Measurements
    fit: CoreFit
    job: JobFacts
    plan: LivePlan
    baseline: dict[str, Any]
    origins: dict[str, str]
    prediction: dict[str, Any] | None
    resumes: bool
    reused: list[LiveRun]

    def spent(self) -> dict[str, Any]:
        """Return the expenses on measurements of this call, and on those that were reused in place of new ones."""
        new = [run for run in (*self.samples, *self.probes) if not any(run is each for each in self.reused)]
        earlier = sorted({run.folder.parents[1].name for run in self.reused})
        return {**spending(new), "reused": {"runs": len(self.reused), "from": earlier, **spending(self.reused)}}


def optimize(
    script: Path,
    settings: OptimizeSettings,
    dataset: Path | None,
    analyser: OfflineDataAnalyzer,
    folder: Path,
    command: tuple[str, ...] = (),
) -> Optimization:
    """Optimise the training of one script. Raises ScriptFailed if the script fails, and UserError for invalid settings.

    folder   new folder for runs, tables and the policy
    command  words that run the training (run.command_words); `script` is then the file or program that names it
    """
    began = time.monotonic()
    facts = command_facts(command) if command else script_facts(script)
    ready = _prepare(script, settings, dataset, analyser, folder, command)
    preference, spent = settings.preference, ready.spent()
    first = live_forecast(ready.measured, ready.fit, ready.job, ready.plan.resource, ready.plan.epochs, settings.seed)
    aim = aim_of(settings, live_replay(ready.fit, ready.job, ready.plan, preference), spent["cost"])
    start, planned = begin(first, aim)
    plan = replace(ready.plan, start=start)
    replay = live_replay(ready.fit, ready.job, plan, preference)
    learned = _decider(replay, settings, folder)
    job = _live_job(ready.request, settings, plan, replay, ready.job)
    env = CloudLiveEnv(job, preference, settings.seed, None, folder / "runs" / "live")
    live, tables, runs, refits = _run(env, learned, ready, first, aim, settings.seed)
    outcome = Optimization(
        script=script,
        settings=settings,
        facts=facts,
        resource=plan.resource,
        epochs=plan.epochs,
        interval=plan.interval,
        sla=plan.sla,
        thresholds_from=ready.origins,
        baseline=ready.baseline,
        baseline_table=combined([run.table for run in ready.samples]) if ready.samples else None,
        fit=ready.fit,
        job=ready.job,
        replay=replay,
        start=plan.start,
        prediction=ready.prediction,
        learned=learned,
        live=live,
        live_tables=tables,
        refits=refits,
        planned=planned,
        bill=bill_of(ready.baseline, spent, spending(runs), env.restarts * ready.job.overhead),
        scores=env.scores(),
        resumes=ready.resumes,
        cut_off=env.epoch < plan.epochs,
        minutes=(time.monotonic() - began) / 60.0,
        work=folder,
    )
    return replace(outcome, warnings=_warnings(outcome))


def _decider(replay: Replay, settings: OptimizeSettings, folder: Path) -> Learned:
    """Return the plan, which stays on the replay's start allocation, or a learned policy."""
    if settings.rl.learner == PLAN:
        decider = stay(replay, settings.preference, settings.seed)
    else:
        decider = learn(replay, settings.preference, {**settings.rl.model_dump(), "seed": settings.seed}, folder)
    log.info("objective by the model %.4f; best plan of single steps %.4f", decider.objective, decider.best)
    return decider


def _warnings(outcome: Optimization) -> list[str]:
    """Return warnings about a run for readers of the report."""
    fit = fit_warnings({"median_relative_error": outcome.fit.median_error})
    found = [*short_warnings(outcome.baseline, outcome.job.overhead), *fit]
    staying = stay(outcome.replay, outcome.settings.preference, outcome.settings.seed).objective
    if outcome.learned.objective > staying:
        better = f"by the model the plan, which stays on the start, would have been better (objective {staying:.4f})"
        found.append(f"{better} than the learned policy ({outcome.learned.objective:.4f})")
    found += loss_warnings(outcome.live_tables)
    return [*found, *run_warnings(outcome.baseline, optimized_values(outcome), outcome.settings.preference)]


def loss_warnings(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Return a warning for each loss in the logs of a run that is not a number in some epoch, or that ends higher than
    it began.
    """
    import pandas as pd

    found = []
    for name in ("loss", "train_loss"):  # a validation loss may be empty in most epochs
        columns = [pd.to_numeric(table[name], errors="coerce") for table in tables if name in table.columns]
        if not columns:
            continue
        values = pd.concat(columns).to_numpy(float)
        if not np.isfinite(values).all():
            epoch = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
            found.append(f"{name} is no number in epoch {epoch}: has the training diverged?")
        elif values[-1] > values[0]:
            found.append(f"{name} grew from {values[0]:.4g} to {values[-1]:.4g}")
    return found


def plan_only(
    script: Path,
    settings: OptimizeSettings,
    dataset: Path | None,
    analyser: OfflineDataAnalyzer,
    folder: Path,
    command: tuple[str, ...] = (),
) -> Plan:
    """Return the plan of a training from short measurements, without running it; arguments and errors as of
    `optimize`.
    """
    ready = _prepare(script, settings, dataset, analyser, folder, command)
    spent = ready.spent()
    log.info("measured for %s in %s", money(spent["cost"]), duration(spent["seconds"]))
    found = live_forecast(ready.measured, ready.fit, ready.job, ready.plan.resource, ready.plan.epochs, settings.seed)
    aim = aim_of(settings, live_replay(ready.fit, ready.job, ready.plan, settings.preference), spent["cost"])
    return plan(found, aim.limits, aim.probability)


def command_of(words: Sequence[str]) -> tuple[tuple[str, ...], Path]:
    """Return the words of a command, with files by their full paths, and the file or program that names it: its first
    file, else its program.
    """
    files = [Path(word) for word in words[1:] if Path(word).is_file()]
    found = [words[0], *(str(Path(word).resolve()) if Path(word).is_file() else word for word in words[1:])]
    if os.sep in words[0]:
        found[0] = str(Path(words[0]).resolve())
    return tuple(found), files[0] if files else Path(words[0])


def _prepare(
    script: Path,
    settings: OptimizeSettings,
    dataset: Path | None,
    analyser: OfflineDataAnalyzer,
    folder: Path,
    command: tuple[str, ...],
) -> _Prepared:
    """Measure a script in short runs, fit the model, and fix the limits."""
    resource = settings.resource.limits()
    epochs = length_of(settings)
    request = LiveRequest(
        script=script,
        allocation=resource.most,
        epochs=epochs,
        batch=settings.batch,
        seed=settings.seed,
        prices=resource,
        dataset_path=dataset,
        seconds=settings.time_limit,
        disk_gb=settings.disk_limit,
        command=command,
    )
    per_gpu = settings.batching == "per_gpu" and resource.gpu_count_max > 0
    length, count = (
        max(1, int(settings.baseline_ratio * epochs)),
        0 if settings.skip_baseline else settings.baseline_samples,
    )
    measuring = Measuring(folder.parent, settings.measure_again)
    samples, probes = measure(request, count, length, per_gpu, folder / "runs", measuring)
    if measuring.reused:
        what = "reused %d of %d measurements of the same script, data and machine; --measure_again repeats them"
        log.info(what, len(measuring.reused), len(samples) + len(probes))
    runs = [*(run for run in samples if len(run.table) >= PROBE_EPOCHS), *probes] or samples
    tables = [run.table for run in runs]
    table, measured = combined(tables), folder / "measured.csv"
    with atomic_path(measured) as temporary:
        table.to_csv(temporary, index=False)
    fit = fit_table(table, measured, settings.gpus_per_node)
    job = job_facts(table, [run.overhead for run in runs], per_gpu, fit)
    there = [run for run in (*samples, *probes) if run.request.allocation == resource.most]
    if there:
        job = anchored(job, fit, resource.most, pace(there), settings.gpus_per_node)
    model, data = (table[name].iloc[0] for name in ("model_name", "dataset"))
    key = str(model), str(data) if is_given(data) else UNKNOWN, "gpu" if resource.gpu_count_max else "cpu"
    prediction = _prediction(table, analyser, key)
    interval = min(epochs, settings.interval or -(-epochs // DECISIONS))
    plan = LivePlan(epochs, interval, resource.most, resource, machine_limits(), settings.gpus_per_node, settings.seed)
    baseline = (
        baseline_values(samples, epochs, there[len(samples) :]) if samples else _modelled(fit, job, plan, settings)
    )
    sla, origins = frozen_limits(settings, analyser.history(*key), baseline if samples else None)
    resumes = all(run.checkpoint is not None for run in (*samples, *probes))
    known = Measurements(table, [run.overhead for run in runs], measured, per_gpu, settings.gpus_per_node)
    plan = replace(plan, sla=sla)
    return _Prepared(
        request, samples, probes, known, fit, job, plan, baseline, origins, prediction, resumes, measuring.reused
    )


def _prediction(table: pd.DataFrame, analyser: OfflineDataAnalyzer, key: Key) -> dict[str, Any] | None:
    """Return the prediction from earlier logs of a similar job; None if no log is similar."""
    first = table.iloc[0]
    facts = {
        key: float(first[key]) for key in ("model_params", "model_layers", "data_size_mb") if is_given(first.get(key))
    }
    found = (
        analyser.predict(facts, *key[1:])
        if analyser.tables and {"model_params", "model_layers"} <= set(facts)
        else None
    )
    return found if found and found["similarity_score"] > 0 else None


def aim_of(settings: OptimizeSettings, replay: Replay, spent: float) -> Aim:
    """Return the aim of planning. spent: $ spent on measurements, which count against `max_spend`."""
    limits, most = settings.sla, settings.max_spend
    if most is not None:
        left = most - spent
        if left <= 0:
            what = f"measuring has cost {money(spent)}"
            raise UserError(what, where="--max_spend", expected=f"more than that; it is {money(most)}")
        limits = limits.model_copy(
            update={"cost_max": min(left, math.inf if limits.cost_max is None else limits.cost_max)}
        )
    weights = weights_of(settings.preference)
    return Aim(weights, replay.time_ref, replay.cost_ref, limits, settings.probability)


def spending(runs: Sequence[LiveRun]) -> dict[str, float]:
    """Return the seconds and the cost ($) of runs, at the prices of their allocations."""
    cost = sum(run.seconds * run.request.prices.hourly_price(*run.request.allocation) / 3600.0 for run in runs)
    return {"seconds": float(sum(run.seconds for run in runs)), "cost": float(cost)}


def bill_of(
    baseline: Mapping[str, Any], measuring: Mapping[str, Any], run: Mapping[str, float], restarts: float
) -> dict[str, Any]:
    """Return the expenses, and the number of trainings after which the savings exceed those on measuring, in this call
    and in earlier ones whose runs were reused. restarts: restart time in the run, s.
    """
    saved, measured = baseline["cost"] - run["cost"], measuring["cost"] + measuring["reused"]["cost"]
    return {
        "baseline": {"seconds": baseline["time"], "cost": baseline["cost"]},
        "measuring": dict(measuring),
        "run": {**run, "restart_seconds": restarts},
        "saved_by_run": saved,
        "saved_after_measuring": saved - measured,
        "break_even_runs": math.ceil(measured / saved) if saved > 0 else None,
    }


def _modelled(fit: CoreFit, job: JobFacts, plan: LivePlan, settings: OptimizeSettings) -> dict[str, Any]:
    """Return the baseline by the model: the whole training on the whole machine."""
    replay = live_replay(fit, job, plan, settings.preference)
    most = plan.resource.most
    grid, found = replay.lattice, replay.performance
    number = grid.nearest(most)
    time = float(constant_totals(replay)[0][number])
    return {
        **most._asdict(),
        "batch_size": job.batch,
        "time": time,
        "cost": time * float(replay.price[number]) / 3600.0,
        "start_up_seconds": job.overhead,
        "throughput": float(found.throughput[number]),
        "cpu_percent": 100.0 * float(found.cpu_util[number]),
        "memory_used_gb": job.memory_used,
        "gpu_utilization": 100.0 * float(found.gpu_util[number]) if most.gpu_count else None,
        "samples": 0,
        "sample_epochs": 0,
        "source": "model",
    }


def frozen_limits(
    settings: OptimizeSettings, history: list[dict[str, Any]], baseline: dict[str, Any] | None
) -> tuple[SLAConfig, dict[str, str]]:
    """Return the service levels, which do not change after this, and the source of each.

    A limit is, in this order: the user's; a forecast from `history`, complete earlier runs of the same model, data and
    kind of device, else from the measured baseline (10 % beyond); the default.
    """
    usual = machine_limits()
    values, origins = usual.model_dump(), dict.fromkeys(SLAConfig.model_fields, "default")
    origin = "earlier logs"
    if not history and baseline is not None:
        history = [
            {"time_so_far": baseline["time"], "cost_so_far": baseline["cost"], "throughput": baseline["throughput"]}
        ]
        origin = "baseline"
    if history:
        expected = forecast(history)
        values |= expected
        origins |= dict.fromkeys(expected, origin)
    given = {key: value for key, value in settings.sla.model_dump().items() if value is not None}
    return SLAConfig(**{**values, **given}), {**origins, **dict.fromkeys(given, "user")}


def _live_job(
    request: LiveRequest, settings: OptimizeSettings, plan: LivePlan, replay: Replay, job: JobFacts
) -> LiveJob:
    return LiveJob(
        script=request.script,
        command=request.command,
        epochs=plan.epochs,
        interval=plan.interval,
        batch=job.batch if job.per_gpu else settings.batch,
        per_gpu=job.per_gpu,
        dataset_path=request.dataset_path,
        resource=plan.resource,
        sla=plan.sla,
        start=plan.start,
        seconds=settings.time_limit,
        disk_gb=settings.disk_limit,
        time_ref=replay.time_ref,
        cost_ref=replay.cost_ref,
        memory_needed=job.memory_needed,
    )


def _run(
    env: CloudLiveEnv, learned: Learned, ready: _Prepared, first: Forecast, aim: Aim, seed: int
) -> tuple[list[EpisodeStep], list[pd.DataFrame], list[LiveRun], list[CoreFit]]:
    """Run the plan or the learned policy. A script without checkpoints runs once, on the allocation that the policy
    reaches in the end.
    """
    tables, runs = list[Any](), list[LiveRun]()

    def note(info: Mapping[str, Any]) -> None:
        runs.append(info["run"])
        if info["run"].how == "done":
            tables.append(_of_training(info["run"].table, env))
        log.info("%s", env.render())

    if ready.resumes and learned.policy is not None:
        taken = walk(learned.policy, env, unit_of(learned.preference), seed, note)
        refits, known = list[CoreFit](), ready.measured
        for run in (run for run in runs if run.how == "done"):
            known = known.and_run(run)
            refits.append(known.fitted())
        return taken, tables, runs, refits
    if not ready.resumes:
        env.job = replace(env.job, interval=env.job.epochs, start=held_in(learned.course[-1].record))
    taken, refits = steer(env, first, aim, ready.measured, seed, note)
    return taken, tables, runs, refits


def _of_training(table: pd.DataFrame, env: CloudLiveEnv) -> pd.DataFrame:
    """Return the log of an interval with time and cost since the start of the training, including restarts."""
    totals = {"time_so_far": env.time, "cost_so_far": env.cost}
    return table.assign(**{name: table[name] + (total - table[name].iloc[-1]) for name, total in totals.items()})


def optimized_values(outcome: Optimization) -> dict[str, Any]:
    """Return the results of the run under the names of the baseline's values; the allocation is the last one."""
    import pandas as pd

    last = outcome.live[-1].record
    whole: Any = pd.concat(outcome.live_tables, ignore_index=True) if outcome.live_tables else None
    columns = [name for name in whole.columns if str(name).startswith("gpu_utilization_")] if whole is not None else []
    return {
        **{name: last[name] for name in Allocation._fields},
        "batch_size": int(last["batch_size"]) if "batch_size" in last else outcome.job.batch,
        "time": outcome.scores["time"],
        "cost": outcome.scores["cost"],
        "start_up_seconds": outcome.scores["time"] - (float(whole["epoch_time"].sum()) if whole is not None else 0.0),
        "throughput": float(whole["throughput"].mean()) if whole is not None else 0.0,
        "cpu_percent": float(whole["cpu_percent"].mean()) if whole is not None else 0.0,
        "memory_used_gb": float(whole["memory_used_gb"].max()) if whole is not None else 0.0,
        "gpu_utilization": float(whole[columns].mean().mean()) if columns else None,
        "source": "measured",
    }


def percent_change(new: float, old: float) -> float | None:
    """Return a change in percent of the old value; None if that is 0."""
    return (new - old) / old * 100.0 if old else None


def short_warnings(base: Mapping[str, Any], start_up: float) -> list[str]:
    """Return a warning if starts (s) are a large part of a training: changes may then be noise."""
    if start_up <= SHORT * base["time"]:
        return []
    told = f"the training is short: of {base['time']:.1f} s a start takes {start_up:.1f} s"
    return [
        f"{told}, which differs from run to run, and changes of time and cost may be no more than that; more "
        "epochs tell more"
    ]


def run_warnings(base: dict[str, Any], new: dict[str, Any], preference: str) -> list[str]:
    """Return a warning for each value in which a run is worse than its baseline by more than the tolerance."""
    time, cost, throughput = (percent_change(new[name], base[name]) or 0.0 for name in ("time", "cost", "throughput"))
    found = []
    if cost > 5 and time > 5:
        found.append(f"cost and time both rose: {cost:+.1f} % and {time:+.1f} %")
    if cost > 5 and throughput < -5:
        found.append(f"cost rose by {cost:.1f} % while throughput fell by {-throughput:.1f} %")
    if time > 10 and preference != "cost":
        found.append(f"time rose by {time:.1f} %")
    if cost > 10 and preference != "time":
        found.append(f"cost rose by {cost:.1f} %")
    return found
