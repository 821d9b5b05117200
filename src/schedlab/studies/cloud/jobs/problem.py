"""A scenario of several jobs: each job is a unit, on which policies run and searches search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from schedlab.config.contract import Outcome, Policy, Scalar, Split, Unit
from schedlab.config.seeds import derive_seed
from schedlab.studies.cloud.jobs.family import jobs_of, limited_replay
from schedlab.studies.cloud.jobs.trials import WITHIN, Trials
from schedlab.studies.cloud.problem import UNIT_KIND, CloudProblem, preference_of
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.replay import Replay
from schedlab.studies.cloud.scenario import CloudScenario

MOST_ABOVE = 1.0  # allocations that break a limit, or are worse than this, score this share above the best one


class JobProblem(CloudProblem):
    """One of the jobs as a separate problem."""

    def __init__(self, replay: Replay) -> None:
        step = replay.scenario.job.step
        assert step is not None, "checked: the jobs of a family have pinned steps"
        super().__init__(replay.scenario, step.parameters(), {})
        self.replay = replay


class JobsProblem(CloudProblem):
    """Implements the contract's Problem: a unit for each job and preference, of the splits `train` and `test` alike.
    Policies act in the environment of the unit's job; a policy with `search` searches for its allocation.
    """

    def __init__(self, scenario: CloudScenario) -> None:
        assert scenario.job.step is not None, "checked: the jobs of a family have pinned steps"
        super().__init__(scenario, scenario.job.step.parameters(), {})

    @cached_property
    def jobs(self) -> Mapping[str, JobProblem]:
        """The jobs by name."""
        return {name: JobProblem(limited_replay(self.scenario, job)) for name, job in jobs_of(self.scenario).items()}

    def members(self, name: str) -> Mapping[str, CloudProblem]:
        """Return the jobs by name, each as a separate problem."""
        return {f"{name}/{job}": problem for job, problem in self.jobs.items()}

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the jobs with their preferences; none for validation."""
        found = []
        for preference in self.scenario.preferences if split != "validation" else ():
            for number, job in enumerate(self.jobs):
                seed = derive_seed(self.scenario.seed, "run", job, preference)
                facts: dict[str, Scalar] = {"preference": preference, "number": number}
                found.append(Unit(f"{preference}-{job}", UNIT_KIND, split, job, seed, facts))
        return found

    def env(self, unit: Unit, seed: int) -> CloudReplayEnv:
        """Return the environment of a unit's job."""
        return self.jobs[unit.block].env(unit, seed)

    def rollout(self, policy: Policy, unit: Unit) -> Outcome:
        """Search for the allocation of the unit's job or, for any other policy (trained before), run the job under it.
        The score is the relative excess of the objective over that of the best allocation that keeps the limits.
        """
        problem, preference = self.jobs[unit.block], preference_of(unit)
        policy.reset(unit)
        if hasattr(policy, "search"):
            trials = policy.search(problem, preference)
            return Outcome(scores_of_search(trials))
        outcome = problem.rollout(policy, unit)
        best = Trials(problem, preference, 0.0).best
        kept = bool(outcome.scores["limits_kept"])
        above = outcome.scores["objective"] / best - 1.0 if kept else MOST_ABOVE
        scores = {name: value for name, value in outcome.scores.items() if name not in LEFT_OUT}
        found = above <= WITHIN
        scores |= {"above_best": min(above, MOST_ABOVE), "found": float(found), "trainings_used": 0.0}
        return Outcome(scores | ({"trainings_needed": 0.0} if found else {}))


LEFT_OUT = ("time_saved", "cost_saved", "levels_gained", "episodes_needed")  # scores that only one job's scenario has


def scores_of_search(trials: Trials) -> dict[str, float]:
    """Return the scores of a search; `above_best` is that of its last recommendation."""
    needed, found = trials.needed()
    above = trials.points[-1][1] if trials.points else np.inf
    return {
        "above_best": float(min(above, MOST_ABOVE)),
        "found": float(found),
        "trainings_needed": needed,
        "trainings_used": trials.used,
        "limits_kept": float(np.isfinite(above)),
    }
