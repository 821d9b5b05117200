"""The inner loop: epochs of training and evaluation of one network, with the same bytes wherever it is resumed.

A state consists of a network, Adam's moments by tensor name, the learning rate and the number of epochs. The next epoch
depends only on the state, the images, and their order, which the caller gives.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.adam import adam

from schedlab.config.files import content_hash
from schedlab.learning.devices import find_device
from schedlab.studies.adaptation.data.datasets import DataSet
from schedlab.studies.adaptation.network.architecture import Architecture
from schedlab.studies.adaptation.network.growth import (
    CALIBRATION_IMAGES,
    Resized,
    deepen,
    shrink,
    soft_target_loss,
    widen,
)
from schedlab.studies.adaptation.network.models import Network
from schedlab.studies.adaptation.scenario import AdaptationScenario, GrowthSettings, TrainingSettings

GATHER = 64  # batches whose images are copied into the epoch's order at once
EVALUATION_BATCH = 512  # images; fixed, so that the rounding does not vary
HELD_OUT = ("validation", "test")
ADAM = {"amsgrad": False, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8, "maximize": False}


@dataclass
class Moments:
    """Adam's state of one tensor: running means of gradient and squared gradient, and the number of updates."""

    mean: Tensor
    square: Tensor
    updates: Tensor


@dataclass
class TrainState:
    """Everything on which the next epoch depends. A tensor without an update has no entry in `moments`."""

    network: Network
    learning_rate: float
    epoch: int = 0
    moments: dict[str, Moments] = field(default_factory=dict)


@dataclass(frozen=True)
class SoftTargets:
    """The larger network from which a smaller one learns, and the weight of its outputs (Hinton et al. 2015)."""

    teacher: Network
    weight: float
    temperature: float


@dataclass(frozen=True)
class Samples:
    """Images (n, channels, height, width) float32 and labels (n,) int64 of one split, on one device."""

    images: Tensor
    labels: Tensor


def on_device(scenario: AdaptationScenario, device: str) -> AdaptationScenario:
    """Return the scenario with a device that exists (cpu, cuda) in place of `auto`."""
    return scenario.model_copy(update={"training": scenario.training.model_copy(update={"device": device})})


def prepare_torch(device: str) -> None:
    """Make torch deterministic, on one thread. Raises UserError if the device does not exist."""
    find_device(device, "training.device")
    torch.backends.cudnn.allow_tf32 = False  # TF32 keeps ten bits of the fraction, which is coarser than float32
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic with a fixed workspace only
    torch.set_num_threads(1)
    # the same effect as use_deterministic_algorithms, which takes a second to import the compiler
    torch.set_deterministic_debug_mode("error")
    torch.utils.deterministic.fill_uninitialized_memory = False  # a debugging aid that costs time and changes nothing


def samples(dataset: DataSet, device: str) -> dict[str, Samples]:
    """Return the splits of a data set as tensors on a device, without empty splits."""
    splits = {}
    for name in ("train", *HELD_OUT):
        images, labels = dataset.split(name)
        if len(labels):
            tensors = torch.from_numpy(images).contiguous(), torch.from_numpy(labels)
            splits[name] = Samples(*(tensor.to(device) for tensor in tensors))
    return splits


