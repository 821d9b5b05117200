"""The typed scenario of the adaptation study: the job, its budget, the possible changes, and the reward."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from schedlab.config.schema import Settings, section, setting, validate
from schedlab.config.settings import LONGEST, MOST, ScenarioSettings
from schedlab.studies.adaptation.data.datasets import DataSettings
from schedlab.studies.adaptation.network.architecture import ModelSettings
from schedlab.studies.adaptation.simulator.timing import TimingSettings

RESULTS_VERSION = 1  # raise it when the code of this study changes its results
JOB = ("model", "data", "timing", "budget")
COURSE = ("adapt_at", "changes", "decisions", "decision_every", "actions")
GROWTH_ACTION = re.compile(r"(deepen|widen)-(\d+)")
LONGEST_JOB = 10_000_000.0  # s, four months
MOST_DECISIONS = 6
MAX_ACTIONS = 36  # a sequence is written with one character an action: 0-9, a-z


class TrainingSettings(Settings):
    """Training: Adam on the cross-entropy of mini-batches, with a learning rate that falls after each epoch."""

    learning_rate: float = setting(0.01, doc="Adam's learning rate in the first epoch", gt=0, le=10)
    decay: float = setting(
        0.95, doc="factor on the learning rate after each epoch (0.9 in the published system)", gt=0, le=1
    )
    minimum_learning_rate: float = setting(1e-8, doc="lower limit of the learning rate", ge=0)
    batch_size: int = setting(
        64,
        doc="mini-batch size; the last one may be smaller, or larger by one image",
        unit="images",
        gt=0,
        le=1_000_000,
    )
    device: Literal["auto", "cpu", "cuda"] = setting(
        "cpu", doc="device for training; `auto`: CUDA if the machine has it. CPU and CUDA results differ by rounding"
    )


class GrowthSettings(Settings):
    """How a network grows, and what growth does to its optimizer. The choices of the published system are in
    brackets.
    """

    bn_init: Literal["calibrated", "default", "none"] = setting(
        "calibrated",
        doc="inserted batch norm: `calibrated` with the statistics of training images, torch's "
        "`default` [published], or `none`",
    )
    symmetry_noise: float = setting(
        0.0, doc="relative Gaussian noise on weights written by growth; widening needs a value above 0", ge=0
    )
    optimizer: Literal["keep", "fresh", "fresh_every_decision"] = setting(
        "keep",
        doc="Adam's moments: kept for surviving tensors, reset at each growth, or reset before each "
        "epoch from `adapt_at` on [published]",
    )
    lr_on_growth: Literal["continue", "restart"] = setting(
        "continue", doc="learning rate after growth: continues, or restarts [published]"
    )
    noop: Literal["continue", "reset"] = setting(
        "continue", doc="doing nothing: no side effect, or the same reset as growth [published]"
    )
    widen_factor: float = setting(2.0, doc="ratio of channels after and before widening", gt=1, le=64)
    soft_target_weight: float = setting(
        0.75,
        doc="weight of the larger network's soft targets after shrinking; 0: not used [published]",
        ge=0,
        le=1,
    )
    soft_target_decay: float = setting(0.25, doc="factor on the weight of soft targets after each epoch", ge=0, le=1)
    soft_target_temperature: float = setting(2.0, doc="temperature of the soft targets", gt=0)

    @model_validator(mode="after")
    def _check(self) -> GrowthSettings:
        if self.optimizer == "fresh_every_decision" and self.noop == "continue":
            raise ValueError(
                "optimizer fresh_every_decision needs noop reset: a do-nothing that continues has no side effect"
            )
        return self


class ChangeSettings(Settings):
    """A change of the job's resources after `adapt_at`. (At `adapt_at` itself, resources are added.)"""

    time: float = setting(doc="time since the start of training", unit="s", gt=0)
    change: Literal["up", "down"] = setting(
        doc="`down`: return to the network before the last `up`; `up`: growth is possible again"
    )


