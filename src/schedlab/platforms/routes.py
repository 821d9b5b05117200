"""Routes between the hosts of nested network zones, computed at first use.

Zones have the routing Full, None, Vivaldi, Floyd or Dijkstra, or are clusters: stars whose hosts have private links to
a backbone. A link consists of one or two *channels*: each direction of a split-duplex link is a separate channel.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

from schedlab.config.errors import UserError

LOOPBACK_BANDWIDTH = 10e9  # bytes/s within one host in zones with explicit routes; SimGrid's default, not shared
_MAX_KEPT_ROUTES = 200_000


@dataclass(frozen=True, slots=True)
class Route:
    """The path between two points: its `latency` in s, and the `channels` on it, in order."""

    latency: float
    channels: tuple[int, ...]


NO_NETWORK = Route(0.0, ())


@dataclass(slots=True)
class Channels:
    """Every channel of a platform: bandwidth in bytes/s, latency in s, and whether it is shared (a fat pipe gives each
    task its full bandwidth).
    """

    bandwidth: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    shared: list[bool] = field(default_factory=list)

    def add(self, bandwidth: float, latency: float = 0.0, shared: bool = True) -> int:
        """Add one channel and return its number."""
        self.bandwidth.append(bandwidth)
        self.latency.append(latency)
        self.shared.append(shared)
        return len(self.bandwidth) - 1


@dataclass(slots=True)
class Link:
    """A link: its channels in the two directions, which are the same unless it is split-duplex."""

    name: str
    up: int
    down: int
    split: bool


@dataclass(slots=True, eq=False)
class Point:
    """A host or a router of a zone; `up` and `down` are the channels between a cluster's host and the backbone."""

    name: str
    zone: Zone
    router: bool = False
    coordinates: tuple[float, float, float] = (0.0, 0.0, 0.0)
    up: tuple[int, ...] = ()
    down: tuple[int, ...] = ()


@dataclass(slots=True)
class Edge:
    """An explicit route of a zone between two of its members; if the members are zones, it has gateways."""

    source: str
    target: str
    gateway_source: Point
    gateway_target: Point
    route: Route


@dataclass(slots=True, eq=False)
class Zone:
    """A network zone; `members` are its hosts, routers and child zones by name.

    backbone   the channel in the middle of a cluster
    loopback   route of a host to itself if there is no explicit one; None: like any other host of the cluster
    regular    all hosts have equal private links, which no other host shares
    """

    name: str
    routing: str
    parent: Zone | None
    depth: int
    properties: dict[str, str] = field(default_factory=dict)
    members: dict[str, Point | Zone] = field(default_factory=dict)
    edges: dict[str, dict[str, Edge]] = field(default_factory=dict)
    backbone: int | None = None
    loopback: Route | None = None
    regular: bool = False

    def all_properties(self) -> dict[str, str]:
        """Return the properties of the zone and of the zones around it. If a name occurs in several, the innermost zone
        has priority.
        """
        outer = self.parent.all_properties() if self.parent is not None else {}
        return {**outer, **self.properties}

    def add_edge(self, edge: Edge, where: str) -> None:
        """Add an explicit route. Raises UserError if one exists already."""
        targets = self.edges.setdefault(edge.source, {})
        if edge.target in targets:
            raise UserError(
                f"a second route from '{edge.source}' to '{edge.target}'",
                where=where,
                expected="one route a pair and direction",
            )
        targets[edge.target] = edge


