"""The replay buffer: its sum tree against a plain statement of the same draws, priorities and importance weights by
hand.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedlab.learning.replay_memory import PrioritisedReplay, ReplayMemory, SumTree

PRIORITIES = st.lists(st.integers(0, 20), min_size=1, max_size=40).filter(any)


def plain_find(priorities, mass):
    """The first place at which the running sum exceeds the mass."""
    total = 0
    for place, priority in enumerate(priorities):
        total += priority
        if mass < total:
            return place
    raise AssertionError("the mass is not below the total")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no mistake
@given(PRIORITIES, st.data())
def test_sum_tree_finds_what_running_sums_find(priorities, data):
    tree = SumTree(len(priorities) + data.draw(st.integers(0, 9)))
    tree.set(np.arange(len(priorities)), np.array(priorities, float))
    changes = data.draw(st.lists(st.tuples(st.integers(0, len(priorities) - 1), st.integers(0, 20)), max_size=20))
    for place, value in changes:
        priorities[place] = value
    if changes:
        tree.set(
            *(np.array(column) for column in zip(*changes, strict=True))
        )  # of a place that comes twice, the last value counts
    assert tree.total == sum(priorities)
    assert tree.get(np.arange(len(priorities))).tolist() == priorities
    if sum(priorities):
        masses = data.draw(st.lists(st.integers(0, 4 * sum(priorities) - 1), min_size=1, max_size=20))
        wanted = [plain_find(priorities, mass / 4) for mass in masses]
        assert tree.find(np.array(masses) / 4).tolist() == wanted


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no mistake
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40).filter(any), st.floats(0, 1))
def test_no_draw_ends_at_a_place_without_priority(priorities, share):
    tree = SumTree(64)
    tree.set(np.arange(len(priorities)), np.array(priorities))
    assert priorities[int(tree.find(np.array([share * tree.total]))[0])] > 0


def filled(capacity=4, alpha=0.5, eps=0.0, priorities=(1.0, 4.0, 16.0)):
    replay = PrioritisedReplay(capacity, alpha, eps)
    count = len(priorities)
    replay.add({"place": np.arange(count), "row": np.arange(2.0 * count).reshape(count, 2)}, np.array(priorities))
    return replay


def test_draws_follow_priorities_to_the_power_of_alpha():
    replay = filled()  # 1, 2, 4 of 7
    places = np.concatenate([replay.draw(np.random.default_rng(seed), 7, beta=0.0)[0] for seed in range(200)])
    assert np.bincount(places).tolist() == [200, 400, 800]  # a draw from each seventh of the sum


def test_importance_weights_by_hand():
    replay = filled()
    places, weights, columns = replay.draw(np.random.default_rng(0), 7, beta=1.0)
    wanted = {0: 1.0, 1: 0.5, 2: 0.25}  # 1 / (3 p) over the largest, that of the least probable
    assert weights.dtype == np.float32
    assert weights.tolist() == [wanted[place] for place in places]
    assert columns["place"].tolist() == places.tolist()
    assert columns["row"].tolist() == [[2.0 * place, 2.0 * place + 1] for place in places]
    _, halves, _ = replay.draw(np.random.default_rng(0), 7, beta=0.5)
    np.testing.assert_allclose(halves, np.sqrt(weights))
    assert replay.draw(np.random.default_rng(0), 7, beta=0.0)[1].tolist() == [1.0] * 7


def test_errors_become_priorities_and_the_oldest_makes_room():
    replay = filled(capacity=4, alpha=1.0, eps=1.0, priorities=(0.0, 1.0, 2.0))  # 1, 2, 3
    replay.set_errors(np.array([1]), np.array([-5.0]))  # by size
    replay.add({"place": np.array([3, 4]), "row": np.zeros((2, 2))}, np.array([9.0, 0.0]))
    _, weights, columns = replay.draw(np.random.default_rng(1), 20, beta=1.0)
    counts = dict(zip(*np.unique(columns["place"], return_counts=True), strict=True))
    assert counts == {1: 6, 2: 3, 3: 10, 4: 1}  # of 20; 0 had to go
    assert weights[columns["place"] == 4].tolist() == [1.0]
    assert weights[columns["place"] == 3][0] == pytest.approx(0.1)
    assert len(replay) == 4


@pytest.mark.parametrize("count", [3, 6])
def test_state_is_put_back(count):
    replay = filled(priorities=tuple(range(1, 4)))
    replay.add({"place": np.arange(3, count), "row": np.ones((count - 3, 2))}, np.arange(3.0, count))
    other = PrioritisedReplay(4, 0.5, 0.0)
    other.load(replay.arrays())
    for both in (replay, other):
        both.add({"place": np.array([9]), "row": np.ones((1, 2))}, np.array([2.0]))
    draws = [each.draw(np.random.default_rng(3), 50, beta=0.7) for each in (replay, other)]
    for here, there in zip(*(draw[:2] for draw in draws), strict=True):
        assert here.tolist() == there.tolist()
    assert draws[0][2]["place"].tolist() == draws[1][2]["place"].tolist()
    assert len(other) == 4


def test_more_than_the_buffer_holds_is_refused():
    with pytest.raises(ValueError, match="5 decisions at once, room for 4"):
        filled(priorities=(1.0,) * 5)


def test_the_uniform_memory_keeps_the_newest():
    memory, other = ReplayMemory(3), ReplayMemory(3)
    for value in (1.0, 2.0, 3.0, 4.0):
        memory.add({"rewards": np.array([value])})
    other.load(memory.arrays())
    draws = [each.draw(np.random.default_rng(0), 50)["rewards"].tolist() for each in (memory, other)]
    assert draws[0] == draws[1] and set(draws[0]) == {2.0, 3.0, 4.0}
