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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.studies.cloud.live.baseline import PROBE_EPOCHS, baseline_values, combined, machine_use, measure, pace
from schedlab.studies.cloud.live.env import CloudLiveEnv, LiveJob
from schedlab.studies.cloud.live.learn import EpisodeStep, Learned, learn, stay, unit_of, walk
from schedlab.studies.cloud.live.model import JobFacts, anchored, constant_totals, live_replay
from schedlab.studies.cloud.live.run import LiveRun
from schedlab.studies.cloud.live.script import ScriptFacts, command_facts, script_facts
from schedlab.studies.cloud.model.allocation import Allocation, held_in
from schedlab.studies.cloud.model.analyser import UNKNOWN, Key, OfflineDataAnalyzer
from schedlab.studies.cloud.model.cost import money
from schedlab.studies.cloud.model.fit_cores import CoreFit
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


@dataclass(frozen=True)
class Training:
    """A training to optimise.

    script    script in Python; or the file or program that names the command
    analyser  logs of earlier runs
    folder    new folder for runs, tables and the policy
    command   words that run the training (run.command_words); empty: the script is run
    """

    script: Path
    settings: OptimizeSettings
    dataset: Path | None
    analyser: OfflineDataAnalyzer
    folder: Path
    command: tuple[str, ...]


@dataclass(frozen=True)
class Prepared(Training):
    """A training after its measurements, with frozen limits.

    job              what is to be run
    samples          runs of the baseline
    baseline         values of the whole training under the names of baseline.baseline_values
    thresholds_from  source of each limit
    prediction       from earlier logs of a similar job
    resumes          whether the script keeps checkpoints, so that allocations can change while it trains
    spent            expenses on measurements of this call, and on those that were reused in place of new ones
    first            forecast of the whole training
    """

    job: LiveJob
    samples: list[LiveRun]
    measured: Measurements
    fit: CoreFit
    facts: JobFacts
    baseline: dict[str, Any]
    thresholds_from: dict[str, str]
    prediction: dict[str, Any] | None
    resumes: bool
    spent: dict[str, Any]
    first: Forecast
    aim: Aim

    @property
    def baseline_table(self) -> pd.DataFrame | None:
        """All samples of the baseline as one log."""
        return combined([run.table for run in self.samples]) if self.samples else None


@dataclass(frozen=True)
class Optimization(Prepared):
    """An optimised training: its plan or learned policy, and its run.

    live         steps of the run
    live_tables  logs of its intervals
    refits       models fitted after each interval of the run, to all measurements until then
    planned      allocations, limits and probabilities at the start of the run
    bill         expenses on measurements and on the run
    minutes      wall-clock time in total
    """

    named: ScriptFacts
    replay: Replay
    learned: Learned
    live: list[EpisodeStep]
    live_tables: list[pd.DataFrame]
    refits: list[CoreFit]
    planned: Plan
    bill: dict[str, Any]
    scores: dict[str, float]
    minutes: float

    @property
    def cut_off(self) -> bool:
        """Whether the run ended before all epochs were trained."""
        return self.live[-1].record["epoch"] < self.job.epochs

    @property
    def start_probability(self) -> float:
        """The probability, by the model, that a training on the start allocation meets all limits of the user."""
        return float(self.planned.likely[number_of(self.planned.forecast, self.job.first)])


