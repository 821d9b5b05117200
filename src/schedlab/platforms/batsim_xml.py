"""Reader of the subset of SimGrid's platform files that Batsim's users write (versions 3, 4 and 4.1).

`READ` and `REFUSED` are the whole subset; docs/reference/batsim_options.md prints them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from schedlab.config.errors import UserError, did_you_mean
from schedlab.platforms.platform import Host, Platform
from schedlab.platforms.routes import LOOPBACK_BANDWIDTH, Channels, Edge, Link, Point, Route, Zone
from schedlab.platforms.units import parse_bandwidth, parse_speed, parse_time

_MAX_HOSTS = 1_000_000
_MAX_DEPTH = 100
_EXPLICIT = ("Full", "Floyd", "Dijkstra")  # routings with explicit routes
_ROUTINGS = {name.lower(): name for name in (*_EXPLICIT, "None", "Vivaldi", "Cluster")} | {"dijkstracache": "Dijkstra"}
_SIMPLE = {"host", "router", "link", "prop"}
_OLD_POLICIES = {"FULLDUPLEX": "SPLITDUPLEX"}
READ: dict[str, set[str]] = {
    "platform": {"version"},
    "zone": {"id", "routing"},
    "host": {"id", "speed", "core", "pstate", "coordinates"},
    "router": {"id", "coordinates"},
    "link": {"id", "bandwidth", "latency", "sharing_policy"},
    "route": {"src", "dst", "symmetrical"},
    "zoneRoute": {"src", "dst", "gw_src", "gw_dst", "symmetrical"},
    "link_ctn": {"id", "direction"},
    "prop": {"id", "value"},
    "cluster": {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "router_id"}
    | {"bb_bw", "bb_lat", "bb_sharing_policy", "loopback_bw", "loopback_lat", "limiter_link"},
    "cabinet": {"id", "prefix", "suffix", "radical", "speed", "bw", "lat"},
    "backbone": {"id", "bandwidth", "latency", "sharing_policy"},
    "host_link": {"id", "up", "down"},
}
"""Attributes by element."""
IGNORED = ("config", "disk", "trace")
"""Elements that may stand anywhere and change nothing that Batsim simulates; their contents are not looked at."""
RENAMED = {"AS": "zone", "ASroute": "zoneRoute", "power": "speed"}
"""Older names of elements and attributes."""
_NO_TRACES = "speeds and links that change by a trace are not simulated; remove it"
REFUSED: dict[str, str] = {
    "peer": "write each peer as a <host> with a route",
    "trace_connect": _NO_TRACES,
    "bypassRoute": "write it as the <route> of a zone with routing Full",
    "bypassZoneRoute": "write it as the <zoneRoute> of a zone with routing Full",
    "bypassASroute": "write it as the <zoneRoute> of a zone with routing Full",
    "storage": "give a host the property role with the value storage",
    "storage_type": "give a host the property role with the value storage",
    "mount": "give a host the property role with the value storage",
    "include": "put everything into one file",
    "actor": "Batsim starts no actors of a platform file; remove it",
    "process": "Batsim starts no processes of a platform file; remove it",
}
"""Elements of SimGrid that are not simulated, and what is possible instead."""
REFUSED_ATTRIBUTES: dict[str, str] = {
    **dict.fromkeys(("availability_file", "bandwidth_file", "latency_file", "speed_file", "state_file"), _NO_TRACES),
    "topology": "FLAT is simulated; for TORUS, FAT_TREE and DRAGONFLY, write every host, link and route in a zone with "
    "routing Full",
}
"""Attributes of SimGrid that are not simulated unless they are empty or FLAT, and what is possible instead."""
_EMPTY_OR_FLAT = {  # attributes that are accepted with these values, which request nothing
    **dict.fromkeys(REFUSED_ATTRIBUTES, ("",)),
    "topology": ("FLAT",),
    "topo_parameters": ("",),
    "availability": ("1", "1.0"),
    "state": ("ON",),
}


def read_platform(path: Path | str) -> Platform:
    """Read a platform file.

    Raises UserError for a file that cannot be read, is not XML, declares entities (XML bombs), or contains an element,
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
    """Read the text of a platform file; `where` names it in errors. Raises UserError as `read_platform` does."""
    lines = _Lines()
    parser = ElementTree.DefusedXMLParser(target=lines)
    lines.line = lambda: parser.parser.CurrentLineNumber
    try:
        parser.feed(_declaration_first(data.encode() if isinstance(data, str) else data))
        root = parser.close()
    except DefusedXmlException as error:
        raise UserError(
            f"declares entities ({error})", where=where, expected="a platform file without entity declarations"
        ) from None
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise UserError(f"is no well-formed XML: {error}", where=where, expected="a platform file in XML") from None
    return _Reader(where, lines.lines).platform(root)


