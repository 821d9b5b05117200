"""Finds the policy of a name on the command line of `schedlab batch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.plugins import load_object
from schedlab.learning.checkpoints import read_checkpoint
from schedlab.learning.stock.learner import KIND as NETWORK
from schedlab.studies.batch.backfilling import BACKFILLING_POLICIES, require_backfilling
from schedlab.studies.batch.learners.policy_files import KIND, load_priority
from schedlab.studies.batch.learners.stock import BatchStockLearner
from schedlab.studies.batch.legacy import WAITING_RULES
from schedlab.studies.batch.problem import RULE_MAKERS, AnyPolicy, RulePolicy
from schedlab.studies.batch.rules import ORACLES, PREDICTED, RULES, SlurmSettings
from schedlab.studies.batch.simulator.fair_share import SlurmPriority
from schedlab.studies.batch.simulator.rollouts import untrained_base

if TYPE_CHECKING:
    from schedlab.studies.batch.problem import BatchProblem

PREFIX = "learned:"


def named_policy(name: str, problem: BatchProblem) -> AnyPolicy:
    """Return the policy of a name on the command line: one that is not learned, or learned:FILE. Raises UserError."""
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
    if name == "lxf_predicted":
        return RULE_MAKERS[name]({}, problem, 0)
    if name in BACKFILLING_POLICIES:
        require_backfilling(name, problem.scenario.backfill, "--policy")
        return RulePolicy(BACKFILLING_POLICIES[name].rule, own=BACKFILLING_POLICIES[name])
    if name == "slurm":
        return RulePolicy(SlurmPriority(SlurmSettings()))
    if name in (*RULES, "planner"):
        return RulePolicy(name)
    names = [
        *RULES,
        "planner",
        "slurm",
        "lxf_predicted",
        *(f"{each}_predicted" for each in PREDICTED),
        *WAITING_RULES,
        *BACKFILLING_POLICIES,
    ]
    names += [f"{each}_true_times" for each in ORACLES]
    raise UserError(
        f"there is no policy '{name}'",
        where="--policy",
        expected=f"a policy without learning, or {PREFIX}FILE",
        remedy=did_you_mean(name, names),
    )
