"""The numbers that describe a trace, against small traces whose answers can be seen."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_traces import MACHINE, trace

from schedlab.config.errors import UserError
from schedlab.workloads.lublin import LublinSettings, lublin
from schedlab.workloads.statistics import arrivals, load_over_time, oddities, statistics
from schedlab.workloads.swf import read_swf
from schedlab.workloads.trace import offered_load

FRIDAY_AT_23 = (*MACHINE, " StartTime: Fri Nov 10 23:00:00 PST 2006")


def test_arrivals_follow_the_wall_clock_of_the_machine():
    jobs = ({"submit": 0}, {"submit": 3600}, {"submit": 3601}, {"submit": 3600 * 49})
    by_hour, by_weekday = arrivals(trace(*jobs, comments=FRIDAY_AT_23))
    assert {hour: int(count) for hour, count in enumerate(by_hour) if count} == {23: 1, 0: 3}
    assert by_weekday.tolist() == [1, 0, 0, 0, 1, 2, 0]
    by_hour, by_weekday = arrivals(trace(*jobs))
    assert (by_hour[0], by_hour[1], by_weekday) == (1, 3, None)


def test_the_load_is_work_over_room():
    jobs = (
        {"submit": 0, "run": 50, "procs_allocated": 4},
        {"submit": 100, "run": 100, "procs_allocated": 2},
        {"submit": 50, "run": -1},
    )
    assert offered_load(trace(*jobs)) == pytest.approx(400 / 800)
    edges, loads = load_over_time(trace(*jobs), bins=2)
    assert edges.tolist() == [0, 50, 100]
    assert loads == pytest.approx([200 / 400, 200 / 400])
    assert offered_load(trace(*jobs, comments=())) is None
    assert offered_load(trace({"submit": 5})) is None
    with pytest.raises(UserError, match="size of the machine"):
        load_over_time(trace(*jobs, comments=()))


def test_the_load_over_time_adds_up_to_the_load():
    whole = lublin(LublinSettings(jobs=1000, processors=64), 1)
    edges, loads = load_over_time(whole, bins=37)
    assert loads @ np.diff(edges) / (edges[-1] - edges[0]) == pytest.approx(offered_load(whole))


def test_the_shipped_traces_have_what_their_description_says(repository):
    found = oddities(read_swf(repository / "tests/data/batch/lab-128.swf.gz"))
    assert (
        found["run_zero"],
        found["run_negative"],
        found["requested_time_missing"],
        found["run_longer_than_requested"],
    ) == (
        8,
        10,
        20,
        15,
    )


def test_statistics_are_plain_values_for_any_trace():
    for found in (
        statistics(trace()),
        statistics(trace({"run": -1, "procs_allocated": -1})),
        statistics(lublin(LublinSettings(jobs=50), 1)),
    ):
        assert json.loads(json.dumps(found, allow_nan=False)) == found
    found = statistics(trace(*({"run": run, "procs_allocated": size} for run, size in ((10, 1), (30, 2), (20, 3)))))
    assert (found["jobs"], found["run"]["mean"], found["run"]["median"], found["serial_fraction"]) == (
        3,
        20,
        20,
        pytest.approx(1 / 3),
    )
    assert (found["power_of_two_fraction"], found["rank_correlation_size_run"]) == (0.5, pytest.approx(0.5))
