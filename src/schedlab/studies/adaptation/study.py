"""The interface of the adaptation study: the object STUDY."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from schedlab.config.contract import Part, Problem, Requirement, Study
from schedlab.config.errors import UserError
from schedlab.config.files import read_table
from schedlab.config.schema import Settings, setting
from schedlab.config.settings import LONGEST, MOST, PolicySettings, Seeds
from schedlab.studies.adaptation.data.datasets import FORMS, SOURCES, file_sets, mistakes, split_sizes
from schedlab.studies.adaptation.figures.settings import FIGURES
from schedlab.studies.adaptation.learners.encoders import read_vocabulary
from schedlab.studies.adaptation.learners.settings import LEARNER_SETTINGS, NetworkSettings, network_mistakes
from schedlab.studies.adaptation.network.architecture import Architecture, architecture, require_fit
from schedlab.studies.adaptation.problem import SCORES, AdaptationProblem, setup_of
from schedlab.studies.adaptation.rules import RULE_SETTINGS, RULES
from schedlab.studies.adaptation.scenario import (
    LONGEST_JOB,
    MOST_DECISIONS,
    RESULTS_VERSION,
    TERMS,
    AdaptationScenario,
    problem_values,
    scenario_of,
    simulation_values,
    spans,
    table_values,
    trunk_values,
)
from schedlab.studies.adaptation.simulator.course import adaptation_course, adaptation_start, all_runs
from schedlab.studies.adaptation.simulator.table import DIGITS
from schedlab.studies.adaptation.simulator.timing import Timing, require_one_epoch

PREPARE = "schedlab.studies.adaptation.prepare"
PUBLISHED_SOURCE = "schedlab data get adaptation_published, then schedlab adaptation import-results"


class AdaptationScale(Settings):
    """Sizes of this study at one scale: `sizes` of its file in conf/study/."""

    budget: float = setting(240.0, doc="budget of a training job", unit="s", gt=0, le=LONGEST_JOB)
    decisions: int = setting(3, doc="growth decisions in a run", ge=1, le=MOST_DECISIONS)
    jobs: Seeds = setting((0,), doc="initialisations", min_length=1)
    replicates: int = setting(3, doc="replicates of each job, for learning, choosing and testing", ge=1, le=MOST)
    validation_replicates: int = setting(0, doc="replicates on which rivals are chosen", ge=0, le=MOST)
    test_replicates: int = setting(1, doc="replicates for testing", ge=0, le=MOST)
    replicates_per_job: int = setting(1, doc="replicates that one job simulates", ge=1, le=MOST)
    seeds: Seeds = setting((0, 1, 2), doc="seeds of learned policies", min_length=1)
    exact_updates: int = setting(300, doc="maximum number of updates of the exact learner", ge=1, le=LONGEST)
    episodes: int = setting(6000, doc="episodes per phase of learners that sample", ge=1, le=LONGEST)
    published_episodes: int = setting(
        2000, doc="episodes of the published learner, which makes one update per episode", ge=1, le=LONGEST
    )
    published_seeds: Seeds = setting((0, 1, 2), doc="seeds of the published learners", min_length=1)


def published(scenario: AdaptationScenario) -> bool:
    """Return whether the scenario's table is read from the published record, and nothing is trained here."""
    return scenario.table.source == "published"


def parts(scenario: AdaptationScenario) -> dict[str, Part]:
    """Return prepare rule -> the part of a scenario that it reads."""
    if published(scenario):
        values = {**scenario.table.model_dump(mode="json"), "scenario": scenario.name}
        return {"tabulate": Part(values, files=(str(scenario.table.file),), made_by=f"{PREPARE}:tabulate")}
    actions = len(setup_of(scenario, architecture(scenario.model)).actions) + 1
    data = {"data": scenario.data.model_dump(mode="json")}
    files = (scenario.data.root,) if scenario.data.root else ()
    return {
        "check_data": Part(data, shared=True, files=files, made_by=f"{PREPARE}:check_data"),
        "train_trunk": Part(
            trunk_values(scenario), shared=True, needs=("check_data",), files=files, made_by=f"{PREPARE}:train_trunk"
        ),
        "simulate_adaptation": Part(
            simulation_values(scenario),
            needs=("check_data", "train_trunk"),
            files=files,
            spread={"spans": spans(scenario)},
            made_by=f"{PREPARE}:simulate_adaptation",
        ),
        "tabulate": Part(
            table_values(scenario, actions), needs=("simulate_adaptation",), files=files, made_by=f"{PREPARE}:tabulate"
        ),
    }


