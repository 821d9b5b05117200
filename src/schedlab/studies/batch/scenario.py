"""The typed scenario of the batch study: a workload, the windows cut from it, and the rules of the simulation."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import MOST, ScenarioSettings, Seeds
from schedlab.studies.batch.constraints.settings import LimitSettings, Number
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.repeats import RepeatSettings
from schedlab.workloads.settings import WorkloadSettings

Backfill = Literal["none", "legacy", "easy", "conservative", "easy_predicted", "easy_learned"]
BackfillOrder = Literal["default", "fcfs", "sjf", "area", "rule"]
PREDICTING_BACKFILLS: tuple[Backfill, ...] = ("easy_predicted", "easy_learned")
TEXTBOOK: tuple[Backfill, ...] = ("easy", "conservative", *PREDICTING_BACKFILLS)
BACKFILLS: tuple[Backfill, ...] = get_args(Backfill)  # in the order of their numbers in compiled code
STEPPED = BACKFILLS[:4]  # for policies that decide job by job
BACKFILL_ORDERS: tuple[BackfillOrder, ...] = get_args(BackfillOrder)

BACKFILL_TERMS = {
    "fcfs": "in order of submission",
    "sjf": "by requested time, the shortest first",
    "area": "by requested time times nodes, the smallest first",
}

# Modes with an order of backfilling, as commands name them.
NAMED_BACKFILLS: dict[str, tuple[Backfill, BackfillOrder]] = {
    "easy_sjf": ("easy", "sjf"),
    "easy_area": ("easy", "area"),
}

Start = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(gt=0)]
RESULTS_VERSION = 6  # raise it when the code of this study changes its results


class WindowSettings(Settings):
    """Windows of consecutive jobs, simulated apart. The workload is cut by position into training, validation and test
    part; windows of a part follow each other, so that no two share a job and none passes the border of its part. Given
    starts are those of a published protocol: all are test windows, may overlap each other and what was learned from.
    """

    length: int = setting(256, doc="jobs per window", unit="jobs", ge=1)
    train_share: float = setting(
        0.5, doc="share of the trace, from its start, for learning", unit="fraction", ge=0, lt=1
    )
    validation_share: float = setting(
        0.1, doc="share of the trace after that, for choosing the best rule", unit="fraction", ge=0, lt=1
    )
    most: int = setting(
        MOST, doc="maximum number of windows of each part; the first ones are used", unit="windows", ge=1
    )
    starts: tuple[Start, ...] = setting(
        (), doc="first jobs (from 0) of the windows of a published protocol; empty: consecutive windows"
    )

    continuous: bool = setting(
        False,
        doc="simulate the whole trace in one run instead of windows; the units are then the weeks of each part, by "
        "submit time. Learners still learn on windows of `length`",
    )
    jitters: int = setting(
        1, doc="number of continuous runs with different random delays, whose scores are averaged", ge=1, le=100
    )
    jitter: float = setting(
        0.0, doc="largest random delay that a continuous run adds to each submit time", unit="s", ge=0
    )

    weights: tuple[Weight, ...] = setting(
        (), doc="weights in means of the windows at `starts`, such as 2 for a window counted twice; empty: all 1"
    )

    @model_validator(mode="after")
    def _starts_differ(self) -> WindowSettings:
        if len(set(self.starts)) < len(self.starts):
            raise ValueError("starts that differ; give a window that is counted twice a weight of 2 in `weights`")
        if self.weights and len(self.weights) != len(self.starts):
            raise ValueError(f"a weight for each of {len(self.starts)} starts, or none")
        if self.continuous and self.starts:
            raise ValueError("no starts where the whole trace is one run (`continuous`)")
        if (self.jitters > 1 or self.jitter) and not self.continuous:
            raise ValueError("continuous: true where submit times are jittered")
        if self.jitters > 1 and not self.jitter:
            raise ValueError("a jitter above 0 s for several runs, which would be equal")
        return self


class BatchScenario(ScenarioSettings):
    """A cluster and its batch queue."""

    workload: WorkloadSettings = setting(doc="jobs and machine")
    repeats: RepeatSettings | None = setting(
        None, doc="users of a drawn workload submit jobs again and again; null: no job is repeated"
    )
    windows: WindowSettings = section(WindowSettings, doc="windows that are simulated separately")
    backfill: Backfill = setting(
        "none",
        doc="backfilling; `none`: the chosen job blocks all others; `legacy`: as in the published simulator; "
        "`easy`, `conservative`: as in the literature; `easy_predicted`: EASY++, with run times "
        "predicted from the user's last two jobs; `easy_learned`: the same, predicted by a regression that is "
        "renewed when jobs end; only rules can be scored with these two",
    )
    backfill_order: BackfillOrder = setting(
        "default",
        doc="order in which jobs are backfilled (legacy, easy): by submit time (fcfs), requested time (sjf), "
        "requested time x nodes (area), or by the policy (rule); `default`: submit time for legacy, the "
        "policy for easy",
    )
    most_wait: float | None = setting(
        None,
        doc="wait after which a job precedes all that were submitted after it, under every policy (easy, conservative, "
        "easy_predicted, easy_learned); null: none",
        unit="h",
        gt=0,
    )
    queue_priority: dict[Number, Annotated[float, Field(ge=0)]] = setting(
        {},
        doc="number of a queue -> priority of its jobs (0 for all other queues): jobs with a higher priority come "
        "first, under every policy; only `slurm` with a `queue_weight` above 0 adds a weighted priority instead",
    )
    dependencies: bool = setting(
        False,
        doc="a job that names a preceding job (columns 17 and 18 of the trace) arrives at the earliest its think time "
        "after the end of that job; a preceding job outside of the window counts as ended",
    )
    limits: LimitSettings = section(
        LimitSettings, doc="limits of queues, partitions and memory (backfill `none` and `easy`)"
    )
    kill: bool = setting(False, doc="kill jobs at their requested time")
    warm_start: bool = setting(
        False, doc="start each window on a machine that runs the jobs before it, not on an empty one"
    )
    environment: EnvironmentSettings = section(
        EnvironmentSettings, doc="observation and reward of policies that decide job by job"
    )


def require_order(backfill: Backfill, backfill_order: BackfillOrder, where: str = "backfill_order") -> None:
    """Raise UserError for an order of backfilling in a mode without one, or in a mode that defines its own."""
    if backfill_order != "default" and backfill not in ("legacy", "easy"):
        raise UserError(
            f"'{backfill_order}' has no meaning with backfilling '{backfill}'",
            where=where,
            expected="backfill legacy or easy",
        )


class BatchScale(Settings):
    """Sizes of this study at one scale: `sizes` of its file in conf/study/."""

    jobs: int = setting(10000, doc="jobs of a generated workload", unit="jobs", ge=1)
    length: int = setting(256, doc="jobs per window", unit="jobs", ge=1)
    windows: int = setting(MOST, doc="maximum number of windows of each part", unit="windows", ge=1)
    seeds: Seeds = setting((0, 1, 2), doc="seeds of learned policies", min_length=1)
    search_seeds: Seeds = setting((0, 1, 2), doc="seeds of the evolution strategy", min_length=1)
    published_seeds: Seeds = setting((0,), doc="seeds of the published learners", min_length=1)
    published_windows: int = setting(100, doc="windows of an epoch of RLScheduler's learner", unit="windows", ge=1)
    published_decisions: int = setting(25_600, doc="training decisions of RLScheduler's learner", unit="steps", ge=1)
    population: int = setting(14, doc="population of the evolution strategy", ge=4, le=MOST)
    training_windows: int = setting(32, doc="training windows per generation", unit="windows", ge=1)
    candidate_windows: int = setting(
        40,
        doc="windows of each part on which rollouts are chosen; they take most of the learning time",
        unit="windows",
        ge=1,
    )
    generations: int = setting(25, doc="generations per search of the evolution strategy", ge=1)
    history_generations: int = setting(20, doc="generations of the search for an order from history", ge=1)
    decisions: int = setting(24_576, doc="training decisions of stock learners", unit="steps", ge=1)


TERMS = {
    "bounded slowdown": "time from submission to end over run time, where run times below 10 s count as 10 s; at least "
    "1",
    "window": "a sequence of consecutive jobs of a trace, simulated by itself",
    "fcfs": "first come, first served",
    "sjf": "shortest requested time first",
    "ljf": "longest requested time first",
    "smallest": "fewest processors first",
    "largest": "most processors first",
    "smallest_area": "smallest area (requested time times processors) first",
    "f1": "log10(requested time) * processors + 870 * log10(submit time), lowest first; found by simulation and "
    "regression",
    "f2": "sqrt(requested time) * processors + 25600 * log10(submit time), lowest first",
    "f3": "requested time * processors + 6860000 * log10(submit time), lowest first",
    "f4": "requested time * sqrt(processors) + 530000 * log10(submit time), lowest first",
    "wfp3": "(wait / requested time)^3 * processors, highest first",
    "unicep": "wait / (log2(processors) * requested time), highest first",
    "lxf": "wait / requested time, highest first (the largest expansion factor)",
    "slurm": "Slurm's multifactor priority, from the age of the job, its size and the fair share of its user",
    "planner": "simulates the waiting jobs with requested times, each candidate first once, and starts the best "
    "candidate; learns nothing",
    **{
        f"{rule}_waiting": f"{rule} as the dissertation tested it: it starts nothing before 128 jobs wait, so the last "
        f"127 jobs of a window never start"
        for rule in ("fcfs", "sjf", "smallest", "f1")
    },
    **{
        f"{base}_predicted": f"{what}; run times are predicted from the users' ended jobs; no search, no rollouts"
        for base, what in (
            ("f1", "the order of f1"),
            ("shortest", "shortest run time first"),
            ("smallest_area", "smallest area (run time times processors) first"),
            ("costly_per_area", "the job first whose wait adds the most slowdown per area (run time times processors)"),
        )
    },
    "lxf_predicted": "lxf by the cost of a second's wait that the users' ended and running jobs let expect; nothing is "
    "learned beforehand",
    **{
        f"{rule}_true_times": f"{rule} with the jobs' true run times, which no policy can know, instead of requests"
        for rule in ("smallest_area", "planner")
    },
    "wfp3_legacy": "wfp3 as published: a wait of -1 - submit time inverts the order",
    "unicep_legacy": "unicep as published: a wait of -1 - submit time inverts the order",
}
