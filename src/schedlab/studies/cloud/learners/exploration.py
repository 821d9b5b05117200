"""Exploration that is not deterred by the cost of a restart: episodes that commit to an allocation, and imitation of
the best episodes.

A change costs a restart before it improves anything, so single exploratory actions lower the return once the policy
keeps its allocation. A committed episode goes straight to an allocation drawn from those that the limits allow, and
stays there; it needs actions and masks, but no model. The best episodes seen, committed or not, are imitated as long as
the policy's own episodes have lower returns (self-imitation learning, Oh et al., ICML 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from schedlab.studies.cloud.model.lattice import Grid
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv

UNCONSTRAINED = np.empty(0)  # the multipliers of no constraints


def committed_actions(lattice: Grid, here: np.ndarray, targets: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return the actions of committed episodes, which lead straight to their targets, int64 (N,).

    If the mask forbids the direct action, the episode first takes memory and gives back GPUs; if that is forbidden,
    too, or at the target, it stays. allowed: (N, actions), True for actions after which the job has the memory that it
    needs.
    """
    places = np.arange(len(here))
    found = np.full(len(here), lattice.keep)
    for tried in reversed(lattice.ways_to(here, targets)):
        found = np.where(allowed[places, tried], tried, found)
    return np.where(here == targets, lattice.keep, found)


def committed_choices(env: CloudReplayVectorEnv, targets: np.ndarray) -> np.ndarray:
    """Return the positions of the actions, (N,), by which the first N episodes go straight to their targets; where
    masked constraints forbid this action, the first one that they allow.
    """
    here = env.here[: len(targets)]
    straight = committed_actions(env.replay.lattice, here, targets, env.replay.allowed[here])
    found = np.searchsorted(env.actions, straight)
    if not env.constraints.items:
        return found
    masks = env.action_masks()[: len(targets)]
    return np.where(masks[np.arange(len(found)), found], found, masks.argmax(axis=1))


@dataclass(frozen=True)
class Branches:
    """Courses that committed episodes repeat at first: their actions (E, B), and the interval in which each one is left
    (B,).
    """

    actions: np.ndarray
    until: np.ndarray

    @staticmethod
    def drawn(best: Episodes, number: int, rng: np.random.Generator) -> Branches:
        """Return branches drawn from the best episodes, each with a random interval in which it is left."""
        intervals, kept = best.actions.shape
        return Branches(best.actions[:, rng.integers(kept, size=number)], rng.integers(intervals, size=number))

    def followed(self, interval: int, actions: np.ndarray) -> np.ndarray:
        """Return actions of committed episodes (C,) in an interval; the last B follow their branches at first."""
        begin = len(actions) - len(self.until)
        own = np.where(interval < self.until, self.actions[interval], actions[begin:])
        return np.concatenate([actions[:begin], own])


@dataclass
class Episodes:
    """N episodes of E intervals in parallel: observations (E, N, size), masks (E, N, actions), actions and returns (E,
    N). The returns do not contain the excess over the k constraints from each interval on, which is separate (E, N, k).
    """

    observations: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    returns: np.ndarray
    excess: np.ndarray

    def penalised(self, multipliers: np.ndarray) -> np.ndarray:
        """Return the returns minus the excess over each constraint times its multiplier, (E, N). multipliers: (k,)"""
        return self.returns - self.excess @ multipliers if len(multipliers) else self.returns

    def take(self, places: np.ndarray | list[int] | slice) -> Episodes:
        """Return the episodes at some positions."""
        return Episodes(*(values[:, places] for values in self.arrays().values()))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by name, for a checkpoint."""
        return {
            "observations": self.observations,
            "masks": self.masks,
            "actions": self.actions,
            "returns": self.returns,
            "excess": self.excess,
        }


@dataclass
class BestEpisodes:
    """The best episodes so far, at most `most`, no two with the same actions, best first."""

    most: int
    kept: Episodes | None = field(default=None)

    def add(self, new: Episodes, multipliers: np.ndarray = UNCONSTRAINED) -> Episodes:
        """Add episodes and return the best ones, ranked by their returns with these multipliers of constraints. Of
        equal returns, the older episode comes first.
        """
        joined = new
        if self.kept is not None:
            pairs = zip(self.kept.arrays().values(), new.arrays().values(), strict=True)
            joined = Episodes(*(np.concatenate(pair, axis=1) for pair in pairs))
        once: dict[bytes, int] = {}
        for place in np.argsort(-joined.penalised(multipliers)[0], kind="stable").tolist():
            once.setdefault(joined.actions[:, place].tobytes(), place)
            if len(once) == self.most:
                break
        self.kept = joined.take(list(once.values()))
        return self.kept

    def add_shared(self, new: Episodes, values: np.ndarray) -> None:
        """Add another preference's best episodes, with their values (N,) for this preference."""
        chosen = np.argsort(-values, kind="stable")[: self.most]
        own = new.take(chosen.tolist())
        self.add(replace(own, returns=np.tile(values[chosen], (len(own.returns), 1))))
