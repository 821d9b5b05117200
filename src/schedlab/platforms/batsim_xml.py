"""Reader of the subset of SimGrid's platform files that Batsim's users write (version 4 and 4.1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from schedlab.config.errors import UserError, did_you_mean
from schedlab.platforms.routes import LOOPBACK_BANDWIDTH, Channels, Edge, Link, Point, Route, Routes, Zone

_MAX_HOSTS = 1_000_000
_MAX_DEPTH = 100
_ROUTINGS = ("Full", "None", "Vivaldi", "Floyd", "Dijkstra")
_ATTRIBUTES = {
    "platform": {"version"},
    "zone": {"id", "routing"},
    "host": {"id", "speed", "core", "pstate", "coordinates"},
    "router": {"id", "coordinates"},
    "link": {"id", "bandwidth", "latency", "sharing_policy"},
    "route": {"src", "dst", "symmetrical"},
    "zoneRoute": {"src", "dst", "gw_src", "gw_dst", "symmetrical"},
    "link_ctn": {"id", "direction"},
    "prop": {"id", "value"},
    "cluster": {
        "id",
        "prefix",
        "suffix",
        "radical",
        "speed",
        "core",
        "bw",
        "lat",
        "bb_bw",
        "bb_lat",
        "sharing_policy",
        "router_id",
    }
    | {"bb_sharing_policy", "loopback_bw", "loopback_lat"},
}
_SAME = {"AS": "zone", "ASroute": "zoneRoute"}


@dataclass(slots=True, eq=False)
class Host:
    """A machine: `speeds` in flop/s by pstate, `cores`, the `pstate` it begins in, its properties and its place in the
    network.
    """

    name: str
    speeds: tuple[float, ...]
    cores: int
    pstate: int
    properties: Mapping[str, str]
    point: Point


class Platform:
    """The hosts of a platform file and the routes between them."""

    def __init__(self, hosts: dict[str, Host], channels: Channels, where: str) -> None:
        self.hosts, self.channels, self.where = hosts, channels, where
        self._routes = Routes(where)

    def host(self, name: str) -> Host:
        """Return the host of that name; UserError."""
        if name not in self.hosts:
            raise UserError(f"no host is named '{name}'", where=self.where, remedy=did_you_mean(name, self.hosts))
        return self.hosts[name]

    def compute_hosts(self, master: str) -> list[Host]:
        """Hosts in the order of their ids: byte-wise by name, without the master and the storage hosts; UserError where
        there is none.
        """
        hosts = [
            host
            for host in self._sorted()
            if host.name != master and "storage" not in _roles(host) and "master" not in _roles(host)
        ]
        if not hosts:
            raise UserError(
                "no host computes", where=self.where, expected=f"at least one <host> beside the master host '{master}'"
            )
        return hosts

    def storage_hosts(self, master: str) -> list[Host]:
        """Hosts with the role `storage`, by name; their ids follow those of the compute hosts."""
        return [host for host in self._sorted() if host.name != master and "storage" in _roles(host)]

    def route(self, source: Host, target: Host) -> Route:
        """Return the route between two hosts; UserError where the file gives none."""
        return self._routes.between(source.point, target.point)

    def _sorted(self) -> list[Host]:
        return sorted(self.hosts.values(), key=lambda host: host.name.encode())


def read_platform(path: Path | str) -> Platform:
    """Read a platform file.

    Raises UserError for a file that cannot be read, is no XML, declares entities (XML bombs), or holds an element,
    attribute, unit, routing or sharing policy outside the subset.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}", where=str(path), expected="a platform file in XML"
        ) from None
    return parse_platform(data, str(path))


