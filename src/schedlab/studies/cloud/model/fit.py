"""Fits the step-time model to measurements, and estimates the errors of the fit.

Source: Pollux, OSDI 2021 (form, penalties); docs/reference/cloud_model.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.step_time import StepParameters, step_time

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("a_c", "b_c", "a_n", "b_n", "a_r", "b_r", "y")
LEAST, MOST = 1e-8, 1e3  # bounds of a parameter, s
SLOWEST, FASTEST = 1e-3, 1e3  # bounds of the speed of a GPU kind
PINNED = 1e-8  # value of the parameters of a regime without measurements
FARTHER = 1.1  # if only steps within a node were measured, those between nodes are at least this much slower
SMOOTH = 1e-3  # relative error below which the loss is quadratic instead of linear
SMOOTH_ALONE = 0.03  # the same for the absolute error
# Median relative error above which the time in synchronisation is ignored
CONTRADICTED = 0.08
OVERLAP_PENALTY, GROWTH_PENALTY = 1e-3, 1e-2  # weights of (y - 1)^2 and of (b_n/a_n)^2 + (b_r/a_r)^2, as in Pollux
# Starts of the search: factor on the synchronisation of the first guess, and y.
STARTS = ((1.0, 1.0), (0.3, 2.0), (3.0, 4.0))


@dataclass(frozen=True)
class Fit:
    """Fitted parameters, the number of rows, and the median and largest relative error of the step time over these
    rows.

    alone   the step times were fitted without the time in synchronisation that the rows report
    speeds  speed of each GPU kind, relative to the kind with the most rows, which comes first and has 1; empty if the
            rows name none
    """

    parameters: StepParameters
    rows: int
    median_error: float
    largest_error: float
    alone: bool = False
    speeds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LeftOut:
    """Errors on placements that were left out of the fit, one at a time.

    placements     number of placements that were left out
    interpolation  median relative error on those between measured placements; None if there is none
    extrapolation  the same for those beyond measured placements
    """

    placements: int
    interpolation: float | None
    extrapolation: float | None


def fit(rows: pd.DataFrame) -> Fit:
    """Fit the model to rows of logs.read_step_times (columns nodes, gpus, batch, step_time, sync_time, and kind if the
    logs name the kinds of their GPUs). Raises UserError without rows.

    The synchronisation times that rows report may be wrong, for example if they are derived from the utilisation of a
    short probe. If the fit misses the step times by more than CONTRADICTED, the step times are also fitted alone, by
    absolute error, and the better fit is returned.
    """
    if not len(rows):
        raise UserError("no row with a GPU", where="step times", expected="at least one measured step on a GPU")
    found = _fitted(_Data(rows), rows)
    if found.median_error > CONTRADICTED:
        alone = _fitted(_Data(rows.assign(sync_time=np.nan), absolute=True), rows)
        if alone.median_error < found.median_error:
            return replace(alone, alone=True)
    return found


def fit_again(rows: pd.DataFrame, near: Fit) -> Fit:
    """Return the fit to other step times of the same settings. The search starts only from the parameters of an earlier
    fit.
    """
    data = _Data(rows.assign(sync_time=np.nan) if near.alone else rows, absolute=near.alone)
    return _fitted(data, rows, [np.array([*near.parameters.values().values(), *list(near.speeds.values())[1:]])])


def _fitted(data: _Data, rows: pd.DataFrame, starts: list[np.ndarray] | None = None) -> Fit:
    """Return the best of the fits from several starts; by default, from STARTS times the first guess."""
    from scipy.optimize import minimize

    bounds, first = data.bounds(), data.first_guess()
    speeds = data.first_speeds()
    usual = [
        np.array([*first[:2], *(value * factor for value in first[2:]), overlap, *speeds]) for factor, overlap in STARTS
    ]
    low, high = np.array(bounds).T
    best: Any = None
    for start in starts or usual:
        found = minimize(
            data.loss,
            np.log(np.clip(start, low, high)),
            jac=True,
            method="L-BFGS-B",
            bounds=np.log(bounds),
            options={"maxiter": 500, "maxfun": 20000},
        )
        best = found if best is None or found.fun < best.fun else best
    values = [float(value) for value in np.exp(best.x)]
    parameters = data.completed(StepParameters(*values[: len(NAMES)]))
    found = dict(zip(data.kinds, [1.0, *values[len(NAMES) :]], strict=False))
    errors = relative_errors(parameters, rows, found)
    return Fit(parameters, len(rows), float(np.median(errors)), float(errors.max()), speeds=found)


def speed_of(rows: pd.DataFrame, speeds: Mapping[str, float]) -> np.ndarray | float:
    """Return the speed of the GPU kind of each row; NaN for a kind without a speed, 1 if the rows name no kinds."""
    return rows["kind"].map(speeds).to_numpy(float) if "kind" in rows.columns else 1.0


def relative_errors(
    parameters: StepParameters, rows: pd.DataFrame, speeds: Mapping[str, float] | None = None
) -> np.ndarray:
    """Return |predicted - measured| / measured of the step time of each row. speeds: of GPU kinds."""
    measured, places = rows["step_time"].to_numpy(float), (rows["nodes"].to_numpy(), rows["gpus"].to_numpy())
    predicted = step_time(parameters, *places, rows["batch"].to_numpy(float), speed_of(rows, speeds or {}))
    return np.abs(predicted - measured) / measured


class _Data:
    """Measurements as arrays, and the loss as a function of the logarithms of the parameters: of squared errors or,
    with `absolute`, of absolute errors, which are robust to outliers.
    """

    def __init__(self, rows: pd.DataFrame, absolute: bool = False) -> None:
        self.mean = _mean_absolute if absolute else _rms
        self.nodes, self.gpus = rows["nodes"].to_numpy(), rows["gpus"].to_numpy()
        self.batch, self.step = rows["batch"].to_numpy(float), rows["step_time"].to_numpy(float)
        sync = rows["sync_time"].to_numpy(float)
        self.gradient = self.step - np.where(np.isfinite(sync), sync, 0.0)
        self.split = np.isfinite(sync)
        self.more = np.maximum(self.gpus - 2, 0)
        self.between, self.within = self.nodes > 1, (self.nodes == 1) & (self.gpus > 1)
        counts = dict(rows["kind"].value_counts().sort_index()) if "kind" in rows.columns else {}
        self.kinds = sorted(counts, key=lambda kind: -counts[kind])
        self.of_kind = np.array([rows["kind"] == kind for kind in self.kinds[1:]], float).reshape(-1, len(rows))
        self.base = self.of_kind.sum(axis=0) == 0.0  # rows of the kind whose speed is 1

    def bounds(self) -> list[tuple[float, float]]:
        """Return the bounds of the parameters; those without measurements are pinned."""
        pinned, free = (PINNED, PINNED * 1.001), (LEAST, MOST)
        of = dict.fromkeys(NAMES, free) | {"y": (1.0, 10.0)}
        if not self.between.any():
            of["a_n"] = of["b_n"] = pinned
        if not self.within.any():
            of["a_r"] = of["b_r"] = pinned
        for name, which in (("b_n", self.between), ("b_r", self.within)):
            if which.any() and self.gpus[which].max() <= 2:
                of[name] = pinned
        if len(np.unique(self.batch)) == 1:
            of["a_c"] = pinned
        return [*(of[name] for name in NAMES), *[(SLOWEST, FASTEST)] * len(self.of_kind)]

    def first_speeds(self) -> list[float]:
        """Return the initial speeds of the GPU kinds after the first: the ratio of their samples per second and GPU."""
        each = self.batch / self.gradient
        return [float(np.median(each[kind > 0.0]) / np.median(each[self.base])) for kind in self.of_kind]

    def first_guess(self) -> list[float]:
        """Return the initial parameters: a line through the gradient times, and the mean of the remaining time for
        synchronisation.
        """
        batch, gradient = self.batch[self.base], self.gradient[self.base]
        slope = float(np.polyfit(batch, gradient, 1)[0]) if len(np.unique(batch)) > 1 else 0.0
        slope = max(slope, 0.1 * float((gradient / batch).min()))
        base = max(float(np.mean(gradient) - slope * np.mean(batch)), 0.1 * float(gradient.min()))
        left = np.maximum(self.step - self.gradient, 0.05 * self.step)
        found = [base, slope]
        for which in (self.between, self.within):
            mean = float(left[which].mean()) if which.any() else PINNED
            found += [mean, 0.02 * mean]
        return found

    def loss(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the root mean squared errors of the logarithms of gradient and step time, with penalties on overlap
        and growth, and the gradient with respect to the logarithms of the parameters.
        """
        values = np.exp(logs)
        a_c, b_c, a_n, b_n, a_r, b_r, y = values[: len(NAMES)]
        speed = np.exp(logs[len(NAMES) :] @ self.of_kind)  # 1 for rows of the first kind
        gradient = (a_c + b_c * self.batch) / speed
        sync = self.between * (a_n + b_n * self.more) + self.within * (a_r + b_r * self.more)
        powers = gradient**y, sync**y
        whole = powers[0] + powers[1]
        of_gradient, of_sync = (
            powers[0] / gradient / whole / speed,
            np.where(sync > 0, powers[1] / np.where(sync > 0, sync, 1.0), 0.0) / whole,
        )
        mixed = powers[0] * np.log(gradient) + powers[1] * np.log(np.where(sync > 0, sync, 1.0))
        slopes = np.stack(
            [
                *(of_gradient, of_gradient * self.batch),
                *(
                    of_sync * self.between,
                    of_sync * self.between * self.more,
                    of_sync * self.within,
                    of_sync * self.within * self.more,
                ),
                mixed / whole / y - np.log(whole) / y**2,
                *(-of_gradient * gradient * kind * speed / value for kind, value in self._kinds(values)),
            ]
        )
        loss, slope = self.mean(np.log(whole) / y - np.log(self.step), slopes * values[:, None])
        if self.split.any():
            split = self.split
            error = np.log(gradient[split] / self.gradient[split])
            of_gradient = np.zeros((len(logs), int(split.sum())))
            of_gradient[:2] = np.stack([np.full(split.sum(), a_c), b_c * self.batch[split]])
            of_gradient[:2] /= gradient[split] * speed[split]
            of_gradient[len(NAMES) :] = -self.of_kind[:, split]
            more, steeper = self.mean(error, of_gradient)
            loss, slope = loss + more, slope + steeper
        loss += OVERLAP_PENALTY * (y - 1.0) ** 2
        slope[6] += 2 * OVERLAP_PENALTY * (y - 1.0) * y
        for base, growth, ratio in ((2, 3, b_n / a_n), (4, 5, b_r / a_r)):
            loss += GROWTH_PENALTY * ratio**2
            slope[growth] += 2 * GROWTH_PENALTY * ratio**2
            slope[base] -= 2 * GROWTH_PENALTY * ratio**2
        return float(loss), slope

    def _kinds(self, values: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        """Yield the rows of each GPU kind after the first, (n,), and its speed."""
        return zip(self.of_kind, values[len(NAMES) :], strict=True)

    def completed(self, p: StepParameters) -> StepParameters:
        """Return the parameters with those of synchronisation between nodes, if only steps within a node were
        measured.
        """
        values = p.values()
        if not self.between.any():
            values |= {"a_n": max(p.a_n, FARTHER * p.a_r), "b_n": max(p.b_n, FARTHER * p.b_r)}
        return StepParameters(**values)


def _rms(errors: np.ndarray, slopes: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the root mean square of errors (n,), smoothed at 0, and its gradient from theirs, (k, n)."""
    root = float(np.sqrt(np.mean(errors**2) + SMOOTH**2))
    return root, slopes @ errors / (len(errors) * root)


def _mean_absolute(errors: np.ndarray, slopes: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean absolute value of errors (n,), smoothed at 0, and its gradient from theirs, (k, n)."""
    absolute = np.sqrt(errors**2 + SMOOTH_ALONE**2)
    return float(absolute.mean()), slopes @ (errors / absolute) / len(errors)


def leave_one_placement_out(rows: pd.DataFrame) -> LeftOut:
    """Fit without each placement (nodes, GPUs) in turn and predict it.

    A placement counts as interpolated if neither its number of nodes nor its number of GPUs is the smallest or largest
    measured one.
    """
    placements = sorted({(int(n), int(k)) for n, k in zip(rows["nodes"], rows["gpus"], strict=True)})
    inside: list[float] = []
    outside: list[float] = []
    for placement, kept, left in _folds(rows, placements):
        others = [other for other in placements if other != placement]
        within = all(min(o[axis] for o in others) <= placement[axis] <= max(o[axis] for o in others) for axis in (0, 1))
        found = fit(kept)
        errors = relative_errors(found.parameters, left, found.speeds)
        (inside if within else outside).extend(errors[np.isfinite(errors)])  # not of a kind that only `left` has
    median = [float(np.median(errors)) if errors else None for errors in (inside, outside)]
    return LeftOut(len(placements) if len(placements) > 1 else 0, *median)


def _folds(
    rows: pd.DataFrame, placements: list[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], pd.DataFrame, pd.DataFrame]]:
    if len(placements) > 1:
        for nodes, gpus in placements:
            here = (rows["nodes"] == nodes) & (rows["gpus"] == gpus)
            yield (nodes, gpus), rows[~here], rows[here]
