"""Typed settings of the prioritised DQN, without torch, so that a configuration can be checked without
importing torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting
from schedlab.config.settings import LONGEST, MOST, PhaseSettings
from schedlab.learning.settings import ValidationSettings, fixed_mistakes
from schedlab.learning.stock.settings import LARGEST_BUFFER, Layers, Schedule


class PrioritisedDQNSettings(ValidationSettings):
    """Double, dueling, n-step DQN with prioritised replay and several actors (Horgan et al. 2018).

    A phase's steps are decisions of all actors together. In a round, each actor takes `train_freq` decisions with the
    parameters from the start of the round, while the learner takes `gradient_steps` gradient steps.
    """

    PHASE_KEYS: ClassVar[frozenset[str]] = frozenset()  # added keys of a study that a phase may change

    learning_rate: float = setting(1e-4, doc="learning rate of Adam at the start of a phase", gt=0, le=10)
    learning_rate_schedule: Schedule = setting("constant", doc="`linear`: falls to 0 at the end of the phase")
    gamma: float = setting(0.99, doc="discount factor per decision", ge=0, le=1)
    reward_scale: float = setting(
        1.0, doc="factor on the rewards that the learner sees; curves show unscaled rewards", gt=0, le=LONGEST
    )
    n_steps: int = setting(
        3, doc="rewards of an n-step return before the target network's value is added", unit="steps", ge=1, le=MOST
    )
    double: bool = setting(
        True,
        doc="double DQN: the online network chooses the action, the target network gives its value (van "
        "Hasselt et al. 2016)",
    )
    net_arch: Layers = setting((256,), doc="hidden layers after the features extractor", unit="units")
    head_arch: Layers = setting((), doc="hidden layers of each head", unit="units")
    dueling: bool = setting(
        True, doc="dueling network: one head for the value, one for centred advantages (Wang et al. 2016)"
    )
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "silu"] = setting(
        "relu", doc="activation function of every hidden layer"
    )
    keep_to_masks: bool = setting(
        True, doc="restrict exploration and targets to valid actions; false: the environment handles invalid ones"
    )

    buffer_size: int = setting(100_000, doc="capacity of the replay buffer, in decisions", ge=1, le=LARGEST_BUFFER)
    alpha: float = setting(0.6, doc="exponent of the error in a priority; 0: uniform sampling", ge=0, le=1)
    beta: float = setting(0.4, doc="exponent of importance weights at the start of a phase", ge=0, le=1)
    final_beta: float = setting(1.0, doc="exponent of importance weights at the end of a phase", ge=0, le=1)
    eps: float = setting(1e-6, doc="added to errors, so that every decision can be sampled", gt=0, le=LONGEST)

    learning_starts: int = setting(1000, doc="decisions before the first gradient step", unit="steps", ge=0, le=LONGEST)
    train_freq: int = setting(8, doc="decisions per actor and round", unit="steps", ge=1, le=LONGEST)
    gradient_steps: int = setting(8, doc="gradient steps per round", ge=1, le=LONGEST)
    batch_size: int = setting(128, doc="mini-batch size of a gradient step, in decisions", ge=1, le=10_000_000)
    target_update_interval: int = setting(
        5000, doc="decisions between updates of the target network", unit="steps", ge=1, le=LONGEST
    )
    max_grad_norm: float = setting(40.0, doc="maximum norm of gradients, which are clipped", gt=0, le=LONGEST)

    actors: int = setting(8, doc="actors, each of which plays its own episodes", ge=1, le=MOST)
    processes: int = setting(
        1, doc="processes that the actors share; 1: the learner's process. Does not affect results", ge=1, le=MOST
    )
    exploration: Literal["linear", "by_actor"] = setting(
        "linear",
        doc="share of random actions. `linear`: falls from `initial_epsilon` to `final_epsilon`; "
        "`by_actor`: constant `base_epsilon` ^ (1 + `epsilon_alpha` i / (N - 1)) for actor i of N",
    )
    initial_epsilon: float = setting(1.0, doc="linear: share at the start of a phase", ge=0, le=1)
    final_epsilon: float = setting(0.05, doc="linear: share at the end of `exploration_steps`", ge=0, le=1)
    exploration_steps: int = setting(
        20_000, doc="linear: decisions during which the share falls", unit="steps", ge=1, le=LONGEST
    )
    base_epsilon: float = setting(0.4, doc="by_actor: share of the first actor", gt=0, le=1)
    epsilon_alpha: float = setting(7.0, doc="by_actor: larger values make later actors explore less", ge=0, le=1000)

    record_every: int = setting(
        2000, doc="minimum distance between points of the curves", unit="steps", ge=1, le=LONGEST
    )
    save_every: int = setting(
        50_000,
        doc="minimum distance between saved states from which an interrupted job resumes",
        unit="steps",
        ge=1,
        le=LONGEST,
    )

    @model_validator(mode="after")
    def _check_buffer(self) -> PrioritisedDQNSettings:
        longest = self.actors * (
            self.train_freq + self.n_steps
        )  # at the end of an episode, the waiting decisions are also returned
        if self.buffer_size < longest:
            raise ValueError(
                f"buffer_size: {self.buffer_size} does not hold the {longest} decisions that a round can give out"
            )
        return self


NETWORK = frozenset(
    {"net_arch", "head_arch", "dueling", "activation", "keep_to_masks", "actors"}
)  # the same in all phases


def phase_mistakes(learner: Settings, phases: Sequence[Phase | PhaseSettings]) -> Iterator[UserError]:
    """Yield the mistakes that `fixed_mistakes` finds for one of these learners; nothing for others."""
    if isinstance(learner, PrioritisedDQNSettings):
        added = type(learner).model_fields.keys() - PrioritisedDQNSettings.model_fields.keys() - learner.PHASE_KEYS
        yield from fixed_mistakes(NETWORK | added, phases)


def of_policy(settings: PrioritisedDQNSettings) -> dict[str, Any]:
    """Return the values on which results depend."""
    return settings.model_dump(mode="json", exclude={"processes"})
