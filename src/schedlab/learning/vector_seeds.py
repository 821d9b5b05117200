"""Random streams of vector environments: a generator for each place, seeded as Gymnasium seeds its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gymnasium.utils import seeding


def place_generators(
    seed: int | Sequence[int | None] | None, former: Sequence[np.random.Generator], places: int
) -> list[np.random.Generator]:
    """Return a generator for each place: anew where a seed is given or none was there, else the former one.

    A single seed is that of the first place and counts up. Raises ValueError where a sequence has not one for each.
    """
    seeds = list(seed) if isinstance(seed, Sequence) else [None if seed is None else seed + place for place in range(places)]
    if len(seeds) != places:
        raise ValueError(f"{len(seeds)} seeds for {places} environments")
    return [
        seeding.np_random(own)[0] if own is not None or not former else rng
        for own, rng in zip(seeds, former or [None] * places, strict=True)
    ]
