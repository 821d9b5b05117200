"""Makes the hierarchy of a platform from its settings, and the XML that Batsim and the embedded simulator read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from schedlab.config.files import write_text
from schedlab.config.readers import read_json
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
    find_platform,
    read_description,
    read_libraries,
)
from schedlab.platforms.hierarchy import (
    Cluster,
    Hierarchy,
    PowerState,
    Processor,
    build,
    read_hierarchy,
    write_hierarchy,
)
from schedlab.platforms.settings import PlatformSettings, SyntheticSettings

MASTER = "master_host"


def hierarchy_of(settings: PlatformSettings) -> Hierarchy:
    """Return the resources of a platform. Raises UserError(s) for missing or wrong files and for unknown types."""
    libraries = read_libraries(settings.libraries)
    if settings.synthetic is not None:
        description, own = synthetic(settings.synthetic)
        libraries, where = libraries.with_more(own), f"platform {settings.name}"
    else:
        path = find_platform(settings.file)
        description, where = read_description(path), str(path)
    return build(settings.name, description, libraries, settings.pstates.states(), settings.names == "padded", where)


def find_hierarchy(name: str) -> Hierarchy:
    """Return the resources of a shipped platform, of a platform description, or of a hierarchy file. Raises
    UserError(s).
    """
    path = find_platform(name)
    values = read_json(path, "a platform description or a hierarchy of resources")
    if isinstance(values, dict) and "states" in values:
        return read_hierarchy(path)
    return hierarchy_of(PlatformSettings(name=name_of(name), file=name))


def name_of(platform: str) -> str:
    """Return the name of a platform that is given by its name or its file."""
    return Path(platform).stem if platform.endswith(".json") else platform


def generate_platform(settings: PlatformSettings, xml: Path | str, resources: Path | str | None = None) -> Hierarchy:
    """Write a platform's XML and, if requested, its hierarchy as JSON; return the hierarchy. Raises UserError(s) as
    `hierarchy_of` does.
    """
    hierarchy = hierarchy_of(settings)
    write_text(xml, platform_xml(hierarchy, settings))
    if resources is not None:
        write_hierarchy(resources, hierarchy)
    return hierarchy


def platform_xml(hierarchy: Hierarchy, settings: PlatformSettings) -> str:
    """Return the XML of a platform (version 4.1).

    A cluster is a zone with a router; each node has one link, which its cores share and which is split by direction;
    each cluster has one link to the others. In a zone with routing Dijkstra, the routes core - router - core are
    derived from the written ones. The published generator uses Full, which has no routes except the written ones, and
    thus none between cores.

    Source: HDeepRM 0.3.1b1; the forms that Batsim 4.2.1 reads.
    """
    return "\n".join(_lines(hierarchy, settings)) + "\n"


def _lines(hierarchy: Hierarchy, settings: PlatformSettings) -> Iterator[str]:
    yield "<?xml version='1.0'?>"
    yield '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    yield '<platform version="4.1">'
    yield '<zone id="main" routing="Full">'
    power = f'<prop id="{settings.power_property}" value="0:0"/>' if settings.energy else ""
    yield f'<zone id="master" routing="{settings.master_routing}"><host id="{MASTER}" speed="1Gf">{power}</host></zone>'
    for number, cluster in enumerate(hierarchy.clusters):
        yield from _cluster(number, cluster, hierarchy, settings)
    for number in range(len(hierarchy.clusters)):
        yield _link(f"glob_lnk_{number}", hierarchy.bandwidth, hierarchy.latency)
    for number in range(len(hierarchy.clusters)):
        yield _zone_route(("master", MASTER), (f"clu_{number}", f"rou_{number}"), ((number, "DOWN"),))
        yield _zone_route((f"clu_{number}", f"rou_{number}"), ("master", MASTER), ((number, "UP"),))
    if settings.core_routes:
        for here in range(len(hierarchy.clusters)):
            for there in range(len(hierarchy.clusters)):
                if here != there:
                    source, target = ((f"clu_{number}", f"rou_{number}") for number in (here, there))
                    yield _zone_route(source, target, ((here, "UP"), (there, "DOWN")))
    yield "</zone>"
    yield "</platform>"


def _cluster(number: int, cluster: Cluster, hierarchy: Hierarchy, settings: PlatformSettings) -> Iterator[str]:
    yield f'<zone id="clu_{number}" routing="{"Dijkstra" if settings.core_routes else "Full"}">'
    yield f'<router id="rou_{number}"/>'
    for node in cluster.nodes:
        yield _link(f"udl_{node.id}", cluster.bandwidth, cluster.latency)
        for processor in node.processors:
            rest = _host_attributes(processor, hierarchy.states, settings)
            for core in range(processor.first_core, processor.first_core + processor.cores):
                yield f'<host id="{hierarchy.core_name(core)}" {rest}'
    for node in cluster.nodes:
        for processor in node.processors:
            for core in range(processor.first_core, processor.first_core + processor.cores):
                yield _core_routes(f"rou_{number}", hierarchy.core_name(core), f"udl_{node.id}")
    yield "</zone>"


def _host_attributes(processor: Processor, states: tuple[PowerState, ...], settings: PlatformSettings) -> str:
    speeds = ", ".join(_speed(state, processor) for state in states)
    powers = ", ".join(_power(state, processor) for state in states)
    power = f'<prop id="{settings.power_property}" value="{powers}"/>' if settings.energy else ""
    initial = settings.pstates.initial if settings.pstates.managed else 0
    return f'speed="{speeds}" pstate="{initial}">{power}</host>'


def _speed(state: PowerState, processor: Processor) -> str:
    return f"{_number(state.flops)}f" if state.flops else f"{_number(state.speed * processor.gflops_per_core)}Gf"


def _power(state: PowerState, processor: Processor) -> str:
    idle = state.power if state.idle_power is None else state.idle_power
    return ":".join(_number(share * processor.power_per_core) for share in (idle, state.power))


def _core_routes(router: str, core: str, link: str) -> str:
    down = f'<route src="{router}" dst="{core}" symmetrical="NO"><link_ctn id="{link}" direction="DOWN"/></route>'
    up = f'<route src="{core}" dst="{router}" symmetrical="NO"><link_ctn id="{link}" direction="UP"/></route>'
    return down + up


def _link(name: str, bandwidth: str, latency: str) -> str:
    return (
        f'<link id={quoteattr(name)} sharing_policy="SPLITDUPLEX" bandwidth={quoteattr(bandwidth)} '
        f"latency={quoteattr(latency)}/>"
    )


def _zone_route(source: tuple[str, str], target: tuple[str, str], links: tuple[tuple[int, str], ...]) -> str:
    passed = "".join(f'<link_ctn id="glob_lnk_{number}" direction="{direction}"/>' for number, direction in links)
    ends = f'src="{source[0]}" dst="{target[0]}" gw_src="{source[1]}" gw_dst="{target[1]}"'
    return f'<zoneRoute {ends} symmetrical="NO">{passed}</zoneRoute>'


def _number(value: float) -> str:
    """Return a number with three decimals, like the published generator; with more if three would change the value by
    more than a millionth of it.
    """
    short = f"{value:.3f}"
    return short if abs(float(short) - value) <= 1e-6 * value else f"{value:.9g}"


def synthetic(settings: SyntheticSettings) -> tuple[PlatformDescription, Libraries]:
    """Draw a platform; equal settings give equal platforms. Clock rates are multiples of 10 MHz; powers and bandwidths
    are multiples of 0.1.
    """
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
    """Draw a rounded number between two bounds; rounding does not leave them."""
    return min(max(round(float(rng.uniform(*bounds)), digits), bounds[0]), bounds[1])
