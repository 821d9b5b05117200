"""Typed sections that every study shares: scenario, policy, study, figure, theme, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from schedlab.config.schema import Settings, section, setting

NAME = r"^[a-z0-9][a-z0-9._-]*$"
SCALES = ("smoke", "small", "full", "paper")
RESERVED_NAMES = frozenset(
    {"config", "details", "inputs", "logs", "benchmarks", "policies", "store", "evaluation", "rules", "learned"}
)
MOST = 1000  # of anything repeated: seeds, replicates, jobs; larger values are probably typing mistakes
LONGEST = 1_000_000_000  # steps of a phase


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values; raise ValueError if one occurs twice."""
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


# The kind of a policy, by which rivals are grouped (evaluation/headline.py): `rule`: a fixed formula; `planner`:
# decides without learning, by looking ahead or predicting with information that every policy has; `learned`; `search`:
# a search over a few weights; `published`: the learner of the published system; `informed`: receives information that
# others do not have; `oracle`: reads the data on which it is tested; `bound`: not a policy, but a value that no policy
# can surpass.
Kind = Literal["rule", "planner", "learned", "search", "published", "informed", "oracle", "bound"]
Group = Literal["rules", "planners", "search", "published"]  # of rivals, by their kind
ALL = "all"  # all these groups together
Seeds = Annotated[tuple[int, ...], AfterValidator(_seeds)]  # numbers of repetitions
Scales = Annotated[tuple[Literal["smoke", "small", "full", "paper"], ...], AfterValidator(distinct)]
Names = Annotated[tuple[str, ...], AfterValidator(distinct)]
ScenarioName = Annotated[
    str, "scenario"
]  # in the values of a figure: checked against the existing files (schema.names_within)
PolicyName = Annotated[str, "policy"]  # a learned policy or a rule


class RootSettings(Settings):
    """Root of every composition (conf/config.yaml)."""

    seed: int = setting(doc="root seed, from which every random stream of the pipeline is derived by name", ge=0)
    defaults: list[Any] = setting([], doc="Hydra's defaults list, which names the default scale")


class RuleSettings(Settings):
    """A rule that a scenario compares, if it needs more than a name."""

    name: str = setting(doc="name in tables and figures", pattern=NAME)
    target: str = setting(
        "", doc="rule of the study, or a user's class as FILE.py:CLASS; empty: the rule called `name`"
    )
    kind: Kind | Literal[""] = setting(
        "", doc="kind, by which tables and answers group policies; empty: the one in the study's `kinds`, else `rule`"
    )
    params: dict[str, Any] = setting({}, doc="settings of the rule")
    seeds: Seeds = setting((0,), doc="seeds; more than one only for a rule that draws random numbers", min_length=1)


class ScenarioSettings(Settings):
    """Keys of every scenario: its name, its mode, and the policies and rules that it compares."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    mode: Literal["default", "reference"] = setting("default", doc="`reference` applies the values under `reference:`")
    reference: dict[str, Any] = setting(
        {}, doc="values of the published system; in mode `reference` they replace the values of the same keys"
    )
    seed: int = setting(doc="root seed from which every random stream is derived by name", ge=0)
    scales: Scales = setting(SCALES, doc="scales at which `all` includes the scenario")
    in_figures: Literal["all", "named"] = setting(
        "all", doc="`all`: every figure that lists no scenarios shows it; `named`: only figures that list it show it"
    )
    rules: tuple[str | RuleSettings, ...] = setting((), doc="rules to compare")
    policies: tuple[str, ...] = setting((), doc="learned policies to compare (files of conf/policy/<study>/)")

    def rule_settings(self) -> tuple[RuleSettings, ...]:
        """Return the compared rules; a bare name becomes a RuleSettings."""
        return tuple(RuleSettings(name=rule) if isinstance(rule, str) else rule for rule in self.rules)


class PhaseSettings(Settings):
    """One training phase on one or several scenarios."""

    scenarios: Names = setting(doc="training scenarios of the phase", min_length=1)
    steps: int = setting(doc="length of the phase, in the steps that the learner counts", gt=0, le=LONGEST)
    params: dict[str, Any] = setting({}, doc="settings of the learner that differ in this phase")


class PolicySettings(Settings):
    """A learned policy: its learner, training phases, parent and seeds."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    recipe: str = setting(
        "", doc="name that policies learned in the same way have in common in the tables; empty: the file's name"
    )
    kind: Kind | Literal[""] = setting(
        "",
        doc="kind, by which tables and answers group policies; empty: the one in the study's `kinds`, else `learned`",
    )
    mode: Literal["default", "reference"] = setting("default", doc="`reference` applies the values under `reference:`")
    reference: dict[str, Any] = setting(
        {}, doc="values of the published system; in mode `reference` they replace the values of the same keys"
    )
    learner: dict[str, Any] = setting(
        doc="a learner of conf/learner/<study>/, or a user's class as `_target_: FILE.py:CLASS` with its settings"
    )
    train_on: tuple[PhaseSettings, ...] = setting(doc="training phases, in order", min_length=1)
    parent: str | None = setting(
        None, doc="policy whose final parameters are this policy's initial ones, for the same seed"
    )
    seeds: Seeds = setting(doc="seeds", min_length=1)
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
    baseline: str = setting("", doc="policy with which all others are compared; empty: none")


