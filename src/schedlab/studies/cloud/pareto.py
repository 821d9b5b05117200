"""Plans that no other beats in both time and cost, and how near a set of policies is to them.

The front is that of all plans from the start on, up to a factor of 1 + EPSILON in each objective: the non-dominated union of constant
allocations, of the best plans for many weights of time and cost, and of what lies between these (a multi-objective dynamic programme,
whose partial plans are dropped where bounds tell that the points known already cover whatever they lead to).
Sources: Ehrgott and Gandibleux 2007 (bound sets); specification of the study cloud, B4 and B5. Measures: moocore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import moocore
import numpy as np

from schedlab.studies.cloud.oracle import best_plan
from schedlab.studies.cloud.replay import SECONDS, Replay
from schedlab.studies.cloud.ways import towards

EPSILON = 0.02  # a plan of the front may be longer or dearer by this share than the exact one
WEIGHTS = 41  # of time against cost: bounds of what partial plans can still lead to
UTILITIES = 101  # weights of the expected utility
REFERENCE = 1.1  # reference point of the hypervolume, in units of the front's range


def non_dominated(points: np.ndarray) -> np.ndarray:
    """Return the points (n, 2) that no other one beats in both, each once, by rising time."""
    points = np.unique(points[np.isfinite(points).all(axis=1)], axis=0)
    return points[moocore.is_nondominated(points)] if len(points) else points


def staying_points(replay: Replay) -> np.ndarray:
    """Return time (s) and cost ($) of going straight to each allocation and staying, (n, 2); infinite as in oracle.objective_of_staying."""
    seconds, dollars, restart = interval_points(replay)
    target = np.arange(len(replay.lattice))
    here = np.full(len(target), replay.lattice.start)
    found = np.where(replay.fits[:, None], 0.0, np.inf) * np.ones(2)
    for interval in range(replay.intervals):
        there = replay.taken(interval, replay.lattice.following[here, towards(replay, here, target)])
        found += np.stack([seconds[interval, there], dollars[interval, there]], axis=1)
        found += np.where((there != here)[:, None], restart[there], 0.0)
        here = there
    return np.where((here == target)[:, None], found, np.inf)


def interval_points(replay: Replay) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return seconds and dollars of an interval on each allocation, (E, n), and of a restart there, (n, 2)."""
    hourly = replay.price / SECONDS
    restart = np.stack([np.full(len(hourly), replay.restart), replay.restart * hourly], axis=1)
    seconds = np.where(replay.fits, replay.seconds, np.inf)
    return seconds, seconds * hourly, restart


