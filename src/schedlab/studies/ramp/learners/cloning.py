"""First parameters that decide as an expert does (behaviour cloning); it may know durations that others do not.

Source: specification of the ramp study, section 18: a reward for accepted jobs alone needs such a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch

from schedlab.config.seeds import derive_seed
from schedlab.learning.adam import TorchAdam
from schedlab.learning.checkpoints import module_arrays
from schedlab.learning.seeding import torch_stream
from schedlab.learning.stock.policy import PolicyParts, fresh_policy
from schedlab.studies.ramp.learners.afterstate.learner import Training
from schedlab.studies.ramp.learners.afterstate.policy import AfterstatePolicy

if TYPE_CHECKING:
    from schedlab.studies.ramp.learners.settings import RampMaskablePPOSettings
    from schedlab.studies.ramp.learners.stock import SeenProblem

MINIBATCH = 256  # decisions of a gradient step


def cloned_parameters(
    seen: SeenProblem,
    spaces: tuple[gym.Space, gym.Space],
    parts: PolicyParts,
    settings: RampMaskablePPOSettings,
    seed: int,
) -> dict[str, np.ndarray]:
    """Return the parameters of a policy that was shown an expert's decisions and what they returned, by name."""
    observations, masks, actions, returns = decisions(seen, settings, seed)
    with torch_stream(seed, "ramp", "clone"):
        policy = fresh_policy(parts, spaces)
        optimiser = TorchAdam(policy.parameters(), lr=settings.clone_rate)
        steps = settings.clone_passes * -(-len(actions) // MINIBATCH)
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, steps)
        for _ in range(settings.clone_passes):
            for part in torch.randperm(len(actions)).split(MINIBATCH):
                values, chances, _ = policy.evaluate_actions(
                    _taken(observations, part), actions[part], action_masks=masks[part]
                )
                loss = settings.vf_coef * ((values.flatten() - returns[part]) ** 2).mean() - chances.mean()
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(policy.parameters(), settings.max_grad_norm)
                optimiser.step()
                schedule.step()
    return module_arrays(policy)


def decisions(
    seen: SeenProblem, settings: RampMaskablePPOSettings, seed: int
) -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return observations, masks (n, actions), an expert's actions (n,) and discounted returns (n,) of episodes."""
    problem = seen.problem
    training = Training(problem, settings.expert, derive_seed(seed, "ramp", "expert"), lambda *_, **__: None)
    kept, _ = training.run(settings.expert_episodes)
    unit = seen.units("train")[0]
    expert = AfterstatePolicy(kept, training.tables, training.outlook, derive_seed(seed, "ramp", "expert acting"))
    env = seen.env(unit, 0)
    found: list[tuple[Any, np.ndarray, int]] = []
    returns: list[float] = []
    for number in range(settings.clone_episodes):
        observation, _ = env.reset(seed=derive_seed(seed, "ramp", "clone", number))
        expert.reset(unit)
        rewards, over = [], False
        while not over:
            mask = env.action_masks()
            action = expert.decide(env.simulation, mask)
            found.append((observation, mask, action))
            observation, reward, over, _, _ = env.step(action)
            rewards.append(settings.reward_scale * reward)
        total = 0.0
        for place in reversed(range(len(rewards))):
            total = rewards[place] + settings.gamma * total
            rewards[place] = total
        returns += rewards
    observations, masks, actions = zip(*found, strict=True)
    return (
        _stacked(observations),
        torch.from_numpy(np.stack(masks)),
        torch.tensor(actions),
        torch.tensor(returns, dtype=torch.float32),
    )


def _stacked(observations: tuple[Any, ...]) -> Any:
    if isinstance(observations[0], dict):
        return {key: torch.from_numpy(np.stack([one[key] for one in observations])) for key in observations[0]}
    return torch.from_numpy(np.stack(observations))


def _taken(observations: Any, part: torch.Tensor) -> Any:
    return (
        {key: values[part] for key, values in observations.items()}
        if isinstance(observations, dict)
        else observations[part]
    )
