"""Makes the rule or the learner that a policy's entry in a frozen part describes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab.config.contract import Learner, Phase, Policy, PolicySpec, Problem, Study
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.plugins import is_file_target, load_class, load_object, told_with_place
from schedlab.config.seeds import derive_seed


def policy_spec(entry: Mapping[str, Any]) -> PolicySpec:
    """Return the PolicySpec of a policy's entry (`policy` of a learn part, an item of `policies` of an evaluate
    part).
    """
    phases = tuple(
        Phase(tuple(phase["scenarios"]), phase["steps"], phase.get("params") or {})
        for phase in entry.get("train_on") or ()
    )
    return PolicySpec(
        name=entry["name"],
        kind=entry["kind"],
        target=entry["target"],
        params=entry.get("params") or {},
        seeds=tuple(entry.get("seeds") or (0,)),
        train_on=phases,
        parent=entry.get("parent"),
        mode=entry.get("mode", "default"),
    )


def make_rule(study: Study, spec: PolicySpec, problem: Problem, seed: int) -> Policy:
    """Return a rule of the study or of the user's file, made for a problem.

    seed  seed of its random stream, derived by `policy_stream` from the root seed and the policy's seed number

    Raises UserError for an unknown rule, and for errors in the user's file.
    """
    if is_file_target(spec.target):
        make = study.own_rule(spec.target) if study.own_rule else load_class(spec.target, "rule")
        with told_with_place(spec.target, f"rule '{spec.name}'"):
            return make(spec.params, problem, seed)
    if spec.target not in study.rules:
        raise UserError(
            f"unknown rule '{spec.target}' of study '{study.name}'",
            where=spec.name,
            remedy=did_you_mean(spec.target, study.rules),
        )
    return load_object(study.rules[spec.target])(spec.params, problem, seed)


def make_learner(study: Study, spec: PolicySpec) -> Learner:
    """Return the learner that makes and loads a policy: the study's, or a class in the user's file."""
    if is_file_target(spec.target):
        return load_class(spec.target, "learner")()
    if spec.target not in study.learners:
        remedy = did_you_mean(spec.target, study.learners)
        raise UserError(f"unknown learner '{spec.target}' of study '{study.name}'", where=spec.name, remedy=remedy)
    return load_object(study.learners[spec.target])()


def policy_stream(root: int, stage: str, study: str, seed: int) -> int:
    """Return the seed of the random stream for one seed number in one stage. All policies share it, so they use the
    same random numbers.
    """
    return derive_seed(root, stage, study, seed)


def missing_input(name: str, path: Path) -> UserError:
    """Return the error for an input file that is not there."""
    return UserError(
        "the input file is missing",
        where=f"{name}: {path}",
        expected="the product of an earlier stage",
        remedy="run snakemake",
    )
