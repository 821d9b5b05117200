"""Policies of the scenarios of generated graphs, learned as conf/ has them at scale full and scored on the first test
episodes.

    python benchmarks/ramp_graph_policy.py ppo-graph ppo-summary fixed-6 --seeds 0 1 2 --episodes 4 --out table.csv

A row for each policy, seed and scenario: blocking rate, and CPU time of learning in seconds. Policies that know
durations play the scenario
that they learned on alone.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path

import numpy as np

from schedlab.config import experiment
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.plugins import load_object
from schedlab.config.runtime import freeze
from schedlab.config.schema import validate
from schedlab.stages.studies import find_study
from schedlab.studies.ramp.graphs.prepare import make_graphs
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.study import STUDY

SCENARIOS = ("graphs_seen", "graphs_unseen", "graphs_profiles", "graphs_traced")
COLUMNS = ("policy", "seed", "scenario", "episodes", "blocking_rate", "learning_cpu_s")


def require_known(loaded: experiment.Experiment, policies: list[str]) -> None:
    """Raise UserError for a name that is neither a rule nor a policy that learns on these scenarios."""
    for name in policies:
        if name.partition("-")[0] in RULE_MAKERS:
            continue
        if elsewhere := sorted(set(loaded.training_scenarios("ramp", name)) - set(SCENARIOS)):
            where = f"conf/policy/ramp/{name}.yaml: train_on"
            raise UserError(
                f"the policy learns on {', '.join(elsewhere)}", where=where, expected=f"some of {', '.join(SCENARIOS)}"
            )


def problem_of(loaded: experiment.Experiment, name: str) -> RampProblem:
    """Return a scenario with its graphs."""
    values = freeze.problem_part(loaded, "ramp", name)
    scenario = validate(RampScenario, {key: value for key, value in values.items() if key in RampScenario.model_fields})
    return RampProblem(scenario, make_graphs(scenario.graphs))


def score(problem: RampProblem, policy: object, episodes: int) -> float:
    """Return the mean blocking rate on the first test episodes."""
    return float(
        np.mean([problem.rollout(policy, unit).scores["blocking_rate"] for unit in problem.units("test")[:episodes]])
    )


def learned(
    loaded: experiment.Experiment, problems: dict[str, RampProblem], name: str, seed: int, episodes: int
) -> list[tuple]:
    """Learn a policy and score it where it can act: tables of durations only where they were learned."""
    values = freeze.learn_part(loaded, "ramp", name)["policy"]
    phases = tuple(Phase(tuple(phase["scenarios"]), phase["steps"], phase["params"]) for phase in values["train_on"])
    learner, own = load_object(STUDY.learners[values["target"]])(), phases[0].scenarios[0]
    spec = PolicySpec(name, values["kind"], values["target"], values["params"], train_on=phases)
    with tempfile.TemporaryDirectory() as folder:
        paths, began = LearnPaths(None, Path(folder) / "policy.zip", Path(folder) / "progress"), time.process_time()
        learner.learn({own: problems[own]}, spec, seed, paths, lambda *_, **__: None)
        took = time.process_time() - began
        where = [own] if values["target"] == "afterstate" else SCENARIOS
        return [
            (
                name,
                seed,
                scenario,
                episodes,
                score(problems[scenario], learner.load(paths.checkpoint, problems[scenario]), episodes),
                took,
            )
            for scenario in where
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "policies", nargs="+", help="files of conf/policy/ramp, or rules: fixed-<degree>, para_max, para_min, random"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    loaded = experiment.load("conf", "full", find_study)
    try:
        require_known(loaded, given.policies)
    except UserError as error:
        raise SystemExit(str(error)) from None
    problems = {name: problem_of(loaded, name) for name in SCENARIOS}
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in given.policies:
            rule, _, degree = name.partition("-")
            if rule in RULE_MAKERS:
                policies = {
                    key: RULE_MAKERS[rule]({"degree": int(degree)} if degree else {}, one, 0)
                    for key, one in problems.items()
                }
                rows = [
                    (name, 0, key, given.episodes, score(problems[key], policies[key], given.episodes), 0.0)
                    for key in problems
                ]
            else:
                rows = [row for seed in given.seeds for row in learned(loaded, problems, name, seed, given.episodes)]
            writer.writerows((*row[:4], f"{row[4]:.4f}", f"{row[5]:.1f}") for row in rows)
            file.flush()


if __name__ == "__main__":
    main()
