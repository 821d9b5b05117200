"""Typed settings of the learners; no torch, so that a configuration is checked without it."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting
from schedlab.config.settings import MOST


class ReinforceSettings(Settings):
    """REINFORCE (Williams 1992), a network for each preference. A phase's steps are episodes of each preference."""

    hidden: int = setting(64, doc="units of both hidden layers (published: 256)", ge=1, le=4096)
    learning_rate: float = setting(3e-3, doc="of Adam, falling to 0 over a phase (published: 3e-4)", gt=0, le=1)
    episodes_per_update: int = setting(64, doc="episodes of a gradient step, run side by side", ge=2, le=100_000)
    gamma: float = setting(1.0, doc="discount of an interval's reward; 1: what the objective adds up (published: .99)", ge=0, le=1)
    entropy: float = setting(0.3, doc="weight of the policy's entropy, falling to 0 over a phase", unit="1/nat", ge=0, le=100)
    committed: float = setting(
        0.25, doc="share of the episodes side by side that explore: they go to an allocation drawn from the limits, and stay", ge=0, lt=1
    )
    imitated: int = setting(4, doc="best episodes seen that are imitated where the policy's own reach less; 0: none", ge=0, le=MOST)
    imitations: int = setting(4, doc="gradient steps of imitation after each of REINFORCE", ge=0, le=MOST)
    record_every: int = setting(10, doc="updates between two points of the curves", ge=1, le=MOST)
    save_every: int = setting(100, doc="updates between two states that an interrupted job can go on from", ge=1)


LEARNER_SETTINGS: dict[str, type[Settings]] = {"reinforce": ReinforceSettings}
