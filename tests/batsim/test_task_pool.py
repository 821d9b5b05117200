"""Tasks in progress, worked out anew only where something changed, against all tasks worked out at every date by the
plain rule.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import run, starting

from schedlab.batsim.simulator.network import Network
from schedlab.batsim.simulator.sharing import fill_reference
from schedlab.platforms.batsim_xml import parse_platform
from schedlab.platforms.platform import Platform

HOSTS = 8


def cluster(sharing: str, cores: int) -> Platform:
    return parse_platform(
        '<platform version="4.1"><zone id="root" routing="Full"><cluster id="c" prefix="h" suffix="" '
        f'radical="0-{HOSTS - 1}" speed="1Gf" '
        f'core="{cores}" bw="100MBps" lat="1ms" bb_bw="300MBps" bb_lat="1ms" {sharing}/>'
        '<zone id="m" routing="Full"><host id="master_host" speed="1Gf"/></zone></zone></platform>',
        "platform.xml",
    )


jobs = st.lists(
    st.tuples(
        st.floats(0, 20),
        st.sets(st.integers(0, HOSTS - 1), min_size=1, max_size=4),
        st.sampled_from([0.0, 1e8, 1e9, 4e9]),
        st.sampled_from([0.0, 0.0, 1e6, 5e7, 2e8]),
    ),
    min_size=1,
    max_size=14,
)
links = st.sampled_from(['sharing_policy="SPLITDUPLEX"', 'sharing_policy="SHARED"', 'bb_sharing_policy="FATPIPE"'])


def ends_by_the_plain_rule(drawn: list[Any], place: Platform, cores: int) -> list[float]:
    """Advance all tasks from date to date, every rate from `fill_reference` over all of them."""
    network = Network(place, place.compute_hosts("master_host"), ignore=False)
    capacity = dict.fromkeys(range(HOSTS), 1000000000.0 * cores) | {
        HOSTS + n: width for n, width in enumerate(place.channels.bandwidth)
    }
    begin, weights, bounds = [], [], []
    for date, hosts, cpu, com in drawn:
        executors = sorted(hosts)
        task = network.matrix(
            executors, [cpu] * len(executors), [0 if a == b else com for a in executors for b in executors]
        )
        begin.append(date + task.latency)
        bound = min((1e9 / flop for flop in task.flops.tolist()), default=math.inf)
        weight = dict(zip(task.hosts.tolist(), task.flops.tolist(), strict=True))
        for channel, size in zip(task.channels.tolist(), task.bytes.tolist(), strict=True):
            if place.channels.shared[channel]:
                weight[HOSTS + channel] = size
            else:
                bound = min(bound, place.channels.bandwidth[channel] / size)
        weights.append(weight)
        bounds.append(bound)
    left, ends, now = [1.0] * len(drawn), [math.nan] * len(drawn), 0.0
    while any(map(math.isnan, ends)):
        at_work = [index for index in range(len(drawn)) if math.isnan(ends[index]) and begin[index] <= now]
        rates = fill_reference([weights[index] for index in at_work], [bounds[index] for index in at_work], capacity)
        finish = {index: now + left[index] / rate for index, rate in zip(at_work, rates, strict=True)}
        coming = [begin[index] for index in range(len(drawn)) if math.isnan(ends[index]) and begin[index] > now]
        following = min([*finish.values(), *coming])
        for index, rate in zip(at_work, rates, strict=True):
            left[index] -= rate * (following - now) if following > now else 0.0
            if finish[index] <= following + 1e-12:
                ends[index] = following
        now = following
    return ends


@settings(max_examples=150, deadline=None)
@given(jobs, links, st.sampled_from([1, 2]))
def test_components_are_enough(drawn: list[Any], sharing: str, cores: int) -> None:
    place = cluster(sharing, cores)
    entries = [
        {"subtime": date, "res": len(hosts), "profile": f"p{index}"} for index, (date, hosts, _, _) in enumerate(drawn)
    ]
    profiles = {
        f"p{index}": {"type": "parallel_homogeneous", "cpu": cpu, "com": com}
        for index, (_, _, cpu, com) in enumerate(drawn)
    }
    decide = starting(
        {f"w0!{index}": " ".join(map(str, sorted(hosts))) for index, (_, hosts, _, _) in enumerate(drawn)}
    )
    done = run(decide, entries, profiles, place, compute_sharing=True, round_to_microseconds=False)
    expected = ends_by_the_plain_rule(drawn, place, cores)
    assert [done.jobs[f"w0!{index}"].finish for index in range(len(drawn))] == pytest.approx(
        expected, rel=1e-7, abs=1e-6
    )
