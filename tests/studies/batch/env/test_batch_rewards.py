"""Rewards step by step, and their sums over a window."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.studies.batch.env.rewards import (
    LARGEST_EXPONENT,
    MEASURES,
    REWARDS,
    USERS,
    average,
    job_score,
    reward,
    user_average,
)


def steps(kind: str, scores: list[float], scale: float = 100.0, baseline: float = 0.0) -> list[float]:
    count = len(scores)
    averages = [sum(scores[: place + 1]) / (place + 1) for place in range(count)]
    return [
        reward(REWARDS.index(kind), now, score / count, place == count - 1, True, scale, baseline)
        for place, (now, score) in enumerate(zip(averages, scores, strict=True))
    ]


def test_rewards_of_three_jobs() -> None:
    assert steps("episodic", [1.0, 3.0, 8.0]) == [0, 0, -4]
    assert steps("direct", [1.0, 3.0, 8.0]) == [-1, -2, 0]
    assert steps("improvement", [1.0, 3.0, 8.0], baseline=5.0) == [0, 0, 1]
    assert steps("sigmoid", [50.0, 150.0, 1.0], scale=50.0) == pytest.approx(
        [1 / (1 + exp(1)), 1 / (1 + exp(2)), -1e-6]
    )
    assert steps("difference", [1.0, 3.0, 8.0]) == pytest.approx([-1 / 3, -1, -8 / 3])


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=50))
def test_differences_sum_to_the_episodic_reward(scores: list[float]) -> None:
    assert sum(steps("difference", scores)) == pytest.approx(sum(steps("episodic", scores)))


def test_sigmoid_neither_overflows_nor_pays_for_a_row_without_a_job() -> None:
    sigmoid = REWARDS.index("sigmoid")
    assert (
        reward(sigmoid, 0.0, 0.0, False, True, 100.0, 0.0) == 0.5
    )  # nothing has started: waiting earns most, as published
    assert reward(sigmoid, 0.0, 0.0, False, False, 100.0, 0.0) == -1e-6
    assert 0 < reward(sigmoid, 1e9, 0.0, False, True, 1.0, 0.0) == 1 / (1 + exp(LARGEST_EXPONENT)) < 1e-300


def test_scores_of_a_job() -> None:
    found = {name: job_score(number, 30.0, 5.0) for number, name in enumerate(MEASURES)}
    assert found == {
        "bsld": 3.5,
        "log_bsld": log(3.5),
        "slowdown": 7.0,
        "wait": 30.0,
        "turnaround": 35.0,
        "utilisation": 0.0,
        "bsld_and_utilisation": 3.5,
    }
    assert job_score(MEASURES.index("bsld"), 0.0, 5.0) == 1.0


def test_utilisation_enters_negated() -> None:
    assert average(MEASURES.index("utilisation"), 0.0, 30.0, 40.0) == -0.75
    assert average(MEASURES.index("bsld_and_utilisation"), 2.0, 30.0, 40.0) == 1.25
    assert average(MEASURES.index("utilisation"), 0.0, 30.0, 0.0) == 0.0  # all started at once: nothing was offered yet
    assert average(MEASURES.index("bsld"), 2.0, 30.0, 40.0) == 2.0


def test_averages_over_users_leave_out_those_without_a_started_job() -> None:
    total, started = np.array([6.0, 0.0, 2.0]), np.array([2, 0, 1])
    assert {name: user_average(USERS.index(name), total, started) for name in USERS[1:]} == {
        "mean": 2.5,
        "max": 3.0,
        "min": 2.0,
    }
    assert user_average(USERS.index("mean"), total, np.zeros(3, dtype=int)) == 0.0
