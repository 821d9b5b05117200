"""The door of the cloud study."""

from __future__ import annotations

from functools import partial
from typing import Any

from schedlab.config.contract import Learner, Study
from schedlab.learning.stock.learner import StableBaselinesLearner
from schedlab.studies.cloud import prepare
from schedlab.studies.cloud.figures.settings import FIGURE_SETTINGS, FIGURES
from schedlab.studies.cloud.learners.settings import LEARNER_SETTINGS, STOCK
from schedlab.studies.cloud.problem import METRICS
from schedlab.studies.cloud.replay.episode_tables import STEP_TABLES
from schedlab.studies.cloud.rules.rules import RULE_SETTINGS, RULES
from schedlab.studies.cloud.scenario import RESULTS_VERSION, TERMS, CloudScale, CloudScenario, check


def _commands(commands: Any) -> None:
    from schedlab.studies.cloud.commands import add_commands

    add_commands(commands)


def _reinforce() -> Learner:
    from schedlab.studies.cloud.learners.reinforce import ReinforceLearner

    return ReinforceLearner()


def _multi_policy() -> Learner:
    from schedlab.studies.cloud.learners.multi_policy import MultiPolicyLearner

    return MultiPolicyLearner()


STUDY = Study(
    name="cloud",
    question="how many GPUs, CPUs and GB for this training job, under cost, time and SLA?",
    results_version=RESULTS_VERSION,
    scenario=CloudScenario,
    scale=CloudScale,
    metrics=METRICS,
    rules=RULES,
    learners={
        "reinforce": _reinforce,
        "multi_policy": _multi_policy,
        **{name: partial(StableBaselinesLearner, name) for name in STOCK},
    },
    learner_settings=LEARNER_SETTINGS,
    figures=FIGURES,
    figure_settings=FIGURE_SETTINGS,
    parts=prepare.parts,
    problem_part=prepare.problem_values,
    requires=prepare.requires,
    inputs=prepare.inputs,
    problem=prepare.load_problem,
    details=STEP_TABLES,
    terms=TERMS,
    rule_settings=RULE_SETTINGS,
    check=check,
    commands=_commands,
)
