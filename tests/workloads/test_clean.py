"""Cleaning: each rule and its count, the published profile on the shipped traces, and what holds of every cleaned
trace.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from small_traces import trace

from schedlab.config.errors import UserError
from schedlab.workloads.clean import CleaningSettings, clean
from schedlab.workloads.swf import read_swf
from schedlab.workloads.trace import job_processors

WELL = {"time_requested": 60}


@pytest.mark.parametrize(
    ("rule", "job", "by_default", "as_published"),
    [
        (
            "processors",
            {"procs_allocated": 2, "procs_requested": 3, **WELL},
            {"procs_allocated": 3},
            {"procs_allocated": 3},
        ),
        ("missing_request", {"run": 7}, {"time_requested": 7}, {"time_requested": 7}),
        ("negative_run", {"run": -1, **WELL}, {"run": 10}, {"run": 10}),
        ("zero_run", {"run": 0, **WELL}, None, None),
        ("no_time", {"run": -1}, None, {"run": 10, "time_requested": -1}),
        ("overrun", {"run": 100, **WELL}, {"run": 100, "time_requested": 60}, {"run": 100, "time_requested": 60}),
        ("no_processors", {"procs_allocated": -1, "procs_requested": -1, **WELL}, None, {"procs_allocated": -1}),
        ("too_large", {"procs_allocated": 9, **WELL}, None, {"procs_allocated": 9}),
        ("negative_submit", {"submit": -5, **WELL}, None, {"submit": -5}),
        ("duplicate", {"job_id": 1, **WELL}, None, {"submit": 2}),
    ],
)
def test_each_rule_and_its_count(rule, job, by_default, as_published):
    ordinary = {"procs_requested": 1, **WELL}
    for profile, expected in (("default", by_default), ("rlscheduler", as_published)):
        cleaned, report = clean(trace(ordinary, {"procs_requested": 1, **job}), CleaningSettings(profile=profile))
        assert report.rules[rule]["jobs"] == 1
        assert report.kept == len(cleaned.jobs) == (2 if expected else 1)
        if expected:
            row = cleaned.jobs[cleaned.jobs["submit"] != 1].iloc[0]
            assert {name: row[name] for name in expected} == expected


def test_a_count_of_processors_that_is_not_told_contradicts_nothing():
    """Drawn traces tell the allocated one alone."""
    given_trace = trace(
        {"procs_allocated": 4, "procs_requested": -1, **WELL},
        {"procs_allocated": -1, "procs_requested": 4, **WELL},
        {"procs_allocated": 4, "procs_requested": 4, **WELL},
        {"procs_allocated": 0, "procs_requested": 4, **WELL},
    )
    cleaned, report = clean(given_trace)
    assert report.rules["processors"]["jobs"] == 0
    assert cleaned.jobs["procs_allocated"].tolist() == cleaned.jobs["procs_requested"].tolist() == [4, 4, 4, 4]


def test_the_other_actions():
    job = {"procs_allocated": 9, "procs_requested": 12, "run": 100, **WELL}
    settings = CleaningSettings(processors="allocated", too_large="clip", overrun="kill", shift=True)
    row = clean(trace(job), settings)[0].jobs.iloc[0]
    assert row[["procs_allocated", "procs_requested", "run", "submit"]].tolist() == [8, 8, 60, 0]
    unasked = {**job, "procs_allocated": 4, "procs_requested": 0}
    for processors in ("requested", "allocated"):
        row = clean(trace(unasked), CleaningSettings(processors=processors))[0].jobs.iloc[0]
        assert row[["procs_allocated", "procs_requested"]].tolist() == [4, 4]
    row = clean(trace(job), CleaningSettings(processors="requested", machine_processors=16, overrun="extend"))[
        0
    ].jobs.iloc[0]
    assert row[["procs_allocated", "time_requested"]].tolist() == [12, 100]
    assert clean(trace({"run": 5}, {"run": 6, **WELL}), CleaningSettings(missing_request="drop"))[1].kept == 1
    assert clean(trace({"run": -1, **WELL}), CleaningSettings(negative_run="drop"))[1].kept == 0
    assert clean(trace({"run": 7, "time_requested": 0}), CleaningSettings(overrun="kill"))[0].jobs.iloc[0]["run"] == 7


def test_nothing_is_done_by_the_profile_none_but_everything_is_counted():
    given_trace = trace({"run": 0}, {"run": -1}, {"procs_allocated": 99, "submit": -3})
    cleaned, report = clean(given_trace, CleaningSettings(profile="none"))
    assert cleaned.jobs.equals(given_trace.jobs)
    assert {rule: entry["jobs"] for rule, entry in report.rules.items() if entry["jobs"]} == {
        "negative_submit": 1,
        "too_large": 1,
        "no_time": 1,
        "missing_request": 3,
        "negative_run": 1,
        "zero_run": 1,
    }


def test_the_order_of_jobs():
    jobs = ({"job_id": 3, "submit": 5, **WELL}, {"job_id": 1, "submit": 9, **WELL}, {"job_id": 2, "submit": 5, **WELL})
    assert clean(trace(*jobs))[0].jobs["job_id"].tolist() == [2, 3, 1]
    assert clean(trace(*jobs), CleaningSettings(profile="rlscheduler"))[0].jobs["job_id"].tolist() == [1, 2, 3]


def test_maxima_are_of_all_jobs_as_read():
    report = clean(trace({"run": -1, "user": 4}, {"run": 0, "memory_requested": 9, "procs_requested": 5}))[1]
    assert report.maxima["run"] == 0
    assert (report.maxima["user"], report.maxima["memory_requested"], report.maxima["procs"]) == (4, 9, 5)
    assert (report.maxima["group"], report.maxima["last_submit"]) == (0, 2)


def test_a_trace_without_the_size_of_its_machine():
    nameless = trace({**WELL}, comments=())
    with pytest.raises(UserError, match="machine_processors"):
        clean(nameless)
    assert clean(nameless, CleaningSettings(machine_processors=4))[0].processors == 4
    assert clean(nameless, CleaningSettings(profile="rlscheduler"))[1].kept == 1


@pytest.mark.parametrize(
    ("name", "records", "kept"), [("lab-128", 1500, 1492), ("lab-256-tight", 1500, 1500), ("lab-bursts", 800, 800)]
)
def test_the_published_profile_on_the_shipped_traces(repository, name, records, kept):
    cleaned, report = clean(
        read_swf(repository / f"tests/data/batch/{name}.swf.gz"), CleaningSettings(profile="rlscheduler")
    )
    assert (report.records, report.kept, len(cleaned.jobs)) == (records, kept, kept)
    assert (cleaned.jobs["run"] > 0).all()
    assert (cleaned.jobs["time_requested"] > 0).all()


def test_the_published_profile_on_the_archives_logs(shared_data):
    for name, kept in (("HPC2N-2002-2.2-cln", 202871), ("SDSC-SP2-1998-4.2-cln", 59705)):
        assert (
            clean(read_swf(shared_data / f"traces/{name}.swf.gz"), CleaningSettings(profile="rlscheduler"))[1].kept
            == kept
        )


def test_an_empty_trace():
    cleaned, report = clean(trace())
    assert (len(cleaned.jobs), report.maxima["run"]) == (0, 0)


values = st.integers(-2, 12)
jobs = st.fixed_dictionaries(
    dict.fromkeys(("job_id", "submit", "run", "procs_allocated", "procs_requested", "time_requested"), values)
)


@hypothesis_settings(max_examples=100, deadline=None)
@given(st.lists(jobs, max_size=12), st.sampled_from(["keep", "kill", "extend"]))
def test_every_cleaned_trace_can_run_and_cleaning_again_changes_nothing(rows, overrun):
    settings = CleaningSettings(overrun=overrun)
    cleaned, report = clean(trace(*rows), settings)
    found = cleaned.jobs
    assert (found["run"] > 0).all()
    assert ((job_processors(found) > 0) & (job_processors(found) <= 8)).all()
    assert found["job_id"].is_unique
    assert (np.diff(found["submit"]) >= 0).all()
    dropped = sum(entry["jobs"] for entry in report.rules.values() if entry["action"] == "drop")
    assert report.kept == report.records - dropped == len(found)
    assert clean(cleaned)[0].jobs.equals(found)
