"""Whole replays of random jobs against a second statement of the published rules (oracles/ramp_one_job.py), which
shares no code with the simulator.
"""

import json
import random

import pytest

from oracles.ramp_one_job import play, shapes
from schedlab.studies.ramp.commands.episode import plain
from schedlab.studies.ramp.compat.replay import replay

CLUSTERS = ((2, 2, 2), (2, 2, 4), (4, 4, 2), (4, 2, 3), (3, 3, 3), (4, 1, 8), (1, 1, 4), (5, 3, 2))


def random_inputs(seed):
    """A job of a few ops whose costs, sizes, network and number of shards are drawn; small messages meet large ones."""
    draws = random.Random(seed)
    count, largest = draws.randint(2, 6), draws.choice([1e6, 1e8, 3e10])
    ops = [
        [
            op,
            "Op",
            *(draws.choice([0.0, 0.5, 1.5, draws.random() * 9]) for _ in "fb"),
            *(float(draws.randint(0, int(largest))) for _ in "ap"),
        ]
        for op in range(1, count + 1)
    ]
    ops[0][2] = 3.0  # some op takes time
    edges = [
        [source, op]
        for op in range(2, count + 1)
        for source in draws.sample(range(1, op), min(op - 1, draws.choice([1, 1, 2])))
    ]
    edges += [[op, count] for op in range(1, count) if op not in {source for source, _ in edges}]  # one sink
    draws.shuffle(ops)
    groups, racks, servers = draws.choice(CLUSTERS)
    degrees = [
        1,
        *(
            degree
            for degree in range(2, min(16, groups * racks * servers) + 1, 2)
            if shapes(degree, groups, racks, servers)
        ),
    ]
    return {
        "topology": {
            "communication_groups": groups,
            "racks_per_group": racks,
            "servers_per_rack": servers,
            "node_bandwidth": draws.choice([1.6e12, 4e8, 1.6e9, 1e10]),
            "propagation_latency": draws.choice([5e-8, 0.01]),
            "io_latency": 1e-7,
        },
        "device": {"memory_bytes": 8e10},
        "training_steps": draws.choice([1, 3]),
        "min_op_run_time_quantum": draws.choice([0.01, 0.5, 1.0]),
        "max_partitions_per_op": 16,
        "graphs": {"job": {"ops": ops, "edges": edges}},
        "arrivals": [{"model": "job", "time": 0, "max_acceptable_jct_frac": draws.choice([1.0, 0.4])}],
        "decisions": [{"job_idx": 0, "action": draws.choice(degrees)}],
    }


@pytest.mark.parametrize("seed", range(60))
def test_a_random_job_runs_by_the_published_rules(tmp_path, seed):
    """Where run times of deps are equal but for the last bit of their sums, seeds beyond these may differ by some
    1e-8.
    """
    inputs = random_inputs(seed)
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"inputs": inputs}))
    document, told = plain(replay(path, compat=True)), play(inputs)
    job = document["jobs"]["0"]
    assert document["error"] is None
    if told is None:
        assert job["block_cause"] == "not_handled_by_action:op_placement"
        return
    assert job["placement"] == told["placement"]
    deps = {(source, target): (size, time) for source, target, size, time, _ in job["deps"]}
    assert {dep: size for dep, (size, _) in deps.items()} == pytest.approx(told["sizes"], rel=1e-12)
    times = {dep: float(time) for dep, (_, time) in deps.items()}
    assert times == pytest.approx(told["times"], rel=1e-12)
    for key in ("jct", "communication_overhead", "computation_overhead"):
        if key in told:
            assert float(job["lookahead"][key]) == pytest.approx(told[key], rel=1e-12, abs=1e-12 * told["jct"]), key
    costs = sum(op[2] + op[3] for op in inputs["graphs"]["job"]["ops"])
    limit = inputs["arrivals"][0]["max_acceptable_jct_frac"] * inputs["training_steps"] * costs
    if told["jct"] != pytest.approx(limit, rel=1e-9):  # else the last bit of a sum decides
        assert job["status"] == ("blocked" if told["jct"] > limit else "completed")


def test_the_jobs_are_of_all_kinds():
    """Placed and not, accepted and too slow, whole and split, for ever; else the test above would hold little."""
    found = [play(random_inputs(seed)) for seed in range(60)]
    placed = [one for one in found if one is not None]
    assert 0 < len(placed) < len(found)
    assert {len(set(one["placement"].values())) > 2 for one in placed} == {True, False}
