"""What an epoch costs: pinned epoch seconds of a GPU, and the clock that charges them to a training budget.

The budget is charged from a timing, never from the machine, so that a result does not depend on the load of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import model_validator

from schedlab.config.errors import UserError
from schedlab.config.hashes import content_hash
from schedlab.config.schema import Settings, setting
from schedlab.config.settings import NAME

if TYPE_CHECKING:
    from schedlab.studies.adaptation.architecture import Architecture

ANY_MODEL = "any"  # key under `models` that covers every model that is not named, with the same number of blocks
MICROSECONDS = 1_000_000
_DOCUMENTARY = {"name", "gpu", "source"}  # keys that change no number


class LinearCost(Settings):
    """Seconds = base + sum of per_insertion[i] times the number of layers inserted behind block i."""

    base: float = setting(doc="seconds of the model as it is", unit="s", gt=0)
    per_insertion: tuple[float, ...] = setting(doc="more seconds for each insertion, by deepenable block", unit="s")

    @model_validator(mode="after")
    def _check(self) -> LinearCost:
        if min(self.per_insertion, default=0.0) < 0:
            raise ValueError("per_insertion must not be negative")
        return self

    def seconds(self, insertions: Sequence[int]) -> float:
        """Return the seconds for the insertions (n_0, ..., n_k)."""
        return self.base + sum(price * count for price, count in zip(self.per_insertion, insertions, strict=True))


class ExactTiming(Settings):
    """The measured seconds of one architecture."""

    insertions: tuple[int, ...] = setting(doc="layers inserted behind each deepenable block")
    train_s: float = setting(doc="one epoch of training", unit="s", gt=0)
    eval_s: float = setting(doc="one evaluation", unit="s", ge=0)


class Residual(Settings):
    """The largest distance of a measured architecture from the linear formula."""

    train_s: float = setting(doc="of training", unit="s", ge=0)
    eval_s: float = setting(doc="of evaluation", unit="s", ge=0)


class ModelTiming(Settings):
    """Epoch seconds of one model under deepening."""

    train: LinearCost = setting(doc="one epoch of training")
    evaluation: LinearCost = setting(doc="one evaluation")
    exact: tuple[ExactTiming, ...] = setting((), doc="measured architectures, used before the formula where use_exact")
    own_macs: int | None = setting(None, doc="multiply-accumulates of the model's own layers for one picture; none: not checked", gt=0)
    residual: Residual | None = setting(None, doc="how well the formula fits what was measured; none: unknown")

    @model_validator(mode="after")
    def _check(self) -> ModelTiming:
        counts = {len(self.train.per_insertion), len(self.evaluation.per_insertion), *(len(entry.insertions) for entry in self.exact)}
        if len(counts) > 1:
            raise ValueError(
                "train.per_insertion, evaluation.per_insertion and exact.insertions must have one value for each deepenable block"
            )
        if len({entry.insertions for entry in self.exact}) < len(self.exact):
            raise ValueError("exact must hold each architecture once")
        return self


class FlopsCost(Settings):
    """Seconds = base + multiply-accumulates of one pass over the pictures, training ones taken training_factor times."""

    train_base_s: float = setting(doc="overhead of one epoch of training", unit="s", gt=0)
    evaluation_base_s: float = setting(doc="overhead of one evaluation", unit="s", ge=0)
    seconds_per_mac: float = setting(doc="one multiply-accumulate", unit="s", gt=0)
    training_factor: float = setting(3.0, doc="passes that a training step counts for: forward, and two backward", ge=1)


class TimingSettings(Settings):
    """A timing: the epoch seconds of a GPU, named and pinned."""

    name: str = setting(doc="name of the timing; the file is conf/gpu/<name>.yaml", pattern=NAME)
    gpu: str = setting(doc="the device that the seconds stand for")
    source: str = setting("", doc="where the numbers come from")
    batch_size: int | None = setting(None, doc="batch size of the measurement; none: any", unit="pictures", ge=1)
    kind: Literal["linear", "flops"] = setting("linear", doc="linear: seconds by model and insertions; flops: seconds by arithmetic")
    use_exact: bool = setting(True, doc="take the measured seconds of an architecture where there are any, else the formula alone")
    models: dict[str, ModelTiming] = setting({}, doc=f"seconds by model; '{ANY_MODEL}' covers those not named (linear only)")
    flops: FlopsCost | None = setting(None, doc="seconds by arithmetic (flops only)")

    @model_validator(mode="after")
    def _check(self) -> TimingSettings:
        if self.kind == "linear" and (not self.models or self.flops):
            raise ValueError("a linear timing needs models and no flops")
        if self.kind == "flops" and (self.models or not self.flops):
            raise ValueError("a flops timing needs flops and no models")
        return self


class EpochSeconds(NamedTuple):
    """Charge of one epoch in seconds, in whole microseconds: training and the evaluation behind it."""

    train: float
    evaluation: float

    @property
    def total(self) -> float:
        """Seconds of training and evaluation together."""
        return (microseconds(self.train) + microseconds(self.evaluation)) / MICROSECONDS


@dataclass(frozen=True)
class Timing:
    """Epoch seconds of architectures.

    train_samples, evaluation_samples: pictures of one epoch of training and of one evaluation; a flops timing needs
    both, a linear one was measured with its own and takes no notice of them.
    """

    settings: TimingSettings
    train_samples: int | None = None
    evaluation_samples: int | None = None

    def __post_init__(self) -> None:
        if self.settings.kind == "flops" and (self.train_samples is None or self.evaluation_samples is None):
            raise ValueError("a flops timing needs train_samples and evaluation_samples")

    @property
    def name(self) -> str:
        """Name of the timing."""
        return self.settings.name

    @property
    def where(self) -> str:
        """The file that a user would look into."""
        return f"conf/gpu/{self.name}.yaml"

    @property
    def prices_widening(self) -> bool:
        """True where wider layers cost more; a linear timing knows the price of inserted layers only."""
        return self.settings.kind == "flops"

    @property
    def hash(self) -> str:
        """Hash of all that determines a charge; name, GPU and source do not."""
        values = self.settings.model_dump(mode="json", exclude=_DOCUMENTARY)
        for model in values["models"].values():
            del model["residual"]
            if not self.settings.use_exact:
                del model["exact"]
        if self.settings.kind == "flops":
            values |= {"train_samples": self.train_samples, "evaluation_samples": self.evaluation_samples}
        return content_hash(values)

    def epoch_seconds(self, architecture: Architecture) -> EpochSeconds:
        """Return the charge of one epoch of an architecture. Raises UserError where the timing does not cover it."""
        if self.settings.flops is not None:
            return self._by_arithmetic(self.settings.flops, architecture)
        timing = self._model(architecture)
        insertions = architecture.insertions
        if self.settings.use_exact:
            for entry in timing.exact:
                if entry.insertions == insertions:
                    return _epoch(entry.train_s, entry.eval_s)
        return _epoch(timing.train.seconds(insertions), timing.evaluation.seconds(insertions))

    def check_batch_size(self, batch_size: int, where: str = "") -> None:
        """Raise UserError where a training batch size is not the one of the measurement."""
        if self.settings.batch_size not in (None, batch_size):
            raise UserError(
                f"the training batch size is {batch_size}",
                where=where or f"{self.where}: batch_size",
                expected=f"{self.settings.batch_size}, with which the timing {self.name} was measured",
                remedy=_remedy("this batch size"),
            )

    def _model(self, architecture: Architecture) -> ModelTiming:
        models = self.settings.models
        timing = models.get(architecture.model) or models.get(ANY_MODEL)
        where = f"{self.where}: models"
        if timing is None:
            raise UserError(
                f"the timing {self.name} does not cover the model {architecture.model}",
                where=where,
                expected=" or ".join(sorted(models)),
                remedy=_remedy(architecture.model),
            )
        blocks = len(timing.train.per_insertion)
        if blocks != len(architecture.insertions):
            raise UserError(
                f"the timing {self.name} covers {architecture.model} with {blocks} deepenable blocks, not {len(architecture.insertions)}",
                where=where,
                expected=f"a model with {blocks} deepenable blocks",
                remedy=_remedy(architecture.model),
            )
        if timing.own_macs not in (None, own_macs(architecture)):
            raise UserError(
                f"the timing {self.name} was measured with another {architecture.model}: its own layers take {timing.own_macs} "
                f"multiply-accumulates, those of this one {own_macs(architecture)} (other channels, or a widened block)",
                where=where,
                remedy=_remedy("this model"),
            )
        return timing

    def _by_arithmetic(self, cost: FlopsCost, architecture: Architecture) -> EpochSeconds:
        pass_s = architecture.macs * cost.seconds_per_mac
        return _epoch(
            cost.train_base_s + pass_s * cost.training_factor * (self.train_samples or 0),
            cost.evaluation_base_s + pass_s * (self.evaluation_samples or 0),
        )


def own_macs(architecture: Architecture) -> int:
    """Return the multiply-accumulates of one picture through the model's own layers; deepening does not change them."""
    return sum(layer.macs(shape) for layer, shape in zip(architecture.layers, architecture.shapes, strict=True) if not layer.inserted)


