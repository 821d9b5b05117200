"""Any torch network as a graph of torch.fx: traced with shapes, its layers by name, its operations by kind."""

from __future__ import annotations

import copy
import inspect
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from schedlab.config.errors import UserError, did_you_mean

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
LAYERS = (*CONVOLUTIONS, nn.Linear)
DROPOUTS = {
    F.dropout: nn.Dropout,
    F.dropout1d: nn.Dropout1d,
    F.dropout2d: nn.Dropout2d,
    F.dropout3d: nn.Dropout3d,
    F.alpha_dropout: nn.AlphaDropout,
}
TOLERANCE = 1e-3  # of the outputs, relative: a larger difference is not due to rounding
EXAMPLES = 8  # inputs from which the shapes are taken, and on which a grown network is checked
_TORCH = Path(torch.__file__).parent


def trace(model: nn.Module, inputs: Tensor) -> fx.GraphModule:
    """Return a copy of a network as a graph; `model` is not changed.

    inputs: a batch (n, ...), of which the first 8 are run. Each node's `meta["shape"]` is then the shape of its tensor,
    batch axis included, or None if the node is no tensor. Raises UserError if the network does not run on the inputs,
    does not take and return one tensor, cannot be traced, or has another graph in training mode.
    """
    name = type(model).__name__
    try:
        root = copy.deepcopy(model)
    except Exception as error:
        raise UserError(f"the network cannot be copied: {_line(error)}", where=name) from error
    inputs = inputs[:EXAMPLES]
    _run(root, inputs, name)
    modes = {key: module.training for key, module in root.named_modules()}
    evaluation, training = (_symbolic(root.train(mode), name) for mode in (False, True))
    _free_dropouts(evaluation, training)
    if evaluation.code != training.code:
        what = "it computes different things in training and in evaluation mode"
        raise UserError(what, where=name, expected="one graph for both", remedy="move the difference into a layer")
    for key, module in training.named_modules():
        module.training = modes.get(key, modes[""])
    _one_tensor(training, name)
    _Shapes(training).run(inputs)
    return training


def layer_names(model: nn.Module, inputs: Tensor) -> list[str]:
    """Return the names of a network's convolutions and linear layers, in the order in which they run.

    inputs: a batch (n, ...) with which the network runs. Raises UserError as `trace` does.
    """
    return list(layers(trace(model, inputs)))


def layers(graph: fx.GraphModule) -> dict[str, fx.Node]:
    """Return the first call of each convolution and linear layer by its name, in the order of execution."""
    found: dict[str, fx.Node] = {}
    for node in graph.graph.nodes:
        if node.op == "call_module" and type(module_of(node)) in LAYERS:
            found.setdefault(node.target, node)
    return found


def find_layer(graph: fx.GraphModule, block: str) -> fx.Node:
    """Return the call of a layer. Raises UserError if there is none of this name, or if it cannot be grown at all."""
    found = layers(graph)
    if block not in found:
        others = dict(graph.named_modules())
        if block in others and type(others[block]) is not nn.Module:
            what = f"it is a {type(others[block]).__name__}, and only convolutions and linear layers grow"
            raise UserError(what, where=block, remedy=f"choose one of {_some(found)}")
        remedy = did_you_mean(block, found) if found else "choose a network of convolutions and linear layers"
        raise UserError(f"there is no convolution or linear layer '{block}'", where="the network", remedy=remedy)
    require_own_weights(found[block])
    return found[block]


def require_own_weights(node: fx.Node) -> None:
    """Raise UserError if a module cannot change its shape, because it runs twice, shares tensors, or computes its
    weights.
    """
    graph, module = node.graph.owning_module, module_of(node)
    if sum(other.op == "call_module" and module_of(other) is module for other in node.graph.nodes) > 1:
        raise refusal(node, "it runs more than once, so that its other uses would change too")
    mine = {id(tensor) for tensor in module.parameters()}
    others = (other for other in graph.modules() if other is not module)
    if any(id(tensor) in mine for other in others for tensor in other.parameters(recurse=False)):
        raise refusal(node, "it shares its weights with another module")
    if type(module) in LAYERS and "weight" not in dict(module.named_parameters(recurse=False)):
        raise refusal(node, "its weights are computed from other tensors (a parametrization or a hook)")


