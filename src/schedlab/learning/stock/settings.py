"""Typed settings of the algorithms of Stable-Baselines3 and sb3-contrib.

Names and defaults are those of Stable-Baselines3, unless a description states another default.

This module does not import torch, so that a configuration can be checked without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting
from schedlab.config.settings import LONGEST, MOST, PhaseSettings
from schedlab.learning.settings import ValidationSettings, fixed_mistakes

WIDEST = 4096  # units of a layer
LARGEST_BUFFER = 10_000_000  # transitions
Layers = Annotated[tuple[Annotated[int, Field(ge=1, le=WIDEST)], ...], Field(max_length=16)]
Schedule = Literal["constant", "linear"]


class StockSettings(ValidationSettings):
    """Settings of every algorithm. A phase's steps are decisions of all environments together, rounded up to whole
    rollouts.
    """

    PHASE_KEYS: ClassVar[frozenset[str]] = frozenset()  # added keys of a study that a phase may change

    learning_rate: float = setting(3e-4, doc="learning rate at the start of a phase", gt=0, le=10)
    learning_rate_schedule: Schedule = setting("constant", doc="`linear`: falls to 0 at the end of the phase")
    gamma: float = setting(0.99, doc="discount factor per decision", ge=0, le=1)
    net_arch: Layers = setting((64, 64), doc="hidden layers; an empty list gives a linear network", unit="units")
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting(
        "tanh", doc="activation function of every hidden layer"
    )
    reward_scale: float = setting(
        1.0, doc="factor on the rewards that the learner sees; curves show unscaled rewards", gt=0, le=LONGEST
    )
    environments: int = setting(1, doc="environments that one process steps in parallel", ge=1, le=MOST)
    device: Literal["auto", "cpu", "cuda"] = setting(
        "cpu",
        doc="device for training. `cuda`: GPU, with a warning in the log and the CPU if there is none; "
        "`auto`: GPU if there is one. Only the CPU gives reproducible bytes",
        exclude_if=lambda device: (
            device == "cpu"
        ),  # so that already existing policies keep the hash of their configuration
    )
    stop_after: int | None = setting(
        None,
        doc="a phase ends after this many consecutive validations without improvement; null: never early",
        unit="validations",
        ge=1,
        le=LONGEST,
        exclude_if=lambda validations: validations is None,  # as `device`
    )
    record_every: int = setting(
        1,
        doc="minimum distance between points of the curves, which lie at the end of updates",
        unit="steps",
        ge=1,
        le=LONGEST,
    )
    save_every: int = setting(
        20_000,
        doc="minimum distance between saved states from which an interrupted job resumes",
        unit="steps",
        ge=1,
        le=LONGEST,
    )

    @model_validator(mode="after")
    def _check_stop(self) -> StockSettings:
        if self.stop_after is not None and not self.validate_every:
            raise ValueError("stop_after: nothing is validated; set validate_every")
        return self


class OnPolicySettings(StockSettings):
    """Settings of PPO and A2C, which learn from the last rollout."""

    n_steps: int = setting(2048, doc="decisions per environment in a rollout", unit="steps", ge=1, le=10_000_000)
    gae_lambda: float = setting(
        0.95, doc="lambda of generalised advantage estimation (Schulman et al. 2016)", ge=0, le=1
    )
    ent_coef: float = setting(0.0, doc="weight of the entropy bonus in the loss", unit="1/nat", ge=0, le=1000)
    vf_coef: float = setting(0.5, doc="weight of the value loss", ge=0, le=1000)
    max_grad_norm: float = setting(0.5, doc="maximum norm of gradients, which are clipped", gt=0, le=LONGEST)
    normalize_advantage: bool = setting(
        True, doc="normalise the advantages of a mini-batch to mean 0 and standard deviation 1"
    )
    critic_net_arch: Layers | None = setting(
        None, doc="hidden layers of the critic; null: the same as `net_arch`", unit="units"
    )
    ortho_init: bool = setting(True, doc="orthogonal initialisation, with a small gain in the last layer")
    acting: Literal["greedy", "sample"] = setting(
        "greedy", doc="`greedy`: the learned policy takes the most probable action; `sample`: it draws one"
    )

    @model_validator(mode="after")
    def _check_rollout(self) -> OnPolicySettings:
        if self.normalize_advantage and self.n_steps * self.environments < 2:
            raise ValueError(
                "n_steps: a rollout of one decision has no deviation; normalize_advantage: false, or a longer one"
            )
        return self


class PPOSettings(OnPolicySettings):
    """Proximal policy optimisation (Schulman et al. 2017)."""

    batch_size: int = setting(
        64, doc="mini-batch size in decisions; must divide n_steps x environments", ge=2, le=10_000_000
    )
    n_epochs: int = setting(10, doc="passes (epochs) over each rollout", ge=1, le=MOST)
    clip_range: float = setting(0.2, doc="clipping range of the probability ratio", gt=0, le=1000)
    clip_range_schedule: Schedule = setting("constant", doc="`linear`: falls to 0 at the end of the phase")
    clip_range_vf: float | None = setting(
        None, doc="clipping range of the value function; null: no clipping", gt=0, le=LONGEST
    )
    target_kl: float | None = setting(
        None,
        doc="stop the passes over a rollout when the KL divergence exceeds 1.5 times this; null: never",
        unit="nat",
        gt=0,
        le=1000,
    )

    @model_validator(mode="after")
    def _check_batches(self) -> PPOSettings:
        if (self.n_steps * self.environments) % self.batch_size:
            rollout = f"n_steps x environments = {self.n_steps} x {self.environments}"
            raise ValueError(f"batch_size: {self.batch_size} does not divide {rollout}")
        return self


class MaskablePPOSettings(PPOSettings):
    """PPO with masks of invalid actions (Huang and Ontañón 2022), which the environment's `action_masks()` returns."""


