"""Typed settings of the learners of the ramp study; no torch, so that a configuration is checked without it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import LONGEST, MOST
from schedlab.learning.prioritised_dqn.settings import PrioritisedDQNSettings
from schedlab.learning.stock.settings import WIDEST, A2CSettings, MaskablePPOSettings, StockSettings
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.scenario import LARGEST_DEGREE

Candidate = Literal["fixed", "table", "rollouts", "linear", "linear_rollouts", "network"]


class AfterstateSettings(Settings):
    """Scores a decision by the cluster's value after it. A phase's steps are episodes that rollouts decide.

    Rollouts go on with a base, the degree or table that blocks least; values are fitted to what they return.
    """

    candidates: tuple[Candidate, ...] = setting(
        ("linear", "network"),
        doc="what is kept is the best of these on validation: fixed degrees; table: tuned; rollouts: at decision "
        "time, of a base; linear, network: values fitted to rollouts; linear_rollouts: rollouts at decision time, of "
        "the linear values",
        min_length=1,
    )
    degrees: tuple[int, ...] = setting(
        (2, 4, 6, 8, 16), doc="fixed degrees that are tried as base, where they are legal", min_length=1
    )
    tables: bool = setting(True, doc="tuned tables are tried as base as well")
    tuning_episodes: int = setting(24, doc="episodes that tables are tuned on", unit="episodes", ge=1, le=MOST)
    validation_episodes: int = setting(20, doc="episodes that candidates are chosen on", unit="episodes", ge=1, le=MOST)
    bases: int = setting(1, doc="bases, those that block least on trial, that values are fitted on", ge=1, le=MOST)
    trial_samples: int = setting(16, doc="samples of a rollout where bases are compared", ge=1, le=MOST)
    trial_episodes: int = setting(1, doc="episodes on which bases are compared", unit="episodes", ge=1, le=MOST)
    samples: int = setting(64, doc="samples of a rollout, the same for all actions", ge=1, le=MOST)
    horizon: int = setting(48, doc="arrivals that a rollout sees", unit="arrivals", ge=1, le=LARGEST_DEGREE)
    second_episodes: int = setting(
        0,
        doc="training episodes that rollouts of the linear values decide; further networks are fitted to what these "
        "return, alone and with the rollouts of the base",
        unit="episodes",
        ge=0,
        le=MOST,
    )
    second_samples: int = setting(24, doc="samples of these rollouts", ge=1, le=MOST)
    generations: int = setting(
        0, doc="generations of the evolution strategy over the linear weights, started at the regression", ge=0
    )
    population: int = setting(14, doc="points of a generation", ge=4, le=MOST)
    episodes: int = setting(4, doc="episodes of a generation, the same for all points", unit="episodes", ge=1, le=MOST)
    check_every: int = setting(10, doc="generations between two validations", unit="generations", ge=1, le=LONGEST)
    step: float = setting(
        0.5, doc="first step of the evolution strategy, over the root mean square of the weights", gt=0
    )
    hidden: int = setting(96, doc="units of each of the two hidden layers", unit="units", ge=1, le=4096)
    epochs: int = setting(40, doc="passes over the decisions", ge=1, le=MOST)
    batch: int = setting(64, doc="decisions of a gradient step", ge=1, le=MOST)
    regret: float = setting(
        0.0,
        doc="weight, in a network's loss, of what its softmax choice returns less than the best action, after the "
        "first three tenths of the steps; squared errors have the rest",
        ge=0,
        le=1,
    )
    fits: int = setting(
        1, doc="networks that are fitted to the same decisions; validation keeps one", unit="networks", ge=1, le=MOST
    )
    temperature: float = setting(0.1, doc="temperature of that choice", unit="accepted jobs", gt=0)

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

    rounds: int = setting(2, doc="rounds of messages", ge=1, le=16)
    message: int = setting(
        32, doc="numbers of a message, half of them from the op and half from the dep", ge=2, le=WIDEST
    )
    hidden: int = setting(64, doc="numbers of an op between rounds", ge=1, le=WIDEST)
    node_out: int = setting(16, doc="numbers of an op after the last round; their mean is the graph's", ge=1, le=WIDEST)
    graph_out: int = setting(8, doc="numbers that the vector of job and cluster becomes", ge=1, le=WIDEST)
    depth: int = setting(1, doc="linear maps of each part", ge=1, le=8)
    graph_activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting(
        "relu", doc="after each linear map"
    )
    norm: Literal["layer", "ops", "none"] = setting(
        "layer",
        doc="layer: what a part reads is normalised over its features, as published, which leaves of a dep's two "
        "hardly more than which is larger; ops: the same, but deps are read as they are; none: all is read as it is",
    )
    zero_sources: bool = setting(
        False, doc="as published: an op without an incoming dep becomes zeros, and not its own message"
    )

    @model_validator(mode="after")
    def _halves(self) -> GraphNetworkSettings:
        if self.message % 2:
            raise ValueError(f"message: an even number, not {self.message}")
        return self


class SeenSettings(Settings):
    """What a network sees and is rewarded with, and what reads it."""

    environment: EnvironmentSettings = section(EnvironmentSettings, doc="what is seen and rewarded")
    network: Literal["layers", "graph"] = setting(
        "layers",
        doc="layers: net_arch alone, on a vector; graph: messages over the job's graph first, on graph_id or published",
    )
    graph: GraphNetworkSettings = section(GraphNetworkSettings, doc="the network graph")

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
    """A stock learner of this study; a phase's steps are decisions."""


class RampMaskablePPOSettings(RampStockSettings, MaskablePPOSettings):
    """Proximal policy optimisation that keeps to valid numbers of shards."""

    clone_episodes: int = setting(
        0,
        doc="training episodes whose decisions by an expert are shown first; 0: the seed gives the first parameters",
        ge=0,
        le=MOST,
    )
    clone_passes: int = setting(20, doc="passes over these decisions", ge=1, le=MOST)
    clone_rate: float = setting(2e-3, doc="learning rate of these passes, falling to 0", gt=0, le=10)
    expert_episodes: int = setting(4, doc="training episodes that the expert's rollouts decide", ge=1, le=MOST)
    expert: AfterstateSettings = section(
        AfterstateSettings, doc="the expert: a table, rollouts or values of the cluster after a decision"
    )


class RampA2CSettings(RampStockSettings, A2CSettings):
    """Advantage actor-critic; it knows no masks while it learns."""

    @model_validator(mode="after")
    def _rejects(self) -> RampA2CSettings:
        if self.environment.invalid != "reject":
            raise ValueError("environment.invalid: reject, for a2c takes actions that are not valid while it learns")
        return self


class RampDQNSettings(PrioritisedDQNSettings, SeenSettings):
    """The paper's learner; a phase's steps are decisions."""

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
