"""Recorded runs of the published system, simulated again from their inputs: every number of the record."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from schedlab.studies.ramp.commands.episode import plain
from schedlab.studies.ramp.compat.replay import replay

CASES = Path(__file__).parents[1] / "data" / "ramp"
NAMES = sorted(path.stem for path in CASES.glob("c[0-9]*.json"))
HASH_ORDER = {"dep_priority"}  # equal run times were ordered by hashes: see the test of priorities
DRAWN = ("partition_degrees", "max_partition_degree")  # what the inputs do not hold where no policy decided
PER_TICK = {"num_ticks", "ticks"}


def load(name):
    return json.loads((CASES / f"{name}.json").read_text())


def write_inputs(name, folder, change=None):
    """The case without its results; the degrees alone are kept where the inputs hold no actions."""
    document = load(name)
    jobs = document.pop("expected")["jobs"]
    if not all("action" in decision for decision in document["inputs"]["decisions"]):
        document["expected"] = {"jobs": {number: {key: job[key] for key in DRAWN} for number, job in jobs.items()}}
    if change:
        change(document)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def differences(ours, recorded, path="", tolerance=1e-9):
    """Paths at which ours is not what was recorded."""
    if isinstance(recorded, dict):
        if not isinstance(ours, dict):
            return [path]
        found = [f"{path}.{key}: missing" for key in recorded if key not in ours and key not in HASH_ORDER]
        for key in recorded.keys() & ours.keys() - HASH_ORDER - PER_TICK:
            found += differences(ours[key], recorded[key], f"{path}.{key}", tolerance)
        return found
    if isinstance(recorded, list):
        if not isinstance(ours, list) or len(ours) != len(recorded):
            return [f"{path}: length"]
        return [
            d
            for at, pair in enumerate(zip(ours, recorded, strict=True))
            for d in differences(*pair, f"{path}[{at}]", tolerance)
        ]
    if isinstance(recorded, (int, float)) and not isinstance(recorded, bool) and isinstance(ours, (int, float)):
        return (
            [] if math.isclose(ours, recorded, rel_tol=tolerance, abs_tol=1e-15) else [f"{path}: {ours} for {recorded}"]
        )
    return [] if ours == recorded else [f"{path}: {ours} for {recorded}"]


@pytest.fixture(scope="module", params=NAMES)
def pair(request, tmp_path_factory):
    """What we make of a case, and what was recorded."""
    path = write_inputs(request.param, tmp_path_factory.mktemp("case"))
    return plain(replay(path, compat=True)), load(request.param)["expected"]


def test_everything_recorded_is_found_again(pair):
    ours, recorded = pair
    for part in ("original_graphs", "decisions", "jobs", "steps", "episode", "error"):
        assert differences(ours[part], recorded[part], part) == []


def simulated(recorded):
    """The recorded jobs whose duration was simulated, by number."""
    found = {number: job for number, job in recorded["jobs"].items() if "lookahead" in job}
    if not found:
        pytest.skip("no job was simulated")
    return found


def test_durations_agree_to_the_last_digits(pair):
    ours, recorded = pair
    for number, job in simulated(recorded).items():
        jct = job["lookahead"]["jct"]
        for key in ("jct", "communication_overhead", "computation_overhead"):
            assert abs(ours["jobs"][number]["lookahead"][key] - job["lookahead"][key]) <= 1e-12 * jct


def test_ticks_are_those_recorded(pair):
    """Where flows of equal length met, hashes decided whose residue ended a tick: one tick more or less, the same
    time in all.
    """
    ours, recorded = pair
    for number, job in simulated(recorded).items():
        mine, theirs = ours["jobs"][number]["lookahead"], job["lookahead"]
        assert abs(mine["num_ticks"] - theirs["num_ticks"]) <= 1
        if mine["num_ticks"] == theirs["num_ticks"]:
            assert differences(mine["ticks"], theirs["ticks"], "ticks", tolerance=1e-6) == []
        assert sum(tick for _, tick in mine["ticks"]) == pytest.approx(
            sum(tick for _, tick in theirs["ticks"]), rel=1e-12
        )


def test_priorities_of_deps_are_those_recorded_but_for_equal_run_times(pair):
    ours, recorded = pair
    told = {number: job for number, job in recorded["jobs"].items() if "dep_priority" in job}
    if not told:
        pytest.skip("no priorities were recorded")
    for number, job in told.items():
        mine, times = ours["jobs"][number], {(source, target): time for source, target, _, time, _ in job["deps"]}
        by_rank = []
        for priorities in (mine["dep_priority"], job["dep_priority"]):
            ranked = {rank: times[source, target] for deps in priorities.values() for source, target, rank in deps}
            by_rank.append([ranked[rank] for rank in range(len(times))])
        assert by_rank[0] == pytest.approx(by_rank[1], rel=1e-12)
        of_channel = [
            {name: {tuple(dep[:2]) for dep in deps} for name, deps in one["dep_priority"].items()}
            for one in (mine, job)
        ]
        assert of_channel[0] == of_channel[1]


def test_results_do_not_need_the_recorded_ones(tmp_path):
    path = write_inputs("c02_chain_degree2", tmp_path)
    assert "expected" not in json.loads(path.read_text())
    assert plain(replay(path, compat=True))["jobs"]["0"]["status"] == "completed"


def without_results(name, tmp_path, change):
    return plain(replay(write_inputs(name, tmp_path, lambda document: change(document["inputs"])), compat=True))


def test_where_the_original_stopped_with_an_error_a_job_is_blocked_or_goes_on(tmp_path):
    def split_in_two(inputs):
        inputs["decisions"][0]["action"] = 2

    def half_of_a_device(inputs):
        inputs["graphs"]["fat"]["ops"][1][4] = 50e9

    def no_queue(inputs):
        inputs["queue_capacity"] = 0

    sinks = without_results("c28_two_sinks_degree1", tmp_path, split_in_two)  # a collective of no deps: divided by zero
    assert sinks["jobs"]["0"]["status"] == "completed"
    for change in (split_in_two, half_of_a_device):  # both passes exceed the device: an error about something else
        job = without_results("c30_memory_too_big", tmp_path, change)["jobs"]["0"]
        assert (job["status"], job["block_cause"]) == ("blocked", "not_handled_by_action:op_placement")
    causes = {job["block_cause"] for job in without_results("c16_sim_time_end", tmp_path, no_queue)["jobs"].values()}
    assert causes == {"queue_full"}


def test_an_agent_decides_again_where_its_actions_are_not_recorded(tmp_path):
    def forget(inputs):
        for decision in inputs["decisions"]:
            del decision["action"]

    recorded = load("c14_contention_blocked")["expected"]["jobs"]
    ours = without_results("c14_contention_blocked", tmp_path, forget)["jobs"]
    assert {number: job["degree"] for number, job in ours.items()} == {
        number: job["degree"] for number, job in recorded.items()
    }


def choose_three(inputs):
    inputs["decisions"][0]["action"] = 3


def test_an_action_that_is_not_valid_rejects_the_job(tmp_path):
    document = without_results("c06_diamond_degree8", tmp_path, choose_three)
    job, decision = document["jobs"]["0"], document["decisions"][0]
    assert document["error"] is None
    assert (job["status"], job["block_cause"]) == ("blocked", "not_handled_by_action:op_partition")
    assert (decision["action"], decision["reward"]) == (3, -1.0)
    assert document["episode"]["blocking_rate"] == 1.0


def test_where_masks_are_enforced_such_an_action_is_an_error(tmp_path):
    def strictly(inputs):
        choose_three(inputs)
        inputs["apply_action_mask"] = True

    document = without_results("c06_diamond_degree8", tmp_path, strictly)
    assert "action 3" in document["error"]["message"]


@pytest.mark.parametrize(
    ("name", "channels", "mounted"), [("c02_chain_degree2", 2, 4), ("c06_diamond_degree8", 3, 167)]
)
def test_flows_spread_over_the_channels_of_their_link(tmp_path, name, channels, mounted):
    """In the drawn order: all channels both ways of one pair of servers, all but one of the 2 x 3 of 28 pairs."""
    document = without_results(name, tmp_path, lambda inputs: inputs["topology"].update(channels=channels))
    recorded, job, draws = load(name)["expected"]["jobs"]["0"], document["jobs"]["0"], random.Random(0)
    taken = set()
    for ours, theirs in zip(job["deps"], recorded["deps"], strict=True):
        if theirs[4] == ["None"]:
            assert ours == theirs
            continue
        order = list(range(channels))
        draws.shuffle(order)
        taken.add(theirs[4][0].replace("channel_0", f"channel_{order[0]}"))
        assert ours[4] == [theirs[4][0].replace("channel_0", f"channel_{order[0]}")]
    assert job["lookahead"]["num_mounted_channels"] == len(taken) == mounted
    assert document["steps"][0]["mean_num_mounted_channels"] == mounted
    assert document["episode"]["jobs_completed_num_mounted_channels"] == [mounted]
    assert job["lookahead"]["jct"] == recorded["lookahead"]["jct"]


DEMAND = 364e6 + 312e6  # bytes of the graph diamond, memory and deps


def test_a_job_of_a_pool_that_is_filled_again_is_one_of_the_load(tmp_path):
    """Five arrivals of one job, each 10 s before the next; the last one's next lies beyond the end."""

    def again(inputs):
        inputs |= {"sampling": "remove_and_repeat", "replication": 1, "max_simulation_time": 45.0}
        for number, arrival in enumerate(inputs["arrivals"]):
            arrival["job_id"] = number

    episode = without_results("c16_sim_time_end", tmp_path, again)["episode"]
    assert episode["mean_load_rate"] == pytest.approx(DEMAND / 10)
    endless = without_results(
        "c16_sim_time_end", tmp_path, lambda inputs: again(inputs) or inputs.update(max_simulation_time="inf")
    )
    assert endless["episode"]["mean_load_rate"] == pytest.approx(DEMAND / 10)


