"""Made-up platforms: a description and its types, drawn from ranges."""

from __future__ import annotations

import numpy as np

from schedlab.config.seeds import generator
from schedlab.platforms.description import (
    ClusterDescription,
    Libraries,
    Links,
    Memory,
    NetworkType,
    NodeGroup,
    NodeType,
    PlatformDescription,
    ProcessorGroup,
    ProcessorType,
)
from schedlab.platforms.settings import SyntheticSettings


def synthetic(settings: SyntheticSettings) -> tuple[PlatformDescription, Libraries]:
    """Draw a platform; the same settings give the same one. Clocks are whole 10 MHz, powers and bandwidths tenths."""
    networks = {"global": NetworkType(bandwidth=settings.global_bandwidth)}
    nodes: dict[str, NodeType] = {}
    processors: dict[str, ProcessorType] = {}
    clusters = []
    for number in range(settings.clusters):
        rng = generator(settings.seed, "synthetic platform", number)
        kinds = [f"c{number}-n{kind}" for kind in range(settings.kinds)]
        for kind in kinds:
            processors[kind] = _processor(settings, rng)
            nodes[kind] = _node(settings, kind, processors[kind].cores, rng)
        networks[f"c{number}"] = NetworkType(bandwidth=f"{_between(settings.bandwidth, rng):g}Gbps")
        count = int(rng.integers(*settings.nodes, endpoint=True))
        groups = tuple(NodeGroup(type=kinds[place % len(kinds)]) for place in range(count))
        links = Links(type=f"c{number}", latency=settings.latency)
        clusters.append(ClusterDescription(id=f"cluster-{number}", nodes=groups, local_links=links))
    description = PlatformDescription(
        clusters=tuple(clusters), global_links=Links(type="global", latency=settings.global_latency)
    )
    return description, Libraries(networks, nodes, processors)


def _processor(settings: SyntheticSettings, rng: np.random.Generator) -> ProcessorType:
    cores = int(rng.integers(*settings.cores, endpoint=True))
    return ProcessorType(
        cores=cores,
        clock_rate=_between(settings.clock_rate, rng, 2),
        dpflops_per_cycle=float(rng.choice(settings.flops_per_cycle)),
        mem_bw=_between(settings.mem_bw, rng),
        power=round(_between(settings.power, rng) * cores, 6),
    )


def _node(settings: SyntheticSettings, kind: str, cores: int, rng: np.random.Generator) -> NodeType:
    count = int(rng.integers(*settings.processors, endpoint=True))
    memory = float(rng.choice(settings.memory)) * count * cores
    return NodeType(processors=(ProcessorGroup(type=kind, number=count),), memory=Memory(capacity=memory))


def _between(bounds: tuple[float, float], rng: np.random.Generator, digits: int = 1) -> float:
    """A rounded number between two bounds, inside them."""
    return min(max(round(float(rng.uniform(*bounds)), digits), bounds[0]), bounds[1])
