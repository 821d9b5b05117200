"""The policy of a real run: it is found by name or file, asked at each decision, and its answers are recorded.

Most policies need only the actions and decisions of their scenario. A policy that reads the simulation table (the
oracle, or a policy that steps the environment) needs the table that the workflow makes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.plugins import is_file_target, load_class, load_object
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.checkpoints import read_checkpoint
from schedlab.studies.adaptation.commands.conf import STUDY_NAME, load_policy, policy_names
from schedlab.studies.adaptation.decisions import Decision, certain, check_actions
from schedlab.studies.adaptation.network.architecture import Architecture, architecture
from schedlab.studies.adaptation.problem import AdaptationProblem, ProblemSetup, setup_of
from schedlab.studies.adaptation.rules import RULES
from schedlab.studies.adaptation.scenario import AdaptationScenario
from schedlab.studies.adaptation.simulator.table import DecisionTree, read_simulations
from schedlab.studies.adaptation.study import STUDY

if TYPE_CHECKING:
    pass

_LEARNER_OF_KIND = {"adaptation-network": "exact", "adaptation-sequence": "constant", "adaptation-nearest": "nearest"}
_OF_TABLE = ("view", "states", "units", "rows", "row", "decisions", "env", "rollout")  # attributes of AdaptationProblem
# (decision, actions so far) -> probability of each action
Rates = Callable[[Decision, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class RunProblem:
    """A scenario as a policy sees it: name, setup and tree.

    The other attributes of AdaptationProblem are loaded from the table when they are needed. This raises UserError if
    the table is missing, damaged, or that of another scenario.
    """

    name: str
    setup: ProblemSetup
    start: Architecture
    table: Path

    @property
    def tree(self) -> DecisionTree:
        """All sequences of decisions."""
        return self.setup.tree

    @cached_property
    def over_table(self) -> AdaptationProblem:
        """The problem with the scenario's simulation table."""
        if not self.table.is_file():
            what = f"the policy reads the simulation table of scenario {self.name}, which is not there"
            remedy = "run snakemake for this scenario, or name the folder of its results with --results"
            raise UserError(what, where=str(self.table), expected="the table that the workflow makes", remedy=remedy)
        return AdaptationProblem(self.name, read_simulations(self.table), self.start, self.setup)

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_TABLE:
            raise AttributeError(name)
        return getattr(self.over_table, name)


@dataclass
class Chooser:
    """Takes the decisions of a run; `choose` is passed to the simulation.

    rates        the policy's probabilities of the actions
    stream       random numbers for a policy that draws its actions; None: the most probable action is taken
    reads_slope  the policy observes the slope of the validation accuracy, so it can only be asked during the training
    decisions    record of the decisions: the facts that the policy was asked with, and its answers
    """

    setup: ProblemSetup
    rates: Rates
    stream: np.random.Generator | None = None
    reads_slope: bool = False
    decisions: list[dict[str, Any]] = field(default_factory=list)

    def choose(
        self, grown: Architecture, number: int, seconds_left: float, taken: tuple[int, ...], slope: float | None = None
    ) -> int:
        """Return the most probable action or, for a random policy, an action drawn from its probabilities."""
        decision = Decision(grown, seconds_left, self.setup.total_time, self.setup.actions, slope)
        rates = np.asarray(self.rates(decision, taken), dtype=float)
        check_actions(rates.size, len(self.setup.actions) + 1)
        action = int(np.argmax(rates)) if self.stream is None else int(self.stream.choice(len(rates), p=rates))
        names = [f"{action.operation}-{action.block}" for action in self.setup.actions]
        asked = {"decision": number + 1, "time_left": seconds_left, "insertions": list(grown.insertions)}
        answer = {"action": action, "name": [*names, "nothing"][action], "probabilities": rates.tolist()}
        self.decisions.append({**asked, "parameters": grown.parameters, **answer})
        return action