class RewardSettings(Settings):
    """The reward of a sequence of decisions."""

    split: Literal["validation", "test"] = setting("validation", doc="images on which the metric is computed")
    metric: Literal["log_loss", "accuracy"] = setting("log_loss", doc="log loss (nats; lower is better) or accuracy")
    window: int = setting(2, doc="number of last epochs of a run that are averaged", unit="epochs", ge=1, le=LONGEST)


class TableSettings(Settings):
    """The source of the table of all sequences."""

    source: Literal["simulate", "published"] = setting(
        "simulate", doc="`simulate`: train here; `published`: read the published record"
    )
    file: str | None = setting(None, doc="file of the published record (`published` only)")
    experiment: str | None = setting(None, doc="experiment in the record (`published` only)")

    @model_validator(mode="after")
    def _check(self) -> TableSettings:
        if self.source == "published" and not (self.file and self.experiment):
            raise ValueError("a published table needs file and experiment")
        return self


class AdaptationScenario(ScenarioSettings):
    """One training job under a budget: from `adapt_at` on, its network may grow at each of the next decisions."""

    model: ModelSettings = setting(doc="initial network")
    data: DataSettings = setting(doc="data set")
    timing: TimingSettings = setting(doc="fixed seconds per epoch, which are charged to the budget")
    budget: float = setting(240.0, doc="length of the training job", unit="s", gt=0, le=LONGEST_JOB)
    adapt_at: float = setting(doc="time at which resources are added and growth becomes possible", unit="s", ge=0)
    changes: tuple[ChangeSettings, ...] = setting((), doc="later changes of the resources, alternating `down` and `up`")
    decisions: int = setting(3, doc="decisions in a run", ge=1, le=MOST_DECISIONS)
    decision_every: int = setting(1, doc="epochs between decisions", unit="epochs", ge=1, le=LONGEST)
    actions: tuple[str, ...] = setting(
        (),
        doc="growth actions (deepen-BLOCK, widen-BLOCK); empty: deepen each block. Doing nothing is "
        "added as the last action",
    )
    jobs: tuple[int, ...] = setting(
        (0,),
        doc="initialisations, each with its own trunk; more of them show how general a result is",
        min_length=1,
        max_length=MOST,
    )
    replicates: int = setting(
        3,
        doc="replicates of each job, which differ in the shuffling after `adapt_at`; more of them reduce noise",
        ge=1,
        le=MOST,
    )
    validation_replicates: int = setting(
        0, doc="replicates on which rivals are chosen, not used for learning", ge=0, le=MOST
    )
    test_replicates: int = setting(1, doc="replicates for testing, not used for learning or choosing", ge=0, le=MOST)
    replicates_per_job: int = setting(
        1, doc="replicates that one job simulates; does not affect results", ge=1, le=MOST
    )
    training: TrainingSettings = section(TrainingSettings, doc="training of the network")
    growth: GrowthSettings = section(GrowthSettings, doc="growth of the network")
    reward: RewardSettings = section(RewardSettings, doc="objective of a run")
    table: TableSettings = section(TableSettings, doc="source of the table of all sequences")
    keep: Literal["frontier", "leaves", "all"] = setting(
        "frontier",
        doc="stored states: final ones and those from which one more decision starts, final ones only, or all",
    )
    curves: bool = setting(False, doc="evaluate after each epoch, not only in the window of the reward")

    @field_validator("adapt_at")
    @classmethod
    def _within_budget(cls, value: float, info: ValidationInfo) -> float:
        if (budget := info.data.get("budget")) is not None and value >= budget:
            raise ValueError(f"a time before the budget of {budget:g} s ends")
        return value

    @field_validator("changes")
    @classmethod
    def _in_turn(cls, value: tuple[ChangeSettings, ...], info: ValidationInfo) -> tuple[ChangeSettings, ...]:
        start, end = info.data.get("adapt_at", 0.0), info.data.get("budget", float("inf"))
        times = [start, *(change.time for change in value), end]
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise ValueError("times that rise from adapt_at to the budget")
        if any(change.change != ("down", "up")[position % 2] for position, change in enumerate(value)):
            raise ValueError("down and up in turn, down first (adapt_at is the first up)")
        return value

    @field_validator("actions")
    @classmethod
    def _known_actions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not GROWTH_ACTION.fullmatch(name):
                raise ValueError(f"deepen-BLOCK or widen-BLOCK with a block's number, not '{name}'")
        if len(set(value)) < len(value):
            raise ValueError("each action once")
        if len(value) >= MAX_ACTIONS:
            raise ValueError(f"at most {MAX_ACTIONS - 1} growth actions")
        return value

    @field_validator("jobs")
    @classmethod
    def _distinct_jobs(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value) or min(value) < 0:
            raise ValueError("distinct numbers from 0 on")
        return value