class HeadlineSettings(Settings):
    """A question of a study and the comparison that answers it: a policy against the best of each group of rivals."""

    question: str = setting(doc="the question, in plain words", min_length=1)
    metric: str = setting(doc="score that answers it")
    scenarios: Names = setting(doc="scenarios in which it is answered; several are also averaged", min_length=1)
    recipe: str = setting(
        doc="recipe of the policy in question, which is the policy with this recipe that was trained on the scenario; "
        "if there is none, the only policy with this recipe"
    )
    groups: Annotated[tuple[Group, ...], AfterValidator(distinct)] = setting(
        ("rules", "planners", "search", "published"), doc="groups of rivals", min_length=1
    )
    budget: Literal["decisions", "episodes", "trainings"] = setting(
        "decisions", doc="unit in which the learning budget is reported"
    )
    published: Names = setting((), doc="ids of claims (conf/claims/) that the report shows with the answer")
    note: str = setting("", doc="how the measured quantity of the published values differs from that of the run")


class ThemeSettings(Settings):
    """The style of all figures (conf/figure/theme.yaml)."""

    width_mm: float = setting(170.0, doc="width of a full-width figure", unit="mm", gt=20, le=2000)
    font_size: float = setting(8.0, doc="size of labels", unit="pt", gt=3, le=72)
    dpi: int = setting(200, doc="resolution of the PNG files", unit="1/inch", ge=50, le=2400)
    palette: Literal["colorblind", "deep", "muted", "bright", "dark", "tab10", "Set1", "Dark2", "Paired"] = setting(
        "colorblind", doc="seaborn palette"
    )


class FigureSettings(Settings):
    """One figure: its drawing, content, title and caption (conf/figure/<study>/<name>.yaml)."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    kind: str = setting(doc="drawing of the study")
    title: str = setting(doc="heading in the index and the report")
    caption: str = setting(doc="caption; `{name}` stands for the value of that name that the drawing returns")
    published: str = setting("", doc="published figure or table that this figure corresponds to")
    scenarios: Names = setting((), doc="scenarios shown; empty: all of the scale with `in_figures: all`")
    policies: Names = setting((), doc="policies and rules shown; empty: all")
    scales: Scales = setting(SCALES, doc="scales at which the figure is drawn")
    params: dict[str, Any] = setting({}, doc="settings of the drawing")


class StudySettings(Settings):
    """Settings of a study for the workflow (conf/study/<name>.yaml)."""

    name: str = setting(doc="equal to the file's name", pattern=NAME)
    module: str = setting("", doc="module that defines STUDY; empty: schedlab.studies.<name>.study")
    path: str = setting("", doc="folder from which the module is imported, relative to the working directory")
    prepare: str = setting("", doc="file with its prepare rules; empty: workflow/rules/prepare/<name>.smk")
    evaluate: Literal["together", "per_policy"] = setting(
        "per_policy",
        doc="`together`: one evaluation job for all learned policies of a scenario (cheap evaluations); "
        "`per_policy`: one for each",
    )
    seeds_together: Scales = setting(
        (), doc="scales at which one job learns all seeds of a policy, as a process takes longer to start than to learn"
    )
    statistics: StatisticsSettings = section(StatisticsSettings, doc="statistics of the summary")
    headline: tuple[HeadlineSettings, ...] = setting((), doc="questions that the table `headline` answers")


class Resources(Settings):
    """Memory, time and cores that the jobs of a workflow rule request; Snakemake passes the values on to the
    cluster. Missing values are those of `default`.
    """

    mem_mb: int | None = setting(
        None, doc="memory; null: the value of `default`, or 2000 if that has none", unit="MB", gt=0, le=100_000_000
    )
    runtime: int | None = setting(
        None, doc="run time; null: the value of `default`, or 60 if that has none", unit="min", gt=0, le=100_000
    )
    threads: int | None = setting(
        None, doc="processor cores; null: the value of `default`, or 1 if that has none", gt=0, le=1024
    )


WHERE_NOTHING_IS_SAID = {"mem_mb": 2000, "runtime": 60, "threads": 1}


def resource(resources: Mapping[str, Mapping[str, int | None]], rule: str, key: str, study: str = "") -> int:
    """Return a resource of a job of a workflow rule, from the `resources` of a scale: the value for the rule in this
    study, else for the rule, else for `default`.
    """
    said = (resources.get(name, {}).get(key) for name in (f"{study}/{rule}", rule, "default"))
    return next((value for value in said if value is not None), WHERE_NOTHING_IS_SAID[key])
