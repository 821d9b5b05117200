"""Function-preserving growth (Net2Net, Chen, Goodfellow and Shlens 2016): deepening, widening, and shrinking back.

A grown network computes the same function as the network before. Existing tensors keep their names, so that an
optimizer's moments are carried over by name; inserted tensors have new names.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed
from schedlab.studies.adaptation.network.architecture import WEIGHTED, Architecture, Layer
from schedlab.studies.adaptation.network.models import BATCH_NORM_EPSILON, Network, initial_tensors
from schedlab.studies.adaptation.scenario import GrowthSettings

CALIBRATION_IMAGES = 512


def deepen(network: Network, block: int, settings: GrowthSettings, calibration: Tensor | None, seed: int) -> Network:
    """Return the network with one more identity layer directly behind a block (as `Architecture.deepened` places it).

    calibration: training images (n, c, h, w), the first 512 of which calibrate an inserted batch norm; ValueError if
    they are None and `bn_init: calibrated` inserts one. seed: root of the noise's stream.

    Without a batch norm, the function is preserved exactly. With one, it is preserved in evaluation mode, to float
    precision (calibrated) or about 1e-5 (default), but not in training mode. On a GPU, this requires
    `torch.backends.cudnn.allow_tf32 = False`, because TF32 rounds the inputs of a convolution.
    """
    grown = network.architecture.deepened(block, False if settings.bn_init == "none" else None)
    number = grown.insertions[block]
    new = [position for position, layer in enumerate(grown.layers) if (layer.block, layer.inserted) == (block, number)]
    state = _copy(network)
    for position in new:
        state.update(_identity(grown.layers[position], settings.symmetry_noise, seed))
    result = _network(grown, state, network)
    for position in new:
        if grown.layers[position].kind == "batch_norm" and settings.bn_init == "calibrated":
            _calibrate(result, position, calibration)
    return result


def _identity(layer: Layer, noise: float, seed: int) -> dict[str, Tensor]:
    tensors = initial_tensors(layer, seed)
    if layer.kind in WEIGHTED:
        weight, bias = tensors[f"{layer.name}.weight"], tensors[f"{layer.name}.bias"]
        torch.nn.init.dirac_(weight) if layer.kind == "conv" else torch.nn.init.eye_(weight)
        bias.zero_()
        weight *= _noise(weight.shape, noise, seed, layer.name)
    return tensors


def _noise(shape: torch.Size, noise: float, seed: int, name: str) -> Tensor:
    """Return factors 1 + noise * N(0, 1)."""
    return 1 + noise * torch.randn(shape, generator=torch.Generator().manual_seed(derive_seed(seed, "noise", name)))


@torch.no_grad()
def _calibrate(network: Network, position: int, images: Tensor | None) -> None:
    """Make the batch norm at a position the identity on the images' mean and variance (evaluation mode)."""
    if images is None:
        raise ValueError("calibrating a batch norm needs training images")
    training = network.training
    x = network.train(False)(images[:CALIBRATION_IMAGES], stop=position)
    network.train(training)
    variance, mean = torch.var_mean(x, dim=[axis for axis in range(x.ndim) if axis != 1], correction=0)
    state, name = network.state_dict(), network.architecture.layers[position].name
    state[f"{name}.running_mean"].copy_(mean)
    state[f"{name}.running_var"].copy_(variance)
    state[f"{name}.weight"].copy_((variance + BATCH_NORM_EPSILON).sqrt())
    state[f"{name}.bias"].copy_(mean)


@dataclass(frozen=True)
class Resized:
    """The change of one tensor by widening: `index` is the old slice along `axis` that each new slice copies.

    With r copies of a channel, the weights that take it are divided by r (factors `weight`), so that each copy receives
    1/r of the channel's gradient (factors `gradient`). With these factors, Adam's moments are those of the same
    function.
    """

    axis: int
    index: Tensor
    weight: Tensor
    gradient: Tensor

    def values(self, tensor: Tensor) -> Tensor:
        """Return the widened tensor."""
        return self._select(tensor, self.weight)

    def first_moment(self, moment: Tensor) -> Tensor:
        """Return Adam's running mean of the gradient for the widened tensor."""
        return self._select(moment, self.gradient)

    def second_moment(self, moment: Tensor) -> Tensor:
        """Return Adam's running mean of the squared gradient for the widened tensor."""
        return self._select(moment, self.gradient**2)

    def _select(self, tensor: Tensor, factors: Tensor) -> Tensor:
        shape = [-1 if axis == self.axis else 1 for axis in range(tensor.ndim)]
        return tensor.index_select(self.axis, self.index.to(tensor.device)) * factors.to(tensor).view(shape)


