"""Search for the best constant allocation by whole trainings of the job, like a tuner without a performance model.

Each training goes straight to an allocation, stays there and returns its objective. The next allocation is drawn at
random, or is the one with the largest expected improvement under a Gaussian process (Jones, Schonlau and Welch 1998).
The policy goes to the best allocation that was tried. A training counts as an episode, so searches and learners can be
compared at equal budget.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.learning.job import LearningJob
from schedlab.studies.cloud.learners.exploration import committed_choices
from schedlab.studies.cloud.learners.preference_learner import EpisodesNeeded, require_learned
from schedlab.studies.cloud.learners.settings import ConstantSearchSettings
from schedlab.studies.cloud.problem import CloudProblem, preference_of
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv
from schedlab.studies.cloud.rules.bayesian import expected_improvement, places_of, predict
from schedlab.studies.cloud.rules.rules import go_to

KIND = "cloud-constant-search"


class ConstantPolicy:
    """Goes straight to the allocation found for the unit's preference and stays there.

    targets  preference -> number of the allocation in the lattice
    needed   preference -> number of trainings until an allocation near the best plan was found
    """

    def __init__(self, targets: Mapping[str, int], needed: Mapping[str, int]) -> None:
        self.targets, self.episodes_needed = targets, needed

    def reset(self, unit: Unit) -> None:
        """Select the unit's preference. Raises UserError if it was not searched for."""
        require_learned(preference_of(unit), self.targets)

    def choose(self, env: CloudReplayEnv) -> int:
        """Return the action (of 27) in an environment."""
        return go_to(env, self.targets[env.preference])


@dataclass
class _Tried:
    """Allocations tried so far (numbers of the lattice) with the objectives that their trainings reached."""

    targets: list[int] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The allocation with the smallest objective; of equal ones, the first that was tried."""
        return self.targets[int(np.argmin(self.objectives))]


class ConstantSearch:
    """Searches for each preference separately. An interrupted search starts again, because it takes only seconds."""

    def learn(
        self, problems: Mapping[str, CloudProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Search on one scenario, write the allocations found and return the budget used.

        Raises UserError for several scenarios or phases, and without scikit-learn where it is needed.
        """
        settings = validate(ConstantSearchSettings, spec.params)
        where = f"{spec.name}.yaml: "
        if len(problems) != 1 or len(spec.train_on) != 1:
            raise UserError("an allocation is searched for one job", where=f"{where}train_on", expected="one scenario")
        if settings.method == "bayesian" and importlib.util.find_spec("sklearn") is None:
            raise UserError(
                "it needs scikit-learn",
                where=f"{where}learner.method",
                remedy="install schedlab[learn], or search with the method random",
            )
        job = LearningJob(KIND, settings.model_dump(), spec, seed, paths, curve)
        (scenario, problem), steps = next(iter(problems.items())), spec.train_on[0].steps
        needed = EpisodesNeeded()
        targets = {}
        for preference in dict.fromkeys(preference_of(unit) for unit in problem.units("train")):
            targets[preference] = _search(job, problem, scenario, preference, settings, needed).best
        first = {name: needed.first.get(name, steps) for name in targets}
        write_checkpoint(paths.checkpoint, {"kind": KIND, "targets": targets, "episodes_needed": first})
        return job.budget

    def load(self, checkpoint: Path, problem: CloudProblem) -> ConstantPolicy:
        """Return the policy that was found."""
        del problem
        kept = read_checkpoint(checkpoint, KIND)
        return ConstantPolicy(kept.meta["targets"], kept.meta["episodes_needed"])


def _search(
    job: LearningJob,
    problem: CloudProblem,
    scenario: str,
    preference: str,
    settings: ConstantSearchSettings,
    needed: EpisodesNeeded,
) -> _Tried:
    """Try as many allocations as the phase has steps."""
    rng = generator(derive_seed(job.seed, "search", preference), "targets")
    tried, steps = _Tried(), job.spec.train_on[0].steps
    drawn = _drawn(problem, steps, rng)
    abreast = settings.side_by_side if settings.method == "random" else 1
    env = CloudReplayVectorEnv(problem.replay, abreast, preference)
    while (done := len(tried.targets)) < steps:
        chosen = drawn[done : done + abreast]
        if settings.method == "bayesian" and done >= settings.first:
            chosen = np.array([_most_promising(problem, tried, derive_seed(job.seed, preference, done))])
        tried.objectives += _trained(env, chosen, derive_seed(job.seed, "training", preference, done)).tolist()
        tried.targets += chosen.tolist()
        job.budget.episodes += len(chosen)
        job.budget.trainings += len(chosen)
        job.budget.decisions += len(chosen) * problem.replay.intervals
        episodes, best = len(tried.targets), min(tried.objectives)
        needed.note(problem, preference, best, episodes)
        of = {"preference": preference, "acting": "greedy"}
        job.point("objective", best, step=episodes, episode=episodes, scenario=scenario, of=of)
    return tried


def _drawn(problem: CloudProblem, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return randomly drawn allocations whose memory suffices, (number,); none is drawn twice before all were drawn."""
    fits = np.flatnonzero(problem.replay.fits)
    rounds = [rng.permutation(fits) for _ in range(-(-number // len(fits)))]
    return np.concatenate(rounds)[:number]


def _trained(env: CloudReplayVectorEnv, targets: np.ndarray, seed: int) -> np.ndarray:
    """Return the objectives, (n,), of going straight to each target and staying there. n is at most the number of
    places in `env`.
    """
    env.reset(seed=seed % 2**31)
    whole, total = np.resize(targets, env.num_envs), np.zeros(env.num_envs)
    for _ in range(env.replay.intervals):
        rewards = env.step(committed_choices(env, whole))[1]
        total -= rewards
    return total[: len(targets)]


def _most_promising(problem: CloudProblem, tried: _Tried, seed: int) -> int:
    """Return the allocation with the largest expected improvement among those whose memory suffices."""
    places = places_of(problem.replay)
    fits = np.flatnonzero(problem.replay.fits)
    objectives = np.array(tried.objectives)
    mean, spread = predict(places[tried.targets], objectives, places[fits], seed % 2**32)
    return int(fits[expected_improvement(mean, spread, float(objectives.min())).argmax()])
