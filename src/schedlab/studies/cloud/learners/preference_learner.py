"""Common part of learners with one network for each preference: checks of the spaces, the preferences to learn, the
policy file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, validate
from schedlab.learning.checkpoints import grouped, load_module, module_arrays, read_checkpoint, write_checkpoint
from schedlab.learning.job import Learning, LearningJob
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.cloud.problem import NEAR, CloudProblem, preference_of
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv

if TYPE_CHECKING:
    from torch import nn


def problem_sizes(problem: CloudProblem) -> list[int]:
    """Return the number of observed components and the number of actions."""
    units: Sequence[Unit] = [unit for split in ("train", "test") for unit in problem.units(split)]
    env = problem.env(units[0], 0)
    return [int(np.prod(env.observation_space.shape or ())), len(env.actions)]


def require_learned(preference: str, known: Iterable[str]) -> None:
    """Raise UserError if a policy was not learned for this preference."""
    if preference not in known:
        what = f"the policy knows no preference {preference}"
        raise UserError(what, where="learned policy", expected=f"one of {', '.join(known)}")


def trained_preferences(problems: Mapping[str, CloudProblem]) -> tuple[list[int], list[str]]:
    """Return the sizes of the spaces (`problem_sizes`) and the preferences of all training units in their order.

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


def _of_members(
    problems: Mapping[str, CloudProblem], spec: PolicySpec
) -> tuple[Mapping[str, CloudProblem], PolicySpec]:
    """Return the problems and the specification with each scenario of several jobs replaced by its jobs."""
    members = {name: problem.members(name) for name, problem in problems.items()}
    phases = [
        replace(phase, scenarios=tuple(each for name in phase.scenarios for each in members[name]))
        for phase in spec.train_on
    ]
    return {each: it for found in members.values() for each, it in found.items()}, replace(spec, train_on=tuple(phases))


class EpisodesNeeded:
    """Number of training episodes of each preference until its policy first came near the best plan. It does not affect
    the learning.
    """

    def __init__(self) -> None:
        self.first: dict[str, int] = {}

    def note(self, problem: CloudProblem, preference: str, objective: float, episodes: int) -> None:
        """Record the objective that a preference reached after a number of episodes."""
        regret = problem.regret(preference, objective)
        if regret is not None and regret <= NEAR:
            self.first.setdefault(preference, episodes)


class PreferenceLearning(Learning):
    """The state of such a learner.

    preferences  preferences to learn, from the training units; sizes: see `problem_sizes`
    env          (scenario, preference) -> parallel episodes, created when first requested and kept
    phases       number of phases of the job
    """

    def __init__(self, job: LearningJob, problems: Mapping[str, CloudProblem], settings: Any, abreast: int) -> None:
        self.job, self.problems, self.settings = job, problems, settings
        self.sizes, self.preferences = trained_preferences(problems)
        self.phases = len(job.spec.train_on)
        self.env = cache(
            lambda scenario, preference: CloudReplayVectorEnv(problems[scenario].replay, abreast, preference)
        )

    @abstractmethod
    def networks_to_keep(self) -> Mapping[str, nn.Module]:
        """Return the network of each preference."""

    def about(self) -> dict[str, Any]:
        """Return further plain values for the policy file."""
        return {}


class PreferenceLearner:
    """Learns a network for each preference of the problems' training units. An interrupted job resumes with the same
    bytes.

    kind: kind of its policy files. settings, learning: the class of its typed settings, and that of its learning job.
    """

    kind: ClassVar[str]
    settings: ClassVar[type[Settings]]
    learning: ClassVar[Any]

    @abstractmethod
    def network(self, sizes: Sequence[int], hidden: int, preference: str) -> nn.Sequential:
        """Return the network into which stored parameters are loaded."""

    @abstractmethod
    def policy(self, networks: dict[str, nn.Sequential], meta: Mapping[str, Any], problem: CloudProblem) -> Any:
        """Return the policy of learned networks."""

    def learn(
        self, problems: Mapping[str, CloudProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase, write the final parameters and return the budget used.

        Raises UserError where scenarios differ in their spaces or have no training unit.
        """
        use_one_thread()
        settings: Any = validate(self.settings, spec.params)
        problems, spec = _of_members(problems, spec)
        job = LearningJob(self.kind, settings.model_dump(), spec, seed, paths, curve)
        learning = self.learning(job, problems, settings)
        job.run(learning, learning.phases)
        networks = learning.networks_to_keep()
        meta = {"kind": self.kind, "hidden": settings.hidden, "sizes": learning.sizes, "preferences": sorted(networks)}
        arrays = grouped({name: module_arrays(network) for name, network in networks.items()})
        write_checkpoint(paths.checkpoint, meta | learning.about(), arrays)
        return job.budget

    def load(self, checkpoint: Path, problem: CloudProblem) -> Any:
        """Return the learned policy. Raises UserError if it was learned for other observations or actions."""
        kept, sizes = read_checkpoint(checkpoint, self.kind), problem_sizes(problem)
        if list(kept.meta["sizes"]) != sizes:
            what = f"it was learned for {kept.meta['sizes'][0]} components and {kept.meta['sizes'][1]} actions"
            raise UserError(what, where=str(checkpoint), expected=f"{sizes[0]} and {sizes[1]}, as in this scenario")
        networks = {name: self.network(sizes, kept.meta["hidden"], name) for name in kept.meta["preferences"]}
        for name, network in networks.items():
            load_module(network, kept.group(name), checkpoint)
        return self.policy(networks, kept.meta, problem)
