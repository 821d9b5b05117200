"""What the rules and oracles of the cloud study reach on its test units, and the fronts, as two tables; nothing is
learned.

    PYTHONPATH=src python benchmarks/cloud_rules.py small/cifar10 small/imagenet small/movielens small/squad
        full/ablations \
        full/ablations_nine full/learners full/minutes full/imagenet_front full/movielens_front full/cifar10_front \
        --out docs/results/cloud_rules.csv --fronts docs/results/cloud_fronts.csv

A row of the first for each scale, scenario, rule, seed and preference; of the second for each point of a front: of all
plans, of constant allocations, and the best plans for cost alone and for time alone (none where decisions come by
time).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from cloud_initialisation import problem_of

from schedlab.config import experiment
from schedlab.config.contract import PolicySpec
from schedlab.stages.policies import make_rule
from schedlab.stages.studies import find_study
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.replay import Replay
from schedlab.studies.cloud.rules.oracle import best_plan
from schedlab.studies.cloud.rules.pareto import front_report
from schedlab.studies.cloud.study import STUDY

GOALS = ("1:0:0", "0:1:0")  # weights of cost, time and resource
SCORES = ("regret", "objective", "time", "cost", "waste", "sla_met", "severity", "restarts")


def rows_of(problem: CloudProblem, rule: dict) -> list[dict]:
    """Return the scores of a rule, as conf/ gives it, on each test unit."""
    found = []
    for seed in rule["seeds"] or [0]:
        spec = PolicySpec(rule["name"], rule["kind"], rule["target"] or rule["name"], rule["params"])
        policy = make_rule(STUDY, spec, problem, seed)
        for unit in problem.units("test"):
            scores = problem.rollout(policy, unit).scores
            place = {"rule": rule["name"], "seed": seed, "preference": preference_of(unit)}
            found.append(place | {name: scores[name] for name in SCORES})
    return found


def plans_for_one_goal(replay: Replay) -> list[tuple[float, float]]:
    """Return time (s) and cost ($) of the best plans for each of GOALS alone."""
    found = []
    for weights in GOALS:
        env, plan = CloudReplayEnv(replay, weights), best_plan(replay, weights_of(weights))
        env.reset()
        while env.interval < replay.intervals:
            env.step(env.actions.index(int(plan.actions[env.interval, env.here])))
        found.append((env.time, env.cost))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="+", metavar="SCALE/SCENARIO")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fronts", type=Path, required=True)
    given = parser.parse_args()
    rows, points, loaded = [], [], {}
    for scale, name in (place.split("/") for place in given.scenarios):
        loaded[scale] = loaded.get(scale) or experiment.load("conf", scale, find_study)
        problem, place = problem_of(loaded[scale], name), {"scale": scale, "scenario": name}
        for rule in loaded[scale].scenario("cloud", name)["rules"]:
            rows += [place | row for row in rows_of(problem, rule)]
        replay = problem.replay
        for of, front in (
            {} if replay.span else {**front_report(replay), "one_goal": plans_for_one_goal(replay)}.items()
        ):
            points += [place | {"front": of, "time": time, "cost": cost} for time, cost in front]
        print(f"{scale}/{name}", flush=True)
    for file, found in ((given.out, rows), (given.fronts, points)):
        pd.DataFrame(found).to_csv(file, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main()
