"""Distributions of beta (the acceptable completion time over the sequential time) and of gaps between arrivals.

All of them are discrete: values with probabilities. See docs/reference/ramp_graphs.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field, model_validator

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting
from schedlab.config.seeds import generator

LEAST_DRAWS, DRAWS_PER_STEP = 50_000, 10  # of the skew normal, and for each step of its grid
BINS = 1000
MOST_VALUES = 100_000  # of a grid; more values indicate a typing error
TOLERANCE = 1e-9  # of the sum of probabilities

T = TypeVar("T")
Probability = Annotated[float, Field(ge=0, le=1)]


class DistributionSettings(Settings):
    """A distribution: one value, a grid, given probabilities, a skew normal cut to a range, or one of several."""

    kind: Literal["fixed", "uniform", "pmf", "skew_normal", "one_of"] = setting(
        doc="`fixed`: `value`; `uniform`: on a grid from `low` to `high`; `pmf`: `probabilities`; "
        "`skew_normal`: `skewness` within `low` and `high`; `one_of`: one of `choices` for each "
        "episode"
    )
    value: float | None = setting(None, doc="value (fixed)")
    low: float | None = setting(None, doc="smallest value (uniform, skew_normal)")
    high: float | None = setting(None, doc="largest value (uniform, skew_normal)")
    decimals: int = setting(
        2,
        doc="number of decimals: of the grid (uniform) or of rounded values (skew_normal)",
        ge=0,
        le=12,
    )
    skewness: float | None = setting(None, doc="skewness parameter of the skew normal; above 0: most values are small")
    shape: Literal["exact", "drawn"] = setting(
        "exact",
        doc="scaling of the skew normal: `exact`: by quantiles of its distribution; `drawn`: by the "
        "extremes of a sample of at least 50,000 draws, as published, so that it depends on the "
        "seed",
    )
    extremes: tuple[float, float] | None = setting(
        None,
        doc="extremes (location 0, scale 1) by which the shape `exact` is scaled; null: quantiles of its distribution",
    )
    below_low: Literal["low", "redraw"] = setting(
        "low",
        doc="values at or below `low` (skew_normal): set to `low`, as published, or redrawn uniformly "
        "between `low` and `high`",
    )
    probabilities: dict[float, Probability] = setting({}, doc="value -> probability (pmf)")
    exact_sum: bool = setting(
        False,
        doc="require probabilities to sum to exactly 1, as the original does (pmf); false: within 1e-9",
    )
    choices: tuple[DistributionSettings, ...] = setting(
        (), doc="distributions, one of which is drawn uniformly for each episode (one_of)"
    )

    @model_validator(mode="after")
    def _check(self) -> DistributionSettings:
        needed = {"fixed": ("value",), "uniform": ("low", "high"), "skew_normal": ("low", "high", "skewness")}.get(
            self.kind, ()
        )
        if missing := [key for key in needed if getattr(self, key) is None]:
            raise ValueError(f"{' and '.join(missing)} of the kind {self.kind}")
        given = {key for key in ("value", "low", "high", "skewness") if getattr(self, key) is not None}
        given |= {"probabilities"} if self.probabilities else set()
        given |= {"choices"} if self.choices else set()
        given |= {"extremes"} if self.extremes and self.kind != "skew_normal" else set()
        own = {"pmf": {"probabilities"}, "one_of": {"choices"}}.get(self.kind, set(needed))
        if given != own:
            wrong = ", ".join(sorted(given - own)) or "nothing"
            raise ValueError(f"the kind {self.kind} has {', '.join(sorted(own))} and not {wrong}")
        if self.low is not None and self.high is not None:
            _check_grid(self.low, self.high, self.decimals, self.kind)
        if self.extremes and (self.shape == "drawn" or not self.extremes[0] < self.extremes[1]):
            raise ValueError("extremes that rise, and the shape exact: a drawn sample brings its own")
        if self.kind == "pmf":
            _check_sum(list(self.probabilities.values()), 0.0 if self.exact_sum else TOLERANCE)
        if any(choice.kind == "one_of" for choice in self.choices):
            raise ValueError("choices that are no list of choices themselves")
        return self

    @property
    def skew_normal(self) -> tuple[float, float, float]:
        """Low, high and skewness; 0 of other kinds, which lack them."""
        return self.low or 0.0, self.high or 0.0, self.skewness or 0.0


def _check_grid(low: float, high: float, decimals: int, kind: str) -> None:
    if not low < high:
        raise ValueError(f"low below high, not {low} and {high}")
    if kind == "skew_normal" and low < 0:
        raise ValueError("low of 0 or more, as values of the skew normal are scaled to between 0 and high")
    if (high - low) * 10**decimals > MOST_VALUES:
        raise ValueError(f"at most {MOST_VALUES} steps between low and high; take fewer decimals")


def _check_sum(probabilities: list[float], tolerance: float) -> None:
    total = sum(probabilities)
    if abs(total - 1.0) > tolerance:
        raise ValueError(f"probabilities that sum to 1, not {total!r}")


@dataclass(frozen=True)
class Distribution:
    """A discrete distribution: values float64[k] in rising order, and their probabilities float64[k]."""

    values: np.ndarray
    probabilities: np.ndarray

    @cached_property
    def _cumulative(self) -> np.ndarray:
        return np.cumsum(self.probabilities)[:-1]

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """Return one value, or float64[size]. Each value uses one random number."""
        found = self.values[np.searchsorted(self._cumulative, rng.random(size), side="right")]
        return float(found) if size is None else found

    def begin(self, rng: np.random.Generator) -> Callable[[float], float]:
        """Return a function that draws a value for any argument, as episodes draw gaps (gaps.py)."""
        return lambda _: float(self.sample(rng))

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.values @ self.probabilities)

    @property
    def std(self) -> float:
        """Standard deviation."""
        return float(np.sqrt((self.values - self.mean) ** 2 @ self.probabilities))


def alternatives(settings: DistributionSettings, rng: np.random.Generator) -> tuple[Distribution, ...]:
    """Return the distributions from which episodes choose: several for `one_of`, else one.

    Only a skew normal of shape `drawn` uses the generator here, once for all episodes of a scenario.
    """
    if settings.kind == "one_of":
        return tuple(_distribution(choice, rng) for choice in settings.choices)
    return (_distribution(settings, rng),)


def of_scenario(settings: DistributionSettings, seed: int, what: str) -> tuple[Distribution, ...]:
    """Return the distributions of a scenario's betas or gaps (`what`) from which episodes choose. The root seed decides
    the sample of a drawn shape.
    """
    return alternatives(settings, generator(seed, "ramp", what, "shape"))


def choose(found: tuple[T, ...], rng: np.random.Generator) -> T:
    """Return the distribution of an episode; random numbers are used only where there are several."""
    return found[0] if len(found) == 1 else found[int(rng.integers(len(found)))]


def require_shares(found: tuple[Distribution, ...], where: str) -> None:
    """Raise UserError for distributions of beta, a share of the sequential time, with values outside (0, 1]."""
    values = np.concatenate([distribution.values[distribution.probabilities > 0] for distribution in found])
    wrong = values[(values <= 0) | (values > 1)]
    if wrong.size:
        what = f"beta can become {wrong[0]:g}"
        raise UserError(what, where=where, expected="shares above 0 and at most 1 of the sequential completion time")


def _distribution(settings: DistributionSettings, rng: np.random.Generator) -> Distribution:
    if settings.kind == "fixed":
        return _merged(np.array([settings.value]), np.ones(1))
    low, high = settings.low or 0.0, settings.high or 0.0
    if settings.kind == "uniform":
        grid = uniform_grid(low, high, settings.decimals)
        return _merged(grid, np.ones(len(grid)))
    if settings.kind == "pmf":
        return _merged(np.array(list(settings.probabilities)), np.array(list(settings.probabilities.values())))
    draws = max(LEAST_DRAWS, round(DRAWS_PER_STEP * (high - low) * 10**settings.decimals))
    if settings.shape == "drawn":
        shares, edges = np.histogram(scaled_skew_normal(settings, draws, rng), bins=BINS)
    else:
        shares, edges = expected_shares(settings, draws)
    return _merged(np.round(edges[1:], settings.decimals), np.asarray(shares, dtype=np.float64))


def expected_shares(settings: DistributionSettings, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected histogram of `scaled_skew_normal`: shares float64[bins], edges float64[bins + 1].

    The extremes are those of the settings, or the quantiles beyond which half a draw is expected.
    """
    low, high, skewness = settings.skew_normal
    grid = np.linspace(-12.0, 12.0, 240_001)
    quantiles = np.interp([0.5 / draws, 1 - 0.5 / draws], skew_normal_cdf(grid, skewness), grid)
    least, most = settings.extremes or quantiles
    edges = np.linspace(low, high, BINS + 1)
    below = skew_normal_cdf(least + edges / high * (most - least), skewness)
    shares = np.diff(below)
    if settings.below_low == "low":
        shares[0] += below[0]
    else:
        shares += below[0] / BINS
    return np.clip(shares, 0.0, None), edges


