"""Typed settings of the learners; no torch, so that a configuration is checked without it."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import Settings, setting
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS


class PolicyGradientSettings(Settings):
    """How an agent of HDeepRM learns."""

    critic: bool = setting(False, doc="advantage actor-critic; without it REINFORCE")
    hidden: int = setting(
        16, doc="units of every hidden layer: more can tell more states apart and need more episodes", ge=1
    )
    head: Literal["actions", "parts"] = setting(
        "actions",
        doc="a logit for each action (published), or one for each job policy and core policy, which an action adds up",
    )
    learning_rate: float = setting(0.005, doc="of Adam: larger learns faster, and settles on a bad action sooner", gt=0)
    gamma: float = setting(0.99, doc="discount of a reward for each decision that lies between", ge=0, le=1)
    episodes_per_update: int = setting(8, doc="episodes of a gradient step (published: 1)", ge=1)
    standardise: Literal["update", "episode", "workload", "none"] = setting(
        "update",
        doc="returns get mean 0 and deviation 1 over an update, or over an episode of more than one decision "
        "(published); workload: an update's episodes are of one workload, and a return counts against their mean "
        "at the same date",
    )
    entropy: float = setting(
        0.0, doc="weight of the policy's entropy, which keeps it from settling", unit="1/nat", ge=0
    )
    average: float = setting(
        0.0,
        doc="share of a phase's last updates whose mean parameters are kept: "
        "less left to the luck of the last workloads",
        ge=0,
        le=1,
    )
    compiled: bool = setting(
        False,
        doc="episodes are taken by a compiled kernel, some hundred times as fast; "
        "for the observation heads and the objective avg_job_slowdown, time-weighted, without void",
    )
    acting: Literal["greedy", "sample"] = setting("greedy", doc="how the learned policy acts (published: sample)")
    record_every: int = setting(1, doc="updates between two points of the curves", ge=1)
    save_every: int = setting(50, doc="updates between two states that an interrupted job can go on from", ge=1)


class ActorCriticSettings(PolicyGradientSettings):
    """Advantage actor-critic: what is better than the critic expected becomes more probable."""

    critic: bool = setting(True, doc="advantage actor-critic; without it REINFORCE")


STOCK = ("ppo", "maskable_ppo", "a2c", "dqn")  # from Stable-Baselines3 and sb3-contrib
LEARNER_SETTINGS: dict[str, type[Settings]] = {
    "reinforce": PolicyGradientSettings,
    "actor_critic": ActorCriticSettings,
    **{name: ALGORITHM_SETTINGS[name] for name in STOCK},
}
