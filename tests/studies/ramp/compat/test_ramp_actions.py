"""A program of one's own drives the cluster by five actions; each way in which they can be wrong is told."""

from dataclasses import replace

import numpy as np
import pytest
from small_graphs import chain, cluster_of, graph

from schedlab.config.errors import UserError
from schedlab.studies.ramp.compat.actions import (
    DepPlacement,
    DepSchedule,
    JointAction,
    OpPartition,
    OpPlacement,
    OpSchedule,
    action_of,
)
from schedlab.studies.ramp.placement.managers import Manager

FORWARD = chain(2.0, 3.0)


def planned(degree=2, **values):
    """A cluster with a waiting job, the manager's plan for it, and the same as five actions."""
    cluster = cluster_of([0.0, 1.0], FORWARD, **values)
    plan = Manager().plan(cluster, cluster.queue[0], degree)
    return cluster, plan, action_of(cluster, {0: plan}, named=True)


def test_actions_by_name_run_as_the_plan_that_they_name():
    durations = []
    for named in (False, True):
        cluster, plan, action = planned()
        cluster.step(action.decisions(cluster) if named else {0: plan})
        durations.append(cluster.running[0].duration)
    assert durations[0] == durations[1]


def test_a_job_is_rejected_for_the_first_part_that_leaves_it_out():
    cluster, _, action = planned()
    empty = {
        "op_partition": OpPartition(),
        "op_placement": OpPlacement(),
        "op_schedule": OpSchedule(),
        "dep_placement": DepPlacement(),
        "dep_schedule": DepSchedule(),
    }
    for part, nothing in empty.items():
        assert replace(action, **{part: nothing}).decisions(cluster) == {0: part}
    assert JointAction().decisions(cluster) == {0: "op_partition"}
    cluster.step(JointAction().decisions(cluster))
    assert cluster.record.blocked[0].cause == "op_partition"


def test_priorities_decide_what_runs_first():
    """Two branches on one server: the branch that the long chain hangs from goes first or last."""
    forward = graph([(1, 2), (1, 3), (3, 4)], [1.0, 5.0, 5.0, 1.0])
    durations = {}
    for first in ("2", "3"):
        cluster = cluster_of([0.0, 0.5], forward)
        plan = Manager().plan(cluster, cluster.queue[0], 1)
        action = action_of(cluster, {0: plan}, named=True)
        other = "2" if first == "3" else "3"
        own = dict(action.op_schedule.priorities["0-0-0"][0])
        own[first], own[other] = 100, -1
        placed = dict(action.op_placement.servers[0]) | {"4": "1-0-0", "5": "1-0-0"}
        moved = OpPlacement({0: placed})
        schedule = {
            server: {0: {name: own[name] for name, place in placed.items() if place == server}}
            for server in ("0-0-0", "1-0-0")
        }
        channels = {dep: route(placed[dep[0]], placed[dep[1]]) for dep in action.dep_placement.channels[0]}
        dep_schedule = {None: {0: dict.fromkeys(channels, 0)}}
        changed = replace(
            action,
            op_placement=moved,
            op_schedule=OpSchedule(schedule),
            dep_placement=DepPlacement({0: channels}),
            dep_schedule=DepSchedule(dep_schedule),
        )
        changed_plan = changed.decisions(cluster)[0]
        durations[first] = cluster.times.timing(changed_plan.split, changed_plan.placement).lookahead.time
    assert durations["3"] == pytest.approx(durations["2"] - 2.0, rel=1e-3)  # op 4 and its mate run beside op 2


def route(source, destination):
    return None if source == destination else {f"src_{source}_dst_{destination}_channel_0"}


def scheduled(action, server, shard):
    """The action with a priority more, of a shard on a server."""
    priorities = {label: {0: dict(jobs[0])} for label, jobs in action.op_schedule.priorities.items()}
    priorities.setdefault(server, {0: {}})[0][shard] = 1
    return replace(action, op_schedule=OpSchedule(priorities))


def dep_scheduled(action, channel, dep=("1a", "2b")):
    """The action with a priority more, of a dep on a channel."""
    priorities = {name: {0: dict(jobs[0])} for name, jobs in action.dep_schedule.priorities.items()}
    priorities.setdefault(channel, {0: {}})[0][dep] = 1
    return replace(action, dep_schedule=DepSchedule(priorities))


