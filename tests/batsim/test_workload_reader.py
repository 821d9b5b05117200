"""The reader of workload files: what it takes, and a clear word about everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.batsim.errors import UnsupportedProfile
from schedlab.batsim.files.profiles import parse_profile
from schedlab.batsim.files.workload import parse_workload, read_workload
from schedlab.batsim.resource_set import from_mask, parse_resources
from schedlab.config.errors import UserError

DELAY = {"type": "delay", "delay": 5}


def read(jobs: Any = (), profiles: Any = None, **top: Any) -> Any:
    profiles = {"p": DELAY} if profiles is None else profiles
    return parse_workload(
        json.dumps({"nb_res": 4, "jobs": list(jobs) if isinstance(jobs, tuple) else jobs, "profiles": profiles, **top}),
        "w0",
        "w.json",
    )


def job(**changes: Any) -> dict[str, Any]:
    return {"id": 1, "subtime": 0, "res": 1, "profile": "p", **changes}


def test_jobs_are_ordered_by_date_then_by_identifier_as_text() -> None:
    loaded = read(
        [job(id=number, subtime=date) for number, date in ((9, 1), (10, 1), ("x", 0.5), (2, 0))],
        command="extra keys are ignored",
    )
    assert [entry.id for entry in loaded.jobs] == ["w0!2", "w0!x", "w0!10", "w0!9"]
    assert (loaded.nb_res, loaded.name) == (4, "w0") and Path(loaded.path).is_absolute()


def test_extra_keys_of_jobs_and_profiles_are_kept() -> None:
    loaded = read([job(user="me", walltime=-1)], {"p": {**DELAY, "req_time": 5}})
    assert loaded.jobs[0].json == {"id": "w0!1", "subtime": 0, "res": 1, "profile": "p", "user": "me", "walltime": -1}
    assert loaded.jobs[0].walltime == -1 and loaded.profiles["p"].json["req_time"] == 5


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (job(subtime=-1), "jobs[0], subtime"),
        (job(subtime="1"), "jobs[0], subtime"),
        (job(subtime=True), "jobs[0], subtime"),
        (job(subtime=10**400), "enormous"),
        (job(res=-1), "jobs[0], res"),
        (job(res=1.5), "jobs[0], res"),
        (job(walltime=0), "jobs[0], walltime"),
        (job(walltime=-2), "jobs[0], walltime"),
        (job(walltime=None), "jobs[0], walltime"),
        (job(profile="q"), "unknown profile 'q'"),
        (job(profile=3), "jobs[0], profile"),
        (job(id=None), "jobs[0], id"),
        (job(id=1.0), "jobs[0], id"),
        (job(id="w1!3"), "belongs to no job"),
        (job(id="w0!"), "belongs to no job"),
        ("job", "jobs[0]: is no object"),
        ({"id": 1}, "jobs[0], subtime"),
    ],
)
def test_impossible_jobs_are_told(entry: Any, told: str) -> None:
    with pytest.raises(UserError) as raised:
        read([entry])
    assert told in str(raised.value) and "w.json" in str(raised.value)


def test_a_number_beyond_all_floats_is_no_date() -> None:
    text = json.dumps({"nb_res": 1, "jobs": [job(subtime="HUGE")], "profiles": {"p": DELAY}})
    for huge, told in (
        ("1e999", "holds 1e999, which is too large"),
        ("1" + "0" * 400, "subtime: is an enormous number"),
    ):
        with pytest.raises(UserError, match=told):
            parse_workload(text.replace('"HUGE"', huge), "w0", "w.json")


def test_duplicates_are_told_with_and_without_the_workload_in_the_identifier() -> None:
    with pytest.raises(UserError, match="a second job 'w0!1'"):
        read([job(), job(id="w0!1")])


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ({"type": "delay", "delay": 0}, "delay"),
        ({"type": "delay"}, "delay"),
        ({"type": "delay", "delay": 1, "ret": "bad"}, "ret"),
        ({"type": "sleep"}, "type is 'sleep'"),
        ({"type": ["delay"]}, "type is"),
        ("delay", "is no object"),
        ({"type": "parallel", "cpu": [1], "com": [0, 0]}, "has 2 values"),
        ({"type": "parallel", "cpu": [], "com": []}, "cpu"),
        ({"type": "parallel", "cpu": [-1], "com": [0]}, "cpu[0]"),
        ({"type": "parallel", "cpu": [1, 1], "com": [0, 0, 0, 0]}, "profile 'p' has 2 executors"),
        ({"type": "parallel_homogeneous", "cpu": 1}, "com"),
        ({"type": "composed", "seq": []}, "seq"),
        ({"type": "composed", "seq": ["q"]}, "unknown profile 'q'"),
        ({"type": "composed", "seq": ["p"]}, "comes back to profile 'p'"),
        ({"type": "composed", "seq": ["p"], "repeat": 0}, "repeat"),
        ({"type": "recv", "regex": "(", "success": "p"}, "regex"),
        ({"type": "recv", "regex": ".", "success": "nothing"}, "unknown profile 'nothing'"),
        ({"type": "send"}, "msg"),
        ({"type": "data_staging", "nb_bytes": 1, "from": "a"}, "to"),
        ({"type": "parallel_homogeneous_pfs", "bytes_to_read": 1, "bytes_to_write": "x"}, "bytes_to_write"),
    ],
)
def test_impossible_profiles_are_told(profile: Any, told: str) -> None:
    with pytest.raises(UserError) as raised:
        read([job()], {"p": profile})
    assert told in str(raised.value) and "w.json" in str(raised.value)


def test_profiles_that_are_not_simulated() -> None:
    with pytest.raises(UnsupportedProfile, match="not simulated"):
        read([], {"p": {"type": "smpi", "trace": "x"}})


def test_traffic_with_a_storage_host_goes_one_way_or_both() -> None:
    profiles = {key: {"type": "parallel_homogeneous_pfs", f"bytes_to_{key}": 5} for key in ("read", "write")}
    loaded = read([], profiles).profiles
    assert [(loaded[key].read, loaded[key].write) for key in ("read", "write")] == [(5, 0), (0, 5)]
    with pytest.raises(UserError, match="lacks bytes_to_read and bytes_to_write"):
        read([], {"p": {"type": "parallel_homogeneous_pfs"}})


def traced(folder: Path, *texts: str, listed: str = "") -> Path:
    names = [f"rank{number}.txt" for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(text)
    (folder / "trace.txt").write_text(listed or "\n".join(["# of two hosts", *names, ""]))
    profile = {"type": "usage_trace", "trace": "trace.txt"}
    jobs = [{"id": 1, "subtime": 0, "res": 2, "profile": "p"}]
    (folder / "w.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": {"p": profile}}))
    return folder / "w.json"


def test_a_usage_trace_lies_beside_the_workload(tmp_path: Path) -> None:
    loaded = read_workload(traced(tmp_path, "0 m_usage 0.5 1e3\n\n0 m_usage 1 20\n", "1 m_usage 0.25 7"), "w0")
    assert loaded.profiles["p"].steps == (((0.5, 1e3), (1.0, 20.0)), ((0.25, 7.0),))


@pytest.mark.parametrize(
    ("texts", "listed", "told"),
    [
        (["0 m_usage 0.5 1"], "", "res: is 2, but profile 'p' has 1 executors"),
        (["0 m_usage 0.5 1"] * 3, "", "res: is 2, but profile 'p' has 3 executors"),
        (["0 m_usage 0.5 1", "0 m_usage 1.5 1"], "", "rank1.txt: line 1"),
        (["\n0 m_usage nan 1", "0 m_usage 1 1"], "", "rank0.txt: line 2"),
        (["0 m_usage 0.5 -1", "0 m_usage 1 1"], "", "rank0.txt: line 1"),
        (["0 send 1 1e6", "0 m_usage 1 1"], "", "rank0.txt: line 1"),
        ([], "\n", "trace.txt: names no file"),
        ([], "nowhere.txt", "nowhere.txt: there is no such file"),
    ],
)
def test_broken_usage_traces_are_told(texts: list[str], listed: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read_workload(traced(tmp_path, *texts, listed=listed), "w0")
    assert told in str(raised.value)


def test_a_usage_trace_cannot_be_registered() -> None:
    with pytest.raises(UserError, match="is no profile of a workload file"):
        parse_profile("p", {"type": "usage_trace", "trace": "x"}, "here")


def test_a_long_way_round_is_a_cycle_and_a_deep_tree_is_none() -> None:
    chain = {f"s{index}": {"type": "composed", "seq": [f"s{index + 1}"] * 2} for index in range(3000)}
    assert len(read([job(profile="s0")], {**chain, "s3000": DELAY}).profiles) == 3001
    with pytest.raises(UserError, match="comes back to profile"):
        read([], {**chain, "s3000": {"type": "composed", "seq": ["s1500"]}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"nb_res": NaN}',
        '{"nb_res": 1, "jobs": [], "profiles": {"p": {"type": "delay", "delay": 1}, "p": {"type": "delay", "delay": '
        "2}}}",
        '{"nb_res": 1, "jobs": [], "profiles": {}, "forwarded": 1e400}',
        '{"nb_res": 1, "jobs": {}, "profiles": {}}',
        '{"nb_res": 0, "jobs": [], "profiles": {}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_workload_is_told(text: str) -> None:
    with pytest.raises(UserError, match=r"w\.json"):
        parse_workload(text, "w0", "w.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes('{"nb_res": 1, "jobs": [], "profiles": {}, "é": 1}'.encode("latin-1"))
    with pytest.raises(UserError, match="is not UTF-8"):
        read_workload(tmp_path / "latin.json", "w0")
    with pytest.raises(UserError, match="there is no such file"):
        read_workload(tmp_path / "nothing.json", "w0")
    (tmp_path / "named.json").write_text("{}")
    with pytest.raises(UserError, match="cannot name a workload"):
        read_workload(tmp_path / "named.json", "a!b")


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.floats(),
    st.sampled_from(["p", "q", "delay", "composed", "w0!1", ""]),
)
keys = st.sampled_from(
    [
        "id",
        "subtime",
        "res",
        "profile",
        "walltime",
        "type",
        "delay",
        "cpu",
        "com",
        "seq",
        "repeat",
        "ret",
        "regex",
        "success",
    ]
)
anything = st.recursive(
    values, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=5)), max_leaves=8
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.dictionaries(keys, anything, max_size=6), max_size=3),
    st.dictionaries(st.sampled_from("pqr"), anything, max_size=3),
    anything,
)
def test_random_files_end_in_a_workload_or_an_error_for_people(jobs: Any, profiles: Any, nb_res: Any) -> None:
    text = json.dumps({"nb_res": nb_res, "jobs": jobs, "profiles": profiles})
    try:
        loaded = parse_workload(text, "w0", "w.json")
    except UserError:
        return
    assert len(loaded.jobs) == len(jobs)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**70))
def test_sets_of_resources_are_written_and_read_back(mask: int) -> None:
    written = from_mask(mask)
    assert parse_resources(str(written), 80).mask == mask and list(written) == [
        bit for bit in range(80) if mask >> bit & 1
    ]
    assert written.numbers.tolist() == list(written) and written.size == len(list(written))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789- ,a٣", max_size=20))
def test_random_texts_are_sets_or_errors(text: str) -> None:
    try:
        found = parse_resources(text, 12)
    except ValueError:
        return
    assert str(parse_resources(str(found), 12)) == str(found)