def test_a_drawn_gap_after_the_last_arrival_counts_among_the_loads(tmp_path):
    """Gaps of 1.0 to 3.0 s and places in a pool of two are drawn in turn from the seeded generator."""
    draws, values = np.random.RandomState(3), np.around(np.arange(1.0, 3.1, 0.1), decimals=1)
    left, ids, gaps = [0, 1], [], []
    for number in range(7):
        ids.append(left.pop(draws.randint(low=0, high=len(left))) + number // 2 * 2)
        left = left or [0, 1]
        gaps.append(draws.choice(values, p=np.ones(len(values)) / len(values)))
    times = np.concatenate([[0.0], np.cumsum(gaps)[:-1]])

    def at_random(inputs):
        words = "Distribution type: <class 'ddls.distributions.uniform.Uniform'> | min_val: 1.0 | max_val: 3.0 | "
        inputs |= {"sampling": "remove_and_repeat", "replication": 2, "seed": 3, "interarrival": words + "decimals: 1"}
        inputs["max_simulation_time"] = float(times[-1] + gaps[-1] / 2)
        one, decision = inputs["arrivals"][0], inputs["decisions"][0]
        inputs["arrivals"] = [
            one | {"job_idx": place, "job_id": number, "time": float(time)}
            for place, (number, time) in enumerate(zip(ids, times, strict=True))
        ]
        inputs["decisions"] = [decision | {"decision": place, "job_idx": place} for place in range(len(ids))]

    episode = without_results("c16_sim_time_end", tmp_path, at_random)["episode"]
    assert episode["num_jobs_arrived"] == 7
    assert episode["mean_load_rate"] == pytest.approx(np.mean(DEMAND / np.array(gaps)))


def test_more_shards_than_letters_are_named_as_recorded_runs_name_them(tmp_path):
    def large(inputs):
        inputs["topology"] |= {"communication_groups": 4, "racks_per_group": 4}
        inputs["max_partitions_per_op"] = inputs["decisions"][0]["action"] = 32

    placement = without_results("c06_diamond_degree8", tmp_path, large)["jobs"]["0"]["placement"]
    assert {"1z", "1{", "1\x80"} <= set(placement)
    assert len(set(placement.values())) == 32


def test_a_recorded_random_placement_is_taken(tmp_path):
    """The servers and their order stand in the record; shards of equal cost run in that order."""

    def at_random(document):
        document["inputs"] |= {"op_placer": "ramp_random", "arrivals": document["inputs"]["arrivals"][:1]}
        servers = ["0-0-0", "0-1-1", "1-0-0", "1-1-1"]
        shards = load("c22_sipml_partitioner")["expected"]["jobs"]["0"]["placement"]
        document["expected"]["jobs"]["0"]["placement"] = {
            shard: servers[(at * 7) % 4] for at, shard in enumerate(shards)
        }

    path = write_inputs("c22_sipml_partitioner", tmp_path, at_random)
    given = json.loads(path.read_text())["expected"]["jobs"]["0"]
    document = plain(replay(path, compat=True))
    assert document["error"] is None
    ours = document["jobs"]["0"]
    assert ours["placement"] == given["placement"]


@pytest.mark.parametrize(
    ("degrees", "largest", "cause"),
    [
        ({}, 4, "op_placement"),
        ({"1": 3, "18": 3}, 3, "op_partition"),
        ({"1": 4, "18": 4}, 4, None),
        ({}, None, "op_partition"),
    ],
)
def test_recorded_random_degrees_are_taken(tmp_path, degrees, largest, cause):
    """Odd ones are no action; where the placement failed, the record keeps the largest degree alone."""

    def at_random(document):
        document["inputs"] |= {"op_partitioner": "random", "arrivals": document["inputs"]["arrivals"][:1]}
        document["expected"]["jobs"] = {"0": {"partition_degrees": degrees, "max_partition_degree": largest}}

    job = plain(replay(write_inputs("c22_sipml_partitioner", tmp_path, at_random), compat=True))["jobs"]["0"]
    assert job.get("block_cause") == (f"not_handled_by_action:{cause}" if cause else None)
    assert job["status"] == ("blocked" if cause else "completed")
    if cause is None:
        assert job["partition_degrees"] == {"1": 4, "18": 4} | dict.fromkeys(
            job["partition_degrees"].keys() - {"1", "18"}, 1
        )
