"""Typed settings of the learners; no torch, so that a configuration is checked without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, Settings, setting
from schedlab.config.settings import LONGEST, PhaseSettings
from schedlab.learning.settings import fixed_mistakes
from schedlab.studies.adaptation.learners.encoders import SHIPPED_VOCABULARY

WIDEST = 4096  # largest size of a layer of the policy network


class NetworkSettings(Settings):
    """Input and size of the policy network.

    The published network has `encoder: vocab`, `head: fixed`, `time_code: sine`, `embedding: 16`, `recurrent: 50`,
    `code: 16` and `linear: 128`.
    """

    encoder: Literal["features", "vocab"] = setting(
        "features",
        doc="input of the policy network: `features` of each layer, or `vocab`: words with a frozen random embedding",
    )
    head: Literal["blocks", "fixed"] = setting(
        "blocks",
        doc="output: `blocks`: one score for each growth action and one for doing nothing; `fixed`: a fixed "
        "number of scores",
    )
    time_code: Literal["sine_cosine", "sine"] = setting(
        "sine_cosine", doc="code of the share of time left; `sine` is the published one"
    )
    frequencies: int = setting(4, doc="number of frequencies of the time code", gt=0, le=64)
    slope: bool = setting(
        False, doc="also observe the slope of the validation accuracy; scenarios then need `curves: true`"
    )
    vocabulary: str = setting(SHIPPED_VOCABULARY, doc="file of the vocabulary (encoder: vocab)")
    embedding: int = setting(16, doc="numbers of an embedded layer (encoder: vocab)", gt=0, le=WIDEST)
    recurrent: int = setting(
        50, doc="cells of the recurrent network over layers, in each direction (encoder: vocab)", gt=0, le=WIDEST
    )
    code: int = setting(24, doc="size of the code of a model", gt=0, le=WIDEST)
    linear: int = setting(64, doc="units of each of the two layers of the head", gt=0, le=WIDEST)


class ExactSettings(NetworkSettings):
    """The exact learner; a phase's steps are its maximum number of updates."""

    learning_rate: float = setting(0.01, doc="Adam's learning rate", gt=0, le=10)
    entropy: float = setting(
        1.0, doc="initial weight of the entropy, in units of the reward's spread; larger values explore longer", ge=0
    )
    entropy_decay: float = setting(0.97, doc="factor on the entropy weight after each update", ge=0, le=1)
    settle: float = setting(
        0.02, doc="below this entropy weight, updates increase the probability of the best sequence directly", ge=0
    )
    confidence: float = setting(
        0.9, doc="learning stops when each best sequence is chosen with at least this probability", gt=0, le=1
    )
    record_every: int = setting(5, doc="updates between points of the curves", gt=0, le=LONGEST)


class ReinforceSettings(NetworkSettings):
    """REINFORCE on sampled episodes, which are a phase's steps. Published values are in brackets."""

    returns: Literal["plain", "tangent"] = setting(
        "plain", doc="reward of an episode: the table's value, or 100 tan(accuracy pi / 2) [published]"
    )
    baseline: Literal["moving", "none"] = setting(
        "moving", doc="baseline subtracted from rewards: the scenario's moving mean, or none [published]"
    )
    normalise: bool = setting(True, doc="divide the advantages of an update by their root mean square [no]")
    entropy: float = setting(0.1, doc="weight of the entropy bonus [0]", ge=0)
    temperature: float = setting(1.0, doc="temperature at the start of a phase", ge=1, le=1e9)
    temperature_on: Literal["logits", "probabilities"] = setting(
        "logits", doc="what the temperature divides: logits, or probabilities [published], which become nearly uniform"
    )
    temperature_factor: float = setting(0.9, doc="factor on the temperature, which falls to 1", gt=0, le=1)
    temperature_every: int = setting(
        500, doc="episodes between two reductions of the temperature [1]", unit="episodes", gt=0, le=LONGEST
    )
    episodes_per_update: int = setting(64, doc="episodes per gradient step [1]", unit="episodes", gt=0, le=LONGEST)
    learning_rate: float = setting(3e-3, doc="Adam's learning rate at the start of a phase [1e-4]", gt=0, le=10)
    learning_rate_factor: float = setting(0.99, doc="factor on the learning rate", gt=0, le=1)
    learning_rate_every: int = setting(500, doc="episodes between two reductions", unit="episodes", gt=0, le=LONGEST)
    minimum_learning_rate: float = setting(1e-9, doc="lower limit of the learning rate", ge=0)
    record_every: int = setting(
        64, doc="episodes of a scenario averaged into one point of the curves", unit="episodes", gt=0, le=LONGEST
    )
    save_every: int = setting(
        2000, doc="episodes between two checkpoints of the progress", unit="episodes", gt=0, le=LONGEST
    )


def network_mistakes(learner: Settings, phases: Sequence[Phase | PhaseSettings]) -> Iterator[UserError]:
    """Yield an error for each value of a phase that would change the network."""
    if isinstance(learner, NetworkSettings):
        yield from fixed_mistakes(NetworkSettings.model_fields.keys(), phases)


class BanditSettings(Settings):
    """UCB1 (Auer et al. 2002) with one arm for each sequence; a phase's steps are pulls."""

    exploration: float = setting(
        1.0,
        doc="width of the confidence bound, in standard deviations of the rewards seen; larger values explore more",
        ge=0,
    )
    record_every: int = setting(16, doc="pulls averaged into one point of the curves", unit="pulls", gt=0, le=LONGEST)


LEARNER_SETTINGS: dict[str, type[Settings]] = {
    "exact": ExactSettings,
    "reinforce": ReinforceSettings,
    "bandit": BanditSettings,
    "constant": NoSettings,
    "nearest": NoSettings,
}