def parse_platform(data: bytes | str, where: str) -> Platform:
    """Read the text of a platform file; `where` names it in errors. Raises UserError as `read_platform`."""
    try:
        root = ElementTree.fromstring(data)
    except DefusedXmlException as error:
        raise UserError(
            f"declares entities ({error})", where=where, expected="a platform file without entity declarations"
        ) from None
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise UserError(f"is no well-formed XML: {error}", where=where, expected="a platform file in XML") from None
    return _Reader(where).platform(root)


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where
        self._channels = Channels()
        self._loopback = self._channels.add(LOOPBACK_BANDWIDTH, shared=False)
        self._hosts: dict[str, Host] = {}
        self._points: dict[str, Point] = {}
        self._zones: dict[str, Zone] = {}
        self._links: dict[str, Link] = {}
        self._routes: list[tuple[Zone, Element]] = []

    def platform(self, root: Element) -> Platform:
        self._check(root, {"platform"})
        version = root.get("version", "")
        if version not in ("4", "4.0", "4.1"):
            raise self._error(f"version '{version}' is not supported", "<platform>", "4 or 4.1")
        tops = [child for child in root if child.tag != "config"]
        if len(tops) != 1:
            raise self._error(f"{len(tops)} elements at the top", "<platform>", "one <zone> that holds everything")
        self._area(tops[0], self._check(tops[0], {"zone", "cluster"}), None, 0)
        for zone, element in self._routes:
            self._route(zone, element)
        if not self._hosts:
            raise self._error("holds no host", "<platform>", "at least one <host> or <cluster>")
        return Platform(self._hosts, self._channels, self._where)

    def _area(self, element: Element, tag: str, parent: Zone | None, depth: int) -> None:
        (self._zone if tag == "zone" else self._cluster)(element, parent, depth)

    def _member(self, element: Element, zone: Zone, depth: int) -> None:
        tag = self._check(element, {"zone", "host", "router", "link", "route", "zoneRoute", "cluster", "prop"})
        if tag in ("zone", "cluster"):
            self._area(element, tag, zone, depth)
        elif tag == "prop":
            zone.properties[self._need(element, "id")] = self._need(element, "value")
        elif tag == "link":
            self._link(element)
        elif tag in ("route", "zoneRoute"):
            self._routes.append((zone, element))  # names may be used before they are declared
        else:
            self._host(element, zone)

    def _zone(self, element: Element, parent: Zone | None, depth: int) -> None:
        routing = self._need(element, "routing")
        if routing not in _ROUTINGS:
            raise self._error(
                f"routing '{routing}' is not supported", f"zone '{element.get('id')}'", "one of " + ", ".join(_ROUTINGS)
            )
        if depth > _MAX_DEPTH:
            raise self._error(
                "zones are nested too deeply", f"zone '{element.get('id')}'", f"at most {_MAX_DEPTH} levels"
            )
        zone = self._new_zone(element, routing, parent, depth)
        if routing in ("Full", "Floyd", "Dijkstra"):
            zone.loopback = Route(0.0, (self._loopback,))
        for child in element:
            if child.tag != "config":
                self._member(child, zone, depth + 1)

    def _new_zone(self, element: Element, routing: str, parent: Zone | None, depth: int) -> Zone:
        name = self._need(element, "id")
        if name in self._zones:
            raise self._error(f"a second zone of the name '{name}'", "<zone>", "each id once")
        zone = Zone(name, routing, parent, depth)
        self._zones[name] = zone
        if parent is not None:
            self._add_member(parent, name, zone)
        return zone

    def _host(self, element: Element, zone: Zone) -> None:
        name = self._need(element, "id")
        point = Point(name, zone, element.tag == "router", self._coordinates(element))
        self._add_point(point)
        if element.tag == "router":
            self._no_children(element)
            return
        here = f"host '{name}'"
        speeds = tuple(
            parse_speed(part, f"{self._where}: {here}, speed") for part in self._need(element, "speed").split(",")
        )
        pstate = self._integer(element, "pstate", 0, here)
        if pstate >= len(speeds):
            raise self._error(f"pstate {pstate} has no speed", here, f"a number from 0 to {len(speeds) - 1}")
        self._hosts[name] = Host(
            name, speeds, max(1, self._integer(element, "core", 1, here)), pstate, self._properties(element), point
        )

    def _cluster(self, element: Element, parent: Zone | None, depth: int) -> None:
        zone = self._new_zone(element, "Cluster", parent, depth)
        here = f"cluster '{zone.name}'"
        prefix, suffix = element.get("prefix", ""), element.get("suffix", "")
        speeds = tuple(
            parse_speed(part, f"{self._where}: {here}, speed") for part in self._need(element, "speed").split(",")
        )
        cores = max(1, self._integer(element, "core", 1, here))
        bandwidth = parse_bandwidth(self._need(element, "bw"), f"{self._where}: {here}, bw")
        latency = parse_time(self._need(element, "lat"), f"{self._where}: {here}, lat")
        if "loopback_bw" in element.attrib:
            channel = self._channels.add(
                parse_bandwidth(element.attrib["loopback_bw"], f"{self._where}: {here}, loopback_bw"), shared=False
            )
            zone.loopback = Route(
                parse_time(element.get("loopback_lat", "0s"), f"{self._where}: {here}, loopback_lat"), (channel,)
            )
        if "bb_bw" in element.attrib:
            zone.backbone = self._new_link(
                f"{zone.name}_backbone",
                parse_bandwidth(element.attrib["bb_bw"], f"{self._where}: {here}, bb_bw"),
                parse_time(element.get("bb_lat", "0s"), f"{self._where}: {here}, bb_lat"),
                element.get("bb_sharing_policy", "SHARED"),
            )
        self._add_point(Point(element.get("router_id") or f"{prefix}{zone.name}_router{suffix}", zone, router=True))
        properties = self._properties(element)
        for number in self._radical(self._need(element, "radical"), here):
            name = f"{prefix}{number}{suffix}"
            link = self._new_link(f"{name}_link", bandwidth, latency, element.get("sharing_policy", "SPLITDUPLEX"))
            point = Point(name, zone, up=link)
            self._add_point(point)
            self._hosts[name] = Host(name, speeds, cores, 0, dict(properties), point)

    def _radical(self, text: str, here: str) -> list[int]:
        numbers: list[int] = []
        for part in text.split(","):
            first, _, last = part.strip().partition("-")
            if (
                not first.isascii()
                or not first.isdigit()
                or len(part) > 20
                or (last and not (last.isascii() and last.isdigit()))
            ):
                raise self._error(
                    f"radical '{text[:60]}' is no list of numbers", here, "numbers and ranges such as 0-9,12"
                )
            low, high = int(first), int(last or first)
            if high - low >= _MAX_HOSTS - len(self._hosts) - len(numbers):
                raise self._error("too many hosts", here, f"at most {_MAX_HOSTS} hosts")
            numbers.extend(range(low, high + 1))
        return numbers

    def _link(self, element: Element) -> None:
        name = self._need(element, "id")
        here = f"{self._where}: link '{name}'"
        if name in self._links:
            raise self._error(f"a second link of the name '{name}'", "<link>", "each id once")
        self._properties(element)
        self._links[name] = self._new_link(
            name,
            parse_bandwidth(self._need(element, "bandwidth"), f"{here}, bandwidth"),
            parse_time(element.get("latency", "0s"), f"{here}, latency"),
            element.get("sharing_policy", "SHARED"),
        )

    def _new_link(self, name: str, bandwidth: float, latency: float, policy: str) -> Link:
        if policy not in ("SHARED", "SPLITDUPLEX", "FATPIPE"):
            raise self._error(
                f"sharing policy '{policy}' is not supported", f"link '{name}'", "SHARED, SPLITDUPLEX or FATPIPE"
            )
        up = self._channels.add(bandwidth, shared=policy != "FATPIPE")
        down = self._channels.add(bandwidth) if policy == "SPLITDUPLEX" else up
        return Link(name, up, down, latency, policy == "SPLITDUPLEX")

    def _route(self, zone: Zone, element: Element) -> None:
        source, target = self._need(element, "src"), self._need(element, "dst")
        here = f"route from '{source}' to '{target}' in zone '{zone.name}'"
        if zone.routing not in ("Full", "Floyd", "Dijkstra"):
            raise self._error(
                f"a zone with routing {zone.routing} takes no routes", here, "routing Full, Floyd or Dijkstra"
            )
        for name in (source, target):
            if name not in zone.members:
                raise self._error(f"'{name}' is no member of the zone", here, did_you_mean(name, zone.members))
        if _tag(element) == "zoneRoute":
            ends = [self._gateway(zone, element, end, here) for end in ("src", "dst")]
        else:
            ends = [end for name in (source, target) if isinstance(end := zone.members[name], Point)]
            if len(ends) < 2:
                raise self._error("joins zones", here, "a <zoneRoute> with gw_src and gw_dst")
        there = [self._link_end(child, here) for child in element]
        back = [(link, {"UP": "DOWN", "DOWN": "UP"}.get(direction, direction)) for link, direction in reversed(there)]
        zone.add_edge(Edge(source, target, ends[0], ends[1], _joined(there)), f"{self._where}: {here}")
        symmetrical = element.get("symmetrical", "YES").upper()
        if symmetrical not in ("YES", "NO"):
            raise self._error(f"symmetrical '{symmetrical}'", here, "YES or NO")
        if symmetrical == "YES" and source != target:
            zone.add_edge(Edge(target, source, ends[1], ends[0], _joined(back)), f"{self._where}: {here}")

    def _gateway(self, zone: Zone, element: Element, end: str, here: str) -> Point:
        member, name = zone.members[element.attrib[end]], self._need(element, f"gw_{end}")
        point = self._points.get(name)
        if point is None:
            raise self._error(f"gw_{end} '{name}' is no host or router", here, did_you_mean(name, self._points))
        if not isinstance(member, Zone):
            raise self._error(f"{end} '{element.attrib[end]}' is no zone", here, "a <route> between hosts")
        holder: Zone | None = point.zone
        while holder is not None and holder is not member:
            holder = holder.parent
        if holder is None:
            raise self._error(
                f"gw_{end} '{name}' does not lie in '{member.name}'", here, "a host or router of that zone"
            )
        return point

    def _link_end(self, element: Element, here: str) -> tuple[Link, str]:
        self._check(element, {"link_ctn"})
        name, direction = self._need(element, "id"), element.get("direction", "NONE")
        if name not in self._links:
            raise self._error(f"link '{name}' is not declared", here, did_you_mean(name, self._links))
        link = self._links[name]
        if direction not in ("UP", "DOWN", "NONE"):
            raise self._error(f"direction '{direction}'", here, "UP or DOWN")
        if link.split and direction == "NONE":
            raise self._error(f"link '{name}' is split-duplex", here, 'direction="UP" or "DOWN" on its link_ctn')
        return link, direction

    def _properties(self, element: Element) -> dict[str, str]:
        for child in element:
            self._check(child, {"prop"})
        return {self._need(child, "id"): self._need(child, "value") for child in element}

    def _coordinates(self, element: Element) -> tuple[float, float, float]:
        text = element.get("coordinates")
        if text is None:
            return (0.0, 0.0, 0.0)
        try:
            x, y, z = (float(part) for part in text.split())
        except ValueError:
            x = y = z = math.nan
        if not all(map(math.isfinite, (x, y, z))):
            raise self._error(f"coordinates '{text}'", f"{element.tag} '{element.get('id')}'", "three numbers, in ms")
        return (x, y, z)

    def _integer(self, element: Element, attribute: str, default: int, here: str) -> int:
        text = element.get(attribute, str(default)).strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise self._error(f"{attribute} '{text}'", here, "a whole number")
        return int(text)

    def _add_point(self, point: Point) -> None:
        if point.name in self._points:
            raise self._error(
                f"a second host or router of the name '{point.name}'", f"zone '{point.zone.name}'", "each id once"
            )
        if len(self._points) >= 2 * _MAX_HOSTS:
            raise self._error("too many hosts", f"zone '{point.zone.name}'", f"at most {_MAX_HOSTS} hosts")
        self._points[point.name] = point
        self._add_member(point.zone, point.name, point)

    def _add_member(self, zone: Zone, name: str, member: Point | Zone) -> None:
        if name in zone.members:
            raise self._error(f"a second member of the name '{name}'", f"zone '{zone.name}'", "each id once")
        zone.members[name] = member

    def _need(self, element: Element, attribute: str) -> str:
        value = element.get(attribute)
        if value is None:
            raise self._error(
                f"<{element.tag}> lacks '{attribute}'", f"id '{element.get('id', '?')}'", f'{attribute}="..."'
            )
        return value

    def _no_children(self, element: Element) -> None:
        if len(element):
            raise self._error(
                f"<{element.tag}> holds <{element[0].tag}>", f"id '{element.get('id')}'", "nothing inside"
            )

    def _check(self, element: Element, allowed: set[str]) -> str:
        """Return the element's tag, its old name translated, after holding tag and attributes against the subset."""
        tag = _tag(element)
        if tag not in allowed:
            raise self._error(
                f"element <{element.tag}> is not supported here", "platform", "one of " + ", ".join(sorted(allowed))
            )
        for attribute in element.attrib:
            if attribute not in _ATTRIBUTES[tag]:
                here = f"<{element.tag}> '{element.get('id', '')}'"
                raise self._error(
                    f"attribute '{attribute}' is not supported", here, "one of " + ", ".join(sorted(_ATTRIBUTES[tag]))
                )
        return tag

    def _error(self, what: str, here: str, expected: str) -> UserError:
        return UserError(what, where=f"{self._where}: {here}", expected=expected)


