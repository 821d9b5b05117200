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
    ThemeSettings,
)
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS
from schedlab.stages import studies

INTRODUCTION = """# Parameters

Every key that a file under `conf/` may hold, generated from the typed sections of the code by
`schedlab parameters > docs/reference/parameters.md`. A key that is not listed is refused. `required` keys have no
default.
"""
STOCK_LEARNERS = (
    "learners that know no study: those of Stable-Baselines3 and sb3-contrib, and our own DQN "
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
    common = (RootSettings, StudyFile, ScaleFile, PolicySettings, RuleSettings, FigureSettings, ThemeSettings)
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
        written.add(kind)
        yield f"### {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n"
        yield "| key | type | default | unit | meaning |\n|---|---|---|---|---|"
        for key, type_name, default, unit, doc in parameter_rows(kind):
            yield f"| `{key}` | {type_name} | {_cell(default)} | {unit} | {doc.replace('|', '/')} |"
        yield ""
        queue = [*sections_within(kind), *queue]


def _cell(default: str) -> str:
    text = default.replace("|", "\\|")
    return text if text == "required" else f"`{text}`"
