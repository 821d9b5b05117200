"""The stage `summarise`: computes a study's tables, with uncertainty, from the scores and curves of all jobs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Metric, Study
from schedlab.config.files import common_schema, read_table, table_writer
from schedlab.config.readers import read_json
from schedlab.config.runtime.parts import MADE_BY, configuration_hash, read_part
from schedlab.config.runtime.provenance import require_made_by
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.config.settings import HeadlineSettings, StatisticsSettings
from schedlab.evaluation import headline, statistics, tables
from schedlab.evaluation.facts import Facts
from schedlab.evaluation.statistics import Estimate, Sample
from schedlab.stages import studies
from schedlab.stages.evaluate import join_details

if TYPE_CHECKING:
    import pandas as pd

NAMED, BEST_RULE = "baseline", "best_rule"  # roles of the policies with which others are compared
BUDGET = ("decisions", "episodes", "trainings")
TABLES_AT_ONCE = 200
log = logging.getLogger(__name__)


def summarise(
    part: Path,
    scores: Sequence[Path],
    curves: Sequence[Path],
    details: Mapping[str, Sequence[Path]],
    out: Path,
    origins: Sequence[Path] = (),
) -> None:
    """Write scores.parquet, curves.parquet, summary.parquet, comparisons.parquet, headline.parquet and
    details/<table>.parquet into `out`.

    part            frozen summarise part
    scores, curves  tables of all evaluation and learning jobs of the study
    details         table name -> detail tables of all evaluation jobs
    out             folder of the study's results
    origins         provenance.json of all learning jobs, which state the budgets used

    Raises ValueError if the tables lack a policy of the part or contain a row twice, UserError for scores made by other
    code.
    """
    values = read_part(part)
    require_made_by(values, scores)
    study = studies.of_part(values)
    facts = Facts(**(values.get("facts") or {"scenarios": {}, "policies": {}, "rules": {}}))
    settings = validate(StatisticsSettings, values.get("statistics") or {})
    budgets = Budgets(mean_budgets(origins, values.get("parents") or {}), budgets_in_scenarios(scores))
    summary = _Summary(study, settings, values["seed"], configuration_hash(values), budgets)
    asked = _Asked([validate(HeadlineSettings, each) for each in values.get("headline") or ()], facts, budgets)
    _summarise_scores(tables.grouped(scores, "scenario"), values, summary, asked, out)
    hashes = {"config_hash": summary.config_hash, "code_hash": values.get(MADE_BY, {}).get("code", "")}
    rows = ({**row, **hashes} for row in summary.answers(asked))
    tables.write(tables.HEADLINE, out / "headline.parquet", tables.build(tables.HEADLINE, rows))
    of_points = tables.CURVES.with_facts(tables.facts_of_files(tables.CURVES, curves))
    with tables.writing(facts.extend(of_points), out / "curves.parquet") as add:
        for files in tables.grouped(curves, "policy").values():
            add(facts.joined(tables.read_joined(of_points, files), "train_scenario"))
    (out / "details").mkdir(
        parents=True, exist_ok=True
    )  # also for a study without details: the workflow requires the folder
    for name in study.details:
        _join_details(details.get(name, ()), out / "details" / f"{name}.parquet")


def _summarise_scores(
    files: Mapping[str, Sequence[Path]], values: Mapping[str, Any], summary: _Summary, asked: _Asked, out: Path
) -> None:
    """Write scores, summary and comparisons for some scenarios at a time, to save memory: policies are compared only
    within a scenario. Samples that questions need are kept in `asked`.

    values: values of the frozen part
    """
    scenarios, facts = values["scenarios"], asked.facts
    for scenario in scenarios.keys() - files.keys():
        _check_complete(scenario, (), scenarios[scenario])
    with ExitStack() as opened:
        every = [file for group in files.values() for file in group]
        of_units = tables.SCORES.with_facts(tables.facts_of_files(tables.SCORES, every))
        add_scores, add_summary, add_comparisons = (
            opened.enter_context(tables.writing(facts.extend(kind), out / f"{kind.name}.parquet"))
            for kind in (of_units, tables.SUMMARY, tables.COMPARISONS)
        )
        for names in _batches(files):
            scores = tables.read_joined(of_units, [file for name in names for file in files[name]])
            for scenario, rows in scores.groupby("scenario"):
                _check_complete(scenario, rows["policy"], scenarios.get(scenario, {}))
            samples = _samples(scores, values.get("deterministic") or ())
            asked.add(samples)
            log.info("summarising %d rows of scores in %d samples", len(scores), len(samples))
            add_scores(facts.joined(scores))
            add_summary(facts.joined(tables.build(tables.SUMMARY, summary.estimates(samples))))
            add_comparisons(facts.joined(tables.build(tables.COMPARISONS, summary.comparisons(samples))))


def _batches(files: Mapping[str, Sequence[Path]]) -> Iterator[list[str]]:
    """Yield the scenarios in order, in batches with at least TABLES_AT_ONCE tables, because each batch takes an
    additional tenth of a second.
    """
    batch: list[str] = []
    for scenario in files:
        batch.append(scenario)
        if sum(len(files[name]) for name in batch) >= TABLES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _join_details(files: Sequence[Path], out: Path) -> None:
    """Write the details of all scenarios, one scenario after another."""
    by_scenario = tables.grouped(files, "scenario")
    schema = common_schema([file for group in by_scenario.values() for file in group]) if by_scenario else None
    with table_writer(out, schema) as add:
        for group in by_scenario.values() or [()]:
            add(join_details(map(read_table, group)))


@dataclass(frozen=True)
class _Key:
    """The policy, scenario, split and metric of one sample, with the policy's kind, mode and training scenarios."""

    scenario: str
    policy: str
    kind: str
    mode: str
    split: str
    trained_on: str
    metric: str


