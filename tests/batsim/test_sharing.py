"""Progressive filling: what the rule says by hand, and that the rounds on arrays say the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.batsim.simulator.sharing import fill, fill_reference


def test_a_task_alone_goes_as_fast_as_its_slowest_resource() -> None:
    assert fill_reference([{0: 4.0, 1: 10.0}], [math.inf], {0: 8.0, 1: 10.0}) == [1.0]


def test_tasks_get_equal_shares_of_a_resource_not_equal_rates() -> None:
    assert fill_reference([{0: 1e9}, {0: 5e9}], [math.inf] * 2, {0: 1e9}) == pytest.approx([0.5, 0.1])


def test_what_one_task_cannot_use_goes_to_the_others() -> None:
    """Case 42: three tasks on host 0; the third computes twice as much on host 1. Beyond it: its half of host 0 would
    go spare.
    """
    rates = fill_reference([{0: 1.0}, {0: 1.0, 1: 8.0}], [math.inf] * 2, {0: 1.0, 1: 1.0})
    assert rates == pytest.approx([1 - 1 / 8, 1 / 8])


def test_one_core_bounds_a_task() -> None:
    assert fill_reference([{0: 1.0}, {0: 1.0}], [1.0, 1.0], {0: 4.0}) == [1.0, 1.0]
    assert fill_reference([{0: 1.0}] * 5, [1.0] * 5, {0: 4.0}) == pytest.approx([0.8] * 5)


def test_a_task_that_shares_nothing_has_its_bound() -> None:
    assert fill_reference([{}], [3.0], {}) == [3.0]
    assert fill_reference([{}], [math.inf], {}) == [math.inf]


def test_many_tasks_one_of_which_shares_nothing() -> None:
    nothing = np.empty(0, np.int64), np.empty(0)
    one = np.array([0]), np.array([2.0])
    rates = fill([one[0]] * 4 + [nothing[0]], [one[1]] * 4 + [nothing[1]], [math.inf] * 4 + [7.0], np.array([8.0]))
    assert list(rates) == pytest.approx([1.0] * 4 + [7.0])


weights = st.dictionaries(st.integers(0, 5), st.floats(1e-3, 1e3), min_size=1, max_size=4)
tasks_with_bounds = st.lists(
    st.tuples(weights, st.one_of(st.just(math.inf), st.floats(1e-3, 1e3))), min_size=1, max_size=12
)
capacities = st.lists(st.floats(1e-2, 1e3), min_size=6, max_size=6)


@settings(max_examples=300, deadline=None)
@given(tasks_with_bounds, capacities)
def test_the_array_rounds_state_the_same_rule(
    drawn: list[tuple[dict[int, float], float]], capacity: list[float]
) -> None:
    tasks, bounds = [weights for weights, _ in drawn], [bound for _, bound in drawn]
    expected = fill_reference(tasks, bounds, dict(enumerate(capacity)))
    arrays = (
        [np.array(list(weights), np.int64) for weights in tasks],
        [np.array(list(weights.values())) for weights in tasks],
    )
    assert fill(*arrays, bounds, np.array(capacity)) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=200, deadline=None)
@given(tasks_with_bounds, capacities)
def test_rates_respect_capacities_and_leave_no_task_behind(
    drawn: list[tuple[dict[int, float], float]], capacity: list[float]
) -> None:
    tasks, bounds = [weights for weights, _ in drawn], [bound for _, bound in drawn]
    rates = fill_reference(tasks, bounds, dict(enumerate(capacity)))
    used = [
        sum(weights.get(number, 0.0) * rate for weights, rate in zip(tasks, rates, strict=True)) for number in range(6)
    ]
    assert all(use <= limit * (1 + 1e-9) for use, limit in zip(used, capacity, strict=True))
    for weights, bound, rate in zip(tasks, bounds, rates, strict=True):
        full = any(used[number] >= capacity[number] * (1 - 1e-6) for number in weights)
        assert 0 < rate <= bound and (full or rate >= bound * (1 - 1e-6))