def train_epoch(
    state: TrainState, data: Samples, order: np.ndarray, settings: TrainingSettings, soft: SoftTargets | None = None
) -> dict[str, float]:
    """Run one epoch over the images in the given order, in place; return train_loss and train_accuracy.

    Both are means over the epoch, each image with the weights before its batch, so that no further pass is needed;
    train_loss includes soft targets. After the epoch, the learning rate falls.
    """
    network = state.network.train()
    names, parameters = zip(*network.named_parameters(), strict=True)
    moments = [_moments(state, name, parameter) for name, parameter in zip(names, parameters, strict=True)]
    memory: tuple[list[Any], ...] = (
        [m.mean for m in moments],
        [m.square for m in moments],
        [],
        [m.updates for m in moments],
    )
    losses, answers, truth = [], [], []
    for images, labels in _batches(data, order, settings.batch_size):
        logits = network(images)
        loss = F.cross_entropy(logits, labels) if soft is None else _soft_loss(soft, images, logits, labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            adam(parameters, gradients, *memory, fused=True, lr=state.learning_rate, **ADAM)
        losses.append(loss.detach())
        answers.append(logits.detach())
        truth.append(labels)
    if state.learning_rate > settings.minimum_learning_rate:
        state.learning_rate *= settings.decay
    state.epoch += 1
    sizes = torch.tensor([len(labels) for labels in truth], dtype=torch.float64)
    loss = (torch.stack(losses).cpu().double() @ sizes).item() / len(order)
    return {"train_loss": loss, "train_accuracy": _accuracy(torch.cat(answers), torch.cat(truth))}


@torch.no_grad()
def evaluate(network: Network, splits: Mapping[str, Samples]) -> dict[str, float]:
    """Return <split>_loss (mean log loss, nats) and <split>_accuracy of each held-out split."""
    training = network.training
    network.train(False)
    metrics = {}
    for name in HELD_OUT:
        if data := splits.get(name):
            logits = torch.cat([network(images) for images in data.images.split(EVALUATION_BATCH)])
            metrics[f"{name}_loss"] = F.cross_entropy(logits.double(), data.labels).item()
            metrics[f"{name}_accuracy"] = _accuracy(logits, data.labels)
    network.train(training)
    return metrics


def restart(state: TrainState, growth: GrowthSettings, training: TrainingSettings) -> None:
    """Reset the optimizer's moments and learning rate, in place, as the settings specify for growth (or for doing
    nothing).
    """
    if growth.optimizer != "keep":
        state.moments = {}
    if growth.lr_on_growth == "restart":
        state.learning_rate = training.learning_rate


def grow(state: TrainState, kind: str, block: int, growth: GrowthSettings, images: Tensor, seed: int) -> TrainState:
    """Return the state with a block deepened or widened; the moments of existing tensors are transferred.

    images: training images; the first 512 calibrate inserted batch norms. seed: root of the random streams of growth.
    """
    if kind == "deepen":
        network = deepen(state.network, block, growth, images[:CALIBRATION_IMAGES], seed)
        resized = dict[str, Any]()
    else:
        network, resized = widen(state.network, block, growth.widen_factor, seed, growth.symmetry_noise)
    moments = {name: _resized(found, resized.get(name)) for name, found in state.moments.items()}
    return TrainState(network, state.learning_rate, state.epoch, moments)


def shrink_back(large: TrainState, small: Network) -> TrainState:
    """Return the state after shrinking back to a smaller network, which takes layers of the larger one (`shrink`).

    The moments of tensors with equal shapes in both networks are kept.
    """
    network = shrink(large.network, small)
    shapes = {name: parameter.shape for name, parameter in network.named_parameters()}
    moments = {name: found for name, found in large.moments.items() if shapes.get(name) == found.mean.shape}
    return TrainState(network, large.learning_rate, large.epoch, moments)


def pack(state: TrainState) -> bytes:
    """Return a state as bytes: header length, JSON header, raw tensors. Equal states give equal bytes."""
    tensors = {f"weight {name}": tensor for name, tensor in state.network.state_dict().items()}
    for name, found in state.moments.items():
        tensors |= {f"mean {name}": found.mean, f"square {name}": found.square, f"updates {name}": found.updates}
    header = {
        "architecture": content_hash(state.network.architecture.key),
        "learning_rate": state.learning_rate,
        "epoch": state.epoch,
        "tensors": [[name, list(tensor.shape)] for name, tensor in tensors.items()],
    }
    text = json.dumps(header).encode()
    return b"".join([struct.pack("<I", len(text)), text, *(_raw(tensor) for tensor in tensors.values())])


def unpack(data: bytes, architecture: Architecture, device: str = "cpu") -> TrainState:
    """Return the state that `pack` wrote. Raises ValueError for another architecture or a wrong length."""
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    if header["architecture"] != content_hash(architecture.key):
        raise ValueError("the state is one of another architecture")
    tensors, offset = {}, 4 + length
    for name, shape in header["tensors"]:
        count = int(np.prod(shape, dtype=int))
        values = np.frombuffer(data, np.float32, count, offset).reshape(shape)
        tensors[name] = torch.tensor(values, device=device)
        offset += 4 * count
    if offset != len(data):
        raise ValueError(f"the state has {len(data)} bytes, expected {offset}")
    weights, means = (
        {name.removeprefix(kind): tensor for name, tensor in tensors.items() if name.startswith(kind)}
        for kind in ("weight ", "mean ")
    )
    moments = {n: Moments(mean, tensors[f"square {n}"], tensors[f"updates {n}"]) for n, mean in means.items()}
    network = Network(architecture, weights)
    return TrainState(network, header["learning_rate"], header["epoch"], moments)


def _batches(data: Samples, order: np.ndarray, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the images and labels of each mini-batch; the images of many batches are gathered at once.

    The last batch holds the remaining images. A single remaining image joins the batch before it, which then has size +
    1, because batch norm cannot normalise one image. (With a size of 1, all other batches are single images, and only
    networks without batch norm can be trained.)
    """
    rows = torch.from_numpy(order).to(data.labels.device)
    ends = [*range(size, len(rows), size), len(rows)]
    if len(ends) > 1 and len(rows) - ends[-2] == 1:
        del ends[-2]
    begin = 0
    for part in (ends[i : i + GATHER] for i in range(0, len(ends), GATHER)):
        chosen = rows[begin : part[-1]]
        images, labels = data.images[chosen], data.labels[chosen]
        sizes = [end - start for start, end in zip([begin, *part], part, strict=False)]
        yield from zip(images.split(sizes), labels.split(sizes), strict=True)
        begin = part[-1]


def _soft_loss(soft: SoftTargets, images: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    with torch.no_grad():
        targets = soft.teacher.train(False)(images)
    return soft_target_loss(logits, targets, labels, soft.weight, soft.temperature)


def _accuracy(logits: Tensor, labels: Tensor) -> float:
    return (logits.argmax(1) == labels).sum().item() / len(labels)


def _moments(state: TrainState, name: str, parameter: Tensor) -> Moments:
    if name not in state.moments:
        zeros = torch.zeros_like(parameter)
        state.moments[name] = Moments(zeros, zeros.clone(), torch.zeros((), device=parameter.device))
    return state.moments[name]


def _resized(found: Moments, change: Resized | None) -> Moments:
    if change is None:
        return found
    return Moments(change.first_moment(found.mean), change.second_moment(found.square), found.updates)


def _raw(tensor: Tensor) -> bytes:
    if tensor.dtype != torch.float32:
        raise ValueError(f"a tensor of {tensor.dtype}, expected float32")
    return tensor.detach().cpu().numpy().tobytes()
