"""Training jobs of a family: the recorded ones, or jobs drawn around them, each with limits on time and cost."""

from __future__ import annotations

import numpy as np

from schedlab.config.seeds import generator
from schedlab.studies.cloud.replay.replay import Replay, make_replay
from schedlab.studies.cloud.rules.oracle import totals_of_staying
from schedlab.studies.cloud.scenario import CloudScenario, TrainingJobSettings


def jobs_of(scenario: CloudScenario) -> dict[str, TrainingJobSettings]:
    """Return the jobs of a scenario's family by name: the recorded ones, or the number of drawn ones that it sets."""
    family = scenario.family
    assert family is not None, "a scenario of several jobs"
    recorded = [scenario.job, *family.others.values()]
    if not family.drawn:
        return {job.name: job for job in recorded}
    names = [f"{family.group}-{number:02d}" for number in range(family.drawn)]
    return {name: drawn_job(recorded, name, family.spread, scenario.seed) for name in names}


def drawn_job(recorded: list[TrainingJobSettings], name: str, spread: float, seed: int) -> TrainingJobSettings:
    """Return a job near one of the recorded ones: its step times, its core time per sample, its number of samples and
    its gradient noise are each multiplied by exp(spread z), with z standard normal.
    """
    rng = generator(seed, "cloud", "job", name)
    base = recorded[int(rng.integers(len(recorded)))]
    assert base.step is not None, "checked: the jobs of a family have pinned steps"
    times = {key: value * _factor(rng, spread) for key, value in base.step.model_dump().items() if key != "y"}
    work = base.pipeline.core_seconds * _factor(rng, spread)
    samples, noise = round(base.samples * _factor(rng, spread)), _factor(rng, spread)
    changed = {
        "name": name,
        "step": base.step.model_copy(update=times),
        "pipeline": base.pipeline.model_copy(update={"core_seconds": work}),
        "samples": max(samples, 1),
        "gradient_noise": tuple(value * noise for value in base.gradient_noise),
    }
    return base.model_copy(update=changed)


def _factor(rng: np.random.Generator, spread: float) -> float:
    return float(np.exp(spread * rng.standard_normal()))


def limited_replay(scenario: CloudScenario, job: TrainingJobSettings) -> Replay:
    """Return the replay of a job of a family: its length in equal intervals, and limits on time and cost that are
    slightly looser than the time and cost of one constant allocation. This is the allocation for which the sum of time
    and cost, each relative to its minimum over allocations, is smallest.
    """
    family = scenario.family
    assert family is not None and job.step is not None, "checked"
    model, interval = job.step.parameters(), job.epochs / family.intervals
    environment = scenario.environment.model_copy(update={"interval": interval})
    single = scenario.model_copy(update={"job": job, "environment": environment, "family": None})
    free = single.constraints.model_copy(update={"keep": ()})
    time, cost = totals_of_staying(make_replay(single.model_copy(update={"constraints": free}), model))
    middle = int((time / time.min() + cost / cost.min()).argmin())
    limits = {"time_max": family.slack * float(time[middle]), "cost_max": family.slack * float(cost[middle])}
    update = {"sla": single.sla.model_copy(update=limits), "sla_from": "configuration"}
    return make_replay(single.model_copy(update=update), model)
