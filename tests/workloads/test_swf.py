"""Reading and writing traces: the header, oddities, damage, and that nothing but a UserError comes out of any bytes."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.workloads import swf
from schedlab.workloads.clean import clean
from schedlab.workloads.swf import read_blocks, read_header, read_swf, write_swf
from schedlab.workloads.trace import COLUMNS, Trace

JOB = "1 0 5 60 4 -1 -1 4 100 -1 1 7 1 -1 0 -1 -1 -1"
ODDITIES = {  # traces/README.md: records, processors, run 0, run < 0, no requested time, run > requested, out of order
    "HPC2N-2002-2.2-cln": (202871, 240, 0, 0, 0, 14817, 0),
    "SDSC-SP2-1998-4.2-cln": (59715, 128, 10, 5671, 66, 4134, 0),
    "KTH-SP2-1996-2.1": (28489, 100, 8, 0, 0, 475, 0),
    "NASA-iPSC-1993-3.1-cln": (18239, 128, 173, 0, 18239, 0, 0),
    "LLNL-Atlas-2006-2.1-cln": (43778, 9216, 7178, 0, 8233, 3351, 0),
    "lublin_256": (10000, 256, 0, 0, 10000, 0, 0),
    "lublin_256_new2": (10000, 256, 0, 0, 10000, 0, 0),
    "lublin-aaroh": (10000, 256, 0, 0, 10000, 0, 0),
}


def write(folder, text, name="trace.swf"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_are_named_and_typed(tmp_path):
    jobs = read_swf(write(tmp_path, f"; MaxProcs: 8\n{JOB}\n")).jobs
    assert list(jobs.columns) == list(COLUMNS)
    assert jobs.dtypes.to_dict() == {name: np.dtype(kind) for name, kind in COLUMNS.items()}
    assert jobs.iloc[0][["job_id", "submit", "run", "procs_requested", "time_requested", "user"]].tolist() == [
        1,
        0,
        60,
        4,
        100,
        7,
    ]


@pytest.mark.parametrize(
    ("header", "nodes", "processors"),
    [
        ("; MaxNodes: 128\n; MaxProcs: 256", 128, 256),
        ("; MaxNodes: 338 (batch partition; 512 total)", 338, 338),
        (";MaxProcs : 64", 64, 64),
        ("; Max Nodes:16\n;   MaxProcs:   32  ", 16, 32),
        ("; MAXPROCS: 1,152 cores", 1152, 1152),
        ("\ufeff; MaxProcs: 8", 8, 8),
        ("; MaxProcs: -1\n; MaxNodes: 9", 9, 9),
        ("; Note: MaxProcs unknown", None, None),
        ("", None, None),
    ],
)
def test_the_machine_is_read_from_headers_of_any_spacing(tmp_path, header, nodes, processors):
    trace = read_swf(write(tmp_path, f"{header}\n{JOB}\n"))
    assert (trace.nodes, trace.processors) == (nodes, processors)
    if processors is None:
        with pytest.raises(UserError, match="MaxProcs: N"):
            trace.machine_size()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n; MaxProcs: many", r"trace.swf: line 2: MaxProcs.*'many'"),
        ("; Version: 2\n; MaxNodes: 9\n; Max Procs: about 18", r"line 3: MaxProcs.*'about 18'.*MaxNodes"),
        ("; MaxProcs: 8\n; MaxNodes: four", r"line 2: MaxNodes.*'four'"),
        (f"{JOB}\n{JOB}\n{JOB}\n; MaxProcs: many", r"line 4: MaxProcs.*'many'"),
    ],
)
def test_a_size_of_the_machine_in_words_is_refused_at_its_line(tmp_path, monkeypatch, text, told):
    monkeypatch.setattr(swf, "BLOCK_BYTES", 64)  # lines are counted over blocks
    trace = read_swf(write(tmp_path, f"{text}\n{JOB}\n"))
    with pytest.raises(UserError, match=told):
        trace.machine_size()
    with pytest.raises(UserError, match=told):
        trace.with_jobs(trace.jobs, "copied").machine_size()
    assert trace.with_processors(8).machine_size() == 8
    write_swf(tmp_path / "copy.swf", trace)
    assert read_swf(tmp_path / "copy.swf").header == trace.header


@pytest.mark.parametrize(
    ("header", "wall_clock"),
    [
        (
            "; StartTime: Fri Nov 10 15:05:01 PST 2006\n; UnixStartTime: 1163199901\n; TimeZone: 3600",
            "2006-11-10 15:05:01",
        ),
        ("; UnixStartTime: 3600\n; TimeZone: -3600", "1970-01-01 00:00:00"),
        ("; UnixStartTime: 3600", "1970-01-01 01:00:00"),
        ("; StartTime: some day", None),
        ("; StartTime: Fri Nov 31 15:05:01 PST 2006", None),
    ],
)
def test_the_wall_clock_at_the_start(tmp_path, header, wall_clock):
    started = read_swf(write(tmp_path, f"{header}\n{JOB}\n")).starts_at
    assert (started and started.strftime("%Y-%m-%d %H:%M:%S")) == wall_clock


@pytest.mark.parametrize(
    "text",
    [
        f"{JOB}\r\n{JOB}\r\n",
        f"\n  {JOB}  \n\n; in between\n{JOB} ; behind\n",
        f"{JOB}\n{JOB}".replace(" ", "\t"),
        f"{JOB}\n{JOB}".replace(" -1 -1 -1", " batch -1 -1"),
    ],
    ids=["windows", "comments and blank lines", "tabs, no last line feed", "a partition with a name"],
)
def test_forms_of_a_file_that_are_read(tmp_path, text):
    jobs = read_swf(write(tmp_path, text)).jobs
    assert jobs["time_requested"].tolist() == [100, 100]
    assert jobs["partition"].isin([-1, 0]).all()


def test_a_comment_may_hold_any_bytes(tmp_path):
    path = write(
        tmp_path, b"; Note: Malm\xf6\n; MaxProcs: 16 (\xe9t\xe9)\n" + f"{JOB}\n{JOB}".encode() + b" ; \xff behind\n"
    )
    trace = read_swf(path)
    assert (len(trace.jobs), trace.machine_size()) == (2, 16)
    assert trace.comments[0] == " Note: Malm\ufffd"
    assert read_header(path).comments == trace.comments
    write_swf(tmp_path / "again.swf", trace)
    assert read_swf(tmp_path / "again.swf").comments == trace.comments


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"; h\n{JOB}\n2 0 5\n", "line 3: 3 fields; expected 18 numbers"),
        (f"{JOB} 4\n", "line 1: 19 fields"),
        (f"{JOB}\n{JOB.replace('60', 'nan')}\n", r"line 2: column 4 \(run\) is 'nan'; expected a number"),
        (JOB.replace("60", "inf"), "line 1: column 4"),
        (JOB.replace("60", "1e400"), "line 1: column 4"),
        (JOB.replace("60", "6O"), "'6O'"),
        (JOB.replace(" 4 ", " 4.5 "), r"column 5 \(procs_allocated\) is '4.5'; expected a whole number"),
        (JOB.replace("60", "99999999999999999999"), "column 4"),
        (f"{JOB}\n{JOB}\n".encode() + b"\xff\xfe\n", "line 3: byte 0xff is not UTF-8"),
        (b"; caf\xe9\n" + JOB.encode().replace(b" 4 ", b" \xe9 "), "line 2: byte 0xe9 is not UTF-8"),
        (b"\x00" * 100, "line 1"),
        (JOB.replace("60", "\x1b[2J"), r"column 4 \(run\) is '\?\[2J'"),
        ("7 " * 50_000, "line 1: a line of more than"),
    ],
)
def test_damage_is_told_with_file_and_line(tmp_path, text, told):
    path = write(tmp_path, text)
    with pytest.raises(UserError, match=told) as caught:
        read_swf(path)
    assert str(path) in str(caught.value)


def test_a_gzip_file_is_told_by_its_content_and_by_being_cut(tmp_path):
    whole = gzip.compress("".join(f"{number} {JOB[2:]}\n" for number in range(1, 3000)).encode())
    assert len(read_swf(write(tmp_path, whole, "trace")).jobs) == 2999
    for cut in (whole[:-9], whole[: len(whole) // 2], whole[:11]):
        with pytest.raises(UserError, match="gzip file is cut off or damaged"):
            read_swf(write(tmp_path, cut, "cut.swf.gz"))
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    with pytest.raises(UserError):
        read_swf(write(tmp_path, bytes(damaged), "damaged.swf.gz"))


def test_what_is_no_file(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(UserError, match="folder"):
        read_swf(tmp_path)


FLOODS = {
    "comments": b";\n",
    "blank lines": b"\n",
    "both": b";\n \n",
    "long comments": b";" + b"x" * 60_000 + b"\n",
    "jobs": f"{JOB}\n".encode(),
    "jobs of named partitions": JOB.replace(" -1 -1 -1", " batch -1 -1").encode() + b"\n",
    "a job after many blank lines": b"\n" * 200 + JOB.replace(" -1 -1 -1", " batch -1 -1").encode() + b"\n",
}


@pytest.mark.parametrize("line", FLOODS.values(), ids=FLOODS)
def test_a_small_gzip_that_unpacks_to_a_flood_is_refused_soon(tmp_path, line):
    path = tmp_path / "flood.swf.gz"
    block = line * ((1 << 20) // len(line))
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.writelines(packer.compress(block) for _ in range(40))
        file.write(packer.flush())
    for read in (read_header, read_swf):
        began = time.process_time()
        with pytest.raises(UserError) as caught:
            read(path)
        assert str(path) in str(caught.value)
        assert time.process_time() - began < 20


@pytest.mark.parametrize("other", [b"; note\n", b"\n", b"  \n"], ids=["comments", "blank", "spaces"])
def test_lines_without_a_job_are_counted(tmp_path, monkeypatch, other):
    monkeypatch.setattr(swf, "MOST_OTHER_LINES", 40)
    monkeypatch.setattr(swf, "BLOCK_BYTES", 256)
    job = JOB.encode() + b"\n"
    assert len(read_swf(write(tmp_path, (job + other) * 40)).jobs) == 40
    path = write(tmp_path, (job + other) * 40 + other + job * 40)
    with pytest.raises(UserError) as caught:
        read_swf(path)
    assert f"{path}: before line 8" in str(caught.value)


def test_blocks_give_what_the_whole_gives_and_the_first_jobs_do_not_read_on(tmp_path, monkeypatch):
    text = "; MaxProcs: 8\n" + "".join(f"{number} {JOB[2:]}\n; after {number}\n" for number in range(1, 200))
    path = write(tmp_path, text + "broken\n")
    monkeypatch.setattr(swf, "BLOCK_BYTES", 256)
    first = read_swf(path, first=20)
    assert first.jobs["job_id"].tolist() == list(range(1, 21))
    with pytest.raises(UserError, match="line 400: 1 fields"):
        read_swf(path)
    blocks, header = list(read_blocks(write(tmp_path, text))), read_header(tmp_path / "trace.swf")
    assert len(blocks) > 20 and not len(header.jobs)
    monkeypatch.undo()
    whole = read_swf(tmp_path / "trace.swf")
    assert header.comments == whole.comments == (" MaxProcs: 8", *(f" after {number}" for number in range(1, 200)))
    assert header.lines == whole.lines and header.source == whole.source
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), whole.jobs)


def test_what_is_written_is_read_again_and_has_the_same_bytes(tmp_path, repository):
    for name in ("lab-128", "lab-bursts"):
        trace = read_swf(repository / f"tests/data/batch/{name}.swf.gz")
        for ending in ("swf", "swf.gz"):
            write_swf(tmp_path / f"a.{ending}", trace)
            write_swf(tmp_path / f"b.{ending}", trace)
            assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
            again = read_swf(tmp_path / f"a.{ending}")
            assert again.comments == trace.comments
            pd.testing.assert_frame_equal(again.jobs, trace.jobs)


def long_trace(jobs):
    """Jobs of distinct values, some of them no whole numbers."""
    values = np.arange(1, jobs + 1)
    columns = {name: values.astype(kind) for name, kind in COLUMNS.items()} | {"run": values / 8}
    return Trace(pd.DataFrame(columns), (" MaxProcs: 100000000",))


def peak_of(work):
    """The largest amount of memory, in bytes, that Python and numpy held while some work was done, above that
    before.
    """
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["trace.swf", "trace.swf.gz"])
def test_pieces_have_the_bytes_of_the_whole_and_memory_does_not_grow_with_the_trace(tmp_path, monkeypatch, name):
    trace = long_trace(20_000)
    write_swf(tmp_path / name, trace)
    whole = (tmp_path / name).read_bytes()
    monkeypatch.setattr(swf, "BLOCK_JOBS", 1_000)
    less, more = (peak_of(partial(write_swf, tmp_path / name, long_trace(jobs))) for jobs in (5_000, 20_000))
    assert (tmp_path / name).read_bytes() == whole
    assert more < 1.2 * less
    text = gzip.decompress(whole) if name.endswith(".gz") else whole
    # Byte 9 names the system, for which Python 3.13 writes "unknown".
    assert not name.endswith(".gz") or gzip.compress(text, 6, mtime=0)[10:] == whole[10:]
    header, first, second, *_ = text.splitlines()
    assert header == b"; MaxProcs: 100000000"
    assert (first, second) == (b"1 1 1 0.125" + 14 * b" 1", b"2 2 2 0.25" + 14 * b" 2")


def test_reading_and_cleaning_hold_a_log_once(tmp_path, monkeypatch):
    write_swf(tmp_path / "trace.swf", long_trace(20_000))
    monkeypatch.setattr(swf, "BLOCK_BYTES", 1 << 14)
    held = 8 * len(COLUMNS) * 20_000
    kept = []
    assert peak_of(lambda: kept.append(read_swf(tmp_path / "trace.swf"))) < 1.5 * held
    assert peak_of(lambda: kept.append(clean(kept[0])[0])) < 0.5 * held
    assert len(kept[1].jobs) == 20_000


numbers = st.one_of(
    st.integers(-1, 10**6).map(str),
    st.floats(-1, 1e9).map(repr),
    st.sampled_from(["nan", "-", "1e3", "+5", "0x1", "1_0", ".5"]),
)
lines = st.one_of(
    st.lists(numbers, min_size=16, max_size=19).map(" ".join),
    st.just(JOB),
    st.text(max_size=20).map(lambda text: ";" + text),
    st.just(""),
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.lists(lines, max_size=6).map(lambda rows: "\n".join(rows).encode())))
def test_the_fast_reading_agrees_with_the_plain_one_on_any_bytes(data):
    at_once = swf._parse_at_once(data)
    try:
        plainly = swf._parse_lines(data, "any", 1)
    except UserError:
        plainly = None
    if at_once is not None:
        assert plainly is not None
        pd.testing.assert_frame_equal(swf._frame(at_once), swf._frame(plainly))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path_factory, data, packed):
    path = tmp_path_factory.mktemp("fuzz") / "any.swf"
    path.write_bytes(gzip.compress(data) if packed else data)
    try:
        trace = read_swf(path)
    except UserError as error:
        assert str(path) in str(error)
    else:
        assert np.isfinite(trace.jobs.to_numpy(dtype=float)).all()
        assert trace.processors is None or trace.processors > 0


@pytest.mark.parametrize("name", ODDITIES)
def test_the_archives_logs_have_the_recorded_oddities(shared_data, name):
    from schedlab.workloads.statistics import oddities

    records, processors, zero, negative, no_request, overrun, unordered = ODDITIES[name]
    trace = read_swf(shared_data / f"traces/{name}.swf.gz")
    assert (len(trace.jobs), trace.processors) == (records, processors)
    found = oddities(trace)
    told = ("run_zero", "run_negative", "requested_time_missing", "run_longer_than_requested", "submit_out_of_order")
    assert tuple(found[key] for key in told) == (zero, negative, no_request, overrun, unordered)