def plan_points(replay: Replay) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return the points of the best plans for WEIGHTS weights, (k, 2), what is left to pay under each, and the weights, (k, 2).

    What is left: of interval and allocation, (E + 1, n), in units of the weighted sum of s and $.
    """
    seconds, dollars, restart = interval_points(replay)
    points, left, weights = [], [], []
    for share in np.linspace(0.0, 1.0, WEIGHTS):
        share = min(max(share, 1e-4), 1.0 - 1e-4)  # so that of equally fast plans the cheapest is found
        plan = best_plan(replay, {"time": share, "cost": 1.0 - share, "resource": 0.0})
        here, total = replay.lattice.start, np.zeros(2)
        for interval in range(replay.intervals):
            there = int(replay.taken(interval, replay.lattice.following[here, plan.actions[interval, here]]))
            total += (seconds[interval, there], dollars[interval, there])
            total += restart[there] if there != here else 0.0
            here = there
        points.append(total)
        left.append(plan.values)
        weights.append((share / replay.time_ref, (1.0 - share) / replay.cost_ref))
    return np.array(points), left, np.array(weights)


def front(replay: Replay, epsilon: float = EPSILON) -> np.ndarray:
    """Return time (s) and cost ($) of the plans of the front, (k, 2), by rising time. All are reached exactly.

    Its ends are the best plans for a weight of 1e-4 on cost or on time: a plan that is faster or cheaper by less than that is not sought.
    """
    seconds, dollars, restart = interval_points(replay)
    supported, left, weights = plan_points(replay)
    known = non_dominated(np.concatenate([supported, staying_points(replay)]))
    nodes, labels = np.array([replay.lattice.start]), np.zeros((1, 2))
    for interval in range(replay.intervals):
        rows, actions = np.nonzero(replay.allowed[nodes])
        there = replay.taken(interval, replay.lattice.following[nodes[rows], actions])
        spent = labels[rows] + np.stack([seconds[interval, there], dollars[interval, there]], axis=1)
        spent += np.where((there != nodes[rows])[:, None], restart[there], 0.0)
        bounds = spent @ weights.T + np.stack([values[interval + 1, there] for values in left], axis=1)
        alive = _may_improve(bounds, weights, known, epsilon)
        nodes, labels = _best_labels(there[alive], spent[alive])
    return non_dominated(np.concatenate([known, labels]))


def _may_improve(bounds: np.ndarray, weights: np.ndarray, known: np.ndarray, epsilon: float) -> np.ndarray:
    """Which partial plans may lead to a point that no known one covers: some corner between known points lies above all their bounds."""
    corners = np.stack([np.append(known[1:, 0], np.inf), known[:, 1]], axis=1)[:-1] / (1.0 + epsilon)
    alive = np.zeros(len(bounds), dtype=bool)
    for corner in corners @ weights.T:
        alive |= (bounds < corner).all(axis=1)
    return alive


def _best_labels(nodes: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels of each node that no other one of it beats: by rising time, those cheaper than all before."""
    order = np.lexsort((labels[:, 1], labels[:, 0], nodes))
    nodes, labels = nodes[order], labels[order]
    first = np.flatnonzero(np.diff(nodes, prepend=-1))
    keep = np.zeros(len(nodes), dtype=bool)
    for begin, end in zip(first, np.append(first, len(nodes))[1:], strict=True):
        dollars = labels[begin:end, 1]
        keep[begin:end] = dollars < np.concatenate([[np.inf], np.minimum.accumulate(dollars)[:-1]])
    return nodes[keep], labels[keep]


def measures(points: np.ndarray, of: np.ndarray) -> dict[str, float]:
    """Return how near points (n, 2) are to a front (k, 2), in units of the front's range.

    hypervolume (share of the front's), igd_plus, additive_epsilon, and utility: how much more the best of the points costs than the best of
    the front, in the mean over UTILITIES weights of time and cost. The first is 1 and the others are 0 for the front itself.
    """
    low, span = of.min(axis=0), np.ptp(of, axis=0)
    span = np.where(span > 0, span, 1.0)
    found, best = (points - low) / span, (of - low) / span
    shares = np.linspace(0.0, 1.0, UTILITIES)
    weights = np.stack([shares, 1.0 - shares])
    reference = [REFERENCE, REFERENCE]
    return {
        "hypervolume": float(moocore.hypervolume(found, ref=reference) / moocore.hypervolume(best, ref=reference)),
        "igd_plus": float(moocore.igd_plus(found, ref=best)),
        "additive_epsilon": float(moocore.epsilon_additive(found, ref=best)),
        "utility": float(np.mean((found @ weights).min(axis=0) - (best @ weights).min(axis=0))),
    }


def attainment_surface(sets: Sequence[np.ndarray], share: float) -> np.ndarray:
    """Return the corners (k, 2), by rising time, of what at least a share of the sets of points (n, 2) attains: 0.5 the median, 1 all.

    That is the empirical attainment function (Grunert da Fonseca, Fonseca and Hall 2001): a set attains whatever one of its points beats.
    """
    numbers = np.repeat(np.arange(len(sets)), [len(points) for points in sets])
    found = moocore.eaf(np.concatenate(sets), sets=numbers, percentiles=[100.0 * share])
    return non_dominated(found[:, :2])


def front_report(replay: Replay) -> Mapping[str, list[list[float]]]:
    """Return the front and the non-dominated constant allocations as lists, for a JSON file."""
    return {"front": front(replay).tolist(), "static_front": non_dominated(staying_points(replay)).tolist()}
