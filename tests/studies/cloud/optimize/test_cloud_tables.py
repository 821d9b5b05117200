"""What the tables of an optimised training say."""

from __future__ import annotations

import numpy as np

from schedlab.studies.cloud.model.allocation import Allocation
from schedlab.studies.cloud.model.plan import undominated
from schedlab.studies.cloud.optimize.tables import allocation_changes


def test_what_was_done_is_told_of_allocations():
    steps = [Allocation(1, 8, 16.0), Allocation(1, 8, 16.0), Allocation(2, 4, 16.0), Allocation(2, 4, 7.5)]
    assert allocation_changes(steps) == ["nothing", "GPUs 1 to 2, cores 8 to 4", "memory 16 to 7.5 GB"]


def test_dominated_points_are_no_front():
    time, cost = np.array([1.0, 2.0, 2.0, 3.0, np.inf, 1.0]), np.array([5.0, 3.0, 4.0, 3.0, 0.0, 6.0])
    assert undominated(time, cost) == [0, 1]
