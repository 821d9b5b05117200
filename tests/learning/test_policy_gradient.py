from __future__ import annotations

import numpy as np
import pytest
import torch

from schedlab.learning.policy_gradient import MovingMean, cooled, entropy, normalised
from schedlab.learning.seeding import torch_stream


@pytest.mark.parametrize(("start", "explored"), [(1, 0), (10, 22), (100, 44), (1000, 66)])
def test_a_temperature_that_falls_by_a_tenth_an_episode_explores_as_published(start: float, explored: int) -> None:
    assert sum(cooled(start, 0.9, 1, episode) > 1 for episode in range(10_000)) == explored


def test_a_temperature_falls_every_so_many_episodes_and_stops_at_one() -> None:
    assert [cooled(4, 0.5, 10, episode) for episode in (0, 9, 10, 19, 20, 30, 1000)] == [4, 4, 2, 2, 1, 1, 1]


def test_entropy_is_largest_for_equal_probabilities() -> None:
    logs = torch.log(torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 1e-30, 1e-30]]))
    np.testing.assert_allclose(entropy(logs), [np.log(4), np.log(2)], rtol=1e-6)


def test_advantages_get_a_root_mean_square_of_one_unless_all_are_zero() -> None:
    assert np.sqrt(np.mean(normalised(np.array([3.0, -4.0, 0.5])) ** 2)) == pytest.approx(1)
    assert (normalised(np.zeros(3)) == 0).all()


def test_a_moving_mean_is_unbiased_from_its_first_value_on() -> None:
    mean = MovingMean(keep=0.9)
    assert mean.value == 0
    mean.update(np.array([5.0]))
    assert mean.value == pytest.approx(5)
    mean.update(np.array([7.0]))
    assert mean.value == pytest.approx((0.9 * 5 + 7) / 1.9)


def test_a_stream_depends_on_seed_and_names_alone_and_leaves_torch_as_it_was() -> None:
    before = torch.random.get_rng_state()
    with torch_stream(3, "a"):
        first = torch.rand(3)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(5)
    with torch_stream(3, "a"):
        assert torch.equal(torch.rand(3), first)
    with torch_stream(3, "b"):
        assert not torch.equal(torch.rand(3), first)