def microseconds(seconds: float) -> int:
    """Return seconds as whole microseconds, the unit in which budgets are kept so that 24 times 10 s are 240 s."""
    return round(seconds * MICROSECONDS)


@dataclass(frozen=True)
class Clock:
    """A training budget of which `start` seconds had passed before and `spent_us` microseconds have been charged since.

    Immutable: `charge` returns the clock after the charge, so that branches of a tree of runs share their past.
    """

    budget: float
    start: float = 0.0
    spent_us: int = 0

    @property
    def remaining_us(self) -> int:
        """Microseconds left, never below zero."""
        return max(microseconds(self.budget) - microseconds(self.start) - self.spent_us, 0)

    @property
    def remaining(self) -> float:
        """Seconds left."""
        return self.remaining_us / MICROSECONDS

    @property
    def elapsed(self) -> float:
        """Seconds of the budget that have passed, those before the start included."""
        return (microseconds(self.start) + self.spent_us) / MICROSECONDS

    def fits(self, seconds: float) -> bool:
        """Return whether a charge fits into what is left; a charge of exactly what is left does."""
        return microseconds(seconds) <= self.remaining_us

    def charge(self, seconds: float) -> Clock:
        """Return the clock after a charge. Raises ValueError for one that does not fit."""
        if not self.fits(seconds):
            raise ValueError(f"a charge of {seconds} s does not fit into {self.remaining} s")
        return replace(self, spent_us=self.spent_us + microseconds(seconds))


