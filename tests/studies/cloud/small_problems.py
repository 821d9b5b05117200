"""Small problems of the cloud study, and learning on them."""

from __future__ import annotations

from pathlib import Path

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.studies.cloud.example import STEP, example_scenario
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.model.step_time import StepParameters
from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.rules.oracle import best_plan, objective_of_staying

BERT = {  # conf/training_job/squad.yaml: the second and third GPU bring less than they cost, the fourth pays for all
    "step": {"a_c": 0.1719, "b_c": 5.86e-2, "a_n": 1.386, "b_n": 0.00943, "a_r": 0.2842, "b_r": 0.00958, "y": 1.90},
    "pipeline": {"core_seconds": 1e-4, "sample_bytes": 3072.0, "dataset_gb": 0.3},
    "epochs": 2.0,
    "samples": 88641,
    "base_batch": 12,
    "batch": 12,
    "gradient_noise": [35.2, 93.7],
}


LITTLE = {"hidden": 16, "episodes_per_update": 16, "save_every": 2, "record_every": 1}


def problem(**changed) -> CloudProblem:
    """The example, with the oracle's objective and a stand-in for random actions that the regret is divided by."""
    made = CloudProblem(example_scenario(**changed), StepParameters(**STEP), {})
    found = {}
    for preference in made.scenario.preferences:
        weights = weights_of(preference)
        staying = objective_of_staying(made.replay, weights)
        dynamic = best_plan(made.replay, weights).values[0, made.replay.lattice.start]
        found[preference] = {"dynamic": float(dynamic), "static": float(staying.min()), "random": float(dynamic) + 1.0}
    made.oracle = found
    return made


def learn(folder: Path, problems: dict[str, CloudProblem], episodes: int, seed: int = 0, **params) -> Path:
    """Learn and return the checkpoint."""
    spec = PolicySpec("learned", "learned", "reinforce", LITTLE | params, train_on=(Phase(tuple(problems), episodes),))
    paths = LearnPaths(None, folder / "policy.zip", folder)
    folder.mkdir(exist_ok=True)
    ReinforceLearner().learn(problems, spec, seed, paths, lambda *point, **place: None)
    return paths.checkpoint
