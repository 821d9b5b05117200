"""The typed scenario of the cloud study: training job, resources, service levels, environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from schedlab.config.data_paths import find_data
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import LONGEST, MOST, ScenarioSettings, Seeds, distinct
from schedlab.studies.cloud.legacy import LegacySettings
from schedlab.studies.cloud.model.allocation import ResourceConfig
from schedlab.studies.cloud.model.instances import InstanceType, offers_of, read_instances
from schedlab.studies.cloud.model.lattice import offer_grid
from schedlab.studies.cloud.model.step_time import PipelineSettings, StepParameters
from schedlab.studies.cloud.replay.constraints import ConstraintSettings
from schedlab.studies.cloud.replay.reward import PREFERENCES, preference_weights
from schedlab.studies.cloud.replay.sla import SLAConfig

RESULTS_VERSION = 4  # increase it when code of this study changes its results
Noise = Annotated[float, Field(ge=0)]
Speed = Annotated[float, Field(gt=0)]
MOST_INTERVALS = 10_000
OF_RESOURCES = ("threshold", "horizontal", "fitted_constant", "bayesian")  # rules that need single resources


def _known_preference(name: str) -> str:
    if preference_weights(name) is None:
        raise ValueError(
            f"one of {', '.join(PREFERENCES)}, or weights of cost, time and resource with the sum 1, as in 0.1:0.1:0.8"
        )
    return name


Preference = Annotated[str, AfterValidator(_known_preference)]


class StepSettings(Settings):
    """Pinned parameters of the step-time model."""

    a_c: float = setting(doc="forward and backward pass: constant part", unit="s", gt=0)
    b_c: float = setting(doc="forward and backward pass: for each sample on a GPU", unit="s", gt=0)
    a_n: float = setting(doc="synchronisation between nodes: two GPUs", unit="s", gt=0)
    b_n: float = setting(doc="synchronisation between nodes: for each further GPU", unit="s", gt=0)
    a_r: float = setting(doc="synchronisation within a node: two GPUs", unit="s", gt=0)
    b_r: float = setting(doc="synchronisation within a node: for each further GPU", unit="s", gt=0)
    y: float = setting(doc="overlap of computing and synchronising; 1: none", ge=1, le=10)

    def parameters(self) -> StepParameters:
        """Return them as the model takes them."""
        return StepParameters(**self.model_dump())


class ScalingSettings(Settings):
    """Throughput by the number of GPUs alone, for the models `amdahl` and `power`."""

    throughput_one: float = setting(doc="throughput on one GPU", unit="samples/s", gt=0)
    serial_share: float = setting(
        0.05, doc="`amdahl`: share of the work that does not run in parallel", unit="fraction", ge=0, le=1
    )
    exponent: float = setting(0.7, doc="`power`: exponent of the number of GPUs", gt=0, le=1)


class TrainingJobSettings(Settings):
    """A training job: its length, its batches, and the model of its step time (pinned, or fitted to logs)."""

    name: str = setting(doc="equal to the file's name")
    model: Literal["goodput", "amdahl", "power", "table"] = setting(
        "goodput",
        doc="model of the step time: `goodput` fitted to logs; `amdahl` or `power` (see `scaling`); or "
        "interpolated measurements",
    )
    step: StepSettings | None = setting(None, doc="parameters of the step time; null: fitted to the logs")
    scaling: ScalingSettings | None = setting(None, doc="parameters of the models `amdahl` and `power`")
    logs: tuple[str, ...] = setting(
        (), doc="training logs or tables of placements for the fit (in resources/ or the data folder)"
    )
    parameters: int = setting(11_000_000, doc="number of weights of the network, used by the published predictor", ge=1)
    pipeline: PipelineSettings = section(PipelineSettings, doc="input pipeline")
    gpus_per_node: int = setting(4, doc="GPUs per node; more GPUs use as few nodes as possible", ge=1)
    epochs: float = setting(20.0, doc="length of the training, in epochs at the base batch", unit="epochs", gt=0)
    samples: int = setting(50_000, doc="samples per epoch", ge=1)
    base_batch: int = setting(128, doc="total batch size that defines an epoch of progress", unit="samples", ge=1)
    batch: int = setting(
        128, doc="batch size on each GPU (`per_gpu`) or in total (`fixed_global`)", unit="samples", ge=1
    )
    batching: Literal["per_gpu", "fixed_global"] = setting(
        "per_gpu",
        doc="what stays constant when GPUs are added: batch per GPU or total batch; with `fixed_global` "
        "all samples count alike",
    )
    gradient_noise: tuple[Noise, ...] = setting(
        (1000.0,),
        doc="gradient noise scale (variance over squared norm) at the base batch, at evenly spaced "
        "points of the training",
        min_length=1,
    )

    @model_validator(mode="after")
    def _one_source(self) -> TrainingJobSettings:
        if (self.scaling is not None) != (self.model in ("amdahl", "power")):
            raise ValueError("'scaling' for the models amdahl and power, and for no other one")
        if self.scaling is not None:
            if self.step is not None or self.logs:
                raise ValueError("'scaling' without 'step' and 'logs', which are other sources of the step time")
            return self
        if self.model == "table" and (self.step is not None or not self.logs):
            raise ValueError("'logs' and no 'step' for the model table")
        if (self.step is None) == (not self.logs):
            raise ValueError("either 'step' or 'logs', which are two sources of the same parameters")
        return self


class AllocationSettings(Settings):
    """The allocation of the job when it is submitted."""

    gpu_count: int = setting(2, doc="number of GPUs", unit="GPUs", ge=0)
    cpu_count: int = setting(8, doc="CPU cores", unit="cores", ge=1)
    memory_gb: int = setting(32, doc="memory", unit="GB", ge=1)


class EnvironmentSettings(Settings):
    """Length of intervals, cost of changes, noise and reward."""

    space: Literal["full27", "paper9"] = setting(
        "full27", doc="27 actions and 26 state components; or the paper's 9 and 21, with fixed memory"
    )
    interval: float = setting(1.0, doc="training between decisions", unit="epochs", gt=0)
    interval_seconds: float | None = setting(
        None,
        doc="time between decisions including restarts, instead of `interval`; null: use `interval`",
        unit="s",
        gt=0,
    )
    restart: float = setting(
        30.0, doc="time that a change of the allocation takes; it is paid but trains nothing", unit="s", ge=0
    )
    out_of_memory: float = setting(
        60.0, doc="time lost in an allocation with too little memory; it is paid", unit="s", gt=0
    )
    time_noise: float = setting(0.0, doc="standard deviation of the logarithm of an interval's time", ge=0, le=2)
    price_walk: float = setting(
        0.0, doc="standard deviation of the logarithm of the price's change in an interval", ge=0, le=2
    )
    interference: float = setting(
        1.0,
        doc="relative speed of synchronisation between nodes under interference; 1: none",
        unit="fraction",
        gt=0,
        le=1,
    )
    slots: tuple[int, ...] = setting(
        (),
        doc="available GPUs in equal parts of the training; if fewer are available than allocated, they "
        "are taken away with a restart; empty: all, always",
    )
    adaptive: float = setting(
        0.0, doc="how strongly the weights shift towards violated service levels; 0: not at all", ge=0, le=100
    )


class ReplicateSettings(Settings):
    """Runs of each preference and split. Without noise, all runs are equal."""

    train: int = setting(1, doc="training runs", ge=0, le=MOST)
    validation: int = setting(1, doc="validation runs", ge=0, le=MOST)
    test: int = setting(1, doc="test runs", ge=1, le=MOST)


class FamilySettings(Settings):
    """Several jobs instead of one, each a unit with its own limits: the recorded jobs, or jobs drawn around them."""

    others: dict[str, TrainingJobSettings] = setting({}, doc="recorded jobs in addition to `job`, by name")
    drawn: int = setting(0, doc="jobs drawn around the recorded ones; 0: the recorded ones themselves", ge=0, le=10_000)
    group: str = setting(
        "drawn", doc="group of the drawn jobs: names them and derives their random numbers", pattern=r"^[a-z0-9-]+$"
    )
    spread: float = setting(
        0.5, doc="standard deviation of the logarithm of a drawn job's times, samples and noise", ge=0, le=3
    )
    slack: float = setting(
        1.1,
        doc="limits of time and cost, as a multiple of the time and cost of the allocation with the smallest sum of "
        "relative time and relative cost (each divided by its minimum)",
        gt=1,
        le=100,
    )
    intervals: int = setting(20, doc="decisions of each job", ge=1, le=MOST_INTERVALS)


class InstanceSettings(Settings):
    """Instance types as allocations, on demand and as spot instances, instead of any GPUs, cores and GB."""

    file: str | None = setting(None, doc="catalogue (CSV), in resources/ or the data folder; null: `types`")
    region: str | None = setting(None, doc="region of the catalogue; null: its only one")
    types: tuple[InstanceType, ...] = setting((), doc="instance types, if there is no `file`")
    start: str = setting("", doc="type on which the job starts, on demand; empty: the first one with GPUs")
    gpu_kind: str | None = setting(
        None, doc="GPU kind of the job's step times; null: as the job's logs say, else the only one of the catalogue"
    )
    speeds: dict[str, Speed] = setting(
        {},
        doc="speeds of GPU kinds that replace those of the catalogue, relative to the kind of the step times, which "
        "has 1; logs that name the kinds of their GPUs override them",
    )
    interruption_rate: float | None = setting(
        None,
        doc="probability of an interruption within an hour for spot instances without one; null: they are not offered",
        ge=0,
        le=1,
    )

    @model_validator(mode="after")
    def _one_source(self) -> InstanceSettings:
        if (self.file is None) == (not self.types):
            raise ValueError("either 'file' or 'types'")
        return self

    def resolved(self) -> InstanceSettings:
        """Return the settings with the types of the file in place of the file. Raises UserErrors, also for an unknown
        start.
        """
        types = self.types if self.file is None else read_instances(find_data(self.file), self.region)
        offer_grid(offers_of(types, self.interruption_rate)[0], self.start)
        return self.model_copy(update={"types": types, "file": None})


class CloudScenario(ScenarioSettings):
    """A training job on resources that can be bought by the hour."""

    job: TrainingJobSettings = setting(doc="the training job")
    resource: ResourceConfig = section(ResourceConfig, doc="limits of the allocation, and prices")
    start: AllocationSettings = section(AllocationSettings, doc="initial allocation")
    instances: InstanceSettings | None = setting(
        None, doc="instance types in place of `resource` and `start`; null: any GPUs, cores and GB"
    )
    sla: SLAConfig = section(SLAConfig, doc="service levels")
    sla_from: Literal["forecast", "configuration"] = setting(
        "forecast",
        doc="limits of time, cost and throughput: `forecast`: 10 % worse than what the start allocation "
        "reaches; `configuration`: those of `sla`",
    )
    constraints: ConstraintSettings = section(ConstraintSettings, doc="service levels that decisions must keep")
    environment: EnvironmentSettings = section(EnvironmentSettings, doc="settings of the environment")
    legacy: LegacySettings = section(LegacySettings, doc="switches for defects of the published program")
    family: FamilySettings | None = setting(None, doc="several jobs instead of one; null: one")
    preferences: tuple[Preference, ...] = setting(
        ("balanced", "cost", "time", "resource"),
        doc="preferences, each scored separately: a name, or weights of cost, time and waste as in `0.1:0.1:0.8`",
        min_length=1,
    )
    replicates: ReplicateSettings = section(ReplicateSettings, doc="runs per preference")
    random_episodes: int = setting(30, doc="random episodes that normalise the regret", ge=1, le=MOST)

    @model_validator(mode="after")
    def _each_once(self) -> CloudScenario:
        distinct(self.preferences)
        return self

    @property
    def intervals(self) -> int:
        """Number of intervals of the training's layout: of decisions, unless these come by time."""
        return round(self.job.epochs / self.environment.interval)


