"""Readers of a configuration folder for the commands: scenarios, policies, models, data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from schedlab.config.composition import Composed, Composer
from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.readers import option_names, read_yaml
from schedlab.config.records import ConfigurationFolder, checked_scenario, policy_record
from schedlab.config.runtime.record_cache import RecordCache
from schedlab.config.schema import Settings, validate
from schedlab.config.variations import Override, of_words
from schedlab.studies.adaptation.scenario import AdaptationScenario
from schedlab.studies.adaptation.study import STUDY

STUDY_NAME = "adaptation"
SCENARIOS, POLICIES = f"scenario/{STUDY_NAME}", f"policy/{STUDY_NAME}"
S = TypeVar("S", bound=Settings)


def load_scenario(
    folder: str, scale: str, name: str, compat: bool = False, values: Sequence[str] = ()
) -> AdaptationScenario:
    """Return a scenario at a scale. Raises UserError or UserErrors.

    values: new values of some keys (KEY=VALUE); compat: use mode reference instead of the scenario's mode
    """
    composed = compose_file(folder, scale, SCENARIOS, name, of_words("scenario", STUDY_NAME, name, values))
    if compat:
        composed = replace(composed, values={**composed.values, "mode": "reference"})
    return checked_scenario(composed, name, STUDY)


def load_policy(folder: str, scale: str, name: str) -> dict[str, Any]:
    """Return the record of a learned policy (target, params, seeds, ...). Raises UserError or UserErrors."""
    return policy_record(compose_file(folder, scale, POLICIES, name), name, STUDY)


def policy_names(folder: str) -> list[str]:
    """Return the names of the learned policies of a configuration folder."""
    return Composer(folder, "full").names(POLICIES)


def load_option(folder: str, group: str, name: str, kind: type[S], changes: Mapping[str, Any] | None = None) -> S:
    """Return conf/<group>/<name>.yaml, typed, with some keys changed. Raises UserError for an unknown name."""
    place = Path(folder).resolve() / group
    file = place / f"{name}.yaml"
    if not file.is_file():
        what = f"there is no {group} '{name}'"
        raise UserError(what, where=str(Path(folder) / group), remedy=did_you_mean(name, option_names(place)))
    values = read_yaml(file)
    return validate(kind, {**values, **(changes or {})}, Composed(values, ((file, ()),)).locate)


def compose_file(folder: str | Path, scale: str, group: str, name: str, overrides: Sequence[Override] = ()) -> Composed:
    """Return conf/<group>/<name>.yaml, or a member of a family, with all files on which it builds.

    Raises UserError or UserErrors.
    """
    conf = ConfigurationFolder(Path(folder), scale, RecordCache(None), overrides=overrides)
    if f"{group}/{name}.yaml" in conf.layout.broken:
        raise UserErrors(conf.errors)
    return conf.composer.compose(group, name)
