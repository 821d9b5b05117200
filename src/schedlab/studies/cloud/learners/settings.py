"""Typed settings of the learners; they do not import torch, so checks work without it."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import Settings, setting
from schedlab.config.settings import MOST
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS


class ReinforceSettings(Settings):
    """REINFORCE (Williams 1992) with one network per preference. A phase's steps are episodes per preference."""

    hidden: int = setting(64, doc="units of each of the two hidden layers (published: 256)", ge=1, le=4096)
    learning_rate: float = setting(
        3e-3, doc="learning rate of Adam, which falls to 0 during a phase (published: 3e-4)", gt=0, le=1
    )
    episodes_per_update: int = setting(64, doc="episodes per gradient step, run in parallel", ge=2, le=100_000)
    gamma: float = setting(
        1.0,
        doc="discount factor per interval; 1: the objective itself (published: .99); not used with `chebyshev`",
        ge=0,
        le=1,
    )
    scalarisation: Literal["sum", "chebyshev"] = setting(
        "sum",
        doc="objective of a preference: `sum`: weighted sum; `chebyshev`: the larger of two weighted "
        "distances, of the time from that of the fastest policy and of the cost from that of the cheapest policy, "
        "which are learned first (weights of time and cost only)",
    )
    multiplier_rate: float = setting(
        2.0, doc="step size of the constraints' multipliers after each update, per relative excess over a limit", ge=0
    )
    entropy: float = setting(
        0.3, doc="weight of the entropy bonus, which falls to 0 during a phase", unit="1/nat", ge=0, le=100
    )
    committed: float = setting(
        0.25,
        doc="share of parallel episodes that explore: they go to a random allocation within the limits and stay there",
        ge=0,
        lt=1,
    )
    initialisation: Literal["cold", "similar", "historical", "baseline"] = setting(
        "cold",
        doc="allocation to which half of the exploring episodes go: `cold`: random; `similar`: the one "
        "that the predictor of SLA-MORL's program derives from logs; `historical`, `baseline`: the "
        "best one by a model fitted to logs or to short probes",
    )
    warm_start: int = setting(
        100,
        doc="initial gradient steps that imitate an episode to the target of `initialisation`",
        ge=0,
        le=MOST,
    )
    imitated: int = setting(
        4,
        doc="number of best episodes seen that are imitated if the policy's episodes are worse; 0: none",
        ge=0,
        le=MOST,
    )
    imitations: int = setting(4, doc="gradient steps of imitation after each step of REINFORCE", ge=0, le=MOST)
    distilled: int = setting(
        0,
        doc="maximum gradient steps at the end of a phase that imitate the best episode seen, until the "
        "policy repeats it; keep 0 in noisy environments",
        ge=0,
        le=100_000,
    )
    shared: bool = setting(True, doc="`chebyshev`: good episodes of one preference are also imitated for others")
    branches: bool = setting(
        True,
        doc="`chebyshev`: half of the exploring episodes follow one of the best episodes and leave it in "
        "a random interval",
    )
    record_every: int = setting(10, doc="updates between points of the curves", ge=1, le=MOST)
    save_every: int = setting(100, doc="updates between saved states from which an interrupted job resumes", ge=1)


class ConstantSearchSettings(Settings):
    """A search for the best constant allocation of each preference by whole trainings of the job, without a model. A
    phase's steps are trainings (episodes) of each preference.
    """

    method: Literal["random", "bayesian"] = setting(
        "random",
        doc="next allocation to try: `random`; or `bayesian`: the largest expected improvement under a "
        "Gaussian process fitted to all trials",
    )
    first: int = setting(
        5, doc="`bayesian`: random allocations before the first model", unit="trainings", ge=1, le=1000
    )
    side_by_side: int = setting(
        64, doc="`random`: trainings that run in parallel between points of the curve", ge=1, le=100_000
    )


class MultiPolicySettings(Settings):
    """The multi-policy actor-critic (SLA-MORL). A phase's steps are episodes of each preference."""

    hidden: int = setting(64, doc="units of each of the two hidden layers (published: 256)", ge=1, le=4096)
    gamma: float = setting(
        1.0, doc="discount factor per interval; 1: the objective itself (published: .99)", ge=0, le=1
    )
    tau: float = setting(0.1, doc="soft-update coefficient of the target networks (published: .005)", gt=0, le=1)
    lr_actor: float = setting(
        1e-3, doc="learning rate of the actor, which falls to 0 during a phase (published: 3e-4)", gt=0, le=1
    )
    lr_critic: float = setting(3e-3, doc="learning rate of the critic (published: 3e-4)", gt=0, le=1)
    batch: int = setting(64, doc="mini-batch size of a gradient step, in decisions", ge=1, le=100_000)
    buffer: int = setting(20_000, doc="replay buffer of an agent, in decisions (published: 100000)", ge=1, le=1_000_000)
    entropy: float = setting(
        0.03,
        doc="weight of the entropy bonus, which falls to 0 during a phase (published: 0)",
        unit="1/nat",
        ge=0,
        le=100,
    )
    settle: int = setting(
        200, doc="gradient steps of a new critic before its actor is updated with it (published: 0)", ge=0, le=MOST
    )
    exploration_noise: float = setting(
        0.1, doc="standard deviation of the exploration noise on probabilities", ge=0, le=10
    )
    committed: float = setting(0.25, doc="share of parallel episodes that explore, as for `reinforce`", ge=0, lt=1)
    episodes_per_round: int = setting(16, doc="parallel episodes per round", ge=1, le=100_000)
    gradient_steps: int = setting(10, doc="gradient steps per round", ge=1, le=MOST)
    reset_interval: int = setting(1000, doc="gradient steps between possible resets of a critic (published: 200)", ge=1)
    reset_probability: float = setting(
        0.3,
        doc="probability of a reset, multiplied by 1 + 0.2 per severely violated service level; 0: never",
        ge=0,
        le=1,
    )
    policy_value: Literal["expected", "mixed"] = setting(
        "expected",
        doc="value of an actor's policy: expected action value, or the critic's value of the "
        "probabilities as an action (published)",
    )
    choice: Literal["preference", "violations", "sla_first", "balanced"] = setting(
        "preference",
        doc="agent that acts: `preference`: that of the user's preference; `violations`: the balanced one if "
        "more than two service levels are violated (published); `sla_first`: that of the first violated "
        "service level; `balanced`: always the balanced one",
    )
    record_every: int = setting(2, doc="rounds between points of the curves", ge=1, le=MOST)
    save_every: int = setting(50, doc="rounds between saved states from which an interrupted job resumes", ge=1)


PASSES, DROPOUT = 20, 0.1  # passes of Monte-Carlo dropout, and its probability (docs/reference/cloud_model.md)
STOCK = ("ppo", "maskable_ppo", "a2c", "dqn")  # learners of Stable-Baselines3 and sb3-contrib
LEARNERS = {
    "reinforce": "schedlab.studies.cloud.learners.reinforce:ReinforceLearner",
    "constant_search": "schedlab.studies.cloud.learners.search:ConstantSearch",
    "multi_policy": "schedlab.studies.cloud.learners.multi_policy:MultiPolicyLearner",
    **{name: f"schedlab.learning.stock.learner:LEARNERS[{name}]" for name in STOCK},
}
LEARNER_SETTINGS: dict[str, type[Settings]] = {
    "reinforce": ReinforceSettings,
    "constant_search": ConstantSearchSettings,
    "multi_policy": MultiPolicySettings,
    **{name: ALGORITHM_SETTINGS[name] for name in STOCK},
}
