"""On PyBatsim the decision system does what it does without."""

from __future__ import annotations

import numpy as np
import pytest
from small_clusters import cluster, episode, workload

from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.episode import Episode, make_jobs

pytest.importorskip("batsim")

JOBS = [
    {"res": 1 + number % 5, "subtime": number // 3, "bw": 4 * (number % 6), "mem": 1000 * (number % 4)}
    for number in range(30)
]


def actions(seed: int):
    """A chooser of valid actions, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return lambda system: int(rng.choice(np.flatnonzero(system.masks())))


@pytest.mark.parametrize("name", ["learning", "das2"])
@pytest.mark.parametrize(
    "settings", [{"time_weighted": True, "objective": "edp"}, {"selection": ("random-random", "first-high_mem")}]
)
def test_both_doors_give_the_same_run(name, settings):
    from schedlab.batsim.backends.pybatsim_bus import run_pybatsim
    from schedlab.studies.hetero.simulator.decision_scheduler import DecisionScheduler

    where = cluster(name)
    alone = episode([job | {"mem": min(job["mem"], 900)} for job in JOBS], where, seed=7, **settings)
    decide, observed = actions(3), []
    while alone.advance():
        observed.append(alone.observe())
        alone.decide(decide(alone.system))

    jobs = make_jobs(workload([job | {"mem": min(job["mem"], 900)} for job in JOBS], where.hierarchy.cores))
    other = Episode(where, jobs, DecisionSettings(**settings), 7)
    decide_again, seen = actions(3), []

    def observing(system):
        seen.append(system.observe())
        system.act(decide_again(system))

    run_pybatsim(other.simulation, DecisionScheduler(other.system, observing))
    assert other.history == alone.history
    assert len(other.history.rewards) == len(other.history.actions) > 5
    assert np.array_equal(observed, seen)
    assert other.scores() == alone.scores()
