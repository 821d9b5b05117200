"""Registration of the ramp study: its settings, checks, rules and learners."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from schedlab.config.contract import Part, Problem, Requirement, Scalar, Study
from schedlab.config.errors import UserError
from schedlab.config.plugins import load_object
from schedlab.config.schema import Settings, validate
from schedlab.config.settings import PolicySettings
from schedlab.doors import Door, with_doors
from schedlab.learning.prioritised_dqn import settings as prioritised_dqn_settings
from schedlab.learning.stock.settings import phase_mistakes
from schedlab.studies.ramp.figures.settings import FIGURES, figure_files
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import ARCHIVE, PART, graph_part, graph_requirements
from schedlab.studies.ramp.learners.settings import LEARNER_SETTINGS, STOCK_SETTINGS, RampStockSettings
from schedlab.studies.ramp.legacy import REFERENCE
from schedlab.studies.ramp.placement.user_managers import INTERFACES
from schedlab.studies.ramp.rules import PARAMETRIC, RULE_MAKERS, RULE_SETTINGS, degree_mistake, own_rule
from schedlab.studies.ramp.scenario import METRICS, RESULTS_VERSION, TERMS, RampScale, RampScenario
from schedlab.studies.ramp.simulator.distributions import DistributionSettings
from schedlab.studies.ramp.simulator.gaps import (
    GapSettings,
    find_trace,
    gaps_of,
    read_gaps,
    trace_digest,
    trace_path,
    trace_requirements,
)
from schedlab.studies.ramp.simulator.hardware import legal_degrees, memory_of, network, speeds_of
from schedlab.studies.ramp.user_classes import UserClass, class_files, user_object

PROBLEM = ("cluster", "jobs", "management", "episodes", "legacy")


def parts(scenario: RampScenario) -> dict[str, Part]:
    """Return the parts that the prepare rule reads; scenarios of one set of graphs share them."""
    trace = trace_path(scenario.jobs.interarrival)
    arrivals = (str(find_trace(trace).absolute()),) if trace else ()
    return {PART: graph_part(scenario.graphs, arrivals + class_files(scenario.user_classes))}


def requires(scenario: RampScenario) -> list[Requirement]:
    """Return the required files of graphs and arrivals."""
    return [*graph_requirements(scenario.graphs), *trace_requirements(scenario.jobs.interarrival)]


def facts(scenario: RampScenario) -> dict[str, Scalar]:
    """Return the facts of a scenario: topology, number of workers, mean time between arrivals (s, None if it is not
    stated) and the law of arrivals. A user's class is represented by its name.
    """
    gap, cluster = scenario.jobs.interarrival, scenario.cluster
    workers = cluster.groups * cluster.racks * cluster.servers * cluster.workers
    found: dict[str, Scalar] = {"topology": str(cluster.topology), "workers": workers}
    if isinstance(cluster.topology, UserClass):
        found = {"topology": cluster.topology.name, "workers": network(scenario)[0].num_workers}
    if isinstance(gap, UserClass):
        return found | {"interarrival": None, "arrivals": gap.name}
    return found | {"interarrival": gap.value if gap.kind == "fixed" else gap.mean, "arrivals": gap.kind}


def check(scenario: RampScenario) -> Iterable[UserError]:
    """Yield errors that types do not catch: an invalid cluster, impossible numbers of shards, betas outside (0, 1]."""
    try:
        topology, blocks = network(scenario)
    except UserError as error:
        where = error.where if isinstance(scenario.cluster.topology, UserClass) else "cluster"
        yield UserError(error.what, where=where, expected=error.expected, remedy=error.remedy)
        return
    yield from _class_mistakes(scenario)
    workers, most, cluster = topology.num_workers, scenario.management.most, scenario.cluster
    torus, gaps = cluster.topology == "torus", scenario.jobs.interarrival
    discrete = gaps if isinstance(gaps, GapSettings) and gaps.is_discrete else None
    least = min(_extremes(discrete)) if discrete else math.inf
    never = discrete is not None and least >= 0 and _is_always_0(discrete)
    strict = scenario.mode == "reference" and scenario.legacy.model_dump() != REFERENCE
    shards = f"{most} shards of an op"
    management = scenario.management
    unfit = management.placer not in ("first_fit", "any_servers") and management.whole_ops == "inside"
    shaped = isinstance(management.placer, UserClass) and management.shaper != "none"
    for wrong, what, where, expected in (
        (most > workers, f"{shards} on {workers} workers", "management.most", f"at most {workers}"),
        (most > 1 and most % 2, shards, "management.most", "1 or an even number: no action is another"),
        (torus and cluster.workers > 1, f"{cluster.workers} workers a server", "cluster.workers", "1 in a torus"),
        (
            torus and cluster.contending_racks != "one",
            "racks that contend",
            "cluster.contending_racks",
            "one in a torus",
        ),
        (unfit, "another placer", "management.placer", "first_fit where whole_ops is inside"),
        (shaped, "a shaper beside a user's placer", "management.shaper", "none"),
        (least < 0, "a negative gap between arrivals", "jobs.interarrival", "times of 0 or more"),
        (
            never,
            "gaps that are all 0",
            "jobs.interarrival",
            "times above 0 among them",
        ),
        (strict, "not every defect is switched on in mode reference", "reference.legacy", "all true, or mode default"),
    ):
        if wrong:
            yield UserError(what, where=where, expected=expected)
    for value in _extremes(scenario.jobs.beta):
        if not 0 < value <= 1:
            yield UserError(f"beta can become {value:g}", where="jobs.beta", expected="shares above 0 and at most 1")
    if (trace := trace_path(gaps)) and find_trace(trace).is_file():
        try:
            read_gaps(trace)
        except UserError as error:
            yield UserError(f"{error.where}: {error.what}", where="jobs.interarrival.path", expected=error.expected)
    yield from _rule_mistakes(scenario, legal_degrees(blocks, most))
    try:
        speeds_of(cluster, workers)
        memory_of(cluster, workers)
    except UserError as error:
        yield error


def _class_mistakes(scenario: RampScenario) -> Iterable[UserError]:
    """Yield errors of users' classes other than a topology."""
    makers: list[Callable[[], object]] = [
        partial(user_object, given, INTERFACES[key])
        for key in INTERFACES
        if isinstance(given := getattr(scenario.management, key), UserClass)
    ]
    if isinstance(scenario.jobs.interarrival, UserClass):
        makers.append(lambda: gaps_of(scenario.jobs.interarrival, scenario.seed)[0].mean)
    for make in makers:
        try:
            make()
        except UserError as error:
            yield error


