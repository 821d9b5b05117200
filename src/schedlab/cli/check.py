"""`schedlab check`: composes, types and cross-checks all of conf/ without running anything."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from schedlab.config import experiment
from schedlab.config.composition import Compositions
from schedlab.config.errors import UserError, UserErrors, counted, did_you_mean, shortened
from schedlab.config.readers import option_names
from schedlab.evaluation.claims import lacks_tables, read_claims, unknown_claims, written_claims
from schedlab.stages.studies import find_study


def check(folder: str, scale: str, only: str = "") -> int:
    """Print a line for each scenario and policy, and their numbers, and return 0; or print a paragraph for each mistake
    and return 2.

    only: a study, or STUDY/NAME of a scenario or policy; only its lines are printed, but the whole folder is checked.
      Raises UserError if it does not exist
    """
    conf = Path(folder)
    scales = _scales(conf) if scale == "all" else [scale]
    lines: dict[str, list[str]] = {}
    made = Compositions(conf)
    compared: set[str] = set()
    there: dict[str, set[str]] = {"scenario": set(), "policy": set(), "not run": set()}
    uncompared: dict[str, str] = {}
    known: set[str] = set()
    mistakes: dict[str, list[str]] = {}
    asked: dict[str, list[dict[str, Any]]] = {}
    for name in scales:
        try:
            loaded = experiment.load(conf, name, find_study, kept_records(conf, name), made)
            for line in [*_lines(loaded, only), *_not_run(loaded.not_run, only)]:
                lines.setdefault(line, []).append(name)
            for what, names in _names(loaded).items():
                there[what] |= names
            known |= {
                *loaded.studies,
                *(f"{study}/{name}" for study, found in loaded.studies.items() for _, name in found.other_scales),
            }
            for study in loaded.studies:
                asked[study] = loaded.studies[study].settings["headline"]
                compared |= {f"{study}/{policy}" for policy in loaded.compared_policies(study)}
                for policy in loaded.uncompared_policies(study):
                    uncompared[f"{study}/{policy}"] = loaded.studies[study].files["policy", policy]
        except UserErrors as several:
            for error in several.errors:
                mistakes.setdefault(str(error), []).append(name)
    try:
        alone = lacks_tables(conf)
        ledgers = written_claims(conf) if alone else read_claims(conf)
        mistakes |= {str(error): scales for error in unknown_claims(ledgers, asked if ledgers else {})}
    except UserErrors as several:
        mistakes |= {str(error): scales for error in several.errors}
    if mistakes:
        return _refuse(mistakes, scales)
    known = known.union(*there.values())
    if only and only not in known:
        raise UserError(
            f"there is no study, scenario or policy '{only}'", where="NAME", remedy=did_you_mean(only, known)
        )
    for line, at in lines.items():
        print(f"{line}  [{' '.join(at)}]")
    for policy, file in uncompared.items():
        if policy not in compared and _named(policy, only):
            print(f"hint  {file}: '{policy}' is not learned, for no scenario names it under `policies`")
    for study, ledger in ((study, ledger) for study, ledger in ledgers.items() if _named(study, only)):
        uncompared_claims = ", not compared, because there is no docs/results/" if alone else ""
        print(f"ok  claims   {study}: {counted(len(ledger.claims), 'claim')}{uncompared_claims}")
    print(_summary(there, sum(len(ledger.claims) for ledger in ledgers.values())))
    return 0


def _scales(conf: Path) -> list[str]:
    """Return the scales of a folder, the smallest first; `small` if it has none, whose lack is then reported."""
    return [name for name in experiment.SCALE_ORDER if name in option_names(conf / "scale")] or ["small"]


def _refuse(mistakes: Mapping[str, list[str]], scales: list[str]) -> int:
    """Print each mistake, with the scales that have it unless all do; return 2."""
    for mistake, at in mistakes.items():
        where = "" if len(at) == len(scales) else f" [{' '.join(at)}]"
        print(f"error: {mistake}{where}", file=sys.stderr)
    print(f"{counted(len(mistakes), 'mistake')}; nothing was run", file=sys.stderr)
    return 2


def kept_records(conf: Path, scale: str) -> Path | None:
    """Return the workflow's cache of the records of ./conf, which saves seconds; None for other folders."""
    return Path(".schedlab", f"records-{scale}.json") if conf.resolve() == Path("conf").resolve() else None


def _named(name: str, only: str) -> bool:
    """Return whether a study's name, or STUDY/NAME, is selected by `only`."""
    return not only or name == only or name.startswith(f"{only}/")


def _lines(loaded: experiment.Experiment, only: str) -> list[str]:
    lines = []
    for study, records in loaded.studies.items():
        for name, record in records.scenarios.items():
            compared = (
                f"{counted(len(record['rules']), 'rule')}, {counted(len(record['policies']), 'policy', 'policies')}"
            )
            lines += [f"ok  scenario {study}/{name}: {compared}"] if _named(f"{study}/{name}", only) else []
        for name, record in records.policies.items():
            learner = f"{record['target']}, {counted(len(record['seeds']), 'seed')}"
            lines += [f"ok  policy   {study}/{name}: {learner}"] if _named(f"{study}/{name}", only) else []
    return lines


def _names(loaded: experiment.Experiment) -> dict[str, set[str]]:
    """Return every scenario and policy of a scale as 'study/name', and those that do not run."""
    return {
        "scenario": {f"{study}/{name}" for study, records in loaded.studies.items() for name in records.scenarios},
        "policy": {f"{study}/{name}" for study, records in loaded.studies.items() for name in records.policies},
        "not run": {f"{study}/{name}" for study, name, _ in loaded.not_run},
    }


def _summary(there: Mapping[str, set[str]], claims: int) -> str:
    """Return the last line: the numbers of scenarios, policies, claims, and scenarios and policies that do not run,
    each counted once over all scales.
    """
    absent = there["not run"] - there["scenario"] - there["policy"]
    found = (
        f"{counted(len(there['scenario']), 'scenario')}, {counted(len(there['policy']), 'policy', 'policies')}, "
        f"{counted(claims, 'claim')}"
    )
    return f"all right: {found}; {len(absent)} not run"


def _not_run(listed: Iterable[tuple[str, str, str]], only: str) -> list[str]:
    """Return a line for each reason, with all scenarios and policies that do not run for it."""
    grouped: dict[str, list[str]] = {}
    for study, what, reason in (entry for entry in listed if _named(f"{entry[0]}/{entry[1]}", only)):
        grouped.setdefault(reason, []).append(f"{study}/{what}")
    return [f"--  not run  {shortened(names)}: {reason}" for reason, names in grouped.items()]