def widen(
    network: Network, block: int, factor: float, seed: int, noise: float = 0.0
) -> tuple[Network, dict[str, Resized]]:
    """Return the network with `factor` times the channels of a block, and how each tensor changed its shape.

    The new channels copy randomly chosen old ones with their batch norm. The weights of the next conv or linear layer,
    behind any pools and flattens, are divided by the number of copies. The function is preserved up to rounding, in
    both modes. Copies receive the same gradient and stay equal for ever unless `noise` (relative, on the weights of the
    new channels) distinguishes them. Raises UserError if the block is the head or has no weights.
    """
    old = network.architecture
    wide, span = old.widened(block, factor), old.widening(block)
    before, after = old.layers[span[0]].outputs, wide.layers[span[0]].outputs
    drawn = torch.randint(
        before, (after - before,), generator=torch.Generator().manual_seed(derive_seed(seed, "widen", block))
    )
    index = torch.cat([torch.arange(before), drawn])
    share = 1 / torch.bincount(index)[index].double()
    made = Resized(0, index, torch.ones(after), share)
    resized = {name: made for i in span[:-1] for name in (*old.layers[i].parameters, *old.layers[i].buffers)}
    taker = old.layers[span[-1]]
    pixels = taker.inputs // before  # features of each channel, if a flatten is in front of the taker
    spread = (index[:, None] * pixels + torch.arange(pixels)).flatten()
    resized[f"{taker.name}.weight"] = Resized(1, spread, share.repeat_interleave(pixels), torch.ones(len(spread)))
    state = _copy(network)
    state.update({name: change.values(state[name]) for name, change in resized.items()})
    new = state[f"{old.layers[span[0]].name}.weight"][before:]
    new *= _noise(new.shape, noise, seed, f"widen {block}").to(new)
    return _network(wide, state, network), resized


def shrink(large: Network, small: Network) -> Network:
    """Return `small` with the conv or linear layer of each original block taken from `large`, which undoes growth.

    Batch norms and insertions of `small` do not change. Raises UserError if a layer has other sizes in `large`.
    """
    state, source = _copy(small), large.state_dict()
    for layer in small.architecture.layers:
        if layer.kind not in WEIGHTED or layer.inserted:
            continue
        for name, shape in layer.parameters.items():
            if name not in source or tuple(source[name].shape) != shape:
                what = f"tensor {name} of the larger network does not fit the smaller one"
                expected = f"shape {shape}"
                remedy = "go back only to a network of the same model and widths"
                raise UserError(what, where=f"model/{small.architecture.model}", expected=expected, remedy=remedy)
            state[name] = source[name].clone()
    return _network(small.architecture, state, small)


def soft_target_loss(
    student: Tensor, teacher: Tensor, targets: Tensor, weight: float, temperature: float = 2.0
) -> Tensor:
    """Return w T^2 CE(softmax(teacher / T), softmax(student / T)) + (1 - w) CE(targets, student): Hinton et al. 2015.

    student, teacher: logits (n, classes), no gradient flows into the teacher; targets: class numbers (n,), int64.
    """
    soft = F.cross_entropy(student / temperature, (teacher.detach() / temperature).softmax(1))
    return weight * temperature**2 * soft + (1 - weight) * F.cross_entropy(student, targets)


def _copy(network: Network) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def _network(architecture: Architecture, state: dict[str, Tensor], like: Network) -> Network:
    """Return a network with the device, number format and mode of the network `like`."""
    reference = next(like.parameters())
    return Network(architecture, {name: tensor.to(reference) for name, tensor in state.items()}).train(like.training)
