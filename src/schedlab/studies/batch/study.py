"""The interface of the batch study: the object STUDY."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from schedlab.config.contract import Part, Problem, Requirement, Scalar, Study
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import write_json
from schedlab.config.plugins import load_object
from schedlab.config.readers import read_json
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import Settings, validate
from schedlab.config.settings import Kind, PolicySettings
from schedlab.learning.stock.settings import phase_mistakes
from schedlab.studies.batch.backfilling import (
    BACKFILLING_POLICIES,
    PREDICTING,
    require_backfilling,
)
from schedlab.studies.batch.backfilling import TERMS as BACKFILLING_TERMS
from schedlab.studies.batch.constraints.limits import require_limited
from schedlab.studies.batch.env.layouts import layout_mistakes
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.figures.settings import FIGURES, figure_files
from schedlab.studies.batch.learners.search_settings import EvolutionSettings, HistorySettings, RolloutSettings
from schedlab.studies.batch.learners.stock_settings import (
    STOCK_SETTINGS,
    BatchDDPGSettings,
    BatchMaskablePPOSettings,
    TrainingWindows,
)
from schedlab.studies.batch.legacy import WAITING_RULES
from schedlab.studies.batch.metrics import METRICS
from schedlab.studies.batch.repeats import RepeatSettings, repeated_trace
from schedlab.studies.batch.rules import ORACLES, PREDICTED, RULES, SlurmSettings, require_fixed_rule
from schedlab.studies.batch.scenario import (
    RESULTS_VERSION,
    TERMS,
    TEXTBOOK,
    BatchScale,
    BatchScenario,
    require_order,
)
from schedlab.workloads.prepare import write_trace
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.swf import read_swf, write_swf

RULE_NAMES = (
    *RULES,
    "slurm",
    "planner",
    *(f"{name}_predicted" for name in PREDICTED),
    "lxf_predicted",
    *(f"{name}_true_times" for name in ORACLES),
    *BACKFILLING_POLICIES,
)
KINDS: dict[str, Kind] = {"planner": "planner", "evolution": "search", "history": "search", "lxf_predicted": "planner"}
KINDS |= {f"{name}_predicted": "planner" for name in PREDICTED}
KINDS |= dict.fromkeys(PREDICTING, "planner")
KINDS |= {f"{name}_true_times": "oracle" for name in ORACLES}
ARCHIVE = "the Parallel Workloads Archive, https://www.cs.huji.ac.il/labs/parallel/workload/"
PROBLEM = (
    "workload",
    "windows",
    "backfill",
    "backfill_order",
    "most_wait",
    "queue_priority",
    "dependencies",
    "limits",
    "kill",
    "warm_start",
    "environment",
)


def make_trace(part: Path, trace: Path, report: Path) -> None:
    """Write the trace of a frozen part (SWF, gzip) and how it was made (JSON). Raises UserError."""
    values = read_part(part)
    workload = validate(WorkloadSettings, values["workload"])
    if "repeats" not in values:
        write_trace(workload, trace, report)
        return
    made, done = repeated_trace(workload, validate(RepeatSettings, values["repeats"]))
    write_swf(trace, made)
    write_json(report, done)


def parts(scenario: BatchScenario) -> dict[str, Part]:
    """Return what the prepare rule reads; scenarios of one workload share the trace."""
    files = (scenario.workload.file,) if scenario.workload.file else ()
    values = {"workload": scenario.workload.model_dump(mode="json")}
    if scenario.repeats:
        values["repeats"] = scenario.repeats.model_dump(mode="json")
    return {"make_trace": Part(values, shared=True, files=files, made_by=f"{__name__}:make_trace")}


def requires(scenario: BatchScenario) -> list[Requirement]:
    """Return the trace that must be there, unless the jobs are drawn."""
    workload = scenario.workload
    return [Requirement(f"the trace {workload.name}", Path(workload.file), ARCHIVE)] if workload.file else []


def check(scenario: BatchScenario) -> Iterable[UserError]:
    """Yield mistakes that types cannot show: no trace, parts without test windows, an unknown rule."""
    windows = scenario.windows
    if scenario.workload.source == "batsim":
        yield UserError("a workload file of Batsim is no trace", where="workload.source", expected="lublin or swf")
    if scenario.repeats and not (scenario.workload.source == "lublin" and scenario.workload.lublin.users):
        what = "there are no drawn users who could repeat their jobs"
        expected = "null, or workload.source lublin and workload.lublin.users 1 or more"
        yield UserError(what, where="repeats", expected=expected)
    if scenario.dependencies and scenario.workload.source == "lublin":
        what = "drawn jobs do not follow others"
        yield UserError(what, where="dependencies", expected="false, or workload.source swf")
    if windows.train_share + windows.validation_share >= 1:
        what = "training and validation part leave nothing to test on"
        yield UserError(what, where="windows.train_share", expected="a sum below 1")
    if windows.continuous and scenario.warm_start:
        what = "a run of the whole trace has no jobs before it"
        yield UserError(what, where="warm_start", expected="false where windows.continuous is true")
    if scenario.most_wait is not None and scenario.backfill not in TEXTBOOK:
        what = f"backfill '{scenario.backfill}' has no bound on waits"
        yield UserError(what, where="most_wait", expected=f"null, or backfill {', '.join(TEXTBOOK)}")
    try:
        require_order(scenario.backfill, scenario.backfill_order)
        if scenario.limits.some:
            require_limited(scenario.backfill, "limits")
    except UserError as error:
        yield error
    for number, rule in enumerate(scenario.rule_settings()):
        name, where = rule.target or rule.name, f"rules.{number}"
        try:
            require_backfilling(name, scenario.backfill, where)
            if scenario.limits.some and name in BACKFILLING_POLICIES:
                require_limited(BACKFILLING_POLICIES[name].backfill, where)
            if rule.params.get("queue_weight") and not scenario.queue_priority:
                what = "`queue_weight` weighs the scenario's `queue_priority`, which is empty"
                raise UserError(what, where=f"{where}.params.queue_weight", expected="0, or a queue_priority")
        except UserError as error:
            yield error
    workload = scenario.workload
    drawn = workload.lublin.estimates if workload.source == "lublin" else None
    asked, key = (
        workload.estimates or drawn,
        "workload.estimates" if workload.estimates else "workload.lublin.estimates",
    )
    if scenario.backfill != "none" and asked and asked.model == "none":
        what = "backfilling goes by requested times, which no job has: it would delay the first in the queue for ever"
        yield UserError(what, where=f"{key}.model", expected="perfect, factor or menu, or backfill: none")
    yield from environment_mistakes(scenario.environment, "environment")


def environment_mistakes(environment: EnvironmentSettings, where: str) -> Iterable[UserError]:
    """Yield mistakes in a policy's observations and rewards; `where`: its key."""
    for baseline in environment.baselines:
        if baseline not in RULES:
            what, remedy = f"there is no rule '{baseline}'", did_you_mean(baseline, RULES)
            yield UserError(what, where=f"{where}.baseline", remedy=remedy)
    if environment.layout == "shortlist":
        try:
            require_fixed_rule(environment.order, f"{where}.order")
        except UserError as error:
            yield error
    yield from layout_mistakes(environment, where)


