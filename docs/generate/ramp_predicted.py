"""Rollouts with predicted durations on graphs that the model of durations was not fitted on.

    SCHEDLAB_DATA=DIR python docs/generate/ramp_predicted.py durations
    SCHEDLAB_DATA=DIR python docs/generate/ramp_predicted.py scores [--episodes 5] [--seeds 0 1 2] [--only TEXT]

DIR holds the five PipeDream graphs (graphs/). `durations` writes docs/results/predicted_durations.csv: for each graph
and degree, predicted over true duration on an empty cluster. `scores` writes docs/results/predicted_rollouts.csv:
blocking rate and CPU seconds of each test episode of the scenarios and policies at scale full. Episodes are played with
the true durations of an empty cluster, from which those of the simulator differ by at most half a percent. Of the fixed
degrees, only the best on validation is scored. Rows that the file already holds are not computed again. `watched` is
the policy with `watch: true`. `informed` decides by the same rollouts with true durations and the true law of arrivals;
its base is the fixed degree that is best on validation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

import numpy as np
import pandas as pd
from table_parts import REPOSITORY

from schedlab.config.composition import Composer
from schedlab.config.contract import LearnPaths, Phase, PolicySpec, Unit
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.prepare import make_graphs
from schedlab.studies.ramp.learners.afterstate.policy import AfterstatePolicy, Candidate
from schedlab.studies.ramp.learners.predicted.learner import PredictedLearner
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RulePolicy, rule_named
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.compiled import fixed_table
from schedlab.studies.ramp.simulator.compiled_kernel import DUE, counts, servers_for
from schedlab.studies.ramp.study import PROBLEM

PUBLISHED = ("alexnet", "gnmt", "resnet18", "squeezenet1_0", "vgg16")
SETS = {  # scenario -> policy
    "graphs_unseen": "predicted-graphs",
    "graphs_traced": "predicted-graphs",
    "graphs_profiles": "predicted-graphs",
    **{f"graphs_only_{name}": f"predicted-without-{name.replace('_', '-')}" for name in PUBLISHED},
}
SAMPLES = 48  # of a rollout, those of the learner
FIXED = ("fixed-2", "fixed-4", "fixed-6", "fixed-8")
SCORES, DURATIONS = (REPOSITORY / f"docs/results/predicted_{what}.csv" for what in ("rollouts", "durations"))
COLUMNS = ["scenario", "policy", "seed", "unit", "blocking_rate", "cpu_s"]


@cache
def problem(name: str) -> RampProblem:
    """Return the problem of a shipped scenario at scale full."""
    values = Composer(REPOSITORY / "conf", "full").compose("scenario/ramp", name).values
    scenario = validate(
        RampScenario, {key: values[key] for key in (*PROBLEM, "name", "seed", "graphs") if key in values}
    )
    return RampProblem(scenario, make_graphs(scenario.graphs))


def learned(name: str, seed: int, here: RampProblem, **params: Any) -> Any:
    """Return a shipped policy learned with a seed, for the graphs of a problem."""
    values = Composer(REPOSITORY / "conf", "full").compose("policy/ramp", name).values
    phase = values["train_on"][0]
    given = {key: value for key, value in values["learner"].items() if key != "name"} | params
    spec = PolicySpec(name, "learned", "", given, train_on=(Phase(tuple(phase["scenarios"]), phase["steps"]),))
    with tempfile.TemporaryDirectory() as folder:
        paths = LearnPaths(None, Path(folder) / "policy.zip", Path(folder))
        problems = {each: problem(each) for each in phase["scenarios"]}
        PredictedLearner().learn(problems, spec, seed, paths, lambda *_, **__: None)
        return PredictedLearner().load(paths.checkpoint, here)


def durations() -> pd.DataFrame:
    """Return predicted over true duration, a row for each graph of each scenario."""
    rows = []
    for name, policy in SETS.items():
        here = problem(name)
        ratios = learned(policy, 0, here)._predicted.durations / here.compiled[0].durations
        for graph, found in zip(here.graphs, ratios, strict=True):
            named = dict(zip((f"degree_{degree}" for degree in here.compiled[0].actions), found, strict=True))
            rows.append({"scenario": name, "policy": policy, "graph": graph.name, **named})
    return pd.DataFrame(rows)


def cases(only: str, seeds: list[int], episodes: int) -> Iterator[tuple[str, str, int, int]]:
    """Yield scenario, policy, seed and number of a test episode, what matters most first."""
    sets = {name: policy for name, policy in SETS.items() if only in name}
    for number in range(episodes):
        for name, policy in sets.items():
            yield from ((name, each, 0, number) for each in (policy, chosen(name)))
    for other in ("informed", "para_max", "para_min", "watched"):
        yield from ((name, other, 0, number) for name in sets for number in range(episodes))
    for seed in seeds[1:]:
        yield from ((name, policy, seed, number) for name, policy in sets.items() for number in range(episodes))


@cache
def player(name: str, policy: str, seed: int) -> Any:
    """Return a policy for a scenario."""
    here = problem(name)
    if policy == "informed":
        tables, outlook = here.compiled
        base = fixed_table(tables, int(chosen(name).removeprefix("fixed-")))
        return AfterstatePolicy(Candidate("rollouts", base, samples=SAMPLES, jobs=48), tables, outlook, seed)
    if policy in (SETS[name], "watched"):
        return learned(SETS[name], seed, here, **({"watch": True} if policy == "watched" else {}))
    return RulePolicy(rule_named(policy.replace("-", "_")), 0)


@cache
def chosen(name: str) -> str:
    """Return the fixed degree that blocks the fewest jobs of a scenario's validation episodes."""
    units = problem(name).units("validation")
    return min(FIXED, key=lambda rule: sum(play(problem(name), player(name, rule, 0), unit) for unit in units))


