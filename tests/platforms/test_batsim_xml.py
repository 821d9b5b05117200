"""The reader of platform files: ids, units, routes, and a clear word about everything else."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.platforms.batsim_xml import REFUSED_ATTRIBUTES, parse_platform, read_platform
from schedlab.platforms.platform import Platform
from schedlab.platforms.units import parse_bandwidth, parse_speed, parse_time

MASTER = '<host id="master_host" speed="1Gf"/>'


def zone(inside: str, routing: str = "Full", name: str = "z") -> str:
    return f'<zone id="{name}" routing="{routing}">{inside}</zone>'


def read(inside: str, version: str = "4.1") -> Platform:
    return parse_platform(f'<platform version="{version}">{inside}</platform>', "p.xml")


def hosts(*names: str, more: str = "") -> str:
    return "".join(f'<host id="{name}" speed="1Gf" {more}/>' for name in names)


def latency(platform: Platform, source: str, target: str) -> float:
    return platform.route(platform.host(source), platform.host(target)).latency


def test_ids_follow_the_bytes_of_the_names() -> None:
    names = ["b10", "a2", "b2", "B1", "é", "z", *(f"cor_{number}" for number in range(12))]
    ordered = [host.name for host in read(zone(hosts(*names) + MASTER)).compute_hosts("master_host")]
    assert ordered == [
        "B1",
        "a2",
        "b10",
        "b2",
        "cor_0",
        "cor_1",
        "cor_10",
        "cor_11",
        *(f"cor_{number}" for number in range(2, 10)),
        "z",
        "é",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100Mf", 1e8),
        ("1e-9Mf", 1e-3),
        ("2.5Gf", 2.5e9),
        ("3", 3.0),
        ("1Tf", 1e12),
        ("1Kif", 1024.0),
        (" 4.000Gf", 4e9),
        ("16.673E9flops", 16.673e9),
        ("1Gflops", 1e9),
        ("0f", 0.0),
    ],
)
def test_speeds(text: str, value: float) -> None:
    assert parse_speed(text, "here") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("125MBps", 1.25e8),
        ("1Gbps", 1.25e8),
        ("10.0Gbps", 1.25e9),
        ("1KiBps", 1024.0),
        ("8bps", 1.0),
        ("1kBps", 1000.0),
    ],
)
def test_bandwidths(text: str, value: float) -> None:
    assert parse_bandwidth(text, "here") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"), [("50us", 5e-5), ("0us", 0.0), ("1ms", 1e-3), ("2s", 2.0), ("3ns", 3e-9), ("0", 0.0)]
)
def test_times(text: str, value: float) -> None:
    assert parse_time(text, "here") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "Mf", "-1Gf", "1e-25f", "nan", "inff", "1e999f", "1 2f", "1GFLOPS", "1GBps", "1_000f", "٣f"]
)
def test_what_is_no_speed_is_told(text: str) -> None:
    with pytest.raises(UserError, match=r"host 'a', speed"):
        parse_speed(text, "host 'a', speed")


def test_a_cluster_has_private_links_a_backbone_and_a_router() -> None:
    speeds, links = 'speed="1Gf,2Gf" core="4"', 'bw="1GBps" lat="50us" bb_bw="2GBps" bb_lat="10us"'
    cluster = (
        f'<cluster id="c" prefix="n-" suffix=".x" radical="0-2,7" {speeds} {links}><prop id="wattage_per_state" '
        'value="1:2,1:3"/></cluster>'
    )
    platform = read(
        zone(
            f'{cluster}{zone(MASTER, name="m")}<link id="l" bandwidth="1GBps" latency="1ms"/>'
            '<zoneRoute src="c" dst="m" gw_src="n-c_router.x" gw_dst="master_host"><link_ctn id="l"/></zoneRoute>'
        )
    )
    compute = platform.compute_hosts("master_host")
    assert [host.name for host in compute] == ["n-0.x", "n-1.x", "n-2.x", "n-7.x"]
    assert (compute[0].speeds, compute[0].cores, compute[0].properties) == (
        (1e9, 2e9),
        4,
        {"wattage_per_state": "1:2,1:3"},
    )
    assert latency(platform, "n-0.x", "n-7.x") == pytest.approx(1.1e-4)
    assert (
        latency(platform, "n-1.x", "master_host") == latency(platform, "master_host", "n-1.x") == pytest.approx(1.06e-3)
    )
    assert platform.route(compute[0], compute[1]).channels[0] != platform.route(compute[1], compute[0]).channels[-1], (
        "two directions"
    )


def test_split_duplex_links_turn_on_the_way_back() -> None:
    link = '<link id="l" bandwidth="1GBps" latency="1ms" sharing_policy="SPLITDUPLEX"/>'
    route = f'{link}<route src="a" dst="b"><link_ctn id="l" direction="UP"/></route>'
    platform = read(zone(hosts("a", "b") + MASTER + route))
    there, back = (platform.route(platform.host(one), platform.host(other)) for one, other in (("a", "b"), ("b", "a")))
    assert len(there.channels) == len(back.channels) == 1 and there.channels != back.channels


def test_nested_zones_are_crossed_by_their_gateways() -> None:
    """a - r1 in zone 1, b - r2 in zone 2, both within 'left'; c in 'right'."""
    links = "".join(f'<link id="l{number}" bandwidth="1GBps" latency="{10**number}us"/>' for number in range(5))
    one = zone(hosts("a") + '<router id="r1"/><route src="a" dst="r1"><link_ctn id="l0"/></route>', name="one")
    two = zone(
        hosts("b") + '<router id="r2"/><route src="r2" dst="b"><link_ctn id="l1"/></route>',
        name="two",
        routing="Dijkstra",
    )
    between = '<zoneRoute src="one" dst="two" gw_src="r1" gw_dst="r2"><link_ctn id="l2"/></zoneRoute>'
    left = zone(one + two + between, name="left", routing="Floyd")
    right = zone(hosts("c") + MASTER + '<route src="c" dst="master_host"><link_ctn id="l4"/></route>', name="right")
    across = '<zoneRoute src="left" dst="right" gw_src="r2" gw_dst="master_host"><link_ctn id="l3"/></zoneRoute>'
    platform = read(zone(links + left + right + across, name="all"))
    assert latency(platform, "a", "b") == pytest.approx(111e-6) == latency(platform, "b", "a")
    assert latency(platform, "b", "master_host") == pytest.approx(1010e-6)
    assert latency(platform, "a", "c") == pytest.approx((1 + 100 + 1000 + 10000) * 1e-6)


def test_shortest_paths_over_explicit_routes() -> None:
    links = "".join(f'<link id="l{number}" bandwidth="1GBps" latency="{number}ms"/>' for number in (1, 2, 4))
    routes = '<route src="a" dst="r"><link_ctn id="l1"/></route><route src="r" dst="b"><link_ctn id="l2"/></route>'
    members = f'{hosts("a", "b")}{MASTER}<router id="r"/>{links}{routes}'
    for routing in ("Floyd", "Dijkstra"):
        assert latency(read(zone(members, routing)), "a", "b") == pytest.approx(3e-3)
    with pytest.raises(UserError, match=r"no route from 'a' to 'b' in zone 'z' .*network.*ignore"):
        latency(read(zone(members)), "a", "b")


def test_vivaldi_distance_is_latency() -> None:
    place = '<host id="a" speed="1Gf" coordinates="1 -2 1"/><host id="b" speed="1Gf" coordinates="4 2 2"/>'
    platform = read(zone(place + MASTER, "Vivaldi"))
    assert latency(platform, "a", "b") == pytest.approx(8e-3)
    assert platform.route(platform.host("a"), platform.host("b")).channels == ()


def test_zones_without_routing_cannot_communicate() -> None:
    with pytest.raises(UserError, match="no route"):
        latency(read(zone(hosts("a", "b") + MASTER, "None")), "a", "b")


def test_old_names_and_zone_properties() -> None:
    platform = read(
        f'<AS id="z" routing="Full"><prop id="where" value="cellar"/>{hosts("a")}{MASTER}</AS>', version="4"
    )
    assert platform.host("a").point.zone.properties == {"where": "cellar"}


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("", "0 elements"),
        (zone(MASTER) * 2, "2 elements"),
        (zone("", name="a"), "holds no host"),
        (zone(MASTER, "Torus"), "routing 'Torus'"),
        (zone(hosts("a", "b") + '<route src="a" dst="b"/>', "Cluster"), "element <route>"),
        (zone(hosts("a") + '<host_link id="b" up="l" down="l"/>', "Cluster"), "host_link 'b'"),
        (zone(hosts("a") + '<host_link id="a" up="l" down="l"/>', "Cluster"), "link 'l' is not declared"),
        (zone(hosts("a") + '<cabinet id="c" prefix="h" radical="0" speed="1Gf" bw="1GBps" lat="1us"/>'), "<cabinet>"),
        (zone(hosts("a") + '<trace id="t" file="x"/><trace_connect trace="t" element="a"/>'), "<trace_connect>"),
        (zone(hosts("a", "a")), "a second host or router of the name 'a'"),
        (zone(zone(hosts("a"), name="a") + zone("", name="a")), "a second zone of the name 'a'"),
        (zone('<host id="a"/>'), "lacks 'speed'"),
        (zone('<host speed="1Gf"/>'), "lacks 'id'"),
        (zone('<host id="a" speed="1Gf" pstate="1"/>'), "pstate 1 has no speed"),
        (zone('<host id="a" speed="1Gf" core="two"/>'), "core 'two'"),
        (zone('<host id="a" speed="1Gf" state_file="x"/>'), "attribute 'state_file'"),
        (zone('<host id="a" speed="1Gf" coordinates="1 2"/>'), "coordinates '1 2'"),
        (zone('<host id="a" speed="1Gf"><link/></host>'), "element <link>"),
        (zone('<router id="r"><prop id="a" value="b"/></router>'), "<router> holds <prop>"),
        (zone('<peer id="a"/>'), "element <peer>"),
        (zone('<link id="l" bandwidth="1Gf"/>'), "link 'l', bandwidth"),
        (zone('<link id="l" bandwidth="1GBps" latency="1MB"/>'), "link 'l', latency"),
        (zone('<link id="l" bandwidth="1GBps" sharing_policy="WIFI"/>'), "sharing policy 'WIFI'"),
        (zone('<link id="l" bandwidth="1GBps"/>' * 2), "a second link"),
        (zone(hosts("a") + '<route src="a" dst="b"/>'), "'b' is no member"),
        (zone(hosts("a", "b") + '<route src="a" dst="b"><link_ctn id="l"/></route>'), "link 'l' is not declared"),
        (zone(hosts("a", "b") + '<route src="a" dst="b"/><route src="b" dst="a"/>'), "a second route"),
        (zone(hosts("a", "b") + '<route src="a" dst="b" symmetrical="maybe"/>'), "symmetrical"),
        (zone(hosts("a", "b") + '<route src="a" dst="b"/>', "Vivaldi"), "takes no routes"),
        (zone(zone(hosts("a"), name="y") + hosts("b") + '<route src="y" dst="b"/>'), "joins zones"),
        (
            zone(zone(hosts("a"), name="y") + hosts("b") + '<zoneRoute src="y" dst="y" gw_src="b" gw_dst="a"/>'),
            "does not lie in 'y'",
        ),
        (zone(hosts("a", "b") + '<zoneRoute src="a" dst="b" gw_src="a" gw_dst="b"/>'), "'a' is no zone"),
        ('<cluster id="c" prefix="h" radical="0-999999999" speed="1Gf" bw="1GBps" lat="0s"/>', "too many hosts"),
        ('<cluster id="c" prefix="h" radical="a-b" speed="1Gf" bw="1GBps" lat="0s"/>', "radical 'a-b'"),
        (
            '<cluster id="c" prefix="h" radical="0-3" speed="1Gf" bw="1GBps" lat="0s" topology="TORUS"/>',
            "attribute 'topology'",
        ),
        (
            "".join(f'<zone id="{number}" routing="Full">' for number in range(300)) + "</zone>" * 300,
            "nested too deeply",
        ),
    ],
)
def test_what_is_not_in_the_subset_is_told(inside: str, told: str) -> None:
    with pytest.raises(UserError) as raised:
        read(inside)
    assert told in str(raised.value) and str(raised.value).startswith("p.xml: line 1: ")


@pytest.mark.parametrize("attribute", ["availability_file", "bandwidth_file", "speed_file", "state_file", "topology"])
def test_an_attribute_that_is_not_simulated_is_refused_with_what_is_possible_instead(attribute: str) -> None:
    cluster = '<cluster id="c" prefix="h" radical="0-3" speed="1Gf" bw="1GBps" lat="0s"'
    with pytest.raises(UserError, match=f"attribute '{attribute}'") as raised:
        read(f'{cluster} {attribute}="x"/>')
    assert raised.value.remedy == REFUSED_ATTRIBUTES[attribute]


def test_a_split_link_needs_a_direction() -> None:
    link = '<link id="l" bandwidth="1GBps" sharing_policy="SPLITDUPLEX"/>'
    for direction, told in (("", "split-duplex"), ('direction="LEFT"', "direction 'LEFT'")):
        with pytest.raises(UserError, match=told):
            read(zone(f'{hosts("a", "b")}{link}<route src="a" dst="b"><link_ctn id="l" {direction}/></route>'))


@pytest.mark.parametrize("version", ["", "2", "5"])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(UserError, match="is not supported"):
        read(zone(MASTER), version=version)


BOMB = '<!DOCTYPE p [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "text",
    [
        BOMB + '<platform version="4.1">&b;</platform>',
        '<!DOCTYPE p [<!ENTITY a SYSTEM "file:///etc/passwd">]><platform version="4.1">&a;</platform>',
        '<platform version="4.1">',
        "platform",
        "",
        b"\xff\xfe\x00",
        b"<?xml version='1.0' encoding='klingon'?><platform/>",
    ],
)
def test_bombs_and_broken_files_are_refused(text: str | bytes) -> None:
    with pytest.raises(UserError, match=r"p\.xml"):
        parse_platform(text, "p.xml")


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_platform(tmp_path / "nothing.xml")


def test_errors_name_the_line() -> None:
    text = '<platform version="4.1">\n<zone id="z" routing="Full">\n\n<host id="a" speed="fast"/></zone></platform>'
    with pytest.raises(UserError) as raised:
        parse_platform(text, "p.xml")
    assert raised.value.where == "p.xml: line 4: host 'a', speed"
    with pytest.raises(UserError, match=r"p\.xml: line 5: "):
        parse_platform("<!-- two\nlines -->\n<?xml version='1.0'?>" + text.replace("\n\n", "\n"), "p.xml")


@pytest.mark.parametrize("before", ["\n", "  \n\t", "<!-- a comment -->", "\n<!-- one\n-->\n<!--two-->\n"])
def test_blank_lines_and_comments_may_stand_before_the_declaration(before: str) -> None:
    text = f"{before}<?xml version='1.0' encoding='latin-1'?><platform version='4'>{zone(hosts('a'))}</platform>"
    assert list(parse_platform(text, "p.xml").hosts) == ["a"]


def test_a_star_of_hosts_with_links_of_their_own() -> None:
    """Cores a and b of one node share a link; c has one for each direction; cabinets bring their own."""
    links = "".join(f'<link id="{name}" bandwidth="1GBps" latency="1us"/>' for name in ("node", "up", "down"))
    joins = '<host_link id="a" up="node" down="node"/><host_link id="b" up="node" down="node"/>'
    joins += '<host_link id="c" up="up" down="down"/>'
    cabinet = '<cabinet id="k" prefix="k" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="10us"/>'
    core = '<router id="r"/><backbone id="bb" bandwidth="2GBps" latency="100us"/>'
    cabinets = cabinet + cabinet.replace('prefix="k"', 'prefix="m"')
    star = zone(joins + links + hosts("a", "b", "c") + cabinets + core, "Cluster")
    outside = zone(MASTER, name="m") + '<link id="w" bandwidth="1GBps" latency="1ms"/>'
    way = '<zoneRoute src="z" dst="m" gw_src="r" gw_dst="master_host"><link_ctn id="w"/></zoneRoute>'
    platform = read(zone(star + outside + way, name="all"))
    assert sorted(platform.hosts) == ["a", "b", "c", "k0", "k1", "m0", "m1", "master_host"]
    assert latency(platform, "a", "b") == pytest.approx(101e-6), "the shared link is crossed once"
    assert latency(platform, "a", "c") == pytest.approx(102e-6) == latency(platform, "c", "a")
    assert latency(platform, "k0", "m1") == pytest.approx(120e-6)
    assert latency(platform, "k0", "master_host") == pytest.approx(1110e-6)
    there, back = (platform.route(platform.host(one), platform.host(two)) for one, two in (("k0", "k1"), ("k1", "k0")))
    assert len({*there.channels, *back.channels}) == 5, "four private ones and the backbone"


def test_a_limiter_bounds_what_a_host_sends_and_receives_together() -> None:
    cluster = '<cluster id="c" prefix="h" radical="0-1" speed="1Gf" bw="1GBps" lat="1us" limiter_link="1.5E9"/>'
    platform = read(cluster)
    there, back = (platform.route(platform.host(one), platform.host(two)) for one, two in (("h0", "h1"), ("h1", "h0")))
    assert len(there.channels) == 4 and len({*there.channels, *back.channels}) == 6
    assert there.latency == pytest.approx(2e-6)
    assert sum(platform.channels.bandwidth[channel] == 1.5e9 for channel in there.channels) == 2


def test_the_way_from_a_host_to_itself() -> None:
    """An explicit route, else the zone's loopback; in a cluster without one up to the backbone and down again."""
    link = '<link id="l" bandwidth="498MBps" latency="15us" sharing_policy="FATPIPE"/>'
    platform = read(zone(hosts("a", "b") + link + '<route src="a" dst="a"><link_ctn id="l"/></route>'))
    assert latency(platform, "a", "a") == pytest.approx(15e-6)
    assert latency(platform, "b", "b") == 0
    links = 'bw="1GBps" lat="50us" bb_bw="2GBps" bb_lat="10us"'
    cluster = f'<cluster id="c" prefix="h" radical="0-1" speed="1Gf" {links}/>'
    assert latency(read(cluster), "h0", "h0") == pytest.approx(110e-6)
    looped = read(cluster.replace(" bw=", ' loopback_bw="6GBps" loopback_lat="2us" bw=', 1))
    assert latency(looped, "h0", "h0") == pytest.approx(2e-6)


