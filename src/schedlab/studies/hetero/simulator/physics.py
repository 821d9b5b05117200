"""Physics of a cluster as options of a scenario; the defaults are HDeepRM's model.

HDeepRM slows all busy cores of a processor to one speed while their jobs request more memory bandwidth than it has,
whatever the excess. Two rules share the bandwidth instead. By the roofline model (Williams, Waterman and Patterson
2009), a job that requests b GB/s at the full speed of a core and gets g runs at the share min(1, g / b) of this speed:
it is bound by computing up to g = b, and by memory below. `proportional` gives every core the same share of its
request; `fair` is max-min fair (Bertsekas and Gallager 1992, section 6.5): no core gets more than it requests, and
those that request more get equal bandwidths.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting

STEP, PROPORTIONAL, FAIR = "step", "proportional", "fair"


class PhysicsSettings(Settings):
    """Physics of the cluster; the defaults are HDeepRM's model. Other values need `simulator: embedded`."""

    bandwidth: Literal["step", "proportional", "fair"] = setting(
        STEP,
        doc="speed of busy cores whose processor lacks memory bandwidth: `step`: the share "
        "`platform.pstates.oversubscribed_speed`, whatever the excess (HDeepRM); `proportional`: the share of the "
        "requested bandwidth that the processor has; `fair`: bandwidth is shared max-min fairly, so cores that request "
        "little keep their full speed",
    )
    power_cap: float | None = setting(
        None,
        doc="power of all cores that no start may exceed; the start waits until enough jobs have ended; null: no cap "
        "(HDeepRM)",
        unit="W",
        gt=0,
    )
    mean_time_to_failure: float | None = setting(
        None,
        doc="mean time until a node fails, which ends the jobs on it; they are submitted again from their beginning; "
        "null: no node fails (HDeepRM)",
        unit="s",
        ge=1,
        le=1e9,
    )
    mean_time_to_repair: float = setting(
        3600.0, doc="mean time until a failed node works again", unit="s", ge=1, le=1e9
    )

    @property
    def beyond(self) -> str:
        """The first setting that differs from HDeepRM's model, as a key of the scenario; empty if none does."""
        fields = type(self).model_fields.items()
        return next((f"physics.{name}" for name, field in fields if getattr(self, name) != field.default), "")


@dataclass(frozen=True)
class Physics:
    """The physics of a run: the scenario's settings, and the seed of what is drawn."""

    settings: PhysicsSettings = field(default_factory=PhysicsSettings)
    seed: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """Options of the simulator that the physics need: jobs that failures end are registered again."""
        keys = ("dynamic_jobs", "acknowledge_dynamic_jobs", "profile_reuse")
        return dict.fromkeys(keys, True) if self.settings.mean_time_to_failure else {}


HDEEPRM = Physics()


def require_hdeeprm(settings: PhysicsSettings, what: str, where: str) -> None:
    """Raise UserError if physics are not HDeepRM's, which alone the compiled kernel has. what: who uses the kernel."""
    if settings.beyond:
        what = f"{what} on the compiled kernel, which does not have {settings.beyond}"
        raise UserError(what, where=where, expected="HDeepRM's physics, or what runs on the embedded simulator")


def bandwidth_shares(rule: str, demand: np.ndarray, capacity: float) -> np.ndarray:
    """Return the shares of their full speed (cores,) at which the busy cores of a processor run.

    rule      PROPORTIONAL or FAIR
    demand    (cores,): bandwidth that each requests; capacity: bandwidth of the processor, in the same unit, above 0
    """
    total = demand.sum()
    if total <= capacity:
        return np.ones(len(demand))
    granted = demand * (capacity / total) if rule == PROPORTIONAL else np.minimum(demand, fair_level(demand, capacity))
    return np.divide(granted, demand, out=np.ones(len(demand)), where=demand > 0)


def fair_level(demand: np.ndarray, capacity: float) -> float:
    """Return the bandwidth that each core gets that requests at least as much, where `demand` (cores,) exceeds
    `capacity`.
    """
    left, ascending = capacity, np.sort(demand)
    for served, wanted in enumerate(ascending):
        level = left / (len(ascending) - served)
        if wanted >= level:
            return level
        left -= wanted
    raise ValueError(f"the demand {demand.sum():g} does not exceed the capacity {capacity:g}")
