"""`schedlab parameters`: every key of conf/ with type, default, unit and meaning, generated from the typed sections."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from schedlab.config.readers import option_names
from schedlab.config.records import ScaleFile, StudyFile
from schedlab.config.schema import Settings, parameter_rows, sections_within
from schedlab.config.settings import (
    FigureSettings,
    PolicySettings,
    RootSettings,
    RuleSettings,
    ScenarioSettings,
    ThemeSettings,
)
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS
from schedlab.stages import studies

INTRODUCTION = """# Parameters

Every key that a file under `conf/` may have. A key that is not listed is refused. A key marked `required` has no
default. A section that refers to others repeats only the keys that differ; of several sections, the first one with a
key applies. (`schedlab parameters > docs/reference/parameters.md` generates this page.)
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
    named = (ScenarioSettings, PolicySettings, RuleSettings, FigureSettings, ThemeSettings)
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
