"""Panels over time: boxes of jobs and spans, areas on top of each other, means and counts of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

Box = tuple[float, float, float, float]  # left, right, bottom, top


def boxes(axes: Axes, places: Sequence[Box], colours: Any, **look: Any) -> None:
    """Draw boxes, each in its own colour or all in one; look: keywords of a `PolyCollection`."""
    corners = [[(left, low), (right, low), (right, high), (left, high)] for left, right, low, high in places]
    axes.add_collection(PolyCollection(corners, facecolors=colours, **look))


def stacked_areas(axes: Axes, parts: Mapping[str, np.ndarray], edges: np.ndarray, colours: Mapping[str, str]) -> None:
    """Draw the values of each part in each interval between `edges` (n + 1,), stacked.

    Each part is one area, because gaps between such narrow bars would appear and disappear with the pixels.
    """
    below = np.zeros(len(edges) - 1)
    for name, values in parts.items():
        axes.stairs(below + values, edges, baseline=below, fill=True, color=colours[name], label=name)
        below = below + values


def means_within(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the mean of a step function in each interval between `edges` (n + 1,): (n,).

    times, values  (m,): each value holds from its time to the next; 0 before the first time, the last value after it
    """
    lengths = np.diff(times, append=max(times[-1], edges[-1]))
    integral = np.concatenate([[0.0], np.cumsum(lengths * values)])
    at_edges = np.interp(edges, np.append(times, times[-1] + lengths[-1]), integral)
    return np.diff(at_edges) / np.diff(edges)
