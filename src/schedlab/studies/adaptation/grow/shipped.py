"""Networks by name: VGG and ResNet for 32x32 images, and the models of the study as modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from schedlab.studies.adaptation.network.architecture import Architecture, Layer
from schedlab.studies.adaptation.network.models import initial_tensors

PICTURE = (3, 32, 32)
_VGG = {
    "vgg11": "64 M 128 M 256 256 M 512 512 M 512 512 M",
    "vgg13": "64 64 M 128 128 M 256 256 M 512 512 M 512 512 M",
    "vgg16": "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M",
    "vgg19": "64 64 M 128 128 M 256 256 256 256 M 512 512 512 512 M 512 512 512 512 M",
}
_RESNET = {f"resnet{depth}": (depth - 2) // 6 for depth in (20, 32, 44, 56, 110)}


def vgg(name: str, classes: int = 10, width: int = 64) -> nn.Module:
    """Return `vgg11` to `vgg19` (Simonyan and Zisserman 2015) with batch norm and one linear layer, for CIFAR.

    Takes (n, 3, 32, 32), returns (n, classes); width: channels of the first layer, 64 in the paper.
    """
    layers: list[nn.Module] = []
    channels = 3
    for word in _VGG[name].split():
        if word == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        out = int(word) * width // 64
        layers += [nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        channels = out
    head = OrderedDict(features=nn.Sequential(*layers), flatten=nn.Flatten(), classifier=nn.Linear(channels, classes))
    return nn.Sequential(head)


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with batch norm, added to the input or, where its shape changes, to a 1x1 convolution of it.

    Takes (n, inputs, h, w), returns (n, outputs, h / stride, w / stride).
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu2 = nn.ReLU()
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        inner = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(inner + self.shortcut(x))


def resnet(name: str, classes: int = 10, width: int = 16) -> nn.Module:
    """Return `resnet20` to `resnet110` for CIFAR (He et al. 2016, section 4.2), with 1x1 convolutions as shortcuts.

    Takes (n, 3, 32, 32), returns (n, classes); width: channels of the first stage, 16 in the paper.
    """
    stages: list[nn.Module] = []
    channels = width
    for stage in range(3):
        out = width * 2**stage
        for number in range(_RESNET[name]):
            stages.append(ResidualBlock(channels, out, 2 if stage and not number else 1))
            channels = out
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(3, width, 3, padding=1, bias=False),
            bn=nn.BatchNorm2d(width),
            relu=nn.ReLU(),
            blocks=nn.Sequential(*stages),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            classifier=nn.Linear(channels, classes),
        )
    )


SHIPPED: dict[str, Callable[[str], nn.Module]] = {**dict.fromkeys(_VGG, vgg), **dict.fromkeys(_RESNET, resnet)}


def module_of_study(architecture: Architecture, seed: int) -> nn.Module:
    """Return a model of the study as a module of layers, with the study's names and initial values.

    Takes (n, *architecture.input), returns (n, classes).
    """
    pairs = zip(architecture.layers, architecture.shapes, strict=True)
    modules = ((layer.name.replace(".", "_"), _module(layer, len(shape) == 3)) for layer, shape in pairs)
    network = nn.Sequential(OrderedDict(modules))
    tensors = [initial_tensors(layer, seed) for layer in architecture.layers]
    with torch.no_grad():
        for module, layer, values in zip(network, architecture.layers, tensors, strict=True):
            for name, tensor in values.items():
                getattr(module, name.removeprefix(f"{layer.name}.")).copy_(tensor)
    return network


def _module(layer: Layer, image: bool) -> nn.Module:
    kernel, stride = layer.kernel, layer.stride
    makers: dict[str, Callable[[], nn.Module]] = {
        "conv": lambda: nn.Conv2d(layer.inputs, layer.outputs, kernel, stride, layer.padding, bias=layer.bias),
        "linear": lambda: nn.Linear(layer.inputs, layer.outputs, bias=layer.bias),
        "batch_norm": lambda: (nn.BatchNorm2d if image else nn.BatchNorm1d)(layer.outputs),
        "avg_pool": lambda: nn.AvgPool2d(kernel, stride),
        "max_pool": lambda: nn.MaxPool2d(kernel, stride),
        "global_average_pool": lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        "flatten": nn.Flatten,
        "relu": nn.ReLU,
        "tanh": nn.Tanh,
        "sigmoid": nn.Sigmoid,
    }
    return makers[layer.kind]()
