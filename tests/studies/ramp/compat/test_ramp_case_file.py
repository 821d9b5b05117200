"""Recorded runs as input: whatever cannot be is told with the file and the key."""

import json
from pathlib import Path

import pytest

from schedlab.config.errors import UserError
from schedlab.studies.ramp.compat.case_file import read_case
from schedlab.studies.ramp.legacy import PUBLISHED

CASE = Path(__file__).parents[3] / "data" / "ramp" / "c02_chain_degree2.json"
OP, DIGITS = "graphs.chain.ops.1", 10**400
AGENT = "agent_kwargs"


def read(folder, document):
    path = folder / "case.json"
    path.write_text(json.dumps(document))
    return read_case(path, PUBLISHED)


def changed(where, value):
    """The recorded job of four ops with another value at a place of its inputs."""
    document = json.loads(CASE.read_text())
    del document["expected"]
    place, *keys = document["inputs"], *(int(key) if key.isdigit() else key for key in where.split("."))
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return document


@pytest.mark.parametrize(
    ("where", "value", "named"),
    [
        ("topology", 3, "topology"),
        ("topology.racks_per_group", 3, "racks"),
        ("topology.servers_per_rack", 0, "servers"),
        ("arrivals", [], "arrivals"),
        ("arrivals.0.max_acceptable_jct_frac", 1.01, "beta"),
        ("arrivals.0.max_acceptable_jct_frac", 0.0, "beta"),
        ("arrivals.0.max_acceptable_jct_frac", "all", "arrivals.0.max_acceptable_jct_frac"),
        ("arrivals.0.model", "resnet", "arrivals.0.model"),
        ("arrivals.0.time", 5, "arrivals.0.time"),
        ("graphs", {}, "inputs.graphs"),
        ("graphs.chain.edges", [[1, 2], [2, 1]], "graph 'chain'"),
        ("graphs.chain.edges", [[1, 2**63]], "graphs.chain.edges.0"),
        (OP, [2, "Conv2d", 1, 1], OP),
        (OP, [2, "Conv2d", "x", 1, 1, 1], OP),
        (OP, [2**63, "Conv2d", 1, 1, 1, 1], OP),
        (OP, [2, "Conv2d", DIGITS, 1, 1, 1], OP),
        (OP, [7, "Conv2d", 1, 1, 1, 1], "graph 'chain'"),
        ("max_acceptable_jct_frac", 2.0, "max_acceptable_jct_frac"),
        ("max_acceptable_jct_frac", [0.5, 0], "max_acceptable_jct_frac"),
        ("max_acceptable_jct_frac", [0.5, [1]], "max_acceptable_jct_frac"),
        ("device.memory_bytes", DIGITS, "device.memory_bytes"),
        ("device.memory_bytes", -5, "device.memory_bytes"),
        ("min_op_run_time_quantum", 0, "min_op_run_time_quantum"),
        ("max_partitions_per_op", -1, "max_partitions_per_op"),
        ("training_steps", "two", "training_steps"),
        ("op_placer", "best_fit", "op_placer"),
        ("op_partitioner", "halves", "op_partitioner"),
        ("op_scheduler", "fifo", "op_scheduler"),
        ("dep_scheduler", "fifo", "dep_scheduler"),
        ("dep_placer", "random", "dep_placer"),
        ("decisions", [{"job_idx": 0, "action": -1}], "decisions.0.action"),
    ],
)
def test_wrong_inputs_are_named(tmp_path, where, value, named):
    with pytest.raises(UserError) as refused:
        read(tmp_path, changed(where, value))
    assert named in str(refused.value)
    if "." in named:
        assert "case.json" in str(refused.value)


@pytest.mark.parametrize(
    ("agent", "given", "where"),
    [
        ("sip_ml", {"cap": 2}, "'cap'"),
        ("random", {"max_partitions_per_op": 2}, "'max_partitions_per_op'"),
        ("sip_ml", {"max_partitions_per_op": 0}, f"{AGENT}.max_partitions_per_op"),
        ("sip_ml", [2], AGENT),
    ],
)
def test_wrong_parameters_of_an_agent_are_named(tmp_path, agent, given, where):
    document = changed("agent", agent)
    document["inputs"][AGENT] = given
    with pytest.raises(UserError) as refused:
        read(tmp_path, document)
    assert where in str(refused.value) and f"case.json.inputs.{AGENT}" in str(refused.value)


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], "case.json"),
        ({"schema": "other"}, "case.json.schema"),
        ({"schema": "ramp-truth/1"}, "case.json.inputs"),
        (changed("cache", True) | {"expected": {"jobs": {"\u00b2": {}}}}, "case.json.expected.jobs"),
        (
            changed("cache", True) | {"expected": {"jobs": {"0": {"partition_degrees": {"\u00b2": 2}}}}},
            "partition_degrees",
        ),
    ],
)
def test_wrong_documents_are_named(tmp_path, document, where):
    with pytest.raises(UserError) as refused:
        read(tmp_path, document)
    assert where in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", CASE.read_bytes()[:4000], b"\x89PNG\r\n\x1a\n\xff", None])
def test_a_file_that_is_no_case_is_named(tmp_path, content):
    path = tmp_path / "broken_off.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"broken_off\.json"):
        read_case(path, PUBLISHED)


def test_a_job_id_in_other_digits_is_a_name_like_any_other(tmp_path):
    assert read(tmp_path, changed("arrivals.0.job_id", "\u00b2")).jobs[0].id == 0
