"""Typed settings of the learners of the ramp study; no torch, so that a configuration is checked without it."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import LONGEST, MOST
from schedlab.learning.stable_baselines_settings import MaskablePPOSettings, StockSettings
from schedlab.studies.ramp.environment_settings import EnvironmentSettings
from schedlab.studies.ramp.settings import LARGEST_DEGREE

Candidate = Literal["fixed", "table", "rollouts", "linear", "network"]


class AfterstateSettings(Settings):
    """Scores a decision by the value of the cluster after it. A phase's steps are training episodes that rollouts decide.

    Rollouts go on with a base, the fixed degree or tuned table under which they block least; values are fitted to what they return.
    """

    candidates: tuple[Candidate, ...] = setting(
        ("linear", "network"),
        doc="what is kept is the best of these on validation: fixed degrees; table: tuned; rollouts: at decision time; linear, network: "
        "values fitted to rollouts",
        min_length=1,
    )
    degrees: tuple[int, ...] = setting((2, 4, 6, 8, 16), doc="fixed degrees that are tried as base, where they are legal", min_length=1)
    tables: bool = setting(True, doc="tuned tables are tried as base as well")
    tuning_episodes: int = setting(24, doc="episodes that tables are tuned on", unit="episodes", ge=1, le=MOST)
    validation_episodes: int = setting(20, doc="episodes that candidates are chosen on", unit="episodes", ge=1, le=MOST)
    bases: int = setting(1, doc="bases, those that block least on trial, that values are fitted on", ge=1, le=MOST)
    trial_samples: int = setting(16, doc="samples of a rollout where bases are compared", ge=1, le=MOST)
    trial_episodes: int = setting(1, doc="episodes on which bases are compared", unit="episodes", ge=1, le=MOST)
    samples: int = setting(64, doc="samples of a rollout, the same for all actions", ge=1, le=MOST)
    horizon: int = setting(48, doc="arrivals that a rollout sees", unit="arrivals", ge=1, le=LARGEST_DEGREE)
    generations: int = setting(0, doc="generations of the evolution strategy over the linear weights, started at the regression", ge=0)
    population: int = setting(14, doc="points of a generation", ge=4, le=MOST)
    episodes: int = setting(4, doc="episodes of a generation, the same for all points", unit="episodes", ge=1, le=MOST)
    check_every: int = setting(10, doc="generations between two validations", unit="generations", ge=1, le=LONGEST)
    step: float = setting(0.5, doc="first step of the evolution strategy, over the root mean square of the weights", gt=0)
    hidden: int = setting(96, doc="units of each of the two hidden layers", unit="units", ge=1, le=4096)
    epochs: int = setting(40, doc="passes over the decisions", ge=1, le=MOST)


class RampStockSettings(StockSettings):
    """What stock learners see and are rewarded with; a phase's steps are decisions."""

    environment: EnvironmentSettings = section(EnvironmentSettings, doc="what is seen and rewarded; observation: vector")

    @model_validator(mode="after")
    def _vector_alone(self) -> RampStockSettings:
        if self.environment.observation != "vector":
            raise ValueError(f"environment.observation: stock networks read a vector, not {self.environment.observation}")
        return self


class RampMaskablePPOSettings(RampStockSettings, MaskablePPOSettings):
    """Proximal policy optimisation that keeps to valid numbers of shards."""


STOCK_SETTINGS: dict[str, type[RampStockSettings]] = {"maskable_ppo": RampMaskablePPOSettings}
LEARNER_SETTINGS: dict[str, type[Settings]] = {"afterstate": AfterstateSettings, **STOCK_SETTINGS}
