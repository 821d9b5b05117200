"""What weights that follow violations ask for: every allocation that a job can go straight to and stay on, valued by
the weights of the preference, by those that lean towards what is violated, and by the latter where they are not divided
by their sum.

    PYTHONPATH=src python benchmarks/cloud_weights.py ablations --out docs/results/cloud_weights.csv

A row for each preference and way of weighing: the allocation of the highest reward, what going there yields, and the
rank correlation (Spearman) of reward and severity over all allocations (`rank`). Nothing is learned.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from cloud_initialisation import problem_of
from scipy.stats import spearmanr

from schedlab.config import experiment
from schedlab.stages.studies import find_study
from schedlab.studies.cloud.learners.exploration import committed_actions
from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv

WAYS = ("fixed", "adapted", "not divided")


class Weighing(CloudReplayVectorEnv):
    """The environment with its rewards weighed in one of WAYS."""

    way = "fixed"

    def _weights(self) -> Mapping[str, float | np.ndarray]:
        if self.way == "not divided":
            return self._leaning()
        return self.weights if self.way == "fixed" else super()._weights()


def straight(problem: CloudProblem, preference: str, way: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the rewards of going straight to each allocation and staying, (n,), and the scores of these episodes, (n,)
    each.

    The reward is minus infinity where the allocation's memory does not suffice or the job ends before it is reached.
    """
    grid = problem.replay.lattice
    env = Weighing(problem.replay, len(grid), preference)
    env.way = way
    env.reset(seed=0)
    targets, reward, final = np.arange(len(grid)), np.zeros(len(grid)), {}
    for _ in range(problem.replay.intervals):
        arrived = env.here == targets
        actions = np.searchsorted(
            env.actions, committed_actions(grid, env.here, targets, problem.replay.allowed[env.here])
        )
        _, rewards, _, _, final = env.step(actions)
        reward += rewards
    return np.where(arrived, reward, -np.inf), final["final_info"]["scores"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", help="a file of conf/scenario/cloud with environment.adaptive")
    parser.add_argument("--scale", default="full")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = []
    problem = problem_of(experiment.load("conf", given.scale, find_study), given.scenario)
    for preference in problem.scenario.preferences:
        for way in WAYS:
            reward, scores = straight(problem, preference, way)
            best, known = int(reward.argmax()), np.isfinite(reward)
            of, found = problem.oracle[preference], {name: values[best] for name, values in scores.items()}
            regret = (found["objective"] - of["dynamic"]) / (of["random"] - of["dynamic"])
            held = dict(zip(("gpus", "cores", "memory_gb"), problem.replay.lattice.allocations[best], strict=True))
            rank = spearmanr(reward[known], scores["severity"][known]).statistic
            told = {name: found[name] for name in ("severity", "time", "cost", "sla_met")}
            rows.append({"preference": preference, "way": way, **held, "regret": regret, **told, "rank": rank})
    table = pd.DataFrame(rows).round({"regret": 9})
    table.to_csv(given.out, index=False, float_format="%.6g", lineterminator="\n")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