def make_chooser(
    scenario: AdaptationScenario, arguments: argparse.Namespace, place: tuple[int, int], table: Path
) -> Chooser:
    """Return the chooser of a run of `schedlab adaptation run`.

    arguments  policy or sequence, seed, checkpoint, conf, scale, results
    place      job and replicate
    table      file of the scenario's simulation table, which need not exist
    Raises UserError for an unknown policy, or one that does not fit the scenario.
    """
    start = architecture(scenario.model)
    setup = setup_of(scenario, start)
    if arguments.sequence is not None:
        setup.tree.index(arguments.sequence)
        chosen = setup.tree.choices[setup.tree.index(arguments.sequence)]
        return Chooser(setup, lambda _, taken: certain(int(chosen[len(taken)]), setup.tree.actions))
    problem = RunProblem(scenario.name, setup, start, table)
    policy = _policy(scenario, arguments, problem)
    job, replicate = place
    seed = derive_seed(scenario.seed, "unit", job, replicate)
    unit = Unit(f"job-{job}/replicate-{replicate}", "replicate", "test", f"job-{job}", seed)
    policy.reset(unit)
    if not hasattr(policy, "decide"):
        return Chooser(setup, _stepped(policy, problem, unit))
    draws = None
    if getattr(policy, "stochastic", False):
        draws = generator(scenario.seed, "baseline-draw", arguments.seed, job, replicate)
    return Chooser(setup, lambda decision, _: policy.decide(decision), draws, getattr(policy, "reads_slope", False))


def _policy(scenario: AdaptationScenario, arguments: argparse.Namespace, problem: RunProblem) -> Any:
    """Return a rule of the scenario, a rule of the study, a learned policy, or the policy of a checkpoint alone."""
    name, learned = arguments.policy, policy_names(arguments.conf)
    rules = {rule.name: rule for rule in scenario.rule_settings()}
    if name in rules and not arguments.checkpoint:
        return _rule(rules[name].target or name, rules[name].params, problem, scenario, arguments.seed)
    if not arguments.checkpoint and (found := _named_rule(name)):
        return _rule(*found, problem, scenario, arguments.seed)
    if name in learned:
        record = load_policy(arguments.conf, arguments.scale, name)
        if not arguments.checkpoint and arguments.seed not in record["seeds"]:
            known = ", ".join(map(str, record["seeds"]))
            raise UserError(f"policy '{name}' has no seed {arguments.seed}", where="--seed", expected=f"one of {known}")
        return _learner(record["target"]).load(_checkpoint(arguments), problem)
    if arguments.checkpoint:
        kind = str(read_checkpoint(arguments.checkpoint).meta.get("kind"))
        if kind not in _LEARNER_OF_KIND:
            what = f"the checkpoint holds a policy of kind '{kind}'"
            raise UserError(
                what, where=str(arguments.checkpoint), remedy=f"name its file of {arguments.conf}/policy/{STUDY_NAME}"
            )
        return _learner(_LEARNER_OF_KIND[kind]).load(arguments.checkpoint, problem)
    remedy = did_you_mean(name, [*rules, *learned, "never", "random"])
    raise UserError(f"unknown policy '{name}'", where="--policy", remedy=remedy)


def _named_rule(name: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return (target, params) of a rule of the study that the scenario does not list: its name, or `always-1`."""
    if name in RULES:
        return name, {}
    target, _, number = name.rpartition("-")
    return ("always", {"action": int(number)}) if target == "always" and number.isdigit() else None


def _rule(target: str, params: Mapping[str, Any], problem: Any, scenario: AdaptationScenario, seed: int) -> Any:
    make = load_class(target, "rule") if is_file_target(target) else RULES[target]
    return make(params, problem, derive_seed(scenario.seed, "rule", STUDY_NAME, seed))


def _learner(target: str) -> Any:
    return (load_class(target, "learner") if is_file_target(target) else load_object(STUDY.learners[target]))()


def _checkpoint(arguments: argparse.Namespace) -> Path:
    """Return the given checkpoint, or that of the workflow. Raises UserError if there is none."""
    if arguments.checkpoint:
        return arguments.checkpoint
    own = Path(arguments.results, arguments.scale, STUDY_NAME, "policies", arguments.policy)
    file = own / f"seed-{arguments.seed}" / "policy.zip"
    if not file.is_file():
        what = f"policy '{arguments.policy}' is not learned yet"
        remedy = f"run `snakemake --cores all {file}`, or name a file with --checkpoint"
        raise UserError(what, where=str(file), expected="the file that the workflow makes", remedy=remedy)
    return file


def _stepped(policy: Any, problem: RunProblem, unit: Unit) -> Rates:
    """Return the answers of a policy that observes the environment, which takes the same steps as the run."""
    env = problem.env(unit, unit.seed)
    seen = [env.reset(seed=unit.seed)[0]]

    def rates(_decision: Decision, taken: tuple[int, ...]) -> np.ndarray:
        if taken:
            seen[0] = env.step(taken[-1])[0]
        return certain(int(policy.act(seen[0], env.action_masks())), problem.tree.actions)

    return rates
