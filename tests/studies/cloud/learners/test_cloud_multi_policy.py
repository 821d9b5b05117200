"""The multi-policy actor-critic: actors change, critics are reset as often as told, it resumes bit for bit, the right
agent acts.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from small_problems import problem

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import read_checkpoint
from schedlab.studies.cloud.learners import multi_policy as learner_multi_policy
from schedlab.studies.cloud.learners.actor_critic import (
    ActorCritic,
    action_values,
    build_network,
    probabilities,
    uncertainty,
)
from schedlab.studies.cloud.learners.multi_policy import MultiPolicyLearner, chosen_preference
from schedlab.studies.cloud.learners.settings import MultiPolicySettings
from schedlab.studies.cloud.problem import preference_of
from schedlab.studies.cloud.replay.sla import ITEMS

LITTLE = {
    "hidden": 16,
    "episodes_per_round": 4,
    "gradient_steps": 4,
    "batch": 16,
    "buffer": 200,
    "save_every": 2,
    "reset_interval": 4,
}
LITTLE |= {"settle": 0}  # so few steps


def learn(folder, problems, episodes, seed=0, **params):
    """Learn and return the checkpoint."""
    spec = PolicySpec(
        "learned", "learned", "multi_policy", LITTLE | params, train_on=(Phase(tuple(problems), episodes),)
    )
    folder.mkdir(exist_ok=True)
    paths = LearnPaths(None, folder / "policy.zip", folder)
    budget = MultiPolicyLearner().learn(problems, spec, seed, paths, lambda *point, **place: None)
    assert budget.episodes == -(-episodes // 4) * 4 * len(read_checkpoint(paths.checkpoint).meta["preferences"])
    return paths.checkpoint


def test_every_actor_changes_and_acts_within_the_mask(tmp_path):
    here = problem()
    checkpoint = learn(tmp_path, {"example": here}, 8)
    kept = read_checkpoint(checkpoint)
    policy = MultiPolicyLearner().load(checkpoint, here)
    for unit in here.units("test"):
        before = build_network((26, 27), 16, 0, "actor", preference_of(unit)).state_dict()
        assert all(np.abs(kept.group(preference_of(unit))[key] - before[key].numpy()).max() > 1e-4 for key in before)
        scores = here.rollout(policy, unit).scores
        assert scores["out_of_memory"] == 0 and 0.0 < scores["uncertainty"] < 0.5


def filled(settings: MultiPolicySettings) -> tuple[ActorCritic, np.random.Generator]:
    """An agent that remembers an action of four which pays 1."""
    agent, rng = ActorCritic((3, 4), settings, 0, "cost"), np.random.default_rng(0)
    actions, seen, masks = rng.integers(4, size=200), np.ones((200, 3), np.float32), np.ones((200, 4), bool)
    rewards, done = (actions == 2).astype(np.float32), np.ones(200, np.float32)
    decisions = {"seen": seen, "masks": masks, "actions": actions, "rewards": rewards, "done": done}
    agent.memory.add(decisions | {"seen_next": seen, "masks_next": masks})
    return agent, rng


@pytest.mark.parametrize("value", ["expected", "mixed"])
def test_an_agent_learns_which_action_pays(value):
    settings = MultiPolicySettings(**LITTLE | {"policy_value": value, "lr_actor": 0.01, "lr_critic": 0.01, "batch": 64})
    agent, rng = filled(settings)
    for step in range(200):
        agent.learn(rng, step)
    seen, masks = np.ones((1, 3), np.float32), np.ones((1, 4), bool)
    settings = settings.model_copy(update={"exploration_noise": 0.0})
    agent.settings = settings
    assert agent.act(seen, masks, rng).tolist() == [2]
    masks[0, 2] = False
    assert agent.act(seen, masks, rng).tolist() != [2]


def test_an_actor_waits_for_a_new_critic():
    agent, rng = filled(MultiPolicySettings(**LITTLE | {"settle": 3, "reset_probability": 1.0}))

    def moved() -> bool:
        before = agent.actor[0].weight.detach().numpy().copy()
        agent.learn(rng, 0)
        return not np.array_equal(agent.actor[0].weight.detach().numpy(), before)

    assert [moved() for _ in range(5)] == [False, False, False, True, True]
    assert agent.maybe_reset(0.0, rng)
    assert [moved() for _ in range(4)] == [False, False, False, True]


@pytest.mark.parametrize(("weight", "certain"), [(1.0, False), (0.0, True)])
def test_entropy_keeps_an_actor_from_certainty(weight, certain):
    agent, rng = filled(MultiPolicySettings(**LITTLE | {"entropy": weight, "lr_actor": 0.01, "lr_critic": 0.01}))
    for step in range(200):
        agent.learn(rng, step)
    with torch.no_grad():
        likely = probabilities(agent.actor.eval(), torch.ones((1, 3)), torch.ones((1, 4), dtype=torch.bool)).max()
    assert (likely > 0.9) == certain


def test_an_actor_comes_to_rest_at_the_end_of_a_phase():
    agent, rng = filled(MultiPolicySettings(**LITTLE))
    before = agent.actor[0].weight.detach().numpy().copy()
    agent.learn(rng, 0, left=0.0)
    assert np.array_equal(agent.actor[0].weight.detach().numpy(), before)


def test_one_policy_for_all_learns_the_balanced_one_alone(tmp_path):
    here = problem()
    checkpoint = learn(tmp_path, {"example": here}, 4, choice="balanced")
    assert read_checkpoint(checkpoint).meta["preferences"] == ["balanced"]
    policy, courses = MultiPolicyLearner().load(checkpoint, here), set()
    for unit in here.units("test"):
        tables = here.rollout(policy, unit).details
        courses.add(tuple(tables["allocation_history"]["action"]))
        assert (
            set(tables["rl_action_log"]["rl_policy_used"]) == {"balanced"}
            and (tables["rl_action_log"]["rl_uncertainty"] > 0).all()
        )
    assert len(courses) == 1 and len(here.units("test")) == 4


def test_values_of_all_actions_are_those_of_one_action_vectors():
    critic = build_network((3 + 4, 1), 8, 0, "critic").eval()
    seen = torch.rand((5, 3))
    one_by_one = [critic(torch.cat([seen, torch.eye(4)[[action] * 5]], dim=1))[:, 0] for action in range(4)]
    assert torch.allclose(action_values(critic, seen, 4), torch.stack(one_by_one, dim=1), atol=1e-6)


def test_a_reset_draws_another_critic_with_the_probability_told():
    settings = MultiPolicySettings(**LITTLE | {"reset_probability": 0.3})
    agent, rng = ActorCritic((3, 4), settings, 0, "cost"), np.random.default_rng(0)
    before = agent.critic[0].weight.detach().numpy().copy()
    for violated, expected in ((0.0, 0.3), (3.0, 0.48)):
        share = np.mean([agent.maybe_reset(violated, rng) for _ in range(600)])
        assert abs(share - expected) < 0.06
    assert agent.resets > 300 and not np.array_equal(agent.critic[0].weight.detach().numpy(), before)
    settings = settings.model_copy(update={"reset_probability": 0.0})
    agent.settings = settings
    assert not any(agent.maybe_reset(6.0, rng) for _ in range(100))


def test_an_interrupted_job_ends_in_the_same_bytes_and_another_seed_in_others(tmp_path, monkeypatch):
    here = {"example": problem(preferences=["cost", "time"])}
    whole = learn(tmp_path / "whole", here, 24)
    collect, calls = learner_multi_policy._Learning._collect, []

    def stop(*arguments):
        calls.append(1)
        if len(calls) > 9:
            raise KeyboardInterrupt
        return collect(*arguments)

    monkeypatch.setattr(learner_multi_policy._Learning, "_collect", stop)
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "cut", here, 24)
    monkeypatch.setattr(learner_multi_policy._Learning, "_collect", collect)
    assert learn(tmp_path / "cut", here, 24).read_bytes() == whole.read_bytes()
    assert learn(tmp_path / "other", here, 24, seed=1).read_bytes() != whole.read_bytes()
    assert sum(read_checkpoint(whole).meta["resets"].values()) > 0


def test_who_acts_follows_violations():
    fine = {"time": 0.1, "cost": 0.1, **{f"{item}_met": 1.0 for item in ITEMS}}
    assert chosen_preference(fine, "cost", "violations") == "cost" == chosen_preference(fine, "cost", "sla_first")
    bad = fine | {"memory_met": 0.0, "gpu_util_met": 0.0, "cpu_util_met": 0.0}
    assert (
        chosen_preference(bad, "cost", "violations") == "balanced"
        and chosen_preference(bad, "cost", "preference") == "cost"
    )
    assert chosen_preference(bad, "cost", "sla_first") == "resource"
    assert chosen_preference(fine, "cost", "balanced") == "balanced"
    assert chosen_preference(bad | {"cost": 0.81}, "time", "sla_first") == "cost"
    assert chosen_preference(bad | {"cost": 0.81, "time_met": 0.0}, "cost", "sla_first") == "time"


def test_uncertainty_is_the_spread_over_dropout_and_the_same_each_time():
    actor = build_network((3, 4), 8, 0, "actor").eval()
    seen, mask = np.ones(3, np.float32), np.array([True, True, True, False])
    found = uncertainty(actor, seen, mask)
    assert found == uncertainty(actor, seen, mask) > 0.0 and not actor.training
    with torch.no_grad():
        actor[-1].weight.zero_()
    assert uncertainty(actor, seen, mask) < 1e-9


def test_mistakes_are_told(tmp_path):
    checkpoint = learn(tmp_path, {"example": problem(preferences=["cost"])}, 4)
    with pytest.raises(UserError, match="26 components and 27 actions"):
        MultiPolicyLearner().load(checkpoint, problem(environment={"space": "paper9"}))
    other = problem()
    policy = MultiPolicyLearner().load(checkpoint, other)
    with pytest.raises(UserError, match="balanced"):
        policy.reset(next(unit for unit in other.units("test") if preference_of(unit) == "balanced"))
