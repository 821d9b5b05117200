"""Initial parameters that imitate an expert (behaviour cloning), which may know durations that the policy does not.

Policies that are rewarded only for accepted jobs need such a start (docs/notebook/ramp.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch

from schedlab.config.seeds import derive_seed
from schedlab.learning.checkpoints import module_arrays
from schedlab.learning.imitation import Decided, demonstrated, fit
from schedlab.learning.job import LearningJob
from schedlab.learning.policy_gradient import discounted
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
    job: LearningJob,
) -> dict[str, np.ndarray]:
    """Return the parameters, by name, of a policy trained on an expert's decisions and their returns."""
    observations, masks, actions, returns = decisions(seen, settings, job)
    with torch_stream(job.seed, "ramp", "clone"):
        policy = fresh_policy(parts, spaces)

        def loss_of(part: torch.Tensor, number: int) -> torch.Tensor:
            del number
            values, chances, _ = policy.evaluate_actions(
                _taken(observations, part), actions[part], action_masks=masks[part]
            )
            return settings.vf_coef * ((values.flatten() - returns[part]) ** 2).mean() - chances.mean()

        fit(
            policy.parameters(),
            loss_of,
            len(actions),
            settings.clone_passes,
            MINIBATCH,
            settings.clone_rate,
            final_rate=0.0,
            max_grad_norm=settings.max_grad_norm,
        )
    return module_arrays(policy)


def decisions(
    seen: SeenProblem, settings: RampMaskablePPOSettings, job: LearningJob
) -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the decisions of an expert in new episodes: observations, masks (n, actions), its actions (n,) and the
    discounted returns (n,).

    The expert is trained first. Its training and these episodes count in the budget of the job.
    """
    problem = seen.problem
    training = Training(problem, settings.expert, derive_seed(job.seed, "ramp", "expert"), _unrecorded, job.budget)
    training.resume_steps(job)
    kept, _ = training.run(settings.expert_episodes)
    unit = seen.units("train")[0]
    expert = AfterstatePolicy(kept, training.tables, training.outlook, derive_seed(job.seed, "ramp", "expert acting"))
    env = seen.env(unit, 0)
    found: list[Decided] = []
    returns: list[np.ndarray] = []
    for number in range(settings.clone_episodes):
        observation, _ = env.reset(seed=derive_seed(job.seed, "ramp", "clone", number))
        expert.reset(unit)
        decided = demonstrated(env, observation, lambda mask: expert.choice(env.simulation, mask)[0])
        job.budget.decisions += len(decided)
        found += decided
        returns.append(discounted([settings.reward_scale * each.reward for each in decided], settings.gamma))
    observations, masks, actions, _ = zip(*found, strict=True)
    return (
        _stacked(observations),
        torch.from_numpy(np.stack(masks)),
        torch.tensor(actions),
        torch.from_numpy(np.concatenate(returns).astype(np.float32)),
    )


def _unrecorded(metric: str, value: float, **place: Any) -> None:
    """Ignore a value: the learning curves of a policy do not contain those of its expert."""


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
