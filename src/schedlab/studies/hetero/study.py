"""The interface of the hetero study: the object STUDY."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from schedlab.batsim.scheduler_loading import OURS, load_scheduler, own_events
from schedlab.config.contract import Problem, Requirement, Study
from schedlab.config.errors import UserError, UserErrors
from schedlab.config.settings import RuleSettings
from schedlab.doors import Door, with_doors
from schedlab.learning.stock.settings import phase_mistakes
from schedlab.platforms.generate import hierarchy_of
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.studies.hetero import prepare
from schedlab.studies.hetero.env.settings import LegacySettings
from schedlab.studies.hetero.figures.settings import FIGURES
from schedlab.studies.hetero.learners.settings import LEARNER_SETTINGS, STOCK
from schedlab.studies.hetero.outcomes import DETAILS, METRICS
from schedlab.studies.hetero.problem import HeteroProblem
from schedlab.studies.hetero.rules import (
    BEST_FIXED_PAIR,
    BEST_RESERVE,
    LOOK_AHEAD,
    NEED_WALLTIMES,
    PAIRS,
    RESERVE,
    RULE_SETTINGS,
    RULES,
    TRIED_PAIRS,
    own_rule,
)
from schedlab.studies.hetero.scenario import RESULTS_VERSION, TERMS, HeteroScale, HeteroScenario, check_replicates
from schedlab.studies.hetero.simulator.resources import ResourceModel

OWN_ROOM, STOCK_ROOM = "schedlab.studies.hetero.learners.policy_gradient", "schedlab.learning.stock.learner"
ROOMS = dict.fromkeys(STOCK, STOCK_ROOM) | {"trials": "schedlab.studies.hetero.learners.trial_learner"}
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


DECIDING = (BEST_FIXED_PAIR, TRIED_PAIRS, RESERVE, BEST_RESERVE, LOOK_AHEAD)
COMPILED_RULES = (TRIED_PAIRS, LOOK_AHEAD, "clairvoyant", "alone")  # they try options on the compiled kernel
Rules = Sequence[tuple[int, RuleSettings, str]]  # number, rule, what it runs


def check(scenario: HeteroScenario) -> Iterable[UserError]:
    """Yield the mistakes of a scenario: platform, jobs larger than it, replicates, rules, energy."""
    hierarchy = None
    try:
        hierarchy = hierarchy_of(scenario.platform)
    except UserErrors as several:
        yield from (_at(error, "platform") for error in several.errors)
    except UserError as error:
        yield _at(error, "platform")
    if hierarchy is not None:
        yield from _check_sizes(scenario, hierarchy)
    yield from check_replicates(scenario.workload, scenario.replicates)
    if scenario.energy and not scenario.platform.energy:
        yield UserError("energy is asked for", where="platform.energy", expected="true, to have the hosts' powers")
    rules = [(number, rule, rule.target or rule.name) for number, rule in enumerate(scenario.rule_settings())]
    yield from _check_rules(scenario, rules)
    yield from _check_decisions(scenario, rules)
    yield from _check_compiled(scenario)
    yield from _check_physics(scenario, rules, hierarchy)


def _check_sizes(scenario: HeteroScenario, hierarchy: Hierarchy) -> Iterable[UserError]:
    """Yield the mistakes of drawn jobs, such as a size above the platform's; a trace is checked when it is read."""
    workload = scenario.workload
    if workload.source != "lublin":
        return
    drawn = workload.lublin.processors
    if drawn > hierarchy.cores:
        what, expected = f"jobs are drawn for {drawn} processors", f"at most {hierarchy.cores}, as {hierarchy.name} has"
        yield UserError(what, where="workload.lublin.processors", expected=expected)
    if not workload.batsim.missing_memory:
        what, expected = "the model gives jobs no memory", "MB per core, one of which each job gets, as [1000, 2000]"
        yield UserError(what, where="workload.batsim.missing_memory", expected=expected)
    for kind in ("typeless",) if workload.lublin.types == "typeless" else ("batch", "interactive"):
        try:
            workload.lublin.bounds(kind)
        except UserError as error:
            yield _at(error, "workload.lublin")


def _check_rules(scenario: HeteroScenario, rules: Rules) -> Iterable[UserError]:
    """Yield missing walltimes that built-in schedulers need, and schedulers that PyBatsim does not have."""
    needy = [rule.name for _, rule, target in rules if target in NEED_WALLTIMES]
    if needy and scenario.workload.source != "batsim" and scenario.workload.batsim.walltime == "none":
        what = f"the jobs get no walltimes, which {', '.join(needy)} need{'s' if len(needy) == 1 else ''}"
        yield UserError(what, where="workload.batsim.walltime", expected="requested or slowest_core")
    for number, rule, target in rules:
        if target == "pybatsim" and importlib.util.find_spec("batsim"):  # without PyBatsim, the job reports it
            try:
                with TemporaryDirectory(prefix="schedlab-") as folder, own_events(f"{folder}/run") as prefix:
                    load_scheduler(rule.params["scheduler"], rule.params.get("options") or {}, prefix)
            except UserError as error:
                yield _at(error, f"rules.{number}.params.scheduler")