class CloudScale(Settings):
    """Sizes of this study at one scale: `sizes` of its file in conf/study/."""

    random_episodes: int = setting(30, doc="random episodes that normalise the regret", ge=1, le=MOST)
    seeds: Seeds = setting((0, 1, 2), doc="seeds of rules and policies that draw random numbers", min_length=1)
    episodes: int = setting(4800, doc="training episodes per preference", ge=1, le=LONGEST)
    actor_critic_episodes: int = setting(
        1200, doc="training episodes per preference of the actor-critic", ge=1, le=LONGEST
    )
    job_trainings: int = setting(1280, doc="maximum trainings of each of several jobs", ge=1, le=LONGEST)
    model_trainings: int = setting(
        40,
        doc="maximum trainings of each of several jobs for searches that fit a model to all trainings",
        ge=1,
        le=1000,
    )
    job_seeds: Seeds = setting((0,), doc="seeds of the searches for several jobs", min_length=1)
    search_trainings: int = setting(30, doc="trainings per preference in a Bayesian search", ge=1, le=1000)
    decisions: int = setting(64_000, doc="training decisions of stock learners", ge=1, le=LONGEST)


def check(scenario: CloudScenario) -> Iterator[UserError]:
    """Yield mistakes that the types allow: intervals that do not divide the job, a start beyond limits, no GPU."""
    intervals, job = scenario.intervals, scenario.job
    if intervals < 1 or abs(intervals * scenario.environment.interval - job.epochs) > 1e-9 * job.epochs:
        what = f"{job.epochs:g} epochs are no whole number of intervals of {scenario.environment.interval:g}"
        yield UserError(what, where="environment.interval", expected="a length that divides job.epochs")
    elif intervals > MOST_INTERVALS:
        yield UserError(f"{intervals} decisions", where="environment.interval", expected=f"at most {MOST_INTERVALS:,}")
    span, restart = scenario.environment.interval_seconds, scenario.environment.restart
    if span is not None and span <= restart:
        what = f"in {span:g} s a job that restarts for {restart:g} s never trains"
        yield UserError(what, where="environment.interval_seconds", expected="more than environment.restart")
    if span is not None and scenario.environment.slots:
        what = "the best plan is not bounded where GPUs are taken and decisions come by time"
        yield UserError(what, where="environment.slots", expected="none with interval_seconds")
    if (family := scenario.family) is not None:
        if set(scenario.constraints.keep) != {"time", "cost"}:
            yield UserError("jobs have limits on time and cost", where="constraints.keep", expected="[time, cost]")
        for where, each in {"job": job, **{f"family.others.{name}": it for name, it in family.others.items()}}.items():
            if each.step is None:
                yield UserError("a job of a family has a pinned step time", where=where, expected="values of `step`")
    if scenario.constraints.keep and span is not None:
        what = "what is left of a limit is not known where decisions come by time"
        yield UserError(what, where="constraints.keep", expected="none with environment.interval_seconds")
    if scenario.constraints.keep and scenario.legacy.reward:
        what = "the published reward has no constraints"
        yield UserError(what, where="constraints.keep", expected="none with legacy.reward")
    if scenario.instances is not None:
        yield from _check_instances(scenario)
    if scenario.resource.gpu_count_min < 1:
        yield UserError("a job without a GPU has no step time", where="resource.gpu_count_min", expected="1 or more")
    if any(slots < scenario.resource.gpu_count_min for slots in scenario.environment.slots):
        yield UserError(
            "fewer GPUs than the job may have",
            where="environment.slots",
            expected=f"{scenario.resource.gpu_count_min} or more",
        )
    for key, least, most in zip(
        AllocationSettings.model_fields, scenario.resource.least, scenario.resource.most, strict=True
    ):
        value = getattr(scenario.start, key)
        if not least <= value <= most:
            yield UserError(
                f"{value} is beyond the limits of `resource`", where=f"start.{key}", expected=f"{least:g} to {most:g}"
            )


