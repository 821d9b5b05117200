"""The typed scenario: a platform, a workload with its replicates, and the simulator that runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from schedlab.batsim.schedulers.priorities import PRIORITIES
from schedlab.config.contract import Metric, Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, section, setting
from schedlab.config.seeds import derive_seed
from schedlab.config.settings import LONGEST, MOST, ScenarioSettings, Seeds
from schedlab.evaluation.job_metrics import JOB_METRICS
from schedlab.platforms.settings import PlatformSettings
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.physics import PhysicsSettings
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.trim import TrimSettings

ENERGY_METRICS = (
    Metric("energy", "J", "lower", label="energy"),
    Metric("energy_delay_product", "J s", "lower", label="energy-delay product"),
)
DRAWN_NOWHERE = tuple(name for name in ALL_CORE_POLICIES if name not in ("random", "pack_cores"))
CHOICES_OF_CORES = ("low_power", "high_mem_bw", "high_gflops")
CHOSEN_BY = tuple(metric.name for metric in (*JOB_METRICS, *ENERGY_METRICS))
RESULTS_VERSION = 2  # raise it when the code of this study changes its results
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class ReplicateSettings(Settings):
    """How many workloads each split has. Each workload is scored separately.

    The workloads are draws of the model with different seeds, or consecutive pieces of a trace that share no job.
    Pieces are cut in the order of the keys, so test workloads are later than training workloads. A workload file gives
    only one workload: if several splits use it, policies are tested on the workload that they learned on, as in the
    published system.
    """

    train: int = setting(0, doc="training workloads", ge=0, le=MOST)
    validation: int = setting(0, doc="validation workloads, on which the best rule is chosen", ge=0, le=MOST)
    test: int = setting(1, doc="test workloads", ge=1, le=MOST)

    @property
    def total(self) -> int:
        """Return the number of workloads."""
        return self.train + self.validation + self.test


class HeteroScenario(ScenarioSettings):
    """A heterogeneous cluster under a workload of batch jobs."""

    platform: PlatformSettings = setting(doc="cluster")
    workload: WorkloadSettings = setting(doc="the jobs")
    replicates: ReplicateSettings = section(ReplicateSettings, doc="number of workloads in each split")
    decisions: DecisionSettings = section(DecisionSettings, doc="actions, observation and reward of policies")
    simulator: Literal["embedded", "batsim", "compiled"] = setting(
        "embedded",
        doc="simulator: embedded; a real Batsim; or `compiled`, which computes the same start and end times of jobs as "
        "the embedded one in a fraction of its time, and nothing else (no energy, no detail tables)",
    )
    physics: PhysicsSettings = section(PhysicsSettings, doc="physics of the cluster other than HDeepRM's")
    batsim: str = setting("batsim", doc="binary of the real Batsim: a name on PATH, or a file")
    energy: bool = setting(True, doc="simulate energy; otherwise energy and energy-delay product are not scored")
    scheduler_limit: float = setting(
        60.0, doc="wall-clock limit for one answer of the scheduler; 0: none", unit="s", ge=0, le=1e6
    )
    network: Literal["simulate", "ignore"] = setting("simulate", doc="`ignore`: communication takes no time")
    bounded_slowdown_threshold: float = setting(
        10.0, doc="lower bound on run times in the bounded slowdown", unit="s", gt=0
    )


class HeteroScale(Settings):
    """Sizes of this study at one scale: `sizes` of its file in conf/study/."""

    jobs: int = setting(100, doc="jobs per workload", unit="jobs", ge=1)
    replicates: ReplicateSettings = section(ReplicateSettings, doc="number of workloads in each split")
    thesis_replicates: int = setting(1, doc="test workloads of the scenarios of the thesis", ge=1, le=MOST)
    learning_jobs: int = setting(50, doc="jobs per workload in scenarios with learning", unit="jobs", ge=1)
    learning_replicates: ReplicateSettings = section(
        ReplicateSettings, doc="number of workloads in each split of scenarios with learning"
    )
    drawn_replicates: ReplicateSettings = section(
        ReplicateSettings, doc="number of workloads in each split of the scenario `contended`, which are drawn"
    )
    case_episodes: int = setting(1600, doc="training episodes in the thesis' case of two jobs", ge=1, le=LONGEST)
    case_steps: int = setting(
        2048,
        doc="training decisions of stock learners in that case, whose episodes have one decision",
        unit="steps",
        ge=1,
        le=LONGEST,
    )
    episodes: int = setting(
        200, doc="training episodes of a policy, and episodes of the search for a fixed pair", ge=1, le=LONGEST
    )
    imitation_episodes: int = setting(
        120, doc="episodes in which a policy of the learner `trials` imitates look-ahead", ge=1, le=LONGEST
    )
    trial_episodes: int = setting(
        120, doc="episodes of such a policy in which it continues the trials itself", ge=1, le=LONGEST
    )
    seeds: Seeds = setting((0, 1, 2), doc="seeds of learned policies", min_length=1)
    other_seeds: Seeds = setting((0, 1, 2), doc="seeds of the other learners in the case of two jobs", min_length=1)


class SchedulerSettings(Settings):
    """A scheduler of this package, which decides when jobs start.

    If the platform's pstates are managed, a core policy chooses the cores.
    """

    cores: Literal[tuple(ALL_CORE_POLICIES)] = setting(  # type: ignore[valid-type]
        "lowest", doc="core policy that places its jobs (with platform.pstates.managed)"
    )


class EasySettings(SchedulerSettings):
    """The rule `easy`: EASY backfilling."""

    priority: Literal[tuple(PRIORITIES)] = setting("fcfs", doc="order of the queue")  # type: ignore[valid-type]


class PyBatsimSettings(Settings):
    """The rule `pybatsim`: a scheduler that PyBatsim provides."""

    cores: Literal["own", *ALL_CORE_POLICIES] = setting(  # type: ignore[valid-type]
        "own",
        doc="core policy that places its jobs (with platform.pstates.managed); `own`: the scheduler chooses the cores",
    )
    scheduler: str = setting(doc="module of PyBatsim's package `schedulers`, such as easyBackfill")
    options: dict[str, Any] = setting({}, doc="options of the scheduler, a JSON object")


class TriedPairsSettings(Settings):
    """The rule `tried_pairs`, an oracle: the best pair at each decision, by trying each on a copy of the run."""

    base: str = setting("shortest-low_power", doc="pair that plays each simulated copy to its end")
    vary: Literal["both", "job", "core"] = setting(
        "both", doc="pairs to try: all, those with the core policy of `base`, or those with its job policy"
    )


class BestFixedPairSettings(Settings):
    """The rule `best_fixed_pair`: the scenario's pair that was best on other workloads."""

    metric: Literal[CHOSEN_BY] = setting(  # type: ignore[valid-type]
        "mean_bounded_slowdown", doc="metric whose mean decides which pair is best"
    )
    split: Literal["train", "validation"] = setting("validation", doc="split on which the pair is chosen")
    among: Literal["actions", "all"] = setting(
        "actions",
        doc="`actions`: the scenario's actions; `all`: also smallest area first, and all with EASY backfilling",
    )
    episodes: int | None = setting(
        None,
        doc="maximum number of episodes of the search; null: each pair on each workload",
        ge=1,
        le=LONGEST,
    )


