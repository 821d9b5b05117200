"""The contract between a study and the stages that all studies share (learn, evaluate, summarise, draw).

A study is a `Study` object in `schedlab/studies/<name>/study.py` under the name STUDY. It receives its typed
configuration and the paths of its prepared inputs; it depends neither on the folders of results nor on Snakemake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Required, TypedDict, Unpack

from schedlab.config.settings import Kind, StatisticsSettings

if TYPE_CHECKING:
    from argparse import ArgumentParser

    import gymnasium as gym
    import pandas as pd
    from matplotlib.figure import Figure

    from schedlab.config.errors import UserError
    from schedlab.config.schema import Settings
    from schedlab.config.settings import PolicySettings

Scalar = bool | int | float | str | None
Split = Literal["train", "validation", "test"]


class Subcommands(Protocol):
    """The object to which commands are added. argparse's `add_subparsers` returns it; its class has no public name."""

    def add_parser(self, name: str, **keywords: Any) -> ArgumentParser: ...


@dataclass(frozen=True)
class Metric:
    """A score of units. The metric marked as `headline` comes first in figures and claims."""

    name: str
    unit: str
    better: Literal["lower", "higher"]
    headline: bool = False
    label: str = ""


@dataclass(frozen=True)
class Unit:
    """One item on which a policy is scored: a window, an episode or a replicate.

    Units that overlap or have the same origin have the same block. Facts of a unit become columns of the scores.
    """

    id: str
    kind: str
    split: Split
    block: str
    seed: int
    facts: Mapping[str, Scalar] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Phase:
    """A phase of learning: its training scenarios, its length in steps of the learner, and settings for this phase
    only.
    """

    scenarios: tuple[str, ...]
    steps: int
    params: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicySpec:
    """A policy of the configuration. `target` names a rule or learner of the study, or a user's class as FILE.py:CLASS.

    A policy is trained if it has `train_on`, whatever its `kind`; an informed policy, for example, may be trained.
    """

    name: str
    kind: Kind
    target: str
    params: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    train_on: tuple[Phase, ...] = ()
    parent: str | None = None
    mode: Literal["default", "reference"] = "default"


@dataclass(frozen=True)
class Outcome:
    """The scores of one policy on one unit, the unit's weight in means, and detail tables by declared name."""

    scores: Mapping[str, float]
    weight: float = 1.0
    details: Mapping[str, pd.DataFrame] = field(default_factory=dict)


class Policy(Protocol):
    """Interface of a policy. `reset` begins a unit; `act` returns the action for an observation (mask: True for valid
    actions).

    An untrained policy that tries candidates, when it is made or in units, may have an attribute `budget`, the Budget
    that it used; the stage evaluate reads it after the last unit. The budget of a rule without it is 0.
    """

    def reset(self, unit: Unit) -> None: ...

    def act(self, observation: Any, mask: Any) -> Any: ...


class Problem(Protocol):
    """Interface of a scenario whose inputs are loaded. `env` returns None if there is no environment."""

    def units(self, split: Split) -> Sequence[Unit]: ...

    def env(self, unit: Unit, seed: int) -> gym.Env | None: ...

    def rollout(self, policy: Policy, unit: Unit) -> Outcome: ...


@dataclass
class Budget:
    """The budget that a learning job, or an untrained policy that tries candidates, has used so far, without the share
    of a parent.

    An interrupted and resumed job has the same budget as one that was not interrupted.

    decisions: decisions taken in simulated environments, if their outcome can change the policy: in training episodes,
      in demonstrations that are imitated, in rollouts in the simulator, and in episodes by which parameters are chosen
      (validation, candidates of a search). Episodes that are only recorded in a curve do not count.
    episodes: training episodes that ended.
    trainings: full trainings of networks. In the study adaptation, a finished training that is read from the table
      counts once, however often it is read; in the study cloud, every training of the job counts; elsewhere 0.
    """

    decisions: int = 0
    episodes: int = 0
    trainings: int = 0


