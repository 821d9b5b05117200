"""From a trace to Batsim: the published rules on hand-made jobs, each published defect by default and in mode
reference, and limits.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from small_traces import trace

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.platforms.generate import hierarchy_of
from schedlab.platforms.settings import PlatformSettings
from schedlab.workloads.batsim_file import BatsimWorkload, job_limits, read_batsim, set_work, write_batsim
from schedlab.workloads.to_batsim import FACTORS, MEMORY_BANDWIDTHS, PROBABILITIES, REFERENCE, BatsimSettings, to_batsim

LEARNING = hierarchy_of(PlatformSettings(name="learning", file="learning"))  # 4 cores, 4.2 Gflop/s on average, 32 GB
WELL = {"procs_requested": 2, "time_requested": 100, "memory_requested": 2_500_999}


def convert(*jobs, seed=1, platform=LEARNING, **settings):
    return to_batsim(trace(*jobs), platform, validate(BatsimSettings, settings), seed)


def profiles_of(workload):
    return [workload.profile_of(job) for job in workload.jobs]


def test_a_job_and_its_profile():
    workload, report = convert({**WELL, "submit": 50}, {**WELL, "submit": 65})
    assert (workload.nb_res, report.values()) == (
        4,
        {"read": 2, "written": 2, "reasons": dict.fromkeys(report.reasons, 0)},
    )
    job = workload.jobs[1]
    assert {key: job[key] for key in ("id", "subtime", "res")} == {"id": 1, "subtime": 15, "res": 2}
    assert "walltime" not in job
    profile = workload.profile_of(job)
    assert {key: profile[key] for key in ("type", "com", "req_time", "req_ops", "mem")} == {
        "type": "parallel_homogeneous",
        "com": 0,
        "req_time": 100,
        "req_ops": 420_000_000_000,
        "mem": 2500,
    }
    assert profile["mem_bw"] in MEMORY_BANDWIDTHS
    assert any(profile["cpu"] == pytest.approx(factor * 4.2e11, abs=1) for factor in FACTORS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"submit": -1}, "negative_submit"),
        ({"procs_requested": -1}, "no_processors"),
        ({"time_requested": -1}, "no_requested_time"),
        ({"memory_requested": -1}, "no_memory"),
        ({"procs_requested": 5}, "too_large"),
        ({"memory_requested": 16_001_000}, "too_large"),
    ],
)
def test_jobs_that_are_left_out_are_counted(change, reason):
    workload, report = convert({**WELL, **change}, WELL)
    assert [job["subtime"] for job in workload.jobs] == [0]
    assert report.reasons == {**dict.fromkeys(report.reasons, 0), reason: 1}


def test_used_memory_counts_where_none_was_requested():
    assert profiles_of(convert({**WELL, "memory_requested": -1, "memory_used": 7999})[0])[0]["mem"] == 7


def test_memory_can_be_drawn_where_the_trace_has_none():
    none = {**WELL, "memory_requested": -1}
    workload, _ = convert(*[none] * 50, {**WELL}, missing_memory=[1000, 2000])
    assert {profile["mem"] for profile in profiles_of(workload)} == {1000, 2000, 2500}
    assert profiles_of(workload)[-1]["mem"] == 2500


def test_reading_stops_after_enough_jobs():
    workload, report = convert({**WELL, "submit": -1}, WELL, WELL, WELL, {**WELL, "submit": -1}, jobs=2)
    assert (len(workload.jobs), report.read, report.reasons["negative_submit"]) == (2, 3, 1)


def test_run_times_and_walltimes():
    requested = convert({**WELL, "run": 30}, runtime="requested", walltime="requested")[0]
    assert (profiles_of(requested)[0]["cpu"], requested.jobs[0]["walltime"]) == (420_000_000_000, 100)
    assert profiles_of(convert({**WELL, "run": 30}, runtime="trace")[0])[0]["cpu"] == 126_000_000_000
    with pytest.raises(UserError, match="no_run_time 1"):
        convert({**WELL, "run": -1}, runtime="trace")


def test_a_walltime_for_the_slowest_core_kills_no_job_for_where_it_ran():
    plain = hierarchy_of(PlatformSettings(name="learning", file="learning", pstates={"managed": False}))
    job = convert({**WELL, "run": 100}, platform=plain, runtime="trace", walltime="slowest_core")[0]
    assert job.jobs[0]["walltime"] == 105  # 100 s at 4.2 Gflop/s take 105 s at 4.0
    assert profiles_of(job)[0]["cpu"] / 4.0e9 == pytest.approx(105.0)
    job = convert({**WELL, "run": 100}, runtime="trace", walltime="slowest_core")[0]
    assert job.jobs[0]["walltime"] == 140  # where memory bandwidth may be over-subscribed, 4.0 Gflop/s become 3.0


def test_draws_have_the_published_distribution():
    assert sum(PROBABILITIES) == pytest.approx(1)
    assert (len(FACTORS), FACTORS[0], FACTORS[-1]) == (25, 0.05, 1.25)
    for legacy in (False, True):
        profiles = profiles_of(convert(*[WELL] * 4000, legacy_draws=legacy)[0])
        places = np.rint([profile["cpu"] / 4.2e11 / 0.05 for profile in profiles]).astype(int) - 1
        shares = np.bincount(places, minlength=25) / 4000
        assert np.abs(shares - PROBABILITIES).max() < 4 * np.sqrt(0.15 * 0.85 / 4000)
        bandwidths = np.array([profile["mem_bw"] for profile in profiles])
        assert np.abs(np.array([(bandwidths == value).mean() for value in MEMORY_BANDWIDTHS]) - 1 / 6).max() < 0.025


# --- published defects: right by default, as published in mode reference


def test_each_job_keeps_its_own_run_time_which_like_requests_lost():
    jobs = [WELL] * 60
    ours = profiles_of(convert(*jobs)[0])
    assert len({(profile["cpu"], profile["mem_bw"]) for profile in ours}) > 30
    published, _ = convert(*jobs, legacy_profile_sharing=True)
    assert len(published.profiles) <= len(MEMORY_BANDWIDTHS)
    assert "100_2500_4" in published.profiles
    first = {}
    for job, own in zip(published.jobs, ours, strict=True):  # the first job of a name decides
        first.setdefault(job["profile"], own["cpu"])
        assert published.profile_of(job)["cpu"] == first[job["profile"]]


def test_a_first_submit_of_0_shifts_nothing():
    jobs = [{**WELL, "submit": time} for time in (0, 7, 10)]
    assert [job["subtime"] for job in convert(*jobs)[0].jobs] == [0, 7, 10]
    assert [job["subtime"] for job in convert(*jobs, legacy_submit_shift=True)[0].jobs] == [0, 0, 3]


def test_the_first_job_may_come_later_than_at_0():
    jobs = [{**WELL, "submit": time} for time in (5, 7)]
    early, late = (convert(*jobs, first_submit=first)[0].jobs for first in (0.0, 1.0))
    assert [job["subtime"] for job in late] == [job["subtime"] + 1 for job in early]


def test_a_job_that_can_never_run_is_skipped_clipped_or_refused_and_was_kept():
    large, wide = {**WELL, "procs_requested": 9}, {**WELL, "procs_requested": 3, "memory_requested": 16_000_000}
    deep = {**WELL, "memory_requested": 40_000_000}
    skipped, report = convert(large, wide, deep, WELL)
    assert (len(skipped.jobs), report.reasons["too_large"]) == (1, 3)
    clipped, report = convert(large, wide, deep, WELL, infeasible="clip")
    assert [(job["res"], clipped.profile_of(job)["mem"]) for job in clipped.jobs] == [
        (4, 2500),
        (2, 16000),
        (1, 32000),
        (2, 2500),
    ]
    assert report.reasons["too_large"] == 3
    with pytest.raises(UserError, match="job 1 asks for 9 cores with 2500 MB each; expected at most 4"):
        convert(large, infeasible="refuse")
    assert len(convert(WELL, large, infeasible="refuse", jobs=1)[0].jobs) == 1
    kept, report = convert(large, wide, deep, {**WELL, "time_requested": 0}, infeasible="keep")
    assert ([job["res"] for job in kept.jobs], report.reasons["too_large"]) == ([9, 3, 2, 2], 3)


def test_more_resources_than_the_platform_has_are_refused_and_were_not_checked():
    with pytest.raises(UserError, match="nb_res is 5; expected at most 4, the cores of platform learning"):
        convert(WELL, nb_res=5)
    large = {**WELL, "procs_requested": 4}
    fewer, report = convert(WELL, large, nb_res=3)
    assert (fewer.nb_res, [job["res"] for job in fewer.jobs], report.reasons["too_large"]) == (3, [2], 1)
    assert [job["res"] for job in convert(WELL, large, nb_res=3, infeasible="clip")[0].jobs] == [2, 3]
    assert convert(WELL, nb_res=5, infeasible="keep")[0].nb_res == 5


def test_job_limits_are_never_0_by_which_observations_are_divided():
    workload, _ = convert({**WELL, "memory_requested": 5})
    assert job_limits(workload)["max_mem"] == 1
    assert job_limits(workload, legacy_zero_limits=True)["max_mem"] == 0


def test_mode_reference_draws_f_and_bandwidth_in_turn_from_one_generator():
    workload, _ = convert(*[WELL] * 5, seed=20091995, **REFERENCE)
    rng = np.random.RandomState(20091995)
    pairs = [(rng.choice(FACTORS, p=PROBABILITIES), rng.choice(MEMORY_BANDWIDTHS)) for _ in range(5)]
    assert [profile["mem_bw"] for profile in profiles_of(workload)] == [bandwidth for _, bandwidth in pairs]
    assert profiles_of(workload)[0]["cpu"] == int(4.2 * pairs[0][0] * 100 * 1e9)


# --- files


def test_job_limits_are_99th_percentiles_over_the_jobs():
    jobs = [{**WELL, "time_requested": time, "procs_requested": 1 + time % 4} for time in range(1, 102)]
    limits = job_limits(convert(*jobs)[0])
    assert (limits["max_time"], limits["max_core"], limits["max_mem"]) == (100, 4, 2500)
    assert limits["max_mem_bw"] == 24


def test_a_custom_workload_gets_the_work_of_its_requested_time():
    profile = {"type": "parallel_homogeneous", "cpu": 1, "com": 0, "req_time": 5, "mem": 8000, "mem_bw": 24}
    custom = BatsimWorkload(4, [{"id": 0, "subtime": 0, "res": 1, "profile": "t"}], {"t": profile})
    done = set_work(custom, LEARNING.reference_speed).profiles["t"]
    assert done == {**profile, "cpu": 2.1e10, "req_ops": 2.1e10}
    with pytest.raises(UserError, match="profile t: req_time"):
        set_work(BatsimWorkload(4, [], {"t": {}}), 1.0)


def test_what_is_written_is_read_again_and_is_the_same_each_time(tmp_path):
    workload, _ = convert(*[WELL] * 20)
    for name in ("a.json", "b.json"):
        write_batsim(tmp_path / name, convert(*[WELL] * 20)[0])
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    again = read_batsim(tmp_path / "a.json")
    assert (again.nb_res, again.jobs, again.profiles) == (workload.nb_res, workload.jobs, workload.profiles)
    assert convert(*[WELL] * 20, seed=2)[0].profiles != workload.profiles


GOOD = {
    "nb_res": 4,
    "jobs": [{"id": 0, "subtime": 0, "res": 1, "profile": "p"}],
    "profiles": {"p": {"type": "delay", "delay": 1}},
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda value: value.update(nb_res=0), "nb_res is 0"),
        (lambda value: value.update(jobs={}), "jobs are no list"),
        (lambda value: value.update(profiles=[]), "profiles are no mapping"),
        (lambda value: value["jobs"][0].update(subtime=-1), r"jobs\[0\]: subtime is -1"),
        (lambda value: value["jobs"][0].update(subtime=10**400), r"jobs\[0\]: subtime is 1000"),
        (lambda value: value["jobs"][0].update(res=1.5), "res is 1.5"),
        (lambda value: value["jobs"][0].update(profile="q"), "profile 'q' is not there"),
        (lambda value: value["jobs"][0].update(id=None), "id is None"),
        (lambda value: value["jobs"].append(value["jobs"][0]), r"jobs\[1\]: id 0 occurs twice"),
    ],
)
def test_wrong_workload_files_are_refused(tmp_path, change, told):
    value = json.loads(json.dumps(GOOD))
    change(value)
    (tmp_path / "w.json").write_text(json.dumps(value))
    with pytest.raises(UserError, match=told):
        read_batsim(tmp_path / "w.json")


def test_recorded_workloads_are_read(shared_data):
    for path in sorted((shared_data / "cases/batsim").glob("*/workload.json")):
        assert read_batsim(path).jobs


def test_nothing_left_is_told():
    with pytest.raises(UserError, match=r"no job can be taken.*no_memory 1"):
        convert({**WELL, "memory_requested": -1})
    with pytest.raises(UserError, match="the trace is empty"):
        convert()


counts = st.integers(-1, 12)
jobs = st.fixed_dictionaries(
    {
        "submit": counts,
        "procs_requested": counts,
        "time_requested": counts,
        "memory_requested": st.integers(-1, 60_000_000),
    }
)


@hypothesis_settings(max_examples=100, deadline=None)
@given(st.lists(jobs, max_size=8), st.sampled_from(["skip", "clip"]), st.booleans())
def test_every_job_that_is_written_can_run_on_the_empty_platform(rows, infeasible, drawn):
    try:
        workload, report = convert(*rows, infeasible=infeasible, missing_memory=[500] if drawn else [])
    except UserError as error:
        assert "no job can be taken" in str(error)
        return
    assert report.written == len(workload.jobs)
    for job in workload.jobs:
        assert 1 <= job["res"] <= LEARNING.room_for(workload.profile_of(job)["mem"])
        assert job["subtime"] >= 0
    assert all(limit > 0 for limit in job_limits(workload).values())


values = st.recursive(
    st.none() | st.integers(-2, 2) | st.text(max_size=2), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)
keys = st.sampled_from(["nb_res", "jobs", "profiles", "id", "subtime", "res", "profile"])
files = st.recursive(
    values, lambda inner: st.dictionaries(keys, inner, max_size=6) | st.lists(inner, max_size=2), max_leaves=16
)


@hypothesis_settings(max_examples=200, deadline=None)
@given(files.map(json.dumps).map(str.encode) | st.binary(max_size=50))
def test_any_file_is_a_workload_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "w.json"
    path.write_bytes(data)
    try:
        read_batsim(path)
    except UserError as error:
        assert str(path) in str(error)
