"""What a set of policies learned by weighted distances has of the front's hypervolume without each of the three
additions that it is learned with, on scenarios as conf/ has them at scale full.

    OMP_NUM_THREADS=1 PYTHONPATH=src python benchmarks/cloud_front_parts.py movielens_front --seeds 0 1 \
        --out docs/results/cloud_front_parts.csv

sharing    episodes of one weight are offered to the others
branches   half of the committed episodes follow one of the best ones seen, and leave it in a drawn interval
distilled  at the end a network imitates the best episode seen for its weight alone

A row for each scenario, variant and seed; `none` is without all three.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from cloud_initialisation import problem_of

from schedlab.config import experiment
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.stages.studies import find_study
from schedlab.studies.cloud.learners import reinforce as learner_reinforce
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.rules.pareto import front_report, measures

VARIANTS = {
    "all": (),
    "no sharing": ("sharing",),
    "no branches": ("branches",),
    "not distilled": ("distilled",),
    "none": ("sharing", "branches", "distilled"),
}
DISTILLED, EPISODES = 2000, 4800  # as conf/policy/cloud/chebyshev-*-front.yaml has them


def learned(problem: CloudProblem, name: str, without: tuple[str, ...], seed: int) -> np.ndarray:
    """Learn without some parts; returns time and cost of the policy of each weight, (N, 2)."""
    params = {
        "scalarisation": "chebyshev",
        "distilled": 0 if "distilled" in without else DISTILLED,
        "record_every": 1000,
    }
    spec = PolicySpec("learned", "learned", "reinforce", params, train_on=(Phase((name,), EPISODES),))
    with contextlib.ExitStack() as left_out, tempfile.TemporaryDirectory() as folder:
        if "sharing" in without:
            left_out.enter_context(mock.patch.object(learner_reinforce.BestEpisodes, "add_shared", lambda *given: None))
        if "branches" in without:
            left_out.enter_context(mock.patch.object(learner_reinforce.Branches, "drawn", lambda *given: None))
        paths, learner = LearnPaths(None, Path(folder) / "policy.zip", Path(folder)), ReinforceLearner()
        learner.learn({name: problem}, spec, seed, paths, lambda *point, **place: None)
        policy = learner.load(paths.checkpoint, problem)
    outcomes = [problem.rollout(policy, unit).scores for unit in problem.units("test")]
    return np.array([[scores["time"], scores["cost"]] for scores in outcomes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="+", help="files of conf/scenario/cloud with a front")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    loaded, rows = experiment.load("conf", "full", find_study), []
    for name in given.scenarios:
        problem = problem_of(loaded, name)
        front = np.array(front_report(problem.replay)["front"])
        for variant, seed in itertools.product(given.variants, given.seeds):
            rows.append(
                {
                    "scenario": name,
                    "variant": variant,
                    "seed": seed,
                    **measures(learned(problem, name, VARIANTS[variant], seed), front),
                }
            )
            print(*rows[-1].values(), flush=True)
    pd.DataFrame(rows).to_csv(given.out, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main()