def module_of(node: fx.Node) -> nn.Module:
    """Return the module that a `call_module` node calls."""
    return node.graph.owning_module.get_submodule(str(node.target))


def kind(node: fx.Node) -> str:
    """Return what a node computes, in small letters without underscores; modules, functions and methods have the same
    names.

    `relu`, `maxpool2d`, `batchnorm1d`, `add`, `cat`, `conv`, `linear`, ...; '' where the code is not torch's.
    """
    if node.op == "call_module":
        module = module_of(node)
        if type(module) in LAYERS:
            return "linear" if isinstance(module, nn.Linear) else "conv"
        return _plain(type(module).__name__) if type(module).__module__.startswith("torch.nn.") else ""
    if node.op == "call_function":
        home = (getattr(node.target, "__module__", None) or "torch").partition(".")[0]
        name = getattr(node.target, "__name__", "")
        known = home in ("torch", "_operator")
        return _plain({"iadd": "add", "isub": "sub", "imul": "mul"}.get(name, name)) if known else ""
    return _plain(str(node.target)) if node.op == "call_method" else node.op


def shape(node: fx.Node) -> tuple[int, ...]:
    """Return the shape of a node's tensor, with the batch axis; () if it is no tensor."""
    return node.meta.get("shape") or ()


def operands(node: fx.Node) -> list[fx.Node]:
    """Return the tensors that a node takes, in order."""
    return [other for other in node.all_input_nodes if shape(other)]


def refusal(node: fx.Node, why: str, remedy: str = "") -> UserError:
    """Return the error that names a node's module or operation and the reason why it prevents the growth."""
    if node.op == "call_module":
        return UserError(why, where=f"{node.target} ({type(module_of(node)).__name__})", remedy=remedy)
    name = getattr(node.target, "__name__", str(node.target))
    return UserError(why, where=f"the operation {name}" if node.op.startswith("call") else name, remedy=remedy)


def passage(node: fx.Node, axis: int) -> tuple[int, int] | None:
    """Return how the channels along `axis` of a node's first tensor pass through the node: (new axis, features per
    channel).

    None: they do not pass one by one. Normalisations that average over channels count as passing; `resize` checks them.
    """
    source, what = operands(node)[0], kind(node)
    before, after = shape(source), shape(node)
    if what in ELEMENTWISE or (what in NORMS and node.op == "call_module"):
        return axis, 1
    if what in POOLS:
        return (axis, 1) if axis == 1 and len(before) == len(after) and before[:2] == after[:2] else None
    if what in RESHAPES:
        return _through_reshape(before, after, axis)
    if what in REDUCTIONS:
        return _through_reduction(node, before, axis)
    if what in ("permute", "transpose"):
        order = list(range(len(before)))
        if what == "permute":
            given = node.args[1] if isinstance(node.args[1], tuple | list) else node.args[1:]
            order = [int(entry) % len(before) for entry in given]
        else:
            first, second = (int(entry) % len(before) for entry in node.args[1:3])
            order[first], order[second] = second, first
        return order.index(axis), 1
    if what == "pad" and len(node.args) > 1 and isinstance(node.args[1], tuple | list):
        return (axis, 1) if len(node.args[1]) // 2 < len(before) - axis else None
    if what == "getitem" and isinstance(node.args[1], tuple) and all(isinstance(e, slice) for e in node.args[1]):
        whole = axis >= len(node.args[1]) or node.args[1][axis] == slice(None)
        return (axis, 1) if whole else None
    return None


def relative_difference(before: nn.Module, after: nn.Module, inputs: Tensor) -> float:
    """Return the largest difference of two networks' outputs over the largest output, both in evaluation mode.

    inputs: a batch (n, ...). The networks keep their modes; no gradient is computed.
    """
    old, new = (_run(model, inputs, type(model).__name__) for model in (before, after))
    largest = float(old.abs().max())
    distance = float((old - new).abs().max())
    return distance / largest if largest else distance