def requires(scenario: AdaptationScenario) -> list[Requirement]:
    """Return the required data: the published record, or the files of the data set."""
    if published(scenario):
        return [Requirement("the published simulations", Path(str(scenario.table.file)), PUBLISHED_SOURCE)]
    if scenario.data.root:
        form = scenario.data.format
        return [
            Requirement(f"the data set {scenario.data.name}", Path(scenario.data.root), SOURCES[form], file_sets(form))
        ]
    return []


def check(scenario: AdaptationScenario) -> Iterable[UserError]:
    """Yield mistakes that types cannot show: shapes that do not fit, unknown actions, impossible replicates."""
    try:
        start = architecture(scenario.model)
    except UserError as error:
        # reported at the block's key, so that the message names the model's file, once for all its scenarios
        block = re.search(r"blocks\.\d+", error.where)
        where = f"model.{block.group()}" if block else "model.blocks"
        yield UserError(error.what, where=where, expected=error.expected, remedy=error.remedy)
        return
    try:
        setup = setup_of(scenario, start)
        for action in setup.actions:
            action.apply(start)
    except UserError as error:
        yield UserError(error.what, where="actions", expected=error.expected, remedy=error.remedy)
        return
    yield from _check_rules(scenario, len(setup.actions) + 1)
    if not published(scenario):
        yield from _check_simulation(scenario, start)


def _check_rules(scenario: AdaptationScenario, actions: int) -> Iterable[UserError]:
    """Yield an error for each rule with an action that the scenario does not have; the last action does nothing."""
    numbers = f"0 to {actions - 1} ({actions - 1} does nothing)"
    for index, rule in enumerate(scenario.rule_settings()):
        target = rule.target or rule.name
        if target == "always" and rule.params["action"] >= actions:
            where = f"rules.{index}.params.action"
            what = f"there is no action {rule.params['action']}"
            yield UserError(what, where=where, expected=f"a number from {numbers}")
        if target == "sequence":
            given, where = rule.params["sequence"], f"rules.{index}.params.sequence"
            if len(given) != scenario.decisions:
                expected = f"{scenario.decisions} actions, one a decision"
                yield UserError(f"'{given}' has {len(given)} actions", where=where, expected=expected)
            elif not set(given) <= set(DIGITS[:actions]):
                yield UserError(
                    f"'{given}' names an action that is not there", where=where, expected=f"actions from {numbers}"
                )


def policy_files(learner: Settings) -> list[str]:
    """Return the files besides the tables that a learner reads: the vocabulary, if it encodes layers as words."""
    return [learner.vocabulary] if isinstance(learner, NetworkSettings) and learner.encoder == "vocab" else []


def check_policy(policy: PolicySettings, learner: Settings) -> Iterable[UserError]:
    """Yield mistakes of a policy that types cannot show: a phase that changes the network, a missing vocabulary."""
    if not isinstance(learner, NetworkSettings):
        return
    yield from network_mistakes(learner, policy.train_on)
    if learner.encoder == "vocab":
        try:
            read_vocabulary(learner.vocabulary)
        except UserError as error:
            what = f"{error.where}: {error.what}"
            yield UserError(what, where="learner.vocabulary", expected=error.expected, remedy=error.remedy)