class LookAheadSettings(Settings):
    """The rule `look_ahead`: the best option at each decision, by trying each on copies of the run."""

    base: str = setting("saf-low_power", doc="pair that plays each copy to its end")
    window: int = setting(10, doc="how many waiting jobs may be started: those with the smallest area", ge=1, le=1000)
    cores: tuple[Literal[DRAWN_NOWHERE], ...] = setting(  # type: ignore[valid-type]
        CHOICES_OF_CORES, doc="core policies that may place the job", min_length=1
    )
    futures: int = setting(0, doc="draws of the later jobs, each in a copy for each option; 0: no later job", ge=0)


class ReserveSettings(Settings):
    """The rule `reserve`: smallest area first that keeps cores free for short jobs."""

    longest: float = setting(3000.0, doc="requested time up to which a job may use all free cores", unit="s", ge=0)
    free: float = setting(0.5, doc="share of all cores that stay free when a longer job starts", ge=0, le=1)
    cores: Literal[tuple(ALL_CORE_POLICIES)] = setting(  # type: ignore[valid-type]
        "high_mem_bw", doc="core policy that places the jobs"
    )


class BestReserveSettings(Settings):
    """The rule `best_reserve`: the rule `reserve` with the values that were best on other workloads."""

    longest: tuple[float, ...] = setting(
        (300.0, 1000.0, 3000.0, 10000.0, 30000.0), doc="values of `longest` that are tried", unit="s", min_length=1
    )
    free: tuple[float, ...] = setting(
        (0.25, 0.33, 0.42, 0.5, 0.58, 0.67, 0.83), doc="values of `free` that are tried", min_length=1
    )
    cores: tuple[Literal[tuple(ALL_CORE_POLICIES)], ...] = setting(  # type: ignore[valid-type]
        ("high_gflops", "high_mem_bw", "low_power"), doc="core policies that are tried", min_length=1
    )
    metric: Literal[CHOSEN_BY] = setting(  # type: ignore[valid-type]
        "mean_bounded_slowdown", doc="metric whose mean decides which values are best"
    )
    split: Literal["train", "validation"] = setting("validation", doc="split on which the values are chosen")


