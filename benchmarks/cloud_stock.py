"""A search of settings for the stock learners (Stable-Baselines3, sb3-contrib), or for REINFORCE, on a scenario of the
cloud study: each setting learned with a seed that no table reports, scored on the validation units.

    PYTHONPATH=src python benchmarks/cloud_stock.py learners --decisions 16000 --out docs/results/cloud_stock.csv
    PYTHONPATH=src python benchmarks/cloud_stock.py movielens --learners reinforce --decisions 9600 --seed 1000 \
        --out docs/results/cloud_reinforce_settings.csv

`--decisions` are REINFORCE's episodes of each preference. Rows are appended, a row a setting and preference, and what
is there already is not learned again. What is not searched is as in conf/learner/cloud.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import pandas as pd
import yaml
from cloud_initialisation import problem_of

from schedlab.config import experiment
from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.plugins import load_object
from schedlab.stages.studies import find_study
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.study import STUDY

SEED = 1000  # of the search
PPO = {"learning_rate": 3e-3, "ent_coef": 0.01, "gae_lambda": 0.95}
A2C = {"learning_rate": 1e-3, "ent_coef": 0.01, "gae_lambda": 1.0}
DQN = {
    "learning_rate": 1e-3,
    "exploration_fraction": 0.4,
    "target_update_interval": 1600,
    "train_freq": 2,
    "n_steps": 1,
}
OF_PPO: list[dict[str, float]] = [
    {},
    {"learning_rate": 1e-3},
    {"learning_rate": 3e-4},
    {"ent_coef": 0.1},
    {"ent_coef": 0.3},
    {"gae_lambda": 1.0},
    {"ent_coef": 0.1, "gae_lambda": 1.0},
    {"ent_coef": 0.1, "gae_lambda": 1.0, "learning_rate": 1e-3},
]
OF_A2C: list[dict[str, float]] = [
    {},
    {"learning_rate": 3e-3},
    {"learning_rate": 3e-4},
    {"ent_coef": 0.0},
    {"ent_coef": 0.1},
    {"ent_coef": 0.3},
    {"gae_lambda": 0.95},
]
OF_DQN: list[dict[str, float]] = [
    {},
    {"learning_rate": 3e-4},
    {"exploration_fraction": 0.8},
    {"target_update_interval": 400},
    {"train_freq": 1},
    {"n_steps": 5},
]
REINFORCE = {"entropy": 0.3, "committed": 0.25, "imitated": 4, "distilled": 0}
OF_REINFORCE: list[dict[str, float]] = [
    {},
    {"distilled": 2000},
    {"committed": 0.5},
    {"distilled": 2000, "committed": 0.5},
    {"distilled": 2000, "entropy": 0.6},
    {"distilled": 2000, "imitated": 8},
]
STOCK = {"ppo": (PPO, OF_PPO), "maskable_ppo": (PPO, OF_PPO), "a2c": (A2C, OF_A2C), "dqn": (DQN, OF_DQN)}
GRIDS = STOCK | {"reinforce": (REINFORCE, OF_REINFORCE)}
COLUMNS = ["scenario", "learner", "settings", "seed", "decisions", "preference", "regret", "cpu_seconds"]


def told(settings: dict[str, float]) -> str:
    """Return settings as one cell of a table."""
    return " ".join(f"{key}={value:g}" for key, value in settings.items())


def rows_of(
    problem: CloudProblem, scenario: str, learner: str, settings: dict[str, float], decisions: int, seed: int
) -> list[list]:
    """Learn with one setting; returns a row for each validation unit."""
    values = yaml.safe_load(Path(f"conf/learner/cloud/{learner}.yaml").read_text())
    seldom = {"record_every": 1000 if learner == "reinforce" else decisions}  # updates, or decisions
    params = {key: value for key, value in values.items() if key != "name"} | seldom | settings
    spec = PolicySpec("searched", "learned", learner, params, train_on=(Phase((scenario,), decisions),))
    before = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        made, paths = (
            load_object(STUDY.learners[learner])(),
            LearnPaths(None, Path(folder) / "policy.zip", Path(folder)),
        )
        made.learn({scenario: problem}, spec, seed, paths, lambda *point, **place: None)
        policy = made.load(paths.checkpoint, problem)
    spent = time.process_time() - before
    found = []
    for unit in problem.units("validation"):
        regret = problem.rollout(policy, unit).scores["regret"]
        found.append([scenario, learner, told(settings), seed, decisions, preference_of(unit), regret, spent])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", help="a file of conf/scenario/cloud")
    parser.add_argument("--learners", nargs="+", choices=GRIDS, default=list(STOCK))
    parser.add_argument("--decisions", type=int, default=16_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    problem = problem_of(experiment.load("conf", "full", find_study), given.scenario)
    kept = pd.read_csv(given.out) if given.out.exists() else pd.DataFrame(columns=COLUMNS)
    for learner in given.learners:
        first, grid = GRIDS[learner]
        for settings in (first | changed for changed in grid):
            key = [given.scenario, learner, told(settings), given.seed, given.decisions]
            if (kept[COLUMNS[:5]] == key).all(axis=1).any():
                continue
            rows = rows_of(problem, given.scenario, learner, settings, given.decisions, given.seed)
            kept = pd.DataFrame([*kept.itertuples(index=False), *rows], columns=COLUMNS)
            kept.to_csv(given.out, index=False, float_format="%.4g", lineterminator="\n")
            print(*rows[0], flush=True)


if __name__ == "__main__":
    main()
