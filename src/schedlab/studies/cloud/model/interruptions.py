"""The time of work on a spot instance, which may be interrupted at any moment and then starts again from its last
checkpoint.

Interruptions come as a Poisson process with a constant rate h (1/s). A stretch of work between two checkpoints is
tried until one attempt is not interrupted. The first attempt takes u seconds, each later one v, which includes the
restart. An attempt of u seconds takes (1 - exp(-h u)) / h on average and is interrupted with probability 1 - exp(-h
u); the later attempts together take (exp(h v) - 1) / h. The expected time of the stretch is therefore (1 - exp(-h u))
exp(h v) / h. With u = w and v = w + R this is exp(h R) (exp(h w) - 1) / h, the complete model of Daly, "A higher order
estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22, 2006, for
checkpoints that take no time. Real interruptions are not always memoryless: Kadupitiya et al., "Modeling the
temporally constrained preemptions of transient cloud VMs", HPDC 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np

HOUR = 3600.0
# Largest mean number of interruptions in one attempt: above it, more than 19 of 20 attempts fail.
MOST_RISK = 3.0
Number = Any  # a number or an array of them


def hazard_of(rate: float) -> float:
    """Return the interruptions per second of running, given the probability of one within an hour; infinite for 1."""
    return float("inf") if rate >= 1.0 else float(-np.log1p(-rate) / HOUR)


def expected_time(first: Number, again: Number, hazard: Number) -> np.ndarray:
    """Return the expected time of a stretch of work, s. first, again: of the first attempt and of each later one, s;
    infinite where `again` is beyond MOST_RISK.
    """
    first, again, hazard = np.broadcast_arrays(*(np.asarray(value, float) for value in (first, again, hazard)))
    found = first.copy()
    spot = hazard > 0
    h, v = hazard[spot], again[spot]
    possible = h * v <= MOST_RISK
    h, v = np.where(possible, h, 1.0), np.where(possible, v, 0.0)
    found[spot] = np.where(possible, -np.expm1(-h * first[spot]) * np.exp(h * v) / h, np.inf)
    return found


def drawn_time(first: np.ndarray, again: np.ndarray, hazard: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the times of `count` stretches of work in sum, drawn at random for each of B cases, (B,), s.

    first, again: (B,), s, of the first attempt of a stretch and of each later one
    hazard: above 0, and small enough for `again` (MOST_RISK)
    """
    failed = rng.binomial(count, -np.expm1(-hazard * first))
    more = np.where(failed > 0, rng.negative_binomial(np.maximum(failed, 1), np.exp(-hazard * again)), 0)
    lost = _lost(failed, first, hazard, rng) + _lost(more, again, hazard, rng)
    return (count - failed) * first + failed * again + lost


def _lost(counts: np.ndarray, length: np.ndarray, hazard: float, rng: np.random.Generator) -> np.ndarray:
    """Return the time lost in a number of interrupted attempts of some length, in sum, (B,): each is the time of the
    interruption, given that it comes before the end.
    """
    case = np.repeat(np.arange(len(counts)), counts)
    times = -np.log1p(rng.random(len(case)) * np.expm1(-hazard * length[case])) / hazard
    return np.bincount(case, times, minlength=len(counts))
