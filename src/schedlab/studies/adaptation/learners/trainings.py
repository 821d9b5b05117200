"""The full trainings that a learner has looked up in the tables of its scenarios."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from schedlab.studies.adaptation.problem import AdaptationProblem


class Trainings:
    """Which rows of the tables were looked up: each unit and sequence is a full training, and counts once.

    seen  scenario -> bool (units, sequences)
    """

    def __init__(self, problems: Mapping[str, AdaptationProblem]) -> None:
        self.seen = {name: np.zeros(problem.view.reward.shape, bool) for name, problem in problems.items()}

    def look_up(self, scenario: str, rows: np.ndarray, sequences: np.ndarray) -> None:
        """Mark the sequences (n,) on the units at `rows` (m,) of a scenario's view."""
        self.seen[scenario][np.ix_(rows, np.unique(sequences))] = True

    @property
    def count(self) -> int:
        """The number of trainings looked up."""
        return sum(int(seen.sum()) for seen in self.seen.values())
