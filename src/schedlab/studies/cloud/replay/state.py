"""The state of a training job as observed by a learner: resources, utilisation, progress, money and service levels.

See docs/reference/cloud_model.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schedlab.studies.cloud.legacy import LegacySettings
from schedlab.studies.cloud.model.allocation import ResourceConfig
from schedlab.studies.cloud.replay.sla import ITEMS, SLAConfig, Verdict, gpu_utilisations, is_given, judge

SIZE = 26
COMPONENTS = (
    *("gpu_count", "cpu_count", "memory_gb", "gpu_util", "cpu_util", "memory_util"),
    *("progress", "throughput", "time", "cost"),
    *(f"{item}_met" for item in ITEMS),
    *(f"{item}_severity" for item in ITEMS),
    *("memory_used", "time_remaining", "cost_rate", "epoch_time"),
)
WATCHED = (3, 4, 5, 7, 10, 11, 12)  # components whose change calls for a decision
CHANGE = 0.1  # smallest change of one of them that does


class CloudEnvironmentState:
    """The state of a job, derived from its records.

    Utilisations are fractions, times in s, money in $, throughput in samples/s. Before the first record, every item
    counts as met. An item whose metric is not reported keeps its verdict, except for the GPUs' utilisation, which
    counts as 0 until it is reported. With `gpus_apply` false (a job without GPUs), that item does not apply; in the
    vector, which has no value for this, it counts as met.
    """

    def __init__(self, resource: ResourceConfig, sla: SLAConfig, legacy: LegacySettings | None = None) -> None:
        self.resource, self.sla, self.legacy = resource, sla, legacy or LegacySettings()
        self.gpus_apply = True
        self.gpu_count = self.cpu_count = self.memory_gb = self.memory_used = 0.0
        self.gpu_util = self.cpu_util = 0.0
        self.epoch = self.total_epochs = 0.0
        self.throughput = self.time = self.cost = self.epoch_time = 0.0
        self.status = dict.fromkeys(ITEMS, Verdict(True, 0.0))

    def update(self, metrics: Mapping[str, Any]) -> None:
        """Update the state with a record of the job's log; columns that are missing or NaN change nothing."""
        given = {key: value for key, value in metrics.items() if is_given(value)}
        for key in ("gpu_count", "cpu_count", "memory_gb", "total_epochs", "throughput", "epoch_time"):
            setattr(self, key, given.get(key, getattr(self, key)))
        self.memory_used = given.get("memory_used_gb", self.memory_used)
        self.time, self.cost = given.get("time_so_far", self.time), given.get("cost_so_far", self.cost)
        self.cpu_util = given["cpu_percent"] / 100.0 if "cpu_percent" in given else self.cpu_util
        epoch = given.get("epoch", self.epoch)
        self.epoch = int(epoch) if self.legacy.whole_epochs else epoch
        if found := gpu_utilisations(given):
            self.gpu_util = sum(found) / (100.0 * len(found))
        if "time_so_far" in given:
            self._judge("time", self.time)
        if "cost_so_far" in given:
            self._judge("cost", self.cost)
        if "throughput" in given:
            self._judge("throughput", self.throughput)
        if "memory_used_gb" in given:
            self._judge("memory", self.memory_used)
        if self.gpus_apply:
            self._judge("gpu_util", self.gpu_util * 100.0)
        if "cpu_percent" in given:
            self._judge("cpu_util", given["cpu_percent"])

    def _judge(self, item: str, value: float) -> None:
        verdict = judge(item, value, self.sla.limit(item))
        if verdict.met and self.legacy.keep_severities:
            verdict = Verdict(True, self.status[item].severity)
        self.status[item] = verdict

    @property
    def items(self) -> tuple[str, ...]:
        """The items that apply: that of the GPUs only if there can be GPUs."""
        return tuple(item for item in ITEMS if self.gpus_apply or item != "gpu_util")

    @property
    def compliance(self) -> float:
        """Share of the applicable items that are met."""
        return sum(self.status[item].met for item in self.items) / len(self.items)

    @property
    def progress(self) -> float:
        """Share of the epochs that are done; 0 if their number is not known."""
        return self.epoch / self.total_epochs if self.total_epochs > 0 else 0.0

    @property
    def memory_util(self) -> float:
        """Memory in use relative to allocated memory, fraction; SLA-MORL's program divides the memory in use by
        itself.
        """
        if self.legacy.memory_used_only:
            return 1.0 if self.memory_used > 0 else 0.0
        return self.memory_used / self.memory_gb if self.memory_gb > 0 else 0.0

    def vector(self) -> np.ndarray:
        """Return the components, float32 of shape (26,), in the order of COMPONENTS."""
        most, price = self.resource, self.resource.hourly_price
        memory = self.memory_used if self.legacy.memory_used_only else self.memory_gb
        last = (0.0, 0.0, 0.0, 0.0)
        if not self.legacy.empty_components:
            left = self.time / self.epoch * (self.total_epochs - self.epoch) if self.epoch > 0 else 0.0
            last = (
                self.memory_used / max(1, most.memory_max),
                share_of_limit(left, self.sla.time_max),
                share_of_limit(price(self.gpu_count, self.cpu_count, self.memory_gb), price(*most.most)),
                share_of_limit(self.epoch_time, self.sla.time_max),
            )
        values = (
            self.gpu_count / max(1, most.gpu_count_max),
            self.cpu_count / max(1, most.cpu_count_max),
            memory / max(1, most.memory_max),
            *(self.gpu_util, self.cpu_util, self.memory_util, self.progress),
            min(1.0, self.throughput / 1000.0),
            share_of_limit(self.time, self.sla.time_max),
            share_of_limit(self.cost, self.sla.cost_max),
            *(float(self.status[item].met) for item in ITEMS),
            *(self.status[item].severity for item in ITEMS),
            *last,
        )
        return np.array(values, dtype=np.float32)


def share_of_limit(value: float, whole: float) -> float:
    """Return a value as a share of a limit, at most 1; for a limit of 0, return 0 or 1."""
    return min(1.0, value / whole) if whole > 0 else float(value > 0)


def significant_change(
    before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray, threshold: float = CHANGE
) -> bool:
    """Return whether a watched component changed by more than the threshold, so that a decision is due."""
    return any(abs(float(after[number]) - float(before[number])) > threshold for number in WATCHED)