def sent(action, dep, *channels):
    """The action with a dep on channels."""
    return replace(action, dep_placement=DepPlacement({0: {**action.dep_placement.channels[0], dep: set(channels)}}))


def changed_placement(action, **servers):
    return replace(action, op_placement=OpPlacement({0: {**action.op_placement.servers[0], **servers}}))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda action: replace(action, op_partition=OpPartition({0: {1: 3}})), "op 1"),
        (lambda action: replace(action, op_partition=OpPartition({0: {9: 2}})), "op 9"),
        (lambda action: replace(action, op_partition=OpPartition({5: {1: 2}})), "job 5"),
        (lambda action: changed_placement(action, **{"1a": "9-9-9"}), "op_placement.* 1a .*9-9-9"),
        (lambda action: changed_placement(action, **{"7z": "0-0-0"}), "op_placement.* 7z"),
        (lambda action: replace(action, op_schedule=OpSchedule({"0-0-0": {0: {"1a": 1}}})), "op_schedule: shard"),
        (lambda action: scheduled(action, "9-9-9", "1a"), "op_schedule.* 9-9-9"),
        (lambda action: scheduled(action, "0-0-0", "7z"), "op_schedule.* 7z"),
        (lambda action: scheduled(action, "0-0-0", "1b"), "op_schedule.* 1b .*0-0-0"),
        (lambda action: replace(action, dep_placement=DepPlacement({0: {("1a", "2a"): None}})), "dep_placement: "),
        (
            lambda action: replace(
                action, dep_placement=DepPlacement({0: dict.fromkeys(action.dep_placement.channels[0])})
            ),
            "dep_placement.*src_0-0-0_dst_1-0-0_channel_0",
        ),
        (lambda action: sent(action, ("1a", "7z")), "dep_placement.*1a -> 7z"),
        (lambda action: sent(action, ("1a", "2a"), "src_0-0-0_dst_1-0-0_channel_0"), "dep_placement.*1a -> 2a .*None"),
        (lambda action: replace(action, dep_schedule=DepSchedule({None: {0: {("1a", "2a"): 0}}})), "dep_schedule: "),
        (lambda action: dep_scheduled(action, "no such channel"), "dep_schedule.*1a -> 2b"),
        (lambda action: dep_scheduled(action, "src_1-0-0_dst_0-0-0_channel_0"), "dep_schedule.*1a -> 2b .*src_0-0-0"),
        (lambda action: dep_scheduled(action, "src_0-0-0_dst_1-0-0_channel_0", ("1a", "2a")), "dep_schedule.*1a -> 2a"),
        (lambda action: dep_scheduled(action, None, ("1a", "7z")), "dep_schedule.*1a -> 7z"),
    ],
)
def test_actions_that_cannot_be_are_refused(change, named):
    cluster, _, action = planned()
    with pytest.raises(UserError, match=named):
        change(action).decisions(cluster)


def test_deps_may_be_scheduled_under_none_whatever_channel_they_take():
    """So does the example of docs/reference/ramp_model.md, whose priorities do not differ."""
    cluster, _, action = planned()
    listed = DepSchedule({None: {0: dict.fromkeys(action.dep_placement.channels[0], 0)}})
    cluster.step(replace(action, dep_schedule=listed).decisions(cluster))
    named = planned()
    named[0].step({0: named[1]})
    assert cluster.running[0].duration == named[0].running[0].duration


def test_memory_is_not_exceeded():
    cluster, _, action = planned()
    cluster.memory = np.full(8, 1e5)
    with pytest.raises(UserError, match="exceeds the memory of a server"):
        action.decisions(cluster)


def test_a_server_holds_one_job():
    cluster, plan, _ = planned()
    cluster.step({0: plan})
    second = action_of(cluster, {1: plan})
    with pytest.raises(UserError, match="takes a server of another job"):
        second.decisions(cluster)


def as_arrays(**changes):
    """A cluster, and the action of a plan as arrays, of which some are changed: part -> its array of job 0."""
    cluster, plan, _ = planned()
    action = action_of(cluster, {0: plan})
    under_none = {"op_schedule": OpSchedule, "dep_schedule": DepSchedule}
    direct = {"op_partition": OpPartition, "op_placement": OpPlacement, "dep_placement": DepPlacement}
    parts = {part: kind({None: {0: changes[part]}}) for part, kind in under_none.items() if part in changes}
    parts |= {part: kind({0: changes[part]}) for part, kind in direct.items() if part in changes}
    return cluster, plan, replace(action, **parts)


