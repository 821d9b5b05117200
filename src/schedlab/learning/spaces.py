"""Observation and action spaces of scenarios: told in words, and held against each other and against a policy's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Problem, Split
from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import gymnasium as gym

    Spaces = tuple[gym.Space[Any], gym.Space[Any]]  # of observations, of actions

ANY_SPLIT: tuple[Split, ...] = ("test", "validation", "train")


def first_environment(scenario: str, problem: Problem, splits: tuple[Split, ...]) -> gym.Env:
    """Return an environment of a problem; UserError where it has no unit of the splits or nothing to step."""
    unit = next((unit for split in splits for unit in problem.units(split)), None)
    if unit is None:
        raise UserError(
            "the scenario has no units", where=f"scenario {scenario}", expected=f"at least one of {' or '.join(splits)}"
        )
    env = problem.env(unit, unit.seed)
    if env is None:
        raise UserError(
            "the scenario has no environment",
            where=f"scenario {scenario}",
            expected="something to step for a stock learner",
        )
    return env


def told(space: gym.Space[Any], bounds: bool = False) -> str:
    """Return what a space holds, in words that are equal where a policy fits both; `bounds`: of vectors as well."""
    import gymnasium as gym

    if isinstance(space, gym.spaces.Discrete):
        return f"one of {space.n} numbers"
    if isinstance(space, gym.spaces.Box):
        limits = f" from {space.low.min():g} to {space.high.max():g}" if bounds else ""
        return f"{' x '.join(str(size) for size in space.shape) or 'one'} values of {space.dtype}{limits}"
    if isinstance(space, gym.spaces.Dict):
        return ", ".join(f"{name}: {told(part)}" for name, part in space.spaces.items())
    return str(space)


def told_spaces(spaces: Spaces) -> dict[str, str]:
    """Return what a checkpoint keeps of the spaces that its policy was learned for."""
    return {"observations": told(spaces[0]), "actions": told(spaces[1], bounds=True)}


def require_spaces(spaces: Spaces, learned: Mapping[str, str], checkpoint: str) -> None:
    """Hold the spaces of a scenario against those that a policy was learned for. Raises UserError."""
    for name, here in told_spaces(spaces).items():
        if learned[name] != here:
            raise UserError(
                f"the policy was learned for other {name}: {learned[name]}", where=checkpoint, expected=here
            )


def common_spaces(envs: Mapping[str, gym.Env]) -> Spaces:
    """Return the spaces that the environments of scenarios have in common. Raises UserError where they differ."""
    first, env = next(iter(envs.items()))
    spaces = (env.observation_space, env.action_space)
    for scenario, other in envs.items():
        found = told_spaces((other.observation_space, other.action_space))
        for name, here in told_spaces(spaces).items():
            if found[name] != here:
                raise UserError(
                    f"{name}: {found[name]}", where=f"scenario {scenario}", expected=f"{here}, as in scenario {first}"
                )
    return spaces
