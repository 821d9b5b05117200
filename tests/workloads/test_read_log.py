"""A log read, cleaned and trimmed block by block is what it is all at once, and of a piece no more is held than twice
the piece.
"""

from __future__ import annotations

import tracemalloc

import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from small_traces import trace

from schedlab.config.errors import UserError
from schedlab.workloads import swf
from schedlab.workloads.clean import PROFILES, CleaningSettings, clean
from schedlab.workloads.prepare import read_log, write_trace
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.swf import read_swf, write_swf
from schedlab.workloads.trim import TrimSettings, trim

PIECES = [
    None,
    TrimSettings(),
    TrimSettings(users=(1, 3)),
    TrimSettings(start=10, end=60, shift=False),
    TrimSettings(first=3, count=5),
    TrimSettings(users=(1, 2), start=5, first=2, count=4),
    TrimSettings(count=6, load=0.8),
]


def at_once(path, cleaning, piece):
    cleaned, report = clean(read_swf(path), cleaning)
    return (cleaned if piece is None else trim(cleaned, piece)), report


def outcome(work, *arguments):
    """What some work gives, or the sentence with which it refuses."""
    try:
        return work(*arguments)
    except UserError as error:
        return str(error)


jobs = st.fixed_dictionaries(
    {
        "job_id": st.integers(1, 30),
        "submit": st.integers(-2, 90),
        "run": st.integers(-1, 9),
        "procs_allocated": st.integers(-1, 9),
        "procs_requested": st.integers(-1, 9),
        "time_requested": st.integers(-1, 9),
        "user": st.integers(1, 3),
    }
)
cleanings = st.builds(
    CleaningSettings,
    profile=st.sampled_from(sorted(PROFILES)),
    order=st.sampled_from([None, "submit", "job_id", "keep"]),
    too_large=st.sampled_from([None, "clip"]),
    overrun=st.sampled_from([None, "kill", "extend"]),
    shift=st.booleans(),
    machine_processors=st.sampled_from([None, 4]),
)


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn=st.lists(jobs, max_size=40), cleaning=cleanings, piece=st.sampled_from(PIECES), told=st.booleans())
def test_blocks_give_what_the_whole_gives(tmp_path, monkeypatch, drawn, cleaning, piece, told):
    write_swf(tmp_path / "log.swf", trace(*drawn, comments=(" MaxNodes: 8",) if told else ()))
    whole = outcome(at_once, tmp_path / "log.swf", cleaning, piece)
    monkeypatch.setattr(swf, "BLOCK_BYTES", 200)  # four jobs or so
    found = outcome(read_log, tmp_path / "log.swf", cleaning, piece)
    monkeypatch.undo()
    if isinstance(whole, str):
        assert found == whole
        return
    pd.testing.assert_frame_equal(found[0].jobs, whole[0].jobs)
    assert (found[0].comments, found[0].source, found[0].lines) == (whole[0].comments, whole[0].source, whole[0].lines)
    assert found[1] == whole[1]


def test_a_size_of_the_machine_behind_the_jobs_holds_for_all(tmp_path, monkeypatch):
    job = " 5 -1 10 1 -1 -1 {} 20 -1 1 1 1 1 1 1 -1 -1\n"
    (tmp_path / "log.swf").write_text(
        "".join(f"{number}{job.format(number)}" for number in range(1, 21)) + "; MaxProcs: 8\n"
    )
    monkeypatch.setattr(swf, "BLOCK_BYTES", 200)
    made, report = read_log(tmp_path / "log.swf", CleaningSettings())
    assert made.processors == len(made.jobs) == 8 and report.rules["too_large"]["jobs"] == 12


@pytest.mark.parametrize("name", ["lab-128", "lab-256-tight", "lab-bursts"])
def test_the_files_of_a_workload_have_the_same_bytes_in_any_blocks(tmp_path, monkeypatch, repository, name):
    file = str(repository / f"tests/data/batch/{name}.swf.gz")
    for number, piece in enumerate((None, {"first": 20, "count": 100}, {"start": 5000}, {"count": 200, "load": 0.7})):
        settings = WorkloadSettings(source="swf", file=file, cleaning={"profile": "rlscheduler"}, trim=piece)
        for part, size in (("whole", 1 << 23), ("blocks", 4096)):
            monkeypatch.setattr(swf, "BLOCK_BYTES", size)
            write_trace(settings, tmp_path / f"{part}-{number}.swf.gz", tmp_path / f"{part}-{number}.json")
        for ending in ("swf.gz", "json"):
            assert (tmp_path / f"whole-{number}.{ending}").read_bytes() == (
                tmp_path / f"blocks-{number}.{ending}"
            ).read_bytes()


@pytest.mark.slow
def test_memory_grows_with_the_piece_and_not_with_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr(swf, "BLOCK_BYTES", 1 << 14)
    peaks = []
    for count in (4_000, 16_000):
        log = tmp_path / f"{count}.swf"
        write_swf(log, trace(*({"run": 10 + number % 7, "user": number % 50} for number in range(count))))
        for piece in (TrimSettings(count=200), TrimSettings(users=(7,))):
            tracemalloc.start()
            made = read_log(log, CleaningSettings(), piece)[0]
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert len(made.jobs) == (200 if piece.count else count // 50)
    grown = [peaks[2] - peaks[0], peaks[3] - peaks[1]]
    assert max(grown) < 12_000 * 8 * 6  # of 18 columns; the numbers of all jobs are held to tell what comes twice
