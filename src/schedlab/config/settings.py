"""Typed sections that every study shares: scenario, policy, study, figure, theme, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from schedlab.config.schema import Settings, section, setting

NAME = r"^[a-z0-9][a-z0-9._-]*$"
SCALES = ("smoke", "small", "full", "paper")
RESERVED_NAMES = frozenset(
    {"config", "details", "inputs", "logs", "benchmarks", "policies", "store", "evaluation", "rules", "learned"}
)
MOST = 1000  # of anything that is repeated: seeds, replicates, jobs; more is a slip of the hand
LONGEST = 1_000_000_000  # steps of a phase


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values; ValueError where one stands there twice."""
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"each once; {value} stands there twice")
    return values


def _seeds(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(values) > MOST:
        raise ValueError(f"at most {MOST} seeds, not {len(values)}")
    if min(values, default=0) < 0:
        raise ValueError(f"seeds of 0 or more, not {min(values)}")
    return distinct(values)


# What a policy is, as rivals are grouped (evaluation/headline.py): `rule`: a fixed formula; `planner`: decides without
# learning, by looking ahead or predicting with what everybody knows; `learned`; `search`: over a few weights;
# `published`: the published system's own learner; `informed`: is given what others are not; `oracle`: reads what it is
# tested on; `bound`: no policy, a value that none can pass.
Kind = Literal["rule", "planner", "learned", "search", "published", "informed", "oracle", "bound"]
Group = Literal["rules", "planners", "search", "published"]  # of rivals, by their kind
ALL = "all"  # of these groups together
Seeds = Annotated[tuple[int, ...], AfterValidator(_seeds)]  # numbers of repetitions
Scales = Annotated[tuple[Literal["smoke", "small", "full", "paper"], ...], AfterValidator(distinct)]
Names = Annotated[tuple[str, ...], AfterValidator(distinct)]
ScenarioName = Annotated[
    str, "scenario"
]  # in the values of a figure: checked against the files there are (schema.names_within)
PolicyName = Annotated[str, "policy"]  # a learned policy or a rule


class RootSettings(Settings):
    """What every composition starts from (conf/config.yaml)."""

    seed: int = setting(doc="root seed, from which every random stream of the pipeline is derived by name", ge=0)
    defaults: list[Any] = setting([], doc="Hydra's defaults list, with the default scale")


class RuleSettings(Settings):
    """A fixed heuristic that a scenario compares, where its bare name does not say enough."""

    name: str = setting(doc="name in tables and figures", pattern=NAME)
    target: str = setting("", doc="rule of the study, or FILE.py:CLASS; empty: the name")
    kind: Kind | Literal[""] = setting(
        "", doc="group of rivals that it belongs to; empty: as the study says of the rule, or `rule`"
    )
    params: dict[str, Any] = setting({}, doc="the rule's own values")
    seeds: Seeds = setting((0,), doc="repetitions; more than one only for a rule that draws", min_length=1)


class ScenarioSettings(Settings):
    """What every scenario says: its name, its mode, and the policies and rules that it compares."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    mode: Literal["default", "reference"] = setting("default", doc="`reference` applies the values under `reference:`")
    reference: dict[str, Any] = setting(
        {}, doc="the published system's values, by the keys they replace in mode reference"
    )
    seed: int = setting(doc="root seed from which every random stream is derived by name", ge=0)
    scales: Scales = setting(SCALES, doc="scales at which `all` includes the scenario")
    in_figures: Literal["all", "named"] = setting(
        "all", doc="`all`: shown by figures that name no scenarios; `named`: only where named"
    )
    rules: tuple[str | RuleSettings, ...] = setting((), doc="rules compared here")
    policies: tuple[str, ...] = setting((), doc="learned policies compared here (files of conf/policy/<study>/)")

    def rule_settings(self) -> tuple[RuleSettings, ...]:
        """Return the compared rules, bare names spelled out."""
        return tuple(RuleSettings(name=rule) if isinstance(rule, str) else rule for rule in self.rules)


class PhaseSettings(Settings):
    """One stretch of learning on one or several scenarios."""

    scenarios: Names = setting(doc="scenarios learned on together", min_length=1)
    steps: int = setting(doc="length of the phase in the learner's own steps", gt=0, le=LONGEST)
    params: dict[str, Any] = setting({}, doc="values of the learner that differ in this phase")


class PolicySettings(Settings):
    """A learned policy: what makes it, what it is trained on, what it starts from, how often it is repeated."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    recipe: str = setting("", doc="what the tables call all policies made in this way; empty: the file's name")
    kind: Kind | Literal[""] = setting(
        "", doc="group of rivals that it belongs to; empty: as the study says of the learner, or `learned`"
    )
    mode: Literal["default", "reference"] = setting("default", doc="`reference` applies the values under `reference:`")
    reference: dict[str, Any] = setting(
        {}, doc="the published system's values, by the keys they replace in mode reference"
    )
    learner: dict[str, Any] = setting(
        doc="an option of conf/learner/<study>/, or `_target_: FILE.py:CLASS` with values of its own"
    )
    train_on: tuple[PhaseSettings, ...] = setting(doc="phases, in order", min_length=1)
    parent: str | None = setting(None, doc="policy whose final parameters this one starts from, seed by seed")
    seeds: Seeds = setting(doc="repetitions", min_length=1)
    scales: Scales = setting(SCALES, doc="scales at which the policy is learned")


class StatisticsSettings(Settings):
    """How scores become a summary with its uncertainty."""

    statistic: Literal["mean", "iqm"] = setting(
        "mean", doc="weighted mean, or interquartile mean of all seeds and units"
    )
    resamples: int = setting(
        2000, doc="resamples of the two-level bootstrap over seeds and blocks", ge=100, le=1_000_000
    )
    confidence: float = setting(0.95, doc="coverage of the intervals", unit="fraction", gt=0, lt=1)
    baseline: str = setting("", doc="policy that paired differences are taken against; empty: none")


class HeadlineSettings(Settings):
    """A question of a study and the comparison that answers it: a policy against the best of each group of rivals."""

    question: str = setting(doc="what is asked, in plain words", min_length=1)
    metric: str = setting(doc="score that decides")
    scenarios: Names = setting(doc="scenarios in which it is asked; of several their mean answers", min_length=1)
    recipe: str = setting(
        doc="recipe of the policy in question; in each scenario the policy that was trained on it, else the only one"
    )
    groups: Annotated[tuple[Group, ...], AfterValidator(distinct)] = setting(
        ("rules", "planners", "search", "published"), doc="kinds of rivals", min_length=1
    )
    budget: Literal["decisions", "episodes", "trainings"] = setting("decisions", doc="what learning costs")
    published: Names = setting((), doc="ids of claims of conf/claims/ that the report shows beside the answer")
    note: str = setting("", doc="how these published values differ from the run's in what they measure")


class ThemeSettings(Settings):
    """How figures look, for every study (conf/figure/theme.yaml)."""

    width_mm: float = setting(170.0, doc="width of a full-width figure", unit="mm", gt=20, le=2000)
    font_size: float = setting(8.0, doc="size of labels", unit="pt", gt=3, le=72)
    dpi: int = setting(200, doc="resolution of the PNG files", unit="1/inch", ge=50, le=2400)
    palette: Literal["colorblind", "deep", "muted", "bright", "dark", "tab10", "Set1", "Dark2", "Paired"] = setting(
        "colorblind", doc="seaborn palette"
    )


class FigureSettings(Settings):
    """One figure: its drawing function, what it shows and the words around it (conf/figure/<study>/<name>.yaml)."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    kind: str = setting(doc="a drawing of the study")
    title: str = setting(doc="heading in the index and the report")
    caption: str = setting(doc="what is shown, with values of the drawing in braces; the drawing adds what is seen")
    published: str = setting("", doc="the published figure or table that this one answers to")
    scenarios: Names = setting((), doc="scenarios shown; empty: all at this scale whose `in_figures` is `all`")
    policies: Names = setting((), doc="policies and rules shown; empty: all")
    scales: Scales = setting(SCALES, doc="scales at which the figure is drawn")
    params: dict[str, Any] = setting({}, doc="values of the drawing")


class StudySettings(Settings):
    """How a study takes part in the workflow (conf/study/<name>.yaml)."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    module: str = setting("", doc="module that holds STUDY; empty: schedlab.studies.<name>.study")
    path: str = setting("", doc="folder to import the module from, relative to the working directory")
    prepare: str = setting("", doc="file with its prepare rules; empty: they lie in workflow/rules/prepare/")
    evaluate: Literal["together", "per_policy"] = setting(
        "per_policy", doc="one job for all learned policies of a scenario (cheap evaluations), or one for each"
    )
    statistics: StatisticsSettings = section(StatisticsSettings, doc="from scores to the summary")
    headline: tuple[HeadlineSettings, ...] = setting(
        (), doc="what the study asks; each answered by the table `headline`"
    )


class Resources(Settings):
    """What the jobs of a workflow rule may take; Snakemake passes it on to the cluster. What is not said is as for
    `default`.
    """

    mem_mb: int | None = setting(
        None, doc="memory; null: as for `default`, and there 2000", unit="MB", gt=0, le=100_000_000
    )
    runtime: int | None = setting(
        None, doc="run time; null: as for `default`, and there 60", unit="min", gt=0, le=100_000
    )
    threads: int | None = setting(None, doc="processor cores; null: as for `default`, and there 1", gt=0, le=1024)


WHERE_NOTHING_IS_SAID = {"mem_mb": 2000, "runtime": 60, "threads": 1}


def resource(resources: Mapping[str, Mapping[str, int | None]], rule: str, key: str, study: str = "") -> int:
    """Return what a job of a workflow rule asks for: as `resources` of a scale says for the rule in the study, else for
    the rule, else for `default`, key by key.
    """
    said = (resources.get(name, {}).get(key) for name in (f"{study}/{rule}", rule, "default"))
    return next((value for value in said if value is not None), WHERE_NOTHING_IS_SAID[key])


class ScaleSettings(Settings):
    """The sizes of one scale (conf/scale/<name>.yaml); one section a study, typed by the study."""

    name: Literal["smoke", "small", "full", "paper"] = setting(doc="equal to the file's name")
    resources: dict[str, Resources] = setting(
        {}, doc="by workflow rule, or `<study>/<rule>` of learn, evaluate and summarise; `default` for the others"
    )
    studies: dict[str, dict[str, Any]] = Field(default_factory=dict, description="study -> its own section")
