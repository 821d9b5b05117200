"""The typed sections of graphs (conf/graph/<name>.yaml) and of devices (conf/gpu/<name>.yaml)."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from schedlab.config.schema import Settings, section, setting
from schedlab.config.settings import MOST, NAME, Names

ModelName = Literal["alexnet", "vgg16", "resnet18", "resnet50", "squeezenet", "gnmt", "transformer"]
LARGEST = 1e15  # bytes or ms; more is a slip of the hand


class DeviceSettings(Settings):
    """A device whose rates determine the times of traced ops."""

    name: str = setting(doc="name of the device; the file is conf/gpu/<name>.yaml", pattern=NAME)
    gpu: str = setting(doc="description of the device")
    source: str = setting("", doc="source of the numbers")
    peak_flops: float = setting(doc="rate of matrix products in the precision of training", unit="FLOP/s", gt=0)
    memory_bandwidth: float = setting(doc="rate at which memory is read and written", unit="bytes/s", gt=0)


class TracedModelSettings(Settings):
    """A model that is traced into a graph."""

    model: ModelName = setting(doc="name of the model")
    batch: int | None = setting(None, doc="batch size; null: that of PipeDream's file of the model", ge=1, le=1_000_000)


class ScaleRange(Settings):
    """A range that the scale of a graph is drawn from, evenly in its logarithm."""

    low: float = setting(doc="smallest value", gt=0, le=LARGEST)
    high: float = setting(doc="largest value", gt=0, le=LARGEST)

    @model_validator(mode="after")
    def _check(self) -> ScaleRange:
        if self.low > self.high:
            raise ValueError(f"low of at most high, not {self.low:g} and {self.high:g}")
        return self


class ComputeScale(ScaleRange):
    """Range of the compute scale."""

    low: float = setting(
        0.1,
        doc="lower limit of the typical time of a layer, which is drawn for each graph",
        unit="ms",
        gt=0,
        le=LARGEST,
    )
    high: float = setting(100.0, doc="upper limit of the typical time of a layer", unit="ms", gt=0, le=LARGEST)


class ActivationScale(ScaleRange):
    """Range of the activation scale."""

    low: float = setting(
        1e6,
        doc="lower limit of the typical activation size of a layer, which is drawn for each graph",
        unit="bytes",
        gt=0,
        le=LARGEST,
    )
    high: float = setting(
        1e9, doc="upper limit of the typical activation size of a layer", unit="bytes", gt=0, le=LARGEST
    )


class ParameterScale(ScaleRange):
    """Range of the parameter scale."""

    low: float = setting(
        1e4,
        doc="lower limit of the typical parameter size of a layer, which is drawn for each graph",
        unit="bytes",
        gt=0,
        le=LARGEST,
    )
    high: float = setting(
        1e8, doc="upper limit of the typical parameter size of a layer", unit="bytes", gt=0, le=LARGEST
    )


class GeneratorSettings(Settings):
    """Graphs drawn at random, in which sequential time does not show how well a job can be split."""

    count: int = setting(16, doc="number of graphs", ge=1, le=MOST)
    first: int = setting(
        0, doc="number of the first graph; a graph depends only on its number and the seed", ge=0, le=1_000_000
    )
    forms: tuple[Literal["chain", "residual", "branching", "mixed"], ...] = setting(
        ("chain", "residual", "branching", "mixed"),
        doc="forms of blocks, one for each graph: layers in a chain, around a residual connection, in "
        "branches, or a mixture",
        min_length=1,
    )
    least_blocks: int = setting(3, doc="minimum number of blocks of a graph", ge=1, le=200)
    most_blocks: int = setting(8, doc="maximum number of blocks of a graph", ge=1, le=200)
    compute: ComputeScale = section(ComputeScale, doc="forward time of a layer with parameters")
    activation: ActivationScale = section(ActivationScale, doc="output of a layer")
    parameter: ParameterScale = section(ParameterScale, doc="parameters of a layer")
    spread: float = setting(3.0, doc="largest factor between a layer and its graph's typical values", ge=1, le=1000)

    @model_validator(mode="after")
    def _check(self) -> GeneratorSettings:
        if self.least_blocks > self.most_blocks:
            raise ValueError(f"least_blocks of at most most_blocks, not {self.least_blocks} and {self.most_blocks}")
        return self


class GraphSettings(Settings):
    """The graphs of a scenario's jobs: traced models, graphs drawn at random, or files."""

    name: str = setting("graphs", doc="name of the set of graphs", pattern=NAME)
    source: Literal["traced", "generated", "files"] = setting("traced", doc="source of the graphs")
    models: tuple[TracedModelSettings, ...] = setting((), doc="models to trace (traced)")
    device: DeviceSettings | None = setting(None, doc="device whose rates determine the times of ops (traced)")
    reading_rate: float | None = setting(
        None,
        doc="read rate of storage, which determines the time of inputs (traced); null: inputs take no time",
        unit="bytes/s",
        gt=0,
    )
    generator: GeneratorSettings = section(GeneratorSettings, doc="random graphs (generated)")
    seed: int = setting(0, doc="root seed of random graphs (generated)", ge=0)
    path: str = setting(
        "",
        doc="folder or file of graphs: absolute, or relative to SCHEDLAB_DATA, resources/data or the "
        "working directory (files)",
    )
    max_files: int | None = setting(None, doc="maximum number of files of the folder; null: all", ge=1, le=MOST)
    only: Names = setting((), doc="names of the graphs to use; empty: all")

    @model_validator(mode="after")
    def _check(self) -> GraphSettings:
        if self.source == "traced" and self.device is None:
            raise ValueError("a `device` for the source traced: put `- /gpu@device: a100` into `defaults`")
        if self.source == "traced" and not self.models:
            raise ValueError("`models` for the source traced, as in `models: [{model: resnet18}]`")
        if self.source != "traced" and (self.models or self.device is not None):
            raise ValueError(
                f"no `models` and no `device` for the source {self.source}; these are of the source traced"
            )
        if (self.source == "files") != bool(self.path):
            raise ValueError("a path for the source files, and none for the others")
        if self.reading_rate is not None and self.source != "traced":
            raise ValueError("a reading_rate for the source traced alone")
        names = [entry.model for entry in self.models]
        if len(set(names)) < len(names):
            raise ValueError("each model once")
        return self
