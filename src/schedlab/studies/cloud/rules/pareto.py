"""The Pareto front of plans in time and cost, and the distance of a set of policies from it.

For each plan from the start, the front has a point that is worse in neither objective by more than a share EPSILON of
the front's range. The front consists of the non-dominated points of the constant allocations, of the best plans for
many weights of time and cost, and of plans between these. A multi-objective dynamic programme finds the latter: each
beginning of a plan is completed as each of the best plans would, and discarded if bounds show that known points cover
all its completions. Sources: Ehrgott and Gandibleux 2007 (bound sets); docs/reference/cloud_model.md. Measures:
moocore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import moocore
import numpy as np

from schedlab.studies.cloud.replay.replay import SECONDS, Replay, straight_courses
from schedlab.studies.cloud.rules.oracle import best_plan, followed

EPSILON = 0.005  # a plan of the front may be longer and dearer than the exact one by this share of the front's range
WEIGHTS = (
    41  # of time against cost, even in the front's range: ends of partial plans, and bounds of what they can lead to
)
LEAST = 1e-4  # of a weight: of equally fast plans the cheapest is found
UTILITIES = 101  # weights of the expected utility
REFERENCE = 1.1  # reference point of the hypervolume, in units of the front's range


def non_dominated(points: np.ndarray) -> np.ndarray:
    """Return the non-dominated points of (n, 2), each once, in the order of rising time."""
    points = np.unique(points[np.isfinite(points).all(axis=1)], axis=0)
    return points[moocore.is_nondominated(points)] if len(points) else points


def staying_points(replay: Replay) -> np.ndarray:
    """Return time (s) and cost ($) of going straight to each allocation and staying, (n, 2); infinite if it is not
    reached.
    """
    spent, restart = interval_points(replay)
    total, here = np.where(replay.fits[:, None], 0.0, np.inf) * np.ones(2), np.empty(0)
    for interval, here, changed in straight_courses(replay):
        total += spent[interval, here]
        total += np.where(changed[:, None], restart[here], 0.0)
    return np.where((here == np.arange(len(total)))[:, None], total, np.inf)


def interval_points(replay: Replay) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and dollars of an interval on each allocation, (E, n, 2), and of a restart there, (n, 2)."""
    hourly = replay.price / SECONDS
    restart = np.stack([replay.moving, replay.moving * hourly], axis=1)
    seconds = np.where(replay.fits, replay.seconds, np.inf)
    return np.stack([seconds, seconds * hourly], axis=-1), restart


@dataclass(frozen=True)
class Course:
    """The best plan for weights of seconds and dollars, (2,), from each interval and allocation on.

    points  (E + 1, n, 2), seconds and dollars that the plan still takes
    values  (E + 1, n), their weighted sum, the smallest of all plans
    """

    weights: np.ndarray
    points: np.ndarray
    values: np.ndarray


def best_course(replay: Replay, share: float) -> Course:
    """Return the best plan for a weight `share` of time and 1 - `share` of cost. Shares are moved away from 0 and 1 by
    at least LEAST.
    """
    share = min(max(share, LEAST), 1.0 - LEAST)
    plan: Any = best_plan(replay, {"time": share, "cost": 1.0 - share, "resource": 0.0})
    spent, restart = interval_points(replay)
    each = [followed(replay, plan.actions, spent[..., place], restart[:, place]) for place in (0, 1)]
    points = np.stack(each, axis=-1)
    return Course(np.array([share / replay.time_ref, (1.0 - share) / replay.cost_ref]), points, plan.values)


def best_courses(replay: Replay) -> tuple[list[Course], np.ndarray]:
    """Return the best plans for WEIGHTS weights, evenly spaced between the fastest and the cheapest plan, and the
    difference of these two in time and cost, (2,).
    """
    start = replay.lattice.start
    fastest, cheapest = best_course(replay, 1.0), best_course(replay, 0.0)
    span = np.abs(fastest.points[0, start] - cheapest.points[0, start])
    units = np.where(span > 0, span, 1.0) / [replay.time_ref, replay.cost_ref]
    shares = [
        share * units[1] / (share * units[1] + (1.0 - share) * units[0])
        for share in np.linspace(0.0, 1.0, WEIGHTS)[1:-1]
    ]
    return [fastest, *(best_course(replay, share) for share in shares), cheapest], span


def front(replay: Replay, epsilon: float = EPSILON) -> np.ndarray:
    """Return time (s) and cost ($) of the plans of the front, (k, 2), in the order of rising time. Each point is that
    of a plan.

    The ends of the front are the best plans for a weight LEAST of cost or of time; plans that are faster or cheaper by
    less are not searched for.
    """
    points, restart = interval_points(replay)
    courses, span = best_courses(replay)
    weights, start = np.array([course.weights for course in courses]), replay.lattice.start
    known = non_dominated(np.concatenate([[course.points[0, start] for course in courses], staying_points(replay)]))
    nodes, labels = np.array([start]), np.zeros((1, 2))
    for interval in range(replay.intervals):
        rows, actions = np.nonzero(replay.allowed[nodes])
        there = replay.cut_to_slots(interval, replay.lattice.following[nodes[rows], actions])
        spent = labels[rows] + points[interval, there]
        spent += np.where((there != nodes[rows])[:, None], restart[there], 0.0)
        nodes, labels = _best_labels(there, spent)
        bounds = labels @ weights.T + np.stack([course.values[interval + 1, nodes] for course in courses], axis=1)
        alive = _may_improve(bounds, weights, known, epsilon * span)
        nodes, labels = nodes[alive], labels[alive]
        known = non_dominated(
            np.concatenate([known, *(labels + course.points[interval + 1, nodes] for course in courses)])
        )
    return known


def _may_improve(bounds: np.ndarray, weights: np.ndarray, known: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Return which partial plans may improve the front: those for which a corner between known points is above all
    their bounds.
    """
    corners = np.stack([np.append(known[1:, 0], np.inf), known[:, 1]], axis=1)[:-1] - slack
    alive, open_ones = np.zeros(len(bounds), dtype=bool), np.arange(len(bounds))
    for corner in corners @ weights.T:
        found = (bounds[open_ones] < corner).all(axis=1)
        alive[open_ones[found]] = True
        open_ones = open_ones[~found]
    return alive


def _best_labels(nodes: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the non-dominated labels of each node: in the order of rising time, those that are cheaper than all
    before.
    """
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

    hypervolume       as a share of that of the front
    igd_plus, additive_epsilon
    utility           how much larger the smallest weighted sum over the points is than that over the front, mean over
                      UTILITIES weights of time and cost
    For the front itself, the first is 1 and the others are 0.
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
    """Return the corners (k, 2), in the order of rising time, of the region that at least a share of the sets of points
    (n, 2) attains; a share of 0.5 gives the median, 1 what all sets attain.

    A set attains every point that one of its points dominates: this is the empirical attainment function (Grunert da
    Fonseca, Fonseca and Hall 2001).
    """
    numbers = np.repeat(np.arange(len(sets)), [len(points) for points in sets])
    found = moocore.eaf(np.concatenate(sets), sets=numbers, percentiles=[100.0 * share])
    return non_dominated(found[:, :2])


def front_report(replay: Replay) -> Mapping[str, list[list[float]]]:
    """Return the front and the non-dominated constant allocations as lists, for a JSON file."""
    return {"front": front(replay).tolist(), "static_front": non_dominated(staying_points(replay)).tolist()}