def skew_normal_cdf(x: np.ndarray, skewness: float) -> np.ndarray:
    """Return the distribution function of the skew normal of location 0 and scale 1 (Azzalini 1985)."""
    from scipy.special import ndtr, owens_t

    return ndtr(x) - 2 * owens_t(x, skewness)


def uniform_grid(low: float, high: float, decimals: int) -> np.ndarray:
    """Return low, low + 10^-decimals, ... up to at most high."""
    steps = int(np.floor((high - low) * 10**decimals + 1e-6))
    return np.round(low + np.arange(steps + 1) / 10**decimals, 12)


def scaled_skew_normal(settings: DistributionSettings, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws of the skew normal, float64[draws], shifted and scaled so that the smallest is 0 and the largest
    `high`. Values up to `low` are then treated as `below_low` says.

    A skew normal is |x| d + y sqrt(1 - d^2) with x, y normal, d = a / sqrt(1 + a^2) (Azzalini 1985).
    """
    low, high, skewness = settings.skew_normal
    slant = skewness / np.sqrt(1 + skewness**2)
    values = slant * np.abs(rng.standard_normal(draws)) + np.sqrt(1 - slant**2) * rng.standard_normal(draws)
    values -= values.min()
    values *= high / values.max()
    small = values <= low
    values[small] = low if settings.below_low == "low" else rng.uniform(low, high, int(small.sum()))
    return values


def _merged(values: np.ndarray, weights: np.ndarray) -> Distribution:
    """The distribution of weighted values, equal ones taken together and those without weight left out."""
    kept, places = np.unique(values[weights > 0], return_inverse=True)
    sums = np.bincount(places, weights=weights[weights > 0])
    return Distribution(kept, sums / sums.sum())