def _rule_mistakes(scenario: RampScenario, degrees: list[int]) -> Iterable[UserError]:
    """Yield errors for degrees and caps of rules for which the cluster has no block."""
    for place, rule in enumerate(scenario.rule_settings()):
        name = rule.target or rule.name
        if (
            name in PARAMETRIC
            and (mistake := degree_mistake(name, rule.params, degrees, f"rules.{place}.params")) is not None
        ):
            yield mistake


def _is_always_0(settings: DistributionSettings) -> bool:
    """Whether a distribution of values of 0 or more, or one of those from which it chooses, can only give 0."""
    if settings.choices:
        return any(map(_is_always_0, settings.choices))
    if settings.kind == "pmf":
        return not any(value > 0 < share for value, share in settings.probabilities.items())
    return not any(value > 0 for value in _extremes(settings))


def _extremes(settings: DistributionSettings) -> list[float]:
    """Return the smallest and the largest value of a distribution, or all values that it lists."""
    own = [value for value in (settings.value, settings.low, settings.high) if value is not None]
    return [*own, *settings.probabilities, *(value for choice in settings.choices for value in _extremes(choice))]


def problem_values(scenario: RampScenario) -> dict[str, Any]:
    """Return the settings that determine the scores of policies, given the graphs."""
    values = scenario.model_dump(mode="json")
    found = {key: values[key] for key in (*PROBLEM, "name", "seed", "graphs")}
    digest = trace_digest(scenario.jobs.interarrival)
    return found | ({"arrivals_sha256": digest} if digest else {})


def load_problem(values: Mapping[str, Any], inputs: Mapping[str, Path]) -> Problem:
    """Return one scenario with its graphs."""
    other = ("upstream", "arrivals_sha256")
    scenario = validate(RampScenario, {key: value for key, value in values.items() if key not in other})
    return load_object("schedlab.studies.ramp.problem:RampProblem")(scenario, read_graphs(inputs["graphs"]))


def check_policy(policy: PolicySettings, learner: Settings) -> Iterable[UserError]:
    """Yield an error for each phase whose `params` change a setting that must be the same in all phases."""
    if isinstance(learner, RampStockSettings):
        yield from phase_mistakes(learner, policy.train_on)
    yield from prioritised_dqn_settings.phase_mistakes(learner, policy.train_on)


STUDY = Study(
    name="ramp",
    question="how far should a distributed training job be split over the servers of an optical cluster?",
    results_version=RESULTS_VERSION,
    scenario=RampScenario,
    scale=RampScale,
    metrics=METRICS,
    rules={
        **{name: f"schedlab.studies.ramp.rules:RULE_MAKERS[{name}]" for name in RULE_MAKERS},
        "lp_bound": "schedlab.studies.ramp.lp_bound:make_bound",
    },
    rule_settings=RULE_SETTINGS,
    learners={
        "afterstate": "schedlab.studies.ramp.learners.afterstate.learner:AfterstateLearner",
        "prioritised_dqn": "schedlab.studies.ramp.learners.dqn:RampDQNLearner",
        **{name: f"schedlab.studies.ramp.learners.stock:LEARNERS[{name}]" for name in STOCK_SETTINGS},
    },
    learner_settings=LEARNER_SETTINGS,
    figures={kind: f"schedlab.studies.ramp.figures.{file}:draw_{kind}" for kind, (file, _) in FIGURES.items()},
    figure_settings={kind: values for kind, (_, values) in FIGURES.items()},
    figure_files=figure_files,
    parts=parts,
    problem_part=problem_values,
    requires=requires,
    inputs=lambda _: {"graphs": (PART, ARCHIVE)},
    problem=load_problem,
    details={"jobs": "what each job was, why it was blocked, or how it ran"},
    kinds={
        "lp_bound": "bound",
        "afterstate": "informed",  # of the durations of all graphs and the law of arrivals
        "prioritised_dqn": "published",
    },
    facts=facts,
    terms=TERMS,
    check=check,
    check_policy=check_policy,
    own_rule=own_rule,
    commands="schedlab.studies.ramp.commands.parser:add_commands",
)

STUDY = with_doors(
    STUDY,
    learners={
        "predicted_rollouts": Door(
            "schedlab.studies.ramp.learners.predicted.learner:PredictedLearner",
            settings="schedlab.studies.ramp.learners.predicted.settings:PredictedSettings",
            term="rollouts with durations that a model, fitted on other graphs, predicts from a job's graph; limits "
            "and gaps of imagined jobs are those of earlier arrivals and of training",
        )
    },
)
