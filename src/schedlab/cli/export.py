"""`schedlab export`: the frozen configuration of one scenario, whole, as TOML or YAML."""

from __future__ import annotations

import sys
from typing import Any

from schedlab.config import experiment, freeze
from schedlab.config.errors import UserError
from schedlab.stages.studies import find_study


def export(scenario: str, folder: str, scale: str, form: str) -> int:
    """Print every part of a scenario. TOML has no null: keys without a value are left out."""
    study, _, name = scenario.partition("/")
    if not name:
        raise UserError(f"'{scenario}' names no scenario", where="command line", expected="STUDY/SCENARIO, for example adaptation/early")
    loaded = experiment.load(folder, scale, find_study)
    record = loaded.scenario(study, name)
    document = {
        "study": study,
        "scale": scale,
        "scenario": freeze.problem_part(loaded, study, name),
        "parts": {part: loaded.part_values(study, name, part) for part in record["parts"]},
        "rules": record["rules"],
        "policies": {policy: freeze.learn_part(loaded, study, policy)["policy"] for policy in record["policies"]},
    }
    if form == "yaml":
        sys.stdout.write(freeze.dump(document))
        return 0
    import toml

    sys.stdout.write(toml.dumps(_without_null(document)))
    return 0


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_null(entry) for entry in value if entry is not None]
    return value