@pytest.mark.parametrize("values", [{}, {"contention": True, "channels": 2}])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_arrays_are_the_same_action_as_names(degree, values):
    cluster, plan, named = planned(degree, **values)
    found, expected = (action.decisions(cluster)[0] for action in (action_of(cluster, {0: plan}), named))
    assert found.placement.key == expected.placement.key  # of servers, ranks and channels
    assert found.placement.blocks == expected.placement.blocks == plan.placement.blocks
    assert found.channels == expected.channels
    cluster.step({0: found})
    other = planned(degree, **values)
    other[0].step({0: other[1]})
    assert cluster.running[0].duration == other[0].running[0].duration


def test_an_array_of_priorities_decides_what_runs_first():
    """Two branches on one server, and what follows the first of them on another: it should go first."""
    forward = graph([(1, 2), (1, 3), (3, 4)], [1.0, 5.0, 5.0, 1.0])
    durations = {}
    for first in (1, 2):
        cluster = cluster_of([0.0, 0.5], forward)
        plan = Manager().plan(cluster, cluster.queue[0], 1)
        action = action_of(cluster, {0: plan})
        worker = np.where(np.isin(plan.split.shard_op, [3, 7]), 4, 0)  # op 4 and its mate, on server 1-0-0
        apart = worker[plan.split.dep_source] != worker[plan.split.dep_destination]
        priorities = action.op_schedule.priorities[None][0].copy()
        priorities[plan.split.shard_op == first], priorities[plan.split.shard_op == 3 - first] = 100, -1
        changed = replace(
            action,
            op_placement=OpPlacement({0: worker}),
            op_schedule=OpSchedule({None: {0: priorities}}),
            dep_placement=DepPlacement({0: np.where(apart, 0, -1)}),
        )
        found = changed.decisions(cluster)[0]
        durations[first] = cluster.times.timing(found.split, found.placement).lookahead.time
    assert durations[2] == pytest.approx(durations[1] - 2.0, rel=1e-3)


def first_channel(wrong):
    """The channels of the deps of `planned`, of which the first that is sent is wrong."""
    cluster, plan, _ = planned()
    channels = action_of(cluster, {0: plan}).dep_placement.channels[0].copy()
    channels[np.argmax(channels == 0)] = wrong
    return channels


SHARDS, DEPS = planned()[1].split.num_shards, planned()[1].split.num_deps


@pytest.mark.parametrize(
    ("part", "array", "named"),
    [
        ("op_partition", np.full(3, 2), "op_partition: .*3.*4 whole numbers, one for each op"),
        ("op_partition", np.full(4, 2.0), "op_partition: .*float64.*whole numbers"),
        ("op_partition", np.full(4, 3), "op 1"),
        ("op_partition", np.array([2, 2, 4, 4]), "another number for its mate"),
        ("op_placement", np.zeros(SHARDS + 1, dtype=np.int64), "op_placement: .*one for each shard"),
        ("op_placement", np.full(SHARDS, 8), "op_placement: .* is on 8.*below 8"),
        ("op_placement", np.full(SHARDS, -1), "op_placement: .* is on -1"),
        ("op_schedule", np.zeros(1, dtype=np.int64), "op_schedule: .*one for each shard"),
        ("dep_placement", np.zeros((DEPS, 1), dtype=np.int64), "dep_placement: .*one for each dep"),
        ("dep_placement", first_channel(1), "dep_placement: .*channel 1.*_channel_0"),
        ("dep_placement", first_channel(-2), "dep_placement: .*channel -2.*_channel_0"),
        ("dep_placement", first_channel(-1), "dep_placement: .*no channel.*_channel_0"),
        ("dep_placement", np.zeros(DEPS, dtype=np.int64), "channel 0.*None"),
        ("dep_schedule", np.zeros(1, dtype=np.int64), "dep_schedule: .*one for each dep"),
    ],
)
def test_arrays_that_cannot_be_are_refused(part, array, named):
    cluster, _, action = as_arrays(**{part: array})
    with pytest.raises(UserError, match=named):
        action.decisions(cluster)


