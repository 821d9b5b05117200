"""Times between arrivals: discrete values, continuous distributions, traces of timestamps, rates that depend on the
hour of the day, and users' classes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import model_validator

from schedlab.config.contract import Requirement
from schedlab.config.data_paths import find_data, find_resource
from schedlab.config.errors import UserError
from schedlab.config.schema import setting
from schedlab.studies.ramp.simulator.distributions import DistributionSettings, of_scenario
from schedlab.studies.ramp.user_classes import Interface, UserClass, UserObject, user_object

HOURS = 24
WHERE = "jobs.interarrival"
Kind = Literal["fixed", "uniform", "pmf", "skew_normal", "one_of", "exponential", "gamma", "trace", "day"]
Next = Callable[[float], float]  # from the time of an arrival (s) to the gap after it (s)
KEYS = {  # required and optional keys of the kinds that only gaps have
    "exponential": ({"mean"}, {"mean"}),
    "gamma": ({"mean", "variation"}, {"mean", "variation"}),
    "trace": ({"path"}, {"path", "mean"}),
    "day": ({"mean", "rates"}, {"mean", "rates", "day_length"}),
}
ARRIVALS = Interface("law of arrivals", WHERE, ("sample", "begin"), ("mean",))


class GapSettings(DistributionSettings):
    """Times between arrivals: a distribution of values, or one of the laws that only gaps have."""

    kind: Kind = setting(  # type: ignore[assignment]  # more kinds than its parent has
        doc="fixed, uniform, pmf, skew_normal, one_of: as for other distributions; exponential: Poisson "
        "arrivals; gamma: independent gaps of `mean` and `variation`; trace: the gaps between the "
        "timestamps in `path`, in their order, where each episode begins at another gap; day: Poisson "
        "arrivals whose rate changes by the hour"
    )
    mean: float | None = setting(
        None, doc="mean gap (exponential, gamma, day); trace: the gaps are scaled to this mean", unit="s", gt=0
    )
    variation: float | None = setting(None, doc="standard deviation over mean (gamma)", gt=0, le=100)
    path: str = setting(
        "", doc="text file with one timestamp (s) per line, in rising order; # begins a comment (trace)"
    )
    rates: tuple[float, ...] = setting((), doc="arrivals in each of the 24 hours, in any unit (day)")
    day_length: float | None = setting(None, doc="length of a day, by default 86400 (day)", unit="s", gt=0)

    @model_validator(mode="after")
    def _check_gaps(self) -> GapSettings:
        needed, known = KEYS.get(self.kind, (set[str](), set[str]()))
        given = {key for key in ("mean", "variation", "day_length") if getattr(self, key) is not None}
        given |= {key for key in ("path", "rates") if getattr(self, key)}
        if needed - given or given - known:
            wrong = ", ".join(sorted(given - known)) or "nothing"
            raise ValueError(f"the kind {self.kind} has {', '.join(sorted(known)) or 'none of these'} and not {wrong}")
        if self.kind == "day" and (len(self.rates) != HOURS or min(self.rates) < 0 or max(self.rates) <= 0):
            raise ValueError(f"{HOURS} rates of 0 or more, one of them above 0")
        return self

    @property
    def is_discrete(self) -> bool:
        """Whether it is a distribution of values."""
        return self.kind not in KEYS


class Gaps(Protocol):
    """Interface of the times between arrivals of a pool of jobs."""

    @property
    def mean(self) -> float:
        """Expected gap, s."""

    def sample(self, rng: np.random.Generator, size: int) -> Any:
        """Return float64[size] consecutive gaps (s), which begin at a random arrival, for rollouts."""

    def begin(self, rng: np.random.Generator) -> Next:
        """Return a function that gives the gap after each arrival of an episode, which begins at time 0."""


@dataclass(frozen=True)
class GammaGaps:
    """Independent gamma gaps; mean in s, variation: standard deviation over mean, where 1 is exponential."""

    mean: float
    variation: float = 1.0

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Any:
        """Return one gap (s), or float64[size]."""
        if self.variation == 1:
            return rng.exponential(self.mean, size)
        return rng.gamma(self.variation**-2, self.mean * self.variation**2, size)

    def begin(self, rng: np.random.Generator) -> Next:
        """Return a function that draws the gap after each arrival."""
        return lambda _: float(self.sample(rng))


@dataclass(frozen=True)
class TraceGaps:
    """The gaps of a trace (float64[n], s) in their order; after the last one they start again."""

    gaps: np.ndarray

    @property
    def mean(self) -> float:
        """Mean gap, s."""
        return float(self.gaps.mean())

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Return float64[size] consecutive gaps, from a random one on."""
        return self.gaps[(rng.integers(len(self.gaps)) + np.arange(size)) % len(self.gaps)]

    def begin(self, rng: np.random.Generator) -> Next:
        """Return a function that gives the gaps of an episode in order from a random one on."""
        places = count(int(rng.integers(len(self.gaps))))
        return lambda _: float(self.gaps[next(places) % len(self.gaps)])


