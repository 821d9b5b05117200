"""Tracing a model of torch into a graph, with the time that each op takes on a named device.

Time of an op: the larger of its floating-point operations over the device's rate and its bytes over the device's memory
bandwidth (the roofline of Williams, Waterman, Patterson 2009). Bytes are those of inputs, parameters and outputs, each
once; views are free. Operations are those of matrix products and convolutions, as torch counts them; everything else is
bound by memory. The backward pass of an op with products or parameters does the work twice, for the gradients of inputs
and of parameters (or of both factors); of other ops, once. Inputs take the time of reading a batch from storage, where
its rate is given, in the forward pass only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils.flop_counter import FlopCounterMode

from schedlab.studies.ramp.graphs.graph import ForwardGraph
from schedlab.studies.ramp.graphs.models import MODELS
from schedlab.studies.ramp.graphs.settings import DeviceSettings

MS_PER_SECOND = 1000.0
INPUT = "Input"
DECIMALS = 6  # of a cost in ms: nanoseconds
NAMES = {
    "add": "Add",
    "cat": "Concat",
    "getitem": "__getitem__",
    "matmul": "MatMul",
    "bmm": "MatMul",
    "truediv": "Scale",
}


@dataclass(frozen=True)
class Work:
    """Floating-point operations and bytes moved of an op, and the factor on both in the backward pass."""

    flops: float = 0.0
    moved: float = 0.0
    backward: float = 0.0


@dataclass(frozen=True)
class TracedOp:
    """An op of a traced model: kind, work, bytes of outputs and parameters, and the ops whose outputs are its
    inputs.
    """

    kind: str
    work: Work
    activation: float
    parameter: float
    parents: tuple[fx.Node, ...]


def trace(name: str, batch: int, device: DeviceSettings, reading_rate: float | None = None) -> ForwardGraph:
    """Return the graph of a model (a key of MODELS) with a batch size; costs are milliseconds on the device.

    reading_rate  bytes/s at which inputs come from storage; None: they take no time
    """
    with torch.device("meta"):
        model = MODELS[name].make().train()
        inputs = MODELS[name].inputs(batch)
    return graph_of(name, traced_ops(model, inputs), device, reading_rate)


def graph_of(
    name: str, ops: dict[fx.Node, TracedOp], device: DeviceSettings, reading_rate: float | None = None
) -> ForwardGraph:
    """Return traced ops as a graph, numbered in the order in which they ran, costs in milliseconds on the device."""
    numbers = {node: number for number, node in enumerate(ops, 1)}
    seconds = [max(op.work.flops / device.peak_flops, op.work.moved / device.memory_bandwidth) for op in ops.values()]
    if reading_rate is not None:
        seconds = [
            op.activation / reading_rate if op.kind == INPUT else time
            for time, op in zip(seconds, ops.values(), strict=True)
        ]
    return ForwardGraph(
        name=name,
        ids=list(numbers.values()),
        kinds=tuple(op.kind for op in ops.values()),
        forward_cost=[round(MS_PER_SECOND * time, DECIMALS) for time in seconds],
        backward_cost=[
            round(MS_PER_SECOND * time * op.work.backward, DECIMALS)
            for time, op in zip(seconds, ops.values(), strict=True)
        ],
        activation=[op.activation for op in ops.values()],
        parameter=[op.parameter for op in ops.values()],
        edges=[(numbers[parent], number) for node, number in numbers.items() for parent in ops[node].parents],
    )


def traced_ops(model: nn.Module, inputs: tuple[Tensor, ...]) -> dict[fx.Node, TracedOp]:
    """Return the ops of a model by its traced nodes, in the order of execution; tensors may be on the meta device."""
    recorder = _Recorder(fx.symbolic_trace(model))
    with torch.no_grad():
        recorder.run(*inputs)
    return recorder.ops


class _Recorder(fx.Interpreter):
    """Runs a traced model and records the work of each op."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.ops: dict[fx.Node, TracedOp] = {}

    def run_node(self, node: fx.Node) -> Any:
        with FlopCounterMode(display=False) as counter:
            result = super().run_node(node)
        if node.op != "output":
            self.ops[node] = self._op(node, result, float(counter.get_total_flops()))
        return result

    def _op(self, node: fx.Node, result: Any, flops: float) -> TracedOp:
        layer = self.submodules.get(node.target) if node.op == "call_module" else None
        parameter = _bytes(layer.parameters()) if layer is not None else 0.0
        parents = tuple(node.all_input_nodes)
        if node.op == "placeholder" or _is_view(result, [self.env[parent] for parent in parents]):
            work = Work()
        else:
            outputs = _bytes(_tensors(result))
            # of an embedding table only the rows that are looked up
            read = outputs if isinstance(layer, nn.Embedding) else parameter
            moved = sum(_bytes(_tensors(self.env[parent])) for parent in parents) + read + outputs
            work = Work(flops, moved, 2.0 if flops or parameter else 1.0)
        # a number, as PipeDream counts sizes
        activation = _bytes(_tensors(result)) if not isinstance(result, int) else 4.0
        return TracedOp(_kind(node, layer), work, activation, parameter, parents)


def _kind(node: fx.Node, layer: nn.Module | None) -> str:
    if node.op == "placeholder":
        return INPUT
    if layer is not None:
        return type(layer).__name__
    name = node.target if isinstance(node.target, str) else node.target.__name__
    return NAMES.get(name, name.title())


def _is_view(result: Any, inputs: Iterable[Any]) -> bool:
    """Whether every tensor that an op returns shares the storage of an input; also true without any tensor."""
    known = [tensor.untyped_storage() for value in inputs for tensor in _tensors(value)]
    return all(any(tensor.untyped_storage() is storage for storage in known) for tensor in _tensors(result))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)


def _bytes(tensors: Iterable[Tensor]) -> float:
    return float(sum(tensor.numel() * tensor.element_size() for tensor in tensors))