def optimize(training: Training) -> Optimization:
    """Optimise a training. Raises ScriptFailed if the script fails, and UserError for invalid settings."""
    began = time.monotonic()
    settings = training.settings
    named = command_facts(training.command) if training.command else script_facts(training.script)
    ready = _prepare(training)
    start, planned = begin(ready.first, ready.aim)
    job = replace(ready.job, start=start)
    replay = live_replay(ready.fit, ready.facts, job, settings.preference)
    job = replace(job, time_ref=replay.time_ref, cost_ref=replay.cost_ref)
    if settings.rl.learner == PLAN:
        learned = stay(replay, settings.preference, settings.seed)
    else:
        rl = {**settings.rl.model_dump(), "seed": settings.seed}
        learned = learn(replay, settings.preference, rl, training.folder)
    log.info("objective by the model %.4f; best plan of single steps %.4f", learned.objective, learned.best)
    env = CloudLiveEnv(job, settings.preference, settings.seed, None, training.folder / "runs" / "live")
    live, tables, runs, refits = _run(env, learned, ready)
    return Optimization(
        **{**vars(ready), "job": job},
        named=named,
        replay=replay,
        learned=learned,
        live=live,
        live_tables=tables,
        refits=refits,
        planned=planned,
        bill=bill_of(ready.baseline, ready.spent, spending(runs), env.restarts * ready.facts.overhead),
        scores=env.scores(),
        minutes=(time.monotonic() - began) / 60.0,
    )


def plan_only(training: Training) -> Plan:
    """Return the plan of a training from short measurements, without running it; errors as of `optimize`."""
    ready = _prepare(training)
    log.info("measured for %s in %s", money(ready.spent["cost"]), duration(ready.spent["seconds"]))
    return plan(ready.first, ready.aim.limits, ready.aim.probability)


def command_of(words: Sequence[str]) -> tuple[tuple[str, ...], Path]:
    """Return the words of a command, with files by their full paths, and the file or program that names it: its first
    file, else its program.
    """
    files = [Path(word) for word in words[1:] if Path(word).is_file()]
    found = [str(Path(word).resolve()) if Path(word).is_file() else word for word in words[1:]]
    program = str(Path(words[0]).resolve()) if os.sep in words[0] else words[0]
    return (program, *found), files[0] if files else Path(words[0])


