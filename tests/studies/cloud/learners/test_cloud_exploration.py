"""Committed episodes go straight to their targets without running out of memory; the best episodes are kept,
each once."""

from __future__ import annotations

import numpy as np
from cloud_courses import episodes

from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.learners.exploration import BestEpisodes, committed_actions
from schedlab.studies.cloud.model.allocation import KEEP


def test_committed_episodes_reach_every_allocation_that_fits_and_stay():
    replay = example_replay()
    grid, targets = replay.lattice, np.arange(len(replay.lattice))
    here = np.full(len(grid), grid.start)
    for _ in range(20):
        actions = committed_actions(grid, here, targets, replay.allowed[here])
        assert replay.allowed[here, actions].all()
        here = grid.following[here, actions]
    assert (here == targets)[replay.fits].all() and not (here == targets)[~replay.fits].any()
    assert (committed_actions(grid, targets, targets, replay.allowed) == KEEP).all()


def test_the_best_episodes_are_kept_once_and_older_ones_first():
    best = BestEpisodes(2)
    best.add(episodes((-3.0, [1, 1]), (-1.0, [2, 2]), (-1.0, [2, 2]), (-2.0, [3, 3])))
    assert best.kept.actions.T.tolist() == [[2, 2], [3, 3]]
    best.add(episodes((-2.0, [4, 4]), (-5.0, [5, 5])))
    assert best.kept.returns[0].tolist() == [-1.0, -2.0]
    best.add(episodes((-0.5, [6, 6])))
    assert best.kept.actions.T.tolist() == [[6, 6], [2, 2]]