def _declaration_first(data: bytes) -> bytes:
    """Return the text with blank lines and comments before its XML declaration moved after it, because SimGrid accepts
    them there.
    """
    return re.sub(rb"\A((?:\s|<!--.*?-->)+)(<\?xml\b.*?\?>)", rb"\2\1", data, count=1, flags=re.DOTALL)


class _Lines(TreeBuilder):
    """Builds the tree and records the line on which each element begins."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[Element, int] = {}
        self.line: Callable[[], int] = lambda: 0

    def start(self, tag: Any, attrs: Any) -> Any:
        """Begin an element."""
        element = super().start(tag, attrs)
        self.lines[element] = self.line()
        return element


class _Reader:
    def __init__(self, where: str, lines: Mapping[Element, int]) -> None:
        self._where, self._lines = where, lines
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
        if version not in ("3", "4", "4.0", "4.1"):
            raise self._error(root, f"version '{version}' is not supported", "<platform>", "3, 4 or 4.1")
        tops = _children(root)
        if len(tops) != 1:
            found = f"{len(tops)} elements at the top"
            raise self._error(root, found, "<platform>", "one <zone> that holds everything")
        self._area(tops[0], self._check(tops[0], {"zone", "cluster"}), None, 0)
        for zone, element in self._routes:
            self._route(zone, element)
        if not self._hosts:
            raise self._error(root, "holds no host", "<platform>", "at least one <host> or <cluster>")
        return Platform(self._hosts, self._channels, self._where)

    def _area(self, element: Element, tag: str, parent: Zone | None, depth: int) -> None:
        (self._zone if tag == "zone" else self._cluster)(element, parent, depth)

    def _zone(self, element: Element, parent: Zone | None, depth: int) -> None:
        here = f"zone '{element.get('id')}'"
        routing = _ROUTINGS.get(self._need(element, "routing").lower())
        if routing is None:
            expected = "one of " + ", ".join(dict.fromkeys(_ROUTINGS.values()))
            raise self._error(element, f"routing '{element.get('routing')}' is not supported", here, expected)
        if depth > _MAX_DEPTH:
            raise self._error(element, "zones are nested too deeply", here, f"at most {_MAX_DEPTH} levels")
        zone = self._new_zone(element, routing, parent, depth)
        if routing in _EXPLICIT:
            zone.loopback = Route(0.0, (self._loopback,))
        if routing == "Cluster":
            self._star(zone, _children(element))
            return
        for child in _children(element):
            self._member(child, zone, depth + 1)

    def _member(self, element: Element, zone: Zone, depth: int) -> None:
        tag = self._check(element, {*_SIMPLE, "zone", "route", "zoneRoute", "cluster"})
        if tag in ("zone", "cluster"):
            self._area(element, tag, zone, depth)
        elif tag in ("route", "zoneRoute"):
            self._routes.append((zone, element))  # read later, because names may be used before they are declared
        else:
            self._simple(element, tag, zone)

    def _simple(self, element: Element, tag: str, zone: Zone) -> None:
        """Add a member that is read in the same way in zones of any routing."""
        if tag == "prop":
            zone.properties[self._need(element, "id")] = self._need(element, "value")
        elif tag == "link":
            self._link(element)
        elif tag == "router":
            self._add_point(element, Point(self._need(element, "id"), zone, True, self._coordinates(element)))
            for child in _children(element):
                raise self._error(child, f"<router> holds <{child.tag}>", f"id '{element.get('id')}'", "nothing inside")
        else:
            self._host(element, zone)

    def _star(self, zone: Zone, children: list[Element]) -> None:
        """Add hosts that are joined to a backbone by private links. Links may be used before they are declared."""
        tags = [self._check(child, {*_SIMPLE, "host_link", "cabinet", "backbone"}) for child in children]
        for child, tag in zip(children, tags, strict=True):
            if tag in _SIMPLE:
                self._simple(child, tag, zone)
            elif tag == "cabinet":
                self._cabinet(child, zone)
            elif tag == "backbone":
                zone.backbone = self._link(child).up
        for child, tag in zip(children, tags, strict=True):
            if tag == "host_link":
                self._host_link(child, zone)

    def _host_link(self, element: Element, zone: Zone) -> None:
        name = self._need(element, "id")
        point, here = zone.members.get(name), f"host_link '{name}'"
        if not isinstance(point, Point):
            raise self._error(element, "is no host of the zone", here, did_you_mean(name, zone.members))
        ends = []
        for end in ("up", "down"):
            wanted = self._need(element, end)
            link = self._links.get(wanted) or self._links.get(wanted.removesuffix(f"_{end.upper()}"))
            if link is None:
                raise self._error(element, f"link '{wanted}' is not declared", here, did_you_mean(wanted, self._links))
            ends.append(link.up if end == "up" else link.down)
        point.up, point.down = (ends[0],), (ends[1],)

    def _cabinet(self, element: Element, zone: Zone) -> None:
        here = f"cabinet '{element.get('id', '')}'"
        bandwidth, latency = self._quantity(element, "bw", here), self._quantity(element, "lat", here)
        for point in self._numbered_hosts(element, zone, here, 1, {}):
            point.up = (self._channels.add(bandwidth, latency),)
            point.down = (self._channels.add(bandwidth, latency),)

    def _new_zone(self, element: Element, routing: str, parent: Zone | None, depth: int) -> Zone:
        name = self._need(element, "id")
        if name in self._zones:
            raise self._error(element, f"a second zone of the name '{name}'", "<zone>", "each id once")
        zone = Zone(name, routing, parent, depth)
        self._zones[name] = zone
        if parent is not None:
            self._add_member(element, parent, name, zone)
        return zone

    def _host(self, element: Element, zone: Zone) -> None:
        name = self._need(element, "id")
        point = Point(name, zone, False, self._coordinates(element))
        self._add_point(element, point)
        here = f"host '{name}'"
        speeds, pstate = self._speeds(element, here), self._integer(element, "pstate", 0, here)
        if pstate >= len(speeds):
            raise self._error(element, f"pstate {pstate} has no speed", here, f"a number from 0 to {len(speeds) - 1}")
        cores = max(1, self._integer(element, "core", 1, here))
        self._hosts[name] = Host(
            name, speeds, cores, pstate, self._properties(element), point, self._where, self._lines[element]
        )

    def _cluster(self, element: Element, parent: Zone | None, depth: int) -> None:
        zone = self._new_zone(element, "Cluster", parent, depth)
        zone.regular = True
        here = f"cluster '{zone.name}'"
        bandwidth, latency = self._quantity(element, "bw", here), self._quantity(element, "lat", here)
        if "loopback_bw" in element.attrib:
            channel = self._channels.add(self._quantity(element, "loopback_bw", here), shared=False)
            zone.loopback = Route(self._quantity(element, "loopback_lat", here, "0s"), (channel,))
        if "bb_bw" in element.attrib:
            backbone = self._quantity(element, "bb_bw", here), self._quantity(element, "bb_lat", here, "0s")
            zone.backbone = self._new_link(element, f"{zone.name}_backbone", *backbone, "bb_sharing_policy").up
        limit = self._quantity(element, "limiter_link", here) if "limiter_link" in element.attrib else 0.0
        router = element.get("router_id") or f"{element.get('prefix', '')}{zone.name}_router{element.get('suffix', '')}"
        self._add_point(element, Point(router, zone, router=True))
        properties = self._properties(element)
        zone.properties.update(properties)
        cores = max(1, self._integer(element, "core", 1, here))
        for point in self._numbered_hosts(element, zone, here, cores, properties):
            link = self._new_link(element, f"{point.name}_link", bandwidth, latency, default="SPLITDUPLEX")
            limiter = (self._channels.add(limit),) if limit else ()
            point.up, point.down = (*limiter, link.up), (link.down, *limiter)

    def _numbered_hosts(
        self, element: Element, zone: Zone, here: str, cores: int, properties: dict[str, str]
    ) -> list[Point]:
        prefix, suffix = element.get("prefix", ""), element.get("suffix", "")
        speeds, points = self._speeds(element, here), []
        line = self._lines[element]
        for number in self._radical(element, here):
            point = Point(f"{prefix}{number}{suffix}", zone)
            self._add_point(element, point)
            self._hosts[point.name] = Host(point.name, speeds, cores, 0, dict(properties), point, self._where, line)
            points.append(point)
        return points

    def _radical(self, element: Element, here: str) -> list[int]:
        text = self._need(element, "radical")
        numbers: list[int] = []
        for part in text.split(","):
            if not re.fullmatch(r"\s*\d{1,9}(-\d{1,9})?\s*", part, re.ASCII):
                what = f"radical '{text[:60]}' is no list of numbers"
                raise self._error(element, what, here, "numbers and ranges such as 0-9,12")
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            if high - low >= _MAX_HOSTS - len(self._hosts) - len(numbers):
                raise self._error(element, "too many hosts", here, f"at most {_MAX_HOSTS} hosts")
            numbers.extend(range(low, high + 1))
        return numbers

    def _link(self, element: Element) -> Link:
        name = self._need(element, "id")
        here = f"link '{name}'"
        if name in self._links:
            raise self._error(element, f"a second link of the name '{name}'", "<link>", "each id once")
        self._properties(element)
        quantities = self._quantity(element, "bandwidth", here), self._quantity(element, "latency", here, "0s")
        self._links[name] = self._new_link(element, name, *quantities)
        return self._links[name]

    def _new_link(
        self,
        element: Element,
        name: str,
        bandwidth: float,
        latency: float,
        key: str = "sharing_policy",
        default: str = "SHARED",
    ) -> Link:
        policy = element.get(key, default)
        policy = _OLD_POLICIES.get(policy, policy)
        if policy not in ("SHARED", "SPLITDUPLEX", "FATPIPE"):
            what = f"sharing policy '{policy}' is not supported"
            raise self._error(element, what, f"link '{name}'", "SHARED, SPLITDUPLEX or FATPIPE")
        up = self._channels.add(bandwidth, latency, shared=policy != "FATPIPE")
        down = self._channels.add(bandwidth, latency) if policy == "SPLITDUPLEX" else up
        return Link(name, up, down, policy == "SPLITDUPLEX")

    def _route(self, zone: Zone, element: Element) -> None:
        source, target = self._need(element, "src"), self._need(element, "dst")
        here = f"route from '{source}' to '{target}' in zone '{zone.name}'"
        if zone.routing not in _EXPLICIT:
            what = f"a zone with routing {zone.routing} takes no routes"
            raise self._error(element, what, here, "routing " + ", ".join(_EXPLICIT))
        for name in (source, target):
            if name not in zone.members:
                raise self._error(element, f"'{name}' is no member of the zone", here, did_you_mean(name, zone.members))
        if _tag(element) == "zoneRoute":
            ends = [self._gateway(zone, element, end, here) for end in ("src", "dst")]
        else:
            ends = [end for name in (source, target) if isinstance(end := zone.members[name], Point)]
            if len(ends) < 2:
                raise self._error(element, "joins zones", here, "a <zoneRoute> with gw_src and gw_dst")
        there = [self._link_end(child, here) for child in _children(element)]
        back = [(link, {"UP": "DOWN", "DOWN": "UP"}.get(direction, direction)) for link, direction in reversed(there)]
        zone.add_edge(Edge(source, target, ends[0], ends[1], self._joined(there)), self._at(element, here))
        symmetrical = element.get("symmetrical", "YES").upper()
        if symmetrical not in ("YES", "NO"):
            raise self._error(element, f"symmetrical '{symmetrical}'", here, "YES or NO")
        if symmetrical == "YES" and source != target:
            zone.add_edge(Edge(target, source, ends[1], ends[0], self._joined(back)), self._at(element, here))

    def _gateway(self, zone: Zone, element: Element, end: str, here: str) -> Point:
        member, name = zone.members[element.attrib[end]], self._need(element, f"gw_{end}")
        point = self._points.get(name)
        if point is None:
            what = f"gw_{end} '{name}' is no host or router"
            raise self._error(element, what, here, did_you_mean(name, self._points))
        if not isinstance(member, Zone):
            raise self._error(element, f"{end} '{element.attrib[end]}' is no zone", here, "a <route> between hosts")
        holder: Zone | None = point.zone
        while holder is not None and holder is not member:
            holder = holder.parent
        if holder is None:
            what = f"gw_{end} '{name}' does not lie in '{member.name}'"
            raise self._error(element, what, here, "a host or router of that zone")
        return point

    def _link_end(self, element: Element, here: str) -> tuple[Link, str]:
        self._check(element, {"link_ctn"})
        name, direction = self._need(element, "id"), element.get("direction", "NONE")
        if name not in self._links:
            raise self._error(element, f"link '{name}' is not declared", here, did_you_mean(name, self._links))
        link = self._links[name]
        if direction not in ("UP", "DOWN", "NONE"):
            raise self._error(element, f"direction '{direction}'", here, "UP or DOWN")
        if link.split and direction == "NONE":
            what = f"link '{name}' is split-duplex"
            raise self._error(element, what, here, 'direction="UP" or "DOWN" on its link_ctn')
        return link, direction

    def _joined(self, ends: list[tuple[Link, str]]) -> Route:
        channels = tuple(link.down if direction == "DOWN" else link.up for link, direction in ends)
        return Route(sum(self._channels.latency[channel] for channel in channels), channels)

    def _properties(self, element: Element) -> dict[str, str]:
        for child in _children(element):
            self._check(child, {"prop"})
        return {self._need(child, "id"): self._need(child, "value") for child in _children(element)}

    def _coordinates(self, element: Element) -> tuple[float, float, float]:
        text = element.get("coordinates")
        if text is None:
            return (0.0, 0.0, 0.0)
        try:
            x, y, z = (float(part) for part in text.split())
        except ValueError:
            x = y = z = math.nan
        if not all(map(math.isfinite, (x, y, z))):
            here = f"{element.tag} '{element.get('id')}'"
            raise self._error(element, f"coordinates '{text}'", here, "three numbers, in ms")
        return (x, y, z)

    def _speeds(self, element: Element, here: str) -> tuple[float, ...]:
        place = self._at(element, f"{here}, speed")
        return tuple(parse_speed(part, place) for part in self._need(element, "speed").split(","))

    def _quantity(self, element: Element, attribute: str, here: str, default: str | None = None) -> float:
        text = self._need(element, attribute) if default is None else element.get(attribute, default)
        parse = parse_time if attribute.endswith(("lat", "latency")) else parse_bandwidth
        return parse(text, self._at(element, f"{here}, {attribute}"))

    def _integer(self, element: Element, attribute: str, default: int, here: str) -> int:
        text = element.get(attribute, str(default)).strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise self._error(element, f"{attribute} '{text}'", here, "a whole number")
        return int(text)

    def _add_point(self, element: Element, point: Point) -> None:
        here = f"zone '{point.zone.name}'"
        if point.name in self._points:
            raise self._error(element, f"a second host or router of the name '{point.name}'", here, "each id once")
        if len(self._points) >= 2 * _MAX_HOSTS:
            raise self._error(element, "too many hosts", here, f"at most {_MAX_HOSTS} hosts")
        self._points[point.name] = point
        self._add_member(element, point.zone, point.name, point)

    def _add_member(self, element: Element, zone: Zone, name: str, member: Point | Zone) -> None:
        if name in zone.members:
            raise self._error(element, f"a second member of the name '{name}'", f"zone '{zone.name}'", "each id once")
        zone.members[name] = member

    def _need(self, element: Element, attribute: str) -> str:
        value = element.get(attribute)
        if value is None:
            what = f"<{element.tag}> lacks '{attribute}'"
            raise self._error(element, what, f"id '{element.get('id', '?')}'", f'{attribute}="..."')
        return value

    def _check(self, element: Element, allowed: set[str]) -> str:
        """Return the element's tag, with older names translated, after checking tag and attributes against the
        subset.
        """
        tag = _tag(element)
        if tag not in allowed:
            what, expected = f"element <{element.tag}> is not supported here", "one of " + ", ".join(sorted(allowed))
            raise self._error(element, what, "platform", expected, REFUSED.get(tag, ""))
        here = f"<{element.tag}> '{element.get('id', '')}'"
        for attribute in list(element.attrib):
            if attribute in RENAMED:
                element.attrib[RENAMED[attribute]] = element.attrib.pop(attribute)
            elif attribute not in READ[tag] and element.attrib[attribute] not in _EMPTY_OR_FLAT.get(attribute, ()):
                expected = "one of " + ", ".join(sorted(READ[tag]))
                remedy = REFUSED_ATTRIBUTES.get(attribute, "")
                raise self._error(element, f"attribute '{attribute}' is not supported", here, expected, remedy)
        return tag

    def _at(self, element: Element, here: str) -> str:
        return f"{self._where}: line {self._lines[element]}: {here}"

    def _error(self, element: Element, what: str, here: str, expected: str, remedy: str = "") -> UserError:
        return UserError(what, where=self._at(element, here), expected=expected, remedy=remedy)


def _children(element: Element) -> list[Element]:
    return [child for child in element if child.tag not in IGNORED]


def _tag(element: Element) -> str:
    return RENAMED.get(element.tag, element.tag) if isinstance(element.tag, str) else "comment"