def play(here: RampProblem, policy: Any, unit: Unit) -> float:
    """Return the blocking rate of an episode, played with the tables of durations in place of the simulator."""
    tables, scenario, pool = here.compiled[0], here.scenario, here.simulation.pool
    source, end, now, accepted, arrived = pool.episode(unit.seed), scenario.episodes.end, 0.0, 0.0, 0
    cluster = Namespace(running=[], record=Namespace(completed=[]))
    stage = Namespace(scenario=scenario, pool=pool, cluster=cluster, decided={})
    policy.reset(unit)
    while now < end - DUE:
        job, arrived = source.draw(arrived), arrived + 1
        ended = [one for one in cluster.running if one.started + one.duration <= now + DUE]
        cluster.record.completed += [Namespace(running=one, duration=one.duration) for one in ended]
        cluster.running = [one for one in cluster.running if one not in ended]
        taken = np.uint64(sum(one.plan.placement.mask for one in cluster.running))
        graph, mask = pool.place(job.graph), np.zeros(scenario.management.most + 1, dtype=np.int16)
        found = [int(servers_for(tables, graph, action, taken)) for action in range(len(tables.actions))]
        mask[tables.actions] = [servers > 0 for servers in found]
        cluster.queue, cluster.time = [job], now
        degree = policy.decide(stage, mask)
        stage.decided[job.index] = degree, 0
        action = int(np.searchsorted(tables.actions, degree))
        if degree and tables.durations[graph, action] <= job.time_limit:
            duration, plan = float(tables.durations[graph, action]), Namespace(placement=Namespace(mask=found[action]))
            cluster.running.append(Namespace(job=job, started=now, duration=duration, plan=plan))
            accepted += counts(tables, now + duration, end)
        now = source.next_arrival(now)
    return 1.0 - accepted / (arrived + (now <= end + DUE)) if accepted else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["durations", "scores"])
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", default="", help="part of the names of scenarios")
    given = parser.parse_args()
    if given.what == "durations":
        durations().to_csv(DURATIONS, index=False, float_format="%.5g")
        return
    for name, policy, seed, number in cases(given.only, given.seeds, given.episodes):
        found = pd.read_csv(SCORES) if SCORES.is_file() else pd.DataFrame(columns=COLUMNS)
        unit = problem(name).units("test")[number]
        known = (found[["scenario", "policy", "seed", "unit"]] == [name, policy, seed, unit.id]).all(axis=1).any()
        if known:
            continue
        acting, began = player(name, policy, seed), time.process_time()
        rate = play(problem(name), acting, unit)
        row = pd.DataFrame([[name, policy, seed, unit.id, rate, time.process_time() - began]], columns=COLUMNS)
        print(*row.iloc[0], flush=True)
        both = [part for part in (found, row) if len(part)]
        pd.concat(both).sort_values(COLUMNS[:4]).to_csv(SCORES, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