def test_forms_of_older_versions() -> None:
    old = '<AS id="z" routing="full"><host id="a" power="98.095Mf" availability="1.0" state="ON"/>'
    link = '<link id="l" bandwidth="1GBps" latency="1us" sharing_policy="FULLDUPLEX"/>'
    way = '<route src="a" dst="b"><link_ctn id="l" direction="UP"/></route>'
    platform = read(f'{old}<host id="b" power="1E8"/>{link}{way}</AS>', "3")
    assert platform.host("a").speeds == (98.095e6,) and platform.host("b").speeds == (1e8,)


def test_what_changes_nothing_may_be_there() -> None:
    config = '<config id="General"><prop id="network/model" value="SMPI"/></config>'
    disk = '<disk id="d" read_bw="1GBps" write_bw="1GBps"><prop id="size" value="1TB"/></disk>'
    host = f'<host id="a" speed="1Gf" state_file="">{disk}<prop id="x" value="y"/></host>'
    platform = read(config + zone(f'<trace id="t" file="nowhere.txt"/>{host}{MASTER}'))
    assert platform.host("a").properties == {"x": "y"}


def test_properties_of_all_zones_around_a_host() -> None:
    inner = zone('<prop id="bla" value="bli"/><prop id="Foo" value="baz"/>' + hosts("b"), name="inner")
    props = '<prop id="kind" value="node"/>'
    cluster = f'<cluster id="c" prefix="h" radical="0-0" speed="1Gf" bw="1GBps" lat="0s">{props}</cluster>'
    platform = read(zone('<prop id="Foo" value="bar"/>' + inner + cluster + hosts("a")))
    around = {name: host.point.zone.all_properties() for name, host in platform.hosts.items()}
    assert around == {
        "a": {"Foo": "bar"},
        "b": {"Foo": "baz", "bla": "bli"},
        "h0": {"Foo": "bar", "kind": "node"},
    }


