"""Observations of a replayed job: state vectors that are prepared for every allocation, so that a step fills in only
time, money and progress.

state.CloudEnvironmentState computes the same numbers from the record of each interval; a test compares both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedlab.studies.cloud.model.allocation import whole
from schedlab.studies.cloud.replay.sla import ITEMS
from schedlab.studies.cloud.replay.state import COMPONENTS, SIZE, CloudEnvironmentState

if TYPE_CHECKING:
    from schedlab.studies.cloud.replay.replay import Replay

PROGRESS, TIME, COST = (COMPONENTS.index(name) for name in ("progress", "time", "cost"))
TIME_MET, COST_MET = COMPONENTS.index("time_met"), COMPONENTS.index("cost_met")
TIME_SEVERITY, COST_SEVERITY = COMPONENTS.index("time_severity"), COMPONENTS.index("cost_severity")
TIME_LEFT, EPOCH_TIME = COMPONENTS.index("time_remaining"), COMPONENTS.index("epoch_time")
COST_RATE = COMPONENTS.index("cost_rate")
MET = slice(TIME_MET, TIME_MET + len(ITEMS))
SEVERITY = slice(TIME_SEVERITY, TIME_SEVERITY + len(ITEMS))


class Tables:
    """The arrays of a replay as lists, whose elements are accessed ten times faster, and the state vectors.

    rows, failed  float32 (n, 26): state after an interval on an allocation, and after one with too little memory there
    severity      {fits: (n,)} sum of the severities of the items that depend on the allocation alone
    met           {fits: (n,)} how many of these four items are met
    """

    def __init__(self, replay: Replay) -> None:
        found = replay.performance
        self.allocations = [(int(g), int(c), whole(m)) for g, c, m in replay.lattice.allocations.tolist()]
        self.following, self.allowed = replay.lattice.following.tolist(), replay.allowed
        self.seconds, self.price, self.busy, self.fits, self.hazard = (
            values.tolist() for values in (replay.undisturbed, replay.price, replay.busy, replay.fits, replay.hazard)
        )
        self.throughput, self.gpu_util, self.cpu_util, self.memory_used = (
            values.tolist() for values in (found.throughput, found.gpu_util, found.cpu_util, found.memory_used)
        )
        self.rows = {
            fits: np.stack([self._row(replay, number, fits) for number in range(len(self.price))])
            for fits in (True, False)
        }
        self.severity = {
            fits: rows[:, SEVERITY][:, 2:].astype(float).sum(axis=1).tolist() for fits, rows in self.rows.items()
        }
        self.met = {fits: rows[:, MET][:, 2:].sum(axis=1).tolist() for fits, rows in self.rows.items()}
        self.first = first_state(replay).vector()
        if replay.scenario.instances is not None:  # an offer has a price of its own
            shares = replay.price / (replay.price.max() or 1.0)
            for rows in self.rows.values():
                rows[:, COST_RATE] = shares
            self.first[COST_RATE] = shares[replay.lattice.start]

    def measured(self, number: int, fits: bool) -> dict[str, float]:
        """Return the values of a log's row after an interval on an allocation that do not depend on its time."""
        gpus, cores, memory = self.allocations[number]
        return {
            "gpu_count": gpus,
            "cpu_count": cores,
            "memory_gb": memory,
            "memory_used_gb": self.memory_used[number],
            "throughput": self.throughput[number] if fits else 0.0,
            "cpu_percent": 100.0 * self.cpu_util[number] if fits else 0.0,
            "gpu_utilization_0": 100.0 * self.gpu_util[number] if fits else 0.0,
        }

    def _row(self, replay: Replay, number: int, fits: bool) -> np.ndarray:
        state = first_state(replay)
        state.update(self.measured(number, fits))
        return state.vector()


def first_state(replay: Replay) -> CloudEnvironmentState:
    """Return the state of a newly submitted job, which has the start allocation and no measurements."""
    state = CloudEnvironmentState(replay.scenario.resource, replay.sla, replay.scenario.legacy)
    state.gpus_apply = replay.scenario.resource.gpu_count_max > 0
    state.gpu_count, state.cpu_count, state.memory_gb = replay.lattice.allocations[replay.lattice.start].tolist()
    state.total_epochs = replay.scenario.job.epochs
    return state


def component_numbers(space: str) -> list[int] | None:
    """Return the numbers of the components that a space shows; None: all."""
    return (
        [number for number in range(SIZE) if not COMPONENTS[number].startswith("memory")] if space == "paper9" else None
    )
