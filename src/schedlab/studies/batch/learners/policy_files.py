"""Learned policies of the batch study as files: what `--policy learned:PATH` and the learners load.

A file of kind `batch-priority` holds a linear priority (its features and weights), a policy that rolls out, an order
from history, or the name of the rule that was chosen; those of stock learners hold a network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.studies.batch.rules import NAMES, RULES, LinearPriority
from schedlab.studies.batch.simulator.history import PARAMETERS, HistoryPriority
from schedlab.studies.batch.simulator.rollouts import RolloutPolicy
from schedlab.studies.batch.simulator.simulate import Priorities

if TYPE_CHECKING:
    pass

KIND = "batch-priority"


def save_priority(path: Path, policy: Priorities, **about: Any) -> None:
    """Write a policy, with plain values that say how it was found."""
    if isinstance(policy, str):
        write_checkpoint(path, {"kind": KIND, "rule": policy, "about": about})
    elif isinstance(policy, RolloutPolicy):
        write_checkpoint(path, {"kind": KIND, "samples": policy.samples, "about": about}, policy.arrays())
    elif isinstance(policy, HistoryPriority):
        write_checkpoint(
            path, {"kind": KIND, "parameters": list(PARAMETERS), "about": about}, {"values": policy.values}
        )
    elif isinstance(policy, LinearPriority):
        write_checkpoint(path, {"kind": KIND, "features": list(NAMES), "about": about}, {"weights": policy.weights})
    else:
        raise TypeError(f"a {type(policy).__name__} is not learned and has no file")


def load_priority(path: Path | str) -> Priorities:
    """Return the policy in a file. Raises UserError if it is missing or damaged, or was made for other features."""
    checkpoint = read_checkpoint(path, KIND)
    rule = checkpoint.meta.get("rule")
    if isinstance(rule, str) and (rule in RULES or rule == "planner"):
        return rule
    if "samples" in checkpoint.meta:
        return RolloutPolicy.from_arrays(checkpoint.arrays, checkpoint.meta["samples"], str(path))
    if "parameters" in checkpoint.meta:
        values = checkpoint.arrays.get("values")
        if checkpoint.meta["parameters"] != list(PARAMETERS) or values is None or values.shape != (len(PARAMETERS),):
            expected = f"a value for each of {', '.join(PARAMETERS)}"
            raise UserError(
                "the policy has other parameters", where=str(path), expected=expected, remedy="learn it again"
            )
        return HistoryPriority(np.asarray(values))
    features, weights = checkpoint.meta.get("features"), checkpoint.arrays.get("weights")
    if features != list(NAMES) or weights is None or weights.shape != (len(NAMES),) or not np.isfinite(weights).all():
        expected = f"a weight for each of {', '.join(NAMES)}"
        raise UserError("the policy reads other features", where=str(path), expected=expected, remedy="learn it again")
    return LinearPriority(weights)
