"""Rewards: SLA-MORL's published scalar reward, and weights that depend on the severity of violations.

See docs/reference/cloud_model.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from schedlab.config.errors import UserError, did_you_mean

# weights of cost, time and resource, in the order of the policies
PREFERENCES: dict[str, tuple[float, float, float]] = {
    "balanced": (0.33, 0.33, 0.34),
    "cost": (0.6, 0.2, 0.2),
    "time": (0.2, 0.6, 0.2),
    "resource": (0.2, 0.2, 0.6),
}
REFERENCE_WEIGHTS: dict[str, tuple[float, float, float, float]] = {  # weights of cost, performance, efficiency, sla
    "balanced": (0.25, 0.25, 0.25, 0.25),
    "cost": (0.6, 0.1, 0.1, 0.2),
    "time": (0.1, 0.6, 0.1, 0.2),
    "resource": (0.1, 0.1, 0.6, 0.2),
}
TARGET = 0.8  # utilisation above which an allocation counts as efficient
IDLE = 0.3  # utilisation below which several GPUs count as wasteful
CHANGE_COST = 2.0
SMALLEST, INSTEAD = 0.01, 0.5  # a smaller total is replaced by the second value


def preference_weights(name: str) -> tuple[float, float, float] | None:
    """Return the weights of cost, time and resource of a preference, given by name or as `0.1:0.1:0.8`; None for other
    texts.
    """
    if name in PREFERENCES:
        return PREFERENCES[name]
    try:
        weights = tuple(float(part) for part in str(name).split(":"))
    except ValueError:
        return None
    return weights if len(weights) == 3 and min(weights) >= 0 and abs(sum(weights) - 1) < 1e-6 else None


def require_preference(name: str, where: str) -> str:
    """Return the name of a preference. Raises UserError for an unknown one."""
    if name not in PREFERENCES:
        raise UserError(f"there is no preference {name!r}", where=where, remedy=did_you_mean(str(name), PREFERENCES))
    return name


@dataclass(frozen=True)
class ReferenceReward:
    """The published reward and its components."""

    cost: float
    performance: float
    efficiency: float
    sla: float
    total: float


@dataclass(frozen=True)
class Transition:
    """Inputs of the published reward.

    price_before, price_after  price of the allocation, $/h
    throughputs                of the last two records, samples/s (fewer: no change)
    gpu_count                  after the action
    gpu_util, cpu_util         fractions
    compliance                 share of items met
    changed                    whether the allocation changed
    """

    price_before: float
    price_after: float
    throughputs: tuple[float, ...]
    gpu_count: int
    gpu_util: float
    cpu_util: float
    compliance: float
    changed: bool


def reference_reward(preference: str, step: Transition) -> ReferenceReward:
    """Return the published reward of a step."""
    cost = 20.0 * (step.price_before - step.price_after)
    performance = 0.0
    if len(step.throughputs) >= 2 and step.throughputs[-2] > 0:
        performance = (step.throughputs[-1] - step.throughputs[-2]) / step.throughputs[-2] * 10.0
    of_gpus = (1.0 - abs(step.gpu_util - TARGET)) * 10.0
    if step.gpu_count > 1 and step.gpu_util < IDLE:
        of_gpus -= 5.0 * (step.gpu_count - 1)
    efficiency = (of_gpus + (1.0 - abs(step.cpu_util - TARGET)) * 10.0) / 2.0
    sla = (step.compliance * 2.0 - 0.5) * 15.0
    weights = REFERENCE_WEIGHTS[preference]
    total = weights[0] * cost + weights[1] * performance + weights[2] * efficiency + weights[3] * sla
    total -= CHANGE_COST if step.changed else 0.0
    return ReferenceReward(cost, performance, efficiency, sla, INSTEAD if abs(total) < SMALLEST else total)


def adapted_weights(
    preference: Mapping[str, float], severities: Mapping[str, float], strength: float = 2.0
) -> dict[str, float]:
    """Return the weights shifted towards violated items, normalised to a sum of 1: w_i ~ w0_i exp(strength *
    severity_i).

    Both mappings have the same keys (cost, time, resource).
    """
    raw = {name: weight * math.exp(strength * severities[name]) for name, weight in preference.items()}
    whole = sum(raw.values())
    return {name: value / whole for name, value in raw.items()}
