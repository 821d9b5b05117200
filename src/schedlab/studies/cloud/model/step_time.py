"""The duration of a training step: GPUs, their synchronisation, and the input pipeline that feeds them.

Sources: Qiao et al., "Pollux", OSDI 2021 (GPU step, statistical efficiency); following Mohan et al., "Synergy", OSDI
2022, and Mohan et al., "CoorDL", VLDB 2021 (cores and memory). docs/reference/cloud_model.md. All functions take arrays
or numbers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from schedlab.config.schema import Settings, setting

OVERLAP = 4.0  # exponent with which the longer of GPU step and input pipeline hides the other
CORE_EXPONENT = 0.95  # exponent of throughput over cores: shared memory bandwidth and locks keep it below 1
Number = Any  # a number or an array of them


@dataclass(frozen=True)
class StepParameters:
    """Parameters of a GPU step, s (b_c: per sample; b_n, b_r: per GPU), and y, the overlap of computing and
    synchronising.
    """

    a_c: float
    b_c: float
    a_n: float
    b_n: float
    a_r: float
    b_r: float
    y: float

    def values(self) -> dict[str, float]:
        """Return the parameters by name."""
        return asdict(self)

    def times(self, at: Placement, slowdown: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Return the seconds of a pass and of an iteration. slowdown: factor on the synchronisation speed between
        nodes.
        """
        gradient = gradient_time(self, at.batch, at.speed)
        sync = synchronisation_time(self, at.nodes, at.gpus) / np.where(np.asarray(at.nodes) > 1, slowdown, 1.0)
        return gradient, (gradient**self.y + sync**self.y) ** (1.0 / self.y)


class StepModel(Protocol):
    """A model of the duration of a step: StepParameters, or one in fallback.py."""

    def times(self, at: Placement, slowdown: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Return the seconds of a pass and of an iteration on the GPUs."""

    def values(self) -> dict[str, Any]:
        """Return the parameters of the model, for a file."""


class PipelineSettings(Settings):
    """The work on a sample before it reaches a GPU, and the memory of a job. The defaults are assumptions, not
    measurements.
    """

    core_seconds: float = setting(
        3e-4, doc="CPU time per sample; logs with several numbers of cores override it", unit="s", gt=0
    )
    sample_bytes: float = setting(3072.0, doc="size of a sample", unit="bytes", gt=0)
    dataset_gb: float = setting(0.6, doc="size of the data", unit="GB", gt=0)
    disk_mb_per_s: float = setting(500.0, doc="read rate of the disk", unit="MB/s", gt=0)
    workers: int = setting(4, doc="data-loading processes", ge=0)
    prefetch: int = setting(2, doc="batches loaded in advance", ge=0)


def gradient_time(p: StepParameters, batch: Number, speed: Number = 1.0) -> Number:
    """Return the time of the forward and backward pass with `batch` samples on each GPU, s. speed: of the GPU kind,
    relative to that of the parameters.
    """
    return (p.a_c + p.b_c * np.asarray(batch, float)) / speed


def synchronisation_time(p: StepParameters, nodes: Number, gpus: Number) -> Number:
    """Return the time of an all-reduce, s: 0 on one GPU, else growing with the GPUs beyond two, within or between
    nodes.
    """
    nodes, gpus = np.asarray(nodes), np.asarray(gpus)
    more = np.maximum(gpus - 2, 0)
    return np.where(gpus <= 1, 0.0, np.where(nodes > 1, p.a_n + p.b_n * more, p.a_r + p.b_r * more))


def step_time(p: StepParameters, nodes: Number, gpus: Number, batch: Number, speed: Number = 1.0) -> Number:
    """Return the time of an iteration on the GPUs, s. speed: of the GPU kind; it does not speed up synchronisation."""
    gradient, sync = gradient_time(p, batch, speed), synchronisation_time(p, nodes, gpus)
    return (gradient**p.y + sync**p.y) ** (1.0 / p.y)


def memory_needed(pipeline: PipelineSettings, gpus: Number, batch: Number) -> Number:
    """Return the smallest memory with which a job can run, GB."""
    ahead = pipeline.prefetch * np.asarray(batch, float) * pipeline.sample_bytes / 1e9
    return 2.0 + 1.5 * np.asarray(gpus) + 0.25 * pipeline.workers + ahead


def input_rate(pipeline: PipelineSettings, cores: Number, cached: Number) -> Number:
    """Return the samples per second that the cores deliver if a share `cached` of the data is in memory."""
    from_disk = (1.0 - np.asarray(cached)) * pipeline.sample_bytes / (pipeline.disk_mb_per_s * 1e6)
    return 1.0 / (pipeline.core_seconds / np.asarray(cores, float) ** CORE_EXPONENT + from_disk)


@dataclass(frozen=True)
class Performance:
    """The performance of allocations; all arrays have the same shape.

    throughput     samples/s                                gpu_util, cpu_util, memory_util  fractions
    memory_used    GB                                       fits  False where the job runs out of memory
    """

    throughput: np.ndarray
    gpu_util: np.ndarray
    cpu_util: np.ndarray
    memory_util: np.ndarray
    memory_used: np.ndarray
    fits: np.ndarray


@dataclass(frozen=True)
class Placement:
    """Where a job runs, as arrays: nodes, GPUs, cores, memory (GB), samples on each GPU, and the speed of the GPU kind
    relative to that of the step time's parameters.
    """

    nodes: np.ndarray
    gpus: np.ndarray
    cores: np.ndarray
    memory: np.ndarray
    batch: np.ndarray
    speed: np.ndarray


def performance(model: StepModel, pipeline: PipelineSettings, at: Placement, slowdown: float = 1.0) -> Performance:
    """Return the performance of allocations.

    slowdown: factor on the speed of synchronisation between nodes (0.5: interference by other jobs doubles its time).
    """
    gradient, on_gpus = model.times(at, slowdown)
    samples = at.gpus * at.batch
    needed = memory_needed(pipeline, at.gpus, at.batch)
    cached = np.clip((at.memory - needed) / pipeline.dataset_gb, 0.0, 1.0)
    data = samples / input_rate(pipeline, at.cores, cached)
    iteration = (on_gpus**OVERLAP + data**OVERLAP) ** (1.0 / OVERLAP)
    throughput = samples / iteration
    used = np.minimum(at.memory, needed + pipeline.dataset_gb)
    return Performance(
        throughput=throughput,
        gpu_util=gradient / iteration,
        cpu_util=np.minimum(1.0, pipeline.core_seconds * throughput / at.cores),
        memory_util=used / at.memory,
        memory_used=used,
        fits=at.memory >= needed,
    )


def statistical_efficiency(noise: Number, batch: Number, base: float) -> Number:
    """Return the progress per sample of a total batch, as a share of that of the base batch.

    noise: variance over squared norm of the gradient at the base batch. A sample contributes less in a larger batch; in
    a smaller one, its contribution is bounded by the noise.
    """
    noise = np.asarray(noise, float)
    return (noise + 1.0) / (noise + np.asarray(batch, float) / base)
