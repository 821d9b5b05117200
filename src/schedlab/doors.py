"""Rules and learners that a study offers in addition to those of its `Study(...)`.

A statement `STUDY = with_doors(STUDY, ...)` names them as text. The code that makes such a rule or learner counts only
in the jobs that use it, and the statement itself counts in no job (`config/runtime/statements.py`). So a new rule or
learner makes none of the study's other results out of date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from schedlab.config.contract import Study
from schedlab.config.plugins import load_object
from schedlab.config.settings import Kind


@dataclass(frozen=True)
class Door:
    """A rule or a learner that is loaded when it is used.

    opens     what makes it, as `package.module:object` or `package.module:TABLE[key]`
    kind      the kind of its policies; None: the default, `rule` for a rule and `learned` for a learner
    settings  class of its typed values, as `package.module:Class`; empty: it takes none
    term      what its name means, for the glossary
    """

    opens: str
    kind: Kind | None = None
    settings: str = ""
    term: str = ""


def with_doors(
    study: Study, *, rules: Mapping[str, Door] | None = None, learners: Mapping[str, Door] | None = None
) -> Study:
    """Return a study with more rules and learners, by name. Raises ValueError for a name that the study already has."""
    more_rules, more_learners = dict(rules or {}), dict(learners or {})
    if taken := sorted((study.rules.keys() & more_rules) | (study.learners.keys() & more_learners)):
        raise ValueError(f"the study {study.name} has {', '.join(taken)} already")
    both = {**more_rules, **more_learners}
    return replace(
        study,
        rules={**study.rules, **{name: door.opens for name, door in more_rules.items()}},
        learners={**study.learners, **{name: door.opens for name, door in more_learners.items()}},
        rule_settings={**study.rule_settings, **_settings(more_rules)},
        learner_settings={**study.learner_settings, **_settings(more_learners)},
        kinds={**study.kinds, **{name: door.kind for name, door in both.items() if door.kind}},
        terms={**study.terms, **{name: door.term for name, door in both.items() if door.term}},
    )


def _settings(doors: Mapping[str, Door]) -> dict[str, type]:
    return {name: load_object(door.settings) for name, door in doors.items() if door.settings}