class CurvePlace(TypedDict, total=False):
    """The place of a point on a learning curve, and the budget used so far (`Budget`).

    Each place has one point per metric and split.

    of  facts that distinguish values at the same place, by column of the table, such as a preference or an action
    """

    step: Required[int]
    episode: int
    update: int
    phase: int
    scenario: str
    split: Split
    of: Mapping[str, str]
    decisions: int
    episodes: int
    trainings: int


class Curve(Protocol):
    """Receives points of a learning curve. The stage adds policy and seed, saves the points in case of an interruption,
    and writes the table.

    Values that are not given are 0, "" or the split "train". A resumed learner records again what came after
    its last saved state.
    """

    def __call__(self, metric: str, value: float, **place: Unpack[CurvePlace]) -> None: ...


@dataclass(frozen=True)
class LearnPaths:
    """Files of one learning job: the parent's checkpoint (None: no parent), the checkpoint to write, and a folder for
    resuming.
    """

    start: Path | None
    checkpoint: Path
    progress: Path


class Learner(Protocol):
    """Interface of a learner.

    `learn` writes the final parameters of a policy, never those of the parent, and resumes an interrupted job. It
    returns the budget that it used, which is written into the provenance of the policy, or None if it does not count a
    budget.
    """

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget | None: ...

    def load(self, checkpoint: Path, problem: Problem) -> Policy: ...


RuleMaker = Callable[[Mapping[str, Any], Problem, int], Policy]  # (params, problem, seed) -> policy


@dataclass(frozen=True)
class Part:
    """The part of a scenario's configuration that one prepare rule reads.

    shared: made once for all scenarios with equal values (in inputs/<part>-<hash>/ of the study instead of the
      scenario's own folder)
    needs: names of the parts whose products this one reads
    files: files outside the configuration that it reads; their SHA-256 become part of the frozen values
    spread: how the workflow distributes the work over jobs; it affects no result, so it is not in the frozen part
    made_by: the function that makes its products, as "module:function"; the products are made again if the code that
      this function reaches changes. By default, all code that the module of the study's `STUDY` imports
    """

    values: Mapping[str, Any]
    shared: bool = False
    needs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    spread: Mapping[str, Any] = field(default_factory=dict)
    made_by: str = ""


@dataclass(frozen=True)
class Requirement:
    """Data that must be on the machine before a scenario can run, and where to get it. Relative paths are resolved by
    data_paths.find_data.

    program: the path names a program; a bare name is looked up on the PATH.
    files: for a folder, sets of file names relative to it (plain or gzip), of which one set must be complete; no sets:
      any file or folder will do.
    """

    name: str
    path: Path
    source: str
    files: tuple[tuple[str, ...], ...] = ()
    program: bool = False


@dataclass(frozen=True)
class StudyTables:
    """The data from which figures are drawn: the common tables, and detail tables and inputs of scenarios by name.

    scores, curves, summary, comparisons: design tables of all scenarios and policies of the study (evaluation/tables.py
      gives the columns).
    details: table name -> the rows of all scenarios (the first columns, scenario, policy, policy_seed, split and unit,
      are added by the stage).
    inputs: scenario -> input name -> file. scenarios: scenario -> frozen `problem` part. policies: policy -> frozen
      `learn` part. statistics: how the summary's intervals were computed, such as their confidence.
    """

    scores: pd.DataFrame
    curves: pd.DataFrame
    summary: pd.DataFrame
    comparisons: pd.DataFrame
    details: Mapping[str, pd.DataFrame]
    inputs: Mapping[str, Mapping[str, Path]]
    scenarios: Mapping[str, Mapping[str, Any]]
    policies: Mapping[str, Mapping[str, Any]]
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)