def problem_values(scenario: BatchScenario) -> dict[str, Any]:
    """Return what decides how rules are scored, apart from the trace."""
    values = scenario.model_dump(mode="json")
    return {key: values[key] for key in PROBLEM}


def load_problem(values: Mapping[str, Any], inputs: Mapping[str, Path]) -> Problem:
    """Return one scenario with its trace."""
    scenario = validate(BatchScenario, {key: value for key, value in values.items() if key != "upstream"})
    report = read_json(inputs["report"], "the report of a workload") if "report" in inputs else {}
    problem = load_object("schedlab.studies.batch.problem:BatchProblem")
    return problem(scenario, read_swf(inputs["trace"]), report.get("cleaning", {}).get("maxima"))


def check_policy(policy: PolicySettings, learner: Settings) -> Iterable[UserError]:
    """Yield mistakes of a policy that types cannot show: phases that change it, unknown rules, observations that it
    cannot read.
    """
    yield from phase_mistakes(learner, policy.train_on)
    if isinstance(learner, RolloutSettings | HistorySettings):
        alone = "this learner does all of its search at once"
        if len(policy.train_on) > 1:
            expected = "one phase, of all scenarios to learn on"
            yield UserError(f"{len(policy.train_on)} phases: {alone}", where="train_on", expected=expected)
        if policy.parent:
            yield UserError(f"a parent: {alone}", where="parent", expected="null")
    if isinstance(learner, TrainingWindows):
        yield from environment_mistakes(learner.environment, "learner.environment")
        rules = {"keep_rule": [learner.keep_rule]}
        if isinstance(learner, BatchMaskablePPOSettings):
            cloned = [learner.clone_rule] if learner.clone_rule else []
            rules |= {"clone_rule": cloned, "expert_rules": list(learner.expert_rules)}
        for key, rule in ((key, rule) for key, named in rules.items() for rule in named):
            if rule not in RULES:
                yield UserError(f"there is no rule '{rule}'", where=f"learner.{key}", remedy=did_you_mean(rule, RULES))
    if isinstance(learner, BatchDDPGSettings) and learner.environment.layout != "features":
        what = f"the layout {learner.environment.layout} has no features to weigh"
        yield UserError(what, where="learner.environment.layout", expected="features")