OVERLAPPING = "published, overlapping"  # policies are tested on the workload that they learned on, as in HDeepRM
KINDS = {"lublin": "drawn workload", "swf": "piece of a trace", "batsim": "workload file"}


def units(workload: WorkloadSettings, replicates: ReplicateSettings) -> tuple[Unit, ...]:
    """Return the replicates of all splits in order. No two share a job, so each is a block, except those of a file.

    A replicate's seed is derived from the workload's seed, the split and the replicate's number, so that more
    replicates do not change the others.
    """
    made = []
    same = workload.source == "batsim"
    kind = OVERLAPPING if same and replicates.total > 1 else KINDS[workload.source]
    for split in SPLITS:
        for number in range(getattr(replicates, split)):
            name = f"{split}-{number:02d}"
            block = "workload" if same else name
            seed = derive_seed(workload.seed, "workload", split, number)
            made.append(Unit(name, kind, split, block, seed, {"number": number}))
    return tuple(made)


def settings_of(workload: WorkloadSettings, replicates: ReplicateSettings, unit: Unit) -> WorkloadSettings:
    """Return the workload settings of one replicate: with its seed and, for a trace, its piece."""
    changes: dict[str, object] = {"seed": unit.seed, "name": f"{workload.name}, {unit.id}"}
    if workload.source == "swf" and replicates.total > 1:
        trim = workload.trim or TrimSettings()
        place = [other.id for other in units(workload, replicates)].index(unit.id)
        changes["trim"] = trim.model_copy(update={"first": trim.first + place * (trim.count or 0)})
    return workload.model_copy(update=changes)


def check_replicates(workload: WorkloadSettings, replicates: ReplicateSettings) -> Iterable[UserError]:
    """Yield the mistakes for which the replicates would not be separate workloads."""
    if replicates.total == 1:
        return
    if workload.source == "batsim":
        if max(replicates.train, replicates.validation, replicates.test) > 1:
            what = f"{replicates.total} replicates of one workload file"
            yield UserError(what, where="replicates", expected="at most one of each split, all the same workload")
    elif workload.source == "swf":
        trim = workload.trim or TrimSettings()
        if trim.count is None:
            what = f"{replicates.total} replicates, and the length of a piece is not given"
            yield UserError(what, where="workload.trim", expected="the key count")
        if trim.load is not None:
            what, expected = "a load picks one piece of the trace", "no load, as there are several replicates"
            yield UserError(what, where="workload.trim.load", expected=expected)


TERMS = {
    "workload": "a list of jobs that are submitted to the empty cluster; the unit that is scored; workloads share no "
    "job",
    "bounded slowdown": "turnaround time of a job over its run time, where run times below 10 s count as 10 s; at "
    "least 1",
    "turnaround time": "from the submission of a job to its end",
    "makespan": "from the first submission to the last end",
    "utilisation": "share of the cores' time until the last end in which a job holds the core, even if the core waits "
    "for the job's slowest one",
    "energy": "energy of all cores until the last end: an idle core takes a share of its full power, a busy one more, "
    "in proportion to what it computes",
    "energy-delay product": "energy times makespan",
    "pair": "a job policy and a core policy, as in shortest-high_mem_bw; jobs start in the order of the first, on "
    "cores chosen by the second, until one does not fit",
    "over-subscribed memory bandwidth": "the jobs on a processor request more bandwidth than it has; all its busy "
    "cores then run at 75 %",
    "best_fixed_pair": "search: plays, at every decision, the pair that is best on the validation workloads",
    "best_fixed_pair-equal": "search: the same with the pair that is best on the training workloads, found in as many "
    "episodes as a learner has",
    "best_reserve": "search: smallest requested time x cores first; jobs above a requested time start only if a share "
    "of the cores stays free; both values are the best on the validation workloads",
    "look_ahead": "planner: at each decision, tries on a copy of the run to start one of ten jobs or to wait, and "
    "takes the best; `look_ahead-arrivals`: with two draws of the jobs to come",
    "easy-high_mem_bw": "rule: EASY backfilling on the cores of the processors with the most free memory bandwidth",
    "easy-sjf-high_mem_bw": "rule: the same, with the shortest requested time first",
    "fcfs": "rule: first come, first served; a job that does not fit blocks all jobs behind it",
    "sjf": "rule: shortest requested time first; a job that does not fit blocks all jobs behind it",
    "filler": "rule: starts every job that fits, in the order of arrival",
    "easy": "rule: EASY backfilling; a job may overtake if it does not delay the first one",
    "easy-sjf": "rule: EASY backfilling with the shortest requested time first; `easy-f1`: with the smallest published "
    "score F1 first",
    "conservative": "rule: conservative backfilling; a job may overtake if it delays no other",
}
