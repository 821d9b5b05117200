"""Rewards step by step, and their sums over a window."""

from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.studies.batch.rewards import REWARDS, RunningScore, job_score, reward


def steps(kind: str, scores: list[float], **values: float) -> list[float]:
    running, found = RunningScore(len(scores)), []
    for score in scores:
        running.add(score)
        found.append(reward(kind, running, score, **values))
    return found


def test_rewards_of_three_jobs() -> None:
    assert steps("episodic", [1.0, 3.0, 8.0]) == [0, 0, -4]
    assert steps("direct", [1.0, 3.0, 8.0]) == [-1, -2, 0]
    assert steps("improvement", [1.0, 3.0, 8.0], baseline=5.0) == [0, 0, 1]
    assert steps("sigmoid", [50.0, 150.0, 1.0], scale=50.0) == pytest.approx([1 / (1 + exp(1)), 1 / (1 + exp(2)), -1e-6])
    assert steps("difference", [1.0, 3.0, 8.0]) == pytest.approx([-1 / 3, -1, -8 / 3])


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=50))
def test_differences_sum_to_the_episodic_reward(scores: list[float]) -> None:
    assert sum(steps("difference", scores)) == pytest.approx(sum(steps("episodic", scores)))


def test_sigmoid_neither_overflows_nor_pays_for_a_row_without_a_job() -> None:
    running = RunningScore(3)
    assert reward("sigmoid", running) == 0.5  # nothing has started: waiting earns most, as published
    assert reward("sigmoid", running, real=False) == -1e-6
    running.add(1e9)
    assert 0 < reward("sigmoid", running, scale=1.0) < 1e-300


def test_scores_of_a_job() -> None:
    found = {name: job_score(name, 30.0, 5.0, 4) for name in ("bsld", "log_bsld", "slowdown", "wait", "turnaround", "utilisation")}
    assert found == {"bsld": 3.5, "log_bsld": log(3.5), "slowdown": 7.0, "wait": 30.0, "turnaround": 35.0, "utilisation": -20.0}
    assert job_score("bsld", 0.0, 5.0, 4) == 1.0


def test_unknown_names_are_told() -> None:
    with pytest.raises(UserError, match="did you mean 'sigmoid'"):
        reward("sigmod", RunningScore(1))
    with pytest.raises(UserError, match="did you mean 'slowdown'"):
        job_score("slowdwn", 0.0, 1.0, 1)
    assert len(REWARDS) == 5
