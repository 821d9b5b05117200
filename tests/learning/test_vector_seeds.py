"""Random streams of vector environments: whatever form seeds have, the same numbers give the same draws."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.learning.vector_seeds import place_generators


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