@dataclass(frozen=True)
class Budgets:
    """Budgets that were used: trained, policy -> budget; untrained, (scenario, policy) -> budget, if it states one."""

    trained: Mapping[str, Mapping[str, float]]
    untrained: Mapping[tuple[str, str], Mapping[str, float]]

    def of(self, key: _Key) -> Mapping[str, float]:
        """Return the budget of a policy in a scenario: 0 for an untrained rule that states none, and otherwise empty if
        it is unknown.
        """
        if key.trained_on:
            return self.trained.get(key.policy, {})
        rule = dict.fromkeys(BUDGET, 0.0) if key.kind == "rule" else {}
        return self.untrained.get((key.scenario, key.policy), rule)


class _Asked:
    """The data from which the questions of a study are answered: the samples of their metrics in their scenarios."""

    def __init__(self, questions: Sequence[HeadlineSettings], facts: Facts, budgets: Budgets) -> None:
        self.questions, self.facts, self.budgets = questions, facts, budgets
        self.wanted = {(each.metric, scenario) for each in questions for scenario in each.scenarios}
        self.samples: dict[tuple[str, str], dict[_Key, Sample]] = {}

    def add(self, samples: Mapping[_Key, Sample]) -> None:
        """Keep the samples that a question needs."""
        for key, sample in samples.items():
            if (place := (key.metric, key.scenario)) in self.wanted:
                self.samples.setdefault(place, {})[key] = sample

    def entries(self, question: HeadlineSettings) -> dict[str, list[headline.Entry]]:
        """Return scenario -> the policies scored in it, for the scenarios of a question that ran."""
        places = [(question.metric, scenario) for scenario in question.scenarios]
        return {place[1]: self._entries(question, self.samples[place]) for place in places if place in self.samples}

    def _entries(self, question: HeadlineSettings, samples: Mapping[_Key, Sample]) -> list[headline.Entry]:
        found: dict[str, headline.Entry] = {}
        for key, sample in samples.items():
            recipe = str(self.facts.of(key.scenario, key.policy)["recipe"])
            budget = self.budgets.of(key).get(question.budget)
            new = headline.Entry(key.policy, key.kind, recipe, key.trained_on, budget, {})
            entry = found.setdefault(key.policy, new)
            found[key.policy] = replace(entry, samples={**entry.samples, key.split: sample})
        return list(found.values())


