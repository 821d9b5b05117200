"""The cost of an epoch: pinned epoch times of a GPU, which `course` subtracts from a training budget.

The charges come from a timing, never from measurements during the run, so that a result does not depend on the load of
the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import model_validator

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting
from schedlab.config.settings import NAME

if TYPE_CHECKING:
    from schedlab.studies.adaptation.network.architecture import Architecture

ANY_MODEL = "any"  # key under `models` for all models that are not named and have the same number of blocks
MICROSECONDS = 1_000_000


class LinearCost(Settings):
    """Seconds = base + sum of per_insertion[i] times the number of layers inserted behind block i."""

    base: float = setting(doc="seconds of the initial model", unit="s", gt=0)
    per_insertion: tuple[float, ...] = setting(
        doc="additional seconds of each insertion, by deepenable block", unit="s"
    )

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

    train_s: float = setting(doc="seconds of training", unit="s", ge=0)
    eval_s: float = setting(doc="seconds of evaluation", unit="s", ge=0)


class ModelTiming(Settings):
    """Epoch seconds of one model under deepening."""

    train: LinearCost = setting(doc="one epoch of training")
    evaluation: LinearCost = setting(doc="one evaluation")
    exact: tuple[ExactTiming, ...] = setting(
        (), doc="measured architectures, which replace the formula if `use_exact` is set"
    )
    own_macs: int | None = setting(
        None, doc="multiply-accumulates of the initial layers for one image; none: not checked", gt=0
    )
    residual: Residual | None = setting(None, doc="residual of the formula's fit; none: unknown")

    @model_validator(mode="after")
    def _check(self) -> ModelTiming:
        counts = {len(cost.per_insertion) for cost in (self.train, self.evaluation)}
        counts |= {len(entry.insertions) for entry in self.exact}
        if len(counts) > 1:
            raise ValueError(
                "train.per_insertion, evaluation.per_insertion and exact.insertions must have one value for each "
                "deepenable block"
            )
        if len({entry.insertions for entry in self.exact}) < len(self.exact):
            raise ValueError("exact must hold each architecture once")
        return self


class FlopsCost(Settings):
    """Seconds = base + seconds_per_mac x multiply-accumulates of a forward pass over the images; training images count
    training_factor times.
    """

    train_base_s: float = setting(doc="overhead of one epoch of training", unit="s", gt=0)
    evaluation_base_s: float = setting(doc="overhead of one evaluation", unit="s", ge=0)
    seconds_per_mac: float = setting(doc="time of one multiply-accumulate", unit="s", gt=0)
    training_factor: float = setting(
        3.0,
        doc="cost of a training step in forward passes; 3 for one forward pass and a backward pass of twice its cost",
        ge=1,
    )


class TimingSettings(Settings):
    """A timing: the seconds that an epoch of each architecture takes on a device."""

    name: str = setting(doc="name of the timing; the file is conf/gpu/<name>.yaml", pattern=NAME)
    gpu: str = setting(doc="device that was timed")
    source: str = setting("", doc="source of the numbers")
    batch_size: int | None = setting(None, doc="batch size of the measurement; none: any", unit="images", ge=1)
    kind: Literal["linear", "flops"] = setting(
        "linear", doc="`linear`: seconds by model and insertions; `flops`: seconds by arithmetic operations"
    )
    use_exact: bool = setting(True, doc="prefer the measured seconds of an architecture to the formula")
    models: dict[str, ModelTiming] = setting(
        {}, doc=f"seconds by model; '{ANY_MODEL}' covers those not named (linear only)"
    )
    flops: FlopsCost | None = setting(None, doc="seconds by arithmetic operations (`flops` only)")

    @model_validator(mode="after")
    def _check(self) -> TimingSettings:
        if self.kind == "linear" and (not self.models or self.flops):
            raise ValueError("a linear timing needs models and no flops")
        if self.kind == "flops" and (self.models or not self.flops):
            raise ValueError("a flops timing needs flops and no models")
        return self


class EpochSeconds(NamedTuple):
    """Cost of one epoch in seconds, in whole microseconds: training and the evaluation after it."""

    train: float
    evaluation: float

    @property
    def total(self) -> float:
        """Seconds of training and evaluation together."""
        return (microseconds(self.train) + microseconds(self.evaluation)) / MICROSECONDS


@dataclass(frozen=True)
class Timing:
    """Epoch seconds of architectures.

    train_samples, evaluation_samples: images in one epoch of training and in one evaluation. A flops timing needs both;
    a linear timing ignores them, because it was measured with fixed numbers of images.
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
        """The configuration file of the timing, for messages."""
        return f"conf/gpu/{self.name}.yaml"

    @property
    def prices_widening(self) -> bool:
        """True if wider layers cost more; a linear timing only has prices of inserted layers."""
        return self.settings.kind == "flops"

    def epoch_seconds(self, architecture: Architecture) -> EpochSeconds:
        """Return the cost of one epoch of an architecture. Raises UserError if the timing does not cover the
        architecture.
        """
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
        """Raise UserError if a training batch size differs from that of the measurement."""
        if self.settings.batch_size not in (None, batch_size):
            what = f"the training batch size is {batch_size}"
            expected = f"{self.settings.batch_size}, with which the timing {self.name} was measured"
            remedy = _remedy("this batch size")
            raise UserError(what, where=where or f"{self.where}: batch_size", expected=expected, remedy=remedy)

    def _model(self, architecture: Architecture) -> ModelTiming:
        models = self.settings.models
        timing = models.get(architecture.model) or models.get(ANY_MODEL)
        where = f"{self.where}: models"
        if timing is None:
            what = f"the timing {self.name} does not cover the model {architecture.model}"
            raise UserError(what, where=where, expected=" or ".join(sorted(models)), remedy=_remedy(architecture.model))
        blocks = len(timing.train.per_insertion)
        if blocks != len(architecture.insertions):
            raise UserError(
                f"the timing {self.name} covers {architecture.model} with {blocks} deepenable blocks, not "
                f"{len(architecture.insertions)}",
                where=where,
                expected=f"a model with {blocks} deepenable blocks",
                remedy=_remedy(architecture.model),
            )
        if timing.own_macs not in (None, own_macs(architecture)):
            raise UserError(
                f"the timing {self.name} was measured with another {architecture.model}: its own layers take "
                f"{timing.own_macs} multiply-accumulates, those of this one {own_macs(architecture)} (other channels, "
                "or a widened block)",
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
    """Return the multiply-accumulates of the original layers for one image; deepening does not change them."""
    pairs = zip(architecture.layers, architecture.shapes, strict=True)
    return sum(layer.macs(shape) for layer, shape in pairs if not layer.inserted)


def microseconds(seconds: float) -> int:
    """Return seconds as whole microseconds, the unit of budgets, in which 24 times 10 s are exactly 240 s."""
    return round(seconds * MICROSECONDS)


def require_one_epoch(budget: float, start: float, epoch: EpochSeconds, where: str = "") -> None:
    """Raise UserError if not even one epoch fits between `start` and the end of the budget (seconds)."""
    if microseconds(epoch.total) > microseconds(budget) - microseconds(start):
        what = f"the budget of {budget:g} s has {max(budget - start, 0):g} s left and one epoch takes {epoch.total:g} s"
        remedy = "raise the budget, start earlier, or choose a faster timing"
        raise UserError(what, where=where, expected=f"at least {epoch.total:g} s left", remedy=remedy)


def _epoch(train: float, evaluation: float) -> EpochSeconds:
    return EpochSeconds(microseconds(train) / MICROSECONDS, microseconds(evaluation) / MICROSECONDS)


def _remedy(what: str) -> str:
    return (
        f"measure {what} with `schedlab adaptation calibrate`, or choose another timing (gpu: flops covers every model)"
    )
