"""What the generator writes is what the reader of Batsim's platform files understands."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from schedlab.batsim.running import Inputs, simulate
from schedlab.config.schema import validate
from schedlab.platforms.generate import MASTER, generate_platform
from schedlab.platforms.settings import PlatformSettings

batsim_xml = pytest.importorskip("schedlab.platforms.batsim_xml", reason="needs the reader of platform files")


@pytest.mark.parametrize("name", ["learning", "das2", "gaia"])
def test_hosts_are_numbered_and_as_fast_as_in_the_hierarchy(tmp_path, name):
    hierarchy = generate_platform(PlatformSettings(name=name, file=name), tmp_path / "platform.xml")
    hosts = batsim_xml.read_platform(tmp_path / "platform.xml").compute_hosts(MASTER)
    assert [host.name for host in hosts] == hierarchy.core_names()
    speeds = np.array([host.speeds for host in hosts])
    assert speeds[:, 0] == pytest.approx(hierarchy.gflops * 1e9, rel=1e-6)
    assert speeds[:, 1] == pytest.approx(hierarchy.gflops * 0.75e9, rel=1e-6)
    assert {host.pstate for host in hosts} == {3}


def test_cores_reach_each_other_through_the_links_of_their_nodes_and_clusters(tmp_path):
    settings = {
        "clusters": 2,
        "nodes": [2, 2],
        "processors": [1, 1],
        "cores": [2, 2],
        "latency": "1us",
        "global_latency": "10us",
    }
    generate_platform(validate(PlatformSettings, {"synthetic": settings}), tmp_path / "platform.xml")
    platform = batsim_xml.read_platform(tmp_path / "platform.xml")
    cores = platform.compute_hosts(MASTER)
    for target, latency in ((1, 2e-6), (2, 2e-6), (4, 22e-6), (7, 22e-6)):
        assert platform.route(cores[0], cores[target]).latency == pytest.approx(latency)
    assert platform.route(cores[0], platform.host(MASTER)).latency == pytest.approx(11e-6)


def test_messages_of_a_node_take_the_time_of_its_link(tmp_path):
    """Two cores of one node that send each other 10 GB."""
    folder = tmp_path / "in"
    folder.mkdir()
    generate_platform(PlatformSettings(name="gaia", file="gaia", pstates={"managed": False}), folder / "platform.xml")
    sent = {"type": "parallel_homogeneous", "cpu": 0, "com": 10e9}
    job = {"id": 0, "subtime": 0, "res": 2, "walltime": 1e3, "profile": "send"}
    (folder / "w0.json").write_text(json.dumps({"nb_res": 2280, "jobs": [job], "profiles": {"send": sent}}))
    simulate(Inputs(folder / "platform.xml", (folder / "w0.json",), f"{tmp_path}/out"), "fcfs")
    (ran,) = csv.DictReader((tmp_path / "out_jobs.csv").open())
    seconds = float(ran["execution_time"])
    assert seconds == pytest.approx(2 * 10e9 / (10e9 / 8), rel=1e-3)  # each of the two messages goes there and back
