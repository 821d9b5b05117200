"""Times of messages and collectives, shapes of blocks: the recorded tables, and what a cluster refuses."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import RampPlacement, block_shapes

TABLES = json.loads((Path(__file__).parents[3] / "data" / "ramp" / "tables_formulas_and_shapes.json").read_text())


def published(row, groups):
    """The topology of a row of the tables, as published."""
    latencies = {"propagation_latency": row.get("latency", 0.0), "io_latency": row.get("io_latency", 0.0)}
    bandwidth = row.get("channel_bandwidth", 1e9) * groups
    return Ramp(groups, 1, 1, 1, bandwidth, **latencies, free_inside_racks=True, bandwidth_shared_twice=True)


@pytest.mark.parametrize("row", TABLES["collective"], ids=str)
def test_collectives_take_what_was_recorded(row):
    topology = published(row, row["x"])
    spread = (9, row["groups"], row["racks"], row["nodes"])
    recorded = math.inf if "error" in row else row["time"]  # the published system stops there; ours blocks the job
    assert topology.collective_time(spread, row["message"]) == recorded


def test_racks_that_contend_leave_a_step_fewer_wavelengths():
    """Among 2 groups and 4 racks: steps of 2, 1 and 4 members have 4, - and 1 wavelengths of 4; shared by four racks
    1, - and 1.
    """
    one, shared = (
        Ramp(4, 4, 1, propagation_latency=0.0, io_latency=0.0, contending_racks=racks) for racks in ("one", "racks")
    )
    parts = [one.collective_time((8, 2, 4, 1), 1e9), shared.collective_time((8, 2, 4, 1), 1e9)]
    assert parts[1] - parts[0] == pytest.approx(2 * 5e8 / one.channel_bandwidth * (1 - 1 / 4))
    assert one.collective_time((2, 2, 1, 1), 1e9) == shared.collective_time(
        (2, 2, 1, 1), 1e9
    )  # one rack contends with none


@pytest.mark.parametrize("row", TABLES["one_to_one"], ids=str)
def test_single_messages_take_what_was_recorded(row):
    ends = np.array([0]), np.array([1])
    assert published(row, 4).one_to_one_times(*ends, np.array([row["message"]])).tolist() == [row["time"]]


def test_nothing_takes_no_time():
    ends = np.array([0, 0]), np.array([0, 1])
    assert Ramp(2, 1, 1).one_to_one_times(*ends, np.array([1e9, 0.0])).tolist() == [0.0, 0.0]
    assert Ramp(2, 1, 1).collective_time((1, 1, 1, 1), 1e9) == 0.0


@pytest.mark.parametrize("table", TABLES["block_shapes"], ids=lambda table: str(table["topology"]))
def test_blocks_have_the_recorded_shapes(table):
    shape, rules = tuple(table["topology"]), RampPlacement(Ramp(*table["topology"]))
    for row in table["degrees"]:
        assert block_shapes(row["degree"], shape) == [tuple(box) for box in row["shapes"]]
    largest = max(row["degree"] for row in table["degrees"])
    assert [degree for degree in range(1, largest + 1) if rules.is_legal(degree)] == table["valid"]


@pytest.mark.parametrize(("degree", "count"), [(2, 82), (4, 40), (6, 20), (8, 19), (16, 2)])
def test_the_main_cluster_has_so_many_blocks(degree, count):
    """As counted of the published system, diagonals among them."""
    blocks = RampPlacement(Ramp(4, 4, 2)).blocks(degree)
    assert len(blocks) == len({block.mask for block in blocks}) == count


def test_blocks_are_tried_shape_by_shape_from_low_servers_on():
    blocks = RampPlacement(Ramp(2, 2, 2)).blocks(2)
    assert [block.servers for block in blocks[:6]] == [(0, 4), (1, 5), (2, 6), (3, 7), (0, 1), (2, 3)]
    assert blocks[-1].servers == (1, 7)  # the diagonal comes last
    assert blocks[0].mask == 0b10001


def test_servers_of_one_rack_are_not_free_unless_as_published():
    spread, message = (2, 1, 1, 2), 1e6
    assert Ramp(4, 4, 2, free_inside_racks=True).collective_time(spread, message) == 0.0
    assert Ramp(4, 4, 2).collective_time(spread, message) > 0.0


def test_bandwidth_is_not_shared_twice_unless_as_published():
    spread, message = (4, 4, 1, 1), 1e12
    slow, fast = Ramp(4, 4, 2, bandwidth_shared_twice=True), Ramp(4, 4, 2)
    assert slow.collective_time(spread, message) > 2 * fast.collective_time(spread, message)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"groups": 2, "racks": 3, "servers": 1}, "3 racks"),
        ({"groups": 0, "racks": 1, "servers": 1}, "groups"),
        ({"groups": 256, "racks": 256, "servers": 2}, "131072 workers"),
        ({"groups": 1, "racks": 1, "servers": 1, "node_bandwidth": 0.0}, "node_bandwidth"),
        ({"groups": 1, "racks": 1, "servers": 1, "io_latency": float("nan")}, "io_latency"),
    ],
)
def test_what_is_no_ramp_is_refused(sizes, message):
    with pytest.raises(UserError, match=message):
        Ramp(**sizes)


def test_placements_that_differ_by_names_of_places_alone_have_one_key():
    topology = Ramp(4, 4, 2)
    same = [np.array(servers) for servers in ([0, 8, 9], [2, 26, 27], [5, 13, 12])]
    keys = {topology.symmetry_key(servers) for servers in same}
    assert len(keys) == 1
    assert topology.symmetry_key(np.array([0, 8, 17])) not in keys
