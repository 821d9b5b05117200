"""What the study's own learners share: spaces that agree, preferences to learn, and environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import Checkpoint, read_checkpoint
from schedlab.studies.cloud.learners.exploration import committed_actions
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv


def problem_sizes(problem: CloudProblem) -> list[int]:
    """Return how many components are observed and how many actions offered."""
    units: Sequence[Unit] = [unit for split in ("train", "test") for unit in problem.units(split)]
    env = problem.env(units[0], 0)
    return [int(np.prod(env.observation_space.shape or ())), len(env.actions)]


def read_policy(checkpoint: Path, kind: str, problem: CloudProblem) -> tuple[Checkpoint, list[int]]:
    """Return a policy's file and sizes (problem_sizes). Raises UserError where it has other spaces."""
    kept = read_checkpoint(checkpoint, kind)
    sizes = problem_sizes(problem)
    if list(kept.meta["sizes"]) != sizes:
        what = f"it was learned for {kept.meta['sizes'][0]} components and {kept.meta['sizes'][1]} actions"
        raise UserError(what, where=str(checkpoint), expected=f"{sizes[0]} and {sizes[1]}, as in this scenario")
    return kept, sizes


def require_learned(preference: str, known: Iterable[str]) -> None:
    """Raise UserError where a policy knows no such preference."""
    if preference not in known:
        what = f"the policy knows no preference {preference}"
        raise UserError(what, where="learned policy", expected=f"one of {', '.join(known)}")


def trained_preferences(problems: Mapping[str, CloudProblem]) -> tuple[list[int], list[str]]:
    """Return sizes as problem_sizes does, and the preferences of all training units in their order.

    Raises UserError where scenarios differ in their spaces or have no training unit.
    """
    sizes = {name: problem_sizes(problem) for name, problem in problems.items()}
    first, common = next(iter(sizes.items()))
    for name, found in sizes.items():
        if found != common:
            what = f"{found[0]} components are observed and {found[1]} actions offered"
            raise UserError(
                what, where=f"scenario {name}", expected=f"{common[0]} and {common[1]}, as in scenario {first}"
            )
    wanted = {preference_of(unit): None for problem in problems.values() for unit in problem.units("train")}
    if not wanted:
        raise UserError("no run to learn on", where=f"scenario {first}: replicates.train", expected="1 or more")
    return common, list(wanted)


def environments(problems: Mapping[str, CloudProblem], count: int) -> Callable[[str, str], CloudReplayVectorEnv]:
    """Return (scenario, preference) -> `count` episodes side by side, made when first asked for and kept."""
    return cache(lambda scenario, preference: CloudReplayVectorEnv(problems[scenario].replay, count, preference))


def committed_choices(env: CloudReplayVectorEnv, targets: np.ndarray) -> np.ndarray:
    """Return the numbers of the actions, (N,), that the first N episodes take straight on to their targets."""
    here = env.here[: len(targets)]
    straight = committed_actions(env.replay.lattice, here, targets, env.replay.allowed[here])
    return np.searchsorted(env.actions, straight)
