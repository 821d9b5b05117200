"""Typed settings of the algorithms of Stable-Baselines3 and sb3-contrib; names are theirs, and values where the
sentence says nothing else.

No torch, so that a configuration is checked without it.
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
    """What every algorithm shares. A phase's steps are decisions, of all environments together, rounded up to whole
    rollouts.
    """

    PHASE_KEYS: ClassVar[frozenset[str]] = frozenset()  # of the values that a study adds, those that a phase may change

    learning_rate: float = setting(3e-4, doc="of the optimiser, at the start of a phase", gt=0, le=10)
    learning_rate_schedule: Schedule = setting("constant", doc="`linear`: down to 0 at the end of the phase")
    gamma: float = setting(0.99, doc="discount of a reward for each decision that lies between", ge=0, le=1)
    net_arch: Layers = setting((64, 64), doc="hidden layers; without any the network is linear", unit="units")
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting("tanh", doc="after every hidden layer")
    reward_scale: float = setting(
        1.0, doc="factor on rewards while learning; curves show them without it", gt=0, le=LONGEST
    )
    environments: int = setting(1, doc="episodes that one process runs side by side", ge=1, le=MOST)
    device: Literal["auto", "cpu", "cuda"] = setting(
        "cpu",
        doc="what the networks learn on; without a CUDA device the processor, told in the log (auto: which is as "
        "well). Only the processor "
        "promises the same bytes",
        exclude_if=lambda device: (
            device == "cpu"
        ),  # so that the policies that there are keep the hash of their configuration
    )
    stop_after: int | None = setting(
        None,
        doc="a phase ends after so many validations in a row without a new best; null: where its steps do",
        unit="validations",
        ge=1,
        le=LONGEST,
        exclude_if=lambda validations: validations is None,  # as `device`
    )
    record_every: int = setting(
        1,
        doc="least distance of two points of the curves; they lie at the end of updates",
        unit="steps",
        ge=1,
        le=LONGEST,
    )
    save_every: int = setting(
        20_000,
        doc="least distance of two states that an interrupted job can go on from",
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
    """What PPO and A2C share: they learn from the decisions of the last rollout alone."""

    n_steps: int = setting(2048, doc="decisions of each environment in a rollout", unit="steps", ge=1, le=10_000_000)
    gae_lambda: float = setting(0.95, doc="weight of long returns in advantages (Schulman et al. 2016)", ge=0, le=1)
    ent_coef: float = setting(0.0, doc="weight of the policy's entropy in the loss", unit="1/nat", ge=0, le=1000)
    vf_coef: float = setting(0.5, doc="weight of the critic in the loss", ge=0, le=1000)
    max_grad_norm: float = setting(0.5, doc="gradients are cut to this norm", gt=0, le=LONGEST)
    normalize_advantage: bool = setting(True, doc="advantages of a gradient step get mean 0 and deviation 1")
    critic_net_arch: Layers | None = setting(None, doc="hidden layers of the critic; null: as `net_arch`", unit="units")
    ortho_init: bool = setting(True, doc="orthogonal first parameters, the last layer's small")
    acting: Literal["greedy", "sample"] = setting(
        "greedy", doc="the learned policy takes the most probable action, or draws"
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
        64, doc="decisions of a gradient step; divides n_steps x environments", ge=2, le=10_000_000
    )
    n_epochs: int = setting(10, doc="passes over a rollout", ge=1, le=MOST)
    clip_range: float = setting(
        0.2, doc="change of an action's probability, as a share, beyond which it is not pushed", gt=0, le=1000
    )
    clip_range_schedule: Schedule = setting("constant", doc="`linear`: down to 0 at the end of the phase")
    clip_range_vf: float | None = setting(
        None, doc="change of the critic beyond which it is not pushed; null: none", gt=0, le=LONGEST
    )
    target_kl: float | None = setting(
        None,
        doc="passes over a rollout end where the policy has moved by 1.5 times this; null: never",
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
    """PPO that leaves out invalid actions (Huang and Ontañón 2022); environments tell them by `action_masks()`."""


class A2CSettings(OnPolicySettings):
    """Advantage actor-critic (Mnih et al. 2016), synchronous: one gradient step a rollout."""

    learning_rate: float = setting(7e-4, doc="of the optimiser, at the start of a phase", gt=0, le=10)
    n_steps: int = setting(5, doc="decisions of each environment in a rollout", unit="steps", ge=1, le=10_000_000)
    gae_lambda: float = setting(1.0, doc="weight of long returns in advantages (Schulman et al. 2016)", ge=0, le=1)
    normalize_advantage: bool = setting(False, doc="advantages of a gradient step get mean 0 and deviation 1")
    use_rms_prop: bool = setting(True, doc="RMSprop, as published; otherwise Adam")
    rms_prop_eps: float = setting(1e-5, doc="added to RMSprop's denominator", gt=0, le=1)
    record_every: int = setting(
        500,
        doc="least distance of two points of the curves; they lie at the end of updates",
        unit="steps",
        ge=1,
        le=LONGEST,
    )


class OffPolicySettings(StockSettings):
    """What DQN and DDPG share: they learn from decisions drawn from a buffer, and act greedily once learned."""

    buffer_size: int = setting(
        50_000, doc="decisions kept, with both observations (theirs: 1,000,000)", ge=1, le=LARGEST_BUFFER
    )
    learning_starts: int = setting(
        100, doc="steps by random actions before the first gradient step", unit="steps", ge=0, le=LONGEST
    )
    tau: float = setting(1.0, doc="share of the parameters that the target network takes over at a time", gt=0, le=1)
    train_freq: int = setting(
        4, doc="decisions of each environment between gradient steps", unit="steps", ge=1, le=LONGEST
    )
    gradient_steps: int = setting(1, doc="gradient steps then; -1: as many as decisions were taken", ge=-1, le=LONGEST)
    batch_size: int = setting(32, doc="decisions of a gradient step", ge=1, le=10_000_000)
    n_steps: int = setting(1, doc="rewards summed before the critic is asked", unit="steps", ge=1, le=MOST)
    record_every: int = setting(
        500,
        doc="least distance of two points of the curves; they lie at the end of updates",
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
    """Deep Q-network (Mnih et al. 2015). It does not know masks while it learns; the learned policy keeps to them."""

    learning_rate: float = setting(1e-4, doc="of the optimiser, at the start of a phase", gt=0, le=10)
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting("relu", doc="after every hidden layer")
    target_update_interval: int = setting(
        10_000, doc="steps between two updates of the target network", unit="steps", ge=1, le=LONGEST
    )
    exploration_initial_eps: float = setting(1.0, doc="share of random actions at the start of a phase", ge=0, le=1)
    exploration_final_eps: float = setting(0.05, doc="share of random actions it falls to", ge=0, le=1)
    exploration_fraction: float = setting(0.1, doc="share of the phase over which it falls", gt=0, le=1)
    max_grad_norm: float = setting(10.0, doc="gradients are cut to this norm", gt=0, le=LONGEST)

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

    learning_rate: float = setting(1e-3, doc="of both optimisers, at the start of a phase", gt=0, le=10)
    net_arch: Layers = setting(
        (400, 300), doc="hidden layers of actor and critic; without any they are linear", unit="units"
    )
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting("relu", doc="after every hidden layer")
    tau: float = setting(0.005, doc="share of the parameters that the target networks take over at a time", gt=0, le=1)
    train_freq: int = setting(
        1, doc="decisions of each environment between gradient steps", unit="steps", ge=1, le=LONGEST
    )
    batch_size: int = setting(256, doc="decisions of a gradient step", ge=1, le=10_000_000)
    action_noise: float = setting(
        0.1, doc="deviation of the noise on actions while learning, in half ranges (theirs: none)", ge=0, le=10
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
    """Yield what `fixed_mistakes` finds for one of these learners; nothing for others."""
    if isinstance(learner, StockSettings):
        stock: Any = next(kind for kind in type(learner).__mro__ if kind in ALGORITHM_SETTINGS.values())
        fixed = FIXED | (type(learner).model_fields.keys() - stock.model_fields.keys() - learner.PHASE_KEYS)
        yield from fixed_mistakes(fixed, phases)