def _live_job(training: Training) -> LiveJob:
    """Return the job of a training, with the machine's limits."""
    settings = training.settings
    epochs = length_of(settings)
    return LiveJob(
        script=training.script,
        epochs=epochs,
        interval=min(epochs, settings.interval or -(-epochs // DECISIONS)),
        batch=settings.batch,
        command=training.command,
        dataset_path=training.dataset,
        resource=settings.resource.limits(),
        seconds=settings.time_limit,
        disk_gb=settings.disk_limit,
        gpus_per_node=settings.gpus_per_node,
        seed=settings.seed,
    )


def _prepare(training: Training) -> Prepared:
    """Measure a script in short runs, fit the model, fix the limits, and forecast the training."""
    settings, folder = training.settings, training.folder
    job = _live_job(training)
    epochs, resource = job.epochs, job.resource
    per_gpu = settings.batching == "per_gpu" and resource.gpu_count_max > 0
    count = 0 if settings.skip_baseline else settings.baseline_samples
    length = max(1, int(settings.baseline_ratio * epochs))
    measuring = Measuring(folder.parent, settings.measure_again)
    whole_machine = job.request(resource.most, epochs)
    samples, probes = measure(whole_machine, count, length, per_gpu, folder / "runs", measuring)
    done, reused = [*samples, *probes], measuring.reused
    if reused:
        what = "reused %d of %d measurements of the same script, data and machine; --measure_again repeats them"
        log.info(what, len(reused), len(done))
    runs = [*(run for run in samples if len(run.table) >= PROBE_EPOCHS), *probes] or samples
    table, overheads = combined([run.table for run in runs]), [run.overhead for run in runs]
    measured = Measurements(table, overheads, folder / "measured.csv", per_gpu, settings.gpus_per_node)
    with atomic_path(measured.where) as temporary:
        table.to_csv(temporary, index=False)
    fit = measured.fitted()
    facts = measured.facts(fit)
    if there := [run for run in done if run.request.allocation == resource.most]:
        facts = anchored(facts, fit, resource.most, pace(there), settings.gpus_per_node)
    replay = live_replay(fit, facts, job, settings.preference)
    baseline = (
        baseline_values(samples, epochs, there[len(samples) :]) if samples else _modelled(replay, facts, resource.most)
    )
    model, data = (table[name].iloc[0] for name in ("model_name", "dataset"))
    key = str(model), str(data) if is_given(data) else UNKNOWN, "gpu" if resource.gpu_count_max else "cpu"
    history = training.analyser.history(*key)
    sla, origins = frozen_limits(settings, job.sla, history, baseline if samples else None)
    job = replace(job, sla=sla, memory_needed=facts.memory_needed, per_gpu=per_gpu)
    new = [run for run in done if not any(run is each for each in reused)]
    calls = sorted({run.folder.parents[1].name for run in reused})
    spent: dict[str, Any] = {**spending(new), "reused": {"runs": len(reused), "from": calls, **spending(reused)}}
    return Prepared(
        **vars(training),
        job=replace(job, batch=facts.batch) if per_gpu else job,
        samples=samples,
        measured=measured,
        fit=fit,
        facts=facts,
        baseline=baseline,
        thresholds_from=origins,
        prediction=_prediction(table, training.analyser, key),
        resumes=all(run.checkpoint is not None for run in done),
        spent=spent,
        first=live_forecast(measured, fit, facts, resource, epochs, settings.seed),
        aim=aim_of(settings, replay, spent["cost"]),
    )


def _prediction(table: pd.DataFrame, analyser: OfflineDataAnalyzer, key: Key) -> dict[str, Any] | None:
    """Return the prediction from earlier logs of a similar job; None if no log is similar."""
    first = table.iloc[0]
    named = ("model_params", "model_layers", "data_size_mb")
    facts = {name: float(first[name]) for name in named if is_given(first.get(name))}
    if not analyser.tables or not {"model_params", "model_layers"} <= set(facts):
        return None
    found = analyser.predict(facts, *key[1:])
    return found if found["similarity_score"] > 0 else None


def aim_of(settings: OptimizeSettings, replay: Replay, spent: float) -> Aim:
    """Return the aim of planning. spent: $ spent on measurements, which count against `max_spend`."""
    limits, most = settings.sla, settings.max_spend
    if most is not None:
        if most <= spent:
            what = f"measuring has cost {money(spent)}"
            raise UserError(what, where="--max_spend", expected=f"more than that; it is {money(most)}")
        cost_max = math.inf if limits.cost_max is None else limits.cost_max
        limits = limits.model_copy(update={"cost_max": min(most - spent, cost_max)})
    return Aim(weights_of(settings.preference), replay.time_ref, replay.cost_ref, limits, settings.probability)


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


def _modelled(replay: Replay, facts: JobFacts, most: Allocation) -> dict[str, Any]:
    """Return the baseline by the model: the whole training on the whole machine (`most`), where the replay starts."""
    number, found = replay.lattice.start, replay.performance
    time = float(constant_totals(replay)[0][number])
    return {
        **most._asdict(),
        "batch_size": facts.batch,
        "time": time,
        "cost": time * float(replay.price[number]) / 3600.0,
        "start_up_seconds": facts.overhead,
        "throughput": float(found.throughput[number]),
        "cpu_percent": 100.0 * float(found.cpu_util[number]),
        "memory_used_gb": facts.memory_used,
        "gpu_utilization": 100.0 * float(found.gpu_util[number]) if most.gpu_count else None,
        "samples": 0,
        "sample_epochs": 0,
        "source": "model",
    }


def frozen_limits(
    settings: OptimizeSettings, usual: SLAConfig, history: list[dict[str, Any]], baseline: dict[str, Any] | None
) -> tuple[SLAConfig, dict[str, str]]:
    """Return the service levels, which do not change after this, and the source of each.

    A limit is, in this order: the user's; a forecast from `history`, complete earlier runs of the same model, data and
    kind of device, else from the measured baseline (10 % beyond); the default (`usual`).
    """
    origin = "earlier logs" if history else "baseline"
    if not history and baseline is not None:
        history = [{**baseline, "time_so_far": baseline["time"], "cost_so_far": baseline["cost"]}]
    expected = forecast(history) if history else {}
    given = settings.sla.model_dump(exclude_none=True)
    origins = dict.fromkeys(SLAConfig.model_fields, "default") | dict.fromkeys(expected, origin)
    return SLAConfig(**{**usual.model_dump(), **expected, **given}), origins | dict.fromkeys(given, "user")


def _run(
    env: CloudLiveEnv, learned: Learned, ready: Prepared
) -> tuple[list[EpisodeStep], list[pd.DataFrame], list[LiveRun], list[CoreFit]]:
    """Run the plan or the learned policy; return its steps, the logs of its intervals with time and cost since the
    start of the training, its runs, and the models fitted after them. A script without checkpoints runs once, on the
    allocation that the policy reaches in the end.
    """
    tables, runs, seed = list[Any](), list[LiveRun](), ready.settings.seed

    def note(info: Mapping[str, Any]) -> None:
        run = info["run"]
        runs.append(run)
        if run.how == "done":
            totals = {"time_so_far": env.time, "cost_so_far": env.cost}  # including restarts
            before = {name: total - run.table[name].iloc[-1] for name, total in totals.items()}
            tables.append(run.table.assign(**{name: run.table[name] + more for name, more in before.items()}))
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
    taken, refits = steer(env, ready.first, ready.aim, ready.measured, seed, note)
    return taken, tables, runs, refits


def optimized_values(outcome: Optimization) -> dict[str, Any]:
    """Return the results of the run under the names of the baseline's values; the allocation is the last one."""
    import pandas as pd

    last = outcome.live[-1].record
    nothing = pd.DataFrame([dict.fromkeys(("epoch_time", "throughput", "cpu_percent", "memory_used_gb"), 0.0)])
    whole = pd.concat(outcome.live_tables or [nothing], ignore_index=True)
    return {
        **{name: last[name] for name in Allocation._fields},
        "batch_size": int(last["batch_size"]) if "batch_size" in last else outcome.facts.batch,
        "time": outcome.scores["time"],
        "cost": outcome.scores["cost"],
        "start_up_seconds": outcome.scores["time"] - float(whole["epoch_time"].sum()),
        "throughput": float(whole["throughput"].mean()),
        **machine_use(whole),
        "source": "measured",
    }


def warnings_of(outcome: Optimization, new: dict[str, Any]) -> list[str]:
    """Return warnings about a run (new: optimized_values) for readers of the report."""
    found = short_warnings(outcome.baseline, outcome.facts.overhead)
    found += fit_warnings({"median_relative_error": outcome.fit.median_error})
    staying = stay(outcome.replay, outcome.settings.preference, outcome.settings.seed).objective
    if outcome.learned.objective > staying:
        better = f"by the model the plan, which stays on the start, would have been better (objective {staying:.4f})"
        found.append(f"{better} than the learned policy ({outcome.learned.objective:.4f})")
    found += loss_warnings(outcome.live_tables)
    return [*found, *run_warnings(outcome.baseline, new, outcome.settings.preference)]


def percent_change(new: float, old: float) -> float | None:
    """Return a change in percent of the old value; None if that is 0."""
    return (new - old) / old * 100.0 if old else None


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


def short_warnings(base: Mapping[str, Any], start_up: float) -> list[str]:
    """Return a warning if starts (s) are a large part of a training: changes may then be noise."""
    if start_up <= SHORT * base["time"]:
        return []
    starts = f"of {base['time']:.1f} s a start takes {start_up:.1f} s, which differs from run to run"
    noise = "changes of time and cost may be no more than that"
    return [f"the training is short: {starts}, and {noise}; train for more epochs"]


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
