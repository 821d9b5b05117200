"""Reading platform descriptions, type libraries and hierarchies: a user's own, mistakes told with file and key, and any
JSON at all.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.platforms.description import LibraryFiles, read_description, read_libraries
from schedlab.platforms.generate import hierarchy_of
from schedlab.platforms.hierarchy import read_hierarchy, write_hierarchy
from schedlab.platforms.settings import PlatformSettings

LINKS = {"type": "InfiniBand QDR", "latency": "0us"}
WELL = {
    "_doc": "mine",
    "clusters": [{"id": "one", "nodes": [{"type": "pik", "number": 2}], "local_links": LINKS}],
    "global_links": LINKS,
}


def write(folder, value, name="platform.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def hierarchy(path, **libraries):
    return hierarchy_of(PlatformSettings(name="own", file=str(path), libraries=LibraryFiles(**libraries)))


def test_a_description_of_shipped_types(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # type names resolve from any folder
    found = hierarchy(write(tmp_path, WELL))
    assert (found.cores, found.reference_speed, found.core_names()[-1]) == (16, 12.0, "cor_15")
    assert [node.memory for node in found.nodes()] == [32000, 32000]
    assert [processor.first_core for processor in found.processors()] == [0, 4, 8, 12]
    assert [sum(processor.cores for processor in node.processors) for node in found.nodes()] == [8, 8]
    assert found.processor_of_core.tolist() == sorted([0, 1, 2, 3] * 4)


def test_types_of_ones_own_add_to_the_shipped_ones_and_replace_them(tmp_path):
    processor = {
        "uarch": "x",
        "id": "y",
        "type": "CPU",
        "cores": 3,
        "clock_rate": 2.0,
        "mem_bw": 10,
        "llc_size": 1,
        "power": 30,
        "dpflops_per_cycle": 2,
    }
    node = {"id": "z", "processors": [{"type": "mine", "number": 2}], "memory": {"type": "DDR4-2666", "capacity": 16}}
    own = {
        "processors": str(write(tmp_path, {"_doc": "", "mine": processor}, "processors.json")),
        "nodes": str(write(tmp_path, {"pik": node}, "nodes.json")),
        "networks": str(write(tmp_path, {"InfiniBand QDR": {"bandwidth": "40Gbps"}}, "networks.json")),
    }
    found = hierarchy(write(tmp_path, WELL), **own)
    assert (found.cores, found.reference_speed, found.bandwidth) == (12, 4.0, "40Gbps")
    assert found.totals()["power_w"] == 120
    assert "pik-4c-3.0GHz" in read_libraries(LibraryFiles(**own)).processors


def test_room_for_jobs_follows_the_memory_of_each_node():
    found = hierarchy_of(PlatformSettings(file="learning"))
    assert [found.room_for(memory) for memory in (0, 8000, 8001, 16000, 32000, 32001)] == [4, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda value: value["clusters"][0]["nodes"][0].update(type="pki"),
            r"platform.json: clusters.0.nodes.0.type: unknown node type 'pki'; did you mean 'pik'",
        ),
        (
            lambda value: value["global_links"].update(type="Infiniband"),
            "platform.json: global_links.type: unknown network type",
        ),
        (lambda value: value["clusters"][0]["nodes"][0].update(number=0), r"clusters.0.nodes.0.number.*is 0"),
        (lambda value: value["clusters"][0]["nodes"][0].update(number=900_000), "more than 1000000 cores"),
        (lambda value: value["clusters"][0].update(nodes=[]), "clusters.0.nodes"),
        (lambda value: value.update(clusters=value["clusters"] * 2), "distinct ids"),
        (lambda value: value["clusters"][0]["local_links"].update(latency="-1us"), "latency"),
        (lambda value: value.pop("global_links"), "'global_links' is missing"),
        (lambda value: value.update(cluster=1), "did you mean 'clusters'"),
        (lambda value: value["clusters"][0].update(id='"><zone'), "clusters.0.id"),
    ],
)
def test_mistakes_are_told_with_file_and_key(tmp_path, change, told):
    value = json.loads(json.dumps(WELL))
    change(value)
    with pytest.raises(UserError, match=told):
        hierarchy(write(tmp_path, value))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "platform.json: is no valid JSON: .*line 1, column 2"),
        ('{\n"clusters" 5}', "line 2, column 12"),
        ("[1]", "is no mapping"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ("[" * 100_000, "deep|no valid JSON"),
    ],
)
def test_what_is_no_description(tmp_path, text, told):
    with pytest.raises(UserError, match=told):
        read_description(write(tmp_path, text))
    with pytest.raises(UserError, match="no such file"):
        read_description(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(UserError, match="0xe9 is not UTF-8"):
        read_description(tmp_path / "latin.json")


def test_a_hierarchy_is_read_as_it_was_written(tmp_path):
    for name in ("learning", "gaia", "mixed"):
        found = hierarchy_of(PlatformSettings(name=name, file=name))
        write_hierarchy(tmp_path / "resources.json", found)
        assert read_hierarchy(tmp_path / "resources.json") == found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda value: value.update(format=99), "form 1"),
        (lambda value: value.update(clusters=[]), "holds no core"),
        (lambda value: value["clusters"][0]["nodes"][0].update(id=5), "node 5 out of turn"),
        (
            lambda value: value["clusters"][0]["nodes"][0]["processors"][1].update(first_core=0),
            "processor 1 out of turn",
        ),
        (lambda value: value["clusters"][0]["nodes"][0]["processors"][1].update(gflops_per_core=0.0), "cannot compute"),
        (lambda value: value["clusters"][0]["nodes"][0].update(memory="much"), "nodes.0.memory"),
        (lambda value: value["clusters"][0]["nodes"][0].pop("memory"), "nodes.0.memory"),
    ],
)
def test_a_damaged_hierarchy_is_refused(tmp_path, change, told):
    path = tmp_path / "resources.json"
    write_hierarchy(path, hierarchy_of(PlatformSettings(file="learning")))
    value = json.loads(path.read_text())
    change(value)
    with pytest.raises(UserError, match=told):
        read_hierarchy(write(tmp_path, value, "resources.json"))


keys = st.sampled_from(
    ["clusters", "nodes", "id", "type", "number", "local_links", "global_links", "latency", "format", "states", "name"]
)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(any_json.map(json.dumps).map(str.encode), st.binary(max_size=60)))
def test_any_file_is_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "any.json"
    path.write_bytes(data)
    for read in (read_description, read_hierarchy, lambda path: read_libraries(LibraryFiles(nodes=str(path)))):
        try:
            read(path)
        except UserError as error:
            assert str(path) in str(error)