def role(name: str, value: str, speed: str = "1Gf") -> str:
    return f'<host id="{name}" speed="{speed}"><prop id="role" value="{value}"/></host>'


def test_roles_of_hosts() -> None:
    stored, boss = role("disk", "storage", "0f"), role("boss", "master", "0f")
    platform = read(zone(hosts("a") + boss + stored + role("b", "compute_node")))
    assert platform.master("master_host").name == "boss"
    assert [host.name for host in platform.compute_hosts("master_host")] == ["a", "b"]
    assert [host.name for host in platform.storage_hosts("master_host")] == ["disk"]
    changed = read(zone(hosts("a", "b", "c"))).with_roles({"a": "storage", "c": "master"})
    assert changed.master("master_host").name == "c"
    assert [host.name for host in changed.storage_hosts("master_host")] == ["a"]
    assert changed.host("a").properties == {"role": "storage"}


@pytest.mark.parametrize(
    ("inside", "roles", "told"),
    [
        (hosts("a"), {}, "no host is named 'master_host'"),
        (hosts("a") + role("boss", "master") + MASTER, {}, "2 hosts are masters"),
        (hosts("a") + role("b", "io") + MASTER, {}, "'io' is no role"),
        (hosts("a") + role("b", "storage") + MASTER, {"b": "compute_node"}, "'storage,compute_node' is no role"),
        (hosts("a") + MASTER, {"b": "storage"}, "no host is named 'b'"),
        (hosts("a") + '<host id="b" speed="0f"/>' + MASTER, {}, "host 'b', speed"),
        (hosts("a") + '<host id="b" speed="1Gf,0f" pstate="1"/>' + MASTER, {}, "host 'b', speed"),
    ],
)
def test_impossible_roles_are_refused(inside: str, roles: dict[str, str], told: str) -> None:
    with pytest.raises(UserError) as raised:
        platform = read(zone(inside)).with_roles(roles)
        platform.master("master_host")
        platform.compute_hosts("master_host")
    assert told in str(raised.value) and "p.xml" in str(raised.value)