def checked(before: nn.Module, after: fx.GraphModule, inputs: Tensor) -> fx.GraphModule:
    """Return a grown network. Raises UserError if its outputs differ from those of the one before."""
    after.graph.lint()
    after.recompile()
    inputs = inputs[:EXAMPLES]
    distance = relative_difference(before, after, inputs)
    if not distance <= TOLERANCE:
        what = f"the outputs of the grown network differ by {distance:.2g}, relative"
        expected = "a network whose outputs depend on its input alone and are finite numbers"
        raise UserError(
            what, where=type(before).__name__, expected=expected, remedy="remove randomness from evaluation"
        )
    _Shapes(after).run(inputs)
    return after


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a network in evaluation mode without gradients within the block, then restore the mode of each module."""
    modes = {module: module.training for module in model.modules()}
    model.train(False)
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


ELEMENTWISE = names(
    "relu relu6 leakyrelu prelu rrelu elu selu celu gelu silu mish tanh sigmoid logsigmoid hardtanh hardswish "
    "hardsigmoid softplus softsign softshrink hardshrink tanhshrink threshold identity dropout dropout1d dropout2d "
    "dropout3d alphadropout featurealphadropout contiguous clone abs neg exp sqrt square clamp float"
)
CHANNEL_NORMS = frozenset(f"{name}{n}d" for name in ("batchnorm", "instancenorm") for n in (1, 2, 3))
NORMS = CHANNEL_NORMS | {"layernorm", "groupnorm"}
POOLS = frozenset(
    [f"{name}pool{n}d" for name in ("max", "avg", "adaptiveavg", "adaptivemax", "lp") for n in (1, 2, 3)]
    + [f"{name}pad{n}d" for name in ("zero", "constant", "reflection", "replication", "circular") for n in (1, 2, 3)]
    + ["interpolate", "upsample", "upsamplingnearest2d", "upsamplingbilinear2d"]
)
RESHAPES = frozenset(["flatten", "view", "reshape", "squeeze", "unsqueeze"])
REDUCTIONS = frozenset(["mean", "sum", "amax", "amin"])
SUMS = frozenset(["add", "sub", "mul", "truediv", "div"])
JOINS = frozenset(["cat", "concat", "concatenate"])


class _Shapes(fx.Interpreter):
    """Runs a graph in evaluation mode and records each node's shape and, in `seen`, the tensor of the node `stop`."""

    def __init__(self, graph: fx.GraphModule, stop: fx.Node | None = None) -> None:
        super().__init__(graph)
        self.stop, self.seen = stop, torch.empty(0)

    def run(self, *args: Any, **keywords: Any) -> Any:
        with evaluating(self.module):
            return super().run(*args, **keywords)

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        n.meta["shape"] = tuple(result.shape) if isinstance(result, Tensor) else None
        if n is self.stop:
            self.seen = result.clone()
        return result


def values_at(graph: fx.GraphModule, node: fx.Node, inputs: Tensor) -> Tensor:
    """Return the tensor of a node for some inputs, in evaluation mode."""
    runner = _Shapes(graph, node)
    runner.run(inputs)
    return runner.seen


def _run(model: nn.Module, inputs: Tensor, name: str) -> Tensor:
    try:
        with evaluating(model):
            output = model(inputs)
    except Exception as error:
        what = f"the network does not run on inputs of shape {tuple(inputs.shape)}: {_line(error)}"
        raise UserError(what, where=_place(error) or name, remedy="give the shape of its inputs, or mend it") from error
    if not isinstance(output, Tensor) or not output.numel():
        what = f"the network returns a {type(output).__name__}"
        raise UserError(what, where=name, expected="one tensor", remedy="wrap it in a module that returns one tensor")
    return output


