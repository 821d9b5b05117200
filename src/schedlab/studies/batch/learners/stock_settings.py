"""Typed settings of the stock learners in the batch study; no torch, so that a configuration is checked without it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from schedlab.config.schema import Settings, section, setting
from schedlab.learning.stock.settings import (
    A2CSettings,
    DDPGSettings,
    DQNSettings,
    MaskablePPOSettings,
    PPOSettings,
    StockSettings,
)
from schedlab.studies.batch.env.settings import EnvironmentSettings

Network = Literal["kernel", "actor_kernel", "attention", "mlp_v1", "mlp_v2", "mlp_v3", "layers"]
Value = Literal["rows", "pooled", "small", "large", "deep"]
Slowdown = Annotated[float, Field(ge=0)]


class TrainingWindows(Settings):
    """Observations, rewards and training windows of a stock learner."""

    PHASE_KEYS: ClassVar[frozenset[str]] = frozenset(
        {"training_starts", "longest_window", "keep_windows", "keep_range", "keep_rule"}
    )

    environment: EnvironmentSettings = section(
        EnvironmentSettings,
        doc="observation and reward of the policy; overrides those of its scenarios",
    )
    training_starts: Literal["any", "apart"] = setting(
        "any", doc="start of an episode: at `any` training job, or at one of the disjoint windows"
    )
    longest_window: int | None = setting(
        None,
        doc="maximum length of training windows, drawn uniformly from `windows.length` of the scenario "
        "up to this; null: always `windows.length`",
        unit="jobs",
        ge=1,
        exclude_if=lambda longest: (
            longest is None
        ),  # so that the policies that there are keep the hash of their configuration
    )
    keep_windows: Literal["all", "range", "median"] = setting(
        "all",
        doc="training windows by their mean bounded slowdown under `keep_rule`: all; `range`: within "
        "`keep_range` (RLScheduler's code); `median`: above the median and at most twice the mean "
        "(its paper)",
    )
    keep_range: tuple[Slowdown, Slowdown] = setting((10.0, 150.0), doc="exclusive bounds of `keep_windows: range`")
    validate_by: Literal["reward", "bsld", "log_bsld"] = setting(
        "bsld",
        doc="score on validation windows: the reward, or the negated mean bounded slowdown, or its "
        "negated mean logarithm",
    )
    keep_rule: str = setting("sjf", doc="rule of `keep_windows`")

    @model_validator(mode="after")
    def _windows_apart_have_one_length(self) -> TrainingWindows:
        if self.training_starts == "apart" and self.longest_window is not None:
            raise ValueError("longest_window: longer windows share jobs; use training_starts: any")
        return self


class NetworkSettings(TrainingWindows):
    """The networks that score the rows of the queue and estimate its value (learners/networks.py)."""

    network: Network = setting(
        "kernel",
        doc="policy network: RLScheduler's kernel or its layered variants, the dissertation's kernel "
        "that also sees the machine, or attention over the queue; `layers`: `net_arch` and "
        "`critic_net_arch`",
    )
    value: Value = setting(
        "pooled",
        doc="value network: `rows` is RLScheduler's; `small`, `large`, `deep` are the dissertation's; "
        "ignored for `network: layers`",
    )

    @model_validator(mode="after")
    def _layers_count(self) -> NetworkSettings:
        fields, own = type(self).model_fields, ("net_arch", "critic_net_arch", "activation")
        stray = [key for key in own if key in fields and getattr(self, key) != fields[key].default]
        if self.network != "layers" and stray:
            raise ValueError(f"{stray[0]}: the network {self.network} has its own; use network: layers")
        return self


class CloneSettings(Settings):
    """Initial imitation of a rule."""

    clone_rule: str | None = setting(None, doc="rule that the initial policy imitates; null: random initial parameters")
    clone_windows: int = setting(20, doc="training windows that are imitated", unit="windows", ge=1, le=100_000)
    clone_passes: int = setting(10, doc="passes over the imitated decisions", ge=1, le=10_000)
    clone_rate: float = setting(3e-3, doc="learning rate of the imitation", gt=0, le=10)


class AdversarySettings(Settings):
    """A discriminator, trained on an expert's decisions, that gives a part of the reward (learners/adversary.py)."""

    expert_share: float = setting(
        0.0, doc="initial share of the reward from a discriminator trained on an expert's decisions", ge=0, le=1
    )
    expert_steps: int = setting(
        24_576, doc="decisions during which `expert_share` falls linearly to 0", unit="steps", ge=1
    )
    expert_rules: tuple[str, ...] = setting(
        ("sjf", "f1"), doc="rules; the best of them on a window is the expert for this window", min_length=1
    )
    expert_windows: int = setting(20, doc="training windows with expert decisions", unit="windows", ge=1, le=100_000)
    expert_rate: float = setting(1e-3, doc="learning rate of the discriminator", gt=0, le=10)


class BatchPPOSettings(NetworkSettings, PPOSettings):
    """Proximal policy optimisation over rows with a job."""


class BatchMaskablePPOSettings(NetworkSettings, CloneSettings, AdversarySettings, MaskablePPOSettings):
    """Proximal policy optimisation over the rows that the environment allows."""

    value_learning_rate: float | None = setting(
        None,
        doc="learning rate of the value network at the start of a phase; null: `learning_rate`; ignored "
        "for `network: layers`",
        gt=0,
        le=10,
    )

    @model_validator(mode="after")
    def _kernel_alone(self) -> BatchMaskablePPOSettings:
        if self.network == "layers" and (self.value_learning_rate is not None or self.clone_rule is not None):
            raise ValueError("network: layers has no value_learning_rate and no clone_rule")
        return self


class BatchA2CSettings(NetworkSettings, A2CSettings):
    """Advantage actor-critic over rows with a job."""


class BatchDQNSettings(TrainingWindows, DQNSettings):
    """Deep Q-network on the whole observation. If it chooses a row without a job while learning, the environment takes
    another row instead.
    """


class BatchDDPGSettings(TrainingWindows, DDPGSettings):
    """Deep deterministic policy gradient; an action is the weights of a linear priority, chosen at each
    decision.
    """


STOCK_SETTINGS: dict[str, type[StockSettings]] = {
    "ppo": BatchPPOSettings,
    "maskable_ppo": BatchMaskablePPOSettings,
    "a2c": BatchA2CSettings,
    "dqn": BatchDQNSettings,
    "ddpg": BatchDDPGSettings,
}
