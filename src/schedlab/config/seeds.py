"""Seeds by name: each random stream depends on one root seed and a path of names, never on process state."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

SEED_BITS = 63  # fits a signed 64-bit integer, which is what torch, numpy and Parquet all accept


def derive_seed(root: int, *names: str | int) -> int:
    """Return the seed of the stream `names` under the root seed: a SHA-256 of both, cut to 63 bits."""
    path = "\x1f".join([str(int(root)), *(f"{type(name).__name__}:{name}" for name in names)])
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big") >> (64 - SEED_BITS)


def generator(root: int, *names: str | int) -> np.random.Generator:
    """Return numpy's PCG64 generator for the stream `names` under the root seed."""
    import numpy as np

    return np.random.default_rng(derive_seed(root, *names))
