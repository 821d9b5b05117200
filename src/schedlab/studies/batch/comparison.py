"""The comparison of two policies on the windows of one scenario, by measures that do not depend on a few congested
windows alone.

The mean bounded slowdown of windows is heavy-tailed: two or three congested windows can make up most of it, and windows
in which no job waits hardly count. The ratio of the means is therefore reported together with the ratio without the
worst windows, the geometric mean of the windows' ratios, and the share won of the windows in which policies differ. The
effect size is Cohen's d of paired samples (Cohen, Statistical Power Analysis, 1988, section 2.3.5: d_z) over log
ratios: below 0 is better.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.intervals import Effect, of_one_scenario
from schedlab.evaluation.statistics import (
    SMALLEST,
    TIE,
    Sample,
    averaged,
    draw_counts,
    influences,
    pair,
    resample,
    sample,
    standardised,
    statistic_of,
)

METRIC = "avg_bsld"
WORST = 3  # windows left out of the second mean: those in which either policy is worst
DEFAULT = StatisticsSettings()


def comparisons(
    scores: pd.DataFrame,
    policy: str,
    baselines: tuple[str, ...],
    split: str = "test",
    statistics: StatisticsSettings = DEFAULT,
) -> Iterator[dict[str, Any]]:
    """Yield one row for each scenario and baseline: ratios of mean bounded slowdowns with intervals, from the table of
    scores.

    Raises UserError for a policy without scores, for two that share no scenario, and for a policy against itself.
    """
    rows = scores[(scores["metric"] == METRIC) & (scores["split"] == split)]
    known = sorted(set(rows["policy"]))
    for name in (policy, *baselines):
        if name not in known:
            raise UserError(f"no scores of '{name}'", where="--policy or --baseline", remedy=did_you_mean(name, known))
    scenarios = {name: set(rows.loc[rows["policy"] == name, "scenario"]) for name in (policy, *baselines)}
    for name in baselines:
        if name == policy:
            raise UserError(f"'{name}' would be compared with itself", where="--baseline", expected="another policy")
        if scenarios[name].isdisjoint(scenarios[policy]):
            ours, theirs = (", ".join(sorted(scenarios[each])) for each in (policy, name))
            what = f"no scenario scores both '{policy}' ({ours}) and '{name}' ({theirs})"
            raise UserError(what, where="--baseline", remedy="name both in one scenario's rules and policies")
    for scenario, here in rows.groupby("scenario", sort=True):
        by_policy = {name: sample(found) for name, found in here.groupby("policy", sort=True)}
        differing = _differing(here)
        for baseline in baselines:
            if policy in by_policy and baseline in by_policy:
                head = {"scenario": scenario, "policy": policy, "baseline": baseline}
                pair_of = by_policy[policy], by_policy[baseline]
                yield head | compare_windows(*pair_of, differing, generator(0, policy, baseline), statistics)


def compare_windows(
    policy: Sample,
    baseline: Sample,
    differing: set[str],
    rng: np.random.Generator,
    statistics: StatisticsSettings = DEFAULT,
) -> dict[str, Any]:
    """Return the measures of one comparison; `differing` selects the windows that count for the share won.

    Intervals are over seeds and windows; below five seeds over windows alone, for the mean of these seeds.
    """
    ours, theirs = pair(policy, baseline)
    mean, other = ours.values.mean(axis=0), theirs.values.mean(axis=0)
    kept = np.sort(np.argsort(-np.maximum(mean, other), kind="stable")[WORST:])
    counted = np.array([unit in differing for unit in ours.units])
    gain = other - mean
    gain[np.abs(gain) <= TIE * other] = 0.0
    logs = Sample(np.log(ours.values / theirs.values), ours.weights, ours.blocks, ours.seeds, ours.units, ours.seeded)
    found = {
        "seeds": len(ours.seeds),
        "windows": len(ours.units),
        "windows_differing": int(counted.sum()),
        "mean": float(mean.mean()),
        "baseline_mean": float(other.mean()),
        "ratio": float(mean.mean() / other.mean()),
        "ratio_without_worst": float(mean[kept].mean() / other[kept].mean()) if len(kept) else None,
        "geometric_ratio": float(np.exp(logs.values.mean())),
        "standardised_log_ratio": standardised(logs.values.mean(axis=0)),
        "win_rate": float(((np.sign(gain[counted]) + 1) / 2).mean()) if counted.any() else None,
    }
    if ours.block_count >= SMALLEST:
        if len(ours.seeds) < SMALLEST:
            ours, theirs, logs = (averaged(side) for side in (ours, theirs, logs))
        for name, effect in _log_ratios(ours, theirs, logs, draw_counts(ours, statistics.resamples, rng)).items():
            ends = effect.interval(statistics.confidence)
            found |= {
                f"{name}_{end}": float(np.exp(at))
                for end, at in zip(("low", "high"), ends, strict=True)
                if at is not None
            }
    return found


def _log_ratios(ours: Sample, theirs: Sample, logs: Sample, counts: tuple[np.ndarray, np.ndarray]) -> dict[str, Effect]:
    """The logarithms of the ratio of the means and of the geometric mean of the windows' ratios."""
    means = [statistic_of(side, "mean") for side in (ours, theirs)]
    relative = influences(ours, "mean") / means[0] - influences(theirs, "mean") / means[1]
    draws = np.log(resample(ours, "mean", counts) / resample(theirs, "mean", counts))
    of_logs = of_one_scenario(influences(logs, "mean"))
    return {
        "ratio": Effect(float(np.log(means[0] / means[1])), draws, of_one_scenario(relative)),
        "geometric_ratio": Effect(statistic_of(logs, "mean"), resample(logs, "mean", counts), of_logs),
    }


def _differing(rows: pd.DataFrame) -> set[str]:
    """The windows in which the policies do not all score the same."""
    extremes = rows.groupby("unit")["value"].agg(["min", "max"])
    return set(extremes.index[extremes["max"] > extremes["min"] * (1 + TIE)])
