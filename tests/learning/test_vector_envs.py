"""Vector environments: whatever form seeds have, the same numbers give the same draws; infos as Gymnasium has them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from schedlab.learning.vector_envs import gathered, place_generators


def drawn(seed) -> list[int]:
    """The first draw of each of two places."""
    return [int(rng.integers(2**40)) for rng in place_generators(seed, [], 2)]


@pytest.mark.parametrize("form", [np.int64, np.int32, np.array], ids=lambda form: form.__name__)
def test_a_seed_may_be_an_integer_of_numpy(form):
    assert drawn(form(3)) == drawn(3) == drawn([3, 4])


@pytest.mark.parametrize(
    "form", [np.array, tuple, lambda seeds: [np.int64(seed) for seed in seeds]], ids=["array", "tuple", "numbers"]
)
def test_seeds_may_be_an_array(form):
    assert drawn(form([7, 2])) == drawn([7, 2]) != drawn([2, 7])


def test_places_without_a_seed_go_on():
    former = place_generators(1, [], 2)
    kept = place_generators([None, np.int64(5)], former, 2)
    assert kept[0] is former[0]
    assert int(kept[1].integers(2**40)) == drawn([0, 5])[1]


@pytest.mark.parametrize(
    ("seed", "told"),
    [
        ([1], "1 seeds for 2 environments"),
        (np.array([1, 2, 3]), "3 seeds for 2 environments"),
        (1.5, r"seed 1\.5 \(float\): expected an integer from 0 on"),
        ([1, "2"], r"seed '2' \(str\)"),
        (np.array([1.0, 2.0]), r"seed .*1\.0.* \(float64\)"),
        (-1, r"seed -1 \(int\)"),
        (np.array([[1], [2]]), r"seed array\(\[1\]\)"),
    ],
    ids=str,
)
def test_what_is_no_seed_is_told(seed, told):
    with pytest.raises(ValueError, match=told):
        place_generators(seed, [], 2)


def test_infos_are_gathered_as_gymnasium_gathers_them():
    class Ending(gym.Env):
        """An environment whose episodes end at once, with an info that depends on its number."""

        observation_space, action_space = gym.spaces.Box(0, 1, (2,), np.float32), gym.spaces.Discrete(2)

        def __init__(self, number: int) -> None:
            self.number = number

        def reset(self, **_):
            return np.full(2, self.number / 4, np.float32), {}

        def step(self, _):
            return np.full(2, self.number / 4, np.float32), 0.0, self.number != 1, False, INFOS[self.number]

    envs = [lambda number=number: Ending(number) for number in range(3)]
    vector = gym.vector.SyncVectorEnv(envs, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    vector.reset()
    theirs = vector.step(np.zeros(3, int))[-1]
    seen = {0: np.zeros(2, np.float32), 2: np.full(2, 0.5, np.float32)}
    ours = gathered({place: {"final_obs": seen[place], "final_info": INFOS[place]} for place in seen}, 3)
    assert_same(ours, {key: theirs[key] for key in ours})


INFOS = [
    {"start": 3, "share": 0.5, "late": True, "scores": {"time": 1.5, "rule": "fcfs"}},
    {},
    {"start": 4, "scores": {"time": 2.5, "rule": "sjf", "cost": np.float32(2.0)}},
]


def assert_same(ours, theirs) -> None:
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            assert_same(ours[key], theirs[key])
    else:
        assert ours.dtype == theirs.dtype and len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
