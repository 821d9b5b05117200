"""The table `headline`: for each question of a study, the comparison of a policy with the best of each group of rivals.

A row contains the answer to a question in one scenario, compared with one group of rivals. The group `all` consists of
the rivals of all the question's groups. For several scenarios there is also a row with their mean, named "a+b". Rivals
are chosen on validation units (`schedlab.evaluation.rivals`). Informed policies, oracles and bounds are not rivals; the
column `ratio_to_bound` compares the policy with the last two.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.config.settings import ALL, HeadlineSettings, Kind, StatisticsSettings
from schedlab.evaluation.rivals import Ratio, Side, Streams, against_chosen, pooled
from schedlab.evaluation.statistics import Sample, pair, statistic_of

KINDS: Mapping[str, Kind] = {"rules": "rule", "planners": "planner", "search": "search", "published": "published"}
SPLITS = ("validation", "train", "test")  # rivals are chosen on the first split on which any of them has scores
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A policy in a scenario: its facts, the budget used (None: not counted), and its samples by split."""

    policy: str
    kind: str
    recipe: str
    trained_on: str
    budget: float | None
    samples: Mapping[str, Sample]


@dataclass(frozen=True)
class Answer:
    """A policy compared with one group: the comparison, the split on which the rival was chosen, the ratio to the
    bound, and the budgets of the policy and the rival.
    """

    policy: str
    found: Ratio
    chosen_on: str
    to_bound: float | None
    budget: float | None
    rival_budget: float | None


def answers(
    question: HeadlineSettings,
    scenarios: Mapping[str, Sequence[Entry]],
    better: str,
    settings: StatisticsSettings,
    streams: Streams,
) -> Iterator[tuple[str, str, Answer]]:
    """Yield (scenario, group, answer) for a question. If a scenario has no answer, the log gives the reason.

    scenarios: name -> the policies scored there in the question's metric, for each scenario of the question that runs
    """
    by_scenario: dict[str, dict[str, Answer]] = {}
    for scenario in question.scenarios:
        if scenario not in scenarios:
            log.info("%s: %s does not run at this scale", question.question, scenario)
        elif policy := _policy_in_question(question, scenario, scenarios[scenario]):
            rivals = _rivals(question, scenario, scenarios[scenario])
            here = _Scenario(scenario, policy, scenarios[scenario], better, settings, streams)
            by_scenario[scenario] = {group: here.answer(found) for group, found in rivals.items()}
    for scenario, found in by_scenario.items():
        yield from ((scenario, group, answer) for group, answer in found.items())
    if not any(by_scenario.values()):
        log.info("%s: nothing to say at this scale", question.question)
    elif len(by_scenario) > 1:
        common = set.intersection(*(set(found) for found in by_scenario.values()))
        for group in sorted(common):
            yield "+".join(by_scenario), group, _mean([found[group] for found in by_scenario.values()])


def row(scenario: str, group: str, answer: Answer, question: HeadlineSettings) -> dict[str, object]:
    """Return the row of an answer, without the hashes of configuration and code."""
    found = answer.found
    return {
        "question": question.question,
        "scenario": scenario,
        "metric": question.metric,
        "policy": answer.policy,
        "recipe": question.recipe,
        "group": group,
        "rival": found.rival,
        "rival_chosen_on": answer.chosen_on,
        "ratio": found.ratio,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "learning_seeds": found.seeds,
        "units": found.units,
        "blocks": found.blocks,
        "share_won": found.share_won,
        "ratio_to_hindsight": found.to_hindsight,
        "ratio_to_bound": answer.to_bound,
        "budget": answer.budget,
        "rival_budget": answer.rival_budget,
        "budget_unit": question.budget,
        "verdict": found.verdict,
    }


@dataclass(frozen=True)
class _Scenario:
    """One scenario of a question."""

    name: str
    policy: Entry
    entries: Sequence[Entry]
    better: str
    settings: StatisticsSettings
    streams: Streams

    def answer(self, rivals: Sequence[Entry]) -> Answer:
        split = next(split for split in SPLITS if any(split in rival.samples for rival in rivals))
        sides = {rival.policy: Side(rival.samples["test"], rival.samples.get(split)) for rival in rivals}
        policy, name = Side(self.policy.samples["test"]), self.policy.policy
        found = against_chosen(name, policy, sides, self.better, self.settings, self.streams)
        if found.not_chosen_from:
            log.info("%s: no scores on %s units: %s", self.name, split, ", ".join(found.not_chosen_from))
        used = next(rival.budget for rival in rivals if rival.policy == found.rival)
        return Answer(self.policy.policy, found, split, self._to_bound(), self.policy.budget, used)

    def _to_bound(self) -> float | None:
        """Return the ratio to the best oracle or bound on the units that both have; None if it is not positive."""
        ratios, sign = [], 1.0 if self.better == "lower" else -1.0
        for bound in (entry for entry in self.entries if entry.kind in ("oracle", "bound") and "test" in entry.samples):
            sides = pair(self.policy.samples["test"], bound.samples["test"])
            ours, theirs = (statistic_of(side, self.settings.statistic) for side in sides)
            ratios.append((sign * theirs, ours / theirs if min(ours, theirs) > 0 else None))
        return min(ratios, key=lambda found: found[0])[1] if ratios else None


def _policy_in_question(question: HeadlineSettings, scenario: str, entries: Sequence[Entry]) -> Entry | None:
    """Return the only policy of the recipe that was trained on the scenario; of several, the one trained on it alone;
    if there is none, the only policy of the recipe. None if none of these is unique.
    """
    found = [entry for entry in entries if entry.recipe == question.recipe and "test" in entry.samples]
    here = [entry for entry in found if scenario in re.split(r"\+| > ", entry.trained_on)]
    alone = [entry for entry in here if entry.trained_on == scenario]
    for candidates in (here, alone, found):
        if len(candidates) == 1:
            return candidates[0]
    names = ", ".join(sorted(entry.policy for entry in found)) or "none"
    log.info("%s: %s has not one policy of the recipe %s: %s", question.question, scenario, question.recipe, names)
    return None


def _rivals(question: HeadlineSettings, scenario: str, entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return group -> its rivals in a scenario, without empty groups; `all` comes first. Policies of the question's
    recipe are not rivals.
    """
    found: dict[str, list[Entry]] = {}
    for group in question.groups:
        for entry in entries:
            if entry.kind == KINDS[group] and entry.recipe != question.recipe and "test" in entry.samples:
                found.setdefault(group, []).append(entry)
    every = [entry for group in found.values() for entry in group]
    if not every:
        log.info("%s: %s has no rival in %s", question.question, scenario, ", ".join(question.groups))
    return {ALL: every, **found} if every else {}


def _mean(parts: Sequence[Answer]) -> Answer:
    """Return the answers of several scenarios as one: the geometric mean of ratios, the mean of budgets."""
    bounds = [part.to_bound for part in parts if part.to_bound is not None]
    return Answer(
        " + ".join(dict.fromkeys(part.policy for part in parts)),
        pooled([part.found for part in parts]),
        " + ".join(dict.fromkeys(part.chosen_on for part in parts)),
        float(np.exp(np.mean(np.log(bounds)))) if len(bounds) == len(parts) else None,
        _mean_budget([part.budget for part in parts]),
        _mean_budget([part.rival_budget for part in parts]),
    )


def _mean_budget(used: Sequence[float | None]) -> float | None:
    """Return the mean; None if the budget of a policy is unknown."""
    known = [each for each in used if each is not None]
    return float(np.mean(known)) if len(known) == len(used) else None
