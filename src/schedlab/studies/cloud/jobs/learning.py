"""REINFORCE as a search for the allocation of one job, scored by its most probable actions after each training."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.studies.cloud.jobs.searches import maker
from schedlab.studies.cloud.jobs.trials import Trials
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.problem import preference_unit

DISTILLED = 500  # gradient steps at the end that imitate the best episode


def reinforce(trials: Trials, seed: int) -> None:
    """Learn with multipliers for the limits; each training is an episode. The search is recorded in `trials`."""
    seen = defaultdict[int, dict[str, float]](dict)

    def note(metric: str, value: float, **place: Any) -> None:
        if place["of"]["acting"] == "greedy":
            seen[place["episode"]][metric] = float(value)

    phase = Phase(("job",), int(trials.most))
    params = {"record_every": 1, "distilled": DISTILLED}
    spec = PolicySpec("searched", "learned", "reinforce", params, (0,), (phase,))
    with tempfile.TemporaryDirectory() as folder:
        paths = LearnPaths(None, Path(folder) / "policy.zip", Path(folder) / "learning")
        budget = ReinforceLearner().learn({"job": trials.problem}, spec, seed % 2**31, paths, note)
        policy = ReinforceLearner().load(paths.checkpoint, trials.problem)
    for episodes, values in sorted(seen.items()):
        trials.used = float(episodes)
        trials.note(values["objective"] / trials.best - 1.0 if values["excess"] <= 1e-9 else np.inf)
    trials.used = float(budget.trainings)
    scores = trials.problem.rollout(policy, preference_unit(0, trials.preference, "test", 0)).scores
    trials.note(scores["objective"] / trials.best - 1.0 if scores["limits_kept"] else np.inf)


make_reinforce = maker(reinforce)
