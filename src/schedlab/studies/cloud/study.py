"""The door of the cloud study."""

from __future__ import annotations

from schedlab.config.contract import Study
from schedlab.studies.cloud import prepare
from schedlab.studies.cloud.figures.settings import FIGURE_SETTINGS, FIGURES
from schedlab.studies.cloud.learners.settings import LEARNER_SETTINGS, STOCK
from schedlab.studies.cloud.problem import METRICS
from schedlab.studies.cloud.replay.episode_tables import STEP_TABLES
from schedlab.studies.cloud.rules.rules import RULE_SETTINGS, RULES
from schedlab.studies.cloud.scenario import RESULTS_VERSION, TERMS, CloudScale, CloudScenario, check

STUDY = Study(
    name="cloud",
    question="how many GPUs, CPUs and GB for this training job, under cost, time and SLA?",
    results_version=RESULTS_VERSION,
    scenario=CloudScenario,
    scale=CloudScale,
    metrics=METRICS,
    rules={name: f"schedlab.studies.cloud.rules.rules:RULES[{name}]" for name in RULES},
    learners={
        "reinforce": "schedlab.studies.cloud.learners.reinforce:ReinforceLearner",
        "multi_policy": "schedlab.studies.cloud.learners.multi_policy:MultiPolicyLearner",
        **{name: f"schedlab.learning.stock.learner:LEARNERS[{name}]" for name in STOCK},
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
    commands="schedlab.studies.cloud.commands:add_commands",
)
