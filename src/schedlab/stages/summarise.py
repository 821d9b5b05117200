"""The stage `summarise`: from the scores and curves of all jobs of a study to its tables with uncertainty."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Metric, Study
from schedlab.config.files import read_table, write_table
from schedlab.config.freeze import read_part
from schedlab.config.hashes import content_hash
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import statistics, tables
from schedlab.evaluation.statistics import Estimate, Sample
from schedlab.stages import studies
from schedlab.stages.evaluate import join_details

if TYPE_CHECKING:
    import pandas as pd

NAMED, BEST_RULE = "baseline", "best_rule"  # roles that a policy is compared with
log = logging.getLogger(__name__)


def summarise(part: Path, scores: Sequence[Path], curves: Sequence[Path], details: Mapping[str, Sequence[Path]], out: Path) -> None:
    """Write scores.parquet, curves.parquet, summary.parquet, comparisons.parquet and details/<table>.parquet into `out`.

    part            frozen summarise part
    scores, curves  the tables of all evaluation and learning jobs of the study
    details         table name -> the detail tables of all evaluation jobs
    out             folder of the study's results
    Raises ValueError where the tables lack a policy of the part or hold a row twice.
    """
    values = read_part(part)
    study = studies.of_part(values)
    all_scores = tables.join(tables.SCORES, [tables.read(tables.SCORES, path) for path in scores])
    _check_complete(all_scores, values["scenarios"])
    all_curves = tables.join(tables.CURVES, [tables.read(tables.CURVES, path) for path in curves])
    summary = _Summary(study, validate(StatisticsSettings, values.get("statistics") or {}), values["seed"], content_hash(values))
    samples = _samples(all_scores)
    log.info("summarising %d rows of scores in %d samples", len(all_scores), len(samples))
    tables.write(tables.SCORES, out / "scores.parquet", all_scores)
    tables.write(tables.CURVES, out / "curves.parquet", all_curves)
    tables.write(tables.SUMMARY, out / "summary.parquet", tables.build(tables.SUMMARY, summary.estimates(samples)))
    tables.write(tables.COMPARISONS, out / "comparisons.parquet", tables.build(tables.COMPARISONS, summary.comparisons(samples)))
    (out / "details").mkdir(parents=True, exist_ok=True)
    for name in study.details:
        write_table(out / "details" / f"{name}.parquet", join_details(read_table(path) for path in details.get(name, ())))


@dataclass(frozen=True)
class _Key:
    """What one sample is of."""

    scenario: str
    policy: str
    kind: str
    mode: str
    split: str
    trained_on: str
    metric: str


@dataclass(frozen=True)
class _Summary:
    """Makes the rows of the summary and the comparisons of one study."""

    study: Study
    settings: StatisticsSettings
    seed: int
    config_hash: str

    def estimates(self, samples: Mapping[_Key, Sample]) -> Iterator[dict[str, Any]]:
        for key, sample in samples.items():
            estimate = statistics.estimate(sample, self.settings, self._rng("summary", key))
            yield {**self._common(key), "value": estimate.value, **_uncertainty(estimate)}

    def comparisons(self, samples: Mapping[_Key, Sample]) -> Iterator[dict[str, Any]]:
        for key, sample in samples.items():
            for role, baseline in self._baselines(key, samples):
                other = samples[baseline]
                better = self._metric(key.metric).better
                found = statistics.compare(sample, other, better, self.settings, self._rng("comparison", key, baseline.policy))
                yield {
                    **self._common(key),
                    "baseline": baseline.policy,
                    "role": role,
                    "better": better,
                    "difference": found.difference.value,
                    **_uncertainty(found.difference),
                    "relative": found.relative,
                    "win_rate": found.win_rate,
                    "cliffs_delta": found.cliffs_delta,
                    "standardised": found.standardised,
                }

    def _baselines(self, key: _Key, samples: Mapping[_Key, Sample]) -> Iterator[tuple[str, _Key]]:
        """Yield (role, key) of what a policy is compared with: the named policy, and on the test split the best rule of validation."""
        there = [k for k in samples if (k.scenario, k.mode, k.metric) == (key.scenario, key.mode, key.metric)]
        yield from ((NAMED, k) for k in there if k.split == key.split and k.policy == self.settings.baseline != key.policy)
        rules = [k for k in there if k.kind == "rule" and k.split == "validation"]
        if key.split != "test" or not rules:
            return
        sign = 1 if self._metric(key.metric).better == "lower" else -1
        best = min(rules, key=lambda k: (sign * statistics.statistic_of(samples[k], self.settings.statistic), k.policy))
        yield from ((BEST_RULE, k) for k in there if k.split == key.split and k.policy == best.policy != key.policy)

    def _metric(self, name: str) -> Metric:
        return next(metric for metric in self.study.metrics if metric.name == name)

    def _rng(self, purpose: str, key: _Key, *others: str) -> Any:
        names = (key.scenario, key.policy, key.mode, key.split, key.metric)
        return generator(self.seed, "bootstrap", self.study.name, purpose, *names, *others)

    def _common(self, key: _Key) -> dict[str, Any]:
        unit = self._metric(key.metric).unit
        return {**vars(key), "unit": unit, "statistic": self.settings.statistic, "config_hash": self.config_hash}


def _samples(scores: pd.DataFrame) -> dict[_Key, Sample]:
    names = ["scenario", "policy", "kind", "mode", "split", "trained_on", "metric"]
    return {_Key(*key): statistics.sample(rows) for key, rows in scores.groupby(names, sort=True)}


def _uncertainty(estimate: Estimate) -> dict[str, Any]:
    kept = ("ci_low", "ci_high", "range_low", "range_high", "range_over", "seeds", "units", "blocks")
    return {name: getattr(estimate, name) for name in kept}


def _check_complete(scores: pd.DataFrame, scenarios: Mapping[str, Mapping[str, Iterable[str]]]) -> None:
    """Hold the scores against the part: scenario -> evaluation job -> policies."""
    found = {scenario: set(rows["policy"]) for scenario, rows in scores.groupby("scenario")}
    for scenario, jobs in scenarios.items():
        wanted = {policy for policies in jobs.values() for policy in policies}
        if missing := wanted - found.get(scenario, set()):
            raise ValueError(f"scenario '{scenario}' has no scores of {', '.join(sorted(missing))}")
