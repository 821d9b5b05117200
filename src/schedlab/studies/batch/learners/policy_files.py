"""Learned policies of the batch study as files: what `--policy learned:PATH` and the learners load.

A file of kind `batch-priority` holds a linear priority (its features and weights), a policy that rolls out, or the name
of the rule that was chosen; those of stock learners hold a network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.plugins import load_object
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.learning.stock.learner import KIND as NETWORK
from schedlab.studies.batch.learners.stock import BatchStockLearner
from schedlab.studies.batch.legacy import WAITING_RULES
from schedlab.studies.batch.problem import AnyPolicy, RulePolicy
from schedlab.studies.batch.rules import NAMES, ORACLES, PREDICTED, RULES, LinearPriority
from schedlab.studies.batch.simulator.rollouts import RolloutPolicy, untrained_base
from schedlab.studies.batch.simulator.simulate import Priorities

if TYPE_CHECKING:
    from schedlab.studies.batch.problem import BatchProblem

KIND = "batch-priority"
PREFIX = "learned:"


def save_priority(path: Path, policy: Priorities, **about: Any) -> None:
    """Write a linear priority, a rollout policy, or a rule by name, with plain values that say how it was found."""
    if isinstance(policy, str):
        write_checkpoint(path, {"kind": KIND, "rule": policy, "about": about})
    elif isinstance(policy, RolloutPolicy):
        write_checkpoint(path, {"kind": KIND, "samples": policy.samples, "about": about}, policy.arrays())
    else:
        write_checkpoint(path, {"kind": KIND, "features": list(NAMES), "about": about}, {"weights": policy.weights})


def named_policy(name: str, problem: BatchProblem) -> AnyPolicy:
    """Return the policy of a name on the command line: one without learning, or learned:FILE. Raises UserError."""
    if not name.startswith(PREFIX):
        return _unlearned(name, problem)
    path = Path(name.removeprefix(PREFIX))
    checkpoint = read_checkpoint(path)
    kind = checkpoint.meta.get("kind")
    if kind not in (KIND, NETWORK):
        expected = f"'{KIND}' or '{NETWORK}', a policy of the batch study"
        raise UserError(f"the checkpoint is of kind '{kind}'", where=str(path), expected=expected)
    if kind == KIND:
        return RulePolicy(load_priority(path))
    return BatchStockLearner(checkpoint.meta["algorithm"]).load(path, problem)


def _unlearned(name: str, problem: BatchProblem) -> AnyPolicy:
    """A policy that learns nothing. Predictions have their prior from the jobs before the window. Raises UserError."""
    if name in WAITING_RULES:
        return load_object(WAITING_RULES[name])({}, problem, 0)
    if name.removesuffix("_true_times") in ORACLES and name.endswith("_true_times"):
        return RulePolicy(name.removesuffix("_true_times"), true_times=True)
    if name.endswith("_predicted") and name.removesuffix("_predicted") in PREDICTED:
        starts = problem.scenario.windows.starts
        before = problem.jobs.take(slice(0, min(starts) if starts else problem.part("train")[1]))
        return RulePolicy(untrained_base(name.removesuffix("_predicted"), before))
    if name in (*RULES, "planner"):
        return RulePolicy(name)
    names = [*RULES, "planner", *(f"{each}_predicted" for each in PREDICTED), *WAITING_RULES]
    names += [f"{each}_true_times" for each in ORACLES]
    raise UserError(
        f"there is no policy '{name}'",
        where="--policy",
        expected=f"a policy without learning, or {PREFIX}FILE",
        remedy=did_you_mean(name, names),
    )


def load_priority(path: Path | str) -> Priorities:
    """Return the policy of a file. Raises UserError where it is missing, damaged, or made for other features."""
    checkpoint = read_checkpoint(path, KIND)
    rule = checkpoint.meta.get("rule")
    if isinstance(rule, str) and (rule in RULES or rule == "planner"):
        return rule
    if "samples" in checkpoint.meta:
        return RolloutPolicy.from_arrays(checkpoint.arrays, checkpoint.meta["samples"], str(path))
    features, weights = checkpoint.meta.get("features"), checkpoint.arrays.get("weights")
    if features != list(NAMES) or weights is None or weights.shape != (len(NAMES),) or not np.isfinite(weights).all():
        expected = f"a weight for each of {', '.join(NAMES)}"
        raise UserError("the policy reads other features", where=str(path), expected=expected, remedy="learn it anew")
    return LinearPriority(weights)