class Routes:
    """Routes between points, cached up to a limit."""

    def __init__(self, channels: Channels, where: str) -> None:
        self._channels, self._where = channels, where
        self._known: dict[tuple[int, int], Route] = {}

    def between(self, source: Point, target: Point) -> Route:
        """Return the route from one host to another. Raises UserError if the platform file contains none."""
        key = (id(source), id(target))
        route = self._known.get(key)
        if route is None:
            route = self._compute(source, target)
            if len(self._known) >= _MAX_KEPT_ROUTES:
                self._known.clear()
            self._known[key] = route
        return route

    def _compute(self, source: Point, target: Point) -> Route:
        if source is target and (loopback := _loopback(source)) is not None:
            return loopback
        ancestor, source_member, target_member = _common_zone(source, target)
        if ancestor.routing == "Cluster" and isinstance(source_member, Point) and isinstance(target_member, Point):
            return self._cluster_route(ancestor, source_member, target_member)
        if ancestor.routing == "Vivaldi" and isinstance(source_member, Point) and isinstance(target_member, Point):
            return _vivaldi_route(source_member, target_member)
        latency, here = 0.0, source
        channels: list[int] = []
        for edge in self._path(ancestor, source_member.name, target_member.name):
            for part in (self._leg(here, edge.gateway_source), edge.route):
                latency += part.latency
                channels += part.channels
            here = edge.gateway_target
        last = self._leg(here, target)
        return Route(latency + last.latency, (*channels, *last.channels))

    def _leg(self, source: Point, target: Point) -> Route:
        """Return the route to a gateway or from it. If a zone with routing Full has none, the route is free, as in
        SimGrid.
        """
        zone = source.zone
        left_out = zone is target.zone and zone.routing == "Full" and target.name not in zone.edges.get(source.name, {})
        return NO_NETWORK if source is target or left_out else self.between(source, target)

    def _cluster_route(self, cluster: Zone, source: Point, target: Point) -> Route:
        """Return the route up the source's own channels, over the backbone, and down the target's; a channel that
        occurs twice is crossed once. The cluster's router has no channels.
        """
        backbone = () if cluster.backbone is None else (cluster.backbone,)
        channels = tuple(dict.fromkeys((*source.up, *backbone, *target.down)))
        return Route(sum(self._channels.latency[channel] for channel in channels), channels)

    def _path(self, zone: Zone, source: str, target: str) -> list[Edge]:
        if zone.routing in ("Floyd", "Dijkstra"):
            path = _shortest_path(zone, source, target)
        else:
            edge = zone.edges.get(source, {}).get(target)
            path = [edge] if edge is not None else None
        if path is None:
            raise UserError(
                f"no route from '{source}' to '{target}' in zone '{zone.name}' (routing {zone.routing})",
                where=self._where,
                expected="a <route> or <zoneRoute> for every pair that communicates",
                remedy="add it, or where only computations matter, simulate with schedlab sim run --network ignore",
            )
        return path


def _common_zone(source: Point, target: Point) -> tuple[Zone, Point | Zone, Point | Zone]:
    """Return the innermost zone that contains both points, and its two members that contain one each."""
    source_member: Point | Zone = source
    target_member: Point | Zone = target
    source_zone, target_zone = source.zone, target.zone
    while source_zone is not target_zone:
        if source_zone.depth >= target_zone.depth:
            source_member, source_zone = source_zone, _outer(source_zone)
        else:
            target_member, target_zone = target_zone, _outer(target_zone)
    return source_zone, source_member, target_member


def _outer(zone: Zone) -> Zone:
    """Return the zone around a zone that is not the outermost."""
    assert zone.parent is not None
    return zone.parent


def _loopback(host: Point) -> Route | None:
    """Return the route from a host to itself; None if it is computed like one to another host of its cluster."""
    explicit = host.zone.edges.get(host.name, {}).get(host.name)
    if explicit is not None:
        return explicit.route
    return NO_NETWORK if host.zone.loopback is None and host.zone.routing != "Cluster" else host.zone.loopback


def _vivaldi_route(source: Point, target: Point) -> Route:
    """Return the route whose latency is the distance in the plane plus both heights, in ms; its bandwidth is
    unlimited.
    """
    (x1, y1, z1), (x2, y2, z2) = source.coordinates, target.coordinates
    return Route((math.hypot(x1 - x2, y1 - y2) + abs(z1) + abs(z2)) / 1000, ())


def _shortest_path(zone: Zone, source: str, target: str) -> list[Edge] | None:
    """Return the shortest path by Dijkstra's algorithm on the explicit routes; the cost of a route is its number of
    links. None if there is no path.
    """
    best: dict[str, tuple[float, Edge | None]] = {source: (0, None)}
    queue = [(0, source)]
    while queue:
        cost, name = heapq.heappop(queue)
        if name == target:
            break
        if cost > best[name][0]:
            continue
        for edge in zone.edges.get(name, {}).values():
            reached = cost + max(1, len(edge.route.channels))
            if edge.target not in best or reached < best[edge.target][0]:
                best[edge.target] = (reached, edge)
                heapq.heappush(queue, (reached, edge.target))
    if target not in best:
        return None
    path: list[Edge] = []
    while target != source:
        last = best[target][1]
        assert last is not None
        path.append(last)
        target = last.source
    return path[::-1]
