"""Typed settings of the learners; no torch, so that a configuration is checked without it."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import Settings, setting
from schedlab.config.settings import MOST
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS


class ReinforceSettings(Settings):
    """REINFORCE (Williams 1992), a network for each preference. A phase's steps are episodes of each preference."""

    hidden: int = setting(64, doc="units of both hidden layers (published: 256)", ge=1, le=4096)
    learning_rate: float = setting(3e-3, doc="of Adam, falling to 0 over a phase (published: 3e-4)", gt=0, le=1)
    episodes_per_update: int = setting(64, doc="episodes of a gradient step, run side by side", ge=2, le=100_000)
    gamma: float = setting(
        1.0,
        doc="discount of an interval's reward; 1: what the objective adds up (published: .99); distances have none",
        ge=0,
        le=1,
    )
    scalarisation: Literal["sum", "chebyshev"] = setting(
        "sum",
        doc="what is learned for a preference: its weighted sum; or the larger of its weighted distances in time "
        "and in cost from the "
        "policies for each alone, which are learned first (weights of time and cost only)",
    )
    entropy: float = setting(
        0.3, doc="weight of the policy's entropy, falling to 0 over a phase", unit="1/nat", ge=0, le=100
    )
    committed: float = setting(
        0.25,
        doc="share of the episodes side by side that explore: they go to an allocation drawn from the limits, and stay",
        ge=0,
        lt=1,
    )
    initialisation: Literal["cold", "similar", "historical", "baseline"] = setting(
        "cold",
        doc="where half of the committed episodes go: anywhere; what the published predictor takes from logs; "
        "the best by a model of logs, "
        "or of short probes",
    )
    warm_start: int = setting(
        100,
        doc="gradient steps that imitate an episode to where `initialisation` points, before anything else is learned",
        ge=0,
        le=MOST,
    )
    imitated: int = setting(
        4, doc="best episodes seen that are imitated where the policy's own reach less; 0: none", ge=0, le=MOST
    )
    imitations: int = setting(4, doc="gradient steps of imitation after each of REINFORCE", ge=0, le=MOST)
    distilled: int = setting(
        0,
        doc="most gradient steps at the end of a phase that imitate the best episode seen alone, until the "
        "policy takes its actions "
        "(where noise is luck, leave it 0)",
        ge=0,
        le=100_000,
    )
    shared: bool = setting(True, doc="`chebyshev`: episodes of one preference are offered to the others")
    branches: bool = setting(
        True,
        doc="`chebyshev`: half of the committed episodes follow one of the best seen and leave it in a drawn interval",
    )
    record_every: int = setting(10, doc="updates between two points of the curves", ge=1, le=MOST)
    save_every: int = setting(100, doc="updates between two states that an interrupted job can go on from", ge=1)


class ConstantSearchSettings(Settings):
    """A search for the best constant allocation of each preference by whole trainings of the job, no model given. A
    phase's steps are trainings (episodes) of each preference.
    """

    method: Literal["random", "bayesian"] = setting(
        "random",
        doc="which allocation is tried next: a drawn one; or that of the largest expected improvement by a Gaussian "
        "process of all that were tried",
    )
    first: int = setting(5, doc="`bayesian`: drawn allocations before the first model", unit="trainings", ge=1, le=1000)
    side_by_side: int = setting(
        64, doc="`random`: trainings that run side by side, between two points of the curve", ge=1, le=100_000
    )


class MultiPolicySettings(Settings):
    """The multi-policy actor-critic (SLA-MORL). A phase's steps are episodes of each preference."""

    hidden: int = setting(64, doc="units of both hidden layers (published: 256)", ge=1, le=4096)
    gamma: float = setting(
        1.0, doc="discount of an interval's reward; 1: what the objective adds up (published: .99)", ge=0, le=1
    )
    tau: float = setting(
        0.1, doc="share of the networks that the targets take over at a gradient step (published: .005)", gt=0, le=1
    )
    lr_actor: float = setting(
        1e-3, doc="learning rate of the actor, falling to 0 over a phase (published: 3e-4)", gt=0, le=1
    )
    lr_critic: float = setting(3e-3, doc="learning rate of the critic (published: 3e-4)", gt=0, le=1)
    batch: int = setting(64, doc="decisions of a gradient step", ge=1, le=100_000)
    buffer: int = setting(20_000, doc="decisions that an agent remembers (published: 100000)", ge=1, le=1_000_000)
    entropy: float = setting(
        0.03, doc="weight of an actor's entropy, falling to 0 over a phase (published: 0)", unit="1/nat", ge=0, le=100
    )
    settle: int = setting(
        200, doc="gradient steps that a new critic learns before its actor follows it (published: 0)", ge=0, le=MOST
    )
    exploration_noise: float = setting(
        0.1, doc="standard deviation of the noise on probabilities when actions are chosen", ge=0, le=10
    )
    committed: float = setting(
        0.25, doc="share of the episodes side by side that explore, as of `reinforce`", ge=0, lt=1
    )
    episodes_per_round: int = setting(16, doc="episodes side by side before gradient steps", ge=1, le=100_000)
    gradient_steps: int = setting(10, doc="gradient steps after each round", ge=1, le=MOST)
    reset_interval: int = setting(
        1000, doc="gradient steps between two chances of a critic to be drawn anew (published: 200)", ge=1
    )
    reset_probability: float = setting(
        0.3, doc="of a reset, times 1 + 0.2 for each severely violated item; 0: never", ge=0, le=1
    )
    policy_value: Literal["expected", "mixed"] = setting(
        "expected",
        doc="value of an actor's choice: mean of the actions' values, or of the probabilities fed as an action "
        "(published)",
    )
    choice: Literal["preference", "violations", "sla_first", "balanced"] = setting(
        "preference",
        doc="who acts: the user's agent; balanced where over 2 items are violated (published); what is violated "
        "first; or balanced",
    )
    record_every: int = setting(2, doc="rounds between two points of the curves", ge=1, le=MOST)
    save_every: int = setting(50, doc="rounds between two states that an interrupted job can go on from", ge=1)


PASSES, DROPOUT = 20, 0.1  # of Monte-Carlo dropout (specification, A9)
STOCK = ("ppo", "maskable_ppo", "a2c", "dqn")  # of Stable-Baselines3 and sb3-contrib
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
