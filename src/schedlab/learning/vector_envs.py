"""What vector environments share: a random generator per place, seeded as in Gymnasium's own, and gathered infos."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding


def place_generators(
    seed: int | Sequence[int | None] | np.ndarray | None, former: Sequence[np.random.Generator], places: int
) -> list[np.random.Generator]:
    """Return a generator per place: a new one if a seed is given or none existed, else the former one.

    A single seed is that of the first place and counts up; integers of NumPy are integers. Raises ValueError where
    several seeds are not one for each place, and for what is no integer from 0 on.
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
    """A seed as Gymnasium takes it, which refuses integers of NumPy."""
    try:
        found = operator.index(seed)
    except TypeError:
        found = -1
    if found < 0:
        raise ValueError(f"seed {seed!r} ({type(seed).__name__}): expected an integer from 0 on")
    return found


def gathered(infos: Mapping[int, Mapping[str, Any]], places: int) -> dict[str, Any]:
    """Return the infos of some environments, by place, in the form of Gymnasium's vector environments.

    For each key an array over all places, and `_key`: True where it holds; numbers by their type, `final_obs` and other
    values as objects, mappings gathered in turn.
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
