"""Checks across configuration files: unknown names, cycles of parents, overrides of missing files or keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.layout import STUDY_GROUPS, Layout
from schedlab.config.plugins import class_mistakes, is_file_target
from schedlab.config.records import BY_STUDY, Names, StudyRecords
from schedlab.config.variations import IN_STUDY, Override


def cross_checks(studies: Mapping[str, StudyRecords], scale: str) -> Iterable[UserError]:
    """Yield every mistake in which one record of an experiment contradicts another."""
    for name, study in studies.items():
        scenarios, policies = study.known("scenario"), study.known("policy")
        complete = not study.broken["scenario"]  # otherwise rules of a broken scenario may be unknown here
        rules = {rule["name"] for record in study.all("scenario").values() for rule in record["rules"]}
        for record in study.scenarios.values():
            yield from _scenario_checks(record, policies)
        for policy, record in study.policies.items():
            yield from _policy_checks(study, policy, record, scenarios, policies)
        known = {"scenario": scenarios, "policy": Names((*policies, *rules), policies.broken)}
        for record in study.figures.values():
            yield from _figure_checks(record, known if complete else {"scenario": known["scenario"]})
            if complete:
                yield from _shown_checks(record, study.all("scenario"), known["policy"])
        baseline = study.settings["statistics"]["baseline"]
        if complete and study.scenarios and baseline and baseline not in known["policy"]:
            where = f"conf/study/{name}.yaml: statistics.baseline"
            yield UserError(
                f"unknown policy or rule '{baseline}'", where=where, remedy=did_you_mean(baseline, known["policy"])
            )
        yield from _headline_checks(name, study, scenarios, policies) if study.scenarios else ()
        if complete:
            yield from _resource_checks(name, study, scale)


def _headline_checks(name: str, study: StudyRecords, scenarios: Names, policies: Names) -> Iterable[UserError]:
    """Yield unknown metrics, scenarios and recipes in a study's questions."""
    recipes = Names(
        sorted({record["recipe"] or record["file"] for record in study.all("policy").values()}), policies.broken
    )
    for number, asked in enumerate(study.settings["headline"]):
        named: list[tuple[str, str, str, Sequence[str]]]
        named = [("metric", "metric", asked["metric"], study.said["metrics"])]
        named += [("recipe", "recipe", asked["recipe"], recipes)]
        named += [
            (f"scenarios.{place}", "scenario", scenario, scenarios) for place, scenario in enumerate(asked["scenarios"])
        ]
        for key, what, value, known in named:
            if value not in known:
                where = f"conf/study/{name}.yaml: headline.{number}.{key}"
                yield UserError(f"unknown {what} '{value}'", where=where, remedy=did_you_mean(value, known))


def _scenario_checks(record: Mapping[str, Any], policies: Iterable[str]) -> Iterable[UserError]:
    for policy in record["policies"]:
        if policy not in policies:
            yield UserError(
                f"unknown policy '{policy}'", where=record["where"]["policies"], remedy=did_you_mean(policy, policies)
            )
    names = [rule["name"] for rule in record["rules"]] + record["policies"]
    for twice in sorted({entry for entry in names if names.count(entry) > 1}):
        yield UserError(f"'{twice}' is named twice", where=record["where"]["rules"], remedy="remove one of them")
    for number, rule in enumerate(record["rules"]):
        if is_file_target(rule["target"]):
            yield from class_mistakes(rule["target"], "rule", f"{record['where']['rules']}.{number}.target")


