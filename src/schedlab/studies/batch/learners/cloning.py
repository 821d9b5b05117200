"""Behaviour cloning: first parameters with which a policy chooses like a rule in training windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from schedlab.config.contract import Budget
from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.learning.checkpoints import module_arrays
from schedlab.learning.imitation import Decided, demonstrated, fit
from schedlab.learning.job import LearningJob
from schedlab.learning.seeding import torch_stream
from schedlab.learning.stock.policy import fresh_policy
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.learners.stock_policy import queue_policy
from schedlab.studies.batch.rules import Priority, priority, require_rule
from schedlab.studies.batch.simulator.stepper import score_of

if TYPE_CHECKING:
    import gymnasium as gym

    from schedlab.studies.batch.env.env import BatchEnv
    from schedlab.studies.batch.learners.stock_settings import BatchMaskablePPOSettings
    from schedlab.studies.batch.learners.training_windows import TrainingProblem

MINIBATCH = 512  # choices of a gradient step


def cloned_parameters(
    problems: Sequence[TrainingProblem],
    spaces: tuple[gym.Space, gym.Space],
    settings: BatchMaskablePPOSettings,
    job: LearningJob,
) -> dict[str, np.ndarray]:
    """Return the parameters, by name, of a policy fitted to a rule's choices; those of the value network are new."""
    rule = str(settings.clone_rule)
    require_rule(rule, "learner.clone_rule")
    shown = choices(problems, (rule,), settings.clone_windows, job.seed, job.budget)
    observations, masks, chosen = (torch.from_numpy(each) for each in shown)
    with torch_stream(job.seed, "batch", "clone"):
        policy = fresh_policy(queue_policy(settings, *spaces), spaces)

        def loss_of(part: torch.Tensor, number: int) -> torch.Tensor:
            del number
            scores = policy.action_net(policy.mlp_extractor.forward_actor(observations[part]))
            return torch.nn.functional.cross_entropy(scores.masked_fill(~masks[part], -1e8), chosen[part])

        fit(policy.action_net.parameters(), loss_of, len(chosen), settings.clone_passes, MINIBATCH, settings.clone_rate)
    return module_arrays(policy)


def choices(
    problems: Sequence[TrainingProblem], rules: Sequence[str], windows: int, seed: int, budget: Budget
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the observations (n, size), masks (n, 128) and choices (n,) of a rule, at the decisions of training
    windows with more than one option.

    Of several rules the one of the lowest mean bounded slowdown on the window. All decisions count in the budget.
    """
    rng = generator(seed, "batch", "clone-windows")
    found: list[Decided] = []
    for number in range(windows):
        problem = problems[number % len(problems)]
        units = problem.units("train")
        unit = units[int(rng.integers(len(units)))]
        env: Any = problem.env(unit, 0).unwrapped
        observation, info = env.reset(seed=int(rng.integers(2**31)))
        jobs = problem.problem.jobs.take(slice(info["start"], info["start"] + info["jobs"]))
        scores = priority(_best(rules, env), jobs)
        decided = demonstrated(env, observation, partial(_first_row, env, scores))
        budget.decisions += len(decided)
        found += [each for each in decided if each.mask.sum() > 1]
    if not found:
        raise UserError(
            f"{', '.join(rules)} never had a choice", where="the training windows", expected="windows whose jobs wait"
        )
    observations, masks, rows, _ = zip(*found, strict=True)
    return np.stack(observations), np.stack(masks), np.array(rows, dtype=np.int64)


def _best(rules: Sequence[str], env: BatchEnv) -> str:
    """The rule of the lowest mean bounded slowdown on the window that an environment has begun."""
    if len(rules) == 1:
        return rules[0]
    stepper, plain = env.stepper, EnvironmentSettings()
    return min(rules, key=lambda rule: score_of(stepper.schedule_under(0, rule), stepper.task.machine, plain))


def _first_row(env: BatchEnv, scores: Priority, mask: np.ndarray) -> int:
    """The row of the job that comes first under a rule, now."""
    clock, jobs = float(env.stepper.windows.clock[0, 0]), env.stepper.episodes.rows[0].tolist()
    allowed = np.flatnonzero(mask[: env.stepper.episodes.found[0]]).tolist()
    return min(allowed, key=lambda row: (scores.at(jobs[row], clock), jobs[row]))
