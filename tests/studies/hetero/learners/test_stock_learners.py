"""The learners of Stable-Baselines3 with shipped values: the learning case, a scenario with void and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_hetero import SELECTION, first, managed_scenario, part, prepared

from schedlab.config.contract import LearnPaths, Phase, PolicySpec, Unit
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.config.settings import PolicySettings
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.episode import learning_case
from schedlab.studies.hetero.study import STUDY

THESIS = DecisionSettings(selection=SELECTION, void=False, objective="makespan", observation="minimal")


class Thesis:
    """The learning case as a problem of one workload."""

    def units(self, split):
        return [Unit("a", "workload", split, "a", 0)]

    def env(self, unit, seed):
        assert unit.id == "a"
        cluster, jobs = learning_case()
        return HeteroEnv(cluster, (jobs,), THESIS, seed)


def learn(name: str, problem: Any, folder, steps: int, **changes: Any) -> tuple[Any, list[tuple[str, float]]]:
    """Learn with the shipped values of a learner, changed; return the policy and the points of the curves."""
    values = {key: value for key, value in part(f"learner/hetero/{name}.yaml").items() if key != "name"} | changes
    spec = PolicySpec("stock", "learned", name, values, train_on=(Phase(("one",), steps),))
    paths, points = LearnPaths(None, folder / "policy.zip", folder / "progress"), []
    learner = load_object(STUDY.learners[name])()
    learner.learn(
        {"one": problem}, spec, 0, paths, lambda metric, value, of=None, **_: points.append((metric, of, value))
    )
    return learner.load(paths.checkpoint, problem), points


@pytest.mark.parametrize("name", ["ppo", "a2c", "dqn"])
def test_learning_case_is_learned(name, tmp_path):
    policy, points = learn(name, Thesis(), tmp_path, part("study/hetero.yaml")["sizes"]["small"]["case_steps"])
    env = Thesis().env(Unit("a", "workload", "test", "a", 0), 0)
    observation, _ = env.reset(seed=1)
    chances = dict(zip(env.action_names, policy.probabilities(observation, env.action_masks()), strict=True))
    assert sum(chance for action, chance in chances.items() if action.endswith("high_mem_bw")) > 0.95
    assert env.step(policy.act(observation, env.action_masks()))[4]["scores"]["makespan"] == pytest.approx(
        5.25, abs=1e-6
    )
    last = {of["action"]: value for metric, of, value in points if metric == "probability"}
    assert last == pytest.approx(chances, abs=1e-6)


def test_a_masked_policy_runs_the_scenario_it_learned(tmp_path):
    settings = managed_scenario(
        jobs=12, decisions={"observation": "small", "void": True}, replicates={"train": 2, "validation": 1, "test": 1}
    )
    problem = prepared(settings, tmp_path)
    policy, points = learn(
        "maskable_ppo", problem, tmp_path / "learned", 128, n_steps=64, n_epochs=2, validate_every=64
    )
    scores = problem.rollout(policy, first(problem)).scores
    assert scores["makespan"] > 0 and all(np.isfinite(list(scores.values())))
    assert {"return", "entropy"} <= {metric for metric, *_ in points}
    assert {"action": "void"} in [of for metric, of, _ in points if metric == "probability"]


def test_a_phase_that_would_change_the_network_is_refused_before_a_run():
    phases = [
        {"scenarios": ["learning"], "steps": 1},
        {"scenarios": ["learning"], "steps": 1, "params": {"gamma": 0.5, "net_arch": [8]}},
    ]
    policy = validate(PolicySettings, {"name": "stock", "learner": {"name": "ppo"}, "train_on": phases, "seeds": [0]})
    assert [error.where for error in STUDY.check_policy(policy, STUDY.learner_settings["ppo"]())] == [
        "train_on.1.params.net_arch"
    ]