def _check_decisions(scenario: HeteroScenario, rules: Rules) -> Iterable[UserError]:
    """Yield the mistakes about managed pstates, and about the splits and metrics by which rules are chosen."""
    deciding = [rule.name for _, rule, target in rules if target in (*DECIDING, *PAIRS)] + list(scenario.policies)
    pstates, key = scenario.platform.pstates, "platform.pstates.managed"
    energy = scenario.energy and scenario.simulator != "compiled"
    if not pstates.managed:
        if deciding:
            named = ", ".join(deciding[:3]) + (f" and {len(deciding) - 3} more" if len(deciding) > 3 else "")
            yield UserError(f"{named} manage the cores' pstates, and there are none", where=key, expected="true")
        for number, rule, target in rules:
            if target in OURS and rule.params.get("cores", "lowest") != "lowest":
                what = "cores are chosen on managed pstates only"
                yield UserError(what, where=f"rules.{number}.params.cores", expected=f"{key}: true")
    elif not scenario.platform.energy:
        yield UserError("pstates need the powers of the hosts", where="platform.energy", expected="true")
    for number, rule, target in rules:
        if target in (BEST_FIXED_PAIR, BEST_RESERVE):
            split, where = rule.params.get("split", "validation"), f"rules.{number}.params"
            if not getattr(scenario.replicates, split, 1):
                what, expected = f"no workload of the split {split}", f"replicates.{split}: 1 or more"
                yield UserError(what, where=f"{where}.split", expected=expected)
            if not energy and str(rule.params.get("metric", "")).startswith("energy"):
                expected = "energy: true, or another metric"
                yield UserError("energy is not scored here", where=f"{where}.metric", expected=expected)


def _check_compiled(scenario: HeteroScenario) -> Iterable[UserError]:
    """Yield the features of a scenario that the compiled kernel does not support."""
    if scenario.simulator != "compiled":
        return
    if not scenario.platform.pstates.managed:
        yield UserError("the kernel manages the cores' pstates", where="platform.pstates.managed", expected="true")
    if scenario.decisions.legacy != LegacySettings():
        what = "the kernel has none of the original's defects"
        yield UserError(what, where="simulator", expected="embedded in mode reference")


def _check_physics(scenario: HeteroScenario, rules: Rules, hierarchy: Hierarchy | None) -> Iterable[UserError]:
    """Yield the simulators, platforms and rules that do not have the scenario's physics."""
    beyond = scenario.physics.beyond
    if not beyond:
        return
    if scenario.simulator != "embedded":
        what = f"the simulator {scenario.simulator} does not have {beyond}"
        expected = "embedded, which takes some fifty times as long as the compiled one"
        yield UserError(what, where="simulator", expected=expected)
    if not scenario.platform.pstates.managed:
        yield UserError(f"{beyond} needs managed pstates", where="platform.pstates.managed", expected="true")
    yield from _check_cap(scenario, hierarchy)
    for number, rule, target in rules:
        if target in COMPILED_RULES:
            what = f"{rule.name} runs on the compiled kernel, which does not have {beyond}"
            yield UserError(what, where=f"rules.{number}", expected="a rule that runs on the embedded simulator")
        elif target == "pybatsim" and scenario.physics.mean_time_to_failure is not None:
            what = f"{rule.name} takes no notice of nodes that fail (physics.mean_time_to_failure)"
            yield UserError(what, where=f"rules.{number}", expected="a scheduler of this package, or a pair")


def _check_cap(scenario: HeteroScenario, hierarchy: Hierarchy | None) -> Iterable[UserError]:
    """Yield a power cap that the platform exceeds with a single busy core."""
    cap = scenario.physics.power_cap
    if cap is None or hierarchy is None or not scenario.platform.pstates.managed:
        return
    model = ResourceModel(hierarchy)
    idle, least = model.most_power(0), model.most_power(1)
    if cap < least:
        what = f"the cap of {cap:g} W is below {least:g} W, the power with one busy core ({idle:g} W if all are idle)"
        yield UserError(what, where="physics.power_cap", expected=f"at least {least:g}")


def _at(error: UserError, key: str) -> UserError:
    """Return the error of a section of the scenario with the section's key as its place."""
    what = f"{error.where}: {error.what}" if error.where and error.where != "--scheduler" else error.what
    return UserError(what, where=key, expected=error.expected, remedy=error.remedy)


STUDY = Study(
    name="hetero",
    question="which job and which core next, on a heterogeneous cluster with memory-bandwidth conflicts?",
    results_version=RESULTS_VERSION,
    scenario=HeteroScenario,
    scale=HeteroScale,
    metrics=METRICS,
    rules={
        **{name: f"schedlab.studies.hetero.rules:RULES[{name}]" for name in RULES},
        TRIED_PAIRS: "schedlab.studies.hetero.learners.tried_pairs:tried_pairs",
        LOOK_AHEAD: "schedlab.studies.hetero.learners.look_ahead:look_ahead",
    },
    kinds={TRIED_PAIRS: "oracle", BEST_FIXED_PAIR: "search", BEST_RESERVE: "search", LOOK_AHEAD: "planner"},
    learners={name: f"{ROOMS.get(name, OWN_ROOM)}:LEARNERS[{name}]" for name in LEARNER_SETTINGS},
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

STUDY = with_doors(
    STUDY,
    rules={
        "clairvoyant": Door(
            "schedlab.studies.hetero.learners.clairvoyant:clairvoyant",
            kind="oracle",
            settings="schedlab.studies.hetero.learners.oracle_settings:ClairvoyantSettings",
            term="oracle: knows all run times and arrivals; takes the rule with a reserve that is best on the test "
            "workload itself, and at each decision an option after which this rule does better, or waits",
        ),
        "alone": Door(
            "schedlab.studies.hetero.learners.jobs_alone:jobs_alone",
            kind="bound",
            term="bound: each job starts at once on the fastest cores, as if no other job were there",
        ),
    },
)