def facts(scenario: BatchScenario) -> dict[str, Scalar]:
    """Return the facts of a scenario: the trace, the load of a drawn workload, and the backfilling."""
    workload = scenario.workload
    load = (workload.load or workload.lublin.load) if workload.source == "lublin" else None
    return {"trace": workload.name, "load": load, "backfill": scenario.backfill}


STUDY = Study(
    name="batch",
    question="in which order should an HPC batch queue run?",
    results_version=RESULTS_VERSION,
    scenario=BatchScenario,
    scale=BatchScale,
    metrics=METRICS,
    rules={name: f"schedlab.studies.batch.problem:RULE_MAKERS[{name}]" for name in RULE_NAMES} | WAITING_RULES,
    rule_settings={"slurm": SlurmSettings},
    learners={
        "evolution": "schedlab.studies.batch.learners.search:EvolutionLearner",
        "history": "schedlab.studies.batch.learners.history:HistoryLearner",
        "rollout": "schedlab.studies.batch.learners.rollout:RolloutLearner",
        **{name: f"schedlab.studies.batch.learners.stock:LEARNERS[{name}]" for name in STOCK_SETTINGS},
    },
    learner_settings={
        "evolution": EvolutionSettings,
        "history": HistorySettings,
        "rollout": RolloutSettings,
        **STOCK_SETTINGS,
    },
    figures={kind: f"schedlab.studies.batch.figures.{file}:draw_{kind}" for kind, (file, _) in FIGURES.items()},
    parts=parts,
    problem_part=problem_values,
    requires=requires,
    inputs=lambda _: {"trace": ("make_trace", "trace.swf.gz"), "report": ("make_trace", "report.json")},
    problem=load_problem,
    details={"jobs": "when each job started, how long it waited, and its slowdown"},
    kinds=KINDS,
    facts=facts,
    terms=TERMS | BACKFILLING_TERMS,
    figure_settings={kind: values for kind, (_, values) in FIGURES.items()},
    figure_files=figure_files,
    check=check,
    check_policy=check_policy,
    commands="schedlab.studies.batch.commands.parser:add_commands",
)
