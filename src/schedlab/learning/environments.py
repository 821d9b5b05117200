"""Base class of learners in the environments of any study, and checks that the observations and actions of scenarios
and policies agree.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from schedlab.config.contract import PolicySpec, Problem, Split
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, validate
from schedlab.learning.checkpoints import Checkpoint, read_checkpoint
from schedlab.learning.seeding import use_one_thread

if TYPE_CHECKING:
    import gymnasium as gym

    Spaces = tuple[gym.Space[Any], gym.Space[Any]]  # of observations, of actions

ANY_SPLIT: tuple[Split, ...] = ("test", "validation", "train")


def first_environment(scenario: str, problem: Problem, splits: tuple[Split, ...]) -> gym.Env:
    """Return an environment of a problem. Raises UserError if the problem has no unit of the splits or no
    environment.
    """
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
    """Return a description of a space; a policy fits two spaces if their descriptions are equal. `bounds`: include the
    bounds of vectors.
    """
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
    """Return the descriptions of a policy's spaces, which its checkpoint stores."""
    return {"observations": told(spaces[0]), "actions": told(spaces[1], bounds=True)}


def require_spaces(spaces: Spaces, learned: Mapping[str, str], checkpoint: str) -> None:
    """Raise UserError if the spaces of a scenario differ from those for which a policy was learned."""
    for name, here in told_spaces(spaces).items():
        if learned[name] != here:
            raise UserError(
                f"the policy was learned for other {name}: {learned[name]}", where=checkpoint, expected=here
            )


def common_spaces(envs: Mapping[str, gym.Env]) -> Spaces:
    """Return the spaces that the environments of scenarios have in common. Raises UserError if they differ."""
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


class EnvironmentLearner:
    """Base class of learners in environments. A study's learner defines a problem for learning in place of a scenario's
    own, and how the learned policy acts in the scenario.

    kind: kind of its checkpoints, whose meta.json contains the settings and the spaces. settings: typed values.
    """

    kind: ClassVar[str]
    settings: type[Settings]

    @abstractmethod
    def policy(self, kept: Checkpoint, settings: Any, spaces: Spaces) -> Any:
        """Return the policy of a checkpoint."""

    def check(self, problems: Mapping[str, Problem], spec: PolicySpec) -> None:
        """Raise UserError for scenarios on which a policy cannot be learned together; by default, all can be
        combined.
        """
        del problems, spec

    def seen(self, problem: Problem, settings: Any) -> Problem:
        """Return the problem for learning in place of a scenario's own, for example with fewer units or other
        observations; by default the same problem.
        """
        del settings
        return problem

    def acting(self, policy: Any, settings: Any, problem: Problem) -> Any:
        """Return the policy that acts in a scenario's problem, given one that acts in the learner's environments; by
        default the same policy.
        """
        del settings, problem
        return policy

    def read(self, checkpoint: Path) -> Checkpoint:
        """Return a checkpoint of this learner. Raises UserError for another kind."""
        return read_checkpoint(checkpoint, self.kind)

    def load(self, checkpoint: Path, problem: Problem) -> Any:
        """Return the learned policy. Raises UserError if it was learned for other observations or actions."""
        use_one_thread()
        kept = self.read(checkpoint)
        settings = validate(
            self.settings, kept.meta["settings"], lambda path: f"{checkpoint}: settings.{'.'.join(map(str, path))}"
        )
        env = first_environment("to act in", self.seen(problem, settings), ANY_SPLIT)
        spaces = (env.observation_space, env.action_space)
        require_spaces(spaces, kept.meta, str(checkpoint))
        return self.acting(self.policy(kept, settings, spaces), settings, problem)
