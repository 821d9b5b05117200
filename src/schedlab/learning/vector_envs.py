"""Functions shared by vector environments: a random generator for each place, seeded as in Gymnasium, and gathered
infos.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding


def place_generators(
    seed: int | Sequence[int | None] | np.ndarray | None, former: Sequence[np.random.Generator], places: int
) -> list[np.random.Generator]:
    """Return a generator for each place: a new one if a seed is given or none existed, else the former one.

    A single seed is that of the first place; the next places have the following integers. NumPy integers are accepted.
    Raises ValueError if the number of seeds is not that of the places, and for a seed that is not an integer of 0 or
    more.
    """
    seeds: list[Any]
    if isinstance(seed, Sequence) or (isinstance(seed, np.ndarray) and seed.ndim > 0):
        seeds = list(seed)
    else:
        first = 0 if seed is None else _whole(seed)
        seeds = [None if seed is None else first + place for place in range(places)]
    if len(seeds) != places:
        raise ValueError(f"{len(seeds)} seeds for {places} environments")
    whole = [None if own is None else _whole(own) for own in seeds]
    if not former:
        return [seeding.np_random(own)[0] for own in whole]
    return [rng if own is None else seeding.np_random(own)[0] for own, rng in zip(whole, former, strict=True)]


def _whole(seed: Any) -> int:
    """Return a seed as a Python integer, because Gymnasium rejects those of NumPy. Raises ValueError."""
    try:
        found = operator.index(seed)
    except TypeError:
        found = -1
    if found < 0:
        raise ValueError(f"seed {seed!r} ({type(seed).__name__}): expected an integer from 0 on")
    return found


def gathered(infos: Mapping[int, Mapping[str, Any]], places: int) -> dict[str, Any]:
    """Return the infos of some environments, by place, in the form of Gymnasium's vector environments.

    For each key there is an array over all places, and `_key`, which is True at places with a value. Arrays of numbers
    have the type of the first one, `final_obs` and other values are objects, and mappings are gathered recursively.
    """
    found: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos.values() for key in info):
        values = {place: info[key] for place, info in infos.items() if key in info}
        first, mask = next(iter(values.values())), np.zeros(places, dtype=np.bool_)
        mask[list(values)] = True
        if isinstance(first, Mapping):
            found[key] = gathered(values, places)
        else:
            number = isinstance(first, bool | int | float | np.number)
            array = np.zeros(places, type(first)) if number else np.full(places, None, dtype=object)
            for place, value in values.items():
                array[place] = value
            found[key] = array
        found[f"_{key}"] = mask
    return found