@dataclass(frozen=True)
class FigureSpec:
    """One file of conf/figure/<study>/: its drawing function, what it shows, and the values that the function reads."""

    name: str
    kind: str
    title: str
    caption: str
    published: str = ""
    scenarios: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawing:
    """A drawn figure, with values and text for its caption.

    caption: text that follows the caption in conf/figure; both are templates over `values` (schedlab.figures.captions)
    values: name -> number, text, or mappings and sequences of these: the values that the picture shows
    of_scores: whether the figure shows tables of the study; False if it shows only recorded measurements, which belong
      to no scenario, policy or seed
    left_out: scenario that the drawing could not show -> reason, which is added to the caption and to the log
    """

    figure: Figure
    caption: str
    values: Mapping[str, Any] = field(default_factory=dict)
    of_scores: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict)


DrawFigure = Callable[[StudyTables, FigureSpec], Drawing]


@dataclass(frozen=True)
class Study:
    """The interface of a study: everything that the stages and the command line know about it.

    rules, learners, figures and commands name objects as `package.module:object` or `package.module:TABLE[key]`, so
    that nothing heavy is loaded before it is used (`plugins.load_object`).

    results_version: raise it by hand if results change for a reason that the hash of the code does not show
    scenario, scale: typed sections
    rules: name -> a RuleMaker
    learners: name -> an object that makes the Learner, called without arguments
    figures: kind -> a DrawFigure
    commands: a function that adds the study's sub-commands to a parser
    rule_settings, learner_settings, figure_settings: the typed values of each (a figure's `params`); a rule or figure
      that is not listed has none
    parts, problem_part, requires, inputs: functions of the typed scenario; `inputs` returns name -> (part, file name in
      that part's folder)
    problem: (values of `problem_part` as frozen, input name -> file) -> the Problem
    deterministic: learners that draw no random numbers, for which one seed is enough
    kinds: target -> kind (settings.Kind), for rules of another kind than `rule` and learners of another than `learned`
    facts: scenario -> its facts, such as its load, which become columns of the tables
    terms: words in its figures, such as names of rules -> meaning, for the glossary of the index
    check, check_policy: (scenario), (policy, learner's values); may yield or raise UserErrors for mistakes that types
      cannot express. If `where` is a key, the file that sets the key is added to it
    policy_files: learner's values -> files that learning reads (data_paths.find_resource finds them); their content
      then counts like the configuration
    figure_files: figure's values -> files that a drawing reads in addition to the tables, such as recorded
      measurements; they count in the same way
    own_rule: FILE.py:CLASS -> the maker of a user's rule, if that rule is not a class with `reset` and `act`
    """

    name: str
    question: str
    results_version: int
    scenario: type[Settings]
    scale: type[Settings]
    metrics: tuple[Metric, ...]
    rules: Mapping[str, str]
    learners: Mapping[str, str]
    learner_settings: Mapping[str, type[Settings]]
    figures: Mapping[str, str]
    parts: Callable[[Any], Mapping[str, Part]]
    problem_part: Callable[[Any], Mapping[str, Any]]
    requires: Callable[[Any], Sequence[Requirement]]
    inputs: Callable[[Any], Mapping[str, tuple[str, str]]]
    problem: Callable[[Mapping[str, Any], Mapping[str, Path]], Problem]
    details: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    deterministic: tuple[str, ...] = ()
    facts: Callable[[Any], Mapping[str, Scalar]] | None = None
    terms: Mapping[str, str] = field(default_factory=dict)
    rule_settings: Mapping[str, type[Settings]] = field(default_factory=dict)
    figure_settings: Mapping[str, type[Settings]] = field(default_factory=dict)
    check: Callable[[Any], Iterable[UserError]] | None = None
    check_policy: Callable[[PolicySettings, Any], Iterable[UserError]] | None = None
    policy_files: Callable[[Any], Sequence[str]] | None = None
    figure_files: Callable[[Any], Sequence[str]] | None = None
    commands: str = ""
    own_rule: Callable[[str], RuleMaker] | None = None

    @property
    def leading_metric(self) -> Metric:
        """The metric marked as the headline or, without a mark, the first."""
        return next((metric for metric in self.metrics if metric.headline), self.metrics[0])