@dataclass(frozen=True)
class DayGaps:
    """Poisson arrivals with a mean gap (s) whose rate in each hour of a day (`length` s) is proportional to `rates`."""

    mean: float
    rates: tuple[float, ...]
    length: float

    @cached_property
    def _expected(self) -> np.ndarray:
        """float64[25]: expected number of arrivals from the beginning of a day to each full hour."""
        share = np.array(self.rates) / sum(self.rates)
        return np.concatenate([[0.0], np.cumsum(share)]) * self.length / self.mean

    def _expected_by(self, time: float) -> float:
        """Return the expected number of arrivals from time 0 to a time (s)."""
        days, rest = divmod(time, self.length)
        return float(
            days * self._expected[-1] + np.interp(rest / self.length * HOURS, range(HOURS + 1), self._expected)
        )

    def _time_of(self, expected: Any) -> Any:
        """Return the time (s) by which a number of arrivals is expected."""
        days, rest = np.divmod(expected, self._expected[-1])
        return (days + np.interp(rest, self._expected, range(HOURS + 1)) / HOURS) * self.length

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Return float64[size] consecutive gaps, from a random time of a day on."""
        steps = np.concatenate([[rng.random() * self._expected[-1]], rng.exponential(1.0, size)])
        return np.diff(self._time_of(np.cumsum(steps)))

    def begin(self, rng: np.random.Generator) -> Next:
        """Return a function that draws the gap after each arrival; time 0 is midnight."""
        return lambda now: max(float(self._time_of(self._expected_by(now) + rng.exponential()) - now), 0.0)


@dataclass(frozen=True)
class UserGaps:
    """The law of a user's class, whose gaps are checked."""

    law: UserObject

    @property
    def mean(self) -> float:
        """Mean gap, s."""
        return self._checked([self.law.made.mean])[0]

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Return float64[size] gaps that the class draws. Raises UserError for another number of gaps."""
        found = np.array(self._checked(self.law.call("sample", rng, size)))
        if found.shape != (size,):
            raise UserError(f"sample returned {found.size} gaps", where=self.law.where, expected=f"{size} gaps")
        return found

    def begin(self, rng: np.random.Generator) -> Next:
        """Return a function that draws the gap after each arrival."""
        after = self.law.call("begin", rng)
        if not callable(after):
            what, expected = f"begin returned {after!r}", "a function from the time of an arrival to the gap after it"
            raise UserError(what, where=self.law.where, expected=expected)
        law = replace(self.law, made=SimpleNamespace(after=after))
        return lambda now: self._checked([law.call("after", now)])[0]

    def _checked(self, gaps: Any) -> list[float]:
        try:
            found = [float(gap) for gap in gaps]
        except (TypeError, ValueError):
            found = [math.nan]
        if wrong := [gap for gap in found if not 0 <= gap < math.inf]:
            raise UserError(f"a gap of {wrong[0]} s", where=self.law.where, expected="finite times of 0 or more, in s")
        return found


def gaps_of(settings: GapSettings | UserClass, seed: int) -> tuple[Gaps, ...]:
    """Return the laws from which each episode draws one. If a law is scaled by a drawn sample, `seed` decides the
    sample. Raises UserError.
    """
    if isinstance(settings, UserClass):
        return (UserGaps(user_object(settings, ARRIVALS)),)
    if settings.is_discrete:
        found = of_scenario(settings, seed, "gap")
        for gap in found:
            if (gap.values < 0).any() or not (gap.values > 0).any():
                raise UserError("gaps that are negative or all 0", where=WHERE, expected="times in s")
        return found
    if settings.kind == "trace":
        gaps = read_gaps(settings.path)
        return (TraceGaps(gaps if settings.mean is None else gaps * (settings.mean / gaps.mean())),)
    mean = settings.mean or math.nan
    if settings.kind == "day":
        return (DayGaps(mean, settings.rates, settings.day_length or 86400.0),)
    return (GammaGaps(mean, settings.variation or 1.0),)


def read_gaps(path: str) -> np.ndarray:
    """Return the times between the timestamps of a file, float64[n] s. Raises UserError naming the line."""
    file, times = find_trace(path), list[float]()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=str(file), expected="a text file of timestamps") from None
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        where, last = f"{file}, line {number}", times[-1] if times else -math.inf
        try:
            time = float(text)
        except ValueError:
            raise UserError(f"'{text[:40]}' is no number", where=where, expected="a timestamp in s") from None
        if not math.isfinite(time) or time < last:
            what = f"the timestamp {text[:40]} is not finite, or before the one ahead of it"
            raise UserError(what, where=where, expected="timestamps in order")
        times.append(time)
    if len(times) < 2 or times[0] == times[-1]:
        what = f"{len(times)} timestamps, which are all the same" if times else "there are no timestamps"
        raise UserError(what, where=str(file), expected="two or more different ones")
    return np.diff(times)


def find_trace(path: str) -> Path:
    """Return the path of a file of timestamps in the checkout or installation (resources/...) or the data folder."""
    found = find_resource(path)
    return found if found.exists() else find_data(path)


def trace_path(settings: GapSettings | UserClass) -> str:
    """Return the path of the trace of arrivals; empty without one."""
    return settings.path if isinstance(settings, GapSettings) else ""


def trace_digest(settings: GapSettings | UserClass) -> str:
    """Return a hash of the trace's bytes, stored with results; empty without a trace, or where it is missing."""
    path = trace_path(settings)
    file = find_trace(path) if path else None
    return hashlib.sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else ""


def trace_requirements(settings: GapSettings | UserClass) -> list[Requirement]:
    """Return the required file of timestamps, if any."""
    path = trace_path(settings)
    return [Requirement("the arrivals", Path(path), "a file of timestamps in s")] if path else []