def _policy_checks(
    study: StudyRecords, policy: str, record: Mapping[str, Any], scenarios: Iterable[str], policies: Iterable[str]
) -> Iterable[UserError]:
    where = record["where"]
    if is_file_target(record["target"]):
        yield from class_mistakes(record["target"], "learner", where["learner"])
    for phase in record["train_on"]:
        for scenario in phase["scenarios"]:
            if scenario not in scenarios:
                yield UserError(
                    f"unknown scenario '{scenario}'", where=where["train_on"], remedy=did_you_mean(scenario, scenarios)
                )
    parent, line = record["parent"], [policy]
    while parent is not None:
        if parent not in policies:
            if len(line) == 1:  # a longer chain is reported with the policy that names this parent
                yield UserError(
                    f"unknown policy '{parent}'", where=where["parent"], remedy=did_you_mean(parent, policies)
                )
            return
        if parent in line:
            if parent == min(line[line.index(parent) :]) == policy:  # report a cycle once, not for each of its policies
                cycle = " -> ".join([*line, parent])
                remedy = "start one of them from nothing (parent: null)"
                yield UserError(f"the parents form a cycle: {cycle}", where=where["parent"], remedy=remedy)
            return
        line.append(parent)
        above = study.policies.get(parent)
        if above is None:
            return
        missing = set(record["seeds"]) - set(above["seeds"])
        if missing and len(line) == 2:
            yield UserError(f"seeds {sorted(missing)} are not seeds of the parent '{parent}'", where=where["seeds"])
        parent = above["parent"]


def _figure_checks(record: Mapping[str, Any], known: Mapping[str, Names]) -> Iterable[UserError]:
    """Yield unknown names under `scenarios` and `policies` of a figure and in its own values."""
    named = [(record["where"]["scenarios"], "scenario", name) for name in record["scenarios"]]
    named += [(record["where"]["policies"], "policy", name) for name in record["policies"]]
    for where, what, name in [*named, *record["names"]]:
        if what in known and name not in known[what]:
            yield UserError(f"unknown {what} '{name}'", where=where, remedy=did_you_mean(name, known[what]))


def _shown_checks(record: Mapping[str, Any], scenarios: Mapping[str, Any], known: Iterable[str]) -> Iterable[UserError]:
    """Yield rules and policies that a figure's own values name but none of its scenarios has. `_figure_checks` reports
    unknown names.
    """
    shown = [scenarios[name] for name in record["scenarios"] if name in scenarios]
    had = {
        name for scenario in shown for name in [*(rule["name"] for rule in scenario["rules"]), *scenario["policies"]]
    }
    for where, what, name in record["names"] if shown else ():
        if what == "policy" and name in known and name not in had:
            text = f"'{name}' is no rule or policy of {', '.join(record['scenarios'])}"
            yield UserError(text, where=where, remedy=did_you_mean(name, had))


def _resource_checks(name: str, study: StudyRecords, scale: str) -> Iterable[UserError]:
    """Yield workflow rules that a study's file gives resources at the scale although no job of the study has them."""
    known = {*BY_STUDY, *(part for record in study.scenarios.values() for part in record["parts"])}
    for rule in study.settings["resources"].get(scale, {}):
        if rule not in known:
            where = f"conf/study/{name}.yaml: resources.{scale}.{rule}"
            yield UserError(
                f"no scenario needs a workflow rule '{rule}'", where=where, remedy=did_you_mean(rule, known)
            )


def unused_overrides(
    studies: Mapping[str, StudyRecords], overrides: Sequence[Override], layout: Layout
) -> Iterable[UserError]:
    """Yield a mistake for each override of an unknown group, study, file or member of a family."""
    files = [Path(name).with_suffix("") for name in layout.hashes if "/" in name]
    groups = {"seed", *(file.parts[0] for file in files)} - {"claims"}
    for override in overrides:
        group, *rest = override.keys
        if group not in groups:
            yield UserError(f"there is no '{group}'", where=override.where, remedy=did_you_mean(group, groups))
        elif group in ("seed", "scale"):
            continue  # unknown keys are found where these sections are read as a whole
        elif group in STUDY_GROUPS and (not rest or rest[0] not in layout.studies):
            name = rest[0] if rest else ""
            yield UserError(
                f"there is no study '{name}'", where=override.where, remedy=did_you_mean(name, layout.studies)
            )
        else:
            folder = f"{group}/{rest[0]}" if group in STUDY_GROUPS else group
            names = {file.name for file in files if file.parent.as_posix() == folder}
            if group in IN_STUDY and rest[0] in studies:
                names |= set(studies[rest[0]].known(group))
            if override.below(folder, names) is None:
                name = "".join(rest[1:2] if group in STUDY_GROUPS else rest[:1])
                expected = f"{folder.replace('/', '.')}.<name>.<key>=<value>"
                what = f"no key of a file of conf/{folder}/"
                yield UserError(what, where=override.where, expected=expected, remedy=did_you_mean(name, names))