def _symbolic(root: nn.Module, name: str) -> fx.GraphModule:
    signature = inspect.signature(root.forward).parameters.values()
    defaults = {entry.name: entry.default for entry in signature if entry.default is not entry.empty}
    if next(iter(signature)).name in defaults:
        defaults.pop(next(iter(signature)).name)
    try:
        graph = fx.symbolic_trace(root, concrete_args=defaults or None)
    except Exception as error:
        what = f"its control flow or its shapes depend on the data, which torch.fx cannot trace: {_line(error)}"
        remedy = "replace the branch or loop by operations on whole tensors"
        raise UserError(what, where=_place(error) or name, remedy=remedy) from error
    for node in reversed(graph.graph.nodes):
        if node.op == "call_function" and getattr(node.target, "__name__", "").startswith("_assert"):
            graph.graph.erase_node(node)
            condition = node.args[0]
            if isinstance(condition, fx.Node) and condition.op != "placeholder" and not condition.users:
                graph.graph.erase_node(condition)
    for node in [node for node in graph.graph.nodes if node.op == "placeholder"][1:]:
        if not node.users:
            graph.graph.erase_node(node)
    graph.recompile()
    return graph


def _free_dropouts(evaluation: fx.GraphModule, training: fx.GraphModule) -> None:
    """Replace functional dropouts whose argument `training` is the network's mode by modules, in both graphs."""
    pairs = list(zip(evaluation.graph.nodes, training.graph.nodes, strict=False))
    for number, (one, two) in enumerate(pairs):
        if one.target is not two.target or one.op != "call_function" or one.target not in DROPOUTS:
            continue
        given = [arguments(node) for node in (one, two)]
        if [entry["training"] for entry in given] != [False, True]:
            continue
        for graph, node in ((evaluation, one), (training, two)):
            name = f"functional_dropout{number}"
            graph.add_submodule(name, DROPOUTS[node.target](given[0]["p"], given[0]["inplace"]))
            with graph.graph.inserting_after(node):
                new = graph.graph.call_module(name, (given[graph is training]["input"],))
            node.replace_all_uses_with(new)
            graph.graph.erase_node(node)
    for graph in (evaluation, training):
        graph.recompile()


def arguments(node: fx.Node) -> dict[str, Any]:
    """Return the arguments of a call of a Python function by name, defaults included."""
    bound = inspect.signature(node.target).bind(*node.args, **node.kwargs)  # type: ignore[arg-type]
    bound.apply_defaults()
    return bound.arguments


def _one_tensor(graph: fx.GraphModule, name: str) -> None:
    places = [str(node.target) for node in graph.graph.nodes if node.op == "placeholder"]
    if len(places) != 1 or places[0].startswith("*"):
        what = f"the network takes {', '.join(places) or 'nothing'}"
        raise UserError(what, where=name, expected="one tensor", remedy="wrap it in a module that takes one tensor")


def _through_reshape(before: Sequence[int], after: Sequence[int], axis: int) -> tuple[int, int] | None:
    for place in range(len(after)):
        behind, inner = prod(after[place + 1 :]), prod(before[axis + 1 :])
        if prod(after[:place]) == prod(before[:axis]) and inner % behind == 0:
            pixels = inner // behind
            if after[place] == before[axis] * pixels:
                return place, pixels
    return None


def _through_reduction(node: fx.Node, before: Sequence[int], axis: int) -> tuple[int, int] | None:
    given = node.kwargs.get("dim", node.args[1:] if len(node.args) > 1 else None)
    while isinstance(given, tuple | list) and len(given) and isinstance(given[0], tuple | list):
        given = given[0]
    if given is None:
        return None
    entries = [given] if isinstance(given, int) else [entry for entry in given if not isinstance(entry, bool)]
    gone = {int(entry) % len(before) for entry in entries}
    if axis in gone:
        return None
    dropped = len(shape(node)) < len(before)
    return (axis - sum(entry < axis for entry in gone) if dropped else axis), 1


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _some(names: dict[str, fx.Node]) -> str:
    return ", ".join(list(names)[:12]) + (", ..." if len(names) > 12 else "") if names else "another network's"


def _line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def _place(error: BaseException) -> str:
    """Return file and line of the deepest code that raised outside torch and this package; '' if there is none."""
    own = Path(__file__).parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.suffix == ".py" and _TORCH not in path.parents and own not in path.parents:
            return f"{path}:{frame.lineno}"
    return ""