class A2CSettings(OnPolicySettings):
    """Advantage actor-critic (Mnih et al. 2016), synchronous: one gradient step per rollout."""

    learning_rate: float = setting(7e-4, doc="learning rate at the start of a phase", gt=0, le=10)
    n_steps: int = setting(5, doc="decisions per environment in a rollout", unit="steps", ge=1, le=10_000_000)
    gae_lambda: float = setting(
        1.0, doc="lambda of generalised advantage estimation (Schulman et al. 2016)", ge=0, le=1
    )
    normalize_advantage: bool = setting(
        False, doc="normalise the advantages of a mini-batch to mean 0 and standard deviation 1"
    )
    use_rms_prop: bool = setting(True, doc="use RMSprop, as in the A2C paper; false: Adam")
    rms_prop_eps: float = setting(1e-5, doc="added to RMSprop's denominator", gt=0, le=1)
    record_every: int = setting(
        500,
        doc="minimum distance between points of the curves, which lie at the end of updates",
        unit="steps",
        ge=1,
        le=LONGEST,
    )


class OffPolicySettings(StockSettings):
    """Settings of DQN and DDPG, which learn from a replay buffer; the learned policy acts greedily."""

    buffer_size: int = setting(
        50_000,
        doc="capacity of the replay buffer, in decisions (Stable-Baselines3: 1,000,000)",
        ge=1,
        le=LARGEST_BUFFER,
    )
    learning_starts: int = setting(
        100, doc="steps with random actions before the first gradient step", unit="steps", ge=0, le=LONGEST
    )
    tau: float = setting(1.0, doc="soft-update coefficient of the target network; 1: a copy", gt=0, le=1)
    train_freq: int = setting(4, doc="decisions per environment between gradient steps", unit="steps", ge=1, le=LONGEST)
    gradient_steps: int = setting(1, doc="gradient steps each time; -1: one for each decision taken", ge=-1, le=LONGEST)
    batch_size: int = setting(32, doc="mini-batch size of a gradient step, in decisions", ge=1, le=10_000_000)
    n_steps: int = setting(
        1, doc="rewards of an n-step return before the critic's value is added", unit="steps", ge=1, le=MOST
    )
    record_every: int = setting(
        500,
        doc="minimum distance between points of the curves, which lie at the end of updates",
        unit="steps",
        ge=1,
        le=LONGEST,
    )

    @model_validator(mode="after")
    def _check_buffer(self) -> OffPolicySettings:
        if self.gradient_steps == 0:
            raise ValueError("gradient_steps: 0 learns nothing")
        if self.buffer_size < self.environments:
            raise ValueError(
                f"buffer_size: {self.buffer_size} is less than one decision for each of {self.environments} "
                "environments"
            )
        return self


