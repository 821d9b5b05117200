"""Trimming and scaling: each way to choose a piece, and what it refuses."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from small_traces import trace

from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.workloads.lublin import LublinSettings, lublin
from schedlab.workloads.statistics import arrivals
from schedlab.workloads.trace import offered_load
from schedlab.workloads.trim import TrimSettings, nearest_load, scale_load, trim

JOBS = [{"submit": 100 + 10 * number, "user": number % 3} for number in range(10)]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, range(1, 11)),
        ({"count": 3}, [1, 2, 3]),
        ({"first": 8}, [9, 10]),
        ({"first": 2, "count": 2}, [3, 4]),
        ({"start": 110, "end": 130}, [2, 3]),
        ({"users": (1,)}, [2, 5, 8]),
        ({"users": (0, 1), "start": 120, "first": 1, "count": 2}, [5, 7]),
    ],
)
def test_pieces(settings, kept):
    piece = trim(trace(*JOBS), TrimSettings(**settings))
    assert piece.jobs["job_id"].tolist() == list(kept)
    assert piece.jobs["submit"].iloc[0] == 0
    assert piece.processors == 8


def test_the_header_says_which_piece_it_is():
    piece = trim(trace(*JOBS), TrimSettings(first=2, count=3))
    assert "trimmed by schedlab: 3 of 10 jobs, the first of them job 3, submitted at 120 s" in " ".join(piece.comments)


def test_submit_times_stay_where_that_is_asked_for():
    whole = trace(*JOBS)
    assert trim(whole, TrimSettings(shift=False)) is whole
    assert trim(whole, TrimSettings(shift=False, first=1)).jobs["submit"].iloc[0] == 110


def test_the_wall_clock_of_a_piece_stays_that_of_its_jobs():
    comments = (" MaxProcs: 8", " UnixStartTime: 1000000", " StartTime: Sat Feb 28 23:59:00 CET 2004")
    whole = trace({"submit": 30}, {"submit": 86500}, comments=comments)
    piece = trim(whole, TrimSettings(first=1))
    assert piece.comments[:3] == (" MaxProcs: 8", " UnixStartTime: 1086500", " StartTime: Mon Mar 01 00:00:40 2004")
    assert piece.starts_at - whole.starts_at == timedelta(seconds=86500)
    assert arrivals(piece)[1].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert trim(piece, TrimSettings()) is piece


def test_the_piece_of_the_nearest_load_is_the_one_that_a_search_finds():
    whole = lublin(LublinSettings(jobs=600, processors=64), 5)
    for load in (0.3, 0.7, 1.5):
        pieces = [whole.with_jobs(whole.jobs.iloc[place : place + 100]) for place in range(501)]
        distances = [abs(offered_load(piece) - load) for piece in pieces]
        assert nearest_load(whole, 100, load) == int(np.argmin(distances))
    piece = trim(whole, TrimSettings(count=100, load=0.7))
    assert offered_load(piece) == pytest.approx(0.7, abs=0.1)


def test_scaling_reaches_the_load_and_keeps_the_order():
    whole = lublin(LublinSettings(jobs=500, processors=64), 6)
    scaled = scale_load(whole, 0.85)
    assert offered_load(scaled) == pytest.approx(0.85, rel=1e-4)
    assert (np.diff(scaled.jobs["submit"]) >= 0).all()
    assert scaled.jobs["submit"].iloc[0] == whole.jobs["submit"].iloc[0]
    assert "arrival times multiplied by" in scaled.comments[-1]


def test_what_cannot_be_cut_is_told():
    whole = trace(*JOBS)
    with pytest.raises(UserError, match="no job is left"):
        trim(whole, TrimSettings(users=(9,)))
    with pytest.raises(UserError, match="has 10 jobs"):
        trim(whole, TrimSettings(count=11, load=0.5))
    with pytest.raises(UserError, match="submitted at one time"):
        trim(trace({"submit": 1}, {"submit": 1}), TrimSettings(count=2, load=0.5))
    with pytest.raises(UserError, match="out of order"):
        nearest_load(trace({"submit": 2}, {"submit": 1}), 1, 0.5)
    with pytest.raises(UserError, match="size of the machine"):
        trim(trace(*JOBS, comments=()), TrimSettings(count=2, load=0.5))
    with pytest.raises(UserError, match="not defined"):
        scale_load(trace({"submit": 1}), 0.5)
    for load in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UserError, match="expected a number above 0"):
            scale_load(trace(*JOBS), load)
    with pytest.raises(UserError, match="beyond 2\\^53 s"):
        scale_load(trace(*JOBS), 1e-300)
    with pytest.raises(UserError, match="9999-12-31, which is no date"):
        trim(trace({"submit": 1e10}, comments=(" StartTime: Fri Dec 31 23:59:59 9999",)), TrimSettings())
    with pytest.raises(UserErrors, match="needs count"):
        validate(TrimSettings, {"load": 0.5})
    with pytest.raises(UserErrors, match="later than start"):
        validate(TrimSettings, {"start": 5, "end": 5})
