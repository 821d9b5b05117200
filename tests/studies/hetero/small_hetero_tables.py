"""Tables of the hetero study made by hand, for its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from schedlab.config.contract import StudyTables
from schedlab.evaluation import tables
from schedlab.evaluation.facts import Facts
from schedlab.platforms.generate import find_hierarchy
from schedlab.platforms.hierarchy import write_hierarchy
from schedlab.studies.hetero.figures.data import BY_NAME


def scored(
    means: Mapping[str, Sequence[Mapping[str, float]]], learned: Sequence[str] = (), scenario: str = "case"
) -> StudyTables:
    """Tables of scores: policy -> for each seed, workload -> mean bounded slowdown."""
    scores, summary = [], []
    metric = BY_NAME["mean_bounded_slowdown"]
    for policy, seeds in means.items():
        kind = "learned" if policy in learned else "rule"
        common = {
            "scenario": scenario,
            "policy": policy,
            "kind": kind,
            "mode": "default",
            "split": "test",
            "metric": metric.name,
        }
        common |= {"trained_on": "", "config_hash": "0"}
        values = [value for units in seeds for value in units.values()]
        for seed, units in enumerate(seeds):
            for unit, value in units.items():
                more = {
                    "policy_seed": seed,
                    "unit_kind": "workload",
                    "unit": unit,
                    "block": unit,
                    "unit_seed": 0,
                    "weight": 1.0,
                }
                scores.append({**common, **more, "value": value})
        spread = {
            "ci_low": None,
            "ci_high": None,
            "range_low": min(values),
            "range_high": max(values),
            "range_over": "seeds",
        }
        counts = {
            "seeds": len(seeds),
            "units": len(seeds[0]),
            "blocks": len(seeds[0]),
            "statistic": "mean",
            "unit": metric.unit,
        }
        budget = {"decisions": None, "episodes": None, "trainings": None}
        summary.append({**common, **spread, **counts, **budget, "value": sum(values) / len(values)})
    made = {"scores": tables.build(tables.SCORES, scores), "summary": tables.build(tables.SUMMARY, summary)}
    return study_tables(scenario, **made)


def learned(
    agents: Mapping[str, Sequence[Mapping[str, Sequence[float]]]], every: int = 8, scenario: str = "case"
) -> StudyTables:
    """Tables of curves: agent -> for each seed, metric (probabilities: and action) -> its values every few episodes."""
    rows = [
        {
            "policy": agent, "policy_seed": seed, "phase": 0, "train_scenario": scenario,
            "step": every * number, "episode": every * number, "update": number, "split": "train",
            "metric": metric.split()[0], "value": value, "decisions": 0, "episodes": 0, "trainings": 0,
            "action": metric.partition(" ")[2] or None,
        }
        for agent, seeds in agents.items()
        for seed, curves in enumerate(seeds)
        for metric, values in curves.items()
        for number, value in enumerate(values, start=1)
    ]  # fmt: skip
    scores = scored({agent: [{"w": 1.0}] for agent in agents}, tuple(agents), scenario).scores
    facts = Facts({}, {agent: {"recipe": agent.removesuffix("-case")} for agent in agents}, {})
    curves = facts.joined(tables.build(tables.CURVES.with_facts({"action": "text"}), rows), "train_scenario")
    return study_tables(scenario, curves=curves, scores=scores)


def overused(
    spans: Mapping[str, Sequence[tuple[int, float, float]]], finish: float, folder: Path, scenario: str = "case"
) -> StudyTables:
    """Tables of over-subscribed bandwidth on `learning`: policy -> spans (processor, start, length) until `finish`."""
    write_hierarchy(folder / "resources.json", find_hierarchy("learning"))
    key = {"scenario": scenario, "policy_seed": 0, "split": "test", "unit": "w"}
    overuse = [
        {**key, "policy": policy, "processor": number, "start": start, "duration": length}
        for policy, found in spans.items()
        for number, start, length in found
    ]
    jobs = [
        {**key, "policy": policy, "job": "0", "submit": 100.0, "start": 100.0, "finish": finish} for policy in spans
    ]
    columns = [*tables.DETAIL_KEY, "processor", "start", "duration"]
    details = {"overuse": pd.DataFrame(overuse, columns=columns), "jobs": pd.DataFrame(jobs)}
    scores = scored({policy: [{"w": 1.0}] for policy in spans}, scenario=scenario)
    return study_tables(
        scenario,
        scores=scores.scores,
        summary=scores.summary,
        details=details,
        inputs={scenario: {"resources": folder / "resources.json"}},
    )


def held_back(
    refusals: Mapping[str, Sequence[tuple[float, str]]], queue: Sequence[tuple[float, int]], scenario: str = "case"
) -> StudyTables:
    """Tables of refusals: policy -> (date, what was lacking); all policies have the same queue (date, waiting jobs)."""
    key = {"scenario": scenario, "policy_seed": 0, "split": "test", "unit": "w"}
    held = [
        {**key, "policy": policy, "time": date, "lacking": what}
        for policy, found in refusals.items()
        for date, what in found
    ]
    load = [
        {**key, "policy": policy, "time": date, "waiting": waiting} for policy in refusals for date, waiting in queue
    ]
    details = {
        "refusals": pd.DataFrame(held, columns=[*tables.DETAIL_KEY, "time", "lacking"]),
        "load": pd.DataFrame(load),
    }
    scores = scored({policy: [{"w": 1.0}] for policy in refusals}, scenario=scenario)
    return study_tables(scenario, scores=scores.scores, summary=scores.summary, details=details)


def study_tables(scenario: str, **given: Any) -> StudyTables:
    """The tables of one scenario; those that are not given are empty."""
    empty = {name: tables.build(kind, ()) for name, kind in (("scores", tables.SCORES), ("curves", tables.CURVES))}
    empty |= {"summary": tables.build(tables.SUMMARY, ()), "comparisons": tables.build(tables.COMPARISONS, ())}
    return StudyTables(**{**empty, "details": {}, "inputs": {}, "scenarios": {scenario: {}}, "policies": {}, **given})
