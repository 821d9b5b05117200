"""`schedlab export`: the frozen configuration of one scenario or policy, whole, as TOML or YAML."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from schedlab.config import experiment
from schedlab.config.composition import Composer
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.runtime import freeze
from schedlab.config.runtime.parts import dump
from schedlab.config.variations import of_words
from schedlab.stages.studies import find_study


def export(scenario: str, folder: str, scale: str, form: str, values: Sequence[str] = ()) -> int:
    """Print every part of a scenario or policy (STUDY/NAME), with other values of some keys (KEY=VALUE). TOML has no
    null: keys without a value, and empty tables, are left out of it.
    """
    study, _, name = scenario.partition("/")
    if not name:
        raise UserError(
            f"'{scenario}' names no scenario",
            where="command line",
            expected="STUDY/SCENARIO or STUDY/POLICY, for example adaptation/early",
        )
    composer = Composer(folder, scale)
    groups = [group for group in ("scenario", "policy") if name in composer.names(f"{group}/{study}")]
    group = groups[0] if groups else "scenario"
    loaded = experiment.load(folder, scale, find_study, overrides=of_words(group, study, name, values))
    if study not in loaded.studies:
        raise UserError(
            f"there is no study '{study}'", where="command line", remedy=did_you_mean(study, loaded.studies)
        )
    frozen = document(loaded, study, name) if group == "scenario" else freeze.learn_part(loaded, study, name)
    if form == "yaml":
        sys.stdout.write(dump(frozen))
        return 0
    import toml

    sys.stdout.write(toml.dumps(without_null(frozen)))
    return 0


def document(loaded: experiment.Experiment, study: str, name: str) -> dict[str, Any]:
    """Return all that is frozen of a scenario: as its problem sees it, the parts of its prepare rules, its rules and
    policies.
    """
    record = loaded.scenario(study, name)
    return {
        "study": study,
        "scale": loaded.scale,
        "scenario": freeze.problem_part(loaded, study, name),
        "parts": {part: loaded.part_values(study, name, part) for part in record["parts"]},
        "rules": record["rules"],
        "policies": {policy: freeze.learn_part(loaded, study, policy)["policy"] for policy in record["policies"]},
    }


def without_null(value: Any) -> Any:
    """Return plain values without what is null, and without empty tables, which the package `toml` loses in arrays of
    tables.
    """
    if isinstance(value, dict):
        kept = {key: without_null(entry) for key, entry in value.items() if entry is not None}
        return {key: entry for key, entry in kept.items() if entry != {}}
    if isinstance(value, list):
        return [without_null(entry) for entry in value if entry is not None]
    return value
