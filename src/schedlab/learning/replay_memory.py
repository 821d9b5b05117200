"""Replay memories: the last decisions in a ring buffer, drawn uniformly or, with a sum tree, in proportion to their
errors.

Source of the prioritised draw: Schaul et al. 2016, "Prioritized experience replay", arXiv:1511.05952, the proportional
variant (section 3.3, appendix B.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class SumTree:
    """Numbers >= 0 and the sums of their ranges. A place is drawn in proportion to its number in log2(capacity) steps.

    The root is node 1, the children of node i are nodes 2 i and 2 i + 1, and the numbers follow all inner nodes.
    """

    def __init__(self, capacity: int) -> None:
        self._first = 1 << max(capacity - 1, 0).bit_length()
        self._nodes = np.zeros(2 * self._first)

    @property
    def total(self) -> float:
        """The sum of all numbers."""
        return float(self._nodes[1])

    def get(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers at places, float64."""
        found: np.ndarray = self._nodes[self._first + places]
        return found

    def set(self, places: np.ndarray, values: np.ndarray) -> None:
        """Write numbers at places (int64). If a place occurs twice, its last number counts."""
        nodes = self._first + places
        self._nodes[nodes] = values
        while nodes[0] > 1:
            nodes = nodes // 2
            self._nodes[nodes] = self._nodes[2 * nodes] + self._nodes[2 * nodes + 1]

    def find(self, masses: np.ndarray) -> np.ndarray:
        """Return the places (int64) at which the running sum first exceeds each mass; rounding never selects a number
        of 0.
        """
        nodes, left = np.ones(len(masses), dtype=np.int64), np.array(masses, dtype=float)
        while nodes[0] < self._first:
            nodes = 2 * nodes
            here = self._nodes[nodes]
            right = (left >= here) & (self._nodes[nodes + 1] > 0)
            left = np.where(right, left - here, left)
            nodes = nodes + right
        return nodes - self._first


class ReplayMemory:
    """The last decisions, as columns of equal length. When the memory is full, new ones replace the oldest.

    capacity  largest number of decisions
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._columns: dict[str, np.ndarray] = {}
        self._next = self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Append decisions, (n, ...) in each column, and return their places (int64). The first call determines columns
        and shapes.
        """
        count = len(next(iter(columns.values())))
        if not self._columns:
            self._columns = {
                name: np.zeros((self.capacity, *rows.shape[1:]), rows.dtype) for name, rows in columns.items()
            }
        places = (self._next + np.arange(count)) % self.capacity
        for name, rows in columns.items():
            self._columns[name][places] = rows
        self._next, self._size = (self._next + count) % self.capacity, min(self._size + count, self.capacity)
        return places

    def at(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """Return the decisions at places, by column."""
        return {name: rows[places] for name, rows in self._columns.items()}

    def draw(self, random: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        """Return decisions drawn uniformly with replacement, by column."""
        return self.at(random.integers(self._size, size=count))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the whole content as arrays by name."""
        columns = {f"columns/{name}": rows[: self._size] for name, rows in self._columns.items()}
        return {"next": np.array(self._next), "size": np.array(self._size), **columns}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the content that `arrays` returned."""
        self._size, self._next = int(arrays["size"]), int(arrays["next"])
        for name, rows in arrays.items():
            if name.startswith("columns/"):
                column = np.zeros((self.capacity, *rows.shape[1:]), rows.dtype)
                column[: self._size] = rows
                self._columns[name.removeprefix("columns/")] = column


class PrioritisedReplay:
    """A memory from which a decision is drawn with a probability proportional to (|error| + eps)^alpha."""

    def __init__(self, capacity: int, alpha: float, eps: float) -> None:
        self.memory, self.alpha, self.eps = ReplayMemory(capacity), alpha, eps
        self._tree = SumTree(capacity)

    def __len__(self) -> int:
        return len(self.memory)

    def add(self, columns: Mapping[str, np.ndarray], errors: np.ndarray) -> None:
        """Append decisions with their errors. Raises ValueError for more than the memory's capacity."""
        if len(errors) > self.memory.capacity:
            raise ValueError(f"{len(errors)} decisions at once, room for {self.memory.capacity}")
        if len(errors):
            self.set_errors(self.memory.add(columns), errors)

    def set_errors(self, places: np.ndarray, errors: np.ndarray) -> None:
        """Set the errors (float, either sign) of decisions."""
        self._tree.set(places, (np.abs(np.asarray(errors, dtype=float)) + self.eps) ** self.alpha)

    def draw(
        self, random: np.random.Generator, count: int, beta: float
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Draw decisions: the sum of priorities is divided into `count` equal parts, and one decision is drawn from
        each.

        Returns places (int64), importance weights (float32: (size x probability)^-beta over the largest in the memory),
        columns.
        """
        total = self._tree.total
        places = self._tree.find((np.arange(count) + random.random(count)) * (total / count))
        priorities = self._tree.get(places)
        known = self._tree.get(np.arange(len(self)))
        least = float(known[known > 0].min())
        weights = (priorities / least) ** -beta
        return places, weights.astype(np.float32), self.memory.at(places)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the whole content as arrays by name."""
        return {"priorities": self._tree.get(np.arange(len(self))), **self.memory.arrays()}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the content that `arrays` returned."""
        self.memory.load(arrays)
        if len(self):
            self._tree.set(np.arange(len(self)), arrays["priorities"])