def trunk_values(scenario: AdaptationScenario) -> dict[str, Any]:
    """Return the values on which a trunk depends."""
    return _chosen(scenario, ("seed", *JOB, "jobs", "training"))


def simulation_values(scenario: AdaptationScenario) -> dict[str, Any]:
    """Return the values on which the simulated replicates depend; of the reward, only its window."""
    chosen = _chosen(scenario, ("name", "seed", *JOB, *COURSE, "training", "growth", "keep", "curves"))
    return {**chosen, "reward": _chosen(scenario.reward, ("window",))}


def table_values(scenario: AdaptationScenario, actions: int) -> dict[str, Any]:
    """Return the values on which a simulated table depends besides its runs. actions: number of actions, with doing
    nothing.
    """
    chosen = _chosen(scenario, ("jobs", "replicates", "decisions", "decision_every"))
    names = {"model": scenario.model.name, "data": scenario.data.name, "timing": scenario.timing.name}
    return {"source": "simulate", **names, **chosen, "actions": actions, "window": scenario.reward.window}


def spans(scenario: AdaptationScenario) -> list[list[int]]:
    """Return the first and last replicate of each simulation job of the workflow.

    Each replicate has a separate file, so a change of the spans repeats no simulation.
    """
    size = scenario.replicates_per_job
    return [[first, min(first + size, scenario.replicates) - 1] for first in range(0, scenario.replicates, size)]


def problem_values(scenario: AdaptationScenario) -> dict[str, Any]:
    """Return the values that determine how policies are scored and learned, apart from the table."""
    return _chosen(scenario, (*JOB, *COURSE, "growth", "reward", "validation_replicates", "test_replicates"))


def scenario_of(problem: Mapping[str, Any]) -> AdaptationScenario:
    """Return the typed scenario of a frozen problem part."""
    return validate(AdaptationScenario, {key: value for key, value in problem.items() if key != "upstream"})


def _chosen(settings: AdaptationScenario | RewardSettings, keys: Sequence[str]) -> dict[str, Any]:
    values = settings.model_dump(mode="json")
    return {key: values[key] for key in keys}


TERMS = {
    "sequence": "the decisions of a run, a digit each: `003` takes action 0 twice and then does nothing (the highest "
    "digit)",
    "replicate": "a repetition of a job with another order of the training images after the moment of growth; shows "
    "the noise",
    "job": "an initialisation of the network with its training up to the moment of growth",
    "trunk": "the training of a job without growth, which all scenarios share",
    "regret": "by how much a result is worse than that of the best sequence on the same replicate; 0 is best",
    "rank": "place of a sequence among all sequences of a scenario, 1 is best; means nothing where results differ by "
    "less than the noise",
    "ceiling": "the result of `exhaustive`: no policy can do better on the same replicate, and none can know the best "
    "sequence beforehand",
    "noise": "standard deviation of one result around the mean of its sequence, estimated from the differences among "
    "replicates",
    "objective": "minus the log-probability of the actions taken, times their advantage; it falls and rises with both "
    "factors, so it does not show whether a policy improves",
    "never": "rule: no growth",
    "always-0": "rule: grows behind block 0 at every decision; `always-1`, `always-2` behind the others",
    "constant-011": "rule: plays this sequence in every scenario; also `constant-100`",
    "random": "rule: every action is equally probable; its score is the exact expectation over all sequences",
    "exhaustive": "oracle: reads the table on which it is scored and takes the best sequence; the ceiling",
    "exhaustive-test": "oracle: takes the sequence that is best on the test images, on which the answer is measured",
}
