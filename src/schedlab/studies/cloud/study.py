"""The door of the cloud study."""

from __future__ import annotations

from schedlab.config.contract import Study
from schedlab.studies.cloud import prepare
from schedlab.studies.cloud.figures.settings import FIGURES
from schedlab.studies.cloud.jobs.settings import SEARCHES, SearchSettings
from schedlab.studies.cloud.learners.settings import LEARNER_SETTINGS, LEARNERS
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
    rules={**{name: f"schedlab.studies.cloud.rules.rules:RULES[{name}]" for name in RULES}, **SEARCHES},
    learners=LEARNERS,
    learner_settings=LEARNER_SETTINGS,
    figures={kind: f"schedlab.studies.cloud.figures.{file}:draw_{kind}" for kind, (file, _) in FIGURES.items()},
    figure_settings={kind: values for kind, (_, values) in FIGURES.items()},
    parts=prepare.parts,
    problem_part=prepare.problem_values,
    requires=prepare.requires,
    inputs=prepare.inputs,
    problem=prepare.load_problem,
    details=STEP_TABLES,
    kinds={
        "goodput_greedy": "planner",
        "fitted_constant": "planner",
        "oracle_static": "planner",  # uses the same fitted model on which policies learn
        "oracle_dynamic": "oracle",
        "bayesian": "search",
        "constant_search": "search",
        **dict.fromkeys(SEARCHES, "search"),
        "search_fitted": "planner",
        "search_known_model": "oracle",
        "search_reinforce": "learned",
        "multi_policy": "published",
    },
    facts=lambda scenario: {"job": scenario.job.name},
    terms=TERMS,
    rule_settings=RULE_SETTINGS | dict.fromkeys(SEARCHES, SearchSettings),
    check=check,
    commands="schedlab.studies.cloud.commands:add_commands",
)