def _check_instances(scenario: CloudScenario) -> Iterator[UserError]:
    """Yield the settings that do not work together with `instances`."""
    settings = scenario.environment
    for where, wrong in {
        "family": scenario.family is not None,
        "job.model": scenario.job.model == "table",  # the table has no times by kind of GPU
        "environment.space": settings.space != "full27",
        "environment.slots": bool(settings.slots),
        "environment.interval_seconds": settings.interval_seconds is not None,
        "legacy": scenario.legacy != LegacySettings(),
    }.items():
        if wrong:
            yield UserError("does not work with `instances`", where=where, expected="its default")
    for rule in scenario.rule_settings():
        if (rule.target or rule.name) in OF_RESOURCES:
            what = f"the rule {rule.name} changes single resources, which instances do not allow"
            yield UserError(what, where="rules", expected="other rules with `instances`")


TERMS = {
    "preference": "what the user weighs most: time, cost, the use of paid resources, or all equally (balanced)",
    "objective": "weighted sum of training time, cost (each over that of the best constant allocation for it) "
    "and waste",
    "waste": "mean share of GPUs and cores that is paid for and not used",
    "regret": "excess of the objective over that of the best plan, divided by the mean excess of random actions: 0 is "
    "best, 1 is random",
    "front": "the plans that no other plan beats in both training time and cost",
    "hypervolume": "area of time and cost that the policies dominate up to a reference point, as a share of the "
    "front's area: 1 is the front itself",
    "service level": "a limit on time, cost, throughput, memory, or the use of GPUs or cores",
    "severity": "by how much a service level is violated, as a share of its limit; 0 where it is met",
    "restart": "stop of the job for a change of its allocation: 30 s, which are paid for",
    "static_start": "rule: stays on the allocation that the job is submitted with",
    "static_max": "rule: goes to the largest allocation and stays",
    "static_min": "rule: goes to the smallest allocation with enough memory for the job and stays",
    "static_default": "rule: goes to the allocation that the published predictor suggests for a model of this size and "
    "stays",
    "random": "rule: takes random actions, but leaves the job the memory that it needs",
    "threshold": "rule: an autoscaler; adds a GPU if the GPUs are busy and the job is late, and removes one if they "
    "idle",
    "horizontal": "rule: an autoscaler; holds as many GPUs as bring their utilisation to 80 %",
    "goodput_greedy": "planner: goes to the neighbouring allocation with the smallest objective under the performance "
    "model, assuming that it is held to the end",
    "options": "rule: goes one step towards the allocation that the published rules of thumb give for the preference",
    "fitted_logs": "planner: goes to the best constant allocation under a model fitted to logs of three earlier runs",
    "fitted_probes": "planner: the same, with a model fitted to short probes on 1 to 8 GPUs",
    "fitted_similar": "planner: goes to the allocation that the published predictor suggests from the logs, the same "
    "for every preference",
    "bayesian": "search: Bayesian optimisation over constant allocations while the job runs; each probe takes one "
    "interval; then stays on the best one",
    "search_random": "search: trains each job on random allocations and takes the best",
    "search_gaussian_process": "search: the same, each allocation chosen by Gaussian processes",
    "search_parzen": "search: the same, by the tree-structured Parzen estimator (TPE)",
    "search_halving": "search: trains each job on many allocations for a short time, and on the best third for longer",
    "search_reinforce": "learned: REINFORCE from nothing on each job",
    "search_fitted": "planner: the best allocation by a model fitted to probes, fitted again after each training",
    "search_known_model": "oracle: the best allocation that keeps the limits, by the performance model itself",
    "oracle_static": "planner: goes to the best constant allocation under the performance model, the way there "
    "included, and stays",
    "oracle_dynamic": "oracle: the best plan, found by dynamic programming over intervals and allocations",
}