def _joined(ends: list[tuple[Link, str]]) -> Route:
    return Route(
        sum(link.latency for link, _ in ends),
        tuple(link.down if direction == "DOWN" else link.up for link, direction in ends),
    )


def _tag(element: Element) -> str:
    return _SAME.get(element.tag, element.tag) if isinstance(element.tag, str) else "comment"


def _roles(host: Host) -> list[str]:
    return [role.strip() for role in host.properties.get("role", "").split(",")]


_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_DECIMAL = {prefix: 1000.0**power for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate(("K", "M", "G", "T", "P", "E"), start=1)}
_PREFIXES = _DECIMAL | _BINARY

_LEAST, _MOST = 1e-20, 1e30  # beyond these, ratios of quantities leave the range of floats

SPEED_UNITS = {f"{prefix}f": factor for prefix, factor in _PREFIXES.items()}
BANDWIDTH_UNITS = {f"{prefix}Bps": factor for prefix, factor in _PREFIXES.items()} | {
    f"{prefix}bps": factor / 8 for prefix, factor in _PREFIXES.items()
}
TIME_UNITS = {
    "w": 604800.0,
    "d": 86400.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
}


def parse_speed(text: str, where: str) -> float:
    """Return flop per second of a positive speed such as "100Mf"; UserError naming `where`."""
    return _parse(text, SPEED_UNITS, where, "a positive speed such as 100Mf or 1.5Gf", positive=True)


def parse_bandwidth(text: str, where: str) -> float:
    """Return bytes per second of a positive bandwidth such as "125MBps" or "1Gbps" (bits); UserError naming `where`."""
    return _parse(text, BANDWIDTH_UNITS, where, "a positive bandwidth such as 125MBps or 1Gbps", positive=True)


def parse_time(text: str, where: str) -> float:
    """Return seconds of a duration such as "50us"; UserError naming `where`."""
    return _parse(text, TIME_UNITS, where, "a duration such as 50us or 1ms", positive=False)


def _parse(text: str, units: dict[str, float], where: str, expected: str, *, positive: bool) -> float:
    """A number without a unit counts in the base unit, as SimGrid takes it (with a warning)."""
    match = _QUANTITY.fullmatch(text)
    factor = None if match is None else 1.0 if not match[2] else units.get(match[2])
    if match is None or factor is None:
        raise UserError(f"'{text}' is no quantity of this kind", where=where, expected=expected)
    value = float(match[1]) * factor
    if not (_LEAST if positive else 0) <= value <= _MOST:
        raise UserError(f"'{text}' is out of range", where=where, expected=expected)
    return value
