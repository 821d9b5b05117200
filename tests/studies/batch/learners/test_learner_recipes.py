"""The recipes of the two published systems have their values, and learn."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from stock_learning import learn, problem_of

import shipped_conf
from schedlab.config.schema import validate
from schedlab.studies.batch.learners.stock_settings import STOCK_SETTINGS
from schedlab.studies.batch.problem import BatchProblem

CONF = Path(__file__).resolve().parents[4] / "conf"
RECIPES = {  # of RLScheduler, and of the dissertation on HPC2N, as published
    "ppo_published": {
        "network": "kernel",
        "value": "rows",
        "environments": 100,
        "n_steps": 256,
        "n_epochs": 80,
        "target_kl": 0.01,
        "gamma": 1.0,
        "gae_lambda": 0.97,
        "clip_range": 0.2,
        "learning_rate": 3e-4,
        "learning_rate_schedule": "constant",
        "value_learning_rate": 1e-3,
        "normalize_advantage": True,
        "ent_coef": 0.0,
        "keep_windows": "all",
    },
    "ppo_dissertation": {
        "network": "actor_kernel",
        "value": "small",
        "environments": 3,
        "n_steps": 5000,
        "batch_size": 200,
        "n_epochs": 1,
        "target_kl": 0.01,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_range": 0.2,
        "learning_rate": 3e-4,
        "learning_rate_schedule": "linear",
        "normalize_advantage": False,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "ortho_init": True,
        "acting": "sample",
        "longest_window": 511,
        "stop_after": 10,
    },
}
SEEN = {
    "ppo_published": {
        "layout": "rlscheduler",
        "scales": "whole",
        "reward": "episodic",
        "measure": "bsld",
        "waiting_seconds": 0.0,
    },
    "ppo_dissertation": {
        "layout": "dissertation",
        "scales": "whole",
        "oracle_runtime": True,
        "measure": "bsld",
        "waiting_seconds": 60.0,
    },
}


SMALL = {"environments": 2, "n_steps": 64, "batch_size": 32, "longest_window": 40}


@pytest.fixture(scope="module")
def problem() -> BatchProblem:
    return problem_of()


@pytest.mark.parametrize("recipe", RECIPES)
def test_published_recipes_have_the_published_values(recipe):
    values = yaml.safe_load((CONF / f"learner/batch/{recipe}.yaml").read_text())
    made = validate(STOCK_SETTINGS[values.pop("name")], values)
    assert {key: getattr(made, key) for key in RECIPES[recipe]} == RECIPES[recipe]
    assert {key: getattr(made.environment, key) for key in SEEN[recipe]} == SEEN[recipe]


@pytest.mark.parametrize("recipe", RECIPES)
def test_published_recipes_learn(recipe, problem, tmp_path):
    values = yaml.safe_load((CONF / f"learner/batch/{recipe}.yaml").read_text()) | SMALL
    learner, checkpoint, points = learn(values.pop("name"), problem, tmp_path, **values)
    assert {"return", "learning_rate"} <= {metric for metric, _, _ in points}
    assert len(problem.rollout(learner.load(checkpoint, problem), problem.units("test")[0]).details["jobs"]) == 32


def test_published_recipes_are_policies_of_the_published_length_that_its_protocols_test():
    def read(what):
        group, _, name = what.rpartition("/")
        return shipped_conf.values(group, name, "paper")

    for trace in ("hpc2n", "sdsc_sp2"):
        name = f"ppo-dissertation-{trace.replace('_', '-')}"
        assert [(phase["scenarios"], phase["steps"]) for phase in read(f"policy/batch/{name}")["train_on"]] == [
            ([f"rlscheduler_{trace}"], 400_000)
        ]
        for scenario in (f"published_test_{trace}", f"published_test_{trace}_backfill"):
            assert name in read(f"scenario/batch/{scenario}")["policies"]
    ours, theirs = (read(f"policy/batch/ppo-dissertation-{trace}") for trace in ("hpc2n", "sdsc-sp2"))
    assert theirs["learner"] == {**ours["learner"], "n_epochs": 100}
    (phase,) = read("policy/batch/ppo-rlscheduler-lublin1")["train_on"]
    recipe = read("learner/batch/ppo_published")
    assert phase["steps"] == 100 * recipe["environments"] * recipe["n_steps"] == 100 * 25_600
    assert (
        phase["scenarios"] == ["rlscheduler_lublin1"]
        and read("scenario/batch/rlscheduler_lublin1")["windows"]["length"] == 256
    )
    assert "ppo-rlscheduler-lublin1" in read("scenario/batch/published_lublin1")["policies"]