@dataclass(frozen=True)
class _Summary:
    """Makes the rows of the summary and the comparisons of one study."""

    study: Study
    settings: StatisticsSettings
    seed: int
    config_hash: str
    budgets: Budgets

    def estimates(self, samples: Mapping[_Key, Sample]) -> Iterator[dict[str, Any]]:
        for key, sample in samples.items():
            estimate = statistics.estimate(sample, self.settings, self._rng("summary", key))
            used = self.budgets.of(key)
            budget = {name: used.get(name) for name in BUDGET}
            yield {**self._common(key), "value": estimate.value, **_uncertainty(estimate), **budget}

    def answers(self, asked: _Asked) -> Iterator[dict[str, Any]]:
        """Yield the rows of the table `headline`, without the hashes."""
        for question in asked.questions:
            metric, entries = self._metric(question.metric), asked.entries(question)
            streams = partial(
                generator, self.seed, "bootstrap", self.study.name, "headline", metric.name, question.recipe
            )
            found = headline.answers(question, entries, metric.better, self.settings, streams)
            yield from (headline.row(scenario, group, answer, question) for scenario, group, answer in found)

    def comparisons(self, samples: Mapping[_Key, Sample]) -> Iterator[dict[str, Any]]:
        alike: dict[tuple[str, str, str], dict[_Key, Sample]] = {}
        for key, sample in samples.items():
            alike.setdefault((key.scenario, key.mode, key.metric), {})[key] = sample
        for key, sample in samples.items():
            for role, baseline in self._baselines(key, alike[key.scenario, key.mode, key.metric]):
                other = samples[baseline]
                better = self._metric(key.metric).better
                found = statistics.compare(
                    sample, other, better, self.settings, self._rng("comparison", key, baseline.policy)
                )
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

    def _baselines(self, key: _Key, there: Mapping[_Key, Sample]) -> Iterator[tuple[str, _Key]]:
        """Yield (role, key) of the samples with which a policy is compared: the named baseline, and on the test split
        the rule that is best on validation units.

        there  the samples of the same scenario, mode and metric
        """
        yield from (
            (NAMED, k) for k in there if k.split == key.split and k.policy == self.settings.baseline != key.policy
        )
        rules = [k for k in there if k.kind in ("rule", "planner") and not k.trained_on and k.split == "validation"]
        if key.split != "test" or not rules:
            return
        sign = 1 if self._metric(key.metric).better == "lower" else -1
        best = min(rules, key=lambda k: (sign * statistics.statistic_of(there[k], self.settings.statistic), k.policy))
        yield from ((BEST_RULE, k) for k in there if k.split == key.split and k.policy == best.policy != key.policy)

    def _metric(self, name: str) -> Metric:
        return next(metric for metric in self.study.metrics if metric.name == name)

    def _rng(self, purpose: str, key: _Key, *others: str) -> Any:
        names = (key.scenario, key.policy, key.mode, key.split, key.metric)
        return generator(self.seed, "bootstrap", self.study.name, purpose, *names, *others)

    def _common(self, key: _Key) -> dict[str, Any]:
        unit = self._metric(key.metric).unit
        return {**vars(key), "unit": unit, "statistic": self.settings.statistic, "config_hash": self.config_hash}


def mean_budgets(origins: Iterable[Path], parents: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return policy -> budget used, with the share of its parents, as the mean over its seeds. A policy is left out if
    the budget of it or of a parent is unknown.

    origins: provenance.json of each learning job. parents: policy -> the policy from which it starts
    """
    used: dict[str, dict[int, Mapping[str, int]]] = {}
    for file in origins:
        origin = read_json(file, "the origin of a policy")
        used.setdefault(origin["policy"], {})[origin["seeds"][0]] = origin.get("budget") or {}

    def total(policy: str, seed: int) -> dict[str, float] | None:
        own = used.get(policy, {}).get(seed)
        before = total(parents[policy], seed) if policy in parents else dict.fromkeys(BUDGET, 0)
        return {name: own[name] + before[name] for name in BUDGET} if own and before else None

    totals = {policy: [total(policy, seed) for seed in seeds] for policy, seeds in used.items()}
    return {
        policy: {name: sum(each[name] for each in found if each) / len(found) for name in BUDGET}
        for policy, found in totals.items()
        if all(found)
    }


def budgets_in_scenarios(scores: Iterable[Path]) -> dict[tuple[str, str], dict[str, float]]:
    """Return (scenario, policy) -> budget, as the mean over seeds, of the untrained policies for which the provenance
    next to a table of scores states one.
    """
    found = {}
    for table in scores:
        file = table.with_suffix(".provenance.json")
        origin = read_json(file, "the provenance of a job") if file.is_file() else {}
        for policy, seeds in (origin.get("budgets") or {}).items():
            used = {name: fmean(each[name] for each in seeds.values()) for name in BUDGET}
            found[read_part(origin["config"])["scenario"], policy] = used
    return found


def _samples(scores: pd.DataFrame, deterministic: Collection[str]) -> dict[_Key, Sample]:
    """Return the sample of each policy, split and metric; deterministic: policies for which one seed represents all."""
    names = ["scenario", "policy", "kind", "mode", "split", "trained_on", "metric"]
    found = {_Key(*key): statistics.sample(rows) for key, rows in scores.groupby(names, sort=True)}
    return {
        key: replace(sample, seeded=False) if key.policy in deterministic else sample for key, sample in found.items()
    }


def _uncertainty(estimate: Estimate) -> dict[str, Any]:
    kept = ("ci_low", "ci_high", "range_low", "range_high", "range_over", "seeds", "units", "blocks")
    return {name: getattr(estimate, name) for name in kept}


def _check_complete(scenario: str, scored: Iterable[str], jobs: Mapping[str, Iterable[str]]) -> None:
    """Raise ValueError if a scenario lacks scores of a policy in the part. jobs: evaluation job -> policies."""
    wanted = {policy for policies in jobs.values() for policy in policies}
    if missing := wanted - set(scored):
        raise ValueError(f"scenario '{scenario}' has no scores of {', '.join(sorted(missing))}")