def require_one_epoch(clock: Clock, epoch: EpochSeconds, where: str = "") -> None:
    """Raise UserError where not even one epoch fits into what the clock has left."""
    if not clock.fits(epoch.total):
        raise UserError(
            f"the budget of {clock.budget:g} s has {clock.remaining:g} s left and one epoch takes {epoch.total:g} s",
            where=where,
            expected=f"at least {epoch.total:g} s left",
            remedy="raise the budget, start earlier, or choose a faster timing",
        )


class EpochPlan(NamedTuple):
    """What a run can afford: its epochs, and the seconds left at each decision that it reaches."""

    epochs: int
    time_left: tuple[float, ...]


def epochs_that_fit(timing: Timing, clock: Clock, architectures: Sequence[Architecture], decision_every: int = 1) -> EpochPlan:
    """Return the epochs that a run affords from the clock's state on, an epoch being run iff its full charge fits.

    architectures  what is trained after the first, second, ... decision; at least one; the last one to the end
    decision_every  epochs from one decision to the next; the first stands at the start of the first epoch
    A decision whose epoch does not fit is still asked, the decisions after it are not.
    """
    epochs, time_left = 0, []
    for number, architecture in enumerate(architectures):
        time_left.append(clock.remaining)
        charge = microseconds(timing.epoch_seconds(architecture).total)
        affordable = clock.remaining_us // charge
        last = number == len(architectures) - 1
        run = affordable if last else min(affordable, decision_every)
        epochs += run
        clock = clock.charge(run * charge / MICROSECONDS)
        if not last and run < decision_every:
            break
    return EpochPlan(epochs, tuple(time_left))


def _epoch(train: float, evaluation: float) -> EpochSeconds:
    return EpochSeconds(microseconds(train) / MICROSECONDS, microseconds(evaluation) / MICROSECONDS)


def _remedy(what: str) -> str:
    return f"measure {what} with `schedlab adaptation calibrate`, or choose another timing (gpu: flops covers every model)"
