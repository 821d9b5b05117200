"""Graphs drawn at random, for learning on graphs that are not those of the test.

For each graph a form and three scales (compute, activations, parameters) are drawn, the scales log-uniformly; the costs
of its layers vary around these scales. Two jobs with the same sequential time can therefore take very different times
when split. See docs/reference/ramp_graphs.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schedlab.config.seeds import generator
from schedlab.studies.ramp.graphs.graph import ForwardGraph
from schedlab.studies.ramp.graphs.settings import GeneratorSettings, ScaleRange

LIGHT = (0.02, 0.2)  # time of an op without products, as a share of the time of a layer with them
DECIMALS = 6  # of a cost in ms: nanoseconds
MOST_BRANCHES = 4


def generated_graphs(settings: GeneratorSettings, seed: int) -> tuple[ForwardGraph, ...]:
    """Return the graphs numbered `first` to `first + count - 1` of a root seed, costs in milliseconds."""
    return tuple(generated_graph(settings, seed, settings.first + number) for number in range(settings.count))


def generated_graph(settings: GeneratorSettings, seed: int, number: int) -> ForwardGraph:
    """Return one graph. It depends only on the settings, the root seed and its number."""
    rng = generator(seed, "ramp", "generated graph", number)
    form = settings.forms[int(rng.integers(len(settings.forms)))]
    blocks = int(rng.integers(settings.least_blocks, settings.most_blocks + 1))
    drawn = _Drawn(
        rng,
        compute=_log_uniform(rng, settings.compute),
        activation=_log_uniform(rng, settings.activation),
        parameter=_log_uniform(rng, settings.parameter),
        spread=settings.spread,
    )
    here = drawn.add("Input", (), work=0.0)
    for _ in range(blocks):
        here = drawn.block(("chain", "residual", "branching")[int(rng.integers(3))] if form == "mixed" else form, here)
    drawn.layer("Linear", (here,))
    return drawn.graph(f"generated-{number:04d}")


@dataclass
class _Drawn:
    """A graph under construction; ops have ids 1, 2, ..."""

    rng: np.random.Generator
    compute: float
    activation: float
    parameter: float
    spread: float
    # kind, forward, backward, activation, parameter
    ops: list[tuple[str, float, float, float, float]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def add(
        self,
        kind: str,
        parents: tuple[int, ...],
        *,
        work: float,
        parameter: float = 0.0,
        activation: float | None = None,
    ) -> int:
        """Add an op and return its id. If it has parameters, its backward pass takes twice as long."""
        activation = self._around(self.activation) if activation is None else activation
        times = round(work, DECIMALS), round(2 * work if parameter else work, DECIMALS)
        self.ops.append((kind, *times, float(round(activation)), float(round(parameter))))
        self.edges += [(parent, len(self.ops)) for parent in parents]
        return len(self.ops)

    def layer(self, kind: str, parents: tuple[int, ...]) -> int:
        """Add a layer with parameters."""
        return self.add(kind, parents, work=self._around(self.compute), parameter=self._around(self.parameter))

    def light(self, kind: str, *parents: int) -> int:
        """Add an op without parameters, whose activation is as large as that of its first parent."""
        work = self.compute * _log_uniform(self.rng, ScaleRange(low=LIGHT[0], high=LIGHT[1]))
        return self.add(kind, parents, work=work, activation=self.ops[parents[0] - 1][3])

    def block(self, form: str, here: int) -> int:
        """Add a block after an op and return the block's last op."""
        if form == "chain":
            return self.light("ReLU", self.layer("Conv2d", (here,)))
        if form == "residual":
            inside = self.light("ReLU", self.layer("Conv2d", (here,)))
            return self.light("ReLU", self.light("Add", self.layer("Conv2d", (inside,)), here))
        branches = int(self.rng.integers(2, MOST_BRANCHES + 1))
        ends = [self.light("ReLU", self.layer("Conv2d", (here,))) for _ in range(branches)]
        total = sum(self.ops[end - 1][3] for end in ends)
        return self.add("Concat", tuple(ends), work=0.0, activation=total)

    def graph(self, name: str) -> ForwardGraph:
        """Return the finished graph."""
        kinds, forward, backward, activation, parameter = zip(*self.ops, strict=True)
        return ForwardGraph(
            name, range(1, len(self.ops) + 1), kinds, forward, backward, activation, parameter, self.edges
        )

    def _around(self, scale: float) -> float:
        return _log_uniform(self.rng, ScaleRange(low=scale / self.spread, high=scale * self.spread))


def _log_uniform(rng: np.random.Generator, scale: ScaleRange) -> float:
    return float(np.exp(rng.uniform(np.log(scale.low), np.log(scale.high))))
