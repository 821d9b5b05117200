"""Random networks of every kind of layer that growth covers."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """x + inner(x), or a projection of x where the shape changes."""

    def __init__(self, inner: nn.Module, projection: nn.Module) -> None:
        super().__init__()
        self.inner, self.projection, self.out = inner, projection, nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.inner(x) + self.projection(x))


class Branches(nn.Module):
    """Branches side by side, concatenated along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class Gated(nn.Module):
    """Channels times a gate that their mean decides."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Conv2d(channels, 3, 1), nn.Conv2d(3, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.relu(self.squeeze(x.mean((2, 3), keepdim=True)))
        return x * torch.sigmoid(self.excite(gate))


class RandomNetworks:
    """Draws networks from a seed; `heads` are the names of the layers whose channels cannot change."""

    def __init__(self, seed: int, averaging_norms: bool = True, batch_norm: bool = True, dropout: bool = True) -> None:
        self.draw = random.Random(seed)
        self.averaging, self.batch_norm, self.dropout = averaging_norms, batch_norm, dropout

    def network(self) -> nn.Module:
        """Return a network that takes (n, 3, 12, 12) and returns (n, 5)."""
        channels, parts = 3, []
        for _ in range(self.draw.randint(1, 4)):
            part, channels = self.draw.choice([self.conv, self.residual, self.branches, self.depthwise, self.gated])(
                channels
            )
            parts.append(part)
        parts.append(self.draw.choice([nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Flatten()]))
        features = nn.Sequential(*parts)(torch.zeros(2, 3, 12, 12)).shape[1]
        width = self.draw.randint(2, 6)
        norms = [nn.Identity()] + [nn.BatchNorm1d(width)] * self.batch_norm + [nn.LayerNorm(width)] * self.averaging
        parts += [nn.Linear(features, width), self.draw.choice(norms), self.activation()]
        if self.dropout:
            parts.append(nn.Dropout(0.5))
        network = nn.Sequential(*parts, nn.Linear(width, 5))
        _randomise(network, self.draw.randrange(1 << 30))
        return network

    def conv(self, channels: int, outputs: int | None = None) -> tuple[nn.Module, int]:
        """A convolution with norm, activation and perhaps a pool."""
        groups = self.draw.choice([g for g in (1, 1, 2) if channels % g == 0])
        outputs = outputs or groups * self.draw.randint(1, 4)
        groups = groups if outputs % groups == 0 else 1
        kernel, dilation = (self.draw.choice([1, 3, 5]), self.draw.choice([1, 3])), self.draw.choice([1, 2])
        padding = tuple(dilation * (side // 2) for side in kernel)
        bias = self.draw.random() < 0.7
        layer = nn.Conv2d(channels, outputs, kernel, 1, padding, dilation, groups, bias)
        pool = self.draw.choice([nn.Identity(), nn.Identity(), nn.MaxPool2d(3, 1, 1), nn.AvgPool2d(3, 1, 1)])
        return nn.Sequential(layer, self.norm(outputs), self.activation(), pool), outputs

    def residual(self, channels: int) -> tuple[nn.Module, int]:
        """Two convolutions around which the input goes, through a 1x1 convolution."""
        first, middle = self.conv(channels)
        second, outputs = self.conv(middle)
        inner = nn.Sequential(first, second)
        if self.draw.random() < 0.5:  # the input of the block itself is added, which another layer makes
            start, channels = self.conv(channels)
            first, middle = self.conv(channels)
            second, _ = self.conv(middle, channels)
            return nn.Sequential(start, Residual(nn.Sequential(first, second), nn.Identity())), channels
        return Residual(inner, nn.Conv2d(channels, outputs, 1)), outputs

    def branches(self, channels: int) -> tuple[nn.Module, int]:
        """Two or three convolutions that concatenate, and a 1x1 convolution without groups that takes them all."""
        parts = [self.conv(channels) for _ in range(self.draw.randint(2, 3))]
        joined, outputs = sum(count for _, count in parts), self.draw.randint(2, 5)
        taker = nn.Conv2d(joined, outputs, 1)
        return nn.Sequential(Branches(*(part for part, _ in parts)), taker, self.activation()), outputs

    def depthwise(self, channels: int) -> tuple[nn.Module, int]:
        """A convolution, a depthwise one with a multiplier, and a 1x1 convolution."""
        start, middle = self.conv(channels)
        deep = nn.Conv2d(middle, middle * 2, 3, padding=1, groups=middle)
        outputs = self.draw.randint(2, 5)
        point = nn.Conv2d(middle * 2, outputs, 1)
        return nn.Sequential(start, deep, self.norm(middle * 2), nn.ReLU(), point), outputs

    def gated(self, channels: int) -> tuple[nn.Module, int]:
        """A convolution whose channels are gated."""
        start, outputs = self.conv(channels)
        return nn.Sequential(start, Gated(outputs)), outputs

    def norm(self, channels: int) -> nn.Module:
        """A norm over channels, or none."""
        norms = [nn.Identity()] + [nn.BatchNorm2d(channels)] * 2 * self.batch_norm
        return self.draw.choice(norms + [nn.GroupNorm(1, channels)] * self.averaging)

    def activation(self) -> nn.Module:
        """An activation; most are a ReLU."""
        return self.draw.choice([nn.ReLU(), nn.ReLU(), nn.ReLU6(), nn.Tanh(), nn.GELU()])


def images(seed: int, count: int = 16) -> Tensor:
    """Return standard normal inputs (count, 3, 12, 12)."""
    return torch.randn(count, 3, 12, 12, generator=torch.Generator().manual_seed(seed))


def _randomise(network: nn.Module, seed: int) -> None:
    """Draw all weights, and the statistics of batch norms, as if they had been trained."""
    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if name.endswith("running_var"):
                tensor.copy_(torch.rand(tensor.shape, generator=stream) + 0.5)
            elif tensor.is_floating_point():
                scale = 1.0 if tensor.ndim < 2 else tensor[0].numel() ** -0.5
                tensor.copy_(torch.randn(tensor.shape, generator=stream) * scale)
