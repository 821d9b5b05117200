"""One step of the published environment: an action changes the allocation, and records of a log, which do not depend on
the action, give the reward.

In `schedlab.studies.cloud.replay.env`, actions have consequences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedlab.studies.cloud.legacy import LegacySettings
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig, moved
from schedlab.studies.cloud.replay.reward import ReferenceReward, Transition, reference_reward
from schedlab.studies.cloud.replay.sla import SLAConfig, gpu_utilisations, is_given
from schedlab.studies.cloud.replay.state import CloudEnvironmentState

PRICES = {"cost_per_gpu_hour": 10.0, "cost_per_cpu_hour": 3.0, "cost_per_gb_hour": 2.0}  # $/h
DEFECTS = LegacySettings(**dict.fromkeys(LegacySettings.model_fields, True))
SEVERE, MOST_SEVERE = 0.5, 3  # so many items that are violated by more than the first number end an episode


@dataclass(frozen=True)
class Step:
    """The result of an action: the allocation, the reward with its parts, whether the episode ends, and the next state
    (float32, 26).
    """

    allocation: Allocation
    changed: bool
    reward: ReferenceReward
    done: bool
    state: np.ndarray


def trimmed(allocation: Allocation, metrics: Mapping[str, Any]) -> Allocation:
    """Return the allocation without idle GPUs: one GPU if the utilisation of all is below 5 %, else as many as have 10
    % or more, but at least one.

    The published program intends this, but reads the utilisations under a name under which nothing writes them.
    """
    found = gpu_utilisations(metrics)
    if len(found) <= 1:
        return allocation
    return allocation._replace(
        gpu_count=1 if all(value < 5 for value in found) else max(1, sum(value >= 10 for value in found))
    )


def step(
    action: int,
    allocation: Allocation,
    history: Sequence[Mapping[str, Any]],
    preference: str,
    limits: tuple[ResourceConfig, SLAConfig],
    compat: bool,
) -> Step:
    """Take an action after the records of a log.

    compat: with the published defects: severities of service levels that are met again stay; the memory in use counts
    as the allocated memory; idle GPUs are not removed; a machine without GPUs violates the service level of GPUs.
    """
    resource, sla = limits
    state = CloudEnvironmentState(resource, sla, DEFECTS if compat else None)
    state.gpus_apply = compat or resource.gpu_count_max > 0
    for record in history:
        state.update({**record, **allocation._asdict()})
    after = moved(allocation, action, resource)
    if history and not compat:
        after = trimmed(after, history[-1])
    if history:
        state.update({**history[-1], **after._asdict()})
    throughputs = tuple(record["throughput"] if is_given(record.get("throughput")) else 0 for record in history[-2:])
    severe = sum(not verdict.met and verdict.severity > SEVERE for verdict in state.status.values())
    done = state.epoch >= state.total_epochs > 0 or severe >= MOST_SEVERE
    transition = Transition(
        price_before=resource.hourly_price(*allocation),
        price_after=resource.hourly_price(*after),
        throughputs=throughputs,
        gpu_count=after.gpu_count,
        gpu_util=state.gpu_util,
        cpu_util=state.cpu_util,
        compliance=state.compliance,
        changed=after != allocation,
    )
    return Step(after, transition.changed, reference_reward(preference, transition), done, state.vector())
