"""The models that are traced into graphs: each layer of torch.nn, and each other operation of `forward`, becomes an op.

Layer sizes follow the papers: AlexNet (Krizhevsky 2014, one tower), VGG-16 (Simonyan, Zisserman 2015), ResNet (He et
al. 2016), SqueezeNet 1.0 (Iandola et al. 2016), GNMT (Wu et al. 2016, with four layers a side), Transformer (Vaswani et
al. 2017, layer norm first). Batch sizes are those of PipeDream's files. All tensors are on torch's meta device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

PICTURE = (3, 224, 224)
CLASSES = 1000
WORDS, WIDTH = 32_320, 1024  # of GNMT
SENTENCE = 48  # words of a sentence


def _pictures(batch: int) -> tuple[Tensor, ...]:
    return (torch.empty(batch, *PICTURE),)


def _sentences(batch: int) -> tuple[Tensor, ...]:
    """Words of source and target, (sentence, batch); the target is one shorter, as its last word is only predicted."""
    return torch.zeros(SENTENCE, batch, dtype=torch.long), torch.zeros(SENTENCE - 1, batch, dtype=torch.long)


def _tokens(batch: int) -> tuple[Tensor, ...]:
    """Words (batch, sentence) and their places."""
    return torch.zeros(batch, Transformer.LENGTH, dtype=torch.long), torch.zeros(
        1, Transformer.LENGTH, dtype=torch.long
    )


class Classifier(nn.Module):
    """Feature layers, whose output is flattened and passed to a classifier."""

    def __init__(self, features: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.features, self.classifier = features, classifier

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes, (batch, classes)."""
        x = self.features(x)
        return self.classifier(x.view(x.size(0), -1))


def alexnet() -> nn.Module:
    """AlexNet in one tower, 61 million parameters."""
    features: list[nn.Module] = []
    layers = (
        (3, 64, 11, 4, 2, True),
        (64, 192, 5, 1, 2, True),
        (192, 384, 3, 1, 1, False),
        (384, 256, 3, 1, 1, False),
        (256, 256, 3, 1, 1, True),
    )
    for channels, out, kernel, stride, padding, pooled in layers:
        features += [nn.Conv2d(channels, out, kernel, stride, padding), nn.ReLU()]
        features += [nn.MaxPool2d(3, 2)] if pooled else []
    return Classifier(nn.Sequential(*features), _dense(256 * 6 * 6, dropout_first=True))


def vgg16() -> nn.Module:
    """VGG-16, 138 million parameters."""
    features: list[nn.Module] = []
    channels = 3
    for out, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            features += [nn.Conv2d(channels, out, 3, padding=1), nn.ReLU()]
            channels = out
        features.append(nn.MaxPool2d(2, 2))
    return Classifier(nn.Sequential(*features), _dense(512 * 7 * 7, dropout_first=False))


def _dense(inputs: int, *, dropout_first: bool) -> nn.Sequential:
    first = [nn.Linear(inputs, 4096), nn.ReLU()]
    second = [nn.Linear(4096, 4096), nn.ReLU()]
    layers = (
        [nn.Dropout(), *first, nn.Dropout(), *second]
        if dropout_first
        else [*first, nn.Dropout(), *second, nn.Dropout()]
    )
    return nn.Sequential(*layers, nn.Linear(4096, CLASSES))


class Residual(nn.Module):
    """A residual block: the sum of its input and the output of its layers; `shortcut` converts the input if the sizes
    differ.
    """

    def __init__(self, layers: list[nn.Module], shortcut: nn.Module | None) -> None:
        super().__init__()
        self.layers, self.shortcut, self.relu = nn.Sequential(*layers), shortcut, nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum, through a ReLU."""
        return self.relu(self.layers(x) + (x if self.shortcut is None else self.shortcut(x)))


def _convolution(channels: int, out: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out)]


def _resnet(blocks: tuple[int, ...], *, bottleneck: bool) -> nn.Module:
    features: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        out = 4 * width if bottleneck else width
        for block in range(count):
            stride = 2 if stage and not block else 1
            if bottleneck:
                layers = [
                    *_convolution(channels, width, 1),
                    nn.ReLU(),
                    *_convolution(width, width, 3, stride),
                    nn.ReLU(),
                ]
                layers += _convolution(width, out, 1)
            else:
                layers = [*_convolution(channels, out, 3, stride), nn.ReLU(), *_convolution(out, out, 3)]
            fits = stride == 1 and channels == out
            features.append(Residual(layers, None if fits else nn.Sequential(*_convolution(channels, out, 1, stride))))
            channels = out
    return Classifier(nn.Sequential(*features, nn.AvgPool2d(7)), nn.Linear(channels, CLASSES))


def resnet18() -> nn.Module:
    """ResNet-18, 12 million parameters."""
    return _resnet((2, 2, 2, 2), bottleneck=False)


def resnet50() -> nn.Module:
    """ResNet-50, 26 million parameters."""
    return _resnet((3, 4, 6, 3), bottleneck=True)


class Fire(nn.Module):
    """SqueezeNet's block: a layer with few channels, then two parallel layers with more, with small and large
    kernels.
    """

    def __init__(self, channels: int, squeezed: int, widened: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(channels, squeezed, 1), nn.ReLU())
        self.small = nn.Sequential(nn.Conv2d(squeezed, widened, 1), nn.ReLU())
        self.large = nn.Sequential(nn.Conv2d(squeezed, widened, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of both parallel layers, concatenated by channels."""
        x = self.squeeze(x)
        return torch.cat([self.small(x), self.large(x)], 1)


