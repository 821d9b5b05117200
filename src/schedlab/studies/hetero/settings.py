"""The typed scenario of the hetero study: a platform, a workload with its replicates, and the simulator that runs them."""

from __future__ import annotations

from typing import Any, Literal

from schedlab.batsim.schedulers.priorities import PRIORITIES
from schedlab.config.contract import Split
from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import ScenarioSettings
from schedlab.platforms.settings import PlatformSettings
from schedlab.workloads.settings import WorkloadSettings

RESULTS_VERSION = 1  # raise it when the code of this study changes its results
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class ReplicateSettings(Settings):
    """How many workloads are scored apart: draws of the model with seeds of their own, or consecutive pieces of a trace that share no job.

    Pieces are cut in the order of the keys, so that policies are tested on what came later than what they learned from.
    """

    train: int = setting(0, doc="workloads that policies learn on", ge=0)
    validation: int = setting(0, doc="workloads that the best rule is chosen on", ge=0)
    test: int = setting(1, doc="workloads that nothing is learned or chosen on", ge=1)

    @property
    def total(self) -> int:
        """Return the number of workloads."""
        return self.train + self.validation + self.test


class HeteroScenario(ScenarioSettings):
    """A heterogeneous cluster under a workload of batch jobs."""

    platform: PlatformSettings = setting(doc="the cluster")
    workload: WorkloadSettings = setting(doc="the jobs")
    replicates: ReplicateSettings = section(ReplicateSettings, doc="workloads of each split")
    simulator: Literal["embedded", "batsim"] = setting("embedded", doc="the simulator inside, or a real Batsim")
    batsim: str = setting("batsim", doc="binary of the real Batsim: a name on the PATH, or a file")
    energy: bool = setting(True, doc="account for energy; without it, energy and energy-delay product are not scored")
    network: Literal["simulate", "ignore"] = setting("simulate", doc="ignore: communications take no time")
    bounded_slowdown_threshold: float = setting(
        10.0, doc="a job that ran shorter counts as one of this length in the bounded slowdown", unit="s", gt=0
    )


class HeteroScale(Settings):
    """Sizes that the scenarios of this study take from conf/scale/."""

    jobs: int = setting(100, doc="jobs of a workload", unit="jobs", ge=1)
    replicates: ReplicateSettings = section(ReplicateSettings, doc="workloads of each split")


class EasySettings(Settings):
    """The rule `easy`: EASY backfilling."""

    priority: Literal[tuple(PRIORITIES)] = setting("fcfs", doc="order of the queue")


class PyBatsimSettings(Settings):
    """The rule `pybatsim`: a scheduler of PyBatsim's own package."""

    scheduler: str = setting(doc="module of the package `schedulers`, such as easyBackfill")
    options: dict[str, Any] = setting({}, doc="the object that it gets as its options")