def _check_simulation(scenario: AdaptationScenario, start: Architecture) -> Iterable[UserError]:
    validation, test = scenario.validation_replicates, scenario.test_replicates
    if scenario.replicates > 1 and validation + test >= scenario.replicates:
        what = f"{validation} and {test} of {scenario.replicates} replicates are for validation and testing"
        yield UserError(what, where="test_replicates", expected="at least one left to learn on")
    if scenario.replicates > 1 and validation and not test:
        yield UserError("no replicate is left for testing", where="test_replicates", expected="at least one")
    form, wrong = FORMS[scenario.data.format], list(mistakes(scenario.data))
    checks = [("model", lambda: require_fit(start, scenario.data.name, form.shape, form.classes))]
    if not wrong:
        checks.append(("timing", lambda: _check_course(scenario, start)))
    yield from (UserError(error.what, where="data", expected=error.expected, remedy=error.remedy) for error in wrong)
    if scenario.reward.split == "validation" and not scenario.data.validation_size:
        remedy = "give it a validation_size, or set reward: {split: test}"
        yield UserError(
            f"the data set {scenario.data.name} has no validation images to judge by",
            where="reward.split",
            remedy=remedy,
        )
    for key, check in checks:
        try:
            check()
        except UserError as error:
            where = error.where.removeprefix(f"scenario {scenario.name}: ")
            where = where if where.partition(".")[0] in AdaptationScenario.model_fields else key
            yield UserError(error.what, where=where, expected=error.expected, remedy=error.remedy)


def _check_course(scenario: AdaptationScenario, start: Architecture) -> None:
    """Raise UserError if the timing does not fit the job, or if an action leaves no time for its first epoch."""
    train, validation, test = split_sizes(scenario.data)
    timing = Timing(scenario.timing, train or 1, validation + (test or 1))
    timing.check_batch_size(scenario.training.batch_size, "training.batch_size")
    require_one_epoch(scenario.budget, scenario.adapt_at, timing.epoch_seconds(start), "budget")
    plan = replace(adaptation_course(scenario, start, timing), decisions=1)
    all_runs(plan, adaptation_start(scenario, start, timing))


def inputs(scenario: AdaptationScenario) -> dict[str, tuple[str, str]]:
    """Return the prepared files: the table, and the curve of the trunk where the scenario has one."""
    table = {"table": ("tabulate", "table.parquet")}
    return table if published(scenario) else table | {"trunk": ("train_trunk", "trunk.parquet")}


def load_problem(values: Mapping[str, Any], inputs: Mapping[str, Path]) -> Problem:
    """Return one scenario with its table."""
    scenario = scenario_of(values)
    start = architecture(scenario.model)
    return AdaptationProblem(scenario.name, read_table(inputs["table"]), start, setup_of(scenario, start))


STUDY = Study(
    name="adaptation",
    question="when and where should a network grow while its training budget runs out?",
    results_version=RESULTS_VERSION,
    scenario=AdaptationScenario,
    scale=AdaptationScale,
    metrics=SCORES,
    rules={name: f"schedlab.studies.adaptation.rules:RULES[{name}]" for name in RULES},
    learners={
        "exact": "schedlab.studies.adaptation.learners.exact:ExactLearner",
        "reinforce": "schedlab.studies.adaptation.learners.reinforce:ReinforceLearner",
        "bandit": "schedlab.studies.adaptation.learners.sequence:BanditLearner",
        "constant": "schedlab.studies.adaptation.learners.sequence:ConstantLearner",
        "nearest": "schedlab.studies.adaptation.learners.sequence:NearestLearner",
    },
    learner_settings=LEARNER_SETTINGS,
    figures={kind: f"schedlab.studies.adaptation.figures.{file}:draw_{kind}" for kind, (file, _) in FIGURES.items()},
    parts=parts,
    problem_part=problem_values,
    requires=requires,
    inputs=inputs,
    problem=load_problem,
    details={
        "decisions": "what each policy decided and how sure it was, with the time left",
        "sequences": "the sequence that came of it, with reward, regret and rank",
    },
    kinds={"exhaustive": "oracle", "constant": "rule", "nearest": "search", "bandit": "search"},
    deterministic=("constant", "nearest"),
    facts=lambda scenario: {
        "model": scenario.model.name,
        "data": scenario.data.name,
        "source": scenario.table.source,
        "adapt_at": scenario.adapt_at,
    },
    terms=TERMS,
    rule_settings=RULE_SETTINGS,
    figure_settings={kind: values for kind, (_, values) in FIGURES.items()},
    check=check,
    check_policy=check_policy,
    policy_files=policy_files,
    commands="schedlab.studies.adaptation.commands.parser:add_commands",
)
