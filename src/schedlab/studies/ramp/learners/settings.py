"""Typed settings of the learners of the ramp study; they do not import torch, so checks work without it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import LONGEST, MOST
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings
from schedlab.learning.stock.settings import WIDEST, A2CSettings, MaskablePPOSettings, StockSettings
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.scenario import LARGEST_DEGREE

Candidate = Literal["fixed", "table", "rollouts", "block_rollouts", "linear", "linear_rollouts", "network"]


class AfterstateSettings(Settings):
    """The learner `afterstate`, whose policy takes the action that leads to the state of the highest value.

    The steps of a phase are episodes decided by rollouts, which continue with a base policy: the fixed degree or table
    that blocks the fewest jobs. Values are fitted to the returns of rollouts.
    """

    candidates: tuple[Candidate, ...] = setting(
        ("linear", "network"),
        doc="what is tried; the best on validation is the policy. `fixed`: fixed degrees; `table`: tuned "
        "table; `rollouts` of a base policy at decision time; `block_rollouts`: the same, which also choose among the "
        "free blocks; `linear`, `network`: values fitted to "
        "rollouts; `linear_rollouts`: rollouts of the linear values at decision time",
        min_length=1,
    )
    degrees: tuple[int, ...] = setting(
        (2, 4, 6, 8, 16), doc="fixed degrees to try as base policies, if legal", min_length=1
    )
    tables: bool = setting(True, doc="also try tuned tables as base policies")
    tuning_episodes: int = setting(24, doc="training episodes for tuning tables", unit="episodes", ge=1, le=MOST)
    validation_episodes: int = setting(
        20, doc="validation episodes on which candidates are chosen", unit="episodes", ge=1, le=MOST
    )
    bases: int = setting(
        1,
        doc="number of base policies to whose rollouts values are fitted: those that blocked the fewest jobs "
        "in the comparison",
        ge=1,
        le=MOST,
    )
    trial_samples: int = setting(16, doc="samples per rollout when base policies are compared", ge=1, le=MOST)
    trial_episodes: int = setting(1, doc="episodes on which base policies are compared", unit="episodes", ge=1, le=MOST)
    samples: int = setting(64, doc="samples per rollout, the same for all actions", ge=1, le=MOST)
    horizon: int = setting(48, doc="arrivals in a rollout", unit="arrivals", ge=1, le=LARGEST_DEGREE)
    second_episodes: int = setting(
        0,
        doc="training episodes decided by rollouts that continue with the linear values; further networks are fitted "
        "to the returns of these rollouts, alone and together with the returns of the base policy's rollouts",
        unit="episodes",
        ge=0,
        le=MOST,
    )
    second_samples: int = setting(24, doc="samples per rollout of the linear values", ge=1, le=MOST)
    generations: int = setting(
        0, doc="generations of the evolution strategy over the linear weights, starting from the regression", ge=0
    )
    population: int = setting(14, doc="population of a generation", ge=4, le=MOST)
    episodes: int = setting(
        4, doc="episodes per generation, the same for the whole population", unit="episodes", ge=1, le=MOST
    )
    check_every: int = setting(10, doc="generations between validations", unit="generations", ge=1, le=LONGEST)
    step: float = setting(
        0.5, doc="initial step size of the evolution strategy, relative to the root mean square of the weights", gt=0
    )
    hidden: int = setting(96, doc="units of each of the two hidden layers", unit="units", ge=1, le=4096)
    epochs: int = setting(40, doc="passes over the decisions", ge=1, le=MOST)
    batch: int = setting(64, doc="mini-batch size of a gradient step, in decisions", ge=1, le=MOST)
    regret: float = setting(
        0.0,
        doc="weight of the expected regret of the softmax policy in the loss, applied after 30 % of the "
        "steps; the squared error has weight 1 - regret",
        ge=0,
        le=1,
    )
    fits: int = setting(
        1, doc="networks fitted to the same decisions; validation chooses one", unit="networks", ge=1, le=MOST
    )
    temperature: float = setting(0.1, doc="temperature of the softmax policy in the regret", unit="accepted jobs", gt=0)

    @model_validator(mode="after")
    def _rolls_out_something(self) -> AfterstateSettings:
        if self.second_episodes and not {"linear", "network"} <= set(self.candidates):
            raise ValueError(
                "second_episodes: candidates must hold linear, whose rollouts are meant, and network, which is fitted "
                "to them"
            )
        return self


class GraphNetworkSettings(Settings):
    """The network that reads a job's graph (learners/graph_network.py); sizes and defaults as published."""

    rounds: int = setting(2, doc="rounds of message passing", ge=1, le=16)
    message: int = setting(32, doc="size of a message, half from the op and half from the dep", ge=2, le=WIDEST)
    hidden: int = setting(64, doc="size of an op's embedding between rounds", ge=1, le=WIDEST)
    node_out: int = setting(
        16,
        doc="size of an op's embedding after the last round; the mean over ops represents the graph",
        ge=1,
        le=WIDEST,
    )
    graph_out: int = setting(8, doc="size of the embedding of job and cluster", ge=1, le=WIDEST)
    depth: int = setting(1, doc="linear layers of each module", ge=1, le=8)
    graph_activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting(
        "relu", doc="activation function after each linear layer"
    )
    norm: Literal["layer", "ops", "none"] = setting(
        "layer",
        doc="`layer`: layer-normalise the input of every module, as published (for a dep's two "
        "features, this keeps little more than their order); `ops`: only node features; `none`: no "
        "normalisation",
    )
    zero_sources: bool = setting(
        False, doc="an op without an incoming dep gets a zero embedding, as published, instead of its own message"
    )

    @model_validator(mode="after")
    def _halves(self) -> GraphNetworkSettings:
        if self.message % 2:
            raise ValueError(f"message: an even number, not {self.message}")
        return self


