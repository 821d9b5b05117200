"""The door of the hetero study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab.config.contract import Problem, Requirement, Study
from schedlab.learning.stock.settings import phase_mistakes
from schedlab.studies.hetero import prepare
from schedlab.studies.hetero.checks import check
from schedlab.studies.hetero.figures.settings import FIGURES
from schedlab.studies.hetero.learners.settings import LEARNER_SETTINGS, STOCK
from schedlab.studies.hetero.outcomes import DETAILS, METRICS
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.rules import RULE_SETTINGS, RULES, own_rule
from schedlab.studies.hetero.scenario import RESULTS_VERSION, TERMS, HeteroScale, HeteroScenario

OWN_ROOM, STOCK_ROOM = "schedlab.studies.hetero.learners.policy_gradient", "schedlab.learning.stock.learner"
ARCHIVE = "the Parallel Workloads Archive, https://www.cs.huji.ac.il/labs/parallel/workload/"


def requires(scenario: HeteroScenario) -> list[Requirement]:
    """Return the files that must be there: a trace or workload, and the binary of a real Batsim."""
    needs = []
    if scenario.workload.file:
        source = ARCHIVE if scenario.workload.source == "swf" else "a workload file of Batsim, of your own"
        needs.append(Requirement(f"the workload {scenario.workload.name}", Path(scenario.workload.file), source))
    if scenario.simulator == "batsim":
        needs.append(Requirement("a real Batsim", Path(scenario.batsim), "https://batsim.readthedocs.io", program=True))
    return needs


def inputs(scenario: HeteroScenario) -> dict[str, tuple[str, str]]:
    """Return the prepared files: the platform, its resources, the workloads."""
    del scenario
    return {
        "platform": ("generate_platform", "platform.xml"),
        "resources": ("generate_platform", "resources.json"),
        "workloads": ("trim_workload", "workloads.zip"),
    }


def load_problem(values: Mapping[str, Any], inputs: Mapping[str, Path]) -> Problem:
    """Return one scenario with its platform and workloads."""
    return HeteroProblem(prepare.scenario_of(values), inputs["platform"], inputs["resources"], inputs["workloads"])


STUDY = Study(
    name="hetero",
    question="which job and which core next, on a heterogeneous cluster with memory-bandwidth conflicts?",
    results_version=RESULTS_VERSION,
    scenario=HeteroScenario,
    scale=HeteroScale,
    metrics=METRICS,
    rules={name: f"schedlab.studies.hetero.rules:RULES[{name}]" for name in RULES},
    learners={name: f"{STOCK_ROOM if name in STOCK else OWN_ROOM}:LEARNERS[{name}]" for name in LEARNER_SETTINGS},
    learner_settings=LEARNER_SETTINGS,
    figures={kind: f"schedlab.studies.hetero.figures.{file}:draw_{kind}" for kind, (file, _) in FIGURES.items()},
    parts=prepare.parts,
    problem_part=prepare.problem_values,
    requires=requires,
    inputs=inputs,
    problem=load_problem,
    commands="schedlab.studies.hetero.hdeeprm.commands:add_commands",
    details=DETAILS,
    facts=lambda scenario: {"platform": scenario.platform.name, "workload": scenario.workload.name},
    terms=TERMS,
    rule_settings=RULE_SETTINGS,
    figure_settings={kind: values for kind, (_, values) in FIGURES.items()},
    check=check,
    check_policy=lambda policy, learner: phase_mistakes(learner, policy.train_on),
    own_rule=own_rule,
)