def test_an_array_of_priorities_is_listed_under_none():
    cluster, _, action = as_arrays()
    deps = action.dep_schedule.priorities[None]
    with pytest.raises(UserError, match=r"dep_schedule: .*under None"):
        replace(action, dep_schedule=DepSchedule({"src_0-0-0_dst_1-0-0_channel_0": deps})).decisions(cluster)
    shards = action.op_schedule.priorities[None]
    with pytest.raises(UserError, match=r"op_schedule: .*an array under None"):
        replace(action, op_schedule=OpSchedule({"0-0-0": shards})).decisions(cluster)


@pytest.mark.parametrize("channel", ["src_1-0-0_dst_0-0-0_channel_0", None])
def test_names_of_priorities_are_held_against_an_array_of_channels(channel):
    cluster, plan, named = planned()
    action = replace(named, dep_placement=action_of(cluster, {0: plan}).dep_placement)
    assert action.decisions(cluster)[0].channels == named.decisions(cluster)[0].channels
    if channel is not None:
        with pytest.raises(UserError, match="does not take src_1-0-0"):
            dep_scheduled(action, channel).decisions(cluster)


LATENCY = 1.25e-6 + 2 * 100e-9  # s of a message of no size
EIGHT, NINE = 8e9 / 8e11 + LATENCY, 9e9 / 8e11 + LATENCY  # s of a message over half of a server's 1.6e12 bytes/s


@pytest.mark.parametrize(
    ("first", "channels", "expected"),
    [
        ("8 GB", 1, EIGHT + NINE + 1.0),  # what the second op computes on waits for both messages
        ("9 GB", 1, NINE + 1.0),  # the other message arrives while it computes
        ("8 GB", 2, NINE + 1.0),
        ("9 GB", 2, NINE + 1.0),
    ],
)
def test_in_contention_the_order_of_messages_and_their_channels_decide(first, channels, expected):
    """Two ops of no time on one server send 8 and 9 GB to two ops on another; the one that gets 9 GB takes 1 s."""
    sizes = np.array([8e9, 9e9, 0.0, 0.0])
    forward = graph([(1, 3), (2, 4)], [0.0, 0.0, 0.0, 1.0], np.zeros(4), activation=sizes, parameter=np.zeros(4))
    cluster = cluster_of([0.0, 0.5], forward, contention=True, channels=channels)
    plan = Manager().plan(cluster, cluster.queue[0], 1)
    action = action_of(cluster, {0: plan}, named=True)
    places = dict.fromkeys(plan.split.shard_names, "0-0-0") | {"3": "1-0-0", "4": "1-0-0", "5": "1-0-0", "6": "1-0-0"}
    deps = action.dep_placement.channels[0]
    taken = {dep: route(places[dep[0]], places[dep[1]]) for dep in deps}
    if channels == 2:
        taken["2", "4"] = {"src_0-0-0_dst_1-0-0_channel_1"}
    priority = {("1", "3"): 8, ("2", "4"): 9} if first == "9 GB" else {("1", "3"): 9, ("2", "4"): 8}
    schedule = {server: {0: {name: 0 for name in places if places[name] == server}} for server in ("0-0-0", "1-0-0")}
    changed = replace(
        action,
        op_placement=OpPlacement({0: places}),
        op_schedule=OpSchedule(schedule),
        dep_placement=DepPlacement({0: taken}),
        dep_schedule=DepSchedule({None: {0: dict.fromkeys(deps, 0) | priority}}),
    )
    found = changed.decisions(cluster)[0]
    assert cluster.times.timing(found.split, found.placement).lookahead.time == pytest.approx(expected, abs=1e-12)


def test_without_contention_neither_order_nor_channel_changes_a_duration():
    cluster, plan, action = planned()
    order = {
        name: {0: {dep: -rank for dep, rank in jobs[0].items()}}
        for name, jobs in action.dep_schedule.priorities.items()
    }
    other = replace(action, dep_schedule=DepSchedule(order)).decisions(cluster)[0]
    times = cluster.times
    assert times.timing(other.split, other.placement) is times.timing(
        plan.split, action.decisions(cluster)[0].placement
    )