class DQNSettings(OffPolicySettings):
    """Deep Q-network (Mnih et al. 2015). It ignores masks while it learns; the learned policy respects them."""

    learning_rate: float = setting(1e-4, doc="learning rate at the start of a phase", gt=0, le=10)
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting(
        "relu", doc="activation function of every hidden layer"
    )
    target_update_interval: int = setting(
        10_000, doc="decisions between updates of the target network", unit="steps", ge=1, le=LONGEST
    )
    exploration_initial_eps: float = setting(1.0, doc="share of random actions at the start of a phase", ge=0, le=1)
    exploration_final_eps: float = setting(0.05, doc="final share of random actions", ge=0, le=1)
    exploration_fraction: float = setting(
        0.1, doc="share of the phase during which the share of random actions falls", gt=0, le=1
    )
    max_grad_norm: float = setting(10.0, doc="maximum norm of gradients, which are clipped", gt=0, le=LONGEST)

    @model_validator(mode="after")
    def _check_target(self) -> DQNSettings:
        if self.target_update_interval < self.environments:
            raise ValueError(
                f"target_update_interval: {self.target_update_interval} is less than the {self.environments} "
                "environments"
            )
        return self


class DDPGSettings(OffPolicySettings):
    """Deep deterministic policy gradient (Lillicrap et al. 2016), for actions that are vectors."""

    learning_rate: float = setting(1e-3, doc="learning rate of actor and critic at the start of a phase", gt=0, le=10)
    net_arch: Layers = setting(
        (400, 300), doc="hidden layers of actor and critic; an empty list makes them linear", unit="units"
    )
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting(
        "relu", doc="activation function of every hidden layer"
    )
    tau: float = setting(0.005, doc="soft-update coefficient of the target networks", gt=0, le=1)
    train_freq: int = setting(1, doc="decisions per environment between gradient steps", unit="steps", ge=1, le=LONGEST)
    batch_size: int = setting(256, doc="mini-batch size of a gradient step, in decisions", ge=1, le=10_000_000)
    action_noise: float = setting(
        0.1,
        doc="standard deviation of the exploration noise, in half ranges of the action (Stable-Baselines3: none)",
        ge=0,
        le=10,
    )


ALGORITHM_SETTINGS: dict[str, type[StockSettings]] = {
    "ppo": PPOSettings,
    "maskable_ppo": MaskablePPOSettings,
    "a2c": A2CSettings,
    "dqn": DQNSettings,
    "ddpg": DDPGSettings,
}
FIXED = frozenset(
    {"net_arch", "critic_net_arch", "activation", "ortho_init", "acting", "device"}
)  # the same in all phases


def phase_mistakes(learner: Settings, phases: Sequence[Phase | PhaseSettings]) -> Iterator[UserError]:
    """Yield the mistakes that `fixed_mistakes` finds for one of these learners; nothing for others."""
    if isinstance(learner, StockSettings):
        stock: Any = next(kind for kind in type(learner).__mro__ if kind in ALGORITHM_SETTINGS.values())
        fixed = FIXED | (type(learner).model_fields.keys() - stock.model_fields.keys() - learner.PHASE_KEYS)
        yield from fixed_mistakes(fixed, phases)