class SeenSettings(Settings):
    """Observation, reward and network of a learner."""

    environment: EnvironmentSettings = section(EnvironmentSettings, doc="observation and reward")
    network: Literal["layers", "graph"] = setting(
        "layers",
        doc="`layers`: only `net_arch`, for vector observations; `graph`: first message passing over "
        "the job's graph, for the observations `graph_id` and `published`",
    )
    graph: GraphNetworkSettings = section(GraphNetworkSettings, doc="settings of the network `graph`")

    @model_validator(mode="after")
    def _reads_what_is_seen(self) -> Self:
        kinds = ("graph_id", "published") if self.network == "graph" else ("vector", "durations")
        if self.environment.observation not in kinds:
            seen = self.environment.observation
            raise ValueError(
                f"environment.observation: the network {self.network} reads {' or '.join(kinds)}, not {seen}"
            )
        return self


class RampStockSettings(StockSettings, SeenSettings):
    """A stock learner of this study; the steps of a phase are decisions."""


class RampMaskablePPOSettings(RampStockSettings, MaskablePPOSettings):
    """Proximal policy optimisation over valid numbers of shards."""

    clone_episodes: int = setting(
        0,
        doc="training episodes of an expert that the initial policy imitates; 0: random initial parameters",
        ge=0,
        le=MOST,
    )
    clone_passes: int = setting(20, doc="passes over the imitated decisions", ge=1, le=MOST)
    clone_rate: float = setting(2e-3, doc="learning rate of the imitation, which falls to 0", gt=0, le=10)
    expert_episodes: int = setting(4, doc="training episodes decided by the expert's rollouts", ge=1, le=MOST)
    expert: AfterstateSettings = section(AfterstateSettings, doc="expert: a table, rollouts, or values of afterstates")


class RampA2CSettings(RampStockSettings, A2CSettings):
    """Advantage actor-critic, which ignores masks while it learns."""

    @model_validator(mode="after")
    def _rejects(self) -> RampA2CSettings:
        if self.environment.invalid != "reject":
            raise ValueError("environment.invalid: reject, for a2c takes actions that are not valid while it learns")
        return self


class RampDQNSettings(PrioritisedDQNSettings, SeenSettings):
    """The learner of PAC-ML; the steps of a phase are decisions."""

    @model_validator(mode="after")
    def _one_meaning(self) -> RampDQNSettings:
        if not self.keep_to_masks and self.environment.invalid != "reject":
            raise ValueError(
                "keep_to_masks: false takes invalid actions, and environment.invalid raises an error; set that to "
                "reject"
            )
        return self


STOCK_SETTINGS: dict[str, type[RampStockSettings]] = {"maskable_ppo": RampMaskablePPOSettings, "a2c": RampA2CSettings}
LEARNER_SETTINGS: dict[str, type[Settings]] = {
    "afterstate": AfterstateSettings,
    "prioritised_dqn": RampDQNSettings,
    **STOCK_SETTINGS,
}
