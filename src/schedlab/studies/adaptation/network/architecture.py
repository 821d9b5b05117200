"""Networks without weights: blocks of a model file, their layers, and changes by growth."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

from schedlab.config.errors import UserError
from schedlab.config.files import canonical_json
from schedlab.config.schema import Settings, setting

# (channels, height, width) of an image, (features,) behind a flatten or a global pool; no batch axis
Shape = tuple[int, ...]

WEIGHTED = ("conv", "linear")
POOLS = ("avg_pool", "max_pool")
_KEYS = {
    "conv": {"out", "kernel", "stride", "padding", "batch_norm", "bias", "activation", "deepen"},
    "linear": {"out", "batch_norm", "bias", "activation", "deepen"},
    "avg_pool": {"kernel", "stride"},
    "max_pool": {"kernel", "stride"},
    "global_average_pool": set(),
    "flatten": set(),
    "insertion_point": set(),
}
_NEEDED = {"conv": ("out", "kernel"), "linear": ("out",), "avg_pool": ("kernel",), "max_pool": ("kernel",)}


class InputSettings(Settings):
    """The images that a model takes."""

    channels: int = setting(doc="colour channels of an image", gt=0)
    height: int = setting(doc="rows of an image", unit="pixel", gt=0)
    width: int = setting(doc="columns of an image", unit="pixel", gt=0)


class BlockSettings(Settings):
    """One block of a model: a layer with its batch norm and activation, a pool, a flatten, or an insertion point.

    conv            convolution, batch norm (optional), activation
    linear          linear layer, batch norm (optional), activation
    insertion_point a place between flat features where linear layers may be inserted; holds no layer itself
    """

    kind: Literal["conv", "linear", "avg_pool", "max_pool", "global_average_pool", "flatten", "insertion_point"] = (
        setting(doc="kind of block")
    )
    out: int | None = setting(None, doc="output channels or features of a conv or linear block", gt=0)
    kernel: int | None = setting(None, doc="side of the square kernel of a conv or pool block", unit="pixel", gt=0)
    stride: int | None = setting(
        None, doc="step of the kernel; none: 1 for a conv, the kernel for a pool", unit="pixel", gt=0
    )
    padding: int = setting(0, doc="zero padding of a conv block", unit="pixel", ge=0)
    batch_norm: bool = setting(False, doc="batch normalisation between the layer and its activation")
    bias: bool = setting(True, doc="add a bias to each output")
    activation: Literal["relu", "tanh", "sigmoid", "none"] = setting(
        "relu", doc="activation; that of the last block is left out unless `head_relu` is set"
    )
    deepen: bool = setting(True, doc="growth may insert layers behind this conv or linear block")


class ModelSettings(Settings):
    """A sequential network as a list of blocks; the last one, linear, is the head with one logit per class."""

    name: str = setting(doc="name of the model in timings and tables")
    input: InputSettings = setting(doc="input images")
    blocks: tuple[BlockSettings, ...] = setting(doc="blocks, in order", min_length=1)
    head_relu: bool = setting(
        False,
        doc="keep the activation of the last block, as in the published models (some classes then get no gradient)",
    )


@dataclass(frozen=True)
class Layer:
    """One layer. `name` is the prefix of its parameters and does not change when other layers are inserted.

    kind      conv, linear, batch_norm, relu, tanh, sigmoid, avg_pool, max_pool, global_average_pool or flatten
    inputs    number of input channels (of an image) or input features
    outputs   number of output channels or features
    block     deepenable block to which the layer belongs; None: no such block
    inserted  0 for a layer of the original model, n for a layer of the n-th insertion into its block
    """

    kind: str
    name: str
    inputs: int
    outputs: int
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    bias: bool = True
    block: int | None = None
    inserted: int = 0

    @property
    def parameters(self) -> dict[str, Shape]:
        """Shapes of the trained tensors by their full names (`<layer>.weight`, `<layer>.bias`), in torch's layout."""
        if self.kind == "batch_norm":
            return {f"{self.name}.weight": (self.outputs,), f"{self.name}.bias": (self.outputs,)}
        if self.kind not in WEIGHTED:
            return {}
        kernel = (self.kernel, self.kernel) if self.kind == "conv" else ()
        shapes = {f"{self.name}.weight": (self.outputs, self.inputs, *kernel)}
        return {**shapes, f"{self.name}.bias": (self.outputs,)} if self.bias else shapes

    @property
    def buffers(self) -> dict[str, Shape]:
        """Shapes of the tensors that are stored but not trained: a batch norm's `running_mean` and `running_var`."""
        names = ("running_mean", "running_var") if self.kind == "batch_norm" else ()
        return {f"{self.name}.{name}": (self.outputs,) for name in names}

    def output_shape(self, shape: Shape) -> Shape:
        """Return the output shape for an input shape, neither with a batch axis."""
        if self.kind == "conv" or self.kind in POOLS:
            return (self.outputs, *((side + 2 * self.padding - self.kernel) // self.stride + 1 for side in shape[1:]))
        return (self.outputs,) if self.kind in ("linear", "flatten", "global_average_pool") else shape

    def macs(self, output: Shape) -> int:
        """Return the multiply-accumulate operations for one sample, 0 for other layers than conv and linear ones."""
        return self.inputs * self.kernel**2 * prod(output) if self.kind in WEIGHTED else 0


@dataclass(frozen=True)
class Architecture:
    """A model's layers in order, with the layers that growth has inserted; equal architectures compare equal.

    New layers are inserted directly behind the original layers of a deepenable block, in front of earlier insertions
    (Net2Net, Chen et al. 2016). An insertion point has no layer: the layer in front of it has its block number.
    """

    model: str
    input: Shape
    layers: tuple[Layer, ...]

    @cached_property
    def insertions(self) -> tuple[int, ...]:
        """Insertions into each deepenable block: (n_0, ..., n_k)."""
        counts: dict[int, int] = {}
        for layer in self.layers:
            if layer.block is not None:
                counts[layer.block] = max(counts.get(layer.block, 0), layer.inserted)
        return tuple(counts[block] for block in sorted(counts))

    @property
    def deepenable_blocks(self) -> int:
        """Number of blocks behind which layers may be inserted; growth does not change it."""
        return len(self.insertions)

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Output shape of each layer, without the batch axis."""
        shapes, shape = [], self.input
        for layer in self.layers:
            shapes.append(shape := layer.output_shape(shape))
        return tuple(shapes)

    @property
    def classes(self) -> int:
        """Number of logits."""
        return self.shapes[-1][0]

    @cached_property
    def parameters(self) -> int:
        """Number of trained numbers (not a batch norm's running statistics)."""
        return sum(prod(shape) for layer in self.layers for shape in layer.parameters.values())

    @cached_property
    def macs(self) -> int:
        """Multiply-accumulate operations of one forward pass over one sample."""
        return sum(layer.macs(shape) for layer, shape in zip(self.layers, self.shapes, strict=True))

    @cached_property
    def key(self) -> str:
        """Canonical JSON of everything that defines this architecture."""
        return canonical_json(asdict(self))

    def original(self, block: int) -> list[int]:
        """Return the positions of a deepenable block's original layers. Raises UserError if there is no such block."""
        positions = [i for i, layer in enumerate(self.layers) if layer.block == block and not layer.inserted]
        if not positions:
            count = self.deepenable_blocks
            expected = f"a block from 0 to {count - 1}" if count else "a model with a deepenable block"
            what = f"there is no deepenable block {block}"
            raise UserError(what, where=f"model/{self.model}", expected=expected, remedy="change the growth action")
        return positions

    def deepened(self, block: int, bn: bool | None = None) -> Architecture:
        """Return the architecture with one more convolution (stride 1) or linear layer and ReLU behind a block.

        bn: put a batch norm between the two; None: if the block has one.
        """
        own = self.original(block)
        channels, number = self.layers[own[-1]].outputs, self.insertions[block] + 1
        if bn is None:
            bn = any(self.layers[i].kind == "batch_norm" for i in own)
        first = self.layers[own[0]]
        kinds = ("conv" if first.kind == "conv" else "linear", *(("batch_norm",) if bn else ()), "relu")
        names = {kind: f"block{block}.insert{number}.{kind}" for kind in kinds}
        new = [Layer(kind, name, channels, channels, block=block, inserted=number) for kind, name in names.items()]
        if first.kind == "conv":
            new[0] = replace(new[0], kernel=first.kernel, padding=first.kernel // 2)
        behind = own[-1] + 1
        return replace(self, layers=(*self.layers[:behind], *new, *self.layers[behind:]))

    def widening(self, block: int) -> range:
        """Return the positions from the layer that outputs a block's channels to the layer that takes them as
        inputs.
        """
        makers = [i for i in self.original(block) if self.layers[i].kind in WEIGHTED]
        takers = [i for i, layer in enumerate(self.layers) if layer.kind in WEIGHTED and makers and i > makers[0]]
        if not makers or not takers:
            what = f"block {block} cannot be widened, " + (
                "it is the head" if makers else "it is an insertion point without weights"
            )
            raise UserError(what, where=f"model/{self.model}", expected="a conv or linear block in front of the head")
        return range(makers[0], takers[0] + 1)

    def widened(self, block: int, factor: float) -> Architecture:
        """Return the architecture whose block has `factor` (above 1) times the channels, rounded."""
        span, layers = self.widening(block), list(self.layers)
        old = layers[span[0]].outputs
        new = round(old * factor)
        if new <= old:
            what = f"factor {factor} leaves {new} of {old} channels"
            raise UserError(what, where=f"model/{self.model}", expected="a factor above 1")
        layers[span[0]] = replace(layers[span[0]], outputs=new)
        for i in span[1:-1]:
            layers[i] = replace(layers[i], inputs=layers[i].inputs // old * new, outputs=layers[i].outputs // old * new)
        layers[span[-1]] = replace(layers[span[-1]], inputs=layers[span[-1]].inputs // old * new)
        return replace(self, layers=tuple(layers))


def architecture(model: ModelSettings) -> Architecture:
    """Return the layers of a model. Raises UserError, which names the block that does not fit.

    The head has no activation unless `head_relu` is set. A deepenable head with a ReLU is deepened behind it, as in the
    published system. Without the ReLU, an inserted ReLU behind the head would cut the logits. Layers are then inserted
    in front of the head, if the features there cannot be negative and the block in front does not offer the same place;
    otherwise the head is not deepenable.
    """
    image = (model.input.channels, model.input.height, model.input.width)
    layers: list[Layer] = []
    shape: Shape = image
    number = 0
    for position, block in enumerate(model.blocks):
        head = position == len(model.blocks) - 1
        fail = _Complaint(model, position)
        _check_block(block, shape, fail, head)
        if block.kind == "insertion_point":
            _check_insertion_point(layers, shape, fail)
            layers[-1] = replace(layers[-1], block=number)
            number += 1
            continue
        if head and not model.head_relu:
            block = block.model_copy(update={"activation": "none"})
            if block.deepen and _offers_place(layers):
                layers[-1] = replace(layers[-1], block=number)
            own = None
        else:
            own = _own_number(block, number, fail)
            number += own is not None
        name = "head" if head else f"{block.kind}{position}" if own is None else f"block{own}"
        for layer in _layers(block, shape, name, own):
            shape = layer.output_shape(shape)
            layers.append(layer)
    return Architecture(model.name, image, tuple(layers))


def require_fit(architecture: Architecture, data: str, shape: Shape, classes: int, where: str = "") -> None:
    """Raise UserError if a network does not fit the images (channels, height, width) and classes of a data set."""
    if architecture.input != tuple(shape) or architecture.classes != classes:
        what = f"the model {architecture.model} takes images {architecture.input} of {architecture.classes} classes"
        expected = f"images {tuple(shape)} of {classes} classes, as the data set {data} has"
        remedy = "choose a model for this data set, or the data set that the model is for"
        raise UserError(what, where=where, expected=expected, remedy=remedy)


def _layers(block: BlockSettings, shape: Shape, name: str, number: int | None) -> list[Layer]:
    """Return the layers of one block that fits its input shape."""
    kernel, outputs = block.kernel or 1, block.out or 0
    if block.kind in WEIGHTED:
        layer = Layer(block.kind, f"{name}.{block.kind}", shape[0], outputs, bias=block.bias, block=number)
        if block.kind == "conv":
            layer = replace(layer, kernel=kernel, stride=block.stride or 1, padding=block.padding)
        kinds = [*(["batch_norm"] if block.batch_norm else []), block.activation]
        return [layer, *(Layer(k, f"{name}.{k}", outputs, outputs, block=number) for k in kinds if k != "none")]
    if block.kind in POOLS:
        return [Layer(block.kind, name, shape[0], shape[0], kernel=kernel, stride=block.stride or kernel)]
    return [Layer(block.kind, name, shape[0], prod(shape) if block.kind == "flatten" else shape[0])]


class _Complaint:
    """Makes the error of one block of a model."""

    def __init__(self, model: ModelSettings, position: int) -> None:
        self.where = f"model/{model.name}: blocks.{position} ({model.blocks[position].kind})"

    def __call__(self, what: str, expected: str = "", remedy: str = "") -> UserError:
        return UserError(what, where=self.where, expected=expected, remedy=remedy)


def _check_block(block: BlockSettings, shape: Shape, fail: _Complaint, head: bool) -> None:
    for key in _NEEDED.get(block.kind, ()):
        if getattr(block, key) is None:
            raise fail(f"key '{key}' is missing")
    changed = {key for key, field in BlockSettings.model_fields.items() if getattr(block, key) != field.default}
    if idle := sorted(changed - _KEYS[block.kind] - {"kind"}):
        raise fail(f"key '{idle[0]}' means nothing here", remedy="remove it")
    if head and block.kind != "linear":
        raise fail("the last block is not linear", "a linear block with one output for each class as the head")
    image = len(shape) == 3
    if block.kind in ("linear", "insertion_point") and image:
        raise fail(
            f"it needs flat features and gets an image {shape}",
            remedy="put a flatten or a global_average_pool in front of it",
        )
    if block.kind not in ("linear", "insertion_point") and not image:
        raise fail(
            f"it needs an image and gets {shape[0]} flat features",
            remedy="move it in front of the flatten or global pool",
        )
    room = min(shape[1:], default=0) + 2 * block.padding
    if block.kernel and block.kernel > room:
        raise fail(
            f"kernel {block.kernel} does not fit the image {shape}",
            f"at most {room}",
            "use a smaller kernel or fewer pools",
        )


def _own_number(block: BlockSettings, number: int, fail: _Complaint) -> int | None:
    """Return `number` if a block is deepenable, else None. Raises UserError if `deepen` is set but not possible."""
    if block.kind not in WEIGHTED or not block.deepen:
        return None
    remedy = "or set deepen: false"
    if block.activation != "relu":
        named = f"activation {block.activation} is not idempotent"
        what = named if block.activation != "none" else "there is no activation"
        raise fail(
            f"{what}, so a layer inserted behind this block would change the network", "activation: relu", remedy
        )
    if block.kind == "conv" and block.kernel and block.kernel % 2 == 0:
        raise fail(f"kernel {block.kernel} is even and has no centre for an identity", "an odd kernel", remedy)
    return number


def _check_insertion_point(layers: list[Layer], shape: Shape, fail: _Complaint) -> None:
    if not _non_negative(layers):
        raise fail(
            f"the {shape[0]} features here can be negative, so an inserted ReLU would cut them", "a ReLU in front of it"
        )
    if not _offers_place(layers):
        raise fail("the block in front of it is deepenable at the same place", remedy="remove one of the two")


def _offers_place(layers: list[Layer]) -> bool:
    """Return whether a linear layer with ReLU may be inserted behind the last layer, and no block offers this yet."""
    return _non_negative(layers) and layers[-1].block is None


def _non_negative(layers: list[Layer]) -> bool:
    """Return whether no output can be negative: the last layers are a ReLU or sigmoid, then only pools and flattens."""
    for layer in reversed(layers):
        if layer.kind in WEIGHTED or layer.kind in ("batch_norm", "tanh"):
            return False
        if layer.kind in ("relu", "sigmoid"):
            return True
    return False
