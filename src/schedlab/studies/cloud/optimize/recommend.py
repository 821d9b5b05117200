"""The recommendations in the report of an optimised training: the baseline, the run, a step of SLA-MORL's rules, and
the best constant allocations.

See docs/guide/cloud_live.md. Unlike in SLA-MORL's program, baseline and run are candidates, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from schedlab.studies.cloud.live.model import constant_objectives, constant_totals
from schedlab.studies.cloud.model.allocation import Allocation, held_in, whole
from schedlab.studies.cloud.model.lattice import Lattice
from schedlab.studies.cloud.optimize.flow import Optimization, percent_change
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.rules.suggestions import NAMES, estimates, options

COMPARED = ("time", "cost", "throughput")
KEEP, RUN = "keeps what was there", "keeps what the run held at its end"
STEP, STAY = "a step of the published rule from what the run held", "best to stay on from the begin"
SOUGHT = {"time": ("time", "cost"), "cost": ("cost", "time")}  # priority -> value to minimise, and that decides a tie


def recommendations(outcome: Optimization, new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return three recommendations. For time and for cost, it is the best of the baseline, the run, and one further
    step by the published rules; for `balanced`, it is the run. The values of the further step are estimated by the
    model if its lattice contains the allocation, else by the published factors. A run that exceeded a limit is not a
    candidate.
    """
    last = outcome.live[-1].record
    held = held_in(last)
    stepped = {
        option.priority: option for option in options(last, held, outcome.job.resource, outcome.job.sla.throughput_min)
    }
    guesses = estimates(list(stepped.values()), outcome.baseline)
    kept, run = baseline_row(outcome), _row(outcome, held, new, RUN, "measured")
    result = []
    for priority in ("time", "cost", "balanced"):
        aimed, candidates = stepped[priority].allocation, [kept, run]
        if outcome.cut_off:
            candidates.remove(run)
        if aimed not in (held, held_in(kept)):
            if modelled := by_model(outcome, aimed):
                candidates.append(_row(outcome, aimed, modelled, STEP, "model"))
            elif not _reached(outcome, aimed):  # if it is on the lattice, None means: too little memory
                candidates.append(_row(outcome, aimed, vars(guesses[priority]), STEP, "published rule"))
        best = kept if outcome.cut_off else run
        if priority in SOUGHT:
            best = min(candidates, key=itemgetter(*SOUGHT[priority]))
        result.append({"priority": priority, "name": NAMES[priority], **best})
    return result


def baseline_row(outcome: Optimization) -> dict[str, Any]:
    """Return the baseline as a recommendation: its allocation and its values."""
    base = outcome.baseline
    source = "model" if base["source"] == "model" else "baseline"
    return _row(outcome, held_in(base), base, KEEP, source)


def best_constants(outcome: Optimization) -> list[dict[str, Any]]:
    """Return the constant allocations that are fastest, cheapest and best for the preference, by the model. `best_for`
    names the criteria; an allocation that is best in several is listed once.
    """
    replay, preference = outcome.replay, outcome.settings.preference
    time, cost = constant_totals(replay)
    orders = {"time": np.lexsort((cost, time)), "cost": np.lexsort((time, cost))}
    orders[f"the preference {preference}"] = constant_objectives(replay, weights_of(preference)).argsort()
    best: dict[int, list[str]] = {}
    for name, order in orders.items():
        best.setdefault(int(order[0]), []).append(name)
    rows = []
    for number, names in best.items():
        gpus, cores, memory = replay.lattice.allocations[number].tolist()
        allocation = Allocation(int(gpus), int(cores), whole(memory))
        if values := by_model(outcome, allocation):
            rows.append({"best_for": names, **_row(outcome, allocation, values, STAY, "model")})
    return rows


def by_model(outcome: Optimization, allocation: Allocation) -> dict[str, float] | None:
    """Return the estimated training on a constant allocation from its first start on; None if the allocation is not in
    the model's lattice or has too little memory.
    """
    if not _reached(outcome, allocation):
        return None
    number = _lattice(outcome).number(allocation)
    time, cost = (values[number] for values in constant_totals(outcome.replay))
    throughput = float(outcome.replay.performance.throughput[number])
    return {"time": float(time), "cost": float(cost), "throughput": throughput} if np.isfinite(time) else None


def _reached(outcome: Optimization, allocation: Allocation) -> bool:
    return all(value in axis for value, axis in zip(allocation, _lattice(outcome).axes, strict=True))


def _lattice(outcome: Optimization) -> Lattice:
    grid = outcome.replay.lattice
    assert isinstance(grid, Lattice)  # a machine rents no instances
    return grid


def _row(
    outcome: Optimization, allocation: Allocation, values: Mapping[str, Any], description: str, source: str
) -> dict[str, Any]:
    return {
        "description": description,
        **allocation._asdict(),
        "hourly_cost": outcome.job.resource.hourly_price(*allocation),
        **{name: values[name] for name in COMPARED},
        "change_percent": {name: percent_change(values[name], outcome.baseline[name]) for name in COMPARED},
        "source": source,
    }
