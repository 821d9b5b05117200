"""`schedlab export` and `schedlab parameters`: the frozen configuration of one scenario or policy, and every key of
conf/ with type, default, unit and meaning.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from schedlab.config import experiment
from schedlab.config.composition import Composer
from schedlab.config.data_paths import EntrySettings
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.readers import option_names
from schedlab.config.records import ScaleFile, StudyFile
from schedlab.config.runtime import freeze
from schedlab.config.runtime.parts import dump
from schedlab.config.schema import Settings, parameter_rows, sections_within
from schedlab.config.settings import (
    FigureSettings,
    PolicySettings,
    RootSettings,
    RuleSettings,
    ScenarioSettings,
    ThemeSettings,
)
from schedlab.config.variations import of_words
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS
from schedlab.stages import studies
from schedlab.stages.studies import find_study

INTRODUCTION = """# Parameters

Every key that a file under `conf/` may have. A key that is not listed is refused. A key marked `required` has no
default. A section that says "Further keys as in A, B" also has the keys of A and B, and lists only keys that they
lack or that differ there; if both A and B have a key, that of A applies. (`schedlab parameters >
docs/reference/parameters.md` generates this page.)
"""
STOCK_LEARNERS = (
    "learners for every study: those of Stable-Baselines3 and sb3-contrib, and our own DQN "
    "([learners.md](learners.md))."
)


def parameters(folder: str) -> int:
    """Print the page."""
    print("\n".join(page(Path(folder))))
    return 0


def page(folder: Path) -> Iterator[str]:
    """Yield the lines of the page, for the studies of a configuration folder."""
    yield INTRODUCTION
    written: set[type[Settings]] = set()
    named = (ScenarioSettings, PolicySettings, RuleSettings, FigureSettings, ThemeSettings, EntrySettings)
    common = (RootSettings, StudyFile, ScaleFile, *named)
    yield from _chapter("Every study", "", written, *common)
    yield from _chapter("Stock learners", STOCK_LEARNERS, written, *ALGORITHM_SETTINGS.values(), PrioritisedDQNSettings)
    for name in option_names(folder / "study"):
        study = studies.load(name, folder)
        own = (*study.rule_settings.values(), *study.learner_settings.values(), *study.figure_settings.values())
        yield from _chapter(f"Study {name}", study.question, written, study.scenario, study.scale, *own)


def _chapter(title: str, text: str, written: set[type[Settings]], *kinds: type[Settings]) -> Iterator[str]:
    yield f"## {title}\n"
    if text:
        yield f"{text[0].upper()}{text[1:]}\n"
    queue = list(kinds)
    while queue:
        kind = queue.pop(0)
        if kind in written:
            continue
        bases = [base for base in kind.__bases__ if issubclass(base, Settings) and base is not Settings]
        if missing := [base for base in bases if base not in written]:
            queue = [*missing, kind, *queue]
            continue
        written.add(kind)
        yield f"### {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n"
        if bases:
            links = ", ".join(f"[{base.__name__}](#{base.__name__.lower()})" for base in bases)
            yield f"Further keys as in {links}.\n"
        inherited = {row for base in bases for row in parameter_rows(base)}
        if rows := [row for row in parameter_rows(kind) if row not in inherited]:
            yield "| key | type | default | unit | meaning |\n|---|---|---|---|---|"
            yield from (_line(*row) for row in rows)
            yield ""
        queue = [*sections_within(kind), *queue]


def _line(key: str, type_name: str, default: str, unit: str, doc: str) -> str:
    return f"| `{key}` | {type_name} | {_cell(default)} | {unit} | {doc.replace('|', '/')} |"


def _cell(default: str) -> str:
    text = default.replace("|", "\\|")
    return text if text == "required" else f"`{text}`"


def export(scenario: str, folder: str, scale: str, form: str, values: Sequence[str] = ()) -> int:
    """Print every part of a scenario or policy (STUDY/NAME), with other values of some keys (KEY=VALUE). TOML has no
    null, so keys without a value and empty tables are left out of it.
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
    """Return all frozen parts of a scenario: the part of its problem, the parts of its prepare rules, its rules and
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
    """Return plain values without nulls, and without empty tables, which the package `toml` loses in arrays of
    tables.
    """
    if isinstance(value, dict):
        kept = {key: without_null(entry) for key, entry in value.items() if entry is not None}
        return {key: entry for key, entry in kept.items() if entry != {}}
    if isinstance(value, list):
        return [without_null(entry) for entry in value if entry is not None]
    return value