SHIPPED = {  # by Batsim 4.2.1: compute hosts, and the master where the file names none of the usual ones
    "cluster512": (512, ""),
    "cluster512_pfs": (512, ""),
    "cluster_energy_128": (128, ""),
    "cluster_locality_8x16": (128, "master_host0"),
    "energy_platform": (4, ""),
    "energy_platform_homogeneous_no_net_128": (128, ""),
    "graphene": (143, "graphene-1001.nancy.grid5000.fr"),
    "properties_example": (7, ""),
    "small_platform": (4, ""),
    "small_platform_pfs0": (5, ""),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_platforms_that_batsim_ships_are_read(name: str, shared_data: Path) -> None:
    count, master = SHIPPED[name]
    platform = read_platform(shared_data / f"cases/batsim_files/platforms/{name}.xml")
    boss = platform.master(master or "master_host")
    computing = platform.compute_hosts(boss.name)
    assert len(computing) == count
    for target in (computing[-1], boss):
        assert platform.route(computing[0], target).latency >= 0 and platform.route(target, computing[0]).latency >= 0


def test_zone_properties_of_batsims_example(shared_data: Path) -> None:
    platform = read_platform(shared_data / "cases/batsim_files/platforms/properties_example.xml")
    assert platform.host("host1").point.zone.all_properties() == {"Foo": "bar", "bla": "bli"}


def test_a_platform_needs_hosts_that_compute() -> None:
    with pytest.raises(UserError, match="no host computes"):
        read(zone(MASTER)).compute_hosts("master_host")


TAGS = [
    "cabinet",
    "backbone",
    "host_link",
    "trace",
    "zone",
    "host",
    "router",
    "link",
    "route",
    "zoneRoute",
    "link_ctn",
    "prop",
    "cluster",
    "config",
    "AS",
    "peer",
]
ATTRIBUTES = [
    "id",
    "routing",
    "speed",
    "core",
    "pstate",
    "src",
    "dst",
    "gw_src",
    "bandwidth",
    "latency",
    "value",
    "radical",
    "bw",
    "lat",
    "direction",
]
VALUES = [
    "a",
    "b",
    "z",
    "1Gf",
    "1Gf,2Gf",
    "-1",
    "Full",
    "Vivaldi",
    "1GBps",
    "1us",
    "0-3",
    "9" * 30,
    "UP",
    "",
    "nan",
    "4.1",
]
elements = st.recursive(
    st.tuples(
        st.sampled_from(TAGS),
        st.dictionaries(st.sampled_from(ATTRIBUTES), st.sampled_from(VALUES), max_size=6),
        st.just([]),
    ),
    lambda children: st.tuples(
        st.sampled_from(TAGS),
        st.dictionaries(st.sampled_from(ATTRIBUTES), st.sampled_from(VALUES), max_size=5),
        st.lists(children, max_size=5),
    ),
    max_leaves=12,
)


def written(element: tuple[str, dict[str, str], list]) -> str:
    tag, attributes, children = element
    text = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{tag}{text}>{''.join(map(written, children))}</{tag}>"


@settings(max_examples=150, deadline=None)
@given(st.lists(elements, max_size=6), st.sampled_from(["Full", "Vivaldi", "Floyd", "None", "Cluster"]))
def test_random_elements_end_in_a_platform_or_an_error_for_people(inside: list, routing: str) -> None:
    try:
        platform = read(zone("".join(map(written, inside)) + MASTER, routing))
    except UserError:
        return
    assert "master_host" in platform.hosts


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(alphabet=string.printable, max_size=200)))
def test_random_bytes_are_refused(data: bytes | str) -> None:
    with pytest.raises(UserError):
        parse_platform(data, "p.xml")
