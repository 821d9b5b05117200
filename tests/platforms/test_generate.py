"""Generated platforms: the published totals, the XML element by element, and each published defect with the switch that
shows it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.platforms.description import shipped_platforms
from schedlab.platforms.generate import MASTER, generate_platform, hierarchy_of, platform_xml
from schedlab.platforms.settings import REFERENCE, PlatformSettings, SyntheticSettings

# clusters, nodes, processors, cores, mean Gflop/s per core, power in W, bandwidth
PUBLISHED = {
    "learning": (1, 1, 2, 4, 4.2, 180, "10.0Gbps"),
    "das2": (1, 72, 72, 144, 1.0, 2088, "10.0Gbps"),
    "gaia": (1, 153, 342, 2280, 11.7154, 21217.5, "10.0Gbps"),
    "pik": (1, 320, 640, 2560, 12.0, 38400, "5.0Gbps"),
    "ricc": (1, 1024, 2048, 8192, 11.72, 145920, "10.0Gbps"),
    "mc2": (32, 641, 1548, 10002, 16.4223, 121142.7, "1.0Gbps"),
    "mixed": (32, 641, 1548, 10002, 16.4223, 121142.7, "1.0Gbps"),
}
# number of nodes, processors as (cores, GHz, GB/s, W, flop/cycle), memory in GB (the same section)
NODES = {
    "learning": [(1, [(2, 1.0, 32, 80, 4), (2, 1.1, 32, 100, 4)], 32)],
    "das2": [(72, [(2, 1.0, 32, 29, 1)], 1)],
    "gaia": [
        (60, 2 * [(6, 2.26, 32, 45, 4)], 48),
        (2, 2 * [(6, 2.26, 32, 45, 4)], 96),
        (10, 2 * [(6, 2.26, 32, 45, 4)], 96),
        (1, 16 * [(10, 2.0, 51.2, 97.5, 4)], 1024),
        (1, 4 * [(8, 2.4, 51.2, 71.25, 8)], 1024),
        (5, 2 * [(8, 2.2, 51.2, 71.25, 8)], 64),
        (72, 2 * [(6, 2.93, 32, 71.25, 4)], 48),
        (1, 8 * [(15, 2.5, 85, 97.5, 8)], 3072),
        (1, 16 * [(10, 2.4, 59.7, 71.25, 8)], 4096),
    ],
    "pik": [(320, 2 * [(4, 3.0, 32, 60, 4)], 32)],
    "ricc": [(1024, 2 * [(4, 2.93, 32, 71.25, 4)], 12)],
}


def shipped(name: str, **changes) -> PlatformSettings:
    return validate(PlatformSettings, {"name": name, "file": name, **changes})


def elements(settings: PlatformSettings) -> ElementTree.Element:
    return ElementTree.fromstring(platform_xml(hierarchy_of(settings), settings))


def hosts(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {host.get("id"): host for host in root.iter("host")}


def property_of(host: ElementTree.Element) -> tuple[str, str]:
    prop = host.find("prop")
    return prop.get("id"), prop.get("value")


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shipped_platforms_have_the_published_totals(name):
    totals = hierarchy_of(shipped(name)).totals()
    clusters, nodes, processors, cores, speed, power, bandwidth = PUBLISHED[name]
    assert (totals["clusters"], totals["nodes"], totals["processors"], totals["cores"]) == (
        clusters,
        nodes,
        processors,
        cores,
    )
    assert totals["reference_speed_gflops"] == pytest.approx(speed, abs=5e-5)
    assert totals["power_w"] == pytest.approx(power, abs=0.05)
    assert (totals["local_links"], totals["global_links"]) == ([bandwidth], bandwidth)


@pytest.mark.parametrize("name", NODES)
def test_the_nodes_of_the_shipped_platforms_are_the_published_ones_in_their_order(name):
    expected = [
        (
            memory * 1000,
            [(cores, clock * flops, bandwidth, power / cores) for cores, clock, bandwidth, power, flops in processors],
        )
        for number, processors, memory in NODES[name]
        for _ in range(number)
    ]
    found = [
        (node.memory, [(one.cores, one.gflops_per_core, one.mem_bw, one.power_per_core) for one in node.processors])
        for node in hierarchy_of(shipped(name)).nodes()
    ]
    assert found == expected


def test_every_shipped_platform_is_in_the_table():
    assert shipped_platforms() == sorted(PUBLISHED)


def test_the_learning_platform_host_by_host():
    root = elements(shipped("learning"))
    found = hosts(root)
    assert list(found) == [MASTER, "cor_0", "cor_1", "cor_2", "cor_3"]
    assert (found[MASTER].get("speed"), property_of(found[MASTER])) == ("1Gf", ("wattage_per_state", "0:0"))
    for name, speeds, powers in (
        ("cor_1", "4.000Gf, 3.000Gf, 0.001f, 0.001f", "40.000:40.000, 40.000:40.000, 10.000:10.000, 2.000:2.000"),
        ("cor_2", "4.400Gf, 3.300Gf, 0.001f, 0.001f", "50.000:50.000, 50.000:50.000, 12.500:12.500, 2.500:2.500"),
    ):
        assert (found[name].get("speed"), found[name].get("pstate")) == (speeds, "3")
        assert property_of(found[name]) == ("wattage_per_state", powers)


def test_each_node_has_one_link_and_each_core_a_way_there_and_back():
    settings = shipped("gaia")
    hierarchy = hierarchy_of(settings)
    zone = next(zone for zone in elements(settings).iter("zone") if zone.get("id") == "clu_0")
    links = {link.get("id"): link for link in zone.findall("link")}
    assert len(links) == 153
    assert {(link.get("bandwidth"), link.get("sharing_policy")) for link in links.values()} == {
        ("10.0Gbps", "SPLITDUPLEX")
    }
    routes = {(route.get("src"), route.get("dst")): route.find("link_ctn") for route in zone.findall("route")}
    assert len(routes) == 2 * hierarchy.cores
    nodes = [node.id for node in hierarchy.nodes() for processor in node.processors for _ in range(processor.cores)]
    for core in (0, 11, 12, 2279):
        name, link = hierarchy.core_name(core), f"udl_{nodes[core]}"
        for ends, direction in ((("rou_0", name), "DOWN"), ((name, "rou_0"), "UP")):
            assert (routes[ends].get("id"), routes[ends].get("direction")) == (link, direction)


def test_host_names_sort_as_the_cores_are_numbered():
    hierarchy = hierarchy_of(shipped("gaia"))
    assert hierarchy.core_names() == sorted(hierarchy.core_names(), key=str.encode)
    assert hierarchy.core_name(7) == "cor_0007"
    bare = hierarchy_of(shipped("gaia", names="bare")).core_names()
    assert sorted(bare, key=str.encode)[:4] == ["cor_0", "cor_1", "cor_10", "cor_100"]


def test_clusters_and_cores_reach_each_other_and_did_not_as_published():
    settings = {"synthetic": {"clusters": 3, "nodes": [2, 2]}}
    root = elements(validate(PlatformSettings, settings))
    ways = {
        (way.get("src"), way.get("dst")): [link.get("id") for link in way.findall("link_ctn")]
        for way in root.iter("zoneRoute")
    }
    assert len(ways) == 12
    assert ways["clu_0", "clu_2"] == ["glob_lnk_0", "glob_lnk_2"]
    assert {zone.get("routing") for zone in root.iter("zone") if zone.get("id").startswith("clu")} == {"Dijkstra"}
    published = elements(validate(PlatformSettings, {**settings, "core_routes": False}))
    assert {(way.get("src"), way.get("dst")) for way in published.iter("zoneRoute")} == {
        *(("master", f"clu_{number}") for number in range(3)),
        *((f"clu_{number}", "master") for number in range(3)),
    }
    assert {zone.get("routing") for zone in published.iter("zone")} == {"Full"}


def test_mode_reference_is_the_published_form_with_its_defects():
    settings = shipped("gaia", **REFERENCE)
    root = elements(settings)
    master = next(zone for zone in root.iter("zone") if zone.get("id") == "master")
    assert master.get("routing") == "None"
    found = hosts(root)
    assert "cor_7" in found
    assert property_of(found["cor_7"])[0] == "watt_per_state"
    state = hierarchy_of(settings).states[2]
    assert (state.power, state.model_power) == (0.25, 0.15)
    assert hierarchy_of(shipped("gaia")).states[2].model_power == 0.25


def test_power_is_left_out_where_it_is_not_wanted():
    assert not list(elements(shipped("learning", energy=False)).iter("prop"))


def test_pstates_follow_their_settings():
    root = elements(
        shipped("learning", pstates={"oversubscribed_speed": 0.5, "idle_power": 0.1, "neighbour_busy_power": 0.2})
    )
    host = hosts(root)["cor_0"]
    assert hosts(elements(shipped("learning", pstates={"initial": 0})))["cor_0"].get("pstate") == "0"
    assert host.get("speed").split(", ")[1] == "2.000Gf"
    assert property_of(host)[1].split(", ")[2:] == ["8.000:8.000", "4.000:4.000"]


def test_numbers_that_three_decimals_do_not_hold_are_written_longer():
    pair = {"clock_rate": [2.37, 2.37], "flops_per_cycle": [3], "power": [0.1, 0.1], "cores": [3, 3]}
    settings = validate(PlatformSettings, {"synthetic": {**pair, "nodes": [1, 1]}, "pstates": {"idle_power": 0.0013}})
    host = hosts(elements(settings))["cor_0"]
    assert host.get("speed").split(", ")[:2] == ["7.110Gf", "5.3325Gf"]
    assert property_of(host)[1].endswith("0.00013:0.00013")


def test_files_are_the_same_each_time(tmp_path):
    settings = validate(PlatformSettings, {"synthetic": {"clusters": 2, "nodes": [3, 9], "kinds": 2}})
    for folder in ("a", "b"):
        generate_platform(settings, tmp_path / folder / "platform.xml", tmp_path / folder / "resources.json")
    for name in ("platform.xml", "resources.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_synthetic_platform_keeps_its_ranges_and_hangs_on_its_seed():
    ranges = {
        "clusters": 6,
        "nodes": (3, 9),
        "kinds": 2,
        "processors": (1, 4),
        "cores": (2, 16),
        "clock_rate": (1.5, 3.5),
    }
    settings = SyntheticSettings(**ranges, bandwidth=(1.0, 40.0), power=(5.0, 20.0))
    platform = hierarchy_of(PlatformSettings(synthetic=settings))
    processors = list(platform.processors())
    assert len(platform.clusters) == 6
    assert all(3 <= len(cluster.nodes) <= 9 for cluster in platform.clusters)
    assert all(1 <= len(node.processors) <= 4 for node in platform.nodes())
    assert all(2 <= processor.cores <= 16 for processor in processors)
    assert all(5 <= processor.power_per_core <= 20 for processor in processors)
    assert (platform.gflops.min() >= 1.5 * 4) and (platform.gflops.max() <= 3.5 * 16)
    assert len({cluster.bandwidth for cluster in platform.clusters}) > 1
    assert hierarchy_of(PlatformSettings(synthetic=settings)) == platform
    assert hierarchy_of(PlatformSettings(synthetic=settings.model_copy(update={"seed": 1}))) != platform


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, "either file or synthetic"),
        ({"file": "gaia", "synthetic": {}}, "either file or synthetic"),
        ({"synthetic": {"nodes": [3, 2]}}, "nodes: smallest and largest"),
        ({"synthetic": {"cores": [0, 2]}}, "cores: smallest and largest"),
        ({"synthetic": {"clusters": 10_000, "nodes": [1, 1_000_000]}}, "at most 1000000"),
        ({"synthetic": {"memory": [-1.0]}}, "values above 0"),
        ({"synthetic": {"latency": "1 week"}}, "latency"),
        ({"file": "gaia", "pstates": {"oversubscribed_speed": 0.0}}, "oversubscribed_speed"),
        ({"file": "gaia", "nmaes": "bare"}, "did you mean 'names'"),
    ],
)
def test_impossible_settings_are_refused(values, told):
    with pytest.raises(UserErrors, match=told):
        validate(PlatformSettings, values)


def test_an_unknown_platform_names_the_nearest():
    with pytest.raises(UserError, match="did you mean 'gaia'"):
        hierarchy_of(shipped("gaja"))


pairs = st.tuples(st.integers(1, 5), st.integers(0, 5)).map(lambda pair: (pair[0], sum(pair)))
counts = {"seed": st.integers(0, 99), "clusters": st.integers(1, 4), "kinds": st.integers(1, 3)}
ranges = st.fixed_dictionaries({**counts, "nodes": pairs, "processors": pairs, "cores": pairs})


@hypothesis_settings(max_examples=40, deadline=None)
@given(
    st.builds(
        dict,
        seed=st.integers(0, 99),
        clusters=st.integers(1, 4),
        nodes=pairs,
        kinds=st.integers(1, 3),
        processors=pairs,
        cores=pairs,
    )
)
def test_any_synthetic_platform_is_whole(values):
    settings = PlatformSettings(synthetic=SyntheticSettings(**values))
    hierarchy = hierarchy_of(settings)
    root = ElementTree.fromstring(platform_xml(hierarchy, settings))
    names = [name for name in hosts(root) if name != MASTER]
    assert names == hierarchy.core_names() == sorted(names, key=str.encode)
    assert len(hierarchy.gflops) == hierarchy.cores
    assert (np.diff(hierarchy.processor_of_core) >= 0).all()
    identifiers = [element.get("id") for element in root.iter() if element.tag in ("zone", "link", "router", "host")]
    assert len(identifiers) == len(set(identifiers))
    known = set(identifiers)
    assert all(link.get("id") in known for link in root.iter("link_ctn"))


def test_a_platform_for_schedulers_that_set_no_pstate_starts_at_full_speed():
    settings = shipped("learning", pstates={"managed": False, "idle_power": 0.5})
    host = hosts(elements(settings))["cor_2"]
    assert (host.get("speed"), host.get("pstate")) == ("4.400Gf", "0")
    assert property_of(host) == ("wattage_per_state", "25.000:50.000")
    assert [state.name for state in hierarchy_of(settings).states] == ["full_speed"]