class SqueezeNet(nn.Module):
    """SqueezeNet 1.0, 1.2 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        fires = [nn.Conv2d(3, 96, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)]
        fires += [Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True)]
        fires += [
            Fire(256, 32, 128),
            Fire(256, 48, 192),
            Fire(384, 48, 192),
            Fire(384, 64, 256),
            nn.MaxPool2d(3, 2, ceil_mode=True),
        ]
        self.features = nn.Sequential(*fires, Fire(512, 64, 256))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Conv2d(512, CLASSES, 1), nn.ReLU(), nn.AvgPool2d(13))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes, (batch, classes)."""
        x = self.classifier(self.features(x))
        return x.view(x.size(0), -1)


class Attention(nn.Module):
    """Additive attention (Bahdanau et al. 2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.tanh, self.score, self.softmax = nn.Tanh(), nn.Linear(WIDTH, 1, bias=False), nn.Softmax(-1)

    def forward(self, queries: Tensor, context: Tensor) -> Tensor:
        """Return for each query (target, batch, width) a mean of the context (source, batch, width)."""
        asked, known = self.query(queries.transpose(0, 1)), self.key(context.transpose(0, 1))
        scores = self.score(self.tanh(asked.unsqueeze(2) + known.unsqueeze(1))).squeeze(3)  # (batch, target, source)
        return torch.bmm(self.softmax(scores), context.transpose(0, 1)).transpose(0, 1)


class Gnmt(nn.Module):
    """A translator like GNMT: four LSTM layers in encoder and decoder, the first encoder layer in both directions, with
    residual connections.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words, self.predicted = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.both = nn.LSTM(WIDTH, WIDTH, bidirectional=True)
        self.encoder = nn.ModuleList([nn.LSTM(2 * WIDTH, WIDTH), nn.LSTM(WIDTH, WIDTH), nn.LSTM(WIDTH, WIDTH)])
        self.asking, self.attention = nn.LSTM(WIDTH, WIDTH), Attention()
        self.decoder = nn.ModuleList([nn.LSTM(2 * WIDTH, WIDTH) for _ in range(3)])
        self.dropout, self.classifier = nn.Dropout(0.2), nn.Linear(WIDTH, WORDS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the scores of the next words, (target, batch, words)."""
        context = self.dropout(self.both(self.words(source))[0])
        for number, layer in enumerate(self.encoder):
            out = layer(context if number == 0 else self.dropout(context))[0]
            context = out if number == 0 else out + context
        queries = self.asking(self.predicted(target))[0]
        seen = self.attention(queries, context)
        x = queries
        for number, layer in enumerate(self.decoder):
            out = layer(torch.cat([self.dropout(x), seen], 2))[0]
            x = out if number == 0 else out + x
        return self.classifier(x)


class Block(nn.Module):
    """A block of a transformer: attention, then two linear layers; each part has a layer norm and a residual
    connection.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.depth = heads, width // heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.softmax, self.dropout = nn.Softmax(-1), nn.Dropout(0.1)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, length, width)."""
        rows = self.first(x)
        queries, keys, values = (self._by_head(layer(rows)) for layer in (self.query, self.key, self.value))
        shares = self.softmax(torch.matmul(queries, keys.transpose(2, 3)) / self.depth**0.5)
        x = x + self.dropout(self.out(torch.matmul(shares, values).transpose(1, 2).flatten(2)))
        return x + self.dropout(self.wide(self.second(x)))

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, self.depth)).transpose(1, 2)


class Transformer(nn.Module):
    """A stack of transformer blocks over embedded words, with a layer that predicts words."""

    LENGTH = 128
    WORDS, WIDTH, HEADS, BLOCKS = 32_000, 512, 8, 3

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(self.WORDS, self.WIDTH), nn.Embedding(self.LENGTH, self.WIDTH)
        self.blocks = nn.Sequential(*(Block(self.WIDTH, self.HEADS) for _ in range(self.BLOCKS)))
        self.norm, self.classifier = nn.LayerNorm(self.WIDTH), nn.Linear(self.WIDTH, self.WORDS)

    def forward(self, words: Tensor, places: Tensor) -> Tensor:
        """Return the scores of the next words, (batch, length, words)."""
        return self.classifier(self.norm(self.blocks(self.words(words) + self.places(places))))


@dataclass(frozen=True)
class TracedModel:
    """The constructor of a model, of its inputs for a batch size, and the batch size that PipeDream used."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Tensor, ...]]
    batch: int


MODELS = {
    "alexnet": TracedModel(alexnet, _pictures, 256),
    "vgg16": TracedModel(vgg16, _pictures, 128),
    "resnet18": TracedModel(resnet18, _pictures, 256),
    "resnet50": TracedModel(resnet50, _pictures, 128),
    "squeezenet": TracedModel(SqueezeNet, _pictures, 256),
    "gnmt": TracedModel(Gnmt, _sentences, 32),
    "transformer": TracedModel(Transformer, _tokens, 64),
}
